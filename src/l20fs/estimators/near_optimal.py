"""All panels that are nearly as good as the best: the search, what they share, and the noise of their losses."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from l20fs.bounds.enumeration import Enumeration, enumerate_panels
from l20fs.bounds.support import has_ridge, support_loss
from l20fs.design import Walk, finish
from l20fs.inputs.names import Features
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.active_set import ActiveSet
from l20fs.solvers.greedy import swap
from l20fs.solvers.groups import make_active_set
from l20fs.text import counted, joined, small_percent
from l20fs.typing import Array

if TYPE_CHECKING:
    import pandas as pd

#: With ``tolerance="auto"`` the search begins with the first of these and goes on while time and numbers allow.
LEVELS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


class NearOptimalPanel(NamedTuple):
    """One of the near-optimal panels.

    Attributes
    ----------
    rank : int
        From 1, the best.
    features : array of int
        Its features, ascending.
    names : list of str
        Their names; the indices where there are no names.
    loss : float
        Its loss.
    gap : float
        How much that is above the lowest loss, as a share.
    """

    rank: int
    features: Array
    names: list[str]
    loss: float
    gap: float


@dataclass(frozen=True, eq=False, repr=False)
class NearOptimalPanels:
    """All panels whose loss is within a share of the lowest, and what they have in common.

    :func:`l20fs.inspection.near_optimal_panels` makes it. ``panels[i]`` as an object with names is ``found[i]``. Where the
    selector has groups of features, the lowest feature of a group stands for it in ``panels``.

    Attributes
    ----------
    panels : array of shape (n_listed, k)
        Features of each panel, ascending, the best panel first.
    losses : array of shape (n_listed,)
        Loss of each panel, ascending.
    tolerance : float
        Panels with a loss of at most ``1 + tolerance`` times the lowest are listed.
    is_complete : bool
        Whether it is proved that all of them were found.
    n_panels : int
        Number of panels that were found, also where not all of them are listed.
    counts : array of shape (n_features,)
        Number of found panels that contain each feature.
    in_none : array of int
        Features that are proved to be in no panel.
    lower_bound : float
        Proved: a panel that is not listed has at least this loss.
    noise : float
        Difference of two losses, as a share, that the samples cannot tell from zero.
    selected_loss : float
        Loss of the features that the selector selects.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> from l20fs.inspection import near_optimal_panels
    >>> X = np.random.default_rng(0).standard_normal((60, 5))
    >>> X[:, 4] = X[:, 0] + 0.01 * X[:, 4]
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> found = near_optimal_panels(L20Selector(2, ridge=1.0).fit(X, y), X, y, tolerance=0.01)
    >>> found
    NearOptimalPanels(2 panels of 2 features within 1 % of the lowest loss, all of them; 1 in all, 2 in some)
    >>> found.in_all, found.in_some, found.in_none
    (array([1]), array([0, 4]), array([2, 3]))
    >>> found.replacements()
    {0: {4: 1}, 4: {0: 1}}
    >>> found.without([0]).features
    array([1, 4])
    """

    panels: Array
    losses: Array
    tolerance: float
    is_complete: bool
    n_panels: int
    counts: Array
    in_none: Array
    lower_bound: float
    noise: float
    selected_loss: float
    _unit_of: Array
    _names: Array | None = None

    @property
    def in_all(self) -> Array:
        """Features in every panel."""
        return np.flatnonzero(self.counts == self.n_panels)

    @property
    def in_some(self) -> Array:
        """Features in some panels, but not in all."""
        return np.flatnonzero((self.counts > 0) & (self.counts < self.n_panels))

    def replacements(self) -> dict[int, dict[int, int]]:
        """Return which features can replace each other with everything else in the panel kept.

        Returns
        -------
        dict of dicts
            ``replacements()[i][j]`` is the number of listed panels with feature i that stay in the list if j replaces it.
            The most frequent replacement comes first.
        """
        sharing: dict[bytes, list[int]] = {}
        for panel in self.panels:
            for place, feature in enumerate(panel.tolist()):
                sharing.setdefault(np.delete(panel, place).tobytes(), []).append(feature)
        numbers: dict[int, dict[int, int]] = {}
        for features in sharing.values():
            for leaves in features:
                own = numbers.setdefault(leaves, {})
                for enters in features:
                    if enters != leaves:
                        own[enters] = own.get(enters, 0) + 1
        ordered = ((i, sorted(numbers[i].items(), key=lambda pair: (-pair[1], pair[0]))) for i in sorted(numbers))
        return {i: dict(pairs) for i, pairs in ordered if pairs}

    def without(self, features: Any) -> NearOptimalPanel:
        """Return the best listed panel that contains none of some features.

        Parameters
        ----------
        features : sequence of names or indices, or mask of shape (n_features,)
            Features that must not be in it.

        Returns
        -------
        NearOptimalPanel
            Its rank, features, names, loss and gap.
        """
        return self._first(self._n_held(features) == 0, "without", features)

    def containing(self, features: Any) -> NearOptimalPanel:
        """Return the best listed panel that contains all of some features.

        Parameters
        ----------
        features : sequence of names or indices, or mask of shape (n_features,)
            Features that must be in it.

        Returns
        -------
        NearOptimalPanel
            Its rank, features, names, loss and gap.
        """
        n_units = len(np.unique(self._unit_of[self._features.find_all("features", features)]))
        return self._first(self._n_held(features) == n_units, "containing", features)

    def cheapest(self, costs: Any) -> NearOptimalPanel:
        """Return the listed panel with the lowest sum of costs; of equal ones the one with the lowest loss.

        Parameters
        ----------
        costs : array of shape (n_features,) or dict of name or index: cost
            In a dict, features that are not named cost 1.

        Returns
        -------
        NearOptimalPanel
            Its rank, features, names, loss and gap.
        """
        return self[_first_smallest(self._sums("costs", costs, 1.0))]

    def most_stable(self, frequencies: Any) -> NearOptimalPanel:
        """Return the listed panel whose features were selected most often in resamples, on average.

        Parameters
        ----------
        frequencies : StabilitySelector, array of shape (n_features,) or dict of name or index: frequency
            A fitted :class:`~l20fs.StabilitySelector`, or how often each feature was selected.

        Returns
        -------
        NearOptimalPanel
            Its rank, features, names, loss and gap.
        """
        frequencies = getattr(frequencies, "frequencies_", frequencies)
        numbers = self._sums("costs", np.ones(len(self.counts)), 1.0)
        return self[_first_smallest(-self._sums("frequencies", frequencies, 0.0) / numbers)]

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the listed panels, best first.

        Returns
        -------
        DataFrame
            Columns ``rank``, ``loss``, ``gap`` and ``features``, a list of names or indices.
        """
        import pandas as pd

        listed = [self[number] for number in range(len(self))]
        columns = {"rank": "rank", "loss": "loss", "gap": "gap", "features": "names"}
        return pd.DataFrame({name: [getattr(panel, own) for panel in listed] for name, own in columns.items()})

    def __len__(self) -> int:
        return len(self.panels)

    def __getitem__(self, number: int) -> NearOptimalPanel:
        number = range(len(self.panels))[number]
        features = np.flatnonzero(np.isin(self._unit_of, self._unit_of[self.panels[number]]))
        names = [str(feature if self._names is None else self._names[feature]) for feature in features]
        best, loss = float(self.losses[0]), float(self.losses[number])
        return NearOptimalPanel(number + 1, features, names, loss, max(loss / best - 1.0, 0.0) if best else 0.0)

    def __repr__(self) -> str:
        noun = "feature or group" if len(np.unique(self._unit_of)) < len(self._unit_of) else "feature"
        n_all, n_some = (len(np.unique(self._unit_of[features])) for features in (self.in_all, self.in_some))
        if not self.is_complete:
            proved = "the search was stopped"
        else:
            proved = "all of them" if len(self) == self.n_panels else f"all counted, {len(self)} listed"
        return (
            f"NearOptimalPanels({counted(self.n_panels, 'panel')} of {counted(self.panels.shape[1], noun)} within "
            f"{small_percent(self.tolerance)} of the lowest loss, {proved}; {n_all} in all, {n_some} in some)"
        )

    @property
    def _features(self) -> Features:
        return Features(len(self.counts), self._names)

    def _n_held(self, features: Any) -> Array:
        """Return how many of the units of some features each listed panel has."""
        units = self._unit_of[self._features.find_all("features", features)]
        return np.isin(self._unit_of[self.panels], units).sum(axis=1)

    def _first(self, is_right: Array, what: str, features: Any) -> NearOptimalPanel:
        if not is_right.any():
            named = joined([self._features.called(row) for row in self._features.find_all("features", features)])
            raise ValueError(f"No listed panel is {what} {named}. Use a larger tolerance, or fit with constraints.")
        return self[int(is_right.argmax())]

    def _sums(self, name: str, values: Any, others: float) -> Array:
        """Add up a value per feature over each listed panel."""
        if not isinstance(values, Mapping) and np.shape(values) != self.counts.shape:
            raise ValueError(f"{name} has the shape {np.shape(values)} for {len(self.counts)} features. Give one each.")
        found = self._features.numbers(name, values, others)
        return np.bincount(self._unit_of, weights=found)[self._unit_of[self.panels]].sum(axis=1)


