"""Panels from fitted selectors: rules for every k, measures of the columns, and the sums that other rules need."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_X_y

from l20fs.design import Part, finish
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.frames import is_lazy, opened, without_frame
from l20fs.estimators.models import L20Classifier
from l20fs.estimators.panels import excluded_features, largest_k, ranked_units
from l20fs.estimators.selection_table import feature_names, likeness
from l20fs.estimators.selector import L20Selector
from l20fs.evaluation.engine import dense_columns
from l20fs.evaluation.judges import RefittedRule, rules_of
from l20fs.evaluation.out_of_fold import Truth
from l20fs.inputs.devices import is_device_array
from l20fs.inputs.frames import collected_targets
from l20fs.inputs.names import NamedColumns
from l20fs.inputs.nuisances import with_nuisances
from l20fs.inputs.targets import Targets, weights_of_targets, with_weights
from l20fs.inputs.validation import refuse_other_width, validate_device_input, validate_input
from l20fs.objective.class_scatter import class_scatter
from l20fs.objective.problem import Problem, make_problem
from l20fs.prediction.calibration import Calibration, Calibrations
from l20fs.prediction.discriminant import ClassScatter
from l20fs.prediction.linear_rule import LinearRule
from l20fs.prediction.panel import Panel, finite_or_none
from l20fs.prediction.panel_file import MOST_CROSSED, Columns, CrossProducts, PanelError, SizeRule, triangle_of
from l20fs.prediction.training_check import centres_of, farthest_by_size
from l20fs.solvers.robust import bounded_weights
from l20fs.typing import Array

#: Most substitutes of all features together: those of the best features come first.
MOST_SUBSTITUTES = 100
#: Most weights of the largest rule.
MOST_WEIGHTS_OF_A_RULE = 1_000_000

PACKAGES = ("l20fs", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, eq=False)
class Training:
    """The columns of a panel in the training samples, and the least squares that its rules solve.

    Columns of a sparse matrix in blocks stay sparse, in CSC form.
    """

    columns: Any
    targets: Targets
    problem: Problem
    #: The problem with the weights of the scatter within classes, which differ from those of a robust fit.
    scatter_problem: Problem
    class_weight: Any
    ridge: float

    @cached_property
    def weights(self) -> Array:
        """Weight of each sample in the statistics of the classes."""
        values = self.scatter_problem.design.sample_weights.values
        return np.ones(self.columns.shape[0]) if values is None else values

    @cached_property
    def scatter(self) -> ClassScatter | None:
        """Class means and scatter; None for numbers."""
        if self.targets.classes is None:
            return None
        return class_scatter(self.scatter_problem, np.arange(self.columns.shape[1]), self.targets, self.class_weight)

    @property
    def has_lone_sample(self) -> bool:
        """Whether a class has one sample: its mean is this sample, which no file may hold."""
        codes = self.targets.codes
        return codes is not None and bool((np.bincount(codes[self.weights > 0.0]) == 1).any())

    def measures(self) -> Columns:
        """Return the measures of the columns."""
        weights, design, has_intercept = self.weights, self.problem.design, self.problem.design.sample_weights.fit_intercept
        mean, deviation, minimum, maximum = np.empty((4, self.columns.shape[1]))
        for place, values in enumerate(self.values(self.columns.shape[1])):
            mean[place] = design.mean[place] if has_intercept else np.average(values, weights=weights)
            deviation[place] = np.sqrt(np.average(np.square(values - mean[place]), weights=weights))
            counted = values[weights > 0.0]
            minimum[place], maximum[place] = counted.min(), counted.max()
        return Columns(*(found.tolist() for found in (mean, deviation, design.scale, minimum, maximum)))

    def values(self, n: int) -> Iterator[Array]:
        """Yield the values of the first columns, one by one: all of them would take much memory."""
        for start in range(n):
            column = self.columns[:, start : start + 1]
            yield np.asarray(column.toarray() if sp.issparse(column) else column, dtype=np.float64).ravel()

    def products(self) -> CrossProducts:
        """Return the cross-products of the columns."""
        problem, scatter = self.problem, self.scatter
        rows = np.arange(self.columns.shape[1])
        with_targets, gram = problem.products_among(rows, problem.targets.T)
        of_classes: dict[str, Any] = {}
        if scatter is not None:
            of_classes = {
                "class_means": scatter.means.tolist(),
                "class_sizes": (self.weights @ self.targets.Y).tolist(),
                "class_shares": scatter.shares.tolist(),
            }
            if self.targets.nuisances is not None:
                sizes = self.weights @ self.targets.Y
                of_classes["class_gram"] = triangle_of(
                    scatter.within * sizes.sum() + (scatter.means.T * sizes) @ scatter.means
                )
            elif self.scatter_problem is not problem:
                nothing = np.empty((self.columns.shape[0], 0))
                of_classes["class_gram"] = triangle_of(self.scatter_problem.products_among(rows, nothing)[1])
        return CrossProducts(
            gram=triangle_of(gram),
            targets=with_targets.T.tolist(),
            target_means=problem.y_mean.tolist(),
            target_factors=problem.y_scale.tolist(),
            ridge=self.ridge,
            fit_intercept=problem.design.sample_weights.fit_intercept,
            **of_classes,
        )

    def farthest(self, columns: Columns, ends: Sequence[int]) -> list[float | None]:
        """Return the limits of the distance of a sample from the classes, for several numbers of features."""
        centres, spread = centres_of(columns, self.scatter)
        codes = np.zeros(self.columns.shape[0], dtype=np.intp) if self.targets.codes is None else self.targets.codes
        sizes = np.bincount(codes, weights=self.weights, minlength=len(centres))
        n = ends[-1]
        return farthest_by_size(self.values(n), codes, centres[:, :n], sizes, self.weights, spread[:n], ends)


def export(
    selector: L20Selector,
    X: Any,
    y: Any,
    sample_weight: Any,
    adjust_for: Any,
    encode: Callable[[Array], Targets],
    **options: Any,
) -> Panel:
    """Validate the data of a fit again, and return the panel of the present selection; see :func:`build_panel`."""
    X = X.X if isinstance(X, NamedColumns) else X
    names = target_names(y := collected_targets(y), options.pop("target_names", None))
    X = without_frame(selector, X)
    if is_device_array(X):
        X, y = validate_device_input(selector, X, y, reset=False)
    elif is_lazy(X):
        refuse_other_width(selector, X)
        y = check_X_y(np.zeros((X.shape[0], 1)), y.compute() if hasattr(y, "__dask_graph__") else y, multi_output=True)[1]
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names", category=UserWarning)
            X, y = validate_input(
                selector, X, y, supervised=True, accept_sparse=True, dtypes=[np.float64, np.float32], reset=False
            )
    targets = with_nuisances(with_weights(encode(y), sample_weight), adjust_for)
    if targets.classes is not None and not np.array_equal(targets.classes, selector.classes_):
        raise ValueError("y has other classes than that of the fit. Give the X, y and sample_weight of fit.")
    if names is None:
        n = 1 if targets.classes is not None else targets.Y.shape[1]
        names = ["y"] if n == 1 else [f"y{place}" for place in range(n)]
    k = len(np.unique(selector.ranking_[selector.support_]))
    calibrate = selector.calibration_for if getattr(selector, "calibration", None) is not None else None
    return build_panel(selector, X, targets, k, target_names=names, calibrate=calibrate, **options)


def target_names(y: Any, given: Any) -> list[str] | None:
    """Return the names of the targets: those given, or those of a series or table; None if there are none."""
    if given is not None:
        return [given] if isinstance(given, str) else [str(name) for name in given]
    if getattr(y, "name", None) is not None and not callable(y.name):
        return [str(y.name)]
    return [str(name) for name in y.columns] if hasattr(y, "columns") else None


def build_panel(
    selector: BaseSelector,
    X: Any,
    targets: Targets,
    k: int,
    *,
    target_names: Sequence[str],
    n_substitutes: int = 3,
    shared: Part | None = None,
    k_max: int | None = None,
    transform: str = "none",
    ridge: float | str = "auto",
    calibrate: Callable[[int], Calibration] | None = None,
    data_sha256: str | None = None,
    provenance: dict[str, Any] | None = None,
) -> Panel:
    """Return the panel of a fitted selector.

    Parameters
    ----------
    selector : BaseSelector
        The rules of an :class:`L20Classifier` or :class:`L20Regressor` are its own, those of a :class:`L20Selector` what
        these would be, those of another method least squares on the z-scores of its best features, as in the evaluation.
    X : array, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
        Training samples, validated. Only the columns of the panel are made dense.
    targets : Targets
        Labels or numbers of the fit, with the sample weights.
    k : int
        Number of features, or groups of features, that are selected.
    target_names : sequence of str
        Name of the label, or of each number.
    n_substitutes : int
        Number of substitutes to look for, per feature; 0 for none.
    shared : Part, optional
        X as the fit has shared it with others, by whose passes substitutes are found.
    k_max : int, optional
        Largest k; by default such that a file has a reasonable number of weights.
    transform : {"none", "log1p"}
        What was done to the measured values to get X.
    ridge : float or "auto"
        Ridge of the rules of other methods.
    calibrate : callable, optional
        Returns the calibration for a k. Without one, the probabilities are those of the discriminant analysis.
    data_sha256, provenance
        As in :class:`~l20fs.Panel`.
    """
    if targets.classes is not None and targets.codes is None:
        raise ValueError("A panel predicts one label per sample, or numbers; y is a label indicator. Give one label each.")
    sizes, units = sizes_of(selector, k, k_max, targets.Y.shape[1])
    features = np.concatenate(units[: sizes[-1]])
    ends = np.cumsum([len(members) for members in units])[np.array(sizes) - 1].tolist()
    if len(features) * targets.Y.shape[1] > MOST_WEIGHTS_OF_A_RULE:
        raise PanelError(f"A panel of {len(features)} features is too large for a file. Use a smaller k.")
    others = find_substitutes(selector, X if shared is None else shared, features, n_substitutes)
    task: Literal["classification", "regression"] = "regression" if targets.classes is None else "classification"
    strength = 0.0 if isinstance(selector, L20Selector) else RefittedRule(ridge, task=task).strength_on(X)
    training = learn(selector, X, targets, features, others, strength)
    rules = rules_for(selector, training, sizes, ends, features, strength)
    if calibrate is None and targets.classes is not None:
        shares = Truth.of(targets, training.class_weight).shares
        assert shares is not None
        calibrate = Calibrations.unknown(shares).at
    columns = training.measures()
    has_products = len(features) + len(others) <= MOST_CROSSED and not training.has_lone_sample
    farthest = training.farthest(columns, ends) if has_products else [None] * len(sizes)
    names = feature_names(selector)
    n_nuisances = getattr(selector, "n_nuisances_", 0)
    return Panel(
        task=task,
        targets=[str(name) for name in target_names],
        classes=None if targets.classes is None else labels_of(targets.classes),
        transform=transform,  # type: ignore[arg-type]  # checked there
        k=k,
        features=[str(name) for name in names[features]],
        substitutes=[str(name) for name in names[others]],
        columns=columns,
        rules=[
            size_rule(size, rule, calibrate(size) if calibrate else Calibration(1.0), limit)
            for size, rule, limit in zip(sizes, rules, farthest, strict=True)
        ],
        cross_products=training.products() if has_products else None,
        versions={"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        data_sha256=data_sha256,
        provenance=({"n_nuisances": n_nuisances} if n_nuisances else {}) | (provenance or {}),
    )


def labels_of(classes: Array) -> list[Any]:
    """Return classes for JSON: numbers stay numbers, all else is text."""
    labels = np.array(classes.tolist())
    return labels.tolist() if labels.dtype.kind in "biuf" else [str(label) for label in classes]


def sizes_of(selector: BaseSelector, k: int, k_max: int | None, n_targets: int) -> tuple[list[int], list[Array]]:
    """Return the sizes of the rules, ascending, and the units of features, best first."""
    units = ranked_units(selector)
    if not 1 <= k <= len(units):
        raise ValueError(f"The selector selects {k} features, and a panel needs at least one. Ask for more features.")
    least, most = 1, len(units)
    if isinstance(selector, L20Selector):
        least, most = max(1, selector.path_.least_size), max(k, min(most, selector.path_.largest_refit))
    largest = min(most, largest_k(n_targets) if k_max is None else max(k_max, least))
    return sorted({*range(least, largest + 1), k}), units


def find_substitutes(selector: BaseSelector, X: Any, features: Array, n: int) -> Array:
    """Return features most like those of the panel, those of the best feature first."""
    n_allowed = min(MOST_SUBSTITUTES, MOST_CROSSED - len(features), X.shape[1] - len(features))
    if n < 1 or n_allowed < 1:
        return np.empty(0, dtype=np.intp)
    path = selector.path_ if isinstance(selector, L20Selector) else None
    found = likeness(X, features, n, exclude=excluded_features(path)).outside.substitute
    places = np.unique(found, return_index=True)[1]
    return found[np.sort(places)][:n_allowed]


def learn(selector: BaseSelector, X: Any, targets: Targets, features: Array, others: Array, ridge: float) -> Training:
    """Read the columns, and make the least squares with the units and weights of the fit; ``ridge`` is for other methods."""
    chosen = np.concatenate([features, others])
    if not isinstance(selector, L20Selector):
        columns = as_dense(read_columns(X, chosen))
        problem = make_problem(
            columns,
            targets.Y,
            ridge=ridge,
            scale="zscore",
            target_weights=weights_of_targets(targets, "balanced"),
        )
        return Training(columns, targets, problem, problem, "balanced", problem.ridge)
    columns = read_columns(X, chosen)
    columns = columns.tocsc().astype(np.float64) if sp.issparse(columns) and is_lazy(X) else as_dense(columns)
    path = selector.path_
    is_robust = selector.loss == "l21"
    problem = make_problem(
        columns,
        targets.Y,
        scale=path.x_scale[chosen],
        target_weights=weights_of_targets(targets, selector.class_weight),
        sample_weight=selector.sample_weights_ if is_robust else targets.sample_weight,
        fit_intercept=selector.fit_intercept,
        nuisances=targets.nuisances,
    )
    basis = problem.design.sample_weights.basis
    if (0 if basis is None else len(basis)) != selector.n_nuisances_:
        raise ValueError(
            f"The fit adjusted for {selector.n_nuisances_} columns. Give the X, y, sample_weight and adjust_for of fit."
        )
    refuse_other_data(problem, path.x_mean[chosen], path.y_mean, feature_names(selector)[chosen])
    scatter_problem = problem
    if is_robust:
        weights = bounded_weights(selector.sample_weights_, targets.sample_weight)
        scatter_problem = finish(problem.reweighted(weights))
    own = selector.refit_ridge if targets.classes is None else None
    ridge = float(path.ridge) if own is None or selector._plain is None else own * selector._plain.mean_energy
    return Training(columns, targets, problem, scatter_problem, selector.class_weight, ridge)


def refuse_other_data(problem: Problem, x_mean: Array, y_mean: Array, names: Array) -> None:
    """Raise an error if the means are not those of the fit: least squares on other samples would be another rule."""
    differs = np.abs(problem.design.mean - x_mean) > 1e-4 * problem.design.scale + 1e-6 * np.abs(x_mean)
    if differs.any():
        place = int(differs.argmax())
        raise ValueError(
            f"X is not that of the fit: {str(names[place])!r} has the mean {problem.design.mean[place]:g}, and had "
            f"{x_mean[place]:g}. Give the X, y and sample_weight of fit."
        )
    scale = np.abs(problem.targets).max(axis=1) / problem.y_scale
    if (np.abs(problem.y_mean - y_mean) > 1e-6 * scale).any():
        raise ValueError("y or sample_weight is not that of the fit. Give the X, y and sample_weight of fit.")


def read_columns(X: Any, columns: Array) -> Any:
    """Return some columns in memory, sparse if X is sparse."""
    if is_device_array(X):
        return dense_columns(X, columns)
    return opened(X)[:, columns].compute() if is_lazy(X) else X[:, columns]


def as_dense(columns: Any) -> Array:
    """Return columns as a dense array of float64."""
    return np.asarray(columns.toarray() if sp.issparse(columns) else columns, dtype=np.float64)


def rules_for(
    selector: BaseSelector, training: Training, sizes: list[int], ends: list[int], features: Array, ridge: float
) -> list[LinearRule]:
    """Return the rule of each size."""
    targets, scatter = training.targets, training.scatter
    if not isinstance(selector, L20Selector):
        columns = training.columns[:, : len(features)]
        return list(rules_of(columns, targets, np.array(ends), ridge, training.class_weight))
    rules = [selector.model_for(size) for size in sizes]
    for rule, end in zip(rules, ends, strict=True):
        assert np.array_equal(rule.rows, features[:end])
    if scatter is None or isinstance(selector, L20Classifier):
        return rules
    path = selector.path_
    return [_decided(rule, scatter, path.x_mean[rule.rows], path.x_scale[rule.rows]) for rule in rules]


def _decided(rule: LinearRule, scatter: ClassScatter, mean: Array, scale: Array) -> LinearRule:
    """Convert the least squares of labels to the rule of an :class:`L20Classifier`."""
    weights, intercept = scatter.discriminant(rule.weights * scale[:, None])
    weights = weights / scale[:, None]
    return LinearRule(rule.rows, weights, intercept - mean @ weights)


def size_rule(k: int, rule: LinearRule, calibration: Calibration, farthest: float | None) -> SizeRule:
    """Return the record of a rule."""
    return SizeRule(
        k,
        rule.weights.tolist(),
        finite_or_none(rule.intercept),
        float(f"{calibration.slope:.12g}"),  # further digits depend on what was computed side by side
        float(f"{calibration.doubt:.12g}"),
        farthest,
        [float(f"{value:.12g}") for value in calibration.offset],
    )
