"""Selectors whose number of features a search has chosen: they answer and predict with the path of that choice."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from l20fs.estimators.base import BaseSelector
from l20fs.estimators.judged_model import JudgedModel
from l20fs.estimators.models import L20Classifier, L20Regressor
from l20fs.estimators.predictor import Predictor
from l20fs.estimators.selection_table import feature_names, without_names
from l20fs.evaluation.choice import choose
from l20fs.evaluation.preprocessing import Preprocessing, names_after, values_of
from l20fs.inputs.devices import as_numpy, is_device_array
from l20fs.inputs.frames import collected
from l20fs.inputs.names import NamedColumns
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import refuse_foreign_array
from l20fs.prediction.calibration import Calibration
from l20fs.prediction.linear_rule import LinearRule
from l20fs.typing import Array, Size, Task

if TYPE_CHECKING:
    import pandas as pd

Model = L20Classifier | L20Regressor


class SearchedSelector(Predictor, BaseSelector):
    """Base of selectors with the scores of all sizes and a path on all samples.

    ``_learn`` of a subclass sets the attributes below; ``estimator``, ``scoring`` and ``preprocess`` are parameters, and
    ``_task`` says what is predicted. ``preprocess_`` comes before everything that takes an X; the features are its columns.
    """

    estimator: Any
    scoring: Any
    preprocess: Any
    preprocess_: Any
    cv_results_: dict[str, Array]
    best_index_: int
    n_features_: int
    model_: Model
    estimator_: Any
    #: The sizes that were tried, the rule of the fit, and the columns that ``estimator_`` was fitted on.
    _tried: list[int | None]
    _least: float
    _chosen_by: Size
    _columns: Array

    @property
    def _judged(self) -> JudgedModel:
        return JudgedModel(self.estimator, self.scoring, self._task)

    @property
    def scorer_(self) -> Any:
        """The scorer, as scikit-learn makes it of ``scoring``."""
        return self._judged.scorer()

    @property
    @abstractmethod
    def _task(self) -> Task:
        """The task that the parameters name, "auto" if none does."""

    def _n_wanted(self, k: Size, n_features: int) -> int:
        if isinstance(k, str):
            return len(np.unique(self.ranking_[self._select(k)]))
        return super()._n_wanted(k, n_features)

    def _select(self, k: Size) -> Array:
        return self._sized(k).support_

    def _count_units(self) -> tuple[int, int]:
        path = self.model_.path_
        return path.n_units, path.n_ranked

    def _sized(self, k: Size) -> Model:
        """Return the path's own model, which selects what ``k`` means here."""
        size = self._size_for(k)
        return self.model_.with_size(size)

    def _size_for(self, k: Size) -> int | float | None:
        """Return the size that ``k`` means on the path that is there."""
        check_is_fitted(self)
        self._check_size(k)
        if not isinstance(k, str):
            return k
        index = self.best_index_
        if k != self._chosen_by:
            # Another rule after the fit chooses on the path that is there.
            results = self.cv_results_
            same_path = results["ridge"] == results["ridge"][index]
            if self._tried == [None]:
                raise ValueError(f"n_features_to_select={k!r} may choose another alpha, and hence another path. Fit again.")
            index = choose(results, k, self._least, same_path)
        return self._tried[index % len(self._tried)]

    def coef_for(self, k: Size) -> Array:
        """Return the weights of the path's own model for ``k``, see :meth:`L20Classifier.coef_for`.

        Parameters
        ----------
        k : int, float or {"auto", "best"}
            Any value that ``n_features_to_select`` takes.

        Returns
        -------
        array of the shape of ``coef_``
            Weights in units of X; zero for features that are not selected.
        """
        return self._sized(k).coef_

    def model_for(self, k: Size) -> LinearRule:
        """Return the linear rule of the path's own model for ``k``, see :meth:`L20Classifier.model_for`.

        Parameters
        ----------
        k : int, float or {"auto", "best"}
            Any value that ``n_features_to_select`` takes.

        Returns
        -------
        LinearRule
            Features, best first, their weights in units of X, and the intercept.
        """
        model = self._sized(k)
        return model.model_for(model.n_features_to_select)

    @property
    def coef_(self) -> Array:
        """Weights of the path's own model, see :class:`L20Classifier`."""
        return self.coef_for(self.n_features_to_select)

    @property
    def intercept_(self) -> Any:
        """Intercepts of the path's own model."""
        return self._sized(self.n_features_to_select).intercept_

    def selection_frame(
        self, X: Any = None, y: Any = None, *, stability: Any = None, n_substitutes: int = 3
    ) -> pd.DataFrame:
        """Return a tidy table of the selected features, see :meth:`L20Selector.selection_frame`.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features), optional
            Samples on which substitutes are looked for.
        y : array of shape (n_samples,), optional
            Classes or numbers of these samples, by which a feature is high or low.
        stability : StabilitySelector, optional
            Fitted on the same features.
        n_substitutes : int, default=3
            How many substitutes each feature gets at most.

        Returns
        -------
        DataFrame
            One row per selected feature.
        """
        model = self._sized(self.n_features_to_select)
        if X is not None and self.preprocess_ is not None:
            X = NamedColumns(self._preprocessed(X), feature_names(model))
        return model.selection_frame(X, y, stability=stability, n_substitutes=n_substitutes)

    def _preprocessed(self, X: Any) -> Any:
        """Return X as ``preprocess_`` transforms it, an array or a CSR matrix."""
        check_is_fitted(self)
        X = collected(X)
        refuse_foreign_array(X, "X")
        X = X if hasattr(X, "shape") else np.asarray(X)
        if len(X.shape) == 2:  # text has one axis; whether that is right knows the transformer
            validate_data(self, X, reset=False, skip_check_array=True)
        return values_of(self.preprocess_.transform(X), self.preprocess_)

    def transform(self, X: Any) -> Any:
        """Reduce X to the selected features, after ``preprocess_`` if there is one.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the fit.

        Returns
        -------
        array, DataFrame or sparse matrix of shape (n_samples, n_selected)
            Columns of the selected features, in the order of X, or of what ``preprocess_`` gives.
        """
        check_is_fitted(self)
        if self.preprocess_ is None:
            return super().transform(X)
        return self._preprocessed(X)[:, self._chosen()]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the selected features, as ``preprocess_`` gives them if there is one.

        Parameters
        ----------
        input_features : array of str, optional
            Names of the features of X, if the fit had none.

        Returns
        -------
        array of str
            One per selected feature; x0, x1, ... are the columns of a ``preprocess_`` that gives no names.
        """
        check_is_fitted(self)
        if self.preprocess_ is None:
            return np.asarray(super().get_feature_names_out(input_features))
        names = None if input_features is None else names_after(self.preprocess_, input_features)
        return (feature_names(self) if names is None else names)[self.get_support()]

    def _predictor(self, X: Any) -> tuple[Any, Any]:
        """Return what predicts, and X as it wants it."""
        model = self._sized(self.n_features_to_select)
        if self.preprocess_ is not None:
            model, X = without_names(model), self._preprocessed(X)
        if self._judged.is_own:
            return model, X
        chosen = np.flatnonzero(model.support_)
        if not np.array_equal(chosen, self._columns):
            raise ValueError(
                f"estimator_ was fitted on {self.n_features_} features; n_features_to_select={self.n_features_to_select!r} "
                f"now selects {len(chosen)}. Fit again, or set n_features_to_select={self._chosen_by!r}."
            )
        if self.preprocess_ is None:
            X = collected(X)
            if is_device_array(X):
                return self.estimator_, as_numpy(self._transform_there(X))
            refuse_foreign_array(X, "X")
            X = validate_data(self, X, reset=False, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
        return self.estimator_, X[:, chosen]

    def predict(self, X: Any) -> Array:
        """Predict with the selected features.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the fit.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            Labels or numbers.
        """
        predictor, X = self._predictor(X)
        return _as_array(predictor.predict(X))

    @available_if(lambda self: hasattr(self._judged.unfitted, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Score the classes with the selected features."""
        predictor, X = self._predictor(X)
        return _as_array(predictor.decision_function(X))

    @available_if(lambda self: hasattr(self._judged.unfitted, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes.

        Those of the path's own model are calibrated by its decisions in the folds (:class:`L20Classifier`), those of another
        ``estimator`` are its own.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the fit.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities of the classes in the order of ``classes_``.
        """
        predictor, X = self._predictor(X)
        return _as_array(predictor.predict_proba(X))

    @available_if(lambda self: self._judged.classifies)  # type: ignore[untyped-decorator]
    def calibration_for(self, k: Size) -> Calibration:
        """Return the calibration of the path's own model for ``k``, see :meth:`L20Classifier.calibration_for`.

        Parameters
        ----------
        k : int, float or {"auto", "best"}
            Any value that ``n_features_to_select`` takes.

        Returns
        -------
        Calibration
            Its ``probabilities(values)`` are those of :meth:`predict_proba`.
        """
        model = self._sized(k)
        assert isinstance(model, L20Classifier)
        return model.calibration_for(model.n_features_to_select)

    def _panel_source(self, X: Any) -> tuple[Any, Callable[[Array], Targets], Any, dict[str, Any]]:
        model = self._sized(self.n_features_to_select)
        if self.preprocess_ is None:
            return model, model._encode, X, {}
        about = {"preprocess": type(self.preprocess_).__name__}
        return model, model._encode, NamedColumns(self._preprocessed(X), feature_names(model)), about

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score the prediction with the selected features by ``scoring``.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the fit.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            True labels or numbers.
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts.

        Returns
        -------
        float
            The score; larger is better.
        """
        predictor, X = self._predictor(X)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.scorer_(predictor, X, y, **weights))

    def __sklearn_tags__(self) -> Tags:
        return Preprocessing(self.preprocess).tag(self._judged.tag(super().__sklearn_tags__()))


def _as_array(values: Any) -> Any:
    """Return an array of NumPy, or of the library of X."""
    return values if is_device_array(values) else np.asarray(values)
