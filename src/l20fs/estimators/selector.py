"""L20Selector: l2,0-penalised least squares as a scikit-learn selector."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from l20fs.bounds.certificate import Certificate, certify_penalty, certify_selection, lower_bounds, support_loss
from l20fs.defaults import (
    DEFAULT_CLASS_WEIGHT,
    DEFAULT_N_FEATURES,
    DEFAULT_RANKING,
    DEFAULT_RIDGE,
    DEFAULT_SCALE,
    DEFAULT_SOLVER,
)
from l20fs.design import Part, Scale, Walk, finish
from l20fs.design.driver import Request
from l20fs.estimators.base import About
from l20fs.estimators.feasibility import refuse_size, size_range
from l20fs.estimators.frames import is_lazy
from l20fs.estimators.near_optimal import (
    NOTHING,
    FittedOn,
    SearchLimits,
    find_panels,
    refuse_other_samples,
    refuse_without_atlas,
)
from l20fs.estimators.panel_atlas import PanelAtlas
from l20fs.estimators.path_selector import PathSelector
from l20fs.estimators.penalty import panel_penalty, penalty_of, warn_of_idle_features
from l20fs.inputs.devices import is_dask
from l20fs.inputs.panel_constraints import Constraints
from l20fs.inputs.targets import Targets, warn_of_numbers, weights_of_targets
from l20fs.inputs.validation import check_choice, check_flag, check_number
from l20fs.objective.nested_rules import PlainSquares
from l20fs.objective.problem import Problem, problem_on
from l20fs.objective.ridge import check_ridge, ridge_on
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.objective.stage import Stage
from l20fs.solvers import SOLVERS, Solver, make_solver
from l20fs.solvers.robust import bounded_weights
from l20fs.text import quoted
from l20fs.typing import Array, Ranking, Size, Task

if TYPE_CHECKING:
    from l20fs.estimators.models import L20Classifier, L20Regressor

Loss = Literal["squared", "l21"]


class L20Selector(PathSelector):
    r"""Select features by least squares with the exact :math:`l_{2,0}` penalty.

    .. math:: \min_{W, b} \tfrac12 \|X W + 1 b' - Y\|_F^2 + \tfrac\mu2 \|W\|_F^2
              + \lambda \cdot \#\{\text{non-zero rows of } W\}

    A non-zero row is a selected feature, shared by all classes. One fit walks lambda down and keeps the whole path, so
    that :meth:`support_for` and :meth:`model_for` answer for any other number of features.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=20
        How many features to keep: a number, or a share of all features. The best ones are taken by the ranking of
        :class:`~l20fs.SolutionPath`. Constant features are never selected. :class:`L20SelectorCV` finds the number. None:
        the non-zero rows at ``alpha``. Changed after ``fit``, it takes the best of the ranking at the end of the path. With
        ``solver="forward"``, ``ranking="entry"`` and ``loss="squared"`` a smaller number gives the features of a fresh fit;
        otherwise they may differ, since rows are exchanged or weighed on the way to the end (``path_.rows_at(k)`` has those
        of the stage with k rows). A number beyond the end gives a warning, since no fit has ranked features there as a fresh
        one would: give ``max_features`` when several numbers are to be compared. With ``feature_groups`` it counts groups,
        and features that stand alone.
    solver : {"forward", "swap", "ahiht", "hiht"} or solver object, default="forward"
        ``"forward"`` adds the feature that lowers the objective most, again and again. ``"swap"`` also exchanges features
        while that helps, at every size: the lowest objective, at several times the cost. ``"ahiht"`` and ``"hiht"`` are the
        paper's: thresholded gradient steps, one per lambda or until convergence; their options belong to the objects
        :class:`~l20fs.AHIHT` and :class:`~l20fs.HIHT`, as in ``solver=AHIHT(rate=0.5)``.
    alpha : float or None, default=None
        The lambda at which the path ends. If fewer rows are non-zero there than ``n_features_to_select`` asks for, the
        others follow by the ranking rules (``path_.rules``); if none is, nothing is selected but what is included. None: the
        path runs until enough rows are non-zero.
    ridge : float or "auto", default="auto"
        Strength of the ridge term relative to the mean squared norm of a centred feature that varies. It shrinks the
        weights, so that features which many samples agree on win over those that fit a few; 0 is the paper's problem.
        ``"auto"``: it grows with the number of features per sample, of numbers up to 0.1
        (:func:`l20fs.objective.ridge.auto_ridge`);
        ``ridge_`` is the value.
    refit_ridge : float or None, default=None
        Ridge of the weights of the model of numbers on the selected features, in the same units; None: that of the
        selection. :class:`L20SelectorCV` chooses it.
    scale : {"auto", "moderated", "zscore", "none"}, default="auto"
        What every feature is divided by before the rows compete; ``coef_`` is in the units of X in any case. ``"zscore"``:
        its deviation. ``"moderated"``: its deviation plus the median of all deviations, so that features which hardly vary,
        in measurements of one kind mostly noise, are not blown up. ``"none"``: 1. ``"auto"``: ``"moderated"`` where the
        deviations are comparable, as of features in one unit (the 95th percentile is at most 50 times the 5th; of up to 20
        features, the largest deviation and the smallest), and features that vary more do not explain clearly less of y
        (:func:`l20fs.objective.make_problem`), else ``"zscore"``; ``scale_`` says which.
    fit_intercept : bool, default=True
        Whether b is fitted. False: b is 0 and neither X nor Y is centred, as in scikit-learn's linear models. The deviation
        of a feature is then its root mean square, and a constant feature is selected like any other unless it is zero.
    class_weight : dict, "balanced" or None, default="balanced"
        Weight of the squared error in the column of each class. ``"balanced"``: inverse to the size of the class, so that
        a rare class counts as much as a common one. A dict gives a weight per label, 1 where none is given. Continuous
        targets are never weighted.
    task : {"auto", "classification", "regression"}, default="auto"
        What y holds. ``"classification"``: labels, or a label indicator. ``"regression"``: numbers, also where they are
        whole. ``"auto"``: numbers if it has fractions, several columns that are no indicator, or more than 20 distinct whole
        numbers of which most occur once or twice, which a warning tells; else labels. ``task_`` says which.
    loss : {"squared", "l21"}, default="squared"
        ``"l21"`` counts the length of each sample's error instead of half its square, so that mislabelled and corrupted
        samples pull less; with the solvers ``"forward"`` and ``"swap"``, at a hundred times the cost or more.
    ranking : {"entry", "norm"}, default="entry"
        How the features of the last lambda are ordered: by how early they came to stay, or by the norm of their weights.
    max_features : int or None, default=None
        How many rows the path runs to, if that is more than ``n_features_to_select``: a later, larger k is then ranked
        by the path, and ``path_.refit`` reaches it.
    certify : bool, default=False
        Also compute how far from the global optimum the selection can be at most, ``path_.gap(k)``, and which features
        are proved to be in it or not, ``certificate_``. Takes a few times as long as the fit, and says something only if
        the ridge term is not small. The optimum is the one under ``include``, ``exclude``, ``feature_groups`` and all other
        constraints. For X in blocks a working set takes a pass, a few for each size that is solved.
    include : sequence of names or indices, mask of shape (n_features,), or None, default=None
        Features that are always selected, ranked first and free of cost. They count in ``n_features_to_select``.
    exclude : sequence of names or indices, mask of shape (n_features,), or None, default=None
        Features that are never selected. They still count in the mean that ``ridge`` is relative to, if they vary.
    penalty_factor : array of shape (n_features,), dict of name or index: factor, or None, default=None
        What lambda is multiplied by for each feature, 1 where none is given: a feature of factor 2 has to bring twice as
        much. 0 includes a feature, infinity excludes it.
    feature_groups : array of shape (n_features,) of labels, list of lists, dict of name: list, or None, default=None
        Features that are selected together or not at all, by names or indices; those not mentioned stand alone. A group
        costs as much as its features that vary. It is included (excluded) if one of its features is.
    constraints : Constraints or None, default=None
        What a panel must have besides: so many features per class or set at least or at most, costs within a budget,
        features that exclude each other (:class:`~l20fs.Constraints`, docs/penalty.md). Every selection meets them, from the
        least size at which that is possible; with the solvers ``"forward"`` and ``"swap"`` and ``loss="squared"``.
    callback : callable, "print" or None, default=None
        Called with the :class:`~l20fs.objective.stage.Stage` after each lambda; ``"print"`` prints a line.

    Attributes
    ----------
    path_ : SolutionPath
        Every lambda with its rows, norms, losses and objectives.
    scores_ : array of shape (n_features,)
        Larger is better; see :class:`~l20fs.SolutionPath`.
    ranking_ : array of shape (n_features,)
        1 is best; the features of a group share a rank.
    support_ : array of shape (n_features,)
        Mask of the selected features, for the present ``n_features_to_select``.
    coef_ : array of shape (n_targets, n_features)
        Weights W' of the selected features at the end of the path, in units of X; zero elsewhere. They are those of least
        squares for the one-hot labels or the outputs, one row for each, also for two classes and for one output: a selector
        has no ``decision_function`` that they must agree with, as those of :class:`L20Classifier` do.
    intercept_ : array of shape (n_targets,)
        Zero with ``fit_intercept=False``.
    classes_ : array of shape (n_classes,)
        The labels in sorted order, if y holds labels.
    task_ : {"classification", "regression"}
        What y was taken for.
    certificate_ : Certificate
        With ``certify=True``: ``lower_bound``, ``upper_bound`` and ``gap`` of the objective for the features selected by
        ``fit``, and the features that are certainly in, or not in, the best selection of that size (at that ``alpha``);
        included and excluded ones are not listed. The objective of a number of features is f. Where they have different
        costs (``penalty_factor``, or ``feature_groups``), it is f + lambda * cost at the lambda of the first stage with so
        many features or groups, ``path_.alpha_at(k)``: the trade-off at which they were selected. Without a number it is
        f + lambda * cost at ``alpha``.
    sample_weights_ : array of shape (n_samples,)
        With ``loss="l21"``: how much each training sample counted in the end, ``sample_weight`` divided by the length of
        its error; least squares with these weights has the same ``coef_``. Look at the smallest ones for wrong labels.
    ridge_ : float
        The strength of the ridge term that was used.
    scale_ : {"moderated", "zscore", "none"}
        The scaling that was used; ``"given"`` if ``scale`` is an array.
    objective_ : array of shape (n_stages,)
        f + lambda * (number of non-zero rows, or what they cost) at each lambda.
    n_iter_ : int
        Accepted steps, additions and exchanges in all.
    n_nuisances_ : int
        Number of independent columns that ``adjust_for`` of :meth:`fit` took out of X and y; 0 without it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Z. Sun and Y. Yu, "Robust multi-class feature selection via l2,0-norm regularization minimization" (2020).

    Examples
    --------
    >>> from l20fs.data import make_planted
    >>> X, y, informative = make_planted(n_samples=200, n_features=50, n_informative=3, random_state=0)
    >>> selector = L20Selector(n_features_to_select=3).fit(X, y)
    >>> bool((selector.get_support(indices=True) == informative).all())
    True
    >>> int(selector.support_for(1).sum())
    1
    """

    about = About(
        reference="Sun and Yu, Robust multi-class feature selection via l2,0-norm regularization minimization (2020)",
        kind="embedded",
        cost="O(N d C) per step",
    )
    needs_labels = False
    #: The values of ``task``; a model has one task, whatever y holds.
    tasks: ClassVar[tuple[Task, ...]] = get_args(Task)
    allows_none = True
    takes_sparse = True
    takes_device_arrays = True
    takes_blocks = True
    takes_parts = True

    path_: SolutionPath
    sample_weights_: Any
    certificate_: Certificate
    n_iter_: int

    def __init__(
        self,
        n_features_to_select: int | float | None = DEFAULT_N_FEATURES,
        *,
        solver: str | Solver = DEFAULT_SOLVER,
        alpha: float | None = None,
        ridge: float | str = DEFAULT_RIDGE,
        refit_ridge: float | None = None,
        scale: Scale = DEFAULT_SCALE,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = DEFAULT_CLASS_WEIGHT,
        task: Task = "auto",
        loss: Loss = "squared",
        ranking: Ranking = DEFAULT_RANKING,
        max_features: int | None = None,
        certify: bool = False,
        include: Any = None,
        exclude: Any = None,
        penalty_factor: Any = None,
        feature_groups: Any = None,
        constraints: Constraints | None = None,
        callback: Callable[[Stage], object] | Literal["print"] | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.solver = solver
        self.alpha = alpha
        self.ridge = ridge
        self.refit_ridge = refit_ridge
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.task = task
        self.loss = loss
        self.ranking = ranking
        self.max_features = max_features
        self.certify = certify
        self.include = include
        self.exclude = exclude
        self.penalty_factor = penalty_factor
        self.feature_groups = feature_groups
        self.constraints = constraints
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, adjust_for: Any = None) -> Self:
        """Fit the path: learn which features explain the targets.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Finite numbers. In blocks are Dask arrays (of arrays or SciPy sparse matrices) and data frames, zarr arrays, HDF5
            data sets, the ``.X`` of an AnnData object that a file backs, large memory maps and what
            :func:`l20fs.open_large` opens. A LazyFrame of polars is computed.
            A dense array of torch or CuPy stays on its device (docs/gpu.md). :class:`l20fs.inputs.names.NamedColumns` gives
            names to the features of a matrix that has none.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, a label indicator matrix, or numbers; see ``task``.
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts: weight 2 is the same as the sample twice, 0 leaves it out.
        adjust_for : array or list of shape (n_samples,) or (n_samples, n_columns), Series or DataFrame, optional
            Known nuisances of each sample, such as its batch, plate or age. What they explain is taken out of X and y, as
            the mean is, so that a feature that tells the classes through the batch alone is worth nothing, and one that the
            nuisances explain altogether counts as constant. Columns of floats are numbers, with a linear effect; all others
            (text, categories, booleans and whole numbers too) are labels, with an effect each. The deviations that ``scale``
            refers to are those that are left. Predictions do not need the nuisances, which of a new batch nobody knows: the
            weights, estimated within batches, apply to the features as they are measured, with the intercept that predicts
            the mean of the training samples right.

        Returns
        -------
        self
            The fitted selector.
        """
        with self._fitting():
            finish(self._walk(*self._prepare(X, y, sample_weight, adjust_for)))
            self._warn_if_short()
        self._fitted_on = FittedOn(X, y, sample_weight, adjust_for)
        return self

    def walk_fit(
        self, X: Part, y: Any, sample_weight: Any = None, adjust_for: Any = None, *, warn: bool = False
    ) -> Walk[None]:
        """Fit to some samples of a shared X beside others (:func:`l20fs.design.run`).

        Parameters
        ----------
        X : Part
            Some of :func:`l20fs.design.share_samples`, or :class:`l20fs.inputs.names.NamedColumns` with them.
        y, sample_weight, adjust_for : various
            Those of these samples, as for :meth:`fit`.
        warn : bool, default=False
            Whether to warn where features or classes fall short, as :meth:`fit` does.
        """
        with self._fitting():
            yield from self._walk(*self._prepare(X, y, sample_weight, adjust_for))
            if warn:
                self._warn_if_short()

    def near_optimal(
        self,
        k: Size = None,
        *,
        eps: float | str | None = None,
        max_panels: int = 10_000,
        time_limit: float | None = 60.0,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        adjust_for: Any = None,
    ) -> PanelAtlas:
        """List all panels whose loss is nearly as low as that of the best, with proof that there are no others.

        All panels have the same number of features, and meet ``include``, ``exclude``, ``feature_groups`` and
        ``constraints``. The loss is
        that of this selector, least squares with the ridge term. The search is fast if the ridge term is strong
        (docs/panels.md has times); a result that says ``is_complete`` is the same on every machine.

        Parameters
        ----------
        k : int, float or None, default=None
            Number of features of a panel, any value that ``n_features_to_select`` takes. None: ``n_features_to_select``.
        eps : float, str or None, default=None
            Panels with a loss of up to ``1 + eps`` times the lowest are listed; 0.001 and ``"0.1%"`` are the same. None:
            as much as the limits allow, in steps such as 0.1 %, 0.2 % and 0.5 %, but no more than ``noise``, the difference
            that the samples cannot tell from zero.
        max_panels : int, default=10000
            How many panels are listed at most. Further ones are counted.
        time_limit : float or None, default=60.0
            Seconds after which the search is stopped; the result says what is proved then. None: no limit.
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features), optional
            Samples of the fit, which are needed where they are no longer in memory, and for a selector that was copied or
            loaded from a file.
        y : array of shape (n_samples,) or (n_samples, n_outputs), optional
            Labels or numbers of the fit, with ``X``.
        sample_weight : array of shape (n_samples,), optional
            Weights of the fit, with ``X``, if there were any.
        adjust_for : array or DataFrame of shape (n_samples,) or (n_samples, n_nuisances), optional
            Nuisances of the fit, with ``X``, if there were any.

        Returns
        -------
        PanelAtlas
            The panels, best first, what they share, and what is proved.

        Examples
        --------
        >>> from l20fs.data import load_srbct
        >>> tumours = load_srbct()
        >>> L20Selector(5, ridge=10.0).fit(tumours.data, tumours.target).near_optimal(eps="0.2%")
        PanelAtlas(13 panels of 5 features within 0.2 % of the best, all of them; 1 feature is in every one, 10 are in any)
        """
        check_is_fitted(self)
        limits = SearchLimits.checked(eps, max_panels, time_limit)
        support = self.support_for(self.n_features_to_select if k is None else k)
        if X is None and not (y is None and sample_weight is None and adjust_for is None):
            raise ValueError(
                "near_optimal has y, sample_weight or adjust_for without X. Give all samples of the fit, or none."
            )
        data = getattr(self, "_fitted_on", NOTHING) if X is None else FittedOn(X, y, sample_weight, adjust_for)
        refuse_without_atlas(self.loss, data.X)
        problem, penalty = self.posed(*data)
        names = getattr(self, "feature_names_in_", None)
        return find_panels(problem, penalty, penalty.unit_of[support], limits, names)

    def posed(self, X: Any, y: Any, sample_weight: Any = None, adjust_for: Any = None) -> tuple[Problem, RowPenalty]:
        """Return the problem that this fitted selector solved, and its penalty, from the samples of the fit.

        Parameters
        ----------
        X, y, sample_weight, adjust_for : various
            As for :meth:`fit`.

        Returns
        -------
        problem : Problem
            The data term.
        penalty : RowPenalty
            Costs and constraints.
        """
        X, targets = clone(self)._prepare(X, y, sample_weight, adjust_for)
        problem = finish(self._pose(X, targets))
        refuse_other_samples(self.path_, problem)
        return problem, panel_penalty(self, problem, targets, getattr(self, "feature_names_in_", None))

    def __getstate__(self) -> dict[str, Any]:
        # The samples are the user's, and no part of a file or a copy.
        return {name: value for name, value in super().__getstate__().items() if name != "_fitted_on"}

    def _validate(self, X: Any, y: Any) -> tuple[Any, Targets]:
        if isinstance(X, Part):
            return self._validate_part(X, y)
        if is_lazy(X):
            return self._validate_blocks(X, y)
        return super()._validate(X, y)

    def _encode(self, y: Array) -> Targets:
        targets = super()._encode(y)
        if self.task == "auto" and not self.needs_labels:
            warn_of_numbers(y, targets)
        return targets

    def _learn(self, X: Any, targets: Targets, **extra: Any) -> None:
        finish(self._walk(X, targets))

    def _walk(self, X: Any, targets: Targets) -> Walk[None]:
        """Pose the problem, walk the path and keep it, with what a refit of its features needs."""
        problem = yield from self._pose(X, targets)
        self.ridge_, self.scale_ = problem.relative_ridge, problem.design.scale_rule
        self.task_: Task = "regression" if targets.classes is None else "classification"
        basis = problem.design.sample_weights.basis
        self.n_nuisances_ = 0 if basis is None else len(basis)
        self._is_explained = problem.is_explained
        names = getattr(self, "feature_names_in_", None)
        penalty = panel_penalty(self, problem, targets, names)
        warn_of_idle_features(problem, penalty, names)
        k_max = self._largest_size(penalty)
        if penalty.rules is not None:
            k_max, penalty = self._sized_for_panels(k_max, penalty, problem.design.varies, names)
        solver = make_solver(self.solver)
        target = None if self.alpha is None else float(self.alpha)
        report = print_stage if self.callback == "print" else self.callback
        options: dict[str, Any] = {"target": target, "penalty": penalty, "callback": report}
        value = None
        if self.loss == "squared":
            path = yield from solver.walk(problem, k_max, **options)
        else:
            path, problem, value = yield from solver.walk_robust(problem, k_max, **options)
            self.sample_weights_ = problem.design.sample_weights.values
        path = path.ranked_by(self.ranking)
        if self.n_features_to_select is None:
            k_max = max(k_max, int(path.sizes[-1]))
        k_max = min(k_max, path.n_selectable)
        yield Request(problem.design.matrix, "hold", path.support(k_max))
        self.path_ = path.with_refits(problem, k_max, value)
        if targets.classes is None:
            squares = problem.factor(path.support(k_max), with_ridge=False)
            self._plain = PlainSquares(*squares, problem.design.mean_energy)
        if self.loss == "l21":  # for statistics of all samples
            problem = yield from problem.reweighted(bounded_weights(self.sample_weights_, targets.sample_weight))
        if self.certify:
            self._certify(problem, penalty, k_max)
        self.objective_ = path.objectives
        self.n_iter_ = max(1, int(path.n_iters.sum()))
        self._keep_model(problem, targets)
        if targets.classes is not None:
            self.classes_ = targets.classes

    def _pose(self, X: Any, targets: Targets) -> Walk[Problem]:
        """Pose the data term, which sets constant features aside without a copy of X."""
        if is_dask(X) or (isinstance(X, Part) and X.is_in_blocks):
            self._refuse_before_reading(X, targets)
        return problem_on(
            X,
            targets.Y,
            ridge=partial(ridge_on, self.ridge, targets),
            scale=self.scale,
            target_weights=weights_of_targets(targets, self.class_weight),
            sample_weight=targets.sample_weight,
            fit_intercept=self.fit_intercept,
            nuisances=targets.nuisances,
        )

    def _warn_if_short(self) -> None:
        self.warn_of_explained_targets()
        super()._warn_if_short()

    def warn_of_explained_targets(self) -> None:
        """Warn of classes, or outputs, that no feature can tell since the nuisances do."""
        explained = np.flatnonzero(self._is_explained)
        if len(explained):
            names = [str(name) for name in getattr(self, "classes_", np.arange(len(self._is_explained)))[explained]]
            warnings.warn(
                f"adjust_for explains {'class' if hasattr(self, 'classes_') else 'output'} {quoted(names)} altogether: no "
                "feature is selected for it. Add samples of other classes to its batches, or leave these columns out.",
                UserWarning,
                stacklevel=4,  # the caller of fit
            )

    def most_rows(self, n_features: int) -> int:
        """Return how many features a path has at most, as far as the parameters tell.

        Parameters
        ----------
        n_features : int
            Number of features of X.

        Returns
        -------
        int
            The number.
        """
        size = self.n_features_to_select
        return max(DEFAULT_N_FEATURES if size is None else self._n_wanted(size, n_features), self.max_features or 1)

    def _largest_size(self, penalty: RowPenalty) -> int:
        """Return the number of features, or units of features, at which the path ends."""
        size, n_included = self.n_features_to_select, len(penalty.included)
        k = 1 if size is None else self._n_wanted(size, penalty.n_units)
        self._refuse_less_than_included(size, k, n_included)
        return min(max(k, self.max_features or 1, n_included), penalty.n_allowed)

    def _sized_for_panels(
        self, k_max: int, penalty: RowPenalty, varies: Array, names: Array | None
    ) -> tuple[int, RowPenalty]:
        """Return the size at which the path ends, and the penalty with the size that every panel on it can grow to."""
        size, rules = self.n_features_to_select, penalty.rules
        assert rules is not None
        if isinstance(size, numbers.Real):
            wanted = min(self._n_wanted(size, penalty.n_units), penalty.n_selectable(varies))
            refuse_size(penalty, varies, wanted, names)
        else:
            wanted = size_range(penalty, varies, names).least
        return max(k_max, wanted), replace(penalty, rules=replace(rules, size=wanted))

    def _refuse_before_reading(self, X: Any, targets: Targets) -> None:
        """Raise errors that need no pass over X, which may take an hour."""
        if self.loss == "l21":
            raise ValueError("loss='l21' is not available for X in blocks. Load X into memory, or leave it out.")
        penalty = penalty_of(self, np.ones(X.shape[1], dtype=bool), getattr(self, "feature_names_in_", None))
        # A share is one of units, of which there are more if constant features, which are not known yet, leave groups.
        size = self.n_features_to_select
        if isinstance(size, numbers.Integral if penalty.has_groups else numbers.Real):
            self._refuse_less_than_included(size, self._n_wanted(size, penalty.n_units), len(penalty.included))
        make_solver(self.solver).check_shape(targets.Y.shape[1], X.shape[1])

    def _keep_model(self, problem: Problem, targets: Targets) -> None:
        """Set the attributes that a subclass needs to predict."""

    def _certify(self, problem: Problem, penalty: RowPenalty, k_max: int) -> None:
        """Compute lower bounds for every size, and the certificate of the selection."""
        self.path_ = self.path_.with_bounds(lower_bounds(problem, k_max, penalty=penalty))
        if self.n_features_to_select is None:
            rows = np.flatnonzero(self.path_.is_selected)
            price = float(self.path_.alphas[-1])
            value = support_loss(problem, rows) + price * penalty.cost_of(rows)
            self.certificate_ = certify_penalty(problem, price, value, penalty=penalty)
        else:
            k = min(self._n_wanted(self.n_features_to_select, penalty.n_units), self.path_.n_ranked)
            self.certificate_ = certify_selection(self.path_, k, problem, penalty)

    def as_classifier(self) -> L20Classifier:
        """Return an unfitted classifier with the same parameters.

        Returns
        -------
        L20Classifier
            It selects the same features, and predicts labels.
        """
        from l20fs.estimators.models import L20Classifier

        params = clone(self).get_params(deep=False) | {"task": "auto"}
        params.pop("refit_ridge", None)  # of a regression
        return L20Classifier(**params)

    def as_regressor(self) -> L20Regressor:
        """Return an unfitted regressor with the same parameters.

        Returns
        -------
        L20Regressor
            It selects the same features, and predicts numbers.
        """
        from l20fs.estimators.models import L20Regressor

        params = clone(self).get_params(deep=False) | {"task": "auto"}
        params.pop("calibration", None)  # of a classifier
        return L20Regressor(**params)

    def _check_parameters(self) -> None:
        solver = make_solver(self.solver)
        solver.check()
        check_choice("ranking", self.ranking, ("entry", "norm"))
        check_choice("task", self.task, self.tasks)
        check_choice("loss", self.loss, ("squared", "l21"))
        if self.loss not in solver.losses:
            able = _either(other for other in SOLVERS.values() if self.loss in other.losses)
            raise ValueError(f"loss={self.loss!r} with solver={self.solver!r} is not available. Use solver={able}.")
        if self.certify and self.loss != "squared":
            raise ValueError(
                f"certify=True with loss={self.loss!r} is not available: the bounds are those of squares. Use "
                "loss='squared', or certify=False."
            )
        if self.constraints is not None:
            self._check_constraints(solver)
        if isinstance(self.callback, str):
            check_choice("callback", self.callback, ("print",))
        check_flag("fit_intercept", self.fit_intercept)
        check_ridge(self.ridge)
        if self.refit_ridge is not None:
            check_number("refit_ridge", self.refit_ridge, minimum=0.0, strict=False)
        if self.alpha is not None:
            check_number("alpha", self.alpha, minimum=0.0)
        if self.max_features is not None:
            check_number("max_features", self.max_features, minimum=1, strict=False, whole=True)
        if self.n_features_to_select is None and self.alpha is None:
            raise ValueError(
                "n_features_to_select=None keeps the non-zero rows at alpha, but alpha is None. Give one of the two."
            )

    def _check_constraints(self, solver: Solver) -> None:
        """Refuse constraints on panels that make no sense, or that the solver or the loss cannot follow."""
        if not isinstance(self.constraints, Constraints):
            raise TypeError(f"constraints={self.constraints!r} is no object of l20fs.Constraints. Use one, or None.")
        self.constraints.check()
        if not solver.takes_constraints:
            able = _either(other for other in SOLVERS.values() if other.takes_constraints)
            raise ValueError(f"constraints with solver={self.solver!r} are not available. Use solver={able}.")
        if self.loss != "squared":
            raise ValueError(f"constraints with loss={self.loss!r} are not available. Use loss='squared', or none.")


def print_stage(stage: Stage) -> None:
    """Print a line about the solution at one lambda."""
    step_size = "" if math.isnan(stage.lipschitz) else f" L={stage.lipschitz:.4g}"
    print(
        f"[L20Selector] lambda={stage.alpha:.4g} rows={len(stage.rows)} f={stage.loss:.6g} "
        f"objective={stage.objective:.6g}{step_size} steps={stage.n_steps}"
    )


def _either(solvers: Iterable[type[Solver]]) -> str:
    """Name solvers to choose from."""
    return " or ".join(repr(solver.name) for solver in solvers)
