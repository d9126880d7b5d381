"""The search that options and settings ask for: an L20SelectorCV, with its constraints from files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Self

import click
from sklearn.base import BaseEstimator, TransformerMixin, clone

from l20fs import Constraints, L20Selector, L20SelectorCV
from l20fs.cli.options import read_lines
from l20fs.cli.terminal import note
from l20fs.tables import DataError, Samples
from l20fs.tables.settings import Settings


class NamedImputer(TransformerMixin, BaseEstimator):
    """Imputer of the gaps of a table, with the names of its columns."""

    def __init__(self, transformer: Any, names: list[str]) -> None:
        self.transformer = transformer
        self.names = names

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the training samples."""
        self.transformer_ = clone(self.transformer).fit(X, y)
        return self

    def transform(self, X: Any) -> Any:
        """Fill the gaps."""
        return self.transformer_.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """Return the names of the columns, which stay as they are."""
        return self.names


def make_search(
    samples: Samples,
    settings: Settings,
    k: Any,
    *,
    scoring: str | None = None,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
) -> L20SelectorCV:
    """Return the unfitted search."""
    model, limits = settings.model, settings.constraints
    if isinstance(k, int) and k > len(samples.feature_names):
        raise DataError(f"-k {k}: there are {len(samples.feature_names)} features only. Use a smaller number.")
    known = set(samples.feature_names)
    costs = None if limits.costs is None else _known("costs", dict(_costs(limits.costs)), known)
    constraints = Constraints(
        include=include,
        exclude=exclude,
        groups=None if limits.groups is None else _groups(limits.groups),
        costs=costs,
        min_per_class=limits.min_per_class,
        max_per_class=limits.max_per_class,
        budget=limits.budget,
        sets=None if limits.sets is None else {name: list(_known("sets", rows, known)) for name, rows in _sets(limits.sets)},
        exclusive=None if limits.exclusive is None else [row for _, row in _rows(limits.exclusive, "features")],
    )
    selector = L20Selector(
        solver=model.solver,
        ridge=model.ridge,
        scale=model.scale,
        class_weight=None if model.class_weight == "none" else model.class_weight,
        task=samples.task,
        constraints=None if constraints == Constraints() else constraints,
    )
    search = settings.search
    return L20SelectorCV(
        k,
        selector=selector,
        sizes=None if search.max_features is None else range(1, search.max_features + 1),
        scoring=scoring,
        preprocess=None if samples.preprocess is None else NamedImputer(samples.preprocess, samples.feature_names),
        random_state=settings.search.seed,
        n_jobs=settings.run.n_jobs,
    )


def _rows(file: str, what: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of the lines of a file, which tabs separate, or commas if there are no tabs."""
    lines = read_lines(file)
    separator = "\t" if any("\t" in line for line in lines) else ","
    rows = [(number, [part.strip() for part in line.split(separator)]) for number, line in enumerate(lines, 1) if line]
    if not rows:
        raise click.UsageError(f"{file} is empty. Give {what} in each line.")
    for number, row in rows:
        if len(row) < 2:
            raise click.UsageError(f"{file}: line {number} has one column, {row[0][:60]!r}. Give {what} in each line.")
        yield number, row


def _costs(file: str) -> Iterator[tuple[str, float]]:
    """Yield features and their costs; the first line may be a header."""
    for number, (name, cost, *_) in _rows(file, "a feature, a tab and its cost"):
        try:
            yield name, float(cost)
        except ValueError:
            if number > 1:
                raise click.UsageError(f"{file}: line {number}: the cost {cost[:60]!r} is no number.") from None


def _groups(file: str) -> dict[str, list[str]]:
    """Return groups of features by name."""
    groups: dict[str, list[str]] = {}
    for _, (feature, group, *_) in _rows(file, "a feature, a tab and its group"):
        groups.setdefault(group, []).append(feature)
    return groups


def _sets(file: str) -> list[tuple[str, list[str]]]:
    """Return sets of features: a file has a set and a feature in each line, or the format GMT."""
    rows = [row for _, row in _rows(file, "a set, a tab and a feature")]
    first = 1 if all(len(row) == 2 for row in rows) else 2  # GMT has a description in the second column
    sets: dict[str, list[str]] = {}
    for row in rows:
        sets.setdefault(row[0], []).extend(name for name in row[first:] if name)
    return list(sets.items())


def _known(key: str, names: Any, known: Collection[str]) -> Any:
    """Return a dict or list without the features that the table does not have; a file may be for many tables."""
    left_out = [name for name in names if name not in known]
    if left_out and len(left_out) == len(names):
        raise click.UsageError(f"constraints.{key}: the table has none of its features, such as {left_out[0]!r}.")
    if left_out:
        note(f"constraints.{key}: {len(left_out)} features that the table does not have are left out.")
    return (
        {name: names[name] for name in names if name in known}
        if isinstance(names, dict)
        else [name for name in names if name in known]
    )
