"""Constraints on panels: quotas per class or set, a budget, and features that exclude each other."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from l20fs.inputs.constraints import Features
from l20fs.inputs.parameter_object import ParameterObject
from l20fs.inputs.validation import check_number
from l20fs.text import closest_hint, counted
from l20fs.typing import Array


@dataclass(repr=False, eq=False, kw_only=True)
class Constraints(ParameterObject):
    """Constraints that every selected panel meets, for the parameter ``constraints`` of :class:`~l20fs.L20Selector`.

    Features are given by name or index. What is in ``include`` counts in all constraints. With ``feature_groups`` the
    members of a group count one by one.

    Parameters
    ----------
    min_per_class : int, dict of label: int, or None, default=None
        How many features of each class a panel has at least. A feature belongs to the class in which its mean is highest in
        the samples of the fit, or to the first of several. With ``sets``: how many of each set.
    max_per_class : int, dict of label: int, or None, default=None
        How many it has at most.
    budget : float or None, default=None
        What the features of a panel may cost together.
    costs : array of shape (n_features,), dict of name or index: cost, or None, default=None
        What each feature costs, 1 where none is given; ``penalty_factor`` makes features dearer without a limit.
    exclusive : list of lists of names or indices, or None, default=None
        Features of which a panel has at most one.
    sets : dict of name: list of names or indices, or None, default=None
        Sets that take the place of the classes: pathways, chromosomes, pools of an assay. They may overlap, and a feature
        may be in none.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> from l20fs.data import load_srbct
    >>> X, y = load_srbct().data, load_srbct().target
    >>> selector = L20Selector(12, constraints=Constraints(min_per_class=3)).fit(X, y)
    >>> means = np.array([X[y == label][:, selector.support_].mean(axis=0) for label in selector.classes_])
    >>> np.bincount(means.argmax(axis=0)).tolist()
    [3, 3, 3, 3]
    """

    min_per_class: Any = None
    max_per_class: Any = None
    budget: float | None = None
    costs: Any = None
    exclusive: Any = None
    sets: Any = None

    @property
    def are_empty(self) -> bool:
        """Whether nothing is constrained."""
        wishes = (self.min_per_class, self.max_per_class, self.budget, self.costs, self.exclusive, self.sets)
        return all(wish is None for wish in wishes)

    @property
    def need_classes(self) -> bool:
        """Whether the classes of the samples play a part."""
        return self.sets is None and not (self.min_per_class is None and self.max_per_class is None)

    def check(self) -> None:
        """Refuse what makes no sense, whatever the data are."""
        for name in ("min_per_class", "max_per_class"):
            limits = getattr(self, name)
            for value in limits.values() if isinstance(limits, Mapping) else [] if limits is None else [limits]:
                check_number(name, value, minimum=0, strict=False, whole=True)
        if self.budget is not None:
            check_number("budget", self.budget, minimum=0.0)
        elif self.costs is not None:
            raise ValueError(
                "costs without a budget limit nothing. Give a budget too, or penalty_factor=costs, with which dear features "
                "have to bring more."
            )
        if self.sets is not None:
            if not isinstance(self.sets, Mapping):
                raise ValueError(f"sets={self.sets!r} is no dict. Give one of name: list of features.")
            if self.min_per_class is None and self.max_per_class is None:
                raise ValueError("sets without min_per_class or max_per_class limit nothing. Give one of them, or no sets.")
        if self.exclusive is not None and (isinstance(self.exclusive, str | Mapping) or not _are_lists(self.exclusive)):
            raise ValueError(f"exclusive={self.exclusive!r} is no list of lists. Give lists of names or indices.")

    def by_index(self, features: Features) -> Constraints:
        """Return the same constraints with features given by index.

        Parameters
        ----------
        features : Features
            Names and number of the features.

        Returns
        -------
        Constraints
            With indices in place of names.
        """
        return Constraints(
            min_per_class=self.min_per_class,
            max_per_class=self.max_per_class,
            budget=self.budget,
            costs=None if self.costs is None else features.numbers("costs", "cost", self.costs, _check_cost),
            exclusive=None if self.exclusive is None else self._exclusive(features),
            sets=None if self.sets is None else self._sets(features),
        )

    def placed(self, places: Array) -> Constraints:
        """Return the constraints, given by index, for columns in other places.

        Parameters
        ----------
        places : array of shape (n_columns,)
            Index of the feature in each column; -1 for columns without constraints.

        Returns
        -------
        Constraints
            For the columns; features that are in none of them are left out.
        """
        column_of = {int(place): column for column, place in enumerate(places) if place >= 0}

        def moved(rows: list[int]) -> list[int]:
            return [column_of[row] for row in rows if row in column_of]

        return Constraints(
            min_per_class=self.min_per_class,
            max_per_class=self.max_per_class,
            budget=self.budget,
            costs=None if self.costs is None else np.where(places < 0, 1.0, self.costs[places]),
            exclusive=None if self.exclusive is None else [moved(rows) for rows in self.exclusive],
            sets=None if self.sets is None else {name: moved(rows) for name, rows in self.sets.items()},
        )

    def limits(self, features: Features, classes: Array | None = None, class_of: Array | None = None) -> list[Limit]:
        """Return the limits that these constraints set.

        Parameters
        ----------
        features : Features
            Names and number of the features.
        classes : array of shape (n_classes,), optional
            Labels in sorted order.
        class_of : array of shape (n_features,), optional
            Index of the class of each feature; -1 if it belongs to none.

        Returns
        -------
        list of Limit
            One for each class or set with a limit, for the budget, and for each list of exclusive features.
        """
        if self.sets is not None:
            members = self._sets(features)
        elif classes is None or class_of is None:
            members = {}
        else:
            members = {label: np.flatnonzero(class_of == place).tolist() for place, label in enumerate(classes.tolist())}
        limits = []
        for name, is_lower in (("min_per_class", True), ("max_per_class", False)):
            for label, limit in self._limit_of(name, members).items():
                lower, upper = (float(limit), np.inf) if is_lower else (0.0, float(limit))
                rows = np.array(members[label], dtype=np.intp)
                limits.append(Limit(f"{name} of {self._owner} {label!r}", rows, np.ones(len(rows)), lower, upper))
        if self.budget is not None:
            costs = np.ones(features.n_features)
            if self.costs is not None:
                costs = features.numbers("costs", "cost", self.costs, _check_cost)
            limits.append(Limit("budget", np.arange(len(costs)), costs, 0.0, float(self.budget)))
        for number, those in enumerate([] if self.exclusive is None else self._exclusive(features)):
            limits.append(Limit(f"exclusive[{number}]", np.array(those, dtype=np.intp), np.ones(len(those)), 0.0, 1.0))
        return limits

    @property
    def _owner(self) -> str:
        return "class" if self.sets is None else "set"

    def _limit_of(self, name: str, members: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return the limit of each class or set."""
        given = getattr(self, name)
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            return dict.fromkeys(members, given)
        for label in given:
            if members and label not in members:
                same = [each for each in members if str(each) == str(label)]  # 0 and "0"
                hint = f"Give {same[0]!r}." if same else closest_hint(str(label), [str(each) for each in members])
                raise ValueError(f"{name} names {label!r}, which is no {self._owner}. {hint}")
        return {label: limit for label, limit in given.items() if label in members}

    def _sets(self, features: Features) -> dict[Any, list[int]]:
        return {name: features.find_all(f"sets[{name!r}]", rows) for name, rows in self.sets.items()}

    def _exclusive(self, features: Features) -> list[list[int]]:
        return [features.find_all(f"exclusive[{number}]", rows) for number, rows in enumerate(self.exclusive)]

    def sentence(self) -> str:
        """Say what the constraints are, in one sentence.

        Returns
        -------
        str
            Without a full stop; empty if nothing is constrained.

        Examples
        --------
        >>> Constraints(min_per_class=2, budget=100, exclusive=[["A", "B"]]).sentence()
        'at least 2 features of each class, costs of at most 100 together, at most one of features that exclude each other'
        """
        parts = []
        for limits, word in ((self.min_per_class, "at least"), (self.max_per_class, "at most")):
            if isinstance(limits, Mapping):
                parts += [f"{word} {limit} of {label!r}" for label, limit in limits.items()]
            elif limits is not None:
                parts.append(f"{word} {counted(limits, 'feature')} of each {self._owner}")
        if self.budget is not None:
            parts.append(f"costs of at most {self.budget:g} together")
        if self.exclusive is not None:
            parts.append("at most one of features that exclude each other")
        return ", ".join(parts)


class Limit(NamedTuple):
    """Limits of the sum of some features in a panel, and its name in messages."""

    name: str
    features: Array
    weights: Array
    lower: float
    upper: float


def _check_cost(value: Any, called: str) -> None:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not is_number or not 0.0 <= float(value) < np.inf:
        raise ValueError(f"costs={value!r} of {called} is not valid. Use a finite number of at least 0.")


def _are_lists(values: Any) -> bool:
    return isinstance(values, Iterable) and all(
        isinstance(value, Iterable) and not isinstance(value, str | bytes) for value in values
    )
