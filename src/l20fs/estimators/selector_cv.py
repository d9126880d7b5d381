"""L20SelectorCV: number of features by cross-validation, with a path in every fold."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import nan
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.multiclass import check_classification_targets

from l20fs.design import Part, SampleWeights, finish
from l20fs.estimators.calibration import calibrations_of_search
from l20fs.estimators.frames import is_lazy
from l20fs.estimators.judged_model import JudgedModel
from l20fs.estimators.models import L20Classifier, L20Regressor, calibrate
from l20fs.estimators.penalty import SizeRange, possible_sizes
from l20fs.estimators.search_grid import SearchGrid
from l20fs.estimators.searched_selector import Model, SearchedSelector
from l20fs.estimators.selector import L20Selector
from l20fs.evaluation.choice import Setting, SizeRule, choose, is_at_limit, least_size, tabulate, tabulate_selections
from l20fs.evaluation.engine import Parts, Samples, Scores, score_sizes, walk_fit
from l20fs.evaluation.folds import N_REPEATS, Fold, make_folds
from l20fs.evaluation.judges import fit_estimator
from l20fs.evaluation.metrics import METRICS, Metric
from l20fs.evaluation.out_of_fold import MOST_PREDICTED, OutOfFold, Truth
from l20fs.evaluation.parallel import shared_unless_in_processes
from l20fs.evaluation.preprocessing import CarriedConstraints, Preprocessing, validate_before
from l20fs.evaluation.quoted_score import mean_score
from l20fs.inputs.old_names import name_new_parameters
from l20fs.inputs.targets import Targets, encode_targets, warn_of_numbers, weights_of_targets
from l20fs.objective.ridge import auto_ridge_for
from l20fs.objective.solution_path import SolutionPath
from l20fs.typing import Array, Task

#: Ridges of the weights of numbers that are tried, in units of the mean energy of a feature, and a second of the selection.
REFIT_RIDGES, STRONG_RIDGE = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 10.0), 1.0


class L20SelectorCV(SearchedSelector):
    """Select the number of features by cross-validation.

    In every fold the whole path is computed on its training samples only, and tried on its test samples for every number of
    features. The number (and the ridge) is chosen from the errors; then the path on all samples gives the features.

    Parameters
    ----------
    n_features_to_select : {"auto", "best"}, int or float, default="auto"
        ``"best"``: the smallest number with the lowest error. ``"auto"``: the smallest number whose error is at most 5 %
        above the lowest, and at least 10 or a tenth of the features. Where no number predicts better than guessing, either
        is the smallest one. The error of classes is the squared error of their calibrated probabilities (Brier's), of
        numbers 1 - R^2, of a ``scoring`` the distance to the perfect score. A number, or a share of all features: that many;
        only the ridge is chosen.
    selector : L20Selector or None, default=None
        What computes the path; its other parameters apply, except for those named here. None: ``L20Selector()``.
    sizes : sequence of int or None, default=None
        The numbers of features that are tried. None: all up to 100, every second up to 200, every fourth up to 400, and so
        on up to the limit. Fewer save time where ``estimator`` is slow. Where ``selector`` has groups, these are numbers of
        groups; they begin with what it includes.
    ridges : sequence of floats or "auto", or None, default=None
        Strengths of the ridge term of the selection to choose from. None: that of ``selector``; for numbers, where that is
        "auto", also 1. ``"auto"``, like the scaling, is decided in each fold by its training samples.
    estimator : {"classifier", "regressor"}, estimator or None, default=None
        What is tried. None: the path's own model of the task, :class:`L20Classifier` or :class:`L20Regressor`, which needs
        no fit for another number of features; the words name one of them. Any other estimator is fitted on the selected
        columns, once per number; one without probabilities is judged by its score.
    cv : int, splitter, iterable or None, default=None
        None: 4 times 5 shuffled folds, stratified by class if y holds labels, with the samples of a group together if
        ``groups`` are given; once, where ``preprocess`` or ``estimator`` is fitted in every fold. A number: so many, once.
        Others as in scikit-learn.
    scoring : str, callable or None, default=None
        As in scikit-learn; it decides if it is given. None: the accuracy, or R^2, are in the tables.
    preprocess : transformer or None, default=None
        Steps before the selection, such as ``make_pipeline(SimpleImputer(), StandardScaler())``. A copy is fitted in every
        fold, once, to its training samples, whatever the number of ridges, lambdas and numbers of features, and one to all
        samples. All is as in a pipeline of the two: X is what comes in (``n_features_in_``, ``feature_names_in_``; missing
        values and text must be handled by the steps), and the features are the columns that they give: ``support_``,
        ``ranking_``, ``scores_``, ``coef_``, ``get_feature_names_out``, ``transform`` and ``inverse_transform``, and what
        ``selector`` includes, excludes or groups, by name or index. The preprocessed samples of all folds are kept in memory
        until the fit ends. Weights and other metadata are passed to the steps by metadata routing only.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds that are made here.
    n_jobs : int or None, default=None
        Number of processes, each with a path. None, or 1: paths walk side by side in one process and share their products
        with X, which costs less time than as many fits; so do those on files, Dask arrays and devices, for any number. The
        result does not depend on it.
    verbose : int, default=0
        1 prints a line after each path.

    Attributes
    ----------
    cv_results_ : dict of arrays
        One entry per ridge and number of features: ``ridge`` (of ``"auto"`` the value on all samples; each fold has its
        own), ``refit_ridge`` (of the weights of numbers, the best one; NaN for that of the selection),
        ``n_features_to_select`` (of groups, where ``selector`` has any), ``n_features`` (the mean over the folds), ``error``
        and ``skill`` (1 less the error divided by that of guessing), ``split0_test_score`` and so on, ``mean_test_score``,
        ``std_test_score``, ``standard_error``, ``rank_test_score``. A DataFrame takes it.
    fold_supports_ : dict of arrays
        With a row per entry of ``cv_results_`` and a column per feature: ``split0_support`` and so on, the masks of the
        features selected in the fold, and ``split0_ranking``, their ranks, 1 for the best. Where ``preprocess`` gives other
        columns in a fold than on all samples, the features are those on all samples, found by name: those that the fold
        does not have are last in its ranking, and those that only the fold has are counted in ``n_features`` alone.
    n_features_ : int
        Number of selected features.
    skill_ : float
        How much lower the error of the choice is than that of guessing, as a share of the latter; at most 0 where nothing
        predicts better than guessing, NaN for a ``scoring`` of which that is not known.
    ridge_ : float
        The ridge of the selection that was chosen; of ``"auto"`` the value on all samples.
    refit_ridge_ : float or None
        The ridge of the weights of numbers that was chosen; None for that of the selection.
    scale_ : {"moderated", "zscore", "none"}
        The scaling that was used on all samples, see :class:`L20Selector`.
    best_score_ : float
        The mean over the folds of the score of the choice.
    best_index_ : int
        Its position in ``cv_results_``.
    corrected_score_ : float
        The score of the choice to quote: of the predictions of all folds and repeats together. Larger is better, as for
        ``scorer_``: errors have a minus sign. benchmarks/intervals.py has its bias, on noise up to two points of accuracy.
    corrected_interval_ : tuple of two floats
        Its confidence interval of 95 %, see :mod:`l20fs.evaluation.quoted_score`. Where ``groups`` are given, it is about
        samples of other groups.
    quoted_scores_ : dict
        The same by name with its interval, (value, lower, upper); of classes also the accuracy and the balanced accuracy,
        and ``largest_class``, the share of the largest class, which is the accuracy without any features.
    out_of_fold_ : OutOfFold or None
        Predictions of the test samples of all folds; not part of a copy or a file.
    n_splits_ : int
        Number of folds, those of all repeats.
    scorer_ : callable
        The scorer that was used.
    task_ : {"classification", "regression"}
        What y was taken for.
    model_ : L20Classifier or L20Regressor
        Fitted on all samples.
    preprocess_ : transformer or None
        The copy of ``preprocess`` that was fitted to all samples. Whatever takes an X (``transform``, ``predict``, ``score``
        and so on) applies it first.
    estimator_ : estimator
        What predicts: ``model_``, or the ``estimator`` fitted on the selected columns of all samples, as ``preprocess_``
        gives them.
    path_, scores_, ranking_, support_, coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in :class:`L20Classifier`.

    References
    ----------
    .. [1] Z. Sun and Y. Yu, "Robust multi-class feature selection via l2,0-norm regularization minimization" (2020).

    Examples
    --------
    >>> from l20fs.data import make_planted
    >>> X, y, informative = make_planted(n_samples=150, n_features=200, n_informative=3, random_state=0)
    >>> selector = L20SelectorCV("best", sizes=range(1, 21)).fit(X, y)
    >>> bool(selector.support_[informative].all())
    True
    >>> selector.cv_results_["mean_test_score"].shape
    (20,)
    >>> lower, upper = selector.corrected_interval_
    >>> lower < selector.corrected_score_ < upper
    True
    """

    about = L20Selector.about._replace(cost="(folds x ridges + 1) paths of L20Selector")
    _size_rules = ("auto", "best")
    _takes_sparse = True
    _takes_blocks = True
    _takes_device_arrays = True
    # Groups (donors, batches) are for the splits, so they are wanted wherever there are some.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    path_: SolutionPath

    @name_new_parameters
    def __init__(
        self,
        n_features_to_select: int | float | SizeRule = "auto",
        *,
        selector: L20Selector | None = None,
        sizes: Sequence[int] | None = None,
        ridges: Sequence[float | str] | None = None,
        estimator: Any = None,
        cv: Any = None,
        scoring: Any = None,
        preprocess: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.selector = selector
        self.sizes = sizes
        self.ridges = ridges
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.preprocess = preprocess
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        adjust_for: Any = None,
        **params: Any,
    ) -> Self:
        """Choose the number of features by cross-validation and select them on all samples.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Finite numbers, or what ``preprocess`` takes. Without it, X may be a Dask array, and a dense array of torch or
            CuPy stays on its device, where the folds share it.
        y : array of shape (n_samples,), or (n_samples, n_outputs) for a regression
            Labels, or numbers for a regression.
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts. A scoring or an estimator of your own gets them by metadata routing only, and
            counts every sample once without it.
        groups : array of shape (n_samples,), optional
            Samples of one group (a donor, a batch) are never on both sides of a split.
        adjust_for : array or list of shape (n_samples,) or (n_samples, n_columns), Series or DataFrame, optional
            Known nuisances of each sample, such as its batch, as for :meth:`L20Selector.fit`. A fold adjusts for those of
            its training samples, and predicts its test samples from their features alone; with the batch as ``groups`` as
            well, that is the score on a batch that nobody has seen.
        **params : dict
            Routed to ``estimator``, ``scoring`` and ``preprocess`` if scikit-learn's metadata routing is enabled.

        Returns
        -------
        self
            The fitted selector.
        """
        routed = self._judged.route(self, params, sample_weight=sample_weight, groups=groups)
        with self._fitting():
            self._learn(*self._prepare(X, y, sample_weight, adjust_for), groups=groups, routed=routed)
            self._warn_if_short()
        return self

    def __getstate__(self) -> dict[str, Any]:
        # Predictions of all sizes, folds and repeats are many, and nothing predicts from them.
        return {name: value for name, value in super().__getstate__().items() if name != "out_of_fold_"}

    def get_metadata_routing(self) -> MetadataRouter:
        """Route metadata: groups to the splits, the rest to whoever asks for it.

        Returns
        -------
        MetadataRouter
            As in scikit-learn.
        """
        return Preprocessing(self.preprocess).add_to(self._judged.router(self))

    @property
    def _takes_parts(self) -> bool:  # type: ignore[override]
        """Whether X may be a part of samples that several fits share: steps before the selection need the samples."""
        return self.preprocess is None

    def _validate(self, X: Any, y: Any) -> tuple[Any, Targets]:
        if isinstance(X, Part):  # of samples that were validated as a whole
            self.n_features_in_ = X.shape[1]
            return X, self._encode(np.asarray(y))
        if self.preprocess is None:
            if is_lazy(X):
                return self._validate_blocks(X, y)
            return super()._validate(X, y)
        X, y = validate_before(self, X, y)
        return X, self._encode(y)

    def _learn(self, X: Any, targets: Targets, **extra: Any) -> None:
        template, grid, judged = self._template, self._grid, self._judged
        samples, folds, parts = self._share(X, targets, extra["groups"], extra["routed"])
        n_units, possible = possible_sizes(template, samples.X, targets, samples.names)
        metric = judged.metric(0 if targets.classes is None else len(targets.classes), samples.score_params)
        calibration = None if metric is not None else 5  # a scorer of one's own may ask for probabilities
        models = [self._model(targets, calibration, ridge) for ridge in self._ridges]
        ridges, n_paths = _strengths(models, samples.X, targets), len(models) * len(folds)
        settings = [Setting(ridge, None) for ridge in ridges]
        carried = CarriedConstraints.of(template, samples, parts)
        self._chosen_by, self._least = self.n_features_to_select, least_size(possible.most)
        for n_rounds, limit in enumerate(grid.limits(possible, samples.X.shape[0])):
            self._tried = sizes = self._sizes(possible, limit, n_units)
            finals = self._finals(models, samples.X, metric)
            refit_ridges = self._refit_ridges(len(models) * sum(len(fold.test) for fold in folds) * targets.Y.shape[1])
            scores = score_sizes(
                models,
                samples,
                folds,
                sizes,
                judged.judge(self.scorer_, metric, targets.classes, refit_ridges),
                metric=metric,
                truth=Truth.of(targets, template.class_weight),
                adapt=None if carried is None else carried.adapt,
                one_ranking=True,
                n_jobs=self.n_jobs,
                parts=parts,
                beside=[partial(walk_fit, final, samples) for final in finals],
                on_path=partial(self._report, n_paths=n_paths, n_before=n_rounds * n_paths),
            )
            errors = scores.errors(metric, by_default=self.scoring is None)
            self.cv_results_ = tabulate(settings, sizes, scores.values, scores.n_features, errors)
            self.best_index_ = self._choose(n_units)
            if not self._is_at_limit(possible):
                break
        else:
            self._warn_of_limit()
        self.cv_results_["refit_ridge"] = self._best_refits(scores.predictions, refit_ridges)
        self.fold_supports_ = tabulate_selections(scores.support, scores.ranking)
        if targets.classes is not None:
            self.classes_ = targets.classes
        self.n_splits_ = len(folds)
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.skill_ = float(self.cv_results_["skill"][self.best_index_])
        self._quote(scores, metric, extra["groups"])
        self._finish(models, finals, scores.predictions, samples, targets)

    def _share(self, X: Any, targets: Targets, groups: Any, routed: Any) -> tuple[Samples, list[Fold], list[Parts] | None]:
        """Return the samples as the folds share them, the folds, and their parts where steps are fitted in each fold."""
        X = X.tocsr() if sp.issparse(X) else X  # of which samples can be taken
        samples = Samples(
            X,
            self._labels(targets),
            targets.sample_weight,
            routed.estimator.fit,
            routed.scorer.score,
            getattr(self, "feature_names_in_", None),
            targets.nuisances,
            targets.Y.shape[1],
        )
        weights_of_targets(targets, self._template.class_weight)  # a label that y does not have is refused before any fold
        # Where something is fitted in every fold, or for every size, repeats would cost too much.
        n_repeats = N_REPEATS if self.preprocess is None and self._judged.is_own else 1
        folds = make_folds(
            self.cv, X, samples.y, groups, classify=self._judged.classifies, n_repeats=n_repeats, seed=self.random_state
        )
        steps = Preprocessing(self.preprocess, routed.get("preprocess", {}).get("fit_transform", {}))
        self.preprocess_, samples, parts = steps.apply(samples, folds, self.n_jobs)
        if parts is None:
            samples = replace(samples, X=shared_unless_in_processes(samples.X, self.n_jobs))
        return samples, folds, parts

    def _finish(
        self,
        models: list[Model],
        finals: list[Model],
        predicted: OutOfFold | None,
        samples: Samples,
        targets: Targets,
    ) -> None:
        """Compute the path of the chosen setting on all samples, and calibrate its probabilities by those of the folds."""
        setting = self.best_index_ // len(self._tried)
        model, calibrations = (finals or models)[setting], None
        if predicted is not None:
            calibrations = calibrations_of_search(self._tried, predicted, setting, targets.sample_weight)
        if not finals and isinstance(model, L20Classifier):
            model.set_params(calibration=5 if calibrations is None else None)
        refit_ridge = self.cv_results_["refit_ridge"][self.best_index_]
        if isinstance(model, L20Regressor) and np.isfinite(refit_ridge):
            model.set_params(refit_ridge=float(refit_ridge))
        self._fit_finally(model, samples, is_fitted=bool(finals))
        if isinstance(model, L20Classifier) and calibrations is not None:
            calibrate(model, self.n_splits_, calibrations)

    def _finals(self, models: list[Model], X: Any, metric: Metric | None) -> list[Model]:
        """Return models for paths on all samples that walk beside those of the folds; none if they need the chosen size.

        In memory they are fitted beside the folds where there are one or two settings, in blocks for every setting: a walk
        takes less time than further passes over X.
        """
        template = self._template
        is_sure = template.constraints is None
        if not (is_sure and isinstance(X, Part) and (len(models) <= 2 or X.is_in_blocks)):
            return []
        calibration = None if metric is not None and self._judged.is_own else 5
        finals: list[Model] = [type(model)(**model.get_params(deep=False)) for model in models]
        for final in finals:
            final.set_params(n_features_to_select=self._tried[-1], max_features_to_select=self._tried[-1])
            if isinstance(final, L20Classifier):
                final.set_params(calibration=calibration)
        return finals

    @property
    def _ridges(self) -> list[Any]:
        """The strengths of the ridge term of the selection; of numbers two, unless one is given."""
        is_open = self.ridges is None and self._template.ridge == "auto" and self._judged.is_own
        return ["auto", STRONG_RIDGE] if is_open and not self._judged.classifies else self._grid.ridges

    def _refit_ridges(self, n_predicted: int) -> Sequence[float | None]:
        """Return the ridges of the weights to try: several for numbers, unless one is given or they are too many."""
        is_open = self._template.refit_ridge is None and self._judged.is_own and not self._judged.classifies
        is_small = n_predicted * len(self._tried) * len(REFIT_RIDGES) <= MOST_PREDICTED
        return REFIT_RIDGES if is_open and is_small else (None,)

    def _best_refits(self, found: OutOfFold | None, refit_ridges: Sequence[float | None]) -> Array:
        """Return the ridge of the weights of every entry, NaN for that of the selection."""
        if found is None or len(refit_ridges) == 1:
            return np.full(len(self.cv_results_["error"]), np.nan)
        return np.asarray(refit_ridges, dtype=np.float64)[found.best_ridges.ravel()]

    def _model(self, targets: Targets, calibration: Any, ridge: float | str | None) -> Model:
        """Return the unfitted model of one path."""
        template = self._template
        model: Model = (
            template._as_regressor()
            if targets.classes is None
            else template._as_classifier().set_params(calibration=calibration)
        )
        return model.set_params(ridge=template.ridge if ridge is None else ridge)

    def _is_at_limit(self, possible: SizeRange) -> bool:
        """Whether a number was searched for, the best one lies at the limit, and there are more features."""
        is_search = isinstance(self.n_features_to_select, str) and self._tried[-1] != possible.most
        return is_search and is_at_limit(self.cv_results_, self.best_index_, self._least)

    def _warn_of_limit(self) -> None:
        largest = self._tried[-1]
        warnings.warn(
            f"The search for the number of features ended at its limit of {largest}, which it chose; more features may do "
            "better. Raise the limit with sizes.",
            UserWarning,
            stacklevel=4,  # the caller of fit
        )

    def _report(self, n_done: int, n_paths: int, n_before: int = 0) -> None:
        n_done, n_paths = n_before + n_done, n_before + n_paths
        if self.verbose:
            print(f"[L20SelectorCV] {n_done} of {n_paths} paths")

    @property
    def _template(self) -> L20Selector:
        return L20Selector() if self.selector is None else self.selector

    @property
    def _task(self) -> Task:
        return getattr(self, "task_", self._template.task)

    @property
    def _grid(self) -> SearchGrid:
        return SearchGrid(self.ridges, self.sizes)

    def _choose(self, n_units: int) -> int:
        rule = self.n_features_to_select
        if isinstance(rule, str):
            return choose(self.cv_results_, rule, self._least)
        sizes = self.cv_results_["n_features_to_select"]
        return choose(self.cv_results_, rule, among=sizes == min(self._n_wanted(rule, n_units), sizes.max()))

    def _quote(self, scores: Scores, metric: Metric | None, groups: Any) -> None:
        """Set the scores to quote, of the chosen setting."""
        if metric is None or scores.predictions is None:
            of_folds = scores.values.swapaxes(0, 1).reshape(self.n_splits_, -1)[:, self.best_index_]
            quoted: dict[str, Any] = {"score": tuple(mean_score(of_folds)) if len(of_folds) > 1 else (of_folds[0], nan, nan)}
        else:
            found, groups = scores.predictions, None if groups is None else np.asarray(groups)
            others = ("accuracy", "balanced_accuracy") if self._judged.classifies else ("r2",)
            named = {metric.name: metric} | {name: METRICS[name] for name in others}
            quoted = {name: tuple(found.quote(each, self.best_index_, groups)) for name, each in named.items()}
            if found.shares is not None:
                quoted["largest_class"] = float(found.shares.of_sample.max())
        self.quoted_scores_ = quoted
        value, lower, upper = next(iter(quoted.values()))
        self.corrected_score_, self.corrected_interval_ = value, (lower, upper)
        self.out_of_fold_ = scores.predictions

    def _fit_finally(self, model: Model, samples: Samples, *, is_fitted: bool) -> None:
        """Compute the chosen path on all samples, unless it walked beside those of the folds."""
        size, largest = self._tried[self.best_index_ % len(self._tried)], self._tried[-1]
        self.model_ = model.set_params(n_features_to_select=size, max_features_to_select=largest)
        if not is_fitted:
            finish(walk_fit(model, samples))
        model._warn_of_explained_targets()
        if samples.names is not None:
            model.feature_names_in_ = samples.names
        self.path_, self.scores_, self.ranking_ = model.path_, model.scores_, model.ranking_
        self.ridge_, self.scale_ = model.ridge_, model.scale_
        self.refit_ridge_ = getattr(model, "refit_ridge", None)
        self.estimator_: Any = model
        if not self._judged.is_own:
            self._columns = np.flatnonzero(model.support_)
            self.estimator_ = fit_estimator(self.estimator, samples.X[:, self._columns], samples.y, samples.fit_params)

    def _sizes(self, possible: SizeRange, limit: int, n_units: int) -> list[int | None]:
        """Return the numbers of features, or groups, to try."""
        rule = self.n_features_to_select
        if isinstance(rule, str):
            return self._grid.counts(possible, limit, None)
        return self._grid.counts(possible, limit, self._n_wanted(rule, n_units))

    def _encode(self, y: Array) -> Targets:
        fit_intercept, task = self._template.fit_intercept, self._template.task
        self._is_flat = y.ndim == 1
        if task == "auto" and self.estimator is not None:
            task = "classification" if JudgedModel(self.estimator, None).classifies else "regression"
        if task == "classification" and y.ndim == 1 and y.dtype.kind == "f":
            check_classification_targets(y)
        targets = encode_targets(y, task, fit_intercept=fit_intercept)
        if targets.classes is not None and targets.codes is None:
            raise ValueError(
                "Unknown label type: y is a label indicator. Use task='regression', or one label per sample, such as "
                "y.argmax(axis=1)."
            )
        if self._template.task == "auto" and self.estimator is None:
            warn_of_numbers(y, targets)
        self.task_: Task = "regression" if targets.classes is None else "classification"
        return targets

    def _labels(self, targets: Targets) -> Array:
        """Return y in the form for an estimator or a scorer."""
        if targets.classes is not None:
            return np.asarray(targets.classes[targets.codes])
        return targets.Y[:, 0] if self._is_flat else targets.Y

    def _check_parameters(self) -> None:
        if self.selector is not None and not isinstance(self.selector, L20Selector):
            raise TypeError(f"selector={self.selector!r} is not an L20Selector. Use one, or None for its defaults.")
        self._judged.check()
        self._grid.check()
        Preprocessing(self.preprocess).check()


def _strengths(models: list[Model], X: Any, targets: Targets) -> list[float]:
    """Return the strength of the ridge term of each model on all samples."""
    if all(model.ridge != "auto" for model in models):
        return [float(model.ridge) for model in models]
    weights = SampleWeights(X.shape[0], targets.sample_weight, fit_intercept=models[0].fit_intercept)
    auto = auto_ridge_for(X, weights, for_labels=targets.classes is not None)
    return [auto if model.ridge == "auto" else float(model.ridge) for model in models]
