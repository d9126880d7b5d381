"""Steps before a selection: fitted once in every fold, on its training samples, and once on all samples."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, check_array, check_consistent_length, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import validate_data

from l20fs.evaluation.engine import Parts, Samples
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.parallel import results_of
from l20fs.inputs.constraints import FEATURE_CONSTRAINTS, Features, resolve_constraints
from l20fs.inputs.frames import collected, collected_targets
from l20fs.inputs.panel_constraints import Constraints
from l20fs.inputs.validation import (
    name_texts,
    refuse_foreign_array,
    refuse_non_finite,
    refuse_non_numbers,
    refuse_odd_targets,
    refuse_repeated_names,
)
from l20fs.text import quoted
from l20fs.typing import Array


class Preprocessed(NamedTuple):
    """The transformer fitted to all samples, what it makes of them, and the parts of every fold; None if there is none."""

    fitted: Any
    samples: Samples
    parts: list[Parts] | None


@dataclass(frozen=True)
class Preprocessing:
    """The parameter ``preprocess`` of :class:`~l20fs.L20SelectorCV`, and metadata for its ``fit``."""

    transformer: Any
    params: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what is no transformer."""
        is_estimator = all(hasattr(self.transformer, name) for name in ("fit", "transform", "get_params"))
        if self.transformer is not None and (isinstance(self.transformer, type) or not is_estimator):
            raise TypeError(
                f"preprocess={self.transformer!r} is not a transformer. Use one with fit and transform, such as "
                "StandardScaler() or make_pipeline(SimpleImputer(), StandardScaler()), or None."
            )

    def tag(self, tags: Tags) -> Tags:
        """Add to the tags of a selector what the first step takes."""
        first = self.transformer
        tags.array_api_support &= first is None
        while isinstance(first, Pipeline):
            first = next((step for _, step in first.steps if step not in (None, "passthrough")), None)
        if hasattr(first, "get_params") and not isinstance(first, type):
            tags.input_tags.allow_nan = get_tags(first).input_tags.allow_nan and _fills_gaps(self.transformer)
            tags.input_tags.sparse &= get_tags(self.transformer).input_tags.sparse
        return tags

    def add_to(self, router: MetadataRouter) -> MetadataRouter:
        """Say which metadata of ``fit`` the transformer asks for."""
        if self.transformer is None:
            return router
        mapping = MethodMapping().add(caller="fit", callee="fit_transform")
        return router.add(preprocess=self.transformer, method_mapping=mapping)

    def apply(self, samples: Samples, folds: Sequence[Fold], n_jobs: int | None) -> Preprocessed:
        """Fit a copy of the transformer to all samples, and one in every fold to its training samples."""
        if self.transformer is None:
            return Preprocessed(None, samples, None)
        fitted, after = self._fit(samples, self.params)
        if not after.X.shape[1]:
            raise ValueError(f"preprocess={self.transformer!r} leaves no features to select. Keep some.")
        apply_in = partial(self._apply_in, samples, after.names, after.X.shape[1])
        return Preprocessed(fitted, after, list(results_of(apply_in, [(fold,) for fold in folds], n_jobs)))

    def _apply_in(self, samples: Samples, names: Array | None, n_features: int, fold: Fold) -> Parts:
        parts = self.apply_in(samples, fold)
        return parts._replace(places=_places(parts.train, names, n_features))

    def apply_in(self, samples: Samples, fold: Fold) -> Parts:
        """Fit a copy of the transformer to the training samples of a fold; it gives the same columns in all of them."""
        if self.transformer is None:
            return Parts(samples.part(fold.train), samples.part(fold.test))
        params = {name: np.asarray(values)[fold.train] for name, values in self.params.items()}
        fitted, train = self._fit(samples.part(fold.train), params)
        test = samples.part(fold.test)
        return Parts(train, replace(test, X=values_of(fitted.transform(test.X), fitted), names=train.names))

    def _fit(self, samples: Samples, params: Mapping[str, Any]) -> tuple[Any, Samples]:
        """Return a fitted copy, and the samples as it transforms them in its fit, with the names that it gives."""
        fitted = clone(self.transformer)
        try:
            if hasattr(fitted, "fit_transform"):  # as in a pipeline; of some, TargetEncoder, another result than transform
                X = fitted.fit_transform(samples.X, samples.y, **params)
            else:
                X = fitted.fit(samples.X, samples.y, **params).transform(samples.X)
        except (TypeError, ValueError) as error:
            name_texts(error, samples.X)
            raise
        names = _names_of(X, fitted, samples.names)
        values = values_of(X, fitted, names)
        check_consistent_length(values, samples.y)
        return fitted, replace(samples, X=values, names=names)


def _fills_gaps(transformer: Any) -> bool:
    """Return whether a transformer makes finite numbers of a small table with gaps: a scaler takes and leaves them."""
    X = np.array([[0.0, 1.0], [np.nan, 2.0], [1.0, np.nan], [2.0, 0.0]])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = clone(transformer).fit_transform(X, np.array([0, 1, 0, 1]))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return False
    return bool(np.isfinite(found.data if sp.issparse(found) else np.asarray(found, dtype=np.float64)).all())


