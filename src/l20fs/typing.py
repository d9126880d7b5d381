"""Types that all rooms share."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

#: A NumPy array of any shape and dtype; docstrings give both.
Array: TypeAlias = NDArray[Any]

#: What ``n_features_to_select`` may be: a number of features, a share of them, the name of a rule, or None.
Size: TypeAlias = int | float | str | None

#: What targets stand for: labels, numbers, or what their type suggests.
Task = Literal["auto", "classification", "regression"]
