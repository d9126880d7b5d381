"""Base of classifiers, regressors and searches for the number of features: log-probabilities, and the panel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if

from l20fs.inputs.devices import Place, as_numpy, is_device_array
from l20fs.inputs.targets import Targets
from l20fs.prediction.calibration import log_of
from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.prediction.panel import Panel


def beside(X: Any, values: Array) -> Any:
    """Return numbers as an array on the device of X, if X is on one; texts and other objects stay NumPy arrays.

    Examples
    --------
    >>> import numpy as np
    >>> beside([[1.0]], np.array([2]))
    array([2])
    """
    return Place(X).send(values) if is_device_array(X) and values.dtype.kind in "biuf" else values


class Exported:
    """Mixin of selectors with a path, which can be written to a panel."""

    def _panel_source(self, X: Any) -> tuple[Any, Callable[[Array], Targets], Any, dict[str, Any]]:
        """Return the model with the rules, how it encodes y, X as it takes it, and what the panel should know of both."""
        return self, self._encode, X, {}  # type: ignore[attr-defined]  # of the selector

    def to_panel(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        adjust_for: Any = None,
        *,
        n_substitutes: int = 3,
        k_max: int | None = None,
        transform: str = "none",
        target_names: Any = None,
        provenance: dict[str, Any] | None = None,
    ) -> Panel:
        """Return what predicts from the selected features, for a file; see :class:`~l20fs.Panel`.

        It has the linear rules and their calibration for every k that the path can be refitted for, as far as the number of
        weights stays reasonable, and sums over the training samples, but none of them. Where another
        ``estimator`` of :class:`~l20fs.L20SelectorCV` predicts, the panel does not; with its ``preprocess`` the features of
        the panel are the columns that it gives, and so are the values that the panel takes.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            The samples of the fit. The few columns of the panel are read into memory.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            The labels or numbers of the fit.
        sample_weight : array of shape (n_samples,), optional
            The weights of the fit.
        adjust_for : array, list, Series or DataFrame, optional
            The nuisances of the fit, if it had any.
        n_substitutes : int, default=3
            How many substitutes are looked for, per feature; 0 for none, which saves a pass over X.
        k_max : int, optional
            Largest number of features; by default at most 100, and such that there are some ten thousand weights.
        transform : {"none", "log1p"}, default="none"
            What was done to the measured values to get X, and the panel is to do with new ones.
        target_names : str or sequence of str, optional
            Name of the label, or of each output; that of a series or table by default.
        provenance : dict, optional
            Anything about the origin of the panel that JSON can hold.

        Returns
        -------
        Panel
            The panel of the present ``n_features_to_select``.
        """
        from l20fs.estimators.panel_export import export

        model, encode, X, about = self._panel_source(X)
        return export(
            model,
            X,
            y,
            sample_weight,
            adjust_for,
            encode,
            n_substitutes=n_substitutes,
            k_max=k_max,
            transform=transform,
            target_names=target_names,
            provenance=about | (provenance or {}),
        )


class Predictor:
    """Mixin of selectors that predict by the linear rule of a path."""

    @available_if(lambda self: hasattr(self, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Samples with the features of the fit.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Logarithms of the probabilities, where X is.
        """
        probabilities = self.predict_proba(X)  # type: ignore[attr-defined]  # it is there, as this method is
        return beside(X, log_of(as_numpy(probabilities)))


class Scored:
    """Mixin of models whose predictions may be on a device."""

    predict: Callable[[Any], Any]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or R^2 of a regressor, as in scikit-learn.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Samples with the features of the fit.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            The truth, in memory or on any device.
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts.

        Returns
        -------
        float
            1.0 where all predictions are right.
        """
        measure = accuracy_score if is_classifier(self) else r2_score
        y, predicted, sample_weight = (as_numpy(values) for values in (y, self.predict(X), sample_weight))
        return float(measure(y, predicted, sample_weight=sample_weight))
