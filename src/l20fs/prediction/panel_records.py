"""Parts of a panel as they stand in its file, and the rules that they have to follow."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
#: Levels of lists and records in the provenance.
MOST_LEVELS = 20


class PanelError(ValueError):
    """Panel file that cannot be used, or samples that a panel cannot predict."""


@dataclass(frozen=True)
class SizeRule:
    """Rule of one size: the first ``len(weights)`` features, with weights and intercepts in units of X.

    ``weights`` (n_features, n_values), ``intercept`` (n_values,), None for a class that is never predicted; ``slope`` and
    ``doubt`` of the probabilities (:mod:`l20fs.prediction.calibration`); ``farthest`` is the limit of the distance of a
    sample from the classes.
    """

    k: int
    weights: list[list[float]]
    intercept: list[float | None]
    slope: float = 1.0
    doubt: float = 0.0
    farthest: float | None = None


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
        return CrossProducts(
            gram=triangle_of(square(self.gram)[np.ix_(places, places)]),
            targets=[self.targets[place] for place in places],
            target_means=self.target_means,
            target_factors=self.target_factors,
            ridge=self.ridge,
            fit_intercept=self.fit_intercept,
            class_means=[[means[place] for place in places] for means in self.class_means],
            class_sizes=self.class_sizes,
            class_shares=self.class_shares,
            class_gram=None if self.class_gram is None else triangle_of(square(self.class_gram)[np.ix_(places, places)]),
        )


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


# ------------------------------------------------------------------------------------------------------------------ rules


def rules_of_panel(panel: Panel) -> Iterator[tuple[bool, str]]:
    """Yield conditions that must hold, each with the fault if it does not."""
    yield from _rules_of_names(panel)
    yield from _rules_of_sizes(panel)
    yield from _rules_of_columns(panel)
    if panel.cross_products is not None:
        yield from _rules_of_products(panel, panel.cross_products)


def _rules_of_names(panel: Panel) -> Iterator[tuple[bool, str]]:
    is_labelled = panel.task == "classification"
    yield is_labelled == (panel.classes is not None), f"a {panel.task} {'needs' if is_labelled else 'has no'} classes"
    yield len(panel.targets) > 0, "targets is empty"
    if panel.classes is not None:
        yield len(panel.classes) > 1, f"{len(panel.classes)} classes, but a rule needs two"
        yield len(panel.targets) == 1, f"{len(panel.targets)} targets with classes, but there is one"
    groups = {
        "features and substitutes": panel.features + panel.substitutes,
        "classes": panel.classes or [],
        "targets": panel.targets,
    }
    for what, names in groups.items():
        for name in names:
            fault = fault_of_name(name)
            yield not fault, f"a name among {what} {fault}"
        yield len(set(names)) == len(names), f"{what} have a name twice"
    replaced = {*panel.replaced, *(name for name in panel.replaced.values() if name is not None)}
    yield not any(map(fault_of_name, replaced)), "a name in replaced is not a name"
    yield _is_flat(panel.provenance, MOST_LEVELS), f"provenance has more than {MOST_LEVELS} levels"


def _is_flat(value: Any, n_levels: int) -> bool:
    """Return whether lists and records are not nested more deeply."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else None
    return parts is None or (n_levels > 0 and all(_is_flat(part, n_levels - 1) for part in parts))


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


def _rules_of_sizes(panel: Panel) -> Iterator[tuple[bool, str]]:
    n_classes = len(panel.classes or [])
    n_values = len(panel.targets) if panel.classes is None else 1 if n_classes == 2 else n_classes
    yield bool(panel.rules), "there is no rule"
    sizes, ends = [rule.k for rule in panel.rules], [len(rule.weights) for rule in panel.rules]
    yield (
        sizes[0] >= 1 and all(a < b for a, b in pairwise(sizes)),
        "the sizes of the rules are not in ascending order from 1",
    )
    yield ends[0] >= 1 and all(a < b for a, b in pairwise(ends)), "a larger size has not more features"
    yield ends[-1] == len(panel.features), f"the largest rule has {ends[-1]} weights for {len(panel.features)} features"
    yield panel.k in sizes, f"k is {str(panel.k)[:20]}, for which there is no rule"
    n_missing = len(panel.replaced)
    yield all(a <= b + n_missing for a, b in zip(sizes, ends, strict=True)), "a size exceeds the number of its features"
    for rule in panel.rules:
        what = f"the rule of k = {rule.k}"
        yield all(len(row) == n_values for row in rule.weights), f"{what} has not {n_values} weights for each feature"
        yield len(rule.intercept) == n_values, f"{what} has not {n_values} intercepts"
        n_finite = sum(value is not None for value in rule.intercept)
        yield n_finite == n_values or (n_values > 2 and n_finite > 1), f"{what} lacks intercepts"
        yield 0.0 <= rule.doubt <= 1.0, f"{what} has a doubt outside 0 to 1"
        yield rule.slope >= 0.0, f"{what} has a negative slope"
        yield rule.farthest is None or rule.farthest >= 0.0, f"{what} has a negative distance"


def _rules_of_columns(panel: Panel) -> Iterator[tuple[bool, str]]:
    n = len(panel.features) + len(panel.substitutes)
    for name, values in vars(panel.columns).items():
        yield len(values) == n, f"columns has {len(values)} entries in {name} for {n} features and substitutes"
    columns = panel.columns
    yield all(value > 0.0 for value in columns.divisor), "a divisor is not above 0"
    yield all(value >= 0.0 for value in columns.deviation), "a deviation is negative"
    yield all(a <= b for a, b in zip(columns.minimum, columns.maximum, strict=True)), "a minimum exceeds its maximum"


def _rules_of_products(panel: Panel, products: CrossProducts) -> Iterator[tuple[bool, str]]:
    n = len(panel.features) + len(panel.substitutes)
    n_classes = len(panel.classes or [])
    n_targets = n_classes or len(panel.targets)
    yield n <= MOST_CROSSED, f"{n} columns of cross-products are too many"
    for name in ("gram", "class_gram"):
        triangle: list[list[float]] | None = getattr(products, name)
        is_right = triangle is None or [len(row) for row in triangle] == list(range(1, n + 1))
        yield is_right, f"{name} is no triangle of {n} columns"
    yield _has_shape(products.targets, n, n_targets), f"targets of the cross-products are not {n} x {n_targets}"
    yield len(products.target_means) == n_targets, f"target_means has not {n_targets} entries"
    yield len(products.target_factors) == n_targets, f"target_factors has not {n_targets} entries"
    yield all(value > 0.0 for value in products.target_factors), "a target has a factor of 0"
    yield products.ridge >= 0.0, "the ridge is negative"
    yield _has_shape(products.class_means, n_classes, n), f"class_means is not {n_classes} x {n}"
    for name in ("class_sizes", "class_shares"):
        values: list[float] = getattr(products, name)
        yield len(values) == n_classes and all(value >= 0.0 for value in values), f"{name} has not {n_classes} shares"
        yield not n_classes or sum(values) > 0.0, f"{name} are all 0"
    yield not n_classes or abs(sum(products.class_shares) - 1.0) < 1e-6, "class_shares do not add up to 1"


def _has_shape(table: list[list[float]], n_rows: int, n_columns: int) -> bool:
    return len(table) == n_rows and all(len(row) == n_columns for row in table)
