"""L20Selector: the exact l2,0 path as a scikit-learn selector."""

from __future__ import annotations

import math
import numbers
import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from l20fs.blocks import Blocks, PassCache, as_blocks, comes_in_blocks, memory_limit
from l20fs.bounds.certificate import Certificate, certify_penalty, certify_size, lower_bounds, support_loss
from l20fs.design import Scale, checked_units, probe
from l20fs.estimators.base import About, BaseSelector
from l20fs.estimators.selection_table import selection_frame
from l20fs.inputs.constraints import WISHES, Features, make_penalty
from l20fs.inputs.validation import (
    Targets,
    check_choice,
    check_number,
    refuse_masked,
    validate_beside_blocks,
    weights_of_targets,
)
from l20fs.objective.blockwise import make_problem
from l20fs.objective.criterion import ebic
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.linear_rule import LinearRule, default_ridge
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import Ranking, SolutionPath, Stage
from l20fs.solvers import Schedule, ahiht, forward, hiht, robust, sbr, starting_weights, swap
from l20fs.typing import Array, Size

if TYPE_CHECKING:
    import pandas as pd

    from l20fs.estimators.models import L20Classifier, L20Regressor

Loss = Literal["squared", "l21"]
Solver = Literal["forward", "sbr", "swap", "ahiht", "hiht"]

#: Solvers that add, remove and exchange single rows; the others follow the gradient and have its parameters.
REPLACING = {"forward": forward, "sbr": sbr, "swap": swap}

#: How far the path goes by default where the number of features is to be found.
LARGEST_SEARCHED = 100