def _first_smallest(values: Array) -> int:
    """Return the place of the smallest value; of those that are equal up to rounding the first."""
    return int(np.argmax(values <= values.min() + 1e-12 * np.abs(values).max(initial=0.0)))


def find_panels(
    problem: Problem,
    penalty: RowPenalty,
    units: Array,
    *,
    tolerance: float | None = None,
    max_panels: int = 10_000,
    time_limit: float | None = None,
    names: Array | None = None,
) -> NearOptimalPanels:
    """List all panels whose loss is at most ``1 + tolerance`` times that of the best.

    Parameters
    ----------
    problem : Problem
        The data term, with a ridge term.
    penalty : RowPenalty
        Units of features, those that are included or excluded, and the rules that a panel must meet.
    units : array of int
        Units of a good panel; others have as many.
    tolerance : float, optional
        None: the largest of :data:`LEVELS` below the noise, or the noise itself, for which all panels are found.
    max_panels, time_limit
        Panels that are listed, and seconds, at most.
    names : array of shape (n_features,), optional
        Names of the features.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> X, Y = np.diag([1.0, 2.0, 1.0, 3.0]), np.eye(4)[:, [1, 3]]
    >>> problem, penalty = make_problem(X, Y, ridge=1.0), RowPenalty.plain(4)
    >>> find_panels(problem, penalty, np.array([0, 1]), tolerance=0.01).panels
    array([[1, 3]])
    """
    if not has_ridge(problem):
        raise ValueError(
            f"ridge={problem.relative_ridge:g} is too weak to prove anything about other panels: the bounds depend on it. "
            "Fit with a larger ridge, for example 1."
        )
    deadline = math.inf if time_limit is None else time.monotonic() + time_limit
    units = np.unique(units)
    selected_loss = _loss(problem, penalty, units)
    units = better_panel(problem, penalty, units)
    noise = loss_noise(problem, penalty, units)
    levels = [*(level for level in LEVELS if level < noise), noise] if tolerance is None else [tolerance]
    kept: tuple[float, Enumeration] | None = None
    for level in levels:
        found = enumerate_panels(
            problem,
            len(units),
            eps=level,
            penalty=penalty,
            support=np.sort(penalty.rows_of(units)),
            max_panels=max_panels,
            time_limit=None if time_limit is None else max(0.0, deadline - time.monotonic()),
        )
        is_whole = found.is_complete and found.n_panels <= max_panels
        if kept is None or is_whole:
            kept = level, found
        if not is_whole:
            break
        units = found.panels[0]
    assert kept is not None
    level, found = kept
    is_possible = found.counts > 0
    if not found.is_complete:
        is_possible[found.candidates] = True
    return NearOptimalPanels(
        panels=np.unique(penalty.unit_of, return_index=True)[1][found.panels],
        losses=found.losses,
        tolerance=level,
        is_complete=found.is_complete,
        n_panels=found.n_panels,
        counts=found.counts[penalty.unit_of],
        in_none=np.flatnonzero(~is_possible[penalty.unit_of]),
        lower_bound=found.lower_bound,
        noise=noise,
        selected_loss=selected_loss,
        _unit_of=penalty.unit_of,
        _names=names,
    )


