"""Names that occur more than once: features are numbered, averaged or chosen from, samples are numbered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.data.readers.table import Contents, DataError, Request, refuse_repeated
from l20fs.inputs.devices import is_dask
from l20fs.text import by_number, counted, listed
from l20fs.typing import Array

WAYS_OUT = " Or let it be done: --duplicates number, mean or first."


def numbered_names(names: Sequence[str]) -> list[str]:
    """Return unique names: repeated ones get numbers, as in pandas and R, that no other name has.

    Examples
    --------
    >>> numbered_names(["TP53", "MYC", "TP53", "TP53"])
    ['TP53', 'MYC', 'TP53.1', 'TP53.2']
    >>> numbered_names(["TP53", "TP53", "TP53.1"])
    ['TP53', 'TP53.2', 'TP53.1']
    """
    taken = set(names)
    if len(taken) == len(names):
        return list(names)
    found, last = [], dict.fromkeys(taken, -1)
    for name in names:
        number, unique = last[name] + 1, name
        while number and (unique := f"{name}.{number}") in taken:
            number += 1
        last[name] = number
        taken.add(unique)
        found.append(unique)
    return found


def number_features(names: Sequence[str], request: Request) -> list[str]:
    """Return the names of features with numbers for repeated ones, or as they are if these are to be refused."""
    if request.duplicates_rule == "refuse":
        return list(names)
    unique = numbered_names(names)
    request.numbered.update({new: name for new, name in zip(unique, names, strict=True) if new != name})
    return unique


def settle_features(contents: Contents, request: Request) -> Contents:
    """Return the contents with one feature of each name, or raise an error for repeated ones, as the request says."""
    rule = request.duplicates_rule
    if rule == "refuse":
        refuse_repeated(contents.feature_names, "feature", request, WAYS_OUT)
    known = set(request.numbered.values())
    if not known:
        return contents
    in_file = names_in_file(contents.feature_names, request)
    repeated = list(dict.fromkeys(name for name in in_file if name in known))
    if not repeated:
        return contents
    text = _more_than_once(repeated, "feature name")
    done = {
        "number": f"they are numbered, as in {next(iter(request.numbered))!r}",
        "mean": "the mean of the features of one name is taken",
        "first": "the first feature of each name is taken",
    }
    if rule != "number" and is_dask(contents.X):
        raise DataError(
            f"{request.name}: {text}, and --duplicates {rule} needs the table in memory, but it is read in blocks. Use "
            "--duplicates number, or allow more memory (--max-memory)."
        )
    request.tell("duplicates", rule, f"{text}; {done[rule]}")
    if rule == "number":
        return contents
    names, codes = grouped(in_file)
    X = mean_of_groups(contents.X, codes) if rule == "mean" else contents.X[:, np.unique(codes, return_index=True)[1]]
    return replace(contents, X=X, feature_names=names)


def _more_than_once(names: Collection[str], what: str) -> str:
    return f"{counted(len(names), what)} {by_number(len(names), 'occurs', 'occur')} more than once ({listed(names)})"


def names_in_file(names: Sequence[str], request: Request) -> list[str]:
    """Return the names of features as they are in the file, before repeated ones were numbered."""
    return [request.numbered.get(name, name) for name in names]


def grouped(names: Sequence[str]) -> tuple[list[str], Array]:
    """Return the different names in their order, and the place of each name among them.

    Examples
    --------
    >>> grouped(["TP53", "MYC", "TP53"])
    (['TP53', 'MYC'], array([0, 1, 0]))
    """
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(name, len(places)) for name in names])
    return list(places), codes


def mean_of_groups(X: Any, codes: Array) -> Any:
    """Return the mean of the columns with one code, over the values that are not missing; one column per code.

    Examples
    --------
    >>> mean_of_groups(np.array([[1.0, 5.0, 3.0], [np.nan, 6.0, 4.0]]), np.array([0, 1, 0]))
    array([[2., 5.],
           [4., 6.]])
    """
    firsts, counts = np.unique(codes, return_index=True, return_counts=True)[1:]
    shared = np.flatnonzero(counts > 1)
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
    columns = X.tocsc() if sp.issparse(X) else X
    means = np.column_stack([_mean(columns[:, members[code]]) for code in shared])
    if sp.issparse(X):
        others = np.flatnonzero(counts == 1)
        joined = sp.hstack([columns[:, firsts[others]], sp.csc_array(means)], format="csc")
        return joined[:, np.argsort(np.concatenate([others, shared]))].asformat(X.format)
    found = X[:, firsts]
    found[:, shared] = means
    return found


def _mean(columns: Any) -> Array:
    """Return the mean of each row over the values that are not missing, NaN if all are."""
    values = columns.toarray() if sp.issparse(columns) else columns
    is_there = ~np.isnan(values)
    counts = is_there.sum(axis=1)
    total = np.where(is_there, values, 0.0).sum(axis=1)
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan).astype(values.dtype)


def settle_samples(contents: Contents, request: Request, hint: str) -> Contents:
    """Return the contents with unique sample names; repeated ones are refused if labels are matched by them."""
    names = contents.sample_names or []
    if request.labels is not None:
        refuse_repeated(names, "sample", request, hint)
    unique = numbered_names(names)
    if unique == names:
        return contents
    renamed = [(name, other) for name, other in zip(names, unique, strict=True) if name != other]
    repeated = dict.fromkeys(name for name, _ in renamed)
    request.guess(None, None, f"{_more_than_once(repeated, 'sample name')}; they are numbered, as in {renamed[0][1]!r}")
    return replace(contents, sample_names=unique)
