"""Feature constraints: include, exclude, penalty_factor and feature_groups by name or index."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from l20fs.inputs.validation import LARGEST_NUMBER, LEAST_NUMBER
from l20fs.text import closest_hint
from l20fs.typing import Array

#: Parameters of selectors that name features.
FEATURE_CONSTRAINTS = ("include", "exclude", "penalty_factor", "feature_groups")


class ResolvedConstraints(NamedTuple):
    """Constraints on each feature.

    ``labels`` (n_features,) are equal within a group. ``factors`` (n_features,) are the factors of lambda: 0 for included
    features, infinity for excluded ones.
    """

    labels: Array
    factors: Array


def resolve_constraints(
    varies: Array,
    names: Array | None = None,
    *,
    include: Any = None,
    exclude: Any = None,
    penalty_factor: Any = None,
    feature_groups: Any = None,
) -> ResolvedConstraints:
    """Resolve include, exclude, penalty_factor and feature_groups.

    Parameters
    ----------
    varies : array of shape (n_features,)
        Mask of the features that are not constant. A constant one has no cost and belongs to no group, unless it is
        included itself.
    names : array of shape (n_features,), optional
        Names of the features; without them features are given by index.
    include, exclude : sequence of names or indices, or mask of shape (n_features,)
    penalty_factor : array of shape (n_features,), or dict of name or index: factor
        0 includes a feature, infinity excludes it, 1 is the default.
    feature_groups : array of shape (n_features,) of labels, list of lists of names or indices, or dict of name: list
        A feature without a group is a unit of its own.

    Examples
    --------
    >>> varies, names = np.ones(4, dtype=bool), np.array(["age", "red", "green", "blue"])
    >>> resolve_constraints(varies, names, include=["age"], feature_groups={"colour": ["red", "green", "blue"]})
    ResolvedConstraints(labels=array([0, 1, 1, 1]), factors=array([0., 1., 1., 1.]))
    """
    features = Features(len(varies), names)
    factors = features.numbers("penalty_factor", "factor", penalty_factor, _check_factor)
    included, excluded = factors == 0.0, factors == np.inf
    included[features.find_all("include", include)] = True
    excluded[features.find_all("exclude", exclude)] = True
    labels = _labels(features, feature_groups)
    # A group is included or excluded as a whole.
    is_in, is_out = np.isin(labels, labels[included]), np.isin(labels, labels[excluded])
    if (is_in & is_out).any():
        _refuse_contradiction(features, labels, included, excluded)
    factors = np.where(is_in, 0.0, np.where(is_out, np.inf, factors))
    stands_alone = ~varies & ~included
    factors[stands_alone & is_in] = 1.0
    labels[stands_alone] = len(varies) + np.flatnonzero(stands_alone)
    return ResolvedConstraints(labels, factors)


class Features:
    """Names and indices of the features of a fit.

    Examples
    --------
    >>> Features(3, np.array(["TP53", "MYC", "KRAS"])).find_all("include", ["MYC", 0])
    [1, 0]
    """

    def __init__(self, n_features: int, names: Array | None = None, *, source: str = "X") -> None:
        self.n_features = n_features
        self.source = source  # the name of the matrix in messages
        self.names = None if names is None else [str(name) for name in names]
        self._index = {name: index for index, name in enumerate(self.names or [])}

    def called(self, index: int) -> str:
        """Return the name of a feature for messages."""
        return repr(self.names[index]) if self.names else f"feature {index}"

    def find_all(self, parameter: str, wanted: Any) -> list[int]:
        """Return the indices of a sequence of names or indices, or of a mask; each feature may be named once."""
        if wanted is None:
            return []
        if isinstance(wanted, str | bytes | Mapping) or not isinstance(wanted, Iterable):
            raise ValueError(f"{parameter}={wanted!r} is not a list. Give a list of names or indices, or a mask.")
        items = list(wanted)
        if items and all(isinstance(item, bool | np.bool_) for item in items):
            items = self.in_order(parameter, wanted)
            if len(items) != self.n_features:
                raise ValueError(
                    f"{parameter} is a mask of length {len(items)} for {self.n_features} features. "
                    "Give one True or False per feature, or indices."
                )
            return np.flatnonzero(items).tolist()
        found: dict[int, None] = {}
        for index in (self.find(parameter, item) for item in items):
            if index in found:
                raise ValueError(f"{parameter} names {self.called(index)} twice. Give each feature once.")
            found[index] = None
        return list(found)

    def in_order(self, parameter: str, values: Any) -> list[Any]:
        """Return one value per feature; those of a Series are matched by its index."""
        items, index = list(values), getattr(values, "index", None)
        if index is None or callable(index):  # lists have a method of this name
            return items
        labels = list(index)
        if labels == list(range(len(labels))):
            return items
        if self.names is None or sorted(map(str, labels)) != sorted(self.names):
            raise ValueError(
                f"{parameter} is a Series whose index does not name the features of X. Give one entry per feature under its "
                f"name, or {parameter}.to_numpy() for the order of the columns."
            )
        by_name = dict(zip(map(str, labels), items, strict=True))
        return [by_name[name] for name in self.names]

    def numbers(self, parameter: str, noun: str, given: Any, check: Callable[[Any, str], None]) -> Array:
        """Return one number per feature from a list or a dict, 1 where none is given; ``noun`` is for messages.

        ``check`` is called with each number and the name of its feature.
        """
        found = np.ones(self.n_features)
        if given is None:
            return found
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise ValueError(f"{parameter}={given!r} is not a list. Give one number per feature, or a dict of name: {noun}.")
        if isinstance(given, Mapping):
            rows, values = self.find_all(parameter, list(given)), list(given.values())
        else:
            rows, values = list(range(self.n_features)), self.in_order(parameter, given)
            if len(values) != len(rows):
                raise ValueError(
                    f"{parameter} has {len(values)} {noun}s for {len(rows)} features. Give one per feature, or a dict of "
                    f"name or index: {noun}."
                )
        for row, value in zip(rows, values, strict=True):
            check(value, self.called(row))
        found[rows] = values
        return found

    def find(self, parameter: str, feature: Any) -> int:
        """Return the index of a feature that is given by its name or index."""
        if isinstance(feature, str):
            return self._find_name(parameter, feature)
        if not isinstance(feature, numbers.Integral) or isinstance(feature, bool | np.bool_):
            raise ValueError(
                f"{parameter} has {feature!r}, which is neither a name nor an index. Use text or whole numbers."
            )
        index = int(feature)
        if not 0 <= index < self.n_features:
            raise ValueError(
                f"{parameter} has the index {index}, which is outside 0 to {self.n_features - 1}. "
                "Count features from 0; negative indices are not supported."
            )
        return index

    def _find_name(self, parameter: str, name: str) -> int:
        if self.names is None:
            raise ValueError(
                f"{parameter} names {name!r}, but X has no feature names. Fit on a DataFrame whose column names are text, "
                f"or give indices from 0 to {self.n_features - 1}."
            )
        if name not in self._index:
            hint = closest_hint(name, self.names)
            raise ValueError(f"{parameter} names {name!r}, which {self.source} does not have. {hint}")
        return self._index[name]


def _check_factor(value: Any, called: str) -> None:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    value = value.item() if isinstance(value, np.number) else value  # float32 does not hold the limits
    if not is_number or not (value in (0, np.inf) or LEAST_NUMBER <= value <= LARGEST_NUMBER):
        raise ValueError(
            f"penalty_factor={value!r} of {called} is not valid. Use a number of at least 0: 0 includes, infinity excludes, "
            f"any other lies between {LEAST_NUMBER:g} and {LARGEST_NUMBER:g}."
        )


def _labels(features: Features, given: Any) -> Array:
    """Return a group number per feature."""
    labels = np.arange(features.n_features)
    if given is None:
        return labels
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ValueError(f"feature_groups={given!r} is not a list. Give a label per feature, or lists of names or indices.")
    if not isinstance(given, Mapping):
        items = features.in_order("feature_groups", given)
        if not any(isinstance(item, Iterable) and not isinstance(item, str | bytes) for item in items):
            return _numbered(features, items)
        given = dict(enumerate(items))
    group_of: dict[int, Any] = {}
    for group, members in given.items():
        rows = features.find_all(f"feature_groups[{group!r}]", members)
        if not rows:
            raise ValueError(f"feature_groups[{group!r}] is empty. Remove it, or give it features.")
        for row in rows:
            if row in group_of:
                raise ValueError(
                    f"feature_groups has {features.called(row)} in two groups, {group_of[row]!r} and {group!r}. "
                    "Groups must not overlap: remove it from one, or merge the two."
                )
            group_of[row] = group
        labels[rows] = min(rows)
    return labels


def _numbered(features: Features, items: list[Any]) -> Array:
    """Number the labels of groups, given one per feature."""
    if len(items) != features.n_features:
        raise ValueError(
            f"feature_groups has {len(items)} labels for {features.n_features} features. Give one per feature, or lists of "
            "names or indices."
        )
    first: dict[Any, int] = {}
    for index, label in enumerate(items):
        if _is_missing(label):
            raise ValueError(
                f"feature_groups has no label for {features.called(index)}. Give every feature a label; a unique one makes "
                "it a group of its own."
            )
        first.setdefault(label, index)
    return np.array([first[label] for label in items])


def _is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN, NaT or NA."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither equal nor different
        return True


def _refuse_contradiction(features: Features, labels: Array, included: Array, excluded: Array) -> None:
    label = np.intersect1d(labels[included], labels[excluded])[0]
    one, other = (int(np.flatnonzero(mask & (labels == label))[0]) for mask in (included, excluded))
    if one == other:
        raise ValueError(
            f"{features.called(one)} is both included (include, or factor 0) and excluded (exclude, or factor inf). "
            "Choose one."
        )
    raise ValueError(
        f"{features.called(one)} is included and {features.called(other)} is excluded, but both are in one group, which is "
        "selected as a whole. Choose one, or remove one of them from the group."
    )


def by_index(estimator: Any, names: Array | None) -> Any:
    """Replace names by indices in the constraints of an unfitted estimator, or of one inside it; return it.

    It can then be fitted to arrays, which have no names.

    Parameters
    ----------
    estimator : estimator
        Changed in place.
    names : array of shape (n_features,) or None
        Names of the features; None if they have none.
    """
    if names is None:
        return estimator
    features = Features(len(names), names)
    for key, given in estimator.get_params().items():
        parameter = key.rpartition("__")[2]
        if parameter in (*FEATURE_CONSTRAINTS, "constraints") and given is not None:
            estimator.set_params(**{key: _by_index(features, parameter, given)})
    return estimator


def _by_index(features: Features, parameter: str, given: Any) -> Any:
    if parameter == "constraints":
        return given.by_index(features)
    if parameter in ("include", "exclude"):
        return features.find_all(parameter, given)
    if parameter == "penalty_factor":
        return features.numbers(parameter, "factor", given, _check_factor)
    return _labels(features, given)
