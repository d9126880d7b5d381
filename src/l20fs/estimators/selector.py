"""L20Selector: l2,0-penalised least squares as a scikit-learn selector."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from sklearn.base import clone

from l20fs.defaults import (
    DEFAULT_CLASS_WEIGHT,
    DEFAULT_N_FEATURES,
    DEFAULT_RIDGE,
    DEFAULT_SCALE,
    DEFAULT_SOLVER,
)
from l20fs.design import Part, Scale, Walk, finish
from l20fs.design.driver import Request
from l20fs.estimators.base import About
from l20fs.estimators.frames import is_lazy
from l20fs.estimators.path_selector import PathSelector
from l20fs.estimators.penalty import feature_penalty, panel_penalty, refuse_size, size_range, warn_of_idle_features
from l20fs.inputs.constraints import Constraints
from l20fs.inputs.devices import is_dask
from l20fs.inputs.old_names import name_new_parameters
from l20fs.inputs.targets import Targets, warn_of_numbers, weights_of_targets
from l20fs.inputs.validation import check_choice, check_flag, check_number
from l20fs.objective.nested_rules import PlainSquares
from l20fs.objective.problem import Problem, problem_on
from l20fs.objective.ridge import check_ridge, ridge_on
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.solvers import SOLVERS, Solver, make_solver
from l20fs.solvers.robust import bounded_weights
from l20fs.text import quoted
from l20fs.typing import Array, Task

if TYPE_CHECKING:
    from l20fs.estimators.models import L20Classifier, L20Regressor

Loss = Literal["squared_error", "l21"]


class L20Selector(PathSelector):
    r"""Select features by least squares with the exact :math:`l_{2,0}` penalty.

    .. math:: \min_{W, b} \tfrac12 \|X W + 1 b' - Y\|_F^2 + \tfrac\mu2 \|W\|_F^2
              + \lambda \cdot \#\{\text{non-zero rows of } W\}

    A non-zero row is a selected feature, shared by all classes. One fit computes the whole regularisation path, so that
    :meth:`at` answers for any other number of features.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=20
        Number of features to select, or a share of all features; of groups, where ``constraints`` has groups. None: the
        non-zero rows at the end of a path that the solver ends at a lambda, as ``AHIHT(alpha_min=1e-4)`` does.
    max_features_to_select : int or None, default=None
        Number of features that the path runs to, if that is more: :meth:`at` then ranks and refits up to it.
    solver : {"forward", "swap", "ahiht", "hiht"} or solver object, default="forward"
        ``"forward"`` adds the feature that lowers the objective most. ``"swap"`` also exchanges features while that helps.
        ``"ahiht"`` and ``"hiht"`` are the paper's thresholded gradient steps; their options belong to the objects
        :class:`~l20fs.AHIHT` and :class:`~l20fs.HIHT`.
    loss : {"squared_error", "l21"}, default="squared_error"
        ``"l21"``: the length of each sample's error instead of half its square, which wrong labels pull less. For the
        solvers ``"forward"`` and ``"swap"``, at a hundred times the cost or more.
    ridge : float or "auto", default="auto"
        Strength of the ridge term relative to the mean squared norm of a centred feature that varies; 0 is the paper's
        problem. ``"auto"``: it grows with the number of features per sample, for numbers up to 0.1.
    refit_ridge : float or None, default=None
        Ridge of the weights of the model of numbers on the selected features, in the same units; None: that of the
        selection. :class:`L20SelectorCV` chooses it.
    scale : {"auto", "moderated", "zscore", "none"}, default="auto"
        Divisor of each feature before selection: its deviation (``"zscore"``), its deviation plus the median of all
        (``"moderated"``), or 1. ``"auto"``: ``"moderated"`` where the deviations are comparable, else ``"zscore"``.
    class_weight : dict, "balanced" or None, default="balanced"
        Weight of the squared error in the column of each class. ``"balanced"``: inverse to the size of the class. A dict
        gives a weight per label, 1 where none is given. Of no effect on numbers.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether y holds labels, or numbers. ``"auto"``: numbers if it has fractions, several columns that are no label
        indicator, or more than 20 distinct whole numbers of which most occur once or twice; else labels.
    constraints : Constraints or None, default=None
        What every selection meets: features that are included or excluded, groups, costs, numbers per class or set.
    fit_intercept : bool, default=True
        Whether b is fitted. False: b is 0 and neither X nor y is centred.
    verbose : int, default=0
        1 prints a line for every lambda of the path.

    Attributes
    ----------
    path_ : SolutionPath
        The solutions at every lambda, and the ranking of all features.
    scores_ : array of shape (n_features,)
        Larger is better; ``-inf`` for a constant or excluded feature.
    ranking_ : array of shape (n_features,)
        1 is best; the features of a group share a rank.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    n_features_ : int
        Number of selected features.
    coef_ : array of shape (n_targets, n_features)
        Weights of the selected features at the end of the path, in units of X, one row per class or output; zero elsewhere.
    intercept_ : array of shape (n_targets,)
        Zero with ``fit_intercept=False``.
    classes_ : array of shape (n_classes,)
        The labels in sorted order, if y holds labels.
    task_ : {"classification", "regression"}
        What y was taken for.
    ridge_ : float
        The strength of the ridge term that was used.
    scale_ : {"moderated", "zscore", "none"}
        The scaling that was used; ``"given"`` if ``scale`` is an array.
    task_ : {"classification", "regression"}
        What y was taken for.
    sample_weights_ : array of shape (n_samples,)
        With ``loss="l21"``: weight of each training sample in the end. The smallest ones may have wrong labels.
    n_iter_ : int
        Accepted steps, additions and exchanges in all.
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
    >>> selector.at(1).transform(X).shape
    (200, 1)
    """

    about = About(
        reference="Sun and Yu, Robust multi-class feature selection via l2,0-norm regularization minimization (2020)",
        kind="embedded",
        cost="O(N d C) per step",
    )
    _needs_labels = False
    _allows_none = True
    _takes_sparse = True
    _takes_device_arrays = True
    _takes_blocks = True
    _takes_parts = True

    path_: SolutionPath
    sample_weights_: Any
    n_iter_: int
    max_features_to_select: int | None
    class_weight: dict[Any, float] | str | None

    @name_new_parameters
    def __init__(
        self,
        n_features_to_select: int | float | None = DEFAULT_N_FEATURES,
        *,
        max_features_to_select: int | None = None,
        solver: str | Solver = DEFAULT_SOLVER,
        loss: Loss = "squared_error",
        ridge: float | str = DEFAULT_RIDGE,
        refit_ridge: float | None = None,
        scale: Scale = DEFAULT_SCALE,
        class_weight: dict[Any, float] | str | None = DEFAULT_CLASS_WEIGHT,
        task: Task = "auto",
        constraints: Constraints | None = None,
        fit_intercept: bool = True,
        verbose: int = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.max_features_to_select = max_features_to_select
        self.solver = solver
        self.loss = loss
        self.ridge = ridge
        self.refit_ridge = refit_ridge
        self.scale = scale
        self.class_weight = class_weight
        self.task = task
        self.constraints = constraints
        self.fit_intercept = fit_intercept
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, adjust_for: Any = None) -> Self:
        """Fit the path: learn which features explain the targets.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Finite numbers. In blocks are Dask arrays and data frames, zarr arrays, HDF5 data sets, the ``.X`` of an AnnData
            object that a file backs, large memory maps and what :func:`l20fs.open_large` opens. A dense array of torch or
            CuPy stays on its device. :class:`l20fs.inputs.names.NamedColumns` gives names to a matrix that has none.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, a label indicator matrix, or numbers; see ``task``.
        sample_weight : array of shape (n_samples,), optional
            Weight of each sample: 2 is the same as the sample twice, 0 leaves it out.
        adjust_for : array or list of shape (n_samples,) or (n_samples, n_columns), Series or DataFrame, optional
            Covariates of each sample, such as its batch or age, which are regressed out of X and y. Columns of floats are
            numbers, with a linear effect; all others are labels, with an effect each. Predictions do not need them.

        Returns
        -------
        self
            The fitted selector.
        """
        with self._fitting():
            finish(self._walk(*self._prepare(X, y, sample_weight, adjust_for)))
            self._warn_if_short()
        return self

    def _walk_fit(
        self, X: Part, y: Any, sample_weight: Any = None, adjust_for: Any = None, *, warn: bool = False
    ) -> Walk[None]:
        """Fit to some samples of a shared X beside others (:func:`l20fs.design.run`), as :meth:`fit` does.

        X may be :class:`l20fs.inputs.names.NamedColumns` with a part. ``warn`` tells whether to warn where features or
        classes fall short.
        """
        with self._fitting():
            yield from self._walk(*self._prepare(X, y, sample_weight, adjust_for))
            if warn:
                self._warn_if_short()

    def _validate(self, X: Any, y: Any) -> tuple[Any, Targets]:
        if isinstance(X, Part):
            return self._validate_part(X, y)
        if is_lazy(X):
            return self._validate_blocks(X, y)
        return super()._validate(X, y)

    def _encode(self, y: Array) -> Targets:
        targets = super()._encode(y)
        if self.task == "auto" and not self._needs_labels:
            warn_of_numbers(y, targets)
        return targets

    def _learn(self, X: Any, targets: Targets, **extra: Any) -> None:
        finish(self._walk(X, targets))

    def _walk(self, X: Any, targets: Targets) -> Walk[None]:
        """Pose the problem, fit the path and keep it, with what a refit of its features needs."""
        problem = yield from self._pose(X, targets)
        self.ridge_, self.scale_ = problem.relative_ridge, problem.design.scale_rule
        self.task_: Task = "regression" if targets.classes is None else "classification"
        basis = problem.design.sample_weights.basis
        self._n_nuisances = 0 if basis is None else len(basis)
        self._is_explained = problem.is_explained
        names = getattr(self, "feature_names_in_", None)
        penalty = panel_penalty(self.constraints, problem, targets, names)
        warn_of_idle_features(problem, penalty, names)
        k_max = self._largest_size(penalty)
        if penalty.rules is not None:
            k_max, penalty = self._sized_for_panels(k_max, penalty, problem.design.varies)
        solver, value = make_solver(self.solver), None
        if self.loss == "squared_error":
            path = yield from solver.walk(problem, k_max, penalty=penalty)
        else:
            path, problem, value = yield from solver.walk_robust(problem, k_max, penalty=penalty)
            self.sample_weights_ = problem.design.sample_weights.values
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
        self.n_iter_ = max(1, int(path.n_iters.sum()))
        self._keep_model(problem, targets)
        if targets.classes is not None:
            self.classes_ = targets.classes
        if self.verbose:
            print_path(path)

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
        self._warn_of_explained_targets()
        super()._warn_if_short()

    def _warn_of_explained_targets(self) -> None:
        """Warn of classes, or outputs, that no feature can tell since the covariates do."""
        explained = np.flatnonzero(self._is_explained)
        if len(explained):
            names = [str(name) for name in getattr(self, "classes_", np.arange(len(self._is_explained)))[explained]]
            warnings.warn(
                f"adjust_for explains {'class' if hasattr(self, 'classes_') else 'output'} {quoted(names)} altogether: no "
                "feature is selected for it. Add samples of other classes to its batches, or leave these columns out.",
                UserWarning,
                stacklevel=4,  # the caller of fit
            )

    def _most_rows(self, n_features: int) -> int:
        """Return how many features a path has at most, as far as the parameters tell."""
        size = self.n_features_to_select
        most = DEFAULT_N_FEATURES if size is None else self._n_wanted(size, n_features)
        return max(most, self.max_features_to_select or 1)

    def _largest_size(self, penalty: RowPenalty) -> int:
        """Return the number of features, or units of features, at which the path ends."""
        size, n_included = self.n_features_to_select, len(penalty.included)
        k = 1 if size is None else self._n_wanted(size, penalty.n_units)
        self._refuse_less_than_included(size, k, n_included)
        return min(max(k, self.max_features_to_select or 1, n_included), penalty.n_allowed)

    def _sized_for_panels(self, k_max: int, penalty: RowPenalty, varies: Array) -> tuple[int, RowPenalty]:
        """Return the size at which the path ends, and the penalty with the size that every panel on it can grow to."""
        size, rules = self.n_features_to_select, penalty.rules
        assert rules is not None
        if isinstance(size, numbers.Real):
            wanted = min(self._n_wanted(size, penalty.n_units), penalty.n_selectable(varies))
            refuse_size(penalty, varies, wanted)
        else:
            wanted = size_range(penalty, varies).least
        return max(k_max, wanted), replace(penalty, rules=replace(rules, size=wanted))

    def _refuse_before_reading(self, X: Any, targets: Targets) -> None:
        """Raise errors that need no pass over X, which may take an hour."""
        if self.loss == "l21":
            raise ValueError("loss='l21' is not available for X in blocks. Load X into memory, or leave it out.")
        names = getattr(self, "feature_names_in_", None)
        penalty = feature_penalty(self.constraints, np.ones(X.shape[1], dtype=bool), names)
        # A share is one of units, of which there are more if constant features, which are not known yet, leave groups.
        size = self.n_features_to_select
        if isinstance(size, numbers.Integral if penalty.has_groups else numbers.Real):
            self._refuse_less_than_included(size, self._n_wanted(size, penalty.n_units), len(penalty.included))
        make_solver(self.solver).check_shape(targets.Y.shape[1], X.shape[1])

    def _keep_model(self, problem: Problem, targets: Targets) -> None:
        """Set the attributes that a subclass needs to predict."""

    def _as_classifier(self) -> L20Classifier:
        """Return an unfitted classifier with the same parameters: it selects the same features, and predicts labels."""
        from l20fs.estimators.models import L20Classifier

        return L20Classifier(**self._params_of(L20Classifier))

    def _as_regressor(self) -> L20Regressor:
        """Return an unfitted regressor with the same parameters: it selects the same features, and predicts numbers."""
        from l20fs.estimators.models import L20Regressor

        return L20Regressor(**self._params_of(L20Regressor))

    def _params_of(self, model: type[L20Selector]) -> dict[str, Any]:
        own = clone(self).get_params(deep=False)
        return {name: own[name] for name in model._get_param_names() if name in own}

    def _check_parameters(self) -> None:
        solver = make_solver(self.solver)
        solver.check()
        check_choice("task", self.task, get_args(Task))
        check_choice("loss", self.loss, get_args(Loss))
        if self.loss not in solver.losses:
            able = _either(other for other in SOLVERS.values() if self.loss in other.losses)
            raise ValueError(f"loss={self.loss!r} with solver={self.solver!r} is not available. Use solver={able}.")
        if self.constraints is not None:
            self._check_constraints(solver)
        check_flag("fit_intercept", self.fit_intercept)
        check_ridge(self.ridge)
        if self.refit_ridge is not None:
            check_number("refit_ridge", self.refit_ridge, minimum=0.0, strict=False)
        if self.max_features_to_select is not None:
            check_number("max_features_to_select", self.max_features_to_select, minimum=1, strict=False, whole=True)
        if self.n_features_to_select is None and solver.alpha_min is None:
            raise ValueError(
                "n_features_to_select=None selects the non-zero rows at the end of a path that a lambda ends. Give one, as "
                "in solver=AHIHT(alpha_min=1e-4), or a number of features."
            )

    def _check_constraints(self, solver: Solver) -> None:
        """Refuse constraints that make no sense, or that the solver or the loss cannot follow."""
        if not isinstance(self.constraints, Constraints):
            raise TypeError(f"constraints={self.constraints!r} is no object of l20fs.Constraints. Use one, or None.")
        self.constraints.check()
        if not self.constraints.limit_panels:
            return
        if not solver.takes_constraints:
            able = _either(other for other in SOLVERS.values() if other.takes_constraints)
            raise ValueError(f"Limits of panels with solver={self.solver!r} are not available. Use solver={able}.")
        if self.loss != "squared_error":
            raise ValueError(
                f"Limits of panels with loss={self.loss!r} are not available. Use loss='squared_error', or no limits."
            )


def posed_again(
    selector: L20Selector, X: Any, y: Any, sample_weight: Any = None, adjust_for: Any = None
) -> tuple[Problem, RowPenalty]:
    """Return the problem that a fitted selector solved, and its penalty, from the samples of the fit."""
    X, targets = clone(selector)._prepare(X, y, sample_weight, adjust_for)
    problem, path = finish(selector._pose(X, targets)), selector.path_
    pairs = ((path.x_mean, problem.design.mean), (path.x_scale, problem.design.scale), (path.y_mean, problem.y_mean))
    if not all(ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-6) for ours, theirs in pairs):
        raise ValueError(
            "X, y, sample_weight or adjust_for differ from those of the fit, whose problem this is about. Give those of the "
            "fit, or fit again."
        )
    return problem, panel_penalty(selector.constraints, problem, targets, getattr(selector, "feature_names_in_", None))


def print_path(path: SolutionPath) -> None:
    """Print a line for every lambda."""
    for stage, alpha in enumerate(path.alphas):
        step_size = "" if math.isnan(path.lipschitz[stage]) else f" L={path.lipschitz[stage]:.4g}"
        print(
            f"[L20Selector] lambda={alpha:.4g} rows={path.n_nonzero[stage]} f={path.losses[stage]:.6g} "
            f"objective={path.objectives[stage]:.6g}{step_size} steps={path.n_iters[stage]}"
        )


def _either(solvers: Iterable[type[Solver]]) -> str:
    """Name solvers to choose from."""
    return " or ".join(repr(solver.name) for solver in solvers)
