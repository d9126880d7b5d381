"""The doors of the package: the only file of the acceptance tests that knows its names.

Tests say what they want in the words of this file, and get plain arrays. When a public name changes, this file changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import l20fs
from l20fs import data, inspection, methods
from l20fs.cli import run as run_command

CONSTRAINTS = {"include", "exclude", "groups", "costs", "budget", "min_per_class", "max_per_class", "sets", "exclusive"}
MODELS = {"selector": "L20Selector", "classifier": "L20Classifier", "regressor": "L20Regressor"}
SOLVERS = {"forward": "Forward", "swap": "Swap", "ahiht": "AHIHT", "hiht": "HIHT"}
#: Options of solvers that follow the gradient; forward and swap rank by entry and end at a number of features.
OF_HOMOTOPY = {"alpha_min", "ranking"}


def selector(k: Any, *, model: str = "selector", solver: str = "forward", steps: dict | None = None, **options: Any) -> Any:
    """Return a selector that is not fitted.

    ``steps`` are the options of a solver. Further options: ``limit`` (rows that the path runs to), ``alpha_min``,
    ``ranking``, ``loss`` ("squared" or "l21"), ``ridge``, ``scale``, ``class_weight``, ``fit_intercept``, ``task``,
    ``include``, ``exclude``, ``factors`` (what lambda is multiplied by), ``groups``, and those of constraints.
    """
    if "factors" in options:  # costs without a budget
        options["costs"] = options.pop("factors")
    constraints = {name: options.pop(name) for name in CONSTRAINTS & options.keys()}
    if constraints:
        options["constraints"] = l20fs.Constraints(**constraints)
    if "limit" in options:
        options["max_features_to_select"] = options.pop("limit")
    if options.get("loss") == "squared":
        options["loss"] = "squared_error"
    of_solver = {name: options.pop(name) for name in OF_HOMOTOPY & options.keys()}
    if model != "selector":
        options.pop("task", None)
    if model == "regressor":
        options.pop("class_weight", None)
    if solver in ("forward", "swap"):
        assert of_solver.get("ranking", "entry") == "entry"
    else:
        steps = {**(steps or {}), **of_solver}
    options["solver"] = getattr(l20fs, SOLVERS[solver])(**steps) if steps else solver
    return getattr(l20fs, MODELS[model])(k, **options)


def fit(X: Any, y: Any, k: Any, *, sample_weight: Any = None, adjust_for: Any = None, **options: Any) -> Fit:
    """Fit a selector, a classifier or a regressor (``model``)."""
    samples = {"sample_weight": sample_weight, "adjust_for": adjust_for}
    price = options.get("alpha_min") if options.get("solver", "forward") in ("forward", "swap") else None
    if price is not None:  # of greedy solvers the number of features that a lambda leaves is read off the whole path
        whole = selector(X.shape[1], **options).fit(X, y, **samples).path_
        k = whole.size_at(price)
    return Fit(selector(k, **options).fit(X, y, **samples))


def fit_by_default(X: Any, y: Any, *, model: str = "selector", **samples: Any) -> Fit:
    """Fit a model to which no parameter is given."""
    return Fit(getattr(l20fs, MODELS[model])().fit(X, y, **samples))


@dataclass(frozen=True)
class Fit:
    """A fitted selector in plain arrays. ``k`` is a number of features, or of groups; None is the selected number."""

    estimator: Any

    def support(self, k: Any = None) -> np.ndarray:
        """Selected features, ascending."""
        return np.flatnonzero((self.estimator if k is None else self.estimator.at(k)).support_)

    @property
    def order(self) -> np.ndarray:
        """All features, best first."""
        return np.argsort(self.estimator.ranking_, kind="stable")

    @property
    def scores(self) -> np.ndarray:
        return self.estimator.scores_

    @property
    def ridge(self) -> float:
        return float(self.estimator.ridge_)

    @property
    def scale(self) -> str:
        return self.estimator.scale_

    def refit(self, k: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Weights (n_targets, n_features) and intercepts of least squares on the best k, and its loss."""
        refit = self.estimator.path_.refit(k)
        return refit.coef, refit.intercept, refit.loss

    def rule(self, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts of the model that predicts."""
        sized = self.at(k).estimator
        return np.asarray(sized.coef_), np.asarray(sized.intercept_)

    def at(self, k: int | None) -> Fit:
        """The same fit with another number of features."""
        return self if k is None else Fit(self.estimator.at(k))

    def panel(self, X: Any, y: Any, **options: Any) -> Any:
        return panel(self, X, y, **options)

    def predict(self, X: Any) -> np.ndarray:
        return self.estimator.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.estimator.predict_proba(X)


@dataclass(frozen=True)
class Path:
    """The stages of a path: one per size (forward, swap) or per lambda (AHIHT, HIHT)."""

    alphas: np.ndarray
    losses: np.ndarray
    sizes: np.ndarray
    supports: list[np.ndarray]
    lipschitz: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray


def path(fitted: Fit) -> Path:
    """Return the stages of a path; ``coef`` and ``intercept`` are those of its end."""
    own = fitted.estimator.path_
    supports = [own.stage_rows(stage) for stage in range(len(own.alphas))]
    k = int(own.sizes[-1])
    end = (own.coef(k), own.intercept(k)) if k else (np.zeros((len(own.y_mean), own.n_features)), own.y_mean)
    return Path(own.alphas, own.losses, own.sizes, supports, own.lipschitz, *end)


@dataclass(frozen=True)
class Search:
    """A cross-validated choice of the number of features."""

    estimator: Any

    @property
    def n_features(self) -> int:
        return int(self.estimator.n_features_)

    @property
    def ridge(self) -> float:
        return float(self.estimator.ridge_)

    @property
    def score(self) -> float:
        """The score to quote."""
        return float(self.estimator.corrected_score_)

    @property
    def interval(self) -> tuple[float, float]:
        return tuple(map(float, self.estimator.corrected_interval_))

    @cached_property
    def fold_scores(self) -> dict[tuple[float, int], np.ndarray]:
        """Score of every fold, by ridge and number of features."""
        results = self.estimator.cv_results_
        n_folds = self.estimator.n_splits_
        rows = zip(results["ridge"], results["n_features_to_select"], strict=True)
        return {
            (float(ridge), int(k)): np.array([results[f"split{fold}_test_score"][row] for fold in range(n_folds)])
            for row, (ridge, k) in enumerate(rows)
        }

    def fold_support(self, fold: int, k: int, ridge: float | None = None) -> np.ndarray:
        """Features selected in a fold, ascending."""
        results = self.estimator.cv_results_
        is_it = results["n_features_to_select"] == k
        if ridge is not None:
            is_it &= results["ridge"] == ridge
        return np.flatnonzero(self.estimator.fold_supports_[f"split{fold}_support"][np.flatnonzero(is_it)[0]])

    @property
    def final(self) -> Fit:
        """The fit to all samples."""
        return Fit(self.estimator)


def search(
    X: Any, y: Any, k: Any, *, selector: Any = None, ridges: Any = None, limit: int | None = None, **options: Any
) -> Search:
    """Choose the number of features: ``k`` is "best", "1se" or a number.

    Options: ``sizes``, ``cv``, ``scoring``, ``estimator``, ``preprocess``, ``task``, ``n_jobs``; ``sample_weight``,
    ``groups`` and ``adjust_for`` of the samples.
    """
    fitted = {name: options.pop(name) for name in ("sample_weight", "groups", "adjust_for") & options.keys()}
    if limit is not None and "sizes" not in options:
        options["sizes"] = range(1, limit + 1)
    if "task" in options:
        selector = (selector or l20fs.L20Selector()).set_params(task=options.pop("task"))
    own = l20fs.L20SelectorCV(k, selector=selector, ridges=ridges, **options)
    return Search(own.fit(X, y, **fitted))


def stability(X: Any, y: Any, selector: Any = None, *, groups: Any = None, **options: Any) -> Any:
    """Return a fitted StabilitySelector: ``frequencies_``, ``stability_``, ``stability_interval_``, ``support_``."""
    assert options.pop("fraction", 0.5) == 0.5
    return l20fs.StabilitySelector(selector, **options).fit(X, y, groups=groups)


def panel(fitted: Fit | Search, X: Any, y: Any, **options: Any) -> Any:
    """Return the panel of a fitted model: ``predict``, ``predict_proba``, ``adapted``, ``check``, ``to_r`` and so on."""
    return fitted.estimator.to_panel(X, y, **options)


def load_panel(file: Any) -> Any:
    return l20fs.Panel.load(file)


def save_panel(made: Any, file: Any) -> None:
    made.save(file)


def panel_features(panel: Any, k: int | None = None) -> list[str]:
    """Return the features that a panel predicts from, best first."""
    return panel.features_for(k)


def panel_replaced(panel: Any) -> dict[str, str | None]:
    """Return the substitute of each missing feature of an adapted panel, None where there is none."""
    return panel.replaced


def large(file: Any, **options: Any) -> Any:
    """Open a matrix in a file that may be larger than memory."""
    return l20fs.open_large(file, **options)


def certify(fitted: Fit, X: Any, y: Any, k: int | None = None, **samples: Any) -> Any:
    """Return the certificate: ``lower_bound``, ``upper_bound``, ``gap``, ``proved_in``, ``proved_out``."""
    return inspection.certify(fitted.estimator, X, y, k, **samples)


def near_optimal(
    fitted: Fit, X: Any, y: Any, k: int | None = None, *, tolerance: Any = "auto", **limits: Any
) -> NearOptimal:
    """List all panels within a share of the lowest loss."""
    found = inspection.near_optimal_panels(fitted.estimator, X, y, k, tolerance=tolerance, **limits)
    parts = (found.in_all, found.in_some, found.in_none)
    return NearOptimal(found.panels, found.losses, found.is_complete, *(np.asarray(part) for part in parts), found)


@dataclass(frozen=True)
class NearOptimal:
    """All near-optimal panels, best first, and the features in all, some or none of them."""

    panels: np.ndarray
    losses: np.ndarray
    is_complete: bool
    in_all: np.ndarray
    in_some: np.ndarray
    in_none: np.ndarray
    found: Any

    @property
    def counts(self) -> np.ndarray:
        """Number of panels that hold each feature, of all that were found."""
        return self.found.counts

    @property
    def n_panels(self) -> int:
        """How many were found, listed or not."""
        return self.found.n_panels

    def cheapest(self, costs: Any) -> np.ndarray:
        """Features of the panel with the lowest cost, the best one of several."""
        return self.found.cheapest(costs).features


def solve_exactly(fitted: Fit, X: Any, y: Any, k: int | None = None, **samples: Any) -> tuple[np.ndarray, Any]:
    """Return the best panel by branch and bound, ascending, and its certificate."""
    best = inspection.solve_exactly(fitted.estimator, X, y, k, **samples)
    return best.support, best.certificate


def builtin(name: str, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of a data set that comes with the package, such as "srbct"."""
    loaded = getattr(data, f"load_{name}")(**options)
    return loaded.data, loaded.target


def method(name: str, k: int, **options: Any) -> Any:
    """Return a published method, not fitted: ``scores_``, ``ranking_`` and ``support_`` after ``fit``."""
    return getattr(methods, name)(k, **options)


def method_names() -> list[str]:
    return sorted(methods.discover())


def run(*arguments: Any) -> int:
    """Run a command and return its exit code."""
    return run_command([str(argument) for argument in arguments])
