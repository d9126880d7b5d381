"""Names and parameters of other packages' selectors, on ours: what their tests call is answered by l20fs.

An adapter translates parameters and names of attributes. What is selected, transformed and scored is ours; where a selector
of another package also predicts, the estimator that the test gives is fitted to the columns that we select.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from l20fs import Constraints, L20Classifier, L20Regressor, L20Selector, L20SelectorCV, methods
from l20fs.estimators.base import About, BaseSelector


class SelectorMixin(BaseSelector):
    """Our base of all selectors in the place of scikit-learn's mixin, from which its tests derive a selector."""

    about = About("a test", "none", "O(1)", supervised=False)
    _takes_sparse = True

    def _learn(self, X: Any, targets: Any, **extra: Any) -> None:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")


class Adapter(BaseEstimator):
    """Base: whatever is not here is asked of ``selector_``, the fitted selector of ours."""

    estimator: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "selector_" or "selector_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.selector_, name)

    @property
    def _task(self) -> Any:
        return "regression" if is_regressor(self.estimator) else "auto"

    def _fitted(self, selector: Any, X: Any, y: Any, **params: Any) -> Any:
        self.selector_ = selector.fit(X, y, **params)
        return self

    def transform(self, X: Any) -> Any:
        check_is_fitted(self, "selector_")
        return self.selector_.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        check_is_fitted(self, "selector_")
        return self.selector_.get_feature_names_out(input_features)

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        return self.fit(X, y, **params).transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.target_tags.required = True, True
        if self.estimator is not None:
            inner = get_tags(self.estimator)
            tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
            tags.regressor_tags = inner.regressor_tags
        return tags


class SequentialFeatureSelector(Adapter):
    """scikit-learn's, as :class:`L20Selector`; with a tolerance, :class:`L20SelectorCV` finds the number of features."""

    def __init__(
        self, estimator, *, n_features_to_select="auto", tol=None, direction="forward", scoring=None, cv=5, n_jobs=None
    ):
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.tol = tol
        self.direction = direction
        self.scoring = scoring
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        solver = "forward" if self.direction == "forward" else "swap"
        if self.n_features_to_select == "auto" and self.tol is not None:
            search = L20SelectorCV(
                "best",
                selector=L20Selector(solver=solver),
                estimator=self.estimator,
                sizes=range(1, np.shape(X)[1] - 1 + 1),
                scoring=self.scoring,
                cv=self.cv,
                n_jobs=self.n_jobs,
            )
            return self._fitted(search, X, y, **params)
        size = 0.5 if self.n_features_to_select == "auto" else self.n_features_to_select
        return self._fitted(L20Selector(size, solver=solver, task=self._task), X, y, **params)

    @property
    def n_features_to_select_(self) -> int:
        return int(self.selector_.get_support().sum())


class RFE(Adapter):
    """scikit-learn's, as :class:`SVMRFE` on X as it is, with the C of the estimator if it has one."""

    def __init__(self, estimator, *, n_features_to_select=None, step=1, verbose=0, importance_getter="auto"):
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.verbose = verbose
        self.importance_getter = importance_getter

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        size = 0.5 if self.n_features_to_select is None else self.n_features_to_select
        given = {"C": self.estimator.C} if hasattr(self.estimator, "C") else {}
        if self._task == "regression":
            given["task"] = "regression"
        self._fitted(methods.SVMRFE(size, step=self.step, scale="none", **given), X, y, **params)
        self.estimator_ = clone(self.estimator).fit(self.transform(X), y, **params)
        return self

    def predict(self, X: Any) -> Any:
        return self.estimator_.predict(self.transform(X))

    def score(self, X: Any, y: Any, **params: Any) -> float:
        return self.estimator_.score(self.transform(X), y, **params)


class RFECV(Adapter):
    """scikit-learn's, as :class:`L20SelectorCV` for the numbers of features that its steps come by."""

    def __init__(
        self,
        estimator,
        *,
        step=1,
        min_features_to_select=1,
        cv=None,
        scoring=None,
        verbose=0,
        n_jobs=None,
        importance_getter="auto",
    ):
        self.estimator = estimator
        self.step = step
        self.min_features_to_select = min_features_to_select
        self.cv = cv
        self.scoring = scoring
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.importance_getter = importance_getter

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Any:
        n_features = np.shape(X)[1]
        step = max(1, int(self.step * n_features)) if self.step < 1 else self.step
        least = self.min_features_to_select
        search = L20SelectorCV(
            "best",
            estimator=self.estimator,
            sizes=sorted({least, *range(n_features, least, -step)}),
            cv=self.cv,
            scoring=self.scoring,
            verbose=self.verbose,
            n_jobs=self.n_jobs,
        )
        return self._fitted(search, X, y, **({} if groups is None else {"groups": groups}), **params)


