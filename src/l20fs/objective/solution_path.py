"""Solution path: the solution at every lambda, and the ranking of all features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.inputs.devices import Place
from l20fs.objective.nested_rules import NestedRules, NestedSquares
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.path_ranking import RULES, Occupied, count_units, lift, score_rows, split_by_rules
from l20fs.objective.problem import Problem
from l20fs.objective.prox import order_descending
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.stage import Refit, Stage
from l20fs.prediction.discriminant import ClassScatter
from l20fs.typing import Array, Ranking

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class SolutionPath:
    """Solutions along lambda, and the ranking of the features for every k.

    k counts units: single features, or groups of features that are selected together (see
    :mod:`l20fs.objective.row_penalty`).

    Attributes
    ----------
    alphas : array of shape (n_stages,)
        The lambda of each stage, largest first.
    n_nonzero, losses, lipschitz, n_iters, converged : arrays of shape (n_stages,)
        Number of non-zero rows; f (half the squared error, plus the ridge term); the step parameter L, of solvers that
        have one; accepted steps; and whether the stage converged before its step limit.
    indptr : array of shape (n_stages + 1,)
        Stage s has the entries ``indptr[s]`` to ``indptr[s + 1] - 1`` of ``indices`` and ``norms``.
    indices, norms : arrays of shape (n_nonzero.sum(),)
        Non-zero rows, ascending, and their norms, stage after stage; see :meth:`stage_rows` and :meth:`stage_norms`.
    costs : array of shape (n_stages,)
        Factor of lambda: the number of non-zero rows, unless features have other costs.
    unit_of : array of shape (n_features,)
        Unit of each feature; units are numbered by their lowest feature.
    order : array of shape (n_features,)
        Feature indices, best first, the members of a unit side by side. Rule ``"included"``: always selected, ordered by
        the rules for weight and entry. ``"required"``: of the last stage, those with which constraints on panels are met
        from the least size on, ordered in the same way. ``"weight"``: non-zero in the last stage, by row norm. ``"entry"``:
        non-zero in the last stage, by the stage from which on they are non-zero, earliest first, and by row norm in that
        stage if several enter there.
        ``"path"``: non-zero in an earlier stage, the one that stayed longest first. ``"gradient"``: never non-zero, by the
        distance to entry. ``"constant"`` and ``"excluded"``, which are also those that do not fit beside the ones before
        them under constraints on panels: last. The norm of a unit is that of its rows together.
        Ties go to the lower index.
    rules : array of shape (n_features,)
        Position in :data:`RULES` of the rule that ranks each feature.
    scores : array of shape (n_features,)
        Scores, decreasing along ``order``: the row norm for rule ``"weight"``, above 0 and at most 1 for ``"entry"``,
        between -1 and 0 for ``"path"``, between -2 and -1 for ``"gradient"``, ``-inf`` for a constant or excluded feature;
        2 to 3 times the largest of all these for ``"required"``, and of these for ``"included"``. Norms are in the units
        after ``scale``.
    tie : array of shape ()
        Relative difference up to which two scores are tied.
    coef_rows : array of shape (n_rows,)
        Non-zero rows of the last stage, ascending.
    coef_values : array of shape (n_targets, n_rows)
        Weights of these rows in the units after ``scale``; :meth:`coef` gives them in units of X.
    x_mean, x_scale : arrays of shape (n_features,)
        Mean and divisor of each feature.
    y_mean, y_scale : arrays of shape (n_targets,)
        Mean of each target, and its factor: the square root of its weight in the loss.
    refit_triangle : array of shape (rank, n_refit)
        Triangular factor of the columns of the best ``n_refit`` features, from which :meth:`refit` solves; empty before
        :meth:`with_refits`. ``rank`` is ``n_refit``, or less if there are fewer samples and no ridge term.
    refit_targets : array of shape (rank, n_targets)
        Right-hand sides of that triangle.
    refit_losses : array of shape (n_refit + 1,)
        Loss of :meth:`refit` for each number of features, where that is not the f of the triangle: with ``loss="l21"``.
    ridge : array of shape ()
        Strength mu of the ridge term, in the units after ``scale``.
    null_loss : array of shape ()
        Value of f without features, W = 0; with ``loss="l21"`` that of the weighted squares.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> from l20fs.data import make_planted
    >>> X, y, informative = make_planted(n_samples=60, n_features=8, n_informative=2, n_classes=2)
    >>> path = L20Selector(2, solver="forward").fit(X, y).path_
    >>> path.n_nonzero.tolist()
    [0, 1, 2]
    >>> sorted(path.support(2).tolist()) == sorted(informative.tolist())
    True
    >>> path.refit(2).coef.shape
    (2, 8)
    """

    alphas: Array
    losses: Array
    lipschitz: Array
    n_iters: Array
    converged: Array
    indptr: Array
    indices: Array
    norms: Array
    rules: Array
    scores: Array
    coef_rows: Array
    coef_values: Array
    x_mean: Array
    x_scale: Array
    y_mean: Array
    y_scale: Array
    refit_triangle: Array
    refit_targets: Array
    refit_losses: Array
    ridge: Array
    null_loss: Array
    tie: Array
    costs: Array
    unit_of: Array

    @classmethod
    def from_stages(
        cls,
        problem: Problem,
        stages: Sequence[Stage],
        values: Array,
        closeness: Any,
        penalty: RowPenalty | None = None,
    ) -> SolutionPath:
        """Assemble a path, ranked by norm.

        Parameters
        ----------
        problem : Problem
            The data term that was minimised.
        stages : sequence of Stage
            Solution at each lambda, largest lambda first.
        values : array of shape (n_targets, n_rows)
            Weights of the rows of the last stage.
        closeness : array of shape (n_units,)
            Closeness to entry, at least 0, which ranks the units that were never non-zero; where X is.
        penalty : RowPenalty, optional
            Costs of the rows; 1 for each by default.

        Returns
        -------
        SolutionPath
            The path, without factors for refits.
        """
        penalty = penalty or RowPenalty.plain(problem.n_features)
        n_nonzero = np.array([len(stage.rows) for stage in stages])
        indices = np.concatenate([stage.rows for stage in stages])
        norms = np.concatenate([stage.norms for stage in stages])
        occupied = Occupied.of(n_nonzero, indices, norms, penalty.unit_of)
        design, place = problem.design, problem.design.place
        rules, scores = score_rows(occupied, place.fetch(closeness).astype(np.float64), design.varies, penalty)
        if penalty.has_groups:
            rules, scores = rules[penalty.unit_of], scores[penalty.unit_of]
        path = cls(
            alphas=np.array([stage.alpha for stage in stages]),
            losses=np.array([stage.loss for stage in stages]),
            lipschitz=np.array([stage.lipschitz for stage in stages]),
            n_iters=np.array([stage.n_steps for stage in stages]),
            converged=np.array([stage.converged for stage in stages]),
            indptr=np.concatenate([[0], np.cumsum(n_nonzero)]),
            indices=indices,
            norms=norms,
            rules=rules,
            scores=scores,
            coef_rows=stages[-1].rows,
            coef_values=values,
            x_mean=design.mean,
            x_scale=design.scale,
            y_mean=problem.y_mean,
            y_scale=problem.y_scale,
            refit_triangle=np.empty((0, 0)),
            refit_targets=np.empty((0, problem.n_targets)),
            refit_losses=np.empty(0),
            ridge=np.array(problem.ridge),
            null_loss=np.array(problem.null_loss),
            tie=np.array(problem.tie),
            costs=np.array([stage.price for stage in stages]),
            unit_of=penalty.unit_of,
        )
        return path._sorted_on(None if place.is_host else place)

    def _with(self, **changes: Array) -> SolutionPath:
        """Return this path with other arrays."""
        return replace(self, **changes)._sorted_on(vars(self).get("_place"))

    def _sorted_on(self, place: Place | None) -> SolutionPath:
        """Return this path, whose features are sorted on a device if there is one; not those of a file or a copy."""
        if place is not None:
            vars(self)["_place"] = place
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: vars(self)[each.name] for each in fields(self)}  # not what reading has cached

    def __repr__(self) -> str:
        return (
            f"SolutionPath({len(self.alphas)} lambdas from {self.alphas[0]:.4g} to {self.alphas[-1]:.4g}, "
            f"{self.n_nonzero[-1]} of {self.n_features} rows non-zero at the end)"
        )

    @cached_property
    def order(self) -> Array:
        """Feature indices, best first, the members of a unit side by side."""
        if self._has_groups:
            return np.argsort(self.ranking, kind="stable")
        order = np.empty_like(self.ranking)
        order[self.ranking - 1] = np.arange(len(order))
        return order

    @cached_property
    def ranking(self) -> Array:
        """Rank of the unit of each feature, from 1."""
        place, scores = vars(self).get("_place"), self._of_units(self.scores)
        if place is None:
            order = order_descending(scores, rtol=float(self.tie))
        else:
            order = place.fetch(order_descending(place.send(scores), rtol=float(self.tie)))
        is_excluded = self._of_units(self.rules == RULES.index("excluded"))[order]
        order = np.concatenate([order[~is_excluded], order[is_excluded]])
        ranks = np.empty(len(order), dtype=np.intp)
        ranks[order] = np.arange(1, len(order) + 1)
        return ranks[self.unit_of] if self._has_groups else ranks

    @cached_property
    def _heads(self) -> Array:
        """Lowest feature of each unit."""
        return np.unique(self.unit_of, return_index=True)[1]

    @property
    def _has_groups(self) -> bool:
        return self.n_units < self.n_features

    @cached_property
    def _occupied(self) -> Occupied:
        return Occupied.of(self.n_nonzero, self.indices, self.norms, self.unit_of)

    @property
    def n_features(self) -> int:
        """Number of features, including excluded and constant ones."""
        return len(self.scores)

    @property
    def is_nonzero(self) -> Array:
        """Mask of the rows that are non-zero in the last stage."""
        mask = np.zeros(self.n_features, dtype=bool)
        mask[self.coef_rows] = True
        return mask

    @property
    def is_selected(self) -> Array:
        """Mask of the features whose units are non-zero in the last stage, or included."""
        is_selected = self._is_in_every_panel.copy()
        last = self._occupied.last()[0]
        is_selected[last[np.isfinite(self._of_units(self.scores)[last])]] = True
        return is_selected[self.unit_of] if self._has_groups else is_selected

    @property
    def n_nonzero(self) -> Array:
        """Number of non-zero rows per stage."""
        return np.diff(self.indptr)

    @property
    def sizes(self) -> Array:
        """Number of selected units per stage; an included one counts even if its weights are zero."""
        is_included = self._of_units(self.rules == RULES.index("included"))
        stage_of = np.repeat(np.arange(len(self.alphas)), self._occupied.counts)
        n_free = np.bincount(stage_of, weights=~is_included[self._occupied.units], minlength=len(self.alphas))
        return n_free.astype(np.intp) + self.n_included

    @cached_property
    def n_included(self) -> int:
        """Number of units that are always selected."""
        return int(np.count_nonzero(self._of_units(self.rules == RULES.index("included"))))

    @cached_property
    def least_size(self) -> int:
        """Number of units of the smallest panel: those that are included, or required by constraints on panels."""
        return int(np.count_nonzero(self._is_in_every_panel))

    @cached_property
    def _is_in_every_panel(self) -> Array:
        """Mask of the units that are included or required."""
        rules = self._of_units(self.rules)
        return (rules == RULES.index("included")) | (rules == RULES.index("required"))

    @cached_property
    def n_selectable(self) -> int:
        """Number of units that are not excluded."""
        return self.n_units - int(np.count_nonzero(self._of_units(self.rules == RULES.index("excluded"))))

    @property
    def objectives(self) -> Array:
        """Value of f + lambda * cost per stage."""
        return self.losses + self.alphas * self.costs

    def stage_rows(self, stage: int) -> Array:
        """Return the non-zero rows of a stage.

        Parameters
        ----------
        stage : int
            Position of the stage; negative numbers count from the end.

        Returns
        -------
        array of shape (n_rows,)
            Feature indices, ascending.
        """
        return self.indices[self._span(stage)]

    def stage_norms(self, stage: int) -> Array:
        """Return the norms of the non-zero rows of a stage.

        Parameters
        ----------
        stage : int
            Position of the stage; negative numbers count from the end.

        Returns
        -------
        array of shape (n_rows,)
            Norms in the order of :meth:`stage_rows`, in the units after ``scale``.
        """
        return self.norms[self._span(stage)]

    def _span(self, stage: int) -> slice:
        stage = range(len(self.alphas))[stage]
        return slice(self.indptr[stage], self.indptr[stage + 1])

    def ranked_by(self, ranking: Ranking) -> SolutionPath:
        """Return this path with the rows of its last stage ranked by norm or by entry.

        Parameters
        ----------
        ranking : {"norm", "entry"}
            ``"norm"``: the largest row norm first. ``"entry"``: the row that is non-zero from the earliest stage on first.

        Returns
        -------
        SolutionPath
            The same solutions with other ``rules`` and ``scores``; this path if it is ranked so already.
        """
        wanted = RULES.index("weight" if ranking == "norm" else "entry")
        if (self.rules[self.coef_rows] == wanted).all():
            return self
        rules, scores = self._of_units(self.rules).copy(), self._of_units(self.scores).copy()
        is_included, is_required = rules == RULES.index("included"), rules == RULES.index("required")
        scores[is_included | is_required] = 0.0
        units, norms = self._occupied.last()
        is_ranked = rules[units] != RULES.index("excluded")  # some of them may not fit beside what constraints require
        rules[units[is_ranked]] = wanted
        scores[units[is_ranked]] = (norms if ranking == "norm" else self._entry_scores())[is_ranked]
        return self._with_first(rules, scores, is_included, is_required)

    def _with_first(self, rules: Array, scores: Array, is_included: Array, is_required: Array) -> SolutionPath:
        """Return this path with new rules and scores of the units, those that every panel has lifted above the others."""
        rules[is_required], rules[is_included] = RULES.index("required"), RULES.index("included")
        lift(scores, is_required)
        lift(scores, is_included)
        if self._has_groups:
            rules, scores = rules[self.unit_of], scores[self.unit_of]
        return self._with(rules=rules, scores=scores)

    def under(self, panel_rules: PanelRules, n_whole: int) -> SolutionPath:
        """Return this path with a ranking of which the first k units meet rules, for every k from the least size on.

        Parameters
        ----------
        panel_rules : PanelRules
            The rules that the last stage meets.
        n_whole : int
            Number of units that a panel shall be able to have.

        Returns
        -------
        SolutionPath
            The same solutions; units that the lower limits need come first (rule ``"required"``), and those that do not fit
            beside the ones before them are excluded.
        """
        rules, scores = self._of_units(self.rules).copy(), self._of_units(self.scores).copy()
        is_included = rules == RULES.index("included")
        order = np.argsort(self._of_units(self.ranking), kind="stable")
        order = order[np.isfinite(scores[order]) & ~is_included[order]]
        n_last = int(np.count_nonzero(~is_included[self._occupied.last()[0]]))
        required, barred = split_by_rules(order, n_last, np.flatnonzero(is_included), panel_rules, n_whole)
        rules[barred], scores[barred] = RULES.index("excluded"), -np.inf
        is_required = np.zeros_like(is_included)
        is_required[required] = True
        scores[is_required] = np.maximum(scores[is_required], 0.0)
        return self._with_first(rules, scores, is_included, is_required)

    def _of_units(self, values: Array) -> Array:
        """Return the value of each unit, from values that are equal for its features."""
        return values[self._heads] if self._has_groups else values

    def _entry_scores(self) -> Array:
        """Score the units of the last stage by the stage from which on they are non-zero, ties by norm."""
        counts, units, norms = self._occupied
        stage_of = np.repeat(np.arange(len(self.alphas)), counts)
        largest = np.zeros(len(self.alphas))
        np.maximum.at(largest, stage_of, norms)
        largest[largest == 0.0] = 1.0  # stages with included units only, all of weight zero
        is_last = np.zeros(self.n_units, dtype=bool)
        is_last[self._occupied.last()[0]] = True
        chosen = np.flatnonzero(is_last[units])
        chosen = chosen[np.lexsort((stage_of[chosen], units[chosen]))]  # unit by unit, along the stages
        units, stages = units[chosen], stage_of[chosen]
        is_other = units[1:] != units[:-1]
        begins = np.concatenate([[True], is_other | (stages[1:] != stages[:-1] + 1)]).nonzero()[0]
        entry = begins[np.concatenate([units[begins[1:]] != units[begins[:-1]], [True]])]  # the last stay of each unit
        share = norms[chosen[entry]] / (largest[stages[entry]] * (1.0 + 1e-9))
        return (len(self.alphas) - 1 - stages[entry] + share) / len(self.alphas)

    def size_at(self, alpha: float) -> int:
        """Return the number of units that minimises f + alpha * cost over the stages.

        Parameters
        ----------
        alpha : float
            The lambda, at least 0; it need not be that of a stage.

        Returns
        -------
        int
            The number of units; ties go to the smaller one.
        """
        values = np.where(self.sizes < min(self.least_size, self.sizes[-1]), np.inf, self.losses + alpha * self.costs)
        return int(self.sizes[values <= values.min() * (1.0 + 1e-12)].min())

    def alpha_at(self, k: int) -> float:
        """Return the lambda of the first stage with at least ``k`` units, or of the last one.

        Parameters
        ----------
        k : int
            Number of units.

        Returns
        -------
        float
            The lambda.
        """
        has_enough = self.sizes >= k
        return float(self.alphas[has_enough.argmax() if has_enough.any() else -1])

    def rows_at(self, k: int) -> Array:
        """Return the rows of the best stage with exactly ``k`` units.

        For solvers that exchange rows these need not be the best k of the ranking.

        Parameters
        ----------
        k : int
            Number of units.

        Returns
        -------
        array of shape (n_rows,)
            Feature indices, ascending.

        Raises
        ------
        ValueError
            If no stage has exactly ``k`` units.
        """
        stages = np.flatnonzero((self.sizes == k) & (k >= self.least_size))
        if not len(stages):
            sizes = np.unique(self.sizes[self.sizes >= self.least_size]).tolist()
            raise ValueError(f"No stage of the path has exactly k={k} rows. Use one of {sizes}.")
        return self.stage_rows(int(stages[self.losses[stages].argmin()]))

    def support(self, k: int) -> Array:
        """Return the features of the best ``k`` units of the ranking.

        Parameters
        ----------
        k : int
            Number of units.

        Returns
        -------
        array of shape (n_selected,)
            Feature indices, best first; ``k`` of them unless features are selected in groups.
        """
        if self._check_k(k) <= len(self._top):
            return self._top[:k]
        return self.order[: np.searchsorted(self.ranking[self.order], k, side="right")]

    def leading(self, k: int) -> Array:
        """Return the best ``k`` features, best first, if they are known without sorting all; else none.

        Parameters
        ----------
        k : int
            Number of features.

        Returns
        -------
        array of shape (k,) or (0,)
            Feature indices.
        """
        return self._top[: k if k <= len(self._top) else 0]

    @cached_property
    def _top(self) -> Array:
        """Features with a score above 0, best first, usually those of the last stage; none with groups.

        All others come after them: sorting these few avoids sorting all features.
        """
        top = np.flatnonzero(self.scores > 0.0) if not self._has_groups else np.arange(0)
        return top[order_descending(self.scores[top], rtol=float(self.tie))]

    @cached_property
    def n_units(self) -> int:
        """Number of units, including excluded and constant ones."""
        return count_units(self.unit_of)

    @cached_property
    def n_ranked(self) -> int:
        """Number of units that are neither excluded nor constant."""
        return int(np.count_nonzero(np.isfinite(self._of_units(self.scores))))

    def coef(self, k: int) -> Array:
        """Return the weights of the last stage on the best ``k`` units.

        This is the truncation of the paper: the other rows are dropped, without a refit. A feature that is zero in the last
        stage has weight 0; see :meth:`refit`.

        Parameters
        ----------
        k : int
            Number of units.

        Returns
        -------
        array of shape (n_targets, n_features)
            Weights in units of X, 0 for all other features.
        """
        mask = np.zeros(self.n_features, dtype=bool)
        mask[self.support(k)] = True
        return self.coef_of(mask)

    def coef_of(self, mask: Array) -> Array:
        """Return the weights of the last stage on given features, without a refit.

        Parameters
        ----------
        mask : bool array of shape (n_features,)
            True for the features that keep their weights.

        Returns
        -------
        array of shape (n_targets, n_features)
            Weights in units of X, 0 for all other features.
        """
        chosen = mask[self.coef_rows]
        rows = self.coef_rows[chosen]
        coef = np.zeros((len(self.y_mean), self.n_features))
        coef[:, rows] = self.coef_values[:, chosen] / self.y_scale[:, None] / self.x_scale[rows]
        return coef

    def intercept(self, k: int) -> Array:
        """Return the intercept that belongs to :meth:`coef`.

        Parameters
        ----------
        k : int
            Number of units.

        Returns
        -------
        array of shape (n_targets,)
            Intercept in units of Y.
        """
        return self.y_mean - self.coef(k) @ self.x_mean

    def with_refits(
        self, problem: Problem, k_max: int, value: Callable[[Problem, Array, Array], float] | None = None
    ) -> SolutionPath:
        """Return this path with the factors that :meth:`refit` needs for every k up to ``k_max``.

        Parameters
        ----------
        problem : Problem
            The data term of this path.
        k_max : int
            Largest number of units to refit.
        value : callable or None, default=None
            Returns the loss from the problem, features and their weights, (n_targets, n_rows); None: f of the problem.

        Returns
        -------
        SolutionPath
            The same path with ``refit_triangle``, ``refit_targets`` and ``refit_losses``.
        """
        rows = self.support(k_max)
        triangle, targets = problem.factor(rows)
        path = self._with(refit_triangle=triangle, refit_targets=targets)
        if value is None:
            return path
        squares = NestedSquares.of(triangle, targets, np.arange(len(rows) + 1))
        losses = [value(problem, rows[:end], squares.weights(end).T) for end in range(len(rows) + 1)]
        return path._with(refit_losses=np.array(losses))

    @property
    def largest_refit(self) -> int:
        """Largest k that :meth:`refit` accepts."""
        return self._n_units_in(self.refit_triangle.shape[1])

    def _n_units_in(self, n_rows: int) -> int:
        """Return the number of units of the first features of the order."""
        return n_rows if n_rows <= len(self._top) else int(self.ranking[self.order[n_rows - 1]])

    def refit(self, k: int) -> Refit:
        """Solve least squares (with the ridge term, if any) on exactly the best ``k`` units.

        With ``loss="l21"`` the samples have the weights of the end of the path, so that the robust loss is at its minimum
        for the k of that end.

        Parameters
        ----------
        k : int
            Number of units, at most :attr:`largest_refit`.

        Returns
        -------
        Refit
            Weights ``coef`` of shape (n_targets, n_features) and ``intercept`` in units of X and Y, and their ``loss`` f.

        Raises
        ------
        ValueError
            If ``k`` is above :attr:`largest_refit`.
        """
        rows = self._refitted(k, "refit")
        squares = self.nested_refits(np.array([len(rows)])).squares
        coef = np.zeros((len(self.y_mean), self.n_features))
        coef[:, rows] = squares.weights(len(rows)).T / self.x_scale[rows]
        loss = self.refit_losses[len(rows)] if len(self.refit_losses) else self._loss_on(np.arange(len(rows)))
        return Refit(coef, self.y_mean - coef @ self.x_mean, float(loss))

    def nested_refits(
        self, ends: Array, scatter: ClassScatter | None = None, equations: tuple[Array, Array] | None = None
    ) -> NestedRules:
        """Solve least squares on several numbers of the best features at once.

        Parameters
        ----------
        ends : array of int of shape (n_ends,)
            Numbers of features, ascending; of units, see :meth:`support`.
        scatter : ClassScatter, optional
            Class means and scatter of these features, for a rule that scores classes.
        equations : tuple of two arrays, optional
            Triangle and right-hand sides with another ridge term, in place of ``refit_triangle`` and ``refit_targets``.

        Returns
        -------
        NestedRules
            Their rules, those of :meth:`refit` one after the other.

        Raises
        ------
        ValueError
            If the last of ``ends`` is more than the path can be refitted for.
        """
        n_rows = int(max(ends, default=0))
        rows = self._refitted(self._n_units_in(n_rows), "refit") if n_rows else np.arange(0)
        triangle, sides = (self.refit_triangle, self.refit_targets) if equations is None else equations
        squares = NestedSquares.of(triangle, sides / self.y_scale, ends)
        return NestedRules(rows, squares, self.x_mean[rows], self.x_scale[rows], self.y_mean, scatter)

    def _refitted(self, k: int, method: str) -> Array:
        """Return the features of the best ``k`` units, for a method that needs their triangle."""
        rows = self.support(k)
        if len(rows) > self.refit_triangle.shape[1]:
            raise ValueError(
                f"{method}(k={k}): the path can be refitted up to k={self.largest_refit}. Fit with "
                f"max_features_to_select={k}."
            )
        return rows

    def _loss_on(self, places: Array) -> float:
        """Return f of least squares on the features at some places of ``order``."""
        triangle = self.refit_triangle[:, places]
        explained = triangle @ np.linalg.lstsq(triangle, self.refit_targets, rcond=None)[0]
        return float(self.null_loss - np.vdot(explained, self.refit_targets - 0.5 * explained))

    def failure_costs(self, k: int) -> Array:
        """Return by what share the loss rises without each of the best ``k`` units, the others being fitted again.

        With ``loss="l21"`` the losses are those of the weighted squares, as ``null_loss`` is.

        Parameters
        ----------
        k : int
            Number of units, at most :attr:`largest_refit`.

        Returns
        -------
        array of shape (n_selected,)
            One per feature of :meth:`support`, best first, infinite where the loss with all of them is 0; the features of a
            unit are left out together.
        """
        rows = self._refitted(k, "failure_costs")
        n_rows, loss = len(rows), self._loss_on(np.arange(len(rows)))
        inverse = NestedSquares.of(self.refit_triangle, self.refit_targets, np.array([n_rows])).inverse
        is_regular, rises = len(inverse) == n_rows, np.empty(n_rows)
        for unit in np.unique(self.unit_of[rows]):
            is_member = self.unit_of[rows] == unit
            if is_regular:  # the directions orthogonal to all other columns, as in ActiveSet.exits
                lines = np.linalg.qr(inverse[is_member].T)[0]
                rises[is_member] = 0.5 * np.square(lines.T @ self.refit_targets[:n_rows]).sum()
            else:
                rises[is_member] = self._loss_on(np.flatnonzero(~is_member)) - loss
        return np.maximum(np.divide(rises, loss, out=np.full(n_rows, np.inf), where=loss > 0.0), 0.0)

    def _check_k(self, k: int) -> int:
        least, most = max(1, self.least_size), self.n_selectable
        if not least <= k <= most:
            what = "units" if self._has_groups else "features"
            rest = f" that are not excluded; {self.n_included} are included" if least > 1 or most < self.n_units else ""
            rest += f", {self.least_size} are required by constraints" if self.least_size > self.n_included else ""
            raise ValueError(f"k={k} is outside {least} to {most}, the number of {what}{rest}.")
        return int(k)

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the stages of the path.

        Returns
        -------
        DataFrame
            Columns ``alpha``, ``n_features`` (of units, where there are groups), ``loss``, ``objective`` and ``features``,
            a list of indices.
        """
        import pandas as pd

        stages = range(len(self.alphas))
        columns = {"alpha": self.alphas, "n_features": self.sizes, "loss": self.losses, "objective": self.objectives}
        return pd.DataFrame(columns | {"features": [self.stage_rows(stage).tolist() for stage in stages]})