class L20Selector(BaseSelector):
    r"""Select features by least squares with the exact :math:`l_{2,0}` penalty.

    .. math:: \min_{W, b} \tfrac12 \|X W + 1 b' - Y\|_F^2 + \tfrac\mu2 \|W\|_F^2
              + \lambda \cdot \#\{\text{non-zero rows of } W\}

    A non-zero row is a selected feature, shared by all classes. One fit walks lambda down and keeps the whole path, so
    that the number of features can be changed afterwards with ``set_params(n_features_to_select=...)``.

    Parameters
    ----------
    n_features_to_select : int, float, "ebic" or None, default=20
        How many features to keep: a number, or a share of all features. The best ones are taken by the ranking of
        :class:`~l20fs.SolutionPath`. Constant features are never selected. ``"ebic"``: the number
        up to ``max_features`` (100 if that is None) with the smallest extended BIC, which is quick and takes the targets
        for Gaussian (:mod:`l20fs.objective.criterion`); :class:`L20SelectorCV` measures instead. None: the non-zero rows at
        ``alpha``. Changed after ``fit``, it takes the best of the ranking at the end of the path, which is not quite the
        ranking of a path that ends elsewhere: give ``max_features`` when several numbers are to be compared. With
        ``feature_groups`` it counts groups, and features that stand alone.
    solver : {"forward", "sbr", "swap", "ahiht", "hiht"}, default="forward"
        ``"forward"`` adds the feature that lowers the objective most, again and again. ``"swap"`` also exchanges features
        while that helps, at every size: the lowest objective, at several times the cost. ``"sbr"`` adds or removes the
        single best feature for falling lambda. ``"ahiht"`` and ``"hiht"`` are the paper's: thresholded gradient steps, one
        per lambda or until convergence.
    alpha : float or None, default=None
        The lambda at which the path ends. If fewer rows are non-zero there than ``n_features_to_select`` asks for, the
        others follow by the ranking rules (``path_.rules``); if none is, nothing is selected but what is included. None: the
        path runs until enough rows are non-zero.
    ridge : float or None, default=None
        Strength of the ridge term relative to the mean squared norm of a centred feature. It shrinks the weights, so that
        features which many samples agree on win over those that fit a few; 0 is the paper's problem. None: 10 for labels
        and label indicators, 0.1 for numbers.
    scale : {"none", "zscore"}, default="zscore"
        ``"zscore"`` gives every feature deviation 1 before the rows compete. ``coef_`` is in the units of X either way.
    class_weight : dict, "balanced" or None, default="balanced"
        Weight of the squared error in the column of each class. ``"balanced"``: inverse to the size of the class, so that
        a rare class counts as much as a common one. A dict gives a weight per label, 1 where none is given. Continuous
        targets are never weighted.
    loss : {"squared", "l21"}, default="squared"
        ``"l21"`` counts the length of each sample's error instead of half its square, so that mislabelled and corrupted
        samples pull less; with the solvers ``"forward"`` and ``"swap"``, at several times the cost.
    ranking : {"entry", "norm"}, default="entry"
        How the features of the last lambda are ordered: by how early they came to stay, or by the norm of their weights.
    max_features : int or None, default=None
        How many rows the path runs to, if that is more than ``n_features_to_select``: a later, larger k is then ranked
        by the path, and ``path_.refit`` reaches it.
    certify : bool, default=False
        Also compute how far from the global optimum the selection can be at most, ``path_.gap(k)``, and which features
        are proved to be in it or not, ``certificate_``. Takes a few times as long as the fit, and says something only if
        the ridge term is not small. With ``include`` and ``exclude`` the bounds are those of the free choice, and hold.
    include : sequence of names or indices, mask of shape (n_features,), or None, default=None
        Features that are always selected, ranked first and free of cost. They count in ``n_features_to_select``.
    exclude : sequence of names or indices, mask of shape (n_features,), or None, default=None
        Features that are never selected. They still count in the mean that ``ridge`` is relative to.
    penalty_factor : array of shape (n_features,), dict of name or index: factor, or None, default=None
        What lambda is multiplied by for each feature, 1 where none is given: a feature of factor 2 has to bring twice as
        much. 0 includes a feature, infinity excludes it.
    feature_groups : array of shape (n_features,) of labels, list of lists, dict of name: list, or None, default=None
        Features that are selected together or not at all, by names or indices; those not mentioned stand alone. A group
        costs as much as its features that vary. It is included (excluded) if one of its features is.
    alpha_start : float or None, default=None
        The first lambda, from which the path descends by ``rate``. None: where the first feature is about to enter.
    rate : float, default=0.9
        Factor between two lambdas (rho in the paper).
    line_search_factor : float, default=2.0
        Factor by which the step parameter L grows after a rejected trial (gamma in the paper).
    eta : float or None, default=None
        Decrease that a step must bring, per half its squared length. None: 1e-4 times the starting L.
    lipschitz_start : float or None, default=None
        Starting value of L. None: the largest squared norm of a centred sample.
    init : {"zeros", "gaussian", "uniform"} or array of shape (n_targets, n_features), default="zeros"
        Where the path starts (``solver="ahiht"`` and ``"hiht"``). The random starts are small against the threshold of the
        first lambda, since parts of W that do not change XW are never undone by a gradient step.
    random_state : int, RandomState or None, default=None
        Seed of a random start.
    max_iter : int, default=200
        Steps per lambda at most (``solver="hiht"``).
    tol : float, default=1e-6
        A lambda is done when the squared step is this short (``solver="hiht"``).
    stopping : {"relative", "absolute"}, default="relative"
        Whether ``tol`` is relative to the squared norm of W.
    max_memory : int, str or None, default=None
        How much memory the fit may take where X comes in blocks, as a Dask array or from a file: a number of bytes, or a
        text such as ``"4G"``. A memory map (``numpy.load(file, mmap_mode="r")``) that is small against it is loaded. None:
        half of this machine's memory.
    checkpoint : path or None, default=None
        A folder in which every pass over the blocks of X leaves its result, so that a fit that was interrupted or killed
        goes on where it was when it is called again on the same data, with the same result to the last digit. Any X that
        is dense is then taken in blocks. Delete the folder when it is no longer needed.
    callback : callable or None, default=None
        Called with the :class:`~l20fs.objective.solution_path.Stage` after each lambda.
    verbose : int, default=0
        1 prints a line per lambda.

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
    coef_ : array of shape (n_classes, n_features)
        Weights of the selected features at the end of the path, in units of X; zero elsewhere.
    intercept_ : array of shape (n_classes,)
    classes_ : array of shape (n_classes,)
        The labels in sorted order, if y holds labels.
    certificate_ : Certificate
        With ``certify=True``: ``lower_bound``, ``upper_bound`` and ``gap`` of the objective for the features selected by
        ``fit``, and the features that are certainly in, or not in, the best selection of that size (at that ``alpha``).
    sample_weights_ : array of shape (n_samples,)
        With ``loss="l21"``: how much each training sample counted in the end, ``sample_weight`` included. The smaller, the
        further it is from its target: look at the smallest ones for wrong labels.
    ridge_ : float
        The strength of the ridge term that was used.
    ebic_ : array
        With ``n_features_to_select="ebic"``: the extended BIC of the best 0, 1, 2, ... features.
    objective_ : array of shape (n_stages,)
        f + lambda * (number of non-zero rows, or what they cost) at each lambda.
    n_iter_ : int
        Accepted steps, additions and exchanges in all.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from l20fs.data import make_planted
    >>> X, y, informative = make_planted(n_samples=200, n_features=50, n_informative=3, random_state=0)
    >>> selector = L20Selector(n_features_to_select=3).fit(X, y)
    >>> bool((selector.get_support(indices=True) == informative).all())
    True
    >>> selector.set_params(n_features_to_select=1).transform(X).shape
    (200, 1)
    """

    about = About(
        reference="Sun and Yu, Robust multi-class feature selection via l2,0-norm regularization minimization (2020)",
        kind="embedded",
        cost="O(N d C) per step",
    )
    needs_labels = False
    allows_none = True
    size_rules = ("ebic",)
    takes_sparse = True
    takes_device_arrays = True
    takes_blocks = True

    path_: SolutionPath
    certificate_: Certificate
    n_iter_: int

    def __init__(
        self,
        n_features_to_select: int | float | str | None = 20,
        *,
        solver: Solver = "forward",
        alpha: float | None = None,
        ridge: float | None = None,
        scale: Scale = "zscore",
        class_weight: dict[Any, float] | str | None = "balanced",
        loss: Loss = "squared",
        ranking: Ranking = "entry",
        max_features: int | None = None,
        certify: bool = False,
        include: Any = None,
        exclude: Any = None,
        penalty_factor: Any = None,
        feature_groups: Any = None,
        alpha_start: float | None = None,
        rate: float = 0.9,
        line_search_factor: float = 2.0,
        eta: float | None = None,
        lipschitz_start: float | None = None,
        init: Any = "zeros",
        random_state: Any = None,
        max_iter: int = 200,
        tol: float = 1e-6,
        stopping: Literal["relative", "absolute"] = "relative",
        max_memory: int | str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[[Stage], object] | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.solver = solver
        self.alpha = alpha
        self.ridge = ridge
        self.scale = scale
        self.class_weight = class_weight
        self.loss = loss
        self.ranking = ranking
        self.max_features = max_features
        self.certify = certify
        self.include = include
        self.exclude = exclude
        self.penalty_factor = penalty_factor
        self.feature_groups = feature_groups
        self.alpha_start = alpha_start
        self.rate = rate
        self.line_search_factor = line_search_factor
        self.eta = eta
        self.lipschitz_start = lipschitz_start
        self.init = init
        self.random_state = random_state
        self.max_iter = max_iter
        self.tol = tol
        self.stopping = stopping
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn which features tell the targets apart.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Finite numbers. In blocks are Dask arrays (of arrays or SciPy sparse matrices), zarr arrays, HDF5 data sets, the
            ``.X`` of an AnnData object that a file backs, large memory maps and what :func:`l20fs.blocks.open_large` opens.
            A dense array of torch or CuPy stays on its device (docs/gpu.md).
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, a label indicator matrix, or numbers.
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts: weight 2 is the same as the sample twice, 0 leaves it out.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _validate(self, X: Any, y: Any) -> tuple[Any, Targets]:
        if self.checkpoint is None and not comes_in_blocks(X, self.max_memory):
            return super()._validate(X, y)
        self._refuse_what_needs_samples(X)
        refuse_masked(X, "X")
        blocks = as_blocks(X, self.max_memory)
        return blocks, self._encode(validate_beside_blocks(self, blocks, y))

    def _refuse_what_needs_samples(self, X: Any) -> None:
        """Refuse what is not available for a matrix in blocks."""
        if self.checkpoint is not None and not comes_in_blocks(X, self.max_memory) and not isinstance(X, np.ndarray):
            raise TypeError(
                f"checkpoint={os.fspath(self.checkpoint)!r} with X in a {type(X).__name__} is not available: it is for "
                "matrices that are read in blocks. Use a NumPy array, a Dask array or a file, or no checkpoint."
            )
        for name, value in (("loss", "l21"), ("certify", True)):
            if getattr(self, name) == value:
                raise ValueError(f"{name}={value!r} is not available for X in blocks. Load X into memory, or leave it out.")

    def _learn(self, X: Any, targets: Targets, **extra: Any) -> None:
        self.ridge_ = default_ridge(targets) if self.ridge is None else float(self.ridge)
        if isinstance(X, Blocks):
            self._refuse_before_reading(X, targets)
            X = X if self.checkpoint is None else PassCache(X, self.checkpoint, probe)
        # The problem itself sets constant features aside, without a copy of X.
        problem = make_problem(
            X,
            targets.Y,
            ridge=self.ridge_,
            scale=self.scale,
            target_weights=weights_of_targets(targets, self.class_weight),
            sample_weight=targets.sample_weight,
        )
        penalty = self._penalty(problem)
        size = self.n_features_to_select
        k = 1 if size is None else self._n_wanted(size, penalty.n_units)
        self._refuse_less_than_included(size, k, len(penalty.included))
        n_allowed = int(np.count_nonzero(penalty.costs < np.inf))
        k_max = min(max(k, self.max_features or 1, len(penalty.included)), n_allowed)
        path, problem = self._solve(problem, penalty, k_max)
        path = path.ranked_by(self.ranking)
        if self.n_features_to_select is None:
            k_max = max(k_max, int(path.sizes[-1]))
        self.path_ = path.with_panel(problem, k_max)
        problem.foresee(None)
        if self.n_features_to_select == "ebic":
            self.ebic_ = self._ebic(problem, penalty, k_max)
        if self.certify:
            self._certify(problem, k_max)
        self.scores_ = path.scores
        self.objective_ = path.objectives
        self.n_iter_ = max(1, int(path.n_iters.sum()))
        self._keep_model(problem, targets)
        if targets.classes is not None:
            self.classes_ = targets.classes

    def _refuse_before_reading(self, X: Blocks, targets: Targets) -> None:
        """Refuse what can be refused without a pass over X, which may take an hour; the problem refuses it as well."""
        weights_of_targets(targets, self.class_weight)
        checked_units(X, self.scale, targets.sample_weight)
        penalty = self._wished(np.ones(X.shape[1], dtype=bool), getattr(self, "feature_names_in_", None))
        # A share is one of units, of which there are more if constant features, which are not known yet, leave groups.
        size = self.n_features_to_select
        if isinstance(size, numbers.Integral if penalty.has_groups else numbers.Real):
            self._refuse_less_than_included(size, self._n_wanted(size, penalty.n_units), len(penalty.included))
        if penalty.has_groups and self.solver in REPLACING and not X.has_short_columns:
            raise ValueError(
                f"feature_groups with solver={self.solver!r} need X in memory, or in blocks of columns with fewer samples "
                "than features. Use solver='ahiht' or 'hiht'."
            )
        shape = (targets.Y.shape[1], X.shape[1])
        if not isinstance(self.init, str) and np.shape(self.init) != shape:
            raise ValueError(f"init has the shape {np.shape(self.init)}; expected (n_targets, n_features) = {shape}.")

    def _keep_model(self, problem: LeastSquares, targets: Targets) -> None:
        """Keep what a subclass needs to predict."""

    def _n_wanted(self, k: Size, n_features: int) -> int:
        if k != "ebic":
            return super()._n_wanted(k, n_features)
        if not hasattr(self, "path_"):
            return min(self.max_features or LARGEST_SEARCHED, n_features)
        if not hasattr(self, "ebic_"):
            raise ValueError("n_features_to_select='ebic' was set after fit, which did not compute it. Fit again.")
        # With more included features than samples allow for, all are infinite and none is added.
        return max(self.path_.n_included, int(np.argmin(self.ebic_)))

    def _ebic(self, problem: LeastSquares, penalty: RowPenalty, k_max: int) -> Array:
        """Return the extended BIC of the best 0, 1, ... features or groups."""
        varies = problem.design.varies
        rows = self.path_.support(k_max)
        rows = rows[varies[rows]]
        n_included, n_selectable = len(penalty.included), penalty.n_selectable(varies)
        ends = np.searchsorted(self.path_.ranking[rows], np.arange(min(k_max, n_selectable) + 1), side="right")
        return ebic(problem, rows, ends=ends, n_candidates=n_selectable - n_included, n_fixed=n_included)

    def _penalty(self, problem: LeastSquares) -> RowPenalty:
        """Return what the features cost, as the user wishes."""
        names = getattr(self, "feature_names_in_", None)
        penalty = self._wished(problem.design.varies, names)
        if penalty.is_plain:
            return penalty
        self._warn_of_idle_features(problem, penalty, Features(problem.n_features, names))
        return penalty

    def _wished(self, varies: Array, names: Array | None) -> RowPenalty:
        wishes = {name: getattr(self, name) for name in WISHES}
        if all(wish is None for wish in wishes.values()):
            return RowPenalty.plain(len(varies))
        penalty = make_penalty(varies, names, **wishes)
        if not penalty.n_selectable(varies):
            raise ValueError(
                f"All {len(varies)} features are excluded or constant, so there is nothing to select. Exclude fewer."
            )
        return penalty

    def _warn_of_idle_features(self, problem: LeastSquares, penalty: RowPenalty, features: Features) -> None:
        """Warn of included features that are selected and add nothing."""
        rows = np.flatnonzero(penalty.costs[penalty.unit_of] == 0.0)
        # Within a group it is only natural that features depend on each other: one-hot columns add up to 1.
        is_single = (np.bincount(penalty.unit_of) == 1)[penalty.unit_of[rows]]
        varying = np.concatenate([rows[~is_single], rows[is_single]])
        varying = varying[problem.design.varies[varying]]
        constant = rows[~problem.design.varies[rows]]
        dependent = np.intersect1d(problem.dependent(varying), rows[is_single])
        for idle, what in ((constant, "constant"), (dependent, "copies or combinations of other included features")):
            if len(idle):
                listed = ", ".join(features.called(int(row)) for row in idle[:5])
                warnings.warn(
                    f"{len(idle)} of the included features are {what}, first {listed}. They are selected as you wish, and "
                    "add nothing.",
                    UserWarning,
                    stacklevel=5,
                )

    def _refuse_less_than_included(self, size: Any, k: int, n_included: int) -> None:
        if k < n_included and isinstance(size, numbers.Real):
            raise ValueError(
                f"n_features_to_select={size!r} is less than the {n_included} features or groups "
                "that are included. Ask for more, or include fewer."
            )

    def _solve(self, problem: LeastSquares, penalty: RowPenalty, k_max: int) -> tuple[SolutionPath, LeastSquares]:
        """Return the path, and the problem of which its last stage is a solution."""
        common: dict[str, Any] = {"callback": self._report, "penalty": penalty}
        if self.loss == "l21":
            fit = robust(problem, k_max, target=self.alpha, with_exchanges=self.solver == "swap", **common)
            self.sample_weights_ = fit.problem.design.sample_weights.values
            return fit.path, fit.problem
        if self.solver in REPLACING:
            return REPLACING[self.solver](problem, k_max, target=self.alpha, **common), problem
        return self._follow_gradient(problem, k_max, **common), problem

    def _certify(self, problem: LeastSquares, k_max: int) -> None:
        """Bound the objective from below for every size, and say what is proved about the selection."""
        self.path_ = self.path_.with_bounds(lower_bounds(problem, k_max))
        if self.n_features_to_select is None:
            rows = np.flatnonzero(self.path_.is_selected)
            price = float(self.path_.alphas[-1])
            self.certificate_ = certify_penalty(problem, price, support_loss(problem, rows) + price * len(rows))
        else:
            k = min(self._n_wanted(self.n_features_to_select, problem.n_features), self.path_.n_ranked)
            if not k:  # EBIC chooses nothing, of which there is nothing to prove
                return
            self.certificate_ = certify_size(problem, k, support_loss(problem, self.path_.support(k)))

    def _follow_gradient(self, problem: LeastSquares, k_max: int, **common: Any) -> SolutionPath:
        schedule = Schedule(
            target=self.alpha,
            n_rows=k_max,
            start=self.alpha_start,
            rate=self.rate,
            line_search_factor=self.line_search_factor,
            eta=self.eta,
            lipschitz_start=self.lipschitz_start,
        )
        weights = starting_weights(problem, self.init, self.random_state)
        if self.solver == "ahiht":
            return ahiht(problem, schedule, weights=weights, **common)
        return hiht(
            problem,
            schedule,
            weights=weights,
            max_iter=self.max_iter,
            tol=self.tol,
            stopping=self.stopping,
            **common,
        )

    def _report(self, stage: Stage) -> None:
        if self.verbose:
            step_size = "" if math.isnan(stage.lipschitz) else f" L={stage.lipschitz:.4g}"
            print(
                f"[L20Selector] lambda={stage.alpha:.4g} rows={len(stage.rows)} f={stage.loss:.6g} "
                f"objective={stage.objective:.6g}{step_size} steps={stage.n_steps}"
            )
        if self.callback is not None:
            self.callback(stage)

    def _select(self, k: Size) -> Array:
        path = self.path_
        if k is None:
            return path.is_selected
        self._refuse_less_than_included(k, self._n_wanted(k, path.n_units), path.n_included)
        if self.alpha is not None and path.sizes[-1] == path.n_included:
            return path.is_selected  # the user chose a lambda at which nothing else is worth its price
        return super()._select(k)

    def _count_units(self) -> tuple[int, int]:
        return self.path_.n_units, self.path_.n_ranked

    def _shortage(self, k: int, n_units: int, n_selectable: int) -> str:
        if self.path_.n_selectable == self.n_features_in_:
            return super()._shortage(k, n_units, n_selectable)
        what = "features" if n_units == self.n_features_in_ else "features and groups"
        return f", but only {n_selectable} of {n_units} {what} may be selected; these are returned."

    @property
    def ranking_(self) -> Array:  # type: ignore[override]  # of all features, which are only sorted when one asks for it
        """The rank of each feature; 1 is best, and the features of a group share a rank."""
        return self.path_.ranking

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "path_")

    def coef_for(self, k: Size) -> Array:
        """Return the weights at the end of the path of the features selected for ``k``, in units of X; zero elsewhere.

        They have the shape (n_targets, n_features); nothing is fitted again, see :meth:`model_for`.
        """
        mask = self.support_for(k)
        return self.path_.coef_of(mask)

    def model_for(self, k: Size) -> LinearRule:
        """Return the linear rule on the features selected for ``k``, best first: least squares with the ridge term."""
        rows, path = self.order_for(k), self.path_
        weights = path.refit(path.ranking[rows[-1]]).coef[:, rows].T if len(rows) else np.zeros((0, len(path.y_mean)))
        weights, intercept = self._decide(weights * path.x_scale[rows, None])
        weights = weights / path.x_scale[rows, None]
        return LinearRule(rows, weights, intercept - path.x_mean[rows] @ weights)

    def _decide(self, weights: Array) -> tuple[Array, Array]:
        """Turn least-squares weights of centred and scaled features into weights and intercepts of the rule."""
        return weights, self.path_.y_mean

    @property
    def coef_(self) -> Array:
        """Weights of the selected features at the end of the path, in units of X; zero elsewhere."""
        return self.coef_for(self.n_features_to_select)

    @property
    def intercept_(self) -> Array:
        """The intercept that belongs to ``coef_``."""
        return self.path_.y_mean - self.coef_ @ self.path_.x_mean

    def selection_frame(self, X: Any = None, *, stability: Any = None, n_substitutes: int = 3) -> pd.DataFrame:
        """Return a tidy table of the selected features, best first.

        Columns: ``feature``, ``rank``, ``score``, ``norm`` (of its weights at the end of the path), ``entry_alpha`` (the
        largest lambda at which the row was non-zero), ``rule`` (what ranked it, see :class:`~l20fs.SolutionPath`),
        ``stability`` and ``could_replace`` (where asked for), ``strongest`` (the class with the largest absolute weight,
        of two opposite ones the class it is high in) and the weight of each class.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features), optional
            Samples, as a rule those of the fit, on which ``could_replace`` is measured: the other features with the
            largest absolute correlation, as in ``"gene7 (0.93), gene2 (-0.88)"``;
            :func:`l20fs.estimators.selection_table.substitutes` gives the numbers.
        stability : StabilitySelector, optional
            Fitted on the same features: how often each one was selected in its resamples.
        n_substitutes : int, default=3
            How many features ``could_replace`` names.
        """
        return selection_frame(self, self.n_features_to_select, X, stability, n_substitutes)

    def as_classifier(self) -> L20Classifier:
        """Return an unfitted :class:`L20Classifier` with the same parameters: it selects the same, and predicts labels."""
        from l20fs.estimators.models import L20Classifier

        return L20Classifier(**clone(self).get_params(deep=False))

    def as_regressor(self) -> L20Regressor:
        """Return an unfitted :class:`L20Regressor` with the same parameters: it selects the same, and predicts numbers."""
        from l20fs.estimators.models import L20Regressor

        return L20Regressor(**clone(self).get_params(deep=False))

    def target_names(self) -> list[str]:
        """Return a name per row of ``coef_``: the class labels, or the numbers of the outputs."""
        check_is_fitted(self)
        names = getattr(self, "classes_", range(len(self.path_.y_mean)))
        return [str(name) for name in names]

    def _check_parameters(self) -> None:
        check_choice("solver", self.solver, (*REPLACING, "ahiht", "hiht"))
        check_choice("ranking", self.ranking, ("entry", "norm"))
        check_choice("loss", self.loss, ("squared", "l21"))
        if self.loss == "l21" and self.solver not in ("forward", "swap"):
            raise ValueError(f"loss='l21' with solver={self.solver!r} is not available. Use solver='forward' or 'swap'.")
        if self.certify and self.loss != "squared":
            raise ValueError(
                f"certify=True with loss={self.loss!r} is not available: the bounds are those of squares. Use "
                "loss='squared', or certify=False."
            )
        if self.certify and not (self.feature_groups is None and self.penalty_factor is None):
            raise ValueError(
                "certify=True with feature_groups or penalty_factor is not available: the bounds count features, all at the "
                "same price. Use certify=False, or include and exclude alone."
            )
        check_choice("stopping", self.stopping, ("relative", "absolute"))
        if self.ridge is not None:
            check_number("ridge", self.ridge, minimum=0.0, strict=False)
        check_number("tol", self.tol, minimum=0.0, strict=False)
        check_number("line_search_factor", self.line_search_factor, minimum=1.0)
        check_number("rate", self.rate, minimum=0.0, below=1.0)
        check_number("max_iter", self.max_iter, minimum=1, strict=False, whole=True)
        for name in ("alpha", "alpha_start", "eta", "lipschitz_start"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), minimum=0.0, strict=name != "eta")
        if self.max_memory is not None:
            memory_limit(self.max_memory)
        if self.max_features is not None:
            check_number("max_features", self.max_features, minimum=1, strict=False, whole=True)
        if self.solver in REPLACING and not (isinstance(self.init, str) and self.init == "zeros"):
            shown = repr(self.init) if isinstance(self.init, str) else f"an array of shape {np.shape(self.init)}"
            raise ValueError(
                f"init is {shown}, but solver={self.solver!r} starts without any feature. Use init='zeros', or the solver "
                "'ahiht' or 'hiht'."
            )
        if isinstance(self.init, str) and self.init not in ("zeros", "gaussian", "uniform"):
            raise ValueError(
                f"init={self.init!r} is unknown. Use 'zeros', 'gaussian', 'uniform' or an array of shape (n_targets, "
                "n_features)."
            )
        if self.n_features_to_select is None and self.alpha is None:
            raise ValueError(
                "n_features_to_select=None keeps the non-zero rows at alpha, but alpha is None. Give one of the two."
            )
