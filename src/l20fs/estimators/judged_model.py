"""The model that a cross-validation scores: that of the path itself, or another estimator on the selected columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from sklearn import get_config
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch, ClassifierTags, RegressorTags, Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from l20fs.estimators.models import L20Classifier, L20Regressor
from l20fs.estimators.predictor import Scored
from l20fs.evaluation.engine import Judge
from l20fs.evaluation.judges import FittedEstimator, FittedPredictions, OwnModel, OwnPredictions, OwnRule, Scorer
from l20fs.evaluation.metrics import METRICS, Metric
from l20fs.inputs.validation import check_choice
from l20fs.typing import Array, Task


@dataclass(frozen=True)
class JudgedModel:
    """The parameters ``estimator``, ``scoring`` and ``task`` of :class:`~l20fs.L20SelectorCV`."""

    estimator: Any
    scoring: Any
    task: Task = "auto"

    @property
    def is_own(self) -> bool:
        """Whether the path's own model is scored, which needs no fit for another number of features."""
        return self.estimator is None or isinstance(self.estimator, str)

    @property
    def classifies(self) -> bool:
        """Whether labels are predicted; that is known before any y, as scikit-learn wants it."""
        if self.estimator is None:
            return self.task != "regression"
        return bool(self.estimator == "classifier" if self.is_own else is_classifier(self.estimator))

    @property
    def unfitted(self) -> Any:
        """An unfitted estimator of the kind that is scored."""
        if self.is_own:
            return L20Classifier() if self.classifies else L20Regressor()
        return self.estimator

    @property
    def weighs_scores(self) -> bool:
        """Whether test samples are weighted without a request for it."""
        return self.is_own and self.scoring is None

    def tag(self, tags: Tags) -> Tags:
        """Add to the tags of a selector what follows from the kind of the model."""
        own = get_tags(self.unfitted)
        tags.estimator_type = "classifier" if self.classifies else "regressor"
        tags.classifier_tags = ClassifierTags() if self.classifies else None
        tags.regressor_tags = None if self.classifies else RegressorTags()
        tags.target_tags.multi_output = not self.classifies and own.target_tags.multi_output
        tags.input_tags.sparse = own.input_tags.sparse
        return tags

    def check(self) -> None:
        """Refuse what cannot be scored."""
        check_choice("task", self.task, get_args(Task))
        is_known = (
            self.estimator in (None, "classifier", "regressor")
            if self.is_own
            else hasattr(self.estimator, "__sklearn_tags__")
            and (is_classifier(self.estimator) or is_regressor(self.estimator))
        )
        if not is_known:
            raise ValueError(
                f"estimator={self.estimator!r} is unknown. Use 'classifier', 'regressor', or a classifier or regressor of "
                "scikit-learn's kind."
            )
        if self.task not in ("auto", "classification" if self.classifies else "regression"):
            raise ValueError(f"task={self.task!r} contradicts estimator={self.estimator!r}. Leave one of the two out.")
        if self.scoring is not None and not (isinstance(self.scoring, str) or callable(self.scoring)):
            raise ValueError(f"scoring={self.scoring!r} is not valid: one score decides. Use a name, a callable, or None.")

    def scorer(self) -> Scorer:
        """Return the scorer as scikit-learn makes it."""
        unfitted = self.unfitted
        if get_config()["enable_metadata_routing"] and self.weighs_scores:
            unfitted.set_score_request(sample_weight=True)
        known = METRICS.get(self.scoring) if isinstance(self.scoring, str) else None
        is_error = known is not None and known.sign < 0
        return check_scoring(unfitted, known.aliases[0] if known is not None and is_error else self.scoring)

    def metric(self, n_classes: int, score_params: Mapping[str, Any]) -> Metric | None:
        """Return the metric that gives the same scores as the scorer from predictions, None if there is none.

        ``n_classes`` is 0 for numbers.
        """
        if not set(score_params) <= {"sample_weight"}:
            return None
        name = self.scoring
        if name is None:
            name = self._default_scoring()
        metric = next((each for each in METRICS.values() if name in (each.name, *each.aliases)), None)
        if metric is None or metric.is_for_labels != (n_classes > 0):
            return None
        if metric.needs != "probabilities":
            return metric
        if n_classes > 2 and name == "roc_auc":
            return None  # which scikit-learn refuses
        has_probabilities = self.is_own or hasattr(self.estimator, "predict_proba")
        # The order of two classes' values is that of their probabilities.
        has_order = metric.name == "roc_auc" and n_classes == 2 and hasattr(self.estimator, "decision_function")
        return metric if has_probabilities or has_order else None

    def _default_scoring(self) -> str | None:
        """Return the name of what the ``score`` of the estimator computes, None for one of its own."""
        estimator = self.unfitted
        while isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        own = "accuracy" if is_classifier(estimator) else "r2"
        known = {ClassifierMixin.score: "accuracy", RegressorMixin.score: "r2", Scored.score: own}
        return known.get(getattr(type(estimator), "score", None))

    def judge(
        self, scorer: Scorer, metric: Metric | None, classes: Array | None, refit_ridges: Sequence[float | None]
    ) -> Judge:
        """Return the judge that scores it in a fold, or predicts where a metric can tell the score."""
        if metric is None:
            return OwnModel(scorer) if self.is_own else FittedEstimator(self.estimator, scorer)
        return (
            OwnPredictions(OwnRule(), classes, refit_ridges) if self.is_own else FittedPredictions(self.estimator, classes)
        )

    def router(self, owner: Any) -> MetadataRouter:
        """Say which metadata of ``owner.fit`` go where."""
        router = MetadataRouter(owner=owner).add_self_request(owner)
        if not self.is_own:
            router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router.add(scorer=self.scorer(), method_mapping=MethodMapping().add(caller="fit", callee="score"))

    def route(self, owner: Any, params: dict[str, Any], **own: Any) -> Bunch:
        """Return the metadata for the estimator and the scorer, empty unless routing is enabled.

        ``own`` are those that ``owner.fit`` takes itself, ``params`` all others.
        """
        is_routed = get_config()["enable_metadata_routing"]
        if params and not is_routed:
            raise TypeError(
                f"fit() got {', '.join(map(repr, params))}, which only metadata routing can pass on. Enable it with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        given = {name: value for name, value in (params | own).items() if value is not None}
        if given and is_routed:
            return Bunch(**{"estimator": Bunch(fit={}), **process_routing(owner, "fit", **given)})
        weights = {"sample_weight": given["sample_weight"]} if self.weighs_scores and "sample_weight" in given else {}
        return Bunch(estimator=Bunch(fit={}), scorer=Bunch(score=weights))
