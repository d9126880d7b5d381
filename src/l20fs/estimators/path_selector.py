"""Selectors whose fitted state is a path: they answer for any number of features without another fit."""

from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from l20fs.estimators.base import BaseSelector
from l20fs.estimators.selection_table import selection_frame
from l20fs.inputs.panel_constraints import Constraints
from l20fs.objective.nested_rules import NestedRules, PlainSquares
from l20fs.objective.solution_path import SolutionPath
from l20fs.prediction.discriminant import ClassScatter
from l20fs.prediction.linear_rule import LinearRule
from l20fs.typing import Array, Size

if TYPE_CHECKING:
    import pandas as pd


class PathSelector(BaseSelector):
    """Base of selectors with a :class:`~l20fs.SolutionPath`.

    ``_learn`` of a subclass sets ``path_``.
    """

    path_: SolutionPath
    alpha: float | None
    max_features: int | None
    constraints: Constraints | None
    refit_ridge: float | None = None
    #: Class means and scatter of the features that can be refitted, of models that score classes.
    _scatter: ClassScatter | None = None
    #: Least squares of numbers without a ridge term on the features that can be refitted.
    _plain: PlainSquares | None = None

    def _select(self, k: Size) -> Array:
        path = self.path_
        if k is None:
            return path.is_selected
        self._refuse_less_than_included(k, self._n_wanted(k, path.n_units), path.n_included)
        self._refuse_less_than_required(k, self._n_wanted(k, path.n_units))
        if self.alpha is not None and path.sizes[-1] == path.n_included:
            return path.is_selected  # the user chose a lambda at which nothing else is worth its price
        leading = path.leading(self._n_wanted(k, path.n_units))
        if not leading.size:
            return super()._select(k)
        mask = np.zeros(path.n_features, dtype=bool)
        mask[leading] = True
        return mask

    def _best_first(self, mask: Array, k: Size) -> Array:
        leading = self.path_.leading(int(np.count_nonzero(mask)))
        return leading if mask[leading].all() and leading.size else super()._best_first(mask, k)

    def _warn_if_beyond(self, k: Size) -> None:
        path = self.path_
        end = int(path.sizes[-1])
        if k is None or self.alpha is not None or end < path.largest_refit:
            return  # the path ended by itself: another fit ends there, too, and ranks the rest in the same way
        wanted = min(self._n_wanted(k, path.n_units), path.n_ranked)
        if wanted > end:
            warnings.warn(
                f"n_features_to_select={k!r} goes beyond the {end} {self._units} of the fitted path, whose ranking after "
                f"them is not that of a fresh fit: fit with max_features={wanted}.",
                UserWarning,
                stacklevel=3,  # the caller of support_for
            )

    @property
    def _units(self) -> str:
        """The word for the units in messages."""
        return "features and groups" if self.path_.n_units < self.n_features_in_ else "features"

    def _count_units(self) -> tuple[int, int]:
        return self.path_.n_units, self.path_.n_ranked

    def _shortage(self, k: int, n_units: int, n_selectable: int) -> str:
        if self.path_.n_selectable == self.n_features_in_:
            return super()._shortage(k, n_units, n_selectable)
        return f", but only {n_selectable} of {n_units} {self._units} may be selected; these are returned."

    @property
    def scores_(self) -> Array:  # type: ignore[override]  # of all features, which may still be on a device
        """Score of each feature; larger is better."""
        return self.path_.scores

    @property
    def ranking_(self) -> Array:  # type: ignore[override]  # of all features, which are only sorted when one asks for it
        """Rank of each feature; 1 is best, and the features of a group share a rank."""
        return self.path_.ranking

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "path_")

    def coef_for(self, k: Size) -> Array:
        """Return the weights at the end of the path of the features selected for ``k``, as ``coef_`` has them.

        Nothing is fitted again: the weights of the other features are dropped. See :meth:`model_for` for least squares on
        exactly these features, which is the same where ``k`` is the end of a path of the solvers "forward" or "swap".

        Parameters
        ----------
        k : int, float or None
            Any value that ``n_features_to_select`` takes.

        Returns
        -------
        array of shape (n_targets, n_features)
            Weights in units of X; zero for features that are not selected.
        """
        mask = self.support_for(k)
        return self.path_.coef_of(mask)

    def model_for(self, k: Size) -> LinearRule:
        """Return the linear rule on the features selected for ``k``: least squares with the ridge term.

        Parameters
        ----------
        k : int, float or None
            Any value that ``n_features_to_select`` takes.

        Returns
        -------
        LinearRule
            Features, best first, their weights in units of X, and the intercept.

        Raises
        ------
        ValueError
            If ``k`` is more than the path can be refitted for, the larger of ``n_features_to_select`` and ``max_features``
            in ``fit``.
        """
        check_is_fitted(self)
        self._check_size(k)
        return next(iter(self.models_on(np.array([np.count_nonzero(self._select(k))]))))

    def models_on(self, ends: Array, refit_ridge: float | None = None) -> NestedRules:
        """Return the linear rules of :meth:`model_for` on several numbers of the best features, which are solved at once.

        Parameters
        ----------
        ends : array of int of shape (n_rules,)
            Numbers of features, ascending.
        refit_ridge : float or None, default=None
            Ridge of the weights of a regression, in place of that of the selector.

        Returns
        -------
        NestedRules
            Its ``apply(X[:, rules.rows])`` has the values of all rules, (n_samples, n_rules, n_values), and iterating over
            it gives the rules.

        Raises
        ------
        ValueError
            If the last of ``ends`` is more than the path can be refitted for.

        Examples
        --------
        >>> from l20fs import L20Classifier
        >>> from l20fs.data import load_srbct
        >>> tumours = load_srbct()
        >>> rules = L20Classifier(5).fit(tumours.data, tumours.target).models_on(np.arange(1, 6))
        >>> rules.apply(tumours.data[:, rules.rows]).shape
        (63, 5, 4)
        """
        check_is_fitted(self)
        ridge = self.refit_ridge if refit_ridge is None else refit_ridge
        squares = None if ridge is None or self._plain is None else self._plain.with_ridge(ridge)
        return self.path_.nested_refits(ends, self._scatter, squares)

    @property
    def coef_(self) -> Array:
        """Weights of the selected features at the end of the path, in units of X; zero elsewhere."""
        return self.coef_for(self.n_features_to_select)

    @property
    def intercept_(self) -> Array:
        """Intercept of ``coef_``."""
        return self.path_.y_mean - self.coef_ @ self.path_.x_mean

    def selection_frame(
        self, X: Any = None, y: Any = None, *, stability: Any = None, n_substitutes: int = 3
    ) -> pd.DataFrame:
        """Return a table of the selected features, best first.

        Columns: ``feature``, ``rank``, ``score``, ``norm`` (of its weights at the end of the path), ``entry_alpha`` (the
        largest lambda at which the row was non-zero), ``rule`` (what ranked it, see :class:`~l20fs.SolutionPath`),
        ``failure_cost`` (the share by which the loss rises if it fails to be measured and the others are fitted again),
        ``stability``, ``level`` and ``could_replace`` (where asked for), and the weight of each class.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features), optional
            Samples, as a rule those of the fit, on which ``could_replace`` is measured: the other features with the
            largest absolute correlation, as in ``"gene7 (0.93), gene2 (-0.88)"``, where it is at least 0.5 and more than
            chance gives (:func:`l20fs.estimators.selection_table.worthwhile_correlation`);
            :func:`l20fs.estimators.selection_table.substitutes` gives the numbers of all.
        y : array of shape (n_samples,), optional
            Classes or numbers of these samples, with which ``level`` tells where a feature is high or low, by its class
            means: ``"high in RMS"``, ``"low in NB"`` (:func:`l20fs.evaluation.levels.class_level`); of numbers,
            ``"rises with target"`` or ``"falls with target"``.
        stability : StabilitySelector, optional
            Fitted on the same features: how often each one was selected in its resamples.
        n_substitutes : int, default=3
            How many features ``could_replace`` names at most.

        Returns
        -------
        DataFrame
            One row per selected feature.
        """
        return selection_frame(self, self.n_features_to_select, X, y, stability, n_substitutes)

    def target_names(self) -> list[str]:
        """Return the names of the targets.

        Returns
        -------
        list of str
            The class labels, or the numbers of the outputs.
        """
        check_is_fitted(self)
        names = getattr(self, "classes_", range(len(self.path_.y_mean)))
        return [str(name) for name in names]

    def _refuse_less_than_required(self, size: Any, k: int) -> None:
        """Refuse a number of features with which the constraints cannot be met on the path."""
        if k < self.path_.least_size:
            wishes = "" if self.constraints is None else f" ({self.constraints.sentence()})"
            raise ValueError(
                f"n_features_to_select={size!r} is less than the {self.path_.least_size} {self._units} that the constraints"
                f"{wishes} need on this path. Ask for more, or fit again with this number."
            )

    def _refuse_less_than_included(self, size: Any, k: int, n_included: int) -> None:
        """Refuse a number of features that leaves no room for those that are included."""
        if k < n_included and isinstance(size, numbers.Real):
            raise ValueError(
                f"n_features_to_select={size!r} is less than the {n_included} features or groups "
                "that are included. Ask for more, or include fewer."
            )
