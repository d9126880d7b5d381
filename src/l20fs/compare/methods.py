"""Methods that are compared, each with the settings that inner folds choose from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone

from l20fs import L20Selector
from l20fs.estimators.base import BaseSelector
from l20fs.methods import discover
from l20fs.solvers import AHIHT
from l20fs.text import closest_hint, joined

#: The method that takes all features, and so has nothing to choose.
BASELINE = "Baseline"

#: Default methods: fast ones of different kinds, which take minutes for 100 samples with 5000 features.
DEFAULT_METHODS = (BASELINE, "L20Selector", "RFS", "mRMR", "ReliefF", "FisherScore")

#: The same for numbers.
DEFAULT_FOR_NUMBERS = (BASELINE, "L20Selector", "RFS", "L21")


@dataclass(frozen=True)
class Method:
    """A selector under a label, with fixed parameters and a grid of further ones.

    Parameters and grid are those of ``set_params``: ``solver__init`` is an option of the solver.
    """

    label: str
    name: str = "L20Selector"
    params: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def choices(self) -> Iterator[dict[str, Any]]:
        """All settings of the grid."""
        return (dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values()))

    def selector(self, choice: Mapping[str, Any] | None = None) -> BaseSelector:
        """Return the unfitted selector with one setting of the grid."""
        kind = L20Selector if self.name == "L20Selector" else discover()[self.name]
        return clone(kind(**self.params)).set_params(**(choice or {}))

    def fits(self, *, for_labels: bool) -> bool:
        """Return whether the method can use labels, or numbers."""
        selector = self.selector()
        return for_labels or not (selector.about.supervised and selector._needs_labels) or selector._takes_numbers


#: The method of the paper with the constants of its authors.
_PAPER: dict[str, Any] = {"ridge": 0.0, "scale": "none", "class_weight": None}
_PAPER["solver"] = AHIHT(alpha_start=0.4, alpha_min=1e-4, rate=0.4, eta=0.1, ranking="norm")
_STRENGTHS = [1e-5, 1e-3, 1e-1, 1e1, 1e3, 1e5]

#: Methods that have a setting to choose; any other method of the package runs with its defaults.
TUNED = (
    Method("L20Selector", grid={"ridge": ["auto", 1.0, 10.0]}),
    Method("l2,0-FS", params=_PAPER, grid={"solver__alpha_min": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]}),
    Method("RFS", "RFS", grid={"gamma": _STRENGTHS}),
    Method("RLSR", "RLSR", grid={"gamma": _STRENGTHS}),
    Method("mRMR", "MRMR"),
    # The penalty has the unit of the features; the method's page names this range.
    Method("LFS", "LFS", grid={"penalty": [1e-3, 1.0, 1e3]}),
)


def known_methods() -> dict[str, Method]:
    """Return all methods by label in lower case."""
    others = [Method(name, name) for name in discover() if name not in {method.name for method in TUNED}]
    return {method.label.lower(): method for method in (*TUNED, *others)}


def choose_methods(names: Sequence[str] | None = None, *, for_labels: bool = True) -> tuple[Method, ...]:
    """Return methods by name, in any case, each once.

    Parameters
    ----------
    names : sequence of str, optional
        ``["all"]`` stands for every method that uses labels, or numbers; None: a few fast ones.
    for_labels : bool, default=True
        Whether y holds labels; for numbers, methods that need labels are refused.

    Examples
    --------
    >>> [(method.label, list(method.choices)[:1]) for method in choose_methods(["mrmr", "L20Selector"])]
    [('mRMR', [{}]), ('L20Selector', [{'ridge': 'auto'}])]
    """
    known = known_methods()
    able = [each for each in known.values() if each.selector().about.supervised and each.fits(for_labels=for_labels)]
    if names is None:
        names = DEFAULT_METHODS if for_labels else DEFAULT_FOR_NUMBERS
    if [name.lower() for name in names] == ["all"]:
        return tuple(able)
    for name in names:
        method = known.get(name.lower())
        if method is None:
            raise ValueError(
                f"the method {name!r} is unknown. {closest_hint(name, [each.label for each in known.values()])}"
            )
        if not method.fits(for_labels=for_labels):
            use = joined([each.label for each in able])
            raise ValueError(f"the method {method.label} needs class labels, and the target holds numbers. Use {use}.")
    return tuple(known[name] for name in dict.fromkeys(name.lower() for name in names))
