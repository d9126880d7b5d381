"""What is compared: settings of L20Selector, its default, and every published method."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from l20fs import AHIHT, HIHT, L20Selector
from l20fs.methods import Baseline, discover

from .scaling import Scale, rescale

RIDGES = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
SCALES: tuple[Scale, ...] = ("zscore", "moderated")
DEFAULT = "default"
ALL_FEATURES = "all features"
SHARED = ", same scaling"


class Configuration(NamedTuple):
    """A selector, and the scaling of X before it sees it: a name, or None for the one that the default uses."""

    name: str
    selector: Any
    scale: Scale | None = "none"

    def select(self, X: np.ndarray, y: np.ndarray, sizes: Sequence[int]) -> dict[int, np.ndarray]:
        """Return the features for every size, best first."""
        if isinstance(self.selector, Baseline):
            return dict.fromkeys(sizes, np.arange(X.shape[1]))
        selector, scale = clone(self.selector), self.scale
        if "sizes" in selector.get_params():  # every k is a problem of its own
            selector.set_params(sizes=sizes)
        selector.set_params(n_features_to_select=max(sizes))
        selector.fit(rescale(X, used_by_default(L20Selector(), X, y)[0] if scale is None else scale), y)
        return {k: best_first(selector.at(k)) for k in sizes}


def used_by_default(selector: L20Selector, X: np.ndarray, y: np.ndarray) -> tuple[Scale, float]:
    """Return the scaling and the ridge that a selector with default parameters uses."""
    fitted = clone(selector).set_params(n_features_to_select=1).fit(X, y)
    return fitted.scale_, fitted.ridge_


def setting_name(scale: Scale, ridge: float) -> str:
    return f"{scale} {ridge:g}"


PREVIOUS = setting_name("zscore", 10.0)


def settings(selector: type[L20Selector] = L20Selector, ridges: Sequence[float] = RIDGES) -> list[Configuration]:
    """Return the default, and the settings among which its rules choose."""
    # Scaled here and not by the selector, so that a scaling it does not know can be tried.
    fixed = [
        Configuration(setting_name(scale, ridge), selector(ridge=ridge, scale="none"), scale)
        for scale in SCALES
        for ridge in ridges
    ]
    return [Configuration(DEFAULT, selector()), *fixed]


def best_first(selector: Any) -> np.ndarray:
    """Return the selected features, best first."""
    chosen = np.flatnonzero(selector.support_)
    return chosen[np.argsort(selector.ranking_[chosen], kind="stable")]


def competitors() -> list[Configuration]:
    """Return every published method as it is, and those that a scaling changes with that of the default, too."""
    methods: dict[str, Any] = {name: method() for name, method in discover().items() if name != "Baseline"}
    constants: dict[str, Any] = {"alpha_start": 0.4, "alpha_min": 1e-4, "rate": 0.4, "eta": 0.1, "ranking": "norm"}
    for solver in (AHIHT(**constants), HIHT(**constants, stopping="absolute")):
        methods[f"{solver.name.upper()} (paper)"] = L20Selector(solver=solver, ridge=0.0, scale="none", class_weight=None)
    found = [Configuration(ALL_FEATURES, Baseline())]
    for name, method in methods.items():
        found.append(Configuration(name, method))
        unscaled = clone(method).set_params(scale="none") if "scale" in method.get_params() else method
        if depends_on_scale(unscaled):
            found.append(Configuration(name + SHARED, unscaled, None))
    return found


def depends_on_scale(method: Any) -> bool:
    """Return whether other units of the features change what a method selects, on a small example."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = random.standard_normal((60, 30)) + np.eye(3)[y] @ random.standard_normal((3, 30))
    units = np.exp(2.0 * random.standard_normal(30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, other = (Configuration("", method).select(values, y, (5,))[5] for values in (X, (X - X.mean(axis=0)) * units))
    return not np.array_equal(plain, other)
