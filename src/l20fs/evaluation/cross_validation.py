"""Score the sizes along a path in the folds of a cross-validation, and choose one of them."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv

from l20fs.estimators.models import L20Classifier, L20Regressor
from l20fs.estimators.selector import L20Selector
from l20fs.evaluation.resampling import encode_groups
from l20fs.inputs.validation import Targets, forget_absent_classes, with_weights
from l20fs.typing import Array

Model = L20Classifier | L20Regressor
SizeRule = Literal["best", "1se"]

#: Mean scores closer than this are equal: they differ by the rounding of a sum.
TIE = 1e-10


class Setting(NamedTuple):
    """One path: its ridge, None for that of the template, and the lambda at which it ends, None for the largest size."""

    ridge: float | None
    alpha: float | None


class Fold(NamedTuple):
    """The samples of one split, by position."""

    train: Array
    test: Array


class Scores(NamedTuple):
    """Test scores of one path in one fold, one per size, how many features that was, and the ridge of the path."""

    values: Array
    n_features: Array
    ridge: float


class Samples(NamedTuple):
    """Validated data: X, the encoded targets, y as estimators want it, and the names of the features if they have any."""

    X: Any
    targets: Targets
    y: Array
    names: Array | None

    def part(self, chosen: Array) -> Samples:
        """Return some of the samples."""
        _, _, codes, weights = self.targets
        targets = Targets(
            self.targets.Y[chosen],
            self.targets.classes,
            None if codes is None else codes[chosen],
            None if weights is None else weights[chosen],
        )
        return Samples(self.X[chosen], targets, self.y[chosen], self.names)

    def encoded_by(self, model: Model) -> Samples:
        """Return the samples with targets as a model encodes them: a class of which there is no sample is none."""
        return self._replace(targets=with_weights(model._encode(self.y), self.targets.sample_weight))


@dataclass
class PathScorer:
    """Compute a path on the training samples of a fold and score it on its test samples, for every size.

    ``estimator`` None: the path's own model is scored. ``fit_params`` and ``score_params`` hold metadata of all samples.
    """

    template: L20Selector
    samples: Samples
    sizes: Sequence[int | None]
    scorer: Callable[..., float]
    estimator: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]

    def __call__(self, setting: Setting, fold: Fold) -> Scores:
        model = self.model_for(setting)
        train = self.samples.part(fold.train).encoded_by(model)
        forget_absent_classes(model, train.y)
        learn(model, train)
        X_test, y_test = self.samples.X[fold.test], self.samples.y[fold.test]
        score_params = at(self.score_params, fold.test)
        values, n_features = [], []
        for size in self.sizes:
            chosen = np.flatnonzero(model.set_params(n_features_to_select=size).support_)
            n_features.append(len(chosen))
            if self.estimator is None:
                values.append(self._score(model, X_test, y_test, score_params))
            else:
                fitted = fit_estimator(self.estimator, train.X[:, chosen], train.y, at(self.fit_params, fold.train))
                values.append(self._score(fitted, X_test[:, chosen], y_test, score_params))
        return Scores(np.array(values, dtype=np.float64), np.array(n_features), model.ridge_)

    def _score(self, fitted: Any, X: Any, y: Array, params: dict[str, Any]) -> float:
        try:
            return self.scorer(fitted, X, y, **params)
        except AttributeError as error:
            raise ValueError(
                f"scoring needs what {type(fitted).__name__} does not have ({error}). Use another scoring, or an estimator "
                "that has it: estimator=CalibratedClassifierCV(LinearSVC()) has probabilities, for example."
            ) from error

    def model_for(self, setting: Setting) -> Model:
        """Return the unfitted model of a path that reaches all sizes."""
        kind = L20Classifier if self.samples.targets.classes is not None else L20Regressor
        template = clone(self.template).get_params(deep=False)
        model: Model = kind(**template | {"alpha": setting.alpha, "callback": None, "verbose": 0, "certify": False})
        if setting.ridge is not None:
            model.set_params(ridge=setting.ridge)
        largest = self.sizes[-1]
        return model.set_params(n_features_to_select=largest, max_features=largest)


def learn(model: Model, samples: Samples) -> Model:
    """Fit a model to samples that were validated before."""
    model._check_parameters()
    model.n_features_in_ = samples.X.shape[1]
    if samples.names is not None:
        model.feature_names_in_ = samples.names
    model._learn(samples.X, samples.targets)
    if samples.names is not None:
        del model.feature_names_in_  # from here on it sees arrays
    return model


def fit_estimator(estimator: Any, X: Any, y: Array, params: dict[str, Any]) -> Any:
    """Fit a copy of an estimator; without any feature, one that knows the targets only."""
    if X.shape[1]:
        return clone(estimator).fit(X, y, **params)
    dummy = DummyClassifier() if is_classifier(estimator) else DummyRegressor()
    return dummy.fit(np.zeros((len(y), 1)), y)


def at(params: dict[str, Any], samples: Array) -> dict[str, Any]:
    """Return the entries of per-sample metadata that belong to some samples."""
    return {name: np.asarray(values)[samples] for name, values in params.items()}


def make_folds(cv: Any, X: Any, y: Array, groups: Any, *, classify: bool) -> list[Fold]:
    """Split the samples as scikit-learn does; a number of folds keeps groups together where there are any."""
    is_number = cv is None or isinstance(cv, numbers.Integral)
    if groups is not None:
        groups = encode_groups(groups, len(y))
        n_splits, n_groups = 5 if cv is None else cv, int(groups.max()) + 1
        if is_number and n_splits > n_groups:
            raise ValueError(f"cv={cv} means {n_splits} folds, but there are {n_groups} groups. Use cv={n_groups} or less.")
        if classify:
            warn_of_lonely_classes(y, groups)
        if is_number:
            cv = (StratifiedGroupKFold if classify else GroupKFold)(int(n_splits))
    splitter = check_cv(cv, y, classifier=classify)
    if classify and is_number and groups is None:
        warn_of_rare_classes(y, splitter.get_n_splits(X, y, groups))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        return [Fold(*split) for split in splitter.split(X, y, groups)]


def warn_of_rare_classes(y: Array, n_splits: int) -> None:
    """Warn of classes that some folds cannot be tested on, or of which a fold sees nothing."""
    labels, counts = np.unique(y, return_counts=True)
    rare = [f"{str(label)!r} ({count})" for label, count in zip(labels, counts, strict=True) if count < n_splits]
    if rare and counts.max() >= n_splits:  # otherwise scikit-learn refuses
        warnings.warn(
            f"{'Classes' if len(rare) > 1 else 'Class'} {', '.join(rare[:5])} with fewer samples than the {n_splits} folds: "
            "some folds are not tested on it, and a class of one sample is unknown where it is tested. Use fewer folds, or "
            "leave it out.",
            UserWarning,
            stacklevel=5,
        )


def warn_of_lonely_classes(y: Array, groups: Array) -> None:
    """Warn of classes that are in one group only: where they are tested, nothing is known of them."""
    labels, codes = np.unique(y, return_inverse=True)
    pairs = np.unique(np.stack([codes, groups]), axis=1)
    lonely = [f"{str(label)!r}" for label, count in zip(labels, np.bincount(pairs[0]), strict=True) if count == 1]
    if lonely:
        warnings.warn(
            f"{len(lonely)} of {len(labels)} classes are in one group only: {', '.join(lonely[:5])}. Where that group is "
            "tested, nothing is known of them. Drop them, or give more groups.",
            UserWarning,
            stacklevel=5,
        )


def tabulate(
    settings: Sequence[Setting], sizes: Sequence[int | None], scores: Sequence[Scores], n_splits: int
) -> dict[str, Array]:
    """Arrange the scores of all settings and folds as scikit-learn does, one entry per setting and size."""
    n_sizes = len(sizes)
    by_setting = np.array([found.values for found in scores]).reshape(len(settings), n_splits, n_sizes)
    per_fold = by_setting.transpose(0, 2, 1).reshape(-1, n_splits)
    n_features = np.array([found.n_features for found in scores]).reshape(len(settings), n_splits, n_sizes)
    ridges = np.repeat([scores[number * n_splits].ridge for number in range(len(settings))], n_sizes)
    alphas = np.repeat([np.nan if setting.alpha is None else setting.alpha for setting in settings], n_sizes)
    means = per_fold.mean(axis=1)
    error = per_fold.std(axis=1, ddof=1) / np.sqrt(n_splits) if n_splits > 1 else np.zeros(len(means))
    ranks = 1 + np.count_nonzero(means[None, :] > means[:, None] + TIE, axis=1)
    return {
        "ridge": ridges,
        "alpha": alphas,
        "n_features_to_select": np.tile([np.nan if size is None else float(size) for size in sizes], len(settings)),
        "n_features": n_features.mean(axis=1).ravel(),
        **{f"split{number}_test_score": per_fold[:, number] for number in range(n_splits)},
        "mean_test_score": means,
        "std_test_score": per_fold.std(axis=1),
        "standard_error": error,
        "rank_test_score": ranks,
    }


def choose(results: dict[str, Array], rule: SizeRule | None, among: Array | None = None) -> int:
    """Return the position of the entry that a rule chooses.

    ``"best"`` and None: the highest mean score. ``"1se"``: of those at most one standard error of the best below it, the
    one with the fewest features. What is then still equal is decided by the higher score, fewer features, the stronger
    ridge and the larger lambda, in this order.

    Parameters
    ----------
    results : dict
        Made by :func:`tabulate`.
    rule : {"best", "1se"} or None
    among : array of bool, optional
        The entries to choose from.

    Examples
    --------
    >>> results = {
    ...     "n_features": np.array([1.0, 2.0, 3.0]), "ridge": np.ones(3), "alpha": np.full(3, np.nan),
    ...     "mean_test_score": np.array([0.7, 0.85, 0.9]), "standard_error": np.array([0.1, 0.06, 0.06]),
    ... }
    >>> choose(results, "best"), choose(results, "1se")
    (2, 1)
    """
    means, n_features = results["mean_test_score"], results["n_features"]
    if not np.isfinite(means).all():
        raise ValueError(
            f"{np.count_nonzero(~np.isfinite(means))} of {len(means)} mean scores are not finite: nothing can be chosen. "
            "Use another scoring, or folds in which it is defined."
        )
    candidates = np.arange(len(means)) if among is None else np.flatnonzero(among)
    best = _highest(results, candidates)
    if rule == "1se":
        candidates = candidates[means[candidates] >= means[best] - results["standard_error"][best] - TIE]
        best = _highest(results, candidates[n_features[candidates] == n_features[candidates].min()])
    return best


def _highest(results: dict[str, Array], candidates: Array) -> int:
    means = results["mean_test_score"][candidates]
    top = candidates[means >= means.max() - TIE]
    order = np.lexsort((-results["alpha"][top], -results["ridge"][top], results["n_features"][top]))
    return int(top[order[0]])
