"""Names of features: of matrices that have none of their own, and features given by name or index."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from l20fs.text import closest_hint
from l20fs.typing import Array


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """Matrix with column names, for ``fit`` on an array, a sparse matrix or a file in blocks, which have none.

    Attributes
    ----------
    X : array, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
    names : sequence of str
        One per column.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> X = NamedColumns(np.array([[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]), ["TP53", "MYC"])
    >>> L20Selector(1).fit(X, ["a", "a", "b", "b"]).get_feature_names_out().tolist()
    ['TP53']
    """

    X: Any
    names: Sequence[str] | Array

    def checked_names(self) -> Array:
        """Return the names as an array, if there is one per column."""
        names = np.asarray(self.names, dtype=object)
        if names.shape != (self.X.shape[1],):
            raise ValueError(f"There are {len(names)} names for {self.X.shape[1]} columns of X. Give one per column.")
        return names


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
            return np.flatnonzero(self.one_each(parameter, wanted)).tolist()
        found = [self.find(parameter, item) for item in items]
        for place, index in enumerate(found if len(set(found)) < len(found) else []):
            if index in found[:place]:
                raise ValueError(f"{parameter} names {self.called(index)} twice. Give each feature once.")
        return found

    def one_each(self, parameter: str, values: Any) -> list[Any]:
        """Return one value per feature; those of a Series are matched by its index."""
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise ValueError(f"{parameter}={values!r} is not a list. Give one entry per feature, or a dict.")
        items, index = list(values), getattr(values, "index", None)
        if len(items) != self.n_features:
            raise ValueError(
                f"{parameter} has {len(items)} entries for {self.n_features} features. Give one per feature, or names or "
                "indices."
            )
        labels = list(range(len(items))) if index is None or callable(index) else list(index)  # lists have such a method
        if labels == list(range(len(items))):
            return items
        if self.names is None or sorted(map(str, labels)) != sorted(self.names):
            raise ValueError(
                f"{parameter} is a Series whose index does not name the features of X. Give one entry per feature under its "
                f"name, or {parameter}.to_numpy() for the order of the columns."
            )
        by_name = dict(zip(map(str, labels), items, strict=True))
        return [by_name[name] for name in self.names]

    def numbers(self, parameter: str, given: Any, others: float = 1.0) -> Array:
        """Return one number per feature from a list or a dict, in which those without one have ``others``."""
        found = np.full(self.n_features, others)
        if isinstance(given, Mapping):
            rows, values = self.find_all(parameter, list(given)), list(given.values())
        else:
            rows, values = list(range(self.n_features)), self.one_each(parameter, given)
        try:
            found[rows] = np.array(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{parameter} has entries that are no numbers ({error}). Give numbers.") from error
        if np.isnan(found).any():
            raise ValueError(f"{parameter} of {self.called(int(np.isnan(found).argmax()))} is missing. Give a number.")
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
