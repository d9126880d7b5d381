"""The file of a panel: the records in it, what has to hold among them, and JSON with a hash of its content."""

from __future__ import annotations

import hashlib
import json
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.prediction.panel import Panel

#: Marks a panel among JSON files, and the version of what it holds.
SCHEMA, FORMAT = "l20fs-panel", 1
#: Largest file that is written or read, and longest name of a feature, a class or a target, in characters.
MOST_BYTES, LONGEST_NAME = 2**26, 1000
#: Most features and substitutes together of which a file holds cross-products.
MOST_CROSSED = 1000
#: Kinds of characters that no name may hold: control characters, halves of characters, ends of lines and paragraphs.
FORBIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
RULE_OF_NAMES = f"1 to {LONGEST_NAME} characters, and no control characters"

Record = TypeVar("Record")

WAY_OUT = "Name a panel.json that l20fs select or Panel.save wrote."


class PanelError(ValueError):
    """Panel file that cannot be used, or samples that a panel cannot predict."""


# ------------------------------------------------------------------------------------------------------------------ records


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
        return Columns(*([values[place] for place in places] for values in vars(self).values()))


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
        among = np.ix_(places, places)
        return replace(
            self,
            gram=triangle_of(square(self.gram)[among]),
            targets=[self.targets[place] for place in places],
            class_means=[[means[place] for place in places] for means in self.class_means],
            class_gram=None if self.class_gram is None else triangle_of(square(self.class_gram)[among]),
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


# --------------------------------------------------------------------------------------------------------------------- text


def content_hash(stored: dict[str, Any]) -> str:
    """Return the SHA-256 of canonical JSON: names sorted, no spaces, ASCII only, numbers as Python writes them."""
    return hashlib.sha256(_as_json(stored, sort_keys=True).encode()).hexdigest()


def write_text(stored: dict[str, Any]) -> str:
    """Return the text of a file, one line per field: what tells its origin first, and the hash at the end."""
    ordered = {name: stored[name] for name in ("schema", "format", "versions")} | stored | {"sha256": content_hash(stored)}
    lines = (f"{_as_json(name)}: {_as_json(value, ensure_ascii=False)}" for name, value in ordered.items())
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if len(text.encode()) > MOST_BYTES:
        raise PanelError(f"The panel would have {len(text)} bytes, and {MOST_BYTES} are allowed. Use a smaller k.")
    return text


def read_text(text: str | bytes, kind: type[Record]) -> Record:
    """Return the record in a file of this format, whose hash is right."""
    if len(text) > MOST_BYTES:
        raise PanelError(f"The file has more than {MOST_BYTES} bytes, which no panel has. {WAY_OUT}")
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PanelError(f"This is no panel: {error}. {WAY_OUT}") from None
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        raise PanelError(f"This is no panel: it lacks the mark {SCHEMA!r}. {WAY_OUT}")
    if repr(stored.get("format")) != repr(FORMAT):
        versions = stored.get("versions")
        writer = versions.get("l20fs") if isinstance(versions, dict) else None
        raise PanelError(
            f"The panel has format {ascii(stored.get('format'))[:40]} and was written by l20fs {ascii(writer)[:40]}; this "
            f"version of l20fs reads format {FORMAT}. Use the version that wrote it, or make the panel again."
        )
    if stored.pop("sha256", None) != content_hash(stored):
        raise PanelError(
            "The panel was damaged or changed after it was written: its sha256 is not that of its content. Make it again, "
            "or get it again from where it came."
        )
    found: Record = read_value(stored, kind, "panel")
    return found


def _as_json(value: Any, **options: Any) -> str:
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=vars, **options)
        text.encode()  # half a character has no bytes
    except (ValueError, TypeError, RecursionError) as error:
        raise PanelError(f"The panel holds what JSON cannot: {error}. Use finite numbers, texts and lists.") from None
    return text


# -------------------------------------------------------------------------------------------------------------------- types


