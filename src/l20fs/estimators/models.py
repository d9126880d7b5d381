"""Classifier and regressor on the selected features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, validate_data

from l20fs.defaults import (
    DEFAULT_CLASS_WEIGHT,
    DEFAULT_N_FEATURES,
    DEFAULT_RIDGE,
    DEFAULT_SCALE,
    DEFAULT_SOLVER,
)
from l20fs.design import Part, Scale, Walk
from l20fs.estimators.calibration import folded_calibrations
from l20fs.estimators.frames import is_lazy, opened, without_frame
from l20fs.estimators.predictor import Predictor, Scored, beside
from l20fs.estimators.selector import L20Selector, Loss
from l20fs.inputs.constraints import Constraints
from l20fs.inputs.devices import Place, as_numpy, is_device_array
from l20fs.inputs.old_names import name_new_parameters
from l20fs.inputs.targets import Targets, numeric_targets
from l20fs.inputs.validation import refuse_foreign_array, refuse_odd_tensor, refuse_other_width
from l20fs.objective.class_scatter import class_scatter
from l20fs.objective.problem import Problem
from l20fs.prediction.calibration import Calibration, Calibrations
from l20fs.prediction.linear_rule import decide
from l20fs.solvers import Solver
from l20fs.typing import Array, Task


class _Model(Predictor, L20Selector):
    """Base of the classifier and the regression: a linear rule on the selected features."""

    #: Whether y has one dimension, and hence the weights too: labels have a row of weights in any case.
    _is_flat = False

    def _apply(self, X: Any) -> Any:
        """Return the values of the rule at the samples, (n_samples, n_targets), where X is."""
        rule = self._linear_rule()
        if not is_device_array(X):
            return rule.apply(self._columns(X, rule.rows))
        place, columns = Place(X), self._columns_there(X, rule.rows)
        return columns @ place.send(rule.weights) + place.send(rule.intercept)

    def _columns_there(self, X: Any, rows: Array) -> Any:
        """Return a few columns of an X on a device in float64, there, if they are finite."""
        refuse_odd_tensor(X, "X")
        refuse_other_width(self, X)
        validate_data(self, X, reset=False, skip_check_array=True)  # warns if it has no names, but the fit had
        place = Place(X)
        if not place.xp.isdtype(X.dtype, "real floating"):
            raise TypeError(f"X has the type {X.dtype}; on a device it must be float32 or float64. Convert it first.")
        columns = place.xp.astype(place.xp.take(_detached(X), place.send(rows), axis=1), place.xp.float64)
        if not bool(place.xp.all(place.xp.isfinite(columns))):
            raise ValueError("The features of the panel have missing or infinite values in X. Replace them first.")
        return columns

    def _columns(self, X: Any, rows: Array) -> Any:
        """Return a few columns of a valid X in memory."""
        if isinstance(X, Part):
            return X[:, rows]
        kinds: dict[str, Any] = {"accept_sparse": ["csr", "csc"], "dtype": [np.float64, np.float32]}
        X = without_frame(self, X)
        if not is_lazy(X):
            refuse_foreign_array(X, "X")
            return validate_data(self, X, reset=False, **kinds)[:, rows]
        refuse_other_width(self, X)
        return check_array(opened(X)[:, rows].compute(), ensure_min_features=0, **kinds)

    @property
    def coef_(self) -> Array:
        """Weights of the rule in units of X; zero for features that are not selected."""
        rule = self._linear_rule()
        coef = np.zeros((len(rule.intercept), self.n_features_in_))
        coef[:, rule.rows] = rule.weights.T
        return coef[0] if self._is_flat else coef

    @property
    def intercept_(self) -> Any:
        """Intercepts of the rule."""
        intercept = self._linear_rule().intercept
        return float(intercept[0]) if self._is_flat else intercept


def _detached(X: Any) -> Any:
    """Return an array of which torch records no gradients."""
    return X.detach() if hasattr(X, "detach") else X


def calibrate(model: L20Classifier, calibration: Any, calibrations: Calibrations) -> None:
    """Give a fitted classifier calibrations from elsewhere."""
    model.set_params(calibration=calibration)
    model._calibrations = calibrations


class L20Classifier(Scored, ClassifierMixin, _Model):
    """Select features with the exact l2,0 penalty and classify by them.

    The rule is a discriminant analysis of the least-squares predictions (:mod:`l20fs.prediction.discriminant`). Another
    number of features up to ``max_features_to_select`` (:meth:`at`) has another selection and rule, and needs no second fit.
    As in scikit-learn fractions are no labels.

    Parameters
    ----------
    n_features_to_select, max_features_to_select, solver, loss, ridge, scale, class_weight : various
        As in :class:`L20Selector`, and so is the selection.
    calibration : int, splitter, iterable or None, default=5
        The folds in which the whole selection is repeated, so that probabilities come from scores that do not know the label
        of the sample: a number of shuffled folds, or any ``cv`` of scikit-learn. None: nothing is computed, and
        :meth:`predict_proba` is not available.
    constraints, fit_intercept, verbose : various
        As in :class:`L20Selector`.

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights of the class scores, in units of X; zero for features that are not selected. ``X @ coef_.T + intercept_``
        is :meth:`decision_function`, which of two classes scores the second (and has one dimension then). The weights of
        least squares are in ``path_.refit(k)``, one row per class.
    intercept_ : array of shape (n_classes,), or (1,) for two classes
    classes_ : array of shape (n_classes,)
        The labels in sorted order.
    path_, scores_, ranking_, support_, ridge_, scale_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`L20Selector`.

    Examples
    --------
    >>> from l20fs.data import load_srbct
    >>> train, test = load_srbct(), load_srbct(subset="test")
    >>> model = L20Classifier(n_features_to_select=20).fit(train.data, train.target)
    >>> model.score(test.data, test.target)
    0.95
    >>> model.at(10).predict(test.data[:2]).tolist()
    ['NB', 'EWS']
    >>> model.predict_proba(test.data[:2]).shape
    (2, 4)
    """

    _needs_labels = True
    task: Task = "classification"
    #: Calibration of each number of units.
    _calibrations: Calibrations | None

    @name_new_parameters
    def __init__(
        self,
        n_features_to_select: int | float | None = DEFAULT_N_FEATURES,
        *,
        max_features_to_select: int | None = None,
        solver: str | Solver = DEFAULT_SOLVER,
        loss: Loss = "squared_error",
        ridge: float | str = DEFAULT_RIDGE,
        scale: Scale = DEFAULT_SCALE,
        class_weight: dict[Any, float] | str | None = DEFAULT_CLASS_WEIGHT,
        calibration: Any = 5,
        constraints: Constraints | None = None,
        fit_intercept: bool = True,
        verbose: int = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.max_features_to_select = max_features_to_select
        self.solver = solver
        self.loss = loss
        self.ridge = ridge
        self.scale = scale
        self.class_weight = class_weight
        self.calibration = calibration
        self.constraints = constraints
        self.fit_intercept = fit_intercept
        self.verbose = verbose

    def _walk(self, X: Any, targets: Targets) -> Walk[None]:
        yield from super()._walk(X, targets)
        self._calibrations = None if self.calibration is None else folded_calibrations(self, X, targets)

    def _keep_model(self, problem: Problem, targets: Targets) -> None:
        rows = self.path_.support(self.path_.largest_refit)
        self._scatter = class_scatter(problem, rows, targets, self.class_weight)

    def decision_function(self, X: Any) -> Any:
        """Score the classes.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Samples with the features of the fit; of an array on a device the few columns of the rule are read there.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes
            The larger, the likelier; of two classes, positive for the second. They are where X is.
        """
        scores = self._apply(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _calibration(self) -> Calibration:
        """Return the calibration of the rule on the selected features."""
        if self._calibrations is None:
            raise AttributeError("calibration=None computes no probabilities. Fit again with calibration=5, or other folds.")
        rows = self._linear_rule().rows
        size = int(self.path_.ranking[rows[-1]]) if len(rows) else 0
        return self._calibrations.at(size)

    @available_if(lambda self: self.calibration is not None)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes.

        They are those of samples like the ones of the fit, with the same shares of the classes. :meth:`predict` decides as
        ``class_weight`` says: where it is "balanced" and the classes are of unequal sizes, the class of the largest
        probability may be another one.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Samples with the features of the fit; of an array on a device the few columns of the rule are read there.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities of the classes in the order of ``classes_``, where X is.
        """
        values = as_numpy(self._apply(X))
        return beside(X, self._calibration().probabilities(values))

    def predict(self, X: Any) -> Any:
        """Predict the label of each sample.

        It is that of the highest score of :meth:`decision_function`, which counts the classes as ``class_weight`` says; the
        class of the largest probability may be another one.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Samples with the features of the fit; of an array on a device the few columns of the rule are read there.

        Returns
        -------
        array of shape (n_samples,)
            Labels; numbers are on the device of X if it is on one, texts are NumPy.
        """
        codes = decide(as_numpy(self._apply(X)))
        return beside(X, np.asarray(self.classes_[codes]))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.calibration, str):
            raise ValueError(f"calibration={self.calibration!r} is not valid. Use a number of folds, or None.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


class L20Regressor(Scored, RegressorMixin, _Model):
    """Select features with the exact l2,0 penalty and predict numbers by them.

    The selection is one set of features for all outputs. The prediction is least squares, with the ridge term of
    ``refit_ridge``, on exactly the selected features. Another number of features up to ``max_features_to_select``
    (:meth:`at`) needs no second fit.

    Parameters
    ----------
    n_features_to_select, max_features_to_select, solver, loss, ridge, refit_ridge, scale : various
        As in :class:`L20Selector`.
    constraints, fit_intercept, verbose : various
        As in :class:`L20Selector`.

    Attributes
    ----------
    coef_ : array of shape (n_features,), or (n_outputs, n_features) for a y of two dimensions
        Weights in units of X; zero for features that are not selected. ``X @ coef_.T + intercept_`` is :meth:`predict`.
    intercept_ : float, or array of shape (n_outputs,) for a y of two dimensions
    path_, scores_, ranking_, support_, ridge_, scale_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`L20Selector`.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> Y = X[:, [4, 7]] @ np.array([[1.0, 2.0], [3.0, -1.0]])
    >>> model = L20Regressor(n_features_to_select=2, ridge=1e-6).fit(X, Y)
    >>> model.get_support(indices=True).tolist(), round(model.score(X, Y), 6)
    ([4, 7], 1.0)
    """

    task: Task = "regression"
    class_weight = None

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
        self.constraints = constraints
        self.fit_intercept = fit_intercept
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, adjust_for: Any = None) -> Self:
        """Fit the selector and the regression: learn which features explain the outputs.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Finite numbers, as for :meth:`L20Selector.fit`.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Numbers; whole numbers are numbers too, not labels.
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts.
        adjust_for : array or list of shape (n_samples,) or (n_samples, n_columns), Series or DataFrame, optional
            Known nuisances of each sample, such as its batch, as for :meth:`L20Selector.fit`.

        Returns
        -------
        self
            The fitted model.
        """
        return super().fit(X, y, sample_weight, adjust_for)

    def _encode(self, y: Array) -> Targets:
        self._is_flat = y.ndim == 1
        return numeric_targets(y, fit_intercept=self.fit_intercept)

    def predict(self, X: Any) -> Any:
        """Predict the outputs of each sample.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Samples with the features of the fit; of an array on a device the few columns of the rule are read there.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            Numbers, in the shape of the y of the fit, where X is.
        """
        values = self._apply(X)
        return values[:, 0] if self._is_flat else values