def better_panel(problem: Problem, penalty: RowPenalty, units: Array) -> Array:
    """Return the better of a panel and of what exchanges find at its size.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> X, Y = np.diag([1.0, 2.0, 1.0, 3.0]), np.eye(4)[:, [1, 3]]
    >>> better_panel(make_problem(X, Y, ridge=1.0), RowPenalty.plain(4), np.array([0, 1]))
    array([1, 3])
    """
    k = len(units)
    path = finish(swap(problem, k, sizes=[k], penalty=penalty))
    other = np.union1d(penalty.unit_of[path.stage_rows(-1)], penalty.included)
    if len(other) < k or not (penalty.rules is None or penalty.rules.allows(other)):
        return units
    panels = [np.asarray(panel, dtype=np.intp) for panel in (units, other)]
    return min(panels, key=lambda panel: _loss(problem, penalty, panel))


def _loss(problem: Problem, penalty: RowPenalty, units: Array) -> float:
    return support_loss(problem, np.sort(penalty.rows_of(units)))


def loss_noise(problem: Problem, penalty: RowPenalty, units: Array) -> float:
    r"""Return the difference of losses that the samples cannot tell from zero, as a share of the loss of a panel.

    It is the median, over the neighbours S' of the panel S, of the standard error of h(S) - h(S'): a neighbour has the best
    other unit in place of one of S. To first order, a sample i that counts :math:`\delta` times more changes h(S) by
    :math:`\delta \tfrac12 \|r_i\|^2` with r its residual, since the weights and the intercept minimise f. With d the
    differences of these numbers between S and S', resamples of n samples give differences of h whose variance is

    .. math:: \sum_i (d_i - \bar d)^2.

    Parameters
    ----------
    problem : Problem
        The data term.
    penalty : RowPenalty
        Units of features, and the rules that a panel must meet.
    units : array of int
        Units of the panel.

    Returns
    -------
    float
        The share; 0 if the panel has no neighbours.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((100, 4))
    >>> problem = make_problem(X, X[:, :1] + random.standard_normal((100, 1)), ridge=1.0)
    >>> 0.05 < loss_noise(problem, RowPenalty.plain(4), np.array([0])) < 0.2
    True
    """
    active = make_active_set(problem, penalty)
    errors, *others = finish(_errors_with_neighbours(active, units))
    loss, sample_weight = active.loss, problem.design.sample_weights.values
    spreads = [_spread(errors - those, sample_weight) for those in others]
    return float(np.median(spreads)) / loss if spreads and loss > 0.0 else 0.0


