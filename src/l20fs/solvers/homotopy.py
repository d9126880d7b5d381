r"""Homotopy shared by HIHT and AHIHT: decreasing lambda with warm starts.

One step from W with the parameter L (equation 14 of the paper) is

.. math:: V = H_{2\lambda/L}\bigl(W - \nabla f(W) / L\bigr)

where H zeroes the rows whose squared norm is at most :math:`2 \lambda / L`, or :math:`2 \lambda c_u / L` for a unit of rows
that costs :math:`c_u` (see :mod:`l20fs.objective.row_penalty`). L is raised, always from the same W,
until the objective falls by at least :math:`\tfrac\eta2 \|W - V\|_F^2`.

A trial D = V - W asks for one thing, :math:`\tilde X' \tilde X D`: the curvature of f along D follows from it, and the
gradient at V if the step is taken.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from l20fs.design.driver import AmongRequest, GramRequest, Walk
from l20fs.design.matrix import squared_columns
from l20fs.inputs.validation import check_choice, check_number
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.objective.stage import Stage
from l20fs.solvers.base import Solver
from l20fs.solvers.initial_weights import starting_weights
from l20fs.typing import Array, Ranking

#: Squared step, per squared norm of W, up to which W counts as standing still. It is far above the rounding of W in float32,
#: and the same for all dtypes: otherwise rounding, or the dtype, would decide which lambdas are visited.
STANDSTILL = 1e-12

#: Factors closer to 1 would take millions of trials, or of lambdas.
LEAST_FACTOR, LARGEST_RATE = 1.01, 0.999

#: How many times below the bounds of the curvature of f, or above them, L may start: with a larger one W would not move.
FARTHEST = 1e8

#: Share of the threshold from which a row is looked at; the threshold itself decides, free of the rounding of this choice.
LOOKED_AT = 1.0 - 1e-6

#: Share of the threshold from which a row is in the neighbourhood, unless these are too many.
NEAR = 0.75


class Trial(NamedTuple):
    """Trial step: new ``values`` of the rows ``touched``, of which ``kept`` stay non-zero."""

    touched: Array
    kept: Array
    slope: Array
    change: Array
    values: Array
    squared_norms: Array
    squared_length: float


class Neighbourhood:
    """Rows that may be non-zero for a while, and all that steps among them change, which their Gram matrix tells.

    Attributes
    ----------
    rows : array of shape (n_rows,)
        Ascending.
    products : array of shape (n_targets, n_rows)
        Those of the rows, at the present W.
    change : array of shape (n_targets, n_rows)
        What W has changed by since the products of all features were known.
    reach : float
        At most the norm of X~ times this change, as a matrix: no product has changed by more, per length of its column.
    """

    def __init__(self, rows: Array, gram: Array, products: Array) -> None:
        self.rows, self._gram, self._start, self.products = rows, gram, products, products
        self.change, self.reach = np.zeros_like(products), 0.0

    def images(self, rows: Array, change: Array) -> Array:
        """Return ``D' X~' X~`` of a change D of some of these rows, at all of them."""
        return np.asarray(change @ self._gram[np.searchsorted(self.rows, rows)])

    def move(self, rows: Array, change: Array, images: Array) -> None:
        """Follow a change of W."""
        self.change[:, np.searchsorted(self.rows, rows)] += change
        self.products = self.products + images
        squares = (self.products - self._start) @ self.change.T
        # ||X~ D||^4 = ||Q||^2 <= ||Q Q||_F with Q = D' X~' X~ D: within a few per cent of an eigenvalue.
        size = float(np.abs(squares).max(initial=0.0)) or 1.0  # the squares of very large targets would overflow
        self.reach = math.sqrt(size) * float(np.linalg.norm((squares / size) @ (squares / size))) ** 0.25


class Iterate:
    """Current point of the homotopy, with L and its bounds.

    A zero row enters only if its product with the residual is above a threshold. So the products of all features are asked
    for now and then: between, steps need those of the rows in the neighbourhood, and the others can have changed by the
    length of their column times ``reach`` at most.

    Attributes
    ----------
    rows, values : arrays of shape (n_rows,) and (n_targets, n_rows)
        The non-zero rows of W, ascending.
    products : array of shape (n_targets, n_features)
        ``(X~ W - Y~)' X~``, where X is, as they were last asked for: the gradient of f without its ridge term.
    squared_norms : array of shape (n_features,)
        Those of ``products``.
    L, tried_L : float
        The step parameter, and what it was raised to by the last search.
    """

    def __init__(self, problem: Problem, penalty: RowPenalty, solver: HomotopySolver) -> None:
        self.problem, self.penalty = problem, penalty
        self.line_search_factor = float(solver.line_search_factor)
        lower = problem.lipschitz_lower
        self.L = self.tried_L = self._checked("lipschitz_start", solver.lipschitz_start, lower / FARTHEST, lower)
        self.eta = self._checked("eta", solver.eta, 0.0, 1e-4 * self.L)
        self.rows, self.values = np.arange(0), np.zeros((problem.n_targets, 0))
        self._lengths = problem.design.pull_norms()
        self._near: Neighbourhood | None = None
        # The Gram matrix of so many rows costs as much as the products of one step with all features.
        self._most_near = math.isqrt(problem.n_features * problem.n_targets)
        self._move_to(-problem.target_products)
        #: The largest lambda at which a unit enters at W = 0.
        self.largest_entry = self.entry_lambda()

    def _checked(self, name: str, given: float | None, least: float, default: float) -> float:
        """Return an option that is a curvature, or its default."""
        most = FARTHEST * self.problem.lipschitz_upper
        if given is None:
            return default
        if not least <= given <= most:
            raise ValueError(
                f"{name}={given!r} is not valid for this X. Use a number from {least:.1e} to {most:.1e}, or None."
            )
        return float(given)

    def start(self, weights: Array) -> Walk[None]:
        """Begin at given weights, (n_targets, n_features), instead of zero."""
        problem, penalty = self.problem, self.penalty
        # A constant feature has no effect, hence no reason to be selected.
        may_enter = penalty.may_enter(problem.design.varies)
        is_active = may_enter & weights.any(axis=0)
        if penalty.has_groups:  # a unit is non-zero as a whole
            is_active = may_enter & np.isin(penalty.unit_of, penalty.unit_of[is_active])
        self.rows, self.values = np.flatnonzero(is_active), weights[:, is_active]
        images = yield GramRequest(problem.design, self.rows, self.values)
        self._move_to(self.products + images)

    def _move_to(self, products: Any) -> None:
        place = self.problem.design.place
        self.products, self.squared_norms = products, place.fetch(squared_columns(products, place.xp))

    def settle(self) -> Walk[None]:
        """Ask for the products of all features at the present W."""
        near, self._near = self._near, None
        if near is not None and near.reach > 0.0:
            moved = np.flatnonzero(near.change.any(axis=0))
            images = yield GramRequest(self.problem.design, near.rows[moved], near.change[:, moved])
            self._move_to(self.products + images)

    def _at(self, rows: Array) -> Array:
        """Return the products of a few features at the present W, on the host."""
        if self._near is not None:
            return self._near.products[:, np.searchsorted(self._near.rows, rows)]
        place = self.problem.design.place
        return place.fetch(place.take(self.products, place.send(rows), axis=1))

    def step(self, lam: float) -> Walk[Trial]:
        """Search an acceptable step at ``lam`` and take it, unless it is zero."""
        trial = yield from self.propose(lam)
        while trial.squared_length > 0.0:
            near, touched = self._near, trial.touched
            if near is None:
                whole = yield GramRequest(self.problem.design, touched, trial.change)
                place = self.problem.design.place
                images = place.fetch(place.take(whole, place.send(touched), axis=1))
            else:
                own = near.images(touched, trial.change)
                images = own[:, np.searchsorted(near.rows, touched)]
            if self.is_good(trial, images, lam) or self.L >= self._ceiling:
                self.rows, self.values = touched[trial.kept], trial.values.compress(trial.kept, axis=1)
                if near is None:
                    self._move_to(self.products + whole)
                else:
                    near.move(touched, trial.change, own)
                break
            self.L = min(self.line_search_factor * self.L, self._next_bound())
            trial = yield from self.propose(lam)
        self.tried_L = self.L
        return trial

    def propose(self, lam: float) -> Walk[Trial]:
        """Compute the trial step with the current L."""
        problem, penalty, L = self.problem, self.penalty, self.L
        threshold = math.sqrt(2.0 * lam / L)
        touched = yield from self._touched(L * threshold)
        old = np.zeros((problem.n_targets, len(touched)))
        old[:, np.searchsorted(touched, self.rows)] = self.values
        slope = self._at(touched) + problem.ridge * old
        new = old - slope / L
        squared_norms = squared_columns(new, np)
        kept = penalty.is_heavy(squared_norms, threshold, touched)
        new *= kept
        change = new - old
        return Trial(touched, kept, slope, change, new, squared_norms, float(np.vdot(change, change)))

    def _touched(self, threshold: float) -> Walk[Array]:
        """Return the rows with weights, and those whose products may be above a threshold; all others stay zero."""
        near = self._near
        if near is not None:
            squares = np.square(np.sqrt(self.squared_norms) + near.reach * self._lengths)
            squares[near.rows] = squared_columns(near.products, np)
            touched = self._heavy(squares, LOOKED_AT * threshold)
            if np.isin(touched, near.rows, assume_unique=True).all():
                return touched
            yield from self.settle()
        touched = self._heavy(self.squared_norms, LOOKED_AT * threshold)
        if len(touched) <= self._most_near:
            share = NEAR
            while len(rows := self._heavy(self.squared_norms, share * threshold)) > self._most_near:
                share = 0.5 * (share + LOOKED_AT)
            gram = yield AmongRequest(self.problem.design, rows, None, exactly=True)
            self._near = Neighbourhood(rows, gram, self._at(rows))
        return touched

    def _heavy(self, squared_norms: Array, threshold: float) -> Array:
        """Return the rows with weights, and those above a threshold."""
        is_heavy = self.penalty.is_heavy(squared_norms, threshold)
        is_heavy[self.rows] = True
        if not self.penalty.is_plain:
            is_heavy &= self.problem.design.varies  # an included feature may be constant
        return np.flatnonzero(is_heavy)

    def is_good(self, trial: Trial, images: Array, lam: float) -> bool:
        """Say whether a step lowers the objective enough; ``images`` are ``D' X~' X~`` of its change D at its rows."""
        change, squared_length, cost_of = trial.change, trial.squared_length, self.penalty.cost_of
        # f(W + D) - f(W) = <gradient, D> + (||X D||^2 + mu ||D||^2) / 2, without the cancellation of two values of f.
        descent = -float(np.vdot(trial.slope, change))
        bend = 0.5 * (float(np.vdot(change, images)) + self.problem.ridge * squared_length)
        saved = lam * (cost_of(self.rows) - cost_of(trial.touched[trial.kept]))
        return descent - bend + saved >= 0.5 * self.eta * squared_length

    @property
    def _cap(self) -> float:
        """Upper bound of the curvature of f: every trial step with this L is acceptable."""
        return 1.01 * (self.problem.lipschitz + self.eta)

    @property
    def _ceiling(self) -> float:
        """Upper bound of L that also holds if the eigenvalue behind the cap is inexact."""
        return 1.01 * (self.problem.lipschitz_upper + self.eta)

    def _next_bound(self) -> float:
        return self._cap if self._cap > self.L else self._ceiling

    def entry_lambda(self) -> float:
        """Return the lambda below which a zero unit enters: the largest ``||gradient_u||^2 / (2 L c_u)`` of one.

        The products of all features are to be known: :meth:`settle`.
        """
        outside = self.squared_norms.copy()
        outside[self.rows] = 0.0
        return float(np.max(self.penalty.per_cost(outside), initial=0.0)) / (2.0 * self.tried_L)

    def stage(self, lam: float, trial: Trial, n_steps: int, converged: bool) -> Stage:
        """Describe the current point, which the last trial has reached, as the solution at ``lam``."""
        norms, cost = np.sqrt(trial.squared_norms[trial.kept]), self.penalty.cost_of(self.rows)
        return Stage(lam, self.rows, norms, self.loss(), self.L, n_steps, converged, trial.squared_length, cost)

    def loss(self) -> float:
        """Return f."""
        problem, rows, values, place = self.problem, self.rows, self.values, self.problem.design.place
        at_zero = place.fetch(place.take(problem.target_products, place.send(rows), axis=1))
        # f(W) = f(0) + <X~'(X~ W - Y~) - X~' Y~, W> / 2 + mu ||W||^2 / 2
        slope = self._at(rows) - at_zero + problem.ridge * values
        return max(0.0, problem.null_loss + 0.5 * float(np.vdot(slope, values)))

    def closeness(self) -> Array:
        """Return the norm of the gradient of each unit, per root of its cost, where all products are known."""
        squares = self.squared_norms.copy()
        squares[self.rows] = squared_columns(self._at(self.rows) + self.problem.ridge * self.values, np)
        return np.sqrt(self.penalty.per_cost(squares))


def _stands_still(stage: Stage) -> bool:
    return stage.squared_step <= STANDSTILL * float(stage.norms @ stage.norms)


def target_grid(start: float, target: float, rate: float) -> list[float]:
    """Return the lambdas from ``start`` down to ``target``, which comes last and is never left out.

    The number of factors is ``floor(ln(start / target) / ln(1 / rate))``, at least one, as the authors count it.

    Examples
    --------
    >>> target_grid(1.0, 0.05, 0.4)
    [1.0, 0.4, 0.16000000000000003, 0.05]
    """
    if target >= start:
        return [target]
    n_factors = max(1, math.floor(math.log(start / target) / math.log(1.0 / rate) + 1e-9))
    least = smallest_lambda(start, np.dtype(np.float64))
    return [lam for i in range(n_factors) if (lam := start * rate**i) > least] + [target]


def smallest_lambda(largest: float, dtype: np.dtype[Any]) -> float:
    """Return the lambda at which what is left of the gradient is rounding, if it is all there is at ``largest``."""
    return largest * (100.0 * float(np.finfo(dtype).eps)) ** 2


@dataclass(repr=False, eq=False, kw_only=True)
class HomotopySolver(Solver):
    """Options that the solvers which follow the gradient share."""

    alpha_start: float | None = None
    alpha_min: float | None = None
    rate: float = 0.9
    line_search_factor: float = 2.0
    eta: float | None = None
    lipschitz_start: float | None = None
    init: Any = "zeros"
    ranking: Ranking = "entry"
    random_state: Any = None

    @abstractmethod
    def _is_converged(self, trial: Trial) -> bool:
        """Say whether a lambda is done after a step."""

    @property
    @abstractmethod
    def _max_steps(self) -> int:
        """The number of steps per lambda at most."""

    def _report(self, stages: list[Stage]) -> None:
        """Warn of lambdas that were left before they were done."""

    def walk(
        self,
        problem: Problem,
        n_rows: int,
        *,
        penalty: RowPenalty | None = None,
    ) -> Walk[SolutionPath]:
        penalty = penalty or RowPenalty.plain(problem.n_features)
        iterate = Iterate(problem, penalty, self)
        weights = starting_weights(problem, self.init, self.random_state)
        if weights is not None:
            yield from iterate.start(weights)
        stages: list[Stage] = []
        for lam in self._lambdas(iterate, stages, n_rows):
            L_before, n_steps, converged = iterate.L, 0, False
            while n_steps < self._max_steps and not converged:
                trial = yield from iterate.step(lam)
                if trial.squared_length == 0.0:
                    # A standstill says nothing about the curvature: an L raised on the way to it would freeze the path.
                    iterate.L, converged = L_before, True
                else:
                    n_steps, converged = n_steps + 1, self._is_converged(trial)
            stages.append(iterate.stage(lam, trial, n_steps, converged))
            if _stands_still(stages[-1]):
                yield from iterate.settle()
        yield from iterate.settle()
        self._report(stages)
        path = SolutionPath.from_stages(problem, stages, iterate.values, iterate.closeness(), penalty)
        return path.ranked_by(self.ranking)

    def _lambdas(self, iterate: Iterate, stages: list[Stage], n_rows: int) -> Iterator[float]:
        """Yield the lambdas of the path; ``stages`` is filled by the caller between two of them."""
        problem, penalty = iterate.problem, iterate.penalty
        largest = iterate.largest_entry * (1.0 + 1e-6)
        lam, rate = largest if self.alpha_start is None else float(self.alpha_start), float(self.rate)
        if self.alpha_min is not None:
            yield from target_grid(lam, float(self.alpha_min), rate)
            return
        if largest == 0.0:
            yield problem.null_loss  # no feature has anything to do with the targets: the path is its empty stage
            return
        n_wanted = min(n_rows, penalty.n_selectable(problem.design.varies))
        smallest = smallest_lambda(largest, problem.dtype)
        has_been_sparse = False  # a random start has all rows; the path begins when the threshold has thinned them
        while lam > smallest or not stages:
            yield lam
            n_units = penalty.size_of(stages[-1].rows)
            if n_units < n_wanted:
                has_been_sparse = True
            elif has_been_sparse or n_units == len(penalty.included):
                return
            lam *= rate
            # Nothing moved, so nothing will before the next row enters: skip the idle lambdas.
            if _stands_still(stages[-1]):
                lam = min(lam, iterate.entry_lambda() * (1.0 - 1e-6))

    def check(self) -> None:
        check_number("line_search_factor", self.line_search_factor, minimum=LEAST_FACTOR, strict=False)
        check_number("rate", self.rate, minimum=0.0, most=LARGEST_RATE)
        check_choice("ranking", self.ranking, ("entry", "norm"))
        for name in ("alpha_start", "alpha_min", "eta", "lipschitz_start"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), minimum=0.0, strict=name != "eta")
        if isinstance(self.init, str) and self.init not in ("zeros", "gaussian", "uniform"):
            raise ValueError(
                f"init={self.init!r} is unknown. Use 'zeros', 'gaussian', 'uniform' or an array of shape (n_targets, "
                "n_features)."
            )

    def check_shape(self, n_targets: int, n_features: int) -> None:
        shape = (n_targets, n_features)
        if not isinstance(self.init, str) and np.shape(self.init) != shape:
            raise ValueError(f"init has the shape {np.shape(self.init)}; expected (n_targets, n_features) = {shape}.")
