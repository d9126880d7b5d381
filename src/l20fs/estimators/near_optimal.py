"""Search for all panels that are nearly as good as the best, and the noise of their losses."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from l20fs.bounds.enumeration import Enumeration, enumerate_panels
from l20fs.bounds.support import has_ridge, support_loss
from l20fs.design import Walk, finish
from l20fs.estimators.frames import is_lazy
from l20fs.estimators.panel_atlas import PanelAtlas
from l20fs.inputs.validation import check_number
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.solvers.active_set import ActiveSet
from l20fs.solvers.greedy import swap
from l20fs.solvers.groups import make_active_set
from l20fs.typing import Array

#: Without an eps of the user's, the search begins with the first of these and goes on while time and numbers allow.
LEVELS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


class FittedOn:
    """Samples that a selector was fitted on: X by a weak reference, which keeps nothing in memory.

    Examples
    --------
    >>> X = np.eye(3)
    >>> data = FittedOn(X, [0, 1, 1])
    >>> data.X is X
    True
    >>> del X
    >>> data.X is None
    True
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, adjust_for: Any = None) -> None:
        try:
            self._reference: Callable[[], Any] = weakref.ref(X)
        except TypeError:  # a list, or nothing
            self._reference = lambda: X
        self.y, self.sample_weight, self.adjust_for = y, sample_weight, adjust_for

    @property
    def X(self) -> Any:
        return self._reference()

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y, self.sample_weight, self.adjust_for))


#: What a selector has that was loaded from a file, or copied.
NOTHING = FittedOn(None, None)


class SearchLimits(NamedTuple):
    """Limits of a search: the share above the best loss, or None, the number of panels, and the seconds, or None."""

    eps: float | None
    max_panels: int
    seconds: float | None

    @classmethod
    def checked(cls, eps: float | str | None, max_panels: Any, time_limit: Any) -> SearchLimits:
        """Return the limits that a user gives, if they are valid."""
        check_number("max_panels", max_panels, minimum=1, strict=False, whole=True)
        if time_limit is not None:
            check_number("time_limit", time_limit, minimum=0.0, strict=False)
        return cls(share_of(eps), int(max_panels), time_limit)


def refuse_without_atlas(loss: str, X: Any) -> None:
    """Raise an error where near-optimal panels cannot be listed."""
    if loss != "squared":
        raise ValueError(
            f"near_optimal with loss={loss!r} is not available: the bounds are those of squares. Fit with loss='squared'."
        )
    if X is None:
        raise ValueError(
            "near_optimal needs the samples of the fit, which are no longer in memory, or were not stored with this copy. "
            "Give them again, as in near_optimal(X=X, y=y)."
        )
    if is_lazy(X):
        raise ValueError("near_optimal is not available for X in blocks. Load X into memory.")


def refuse_other_samples(path: SolutionPath, problem: Problem) -> None:
    """Raise an error for samples that are not those of the fit."""
    pairs = ((path.x_mean, problem.design.mean), (path.x_scale, problem.design.scale), (path.y_mean, problem.y_mean))
    if not all(ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-6) for ours, theirs in pairs):
        raise ValueError(
            "near_optimal needs the samples of the fit, but X, y, sample_weight or adjust_for differ from it. Give those of "
            "the fit, or fit again."
        )


def find_panels(
    problem: Problem, penalty: RowPenalty, units: Array, limits: SearchLimits, names: Array | None = None
) -> PanelAtlas:
    """List all panels whose loss is at most ``1 + eps`` times that of the best.

    Parameters
    ----------
    problem : Problem
        The data term, with a ridge term.
    penalty : RowPenalty
        Units of features, those that are included or excluded, and the rules that a panel must meet.
    units : array of int
        Units of a good panel; others have as many.
    limits : SearchLimits
        Without an eps, the largest of :data:`LEVELS` below the noise, or the noise itself, for which all panels are found.
    names : array of shape (n_features,), optional
        Names of the features.

    Returns
    -------
    PanelAtlas
        The panels, best first.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> X, Y = np.diag([1.0, 2.0, 1.0, 3.0]), np.eye(4)[:, [1, 3]]
    >>> problem, penalty = make_problem(X, Y, ridge=1.0), RowPenalty.plain(4)
    >>> find_panels(problem, penalty, np.array([0, 1]), SearchLimits(0.01, 10, None)).panels
    array([[1, 3]])
    """
    if not len(units):
        raise ValueError(
            "near_optimal: no feature is selected, so there are no panels to compare. Fit with a smaller alpha."
        )
    refuse_weak_ridge(problem)
    deadline = math.inf if limits.seconds is None else time.monotonic() + limits.seconds
    units = np.unique(units)
    selected_loss = _loss(problem, penalty, units)
    units = better_panel(problem, penalty, units)
    noise = loss_noise(problem, penalty, units)
    levels = [*(level for level in LEVELS if level < noise), noise] if limits.eps is None else [limits.eps]
    kept: tuple[float, Enumeration] | None = None
    for eps in levels:
        found = enumerate_panels(
            problem,
            len(units),
            eps=eps,
            penalty=penalty,
            support=np.sort(penalty.rows_of(units)),
            max_panels=limits.max_panels,
            time_limit=None if limits.seconds is None else max(0.0, deadline - time.monotonic()),
        )
        is_whole = found.is_complete and found.n_panels <= limits.max_panels
        if kept is None or is_whole:
            kept = eps, found
        if not is_whole:
            break
        units = found.panels[0]
    assert kept is not None
    eps, found = kept
    heads = np.unique(penalty.unit_of, return_index=True)[1]
    is_possible = found.counts > 0
    if not found.is_complete:
        is_possible[found.candidates] = True
    return PanelAtlas(
        panels=heads[found.panels],
        losses=found.losses,
        eps=eps,
        n_panels=found.n_panels,
        is_complete=found.is_complete,
        lower_bound=found.lower_bound,
        n_nodes=found.n_nodes,
        noise=noise,
        selected_loss=selected_loss,
        counts=found.counts[penalty.unit_of],
        is_possible=is_possible[penalty.unit_of],
        unit_of=penalty.unit_of,
        feature_names=names,
    )


def refuse_weak_ridge(problem: Problem) -> None:
    """Raise an error for a problem without a ridge term, for which there are no bounds."""
    if not has_ridge(problem):
        raise ValueError(
            f"ridge={problem.relative_ridge:g} is too weak to prove anything about other panels: the bounds depend on it. "
            "Fit with a larger ridge, for example 1."
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


def share_of(eps: float | str | None) -> float | None:
    """Return eps as a share: a number, or a text such as ``"0.1%"``.

    Examples
    --------
    >>> share_of(0.001), share_of("0.1%"), share_of("0.1 %"), share_of(None)
    (0.001, 0.001, 0.001, None)
    """
    if eps is None:
        return None
    if isinstance(eps, str):
        number = eps.strip().removesuffix("%")
        try:
            eps = float(number) / (100.0 if number != eps.strip() else 1.0)
        except ValueError:
            raise ValueError(f"eps={eps!r} is not valid. Use a number such as 0.001, or a text such as '0.1%'.") from None
    check_number("eps", eps, minimum=0.0, strict=False, most=10.0)
    return float(eps)