def _errors_with_neighbours(active: ActiveSet, units: Array) -> Walk[list[Array]]:
    """Return the squared errors of the samples for a panel, and for each with the best other unit in place of one."""
    yield from active.start(units)
    rules, found = active.penalty.rules, [_sample_errors(active)]
    for _ in range(active.n_fixed, len(active)):
        leaves = active.units[active.n_fixed]
        yield from active.remove(active.n_fixed)
        gains = active.place.fetch(active.gains()).copy()
        gains[leaves] = 0.0
        for enters in np.argsort(-gains, kind="stable")[: np.count_nonzero(gains)].tolist():
            if rules is None or rules.allows([*active.units, enters]):
                yield from active.add(enters)
                found.append(_sample_errors(active))
                yield from active.remove(len(active) - 1)
                break
        yield from active.add(leaves)
    return found


def _sample_errors(active: ActiveSet) -> Array:
    """Return half the squared error of each sample."""
    residual = active.problem.residual(np.array(active.rows, dtype=np.intp), active.weights())
    return 0.5 * np.einsum("ij,ij->j", residual, residual)


def _spread(differences: Array, sample_weight: Array | None) -> float:
    """Return the standard error of a sum over samples; a sample of weight w counts as w samples."""
    weights = np.ones(len(differences)) if sample_weight is None else sample_weight
    each = np.divide(differences, weights, out=np.zeros_like(differences), where=weights > 0.0)
    mean = float(weights @ each) / float(weights.sum())
    return math.sqrt(float(weights @ np.square(each - mean)))