def read_value(value: Any, kind: Any, where: str) -> Any:
    """Convert a JSON value to the type of a hint, or raise an error that names its place.

    Examples
    --------
    >>> read_value({"a": [1]}, dict[str, list[int] | None], "sizes")
    {'a': [1]}
    >>> read_value([1, "b"], list[int], "sizes")
    Traceback (most recent call last):
        ...
    l20fs.prediction.panel_file.PanelError: The panel cannot be read: sizes holds 'b', which does not belong there.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(value, dict) and isinstance(kind, type) and is_dataclass(kind):
        hints, needed = _fields_of(kind)
        for fault, names in (("lacks", needed - set(value)), ("does not know", set(value) - set(hints))):
            if names:
                raise PanelError(f"The panel cannot be read: {where} {fault} {_short(min(names))}.")
        return kind(**{name: read_value(item, hints[name], name) for name, item in value.items()})
    if origin is list and isinstance(value, list):
        return [read_value(item, arguments[0], where) for item in value]
    if origin is dict and isinstance(value, dict):
        return {name: read_value(item, arguments[1], where) for name, item in value.items()}
    if NoneType in arguments:
        return None if value is None else read_value(value, arguments[0], where)
    if kind is float:
        fits = type(value) in (int, float) and abs(value) <= sys.float_info.max
    else:
        fits = kind is Any or (value in arguments if origin is Literal else type(value) is kind)
    if not fits:
        raise PanelError(f"The panel cannot be read: {where} holds {_short(value)}, which does not belong there.")
    return value


@cache
def _fields_of(kind: Any) -> tuple[dict[str, Any], set[str]]:
    """Return the types of the fields of a record, and the fields that it needs."""
    needed = {item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING}
    return get_type_hints(kind), needed


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


# --------------------------------------------------------------------------------------------------------------- conditions


def check_panel(panel: Panel) -> None:
    """Refuse a panel whose names, kinds and lengths are such that some method would fail.

    Numbers are taken as they are: the hash tells whether they are those that were written.
    """
    for is_right, fault in (each for conditions in (_on_names, _on_sizes, _on_shapes) for each in conditions(panel)):
        if not is_right:
            raise PanelError(f"The panel is not consistent: {fault}. Make it again.")


def _on_names(panel: Panel) -> Iterator[tuple[bool, str]]:
    """Yield conditions, each with the fault if it does not hold; later ones rely on those before."""
    is_labelled, classes = panel.task == "classification", panel.classes or []
    yield panel.transform in ("none", "log1p"), f"transform={str(panel.transform)[:20]!r} is neither 'none' nor 'log1p'"
    yield is_labelled == (panel.classes is not None), f"a {panel.task} {'needs' if is_labelled else 'has no'} classes"
    yield len(classes) > 1 or not is_labelled, f"{len(classes)} classes, but a rule needs two"
    yield bool(panel.targets), "targets is empty"
    yield len(panel.targets) == 1 or not is_labelled, f"{len(panel.targets)} targets with classes, but there is one"
    kinds = {type(label) for label in classes}
    yield len(kinds) < 2 and kinds <= {str, int, float, bool}, "classes are not all texts, or all numbers"
    named = {"features and substitutes": panel.features + panel.substitutes, "classes": classes, "targets": panel.targets}
    for what, names in named.items():
        wrong = [name for name in map(str, names) if not is_name(name)]
        yield not wrong, f"a name among {what} is {_short(''.join(wrong[:1]))}; names have {RULE_OF_NAMES}"
        yield len(set(names)) == len(names), f"{what} have a name twice"


def is_name(text: str) -> bool:
    r"""Return whether a text can be the name of a feature, a class or a target.

    Examples
    --------
    >>> is_name("TP53"), is_name("TP\n53")
    (True, False)
    """
    is_readable = not any(unicodedata.category(letter) in FORBIDDEN for letter in text)
    return bool(text.strip()) and len(text) <= LONGEST_NAME and is_readable


def _on_sizes(panel: Panel) -> Iterator[tuple[bool, str]]:
    yield bool(panel.rules), "there is no rule"
    yield all(a < b for a, b in pairwise([0, *panel.sizes])), "the sizes of the rules are not in ascending order from 1"
    yield all(a < b for a, b in pairwise([0, *panel.ends])), "a larger size has not more features"
    n = len(panel.features)
    yield panel.ends[-1] == n, f"the largest rule has {panel.ends[-1]} weights for {n} features"
    yield panel.k in panel.sizes, f"k is {str(panel.k)[:20]}, for which there is no rule"


def _on_shapes(panel: Panel) -> Iterator[tuple[bool, str]]:
    n, n_classes = len(panel.features) + len(panel.substitutes), len(panel.classes or [])
    n_targets = n_classes or len(panel.targets)
    n_values = 1 if n_classes == 2 else n_targets
    shapes: dict[str, tuple[list[Any], tuple[int, ...]]] = {}
    shapes |= {f"{name} of the columns": (values, (n,)) for name, values in vars(panel.columns).items()}
    shapes |= {f"weights of k = {rule.k}": (rule.weights, (len(rule.weights), n_values)) for rule in panel.rules}
    shapes |= {f"intercept of k = {rule.k}": (rule.intercept, (n_values,)) for rule in panel.rules}
    shapes |= {f"offset of k = {rule.k}": (rule.offset, (n_classes,)) for rule in panel.rules if rule.offset}
    products = panel.cross_products
    if products is not None:
        expected = {"targets": (n, n_targets), "target_means": (n_targets,), "target_factors": (n_targets,)}
        expected |= {"class_means": (n_classes, n), "class_sizes": (n_classes,), "class_shares": (n_classes,)}
        shapes |= {f"{name} of the cross-products": (getattr(products, name), shape) for name, shape in expected.items()}
        for triangle in (products.gram, products.class_gram or products.gram):
            yield [len(row) for row in triangle] == list(range(1, n + 1)), f"gram is no triangle of {n} columns"
    for what, (values, (length, *width)) in shapes.items():
        is_right = len(values) == length and all([len(row)] == width for row in values if width)
        yield is_right, f"{what} is not {' x '.join(map(str, (length, *width)))}"
