"""Types that all rooms share."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

#: A NumPy array of any shape and dtype; docstrings give both.
Array: TypeAlias = NDArray[Any]
