"""The parts of a panel as they stand in its file, and the conditions that a panel has to meet."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.prediction.panel import Panel

#: Longest name of a feature, a class or a target, in characters.
LONGEST_NAME = 1000
#: Most features and substitutes together of which a file holds cross-products.
MOST_CROSSED = 1000
#: Kinds of characters that no name may hold: control characters, halves of characters, ends of lines and paragraphs.
FORBIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp"})


class PanelError(ValueError):
    """Panel file that cannot be used, or samples that a panel cannot predict."""


@dataclass(frozen=True)
class SizeRule:
    """Rule of one size: the first ``len(weights)`` features, with weights and intercepts in units of X.

    ``weights`` (n_features, n_values), ``intercept`` (n_values,), None for a class that is never predicted; ``slope``,
    ``doubt`` and ``offset`` (n_classes,), or none, of the probabilities (:mod:`l20fs.prediction.calibration`); ``farthest``
    is the limit of the distance of a sample from the classes.
    """

    k: int
    weights: list[list[float]]
    intercept: list[float | None]
    slope: float = 1.0
    doubt: float = 0.0
    farthest: float | None = None
    offset: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Columns:
    """Measures of the features and then the substitutes in training, after the transformation, (n_columns,) each."""

    mean: list[float]
    deviation: list[float]
    divisor: list[float]
    minimum: list[float]
    maximum: list[float]

    def take(self, places: Sequence[int]) -> Columns:
        """Return the measures of some columns."""
        return Columns(**{name: [values[place] for place in places] for name, values in vars(self).items()})


@dataclass(frozen=True)
class CrossProducts:
    """Sums from which least squares on any of the columns are solved, after centring, division and weighting.

    ``gram`` are the lower triangle of the products among the columns, row by row, and ``targets`` (n_columns, n_targets)
    those with the targets, each multiplied by its factor. ``class_means`` (n_classes, n_columns), ``class_sizes`` and
    ``class_shares`` (n_classes,) are empty for numbers; ``class_gram`` is None where the scatter of the classes has the same
    weights as the fit.
    """

    gram: list[list[float]]
    targets: list[list[float]]
    target_means: list[float]
    target_factors: list[float]
    ridge: float
    fit_intercept: bool
    class_means: list[list[float]] = field(default_factory=list)
    class_sizes: list[float] = field(default_factory=list)
    class_shares: list[float] = field(default_factory=list)
    class_gram: list[list[float]] | None = None

    def take(self, places: Sequence[int]) -> CrossProducts:
        """Return the products of some columns."""
        taken: dict[str, Any] = {
            "gram": triangle_of(square(self.gram)[np.ix_(places, places)]),
            "targets": [self.targets[place] for place in places],
            "class_means": [[means[place] for place in places] for means in self.class_means],
        }
        if self.class_gram is not None:
            taken["class_gram"] = triangle_of(square(self.class_gram)[np.ix_(places, places)])
        return replace(self, **taken)


def square(triangle: list[list[float]]) -> Array:
    """Return the symmetric matrix of a lower triangle.

    Examples
    --------
    >>> square([[1.0], [2.0, 3.0]])
    array([[1., 2.],
           [2., 3.]])
    """
    matrix = np.zeros((len(triangle), len(triangle)))
    for place, row in enumerate(triangle):
        matrix[place, : place + 1] = matrix[: place + 1, place] = row
    return matrix


def triangle_of(matrix: Array) -> list[list[float]]:
    """Return the lower triangle of a matrix, row by row.

    Examples
    --------
    >>> triangle_of(np.array([[1.0, 2.0], [2.0, 3.0]]))
    [[1.0], [2.0, 3.0]]
    """
    return [row[: place + 1] for place, row in enumerate(matrix.tolist())]


# ------------------------------------------------------------------------------------------------------------- conditions


def conditions_of(panel: Panel) -> Iterator[tuple[bool, str]]:
    """Yield conditions that must hold, each with the fault if it does not; later ones rely on those before.

    They are those of names, kinds and lengths, without which some method would fail. Numbers are taken as they are: the hash
    tells whether they are those that were written.
    """
    yield from _conditions_of_names(panel)
    yield bool(panel.rules), "there is no rule"
    sizes, ends = panel.sizes, panel.ends
    yield all(a < b for a, b in pairwise([0, *sizes])), "the sizes of the rules are not in ascending order from 1"
    yield all(a < b for a, b in pairwise([0, *ends])), "a larger size has not more features"
    yield ends[-1] == len(panel.features), f"the largest rule has {ends[-1]} weights for {len(panel.features)} features"
    yield panel.k in sizes, f"k is {str(panel.k)[:20]}, for which there is no rule"
    for what, values, shape in _shapes_of(panel):
        yield _has_shape(values, shape), f"{what} is not {' x '.join(map(str, shape))}"
    n = len(panel.features) + len(panel.substitutes)
    products = panel.cross_products
    for triangle in () if products is None else (products.gram, products.class_gram or products.gram):
        yield [len(row) for row in triangle] == list(range(1, n + 1)), f"gram is no triangle of {n} columns"


def _conditions_of_names(panel: Panel) -> Iterator[tuple[bool, str]]:
    is_labelled = panel.task == "classification"
    classes = panel.classes or []
    yield panel.transform in ("none", "log1p"), f"transform={str(panel.transform)[:20]!r} is neither 'none' nor 'log1p'"
    yield is_labelled == (panel.classes is not None), f"a {panel.task} {'needs' if is_labelled else 'has no'} classes"
    yield len(classes) > 1 or not is_labelled, f"{len(classes)} classes, but a rule needs two"
    yield bool(panel.targets), "targets is empty"
    yield len(panel.targets) == 1 or not is_labelled, f"{len(panel.targets)} targets with classes, but there is one"
    kinds = {type(label) for label in classes}
    yield len(kinds) < 2 and kinds <= {str, int, float, bool}, "classes are not all texts, or all numbers"
    named = {"features and substitutes": panel.features + panel.substitutes, "classes": classes, "targets": panel.targets}
    for what, names in named.items():
        for name in map(str, names):
            fault = fault_of_name(name)
            yield not fault, f"a name among {what} {fault}"
        yield len(set(names)) == len(names), f"{what} have a name twice"


def fault_of_name(name: str) -> str | None:
    r"""Say why a text cannot be a name, None if it can.

    Examples
    --------
    >>> fault_of_name("TP53"), fault_of_name("TP\n53")
    (None, "holds a control character: 'TP\\n53'")
    """
    if not name.strip():
        return "is empty"
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, and {LONGEST_NAME} are allowed"
    if any(unicodedata.category(letter) in FORBIDDEN for letter in name):
        return f"holds a control character: {name[:40]!a}"
    return None


def _shapes_of(panel: Panel) -> Iterator[tuple[str, list[Any], tuple[int, ...]]]:
    """Yield every list of numbers, and the shape that it has to have."""
    n, n_classes = len(panel.features) + len(panel.substitutes), len(panel.classes or [])
    n_targets = n_classes or len(panel.targets)
    n_values = 1 if n_classes == 2 else n_targets
    for name, values in vars(panel.columns).items():
        yield f"{name} of the columns", values, (n,)
    for rule in panel.rules:
        yield f"weights of k = {rule.k}", rule.weights, (len(rule.weights), n_values)
        yield f"intercept of k = {rule.k}", rule.intercept, (n_values,)
        if rule.offset:
            yield f"offset of k = {rule.k}", rule.offset, (n_classes,)
    if panel.cross_products is not None:
        shapes = {
            "targets": (n, n_targets),
            "target_means": (n_targets,),
            "target_factors": (n_targets,),
            "class_means": (n_classes, n),
            "class_sizes": (n_classes,),
            "class_shares": (n_classes,),
        }
        for name, shape in shapes.items():
            yield f"{name} of the cross-products", getattr(panel.cross_products, name), shape


def _has_shape(values: list[Any], shape: tuple[int, ...]) -> bool:
    return len(values) == shape[0] and (len(shape) == 1 or all(len(row) == shape[1] for row in values))