def validate_before(estimator: Any, X: Any, y: Any) -> tuple[Any, Array]:
    """Validate y, and of an X that is yet to be preprocessed the container; record its names and size."""
    X, y = collected(X), collected_targets(y)
    refuse_foreign_array(X, "X", f"{type(estimator).__name__} with preprocess")
    refuse_foreign_array(y, "y")
    refuse_odd_targets(y)
    y = validate_data(estimator, "no_validation", y=y, multi_output=True)
    X = X if hasattr(X, "shape") else np.asarray(X)
    validate_data(estimator, X, y, skip_check_array=True)
    check_consistent_length(X, y)
    if X.shape[0] < 2:
        raise ValueError(f"X has n_samples={X.shape[0]}. Give at least 2 samples.")
    return X, y


def values_of(X: Any, fitted: Any, names: Array | None = None) -> Any:
    """Return what a transformer gave as an array or a CSR matrix of finite numbers; ``names`` are for messages."""
    try:
        refuse_foreign_array(X, "X")
        refuse_non_numbers(X)
        refuse_repeated_names(X)
        values = check_array(
            X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], ensure_all_finite=False, ensure_min_features=0
        )
        refuse_non_finite(values, names, type(fitted).__name__)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"Features cannot be selected from what preprocess={type(fitted).__name__} gives: {error}"
        ) from error
    return values.tocsr() if sp.issparse(values) else values


def names_after(fitted: Any, names: Any) -> Array | None:
    """Return the names that a fitted transformer gives to its columns, None if it gives none."""
    try:
        return np.asarray(fitted.get_feature_names_out(names), dtype=object)
    except (AttributeError, TypeError):  # a step without names, such as a FunctionTransformer
        return None


def _names_of(X: Any, fitted: Any, names: Array | None) -> Array | None:
    """Return the names of the columns that a transformer gave, by the columns of a frame or by ``get_feature_names_out``."""
    columns = getattr(X, "columns", None)
    given = names_after(fitted, names) if columns is None else np.asarray(columns, dtype=object)
    if given is None or np.shape(X)[1:] != (len(given),) or not all(isinstance(name, str) for name in given):
        return None
    unique, counts = np.unique(given.astype(str), return_counts=True)
    if len(unique) < len(given):
        raise ValueError(
            f"preprocess={type(fitted).__name__} gives names more than once: {quoted(unique[counts > 1].tolist())}. Give "
            "every column a unique name."
        )
    return given


def _places(train: Samples, names: Array | None, n_features: int) -> Array | None:
    """Return where the columns of a fold are among those of all samples, -1 for others; None if they are the same."""
    width = train.X.shape[1]
    if names is None or train.names is None:
        if width != n_features:
            raise ValueError(
                f"preprocess gives {width} columns in a fold and {n_features} on all samples, without names to tell which. "
                "Use one with get_feature_names_out, or with set_output(transform='pandas')."
            )
        return None
    return None if np.array_equal(names, train.names) else _find(train.names, names)


def _find(wanted: Array, names: Array) -> Array:
    """Return the places of some names among others, -1 for those that are not there."""
    place_of = {name: place for place, name in enumerate(names)}
    return np.array([place_of.get(name, -1) for name in wanted], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class CarriedConstraints:
    """Constraints on the columns of all samples, for models of folds that have other columns.

    A column that only the fold has is free; one that the fold does not have needs no constraint there.
    """

    names: Array
    labels: Array
    factors: Array
    of_panels: Constraints | None = None

    @classmethod
    def of(cls, selector: Any, samples: Samples, parts: Sequence[Parts] | None) -> CarriedConstraints | None:
        """Return the constraints of a selector if some fold needs them carried."""
        constraints = {name: getattr(selector, name) for name in FEATURE_CONSTRAINTS}
        of_panels = selector.constraints
        is_free = of_panels is None and all(value is None for value in constraints.values())
        if all(part.places is None for part in parts or []) or is_free:
            return None
        assert samples.names is not None
        features = Features(samples.X.shape[1], samples.names)
        resolved = resolve_constraints(np.ones(features.n_features, dtype=bool), samples.names, **constraints)
        return cls(samples.names, *resolved, None if of_panels is None else of_panels.by_index(features))

    def adapt(self, model: Any, train: Samples) -> None:
        """Give an unfitted model the constraints of the columns that the training samples of a fold have."""
        names = train.names
        if names is None:
            return
        places = _find(names, self.names)
        labels = np.where(places < 0, len(self.labels) + np.arange(len(names)), self.labels[places])
        factors = np.where(places < 0, 1.0, self.factors[places])
        model.set_params(include=None, exclude=None, penalty_factor=factors, feature_groups=labels)
        if self.of_panels is not None:
            model.set_params(constraints=self.of_panels.placed(places))
