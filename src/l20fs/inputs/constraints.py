"""Constraints on the selection: what is in it or not, groups and costs of features, and what a panel must have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from l20fs.inputs.names import Features
from l20fs.inputs.parameter_object import ParameterObject
from l20fs.inputs.validation import LARGEST_NUMBER, LEAST_NUMBER, check_number
from l20fs.text import closest_hint, counted
from l20fs.typing import Array


class Limit(NamedTuple):
    """Limits of the sum of some features in a panel, and its name in messages."""

    name: str
    features: Array
    weights: Array
    lower: float
    upper: float


@dataclass(repr=False, eq=False, kw_only=True)
class Constraints(ParameterObject):
    """Constraints that every selection meets, for the parameter ``constraints`` of :class:`~l20fs.L20Selector`.

    Features are given by name or index.

    Parameters
    ----------
    include : sequence of names or indices, mask of shape (n_features,), or None, default=None
        Features that are always selected, ranked first. They count in the number of features and in all limits.
    exclude : sequence of names or indices, mask of shape (n_features,), or None, default=None
        Features that are never selected.
    groups : array of shape (n_features,) of labels, list of lists, dict of name: list, or None, default=None
        Features that are selected together or not at all; those not mentioned stand alone. The number of features then
        counts groups and features that stand alone. A group is included, or excluded, if one of its features is.
    costs : array of shape (n_features,), dict of name or index: cost, or None, default=None
        Cost of each feature, 1 where none is given. With ``budget``: what the limit adds up. Without: what lambda is
        multiplied by, so that a feature of cost 2 has to bring twice as much; 0 includes it, infinity excludes it.
    budget : float or None, default=None
        What the selected features may cost together.
    min_per_class : int, dict of label: int, or None, default=None
        Least number of selected features of each class. A feature belongs to the class in which its mean is highest in the
        samples of the fit, or to the first of several. With ``sets``: of each set.
    max_per_class : int, dict of label: int, or None, default=None
        Largest number of selected features of each class or set.
    sets : dict of name: list of names or indices, or None, default=None
        Sets in place of the classes: pathways, chromosomes, pools of an assay. They may overlap, and a feature may be in
        none.
    exclusive : list of lists of names or indices, or None, default=None
        Features of which at most one is selected.

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

    include: Any = None
    exclude: Any = None
    groups: Any = None
    costs: Any = None
    budget: float | None = None
    min_per_class: Any = None
    max_per_class: Any = None
    sets: Any = None
    exclusive: Any = None

    @property
    def limit_panels(self) -> bool:
        """Whether the panel as a whole has limits."""
        limits = (self.budget, self.min_per_class, self.max_per_class, self.exclusive)
        return any(given is not None for given in limits)

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
        if self.sets is not None:
            if not isinstance(self.sets, Mapping):
                raise ValueError(f"sets={self.sets!r} is no dict. Give one of name: list of features.")
            if self.min_per_class is None and self.max_per_class is None:
                raise ValueError("sets without min_per_class or max_per_class limit nothing. Give one of them, or no sets.")
        if self.exclusive is not None and (isinstance(self.exclusive, str | Mapping) or not _are_lists(self.exclusive)):
            raise ValueError(f"exclusive={self.exclusive!r} is no list of lists. Give lists of names or indices.")

    def by_index(self, features: Features) -> Constraints:
        """Return the same constraints with features by index, and a group and a cost for each feature where there are any.

        Parameters
        ----------
        features : Features
            Names and number of the features.

        Returns
        -------
        Constraints
            The same ones.
        """
        changes: dict[str, Any] = {}
        for name in ("include", "exclude"):
            if getattr(self, name) is not None:
                changes[name] = features.find_all(name, getattr(self, name))
        if self.groups is not None:
            changes["groups"] = _labels(features, self.groups)
        if self.costs is not None:
            changes["costs"] = self._checked_costs(features)
        if self.exclusive is not None:
            changes["exclusive"] = [
                features.find_all(f"exclusive[{number}]", rows) for number, rows in enumerate(self.exclusive)
            ]
        if self.sets is not None:
            changes["sets"] = {name: features.find_all(f"sets[{name!r}]", rows) for name, rows in self.sets.items()}
        return Constraints(**self.get_params(deep=False) | changes)

    def _checked_costs(self, features: Features) -> Array:
        costs = features.numbers("costs", self.costs)
        if self.budget is not None:
            is_bad, rule = ~((costs >= 0.0) & (costs < np.inf)), "a finite number of at least 0"
        else:
            is_bad = ~((costs == 0.0) | (costs == np.inf) | ((costs >= LEAST_NUMBER) & (costs <= LARGEST_NUMBER)))
            limits = f"{LEAST_NUMBER:g} to {LARGEST_NUMBER:g}"
            rule = f"a number of at least 0: 0 includes, infinity excludes, others lie from {limits}"
        if is_bad.any():
            row = int(is_bad.argmax())
            raise ValueError(f"costs={costs[row]:g} of {features.called(row)} is not valid. Use {rule}.")
        return costs

    def placed(self, places: Array) -> Constraints:
        """Return constraints by index for columns in other places.

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

        def moved(rows: list[int] | None) -> list[int] | None:
            return None if rows is None else [column_of[row] for row in rows if row in column_of]

        is_new, alone = places < 0, -1 - np.arange(len(places))
        changes = {
            "include": moved(self.include),
            "exclude": moved(self.exclude),
            "groups": None if self.groups is None else np.where(is_new, alone, self.groups[places]),
            "costs": None if self.costs is None else np.where(is_new, 1.0, self.costs[places]),
            "exclusive": None if self.exclusive is None else [moved(rows) for rows in self.exclusive],
            "sets": None if self.sets is None else {name: moved(rows) for name, rows in self.sets.items()},
        }
        return Constraints(**self.get_params(deep=False) | changes)

    def included(self) -> list[int]:
        """Return the features that are included themselves, from constraints by index.

        Returns
        -------
        list of int
            Their indices.
        """
        costs = None if self.budget is not None else self.costs
        free = [] if costs is None else np.flatnonzero(costs == 0.0).tolist()
        return sorted({*(self.include or ()), *free})

    def units(self, varies: Array, features: Features) -> tuple[Array, Array]:
        """Return a label of its group and a factor of lambda for each feature, from constraints by index.

        The factor is 0 for included features and infinite for excluded ones.

        Parameters
        ----------
        varies : array of shape (n_features,)
            Mask of the features that are not constant. A constant one has no cost and belongs to no group, unless it is
            included itself.
        features : Features
            Names for messages.

        Returns
        -------
        tuple of two arrays of shape (n_features,)
            Labels and factors.
        """
        n_features = features.n_features
        factors = np.ones(n_features) if self.costs is None or self.budget is not None else self.costs.copy()
        labels = np.arange(n_features) if self.groups is None else self.groups.copy()
        included, excluded = np.zeros(n_features, dtype=bool), factors == np.inf
        included[self.included()] = True
        excluded[self.exclude or []] = True
        # A group is included or excluded as a whole.
        is_in, is_out = np.isin(labels, labels[included]), np.isin(labels, labels[excluded])
        if (is_in & is_out).any():
            _refuse_contradiction(features, labels, included, excluded)
        factors = np.where(is_in, 0.0, np.where(is_out, np.inf, factors))
        stands_alone = ~varies & ~included
        factors[stands_alone & is_in] = 1.0
        labels[stands_alone] = labels.max() + 1 + np.flatnonzero(stands_alone)
        return labels, factors

    def limits(self, n_features: int, classes: Array | None = None, class_of: Array | None = None) -> list[Limit]:
        """Return the limits that constraints by index set.

        Parameters
        ----------
        n_features : int
            Number of features.
        classes : array of shape (n_classes,), optional
            Labels in sorted order.
        class_of : array of shape (n_features,), optional
            Index of the class of each feature; -1 if it belongs to none.

        Returns
        -------
        list of Limit
            One for each class or set with a limit, for the budget, and for each list of exclusive features.
        """
        members: Mapping[Any, Any] = self.sets or {}
        if classes is not None and class_of is not None and self.sets is None:
            members = {label: np.flatnonzero(class_of == place) for place, label in enumerate(classes.tolist())}
        limits = []
        for name, is_lower in (("min_per_class", True), ("max_per_class", False)):
            for label, limit in self._limit_of(name, members).items():
                lower, upper = (float(limit), np.inf) if is_lower else (0.0, float(limit))
                limits.append(_count(f"{name} of {self._owner} {label!r}", members[label], lower, upper))
        if self.budget is not None:
            costs = np.ones(n_features) if self.costs is None else self.costs
            limits.append(Limit("budget", np.arange(n_features), costs, 0.0, float(self.budget)))
        limits += [_count(f"exclusive[{number}]", rows, 0.0, 1.0) for number, rows in enumerate(self.exclusive or [])]
        return limits

    @property
    def _owner(self) -> str:
        return "class" if self.sets is None else "set"

    def _limit_of(self, name: str, members: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return the limit of each class or set."""
        given = getattr(self, name)
        if not isinstance(given, Mapping):
            return {} if given is None else dict.fromkeys(members, given)
        for label in given:
            if members and label not in members:
                same = [each for each in members if str(each) == str(label)]  # 0 and "0"
                hint = f"Give {same[0]!r}." if same else closest_hint(str(label), [str(each) for each in members])
                raise ValueError(f"{name} names {label!r}, which is no {self._owner}. {hint}")
        return {label: limit for label, limit in given.items() if label in members}

    def sentence(self) -> str:
        """Describe the limits of a panel.

        Returns
        -------
        str
            Without a full stop; empty if there are none.

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


def _count(name: str, features: Any, lower: float, upper: float) -> Limit:
    rows = np.array(features, dtype=np.intp)
    return Limit(name, rows, np.ones(len(rows)), lower, upper)


def _labels(features: Features, given: Any) -> Array:
    """Return a group number per feature: the lowest feature of its group."""
    labels = np.arange(features.n_features)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ValueError(f"groups={given!r} is not a list. Give a label per feature, or lists of names or indices.")
    if not isinstance(given, Mapping):
        items = list(given)
        if not any(isinstance(item, Iterable) and not isinstance(item, str | bytes) for item in items):
            return _numbered(features, features.one_each("groups", given))
        given = dict(enumerate(items))
    group_of: dict[int, Any] = {}
    for group, members in given.items():
        rows = features.find_all(f"groups[{group!r}]", members)
        if not rows:
            raise ValueError(f"groups[{group!r}] is empty. Remove it, or give it features.")
        for row in rows:
            if row in group_of:
                raise ValueError(
                    f"groups has {features.called(row)} in two groups, {group_of[row]!r} and {group!r}. Groups must not "
                    "overlap: remove it from one, or merge the two."
                )
            group_of[row] = group
        labels[rows] = min(rows)
    return labels


def _numbered(features: Features, items: list[Any]) -> Array:
    """Number the labels of groups, given one per feature."""
    first: dict[Any, int] = {}
    for index, label in enumerate(items):
        if label is None or str(label) == "<NA>" or label != label:
            raise ValueError(f"groups has no label for {features.called(index)}. Give every feature a label.")
        first.setdefault(label, index)
    return np.array([first[label] for label in items])


def _refuse_contradiction(features: Features, labels: Array, included: Array, excluded: Array) -> None:
    label = np.intersect1d(labels[included], labels[excluded])[0]
    one, other = (int(np.flatnonzero(mask & (labels == label))[0]) for mask in (included, excluded))
    if one == other:
        raise ValueError(f"{features.called(one)} is both included and excluded. Choose one.")
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
    for key, given in estimator.get_params().items():
        if isinstance(given, Constraints):
            estimator.set_params(**{key: given.by_index(Features(len(names), names))})
    return estimator


def _are_lists(values: Any) -> bool:
    return isinstance(values, Iterable) and all(
        isinstance(value, Iterable) and not isinstance(value, str | bytes) for value in values
    )
