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

#: Names of the solvers.
SolverName = Literal["forward", "swap", "ahiht", "hiht"]

#: Rules for the divisors of the features, see :func:`l20fs.design.column_scale.divisors_of`.
Scale = Literal["auto", "moderated", "zscore", "none"]

#: Order of the rows of the last stage: by norm, or by the stage from which on they are non-zero.
Ranking = Literal["norm", "entry"]

#: Decimal mark of numbers in texts.
Decimal = Literal[".", ","]
#: What happens to missing values: the medians and the neighbours are of the training samples.
Missing = Literal["refuse", "drop", "median", "knn"]
#: What happens to features of the same name.
Duplicates = Literal["refuse", "mean", "first", "number"]
#: How the samples of a table and of a file of labels are matched by their names.
Join = Literal["exact", "inner", "near"]