class SelectFromModel(Adapter):
    """scikit-learn's, as our model of the task, which selects itself: ``max_features`` is the number of features.

    Without one the number is that of the extended BIC, or all features where the threshold excludes none. No other threshold
    means anything here.
    """

    def __init__(
        self, estimator, *, threshold=None, prefit=False, norm_order=1, max_features=None, importance_getter="auto"
    ):
        self.estimator = estimator
        self.threshold = threshold
        self.prefit = prefit
        self.norm_order = norm_order
        self.max_features = max_features
        self.importance_getter = importance_getter

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        if self.threshold not in (None, -np.inf):
            raise NotImplementedError(f"threshold={self.threshold!r}")
        size = self.max_features(X) if callable(self.max_features) else self.max_features
        if size is not None:
            self.max_features_ = size
        elif "max_features_" in vars(self):
            del self.max_features_
        free = 1.0 if self.threshold == -np.inf else 0.5
        Model = L20Regressor if self._task == "regression" else L20Classifier
        return self._fitted(Model(free if size is None else size), X, y, **params)

    @property
    def estimator_(self) -> Any:
        return self.selector_


class FastCan(Adapter):
    """fastcan's: the sum of squared canonical correlations is what least squares explains of orthonormal targets."""

    def __init__(
        self,
        n_features_to_select=1,
        *,
        indices_include=None,
        indices_exclude=None,
        eta=False,
        beam_width=1,
        tol=0.01,
        verbose=1,
    ):
        self.n_features_to_select = n_features_to_select
        self.indices_include = indices_include
        self.indices_exclude = indices_exclude
        self.eta = eta
        self.beam_width = beam_width
        self.tol = tol
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Any:
        Y = np.asarray(y, dtype=float).reshape(len(y), -1)
        Y = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)[0]
        Y = Y if Y.shape[1] > 1 else Y[:, 0]
        solver = "forward" if self.beam_width == 1 else "swap"
        selector = L20Selector(
            self.n_features_to_select,
            constraints=Constraints(include=self.indices_include, exclude=self.indices_exclude),
            solver=solver,
            ridge=0.0,
            scale="zscore",
            task="regression",
        )
        return self._fitted(selector, X, Y)

    @property
    def scores_(self) -> Any:
        return -2.0 * np.diff(self.selector_.path_.losses)  # half the squared errors, stage by stage

    @property
    def indices_(self) -> Any:
        return np.argsort(self.selector_.ranking_, kind="stable")[: self.n_features_to_select]


class ReliefF(Adapter):
    """skrebate's: the names of its attributes on our :class:`ReliefF`."""

    def __init__(self, n_features_to_select=10, n_neighbors=100):
        self.n_features_to_select = n_features_to_select
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any) -> Any:
        return self._fitted(methods.ReliefF(self.n_features_to_select, n_neighbors=self.n_neighbors), X, y)

    @property
    def feature_importances_(self) -> Any:
        return self.selector_.scores_

    @property
    def top_features_(self) -> Any:
        return np.argsort(self.selector_.ranking_)


class FloatingSelector(Adapter):
    """mlxtend's SequentialFeatureSelector: ``fixed_features`` are included, groups stay groups, and floating exchanges."""

    def __init__(
        self,
        estimator,
        k_features=1,
        forward=True,
        floating=False,
        verbose=0,
        scoring=None,
        cv=5,
        n_jobs=1,
        pre_dispatch="2*n_jobs",
        clone_estimator=True,
        fixed_features=None,
        feature_groups=None,
    ):
        self.estimator = estimator
        self.k_features = k_features
        self.forward = forward
        self.floating = floating
        self.verbose = verbose
        self.scoring = scoring
        self.cv = cv
        self.n_jobs = n_jobs
        self.pre_dispatch = pre_dispatch
        self.clone_estimator = clone_estimator
        self.fixed_features = fixed_features
        self.feature_groups = feature_groups

    def fit(self, X: Any, y: Any, **params: Any) -> Any:
        solver = "forward" if self.forward and not self.floating else "swap"
        wishes = Constraints(include=self.fixed_features, groups=self.feature_groups)
        n_units = len(self.feature_groups or np.asarray(X)[0])
        selector = L20Selector(solver=solver, task=self._task, max_features_to_select=n_units, constraints=wishes)
        if isinstance(self.k_features, int):
            self._fitted(selector.set_params(n_features_to_select=self.k_features), X, y, **params)
            self._describe(X, y, range(max(1, self.selector_.path_.least_size), self.k_features + 1))
            return self
        least, most = (1, n_units) if isinstance(self.k_features, str) else self.k_features
        rule = "auto" if self.k_features == "parsimonious" else "best"
        search = L20SelectorCV(
            rule, selector=selector, estimator=self.estimator, sizes=range(least, most + 1), scoring=self.scoring
        )
        self._fitted(search.set_params(cv=self.cv or 5), X, y, **params)
        self._describe(X, y, range(least, most + 1))
        return self

    def _describe(self, X: Any, y: Any, sizes: range) -> None:
        """Score the caller's estimator on the features of every size, as mlxtend does."""
        self.subsets_ = {}
        for size in sizes:
            chosen = np.flatnonzero(self.selector_.at(size).support_)
            columns = np.asarray(X)[:, chosen]
            if self.cv:
                scores = cross_val_score(self.estimator, columns, y, cv=self.cv, scoring=self.scoring)
            else:
                scores = np.array([clone(self.estimator).fit(columns, y).score(columns, y)])
            self.subsets_[size] = {"feature_idx": tuple(chosen.tolist()), "cv_scores": scores, "avg_score": scores.mean()}

    @property
    def k_feature_idx_(self) -> tuple[int, ...]:
        return tuple(self.selector_.get_support(indices=True).tolist())
