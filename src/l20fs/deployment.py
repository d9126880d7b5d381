"""Fitted estimators in other formats: converters for skl2onnx, and the types that skops may load.

:func:`register_converters` makes ``skl2onnx.to_onnx`` know every estimator of this package, alone and in a pipeline.
:func:`trusted_types` is the list that ``skops.io.load`` and MLflow ask for. docs/use_panel.md names both.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from l20fs.bounds.certificate import Certificate
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.models import L20Classifier, L20Regressor
from l20fs.estimators.resampled import Units
from l20fs.estimators.scoring import Solution
from l20fs.estimators.selector import L20Selector
from l20fs.estimators.selector_cv import L20SelectorCV
from l20fs.estimators.stability import StabilitySelector
from l20fs.methods import discover
from l20fs.objective.nested_rules import PlainSquares
from l20fs.objective.path_ranking import Occupied
from l20fs.objective.solution_path import SolutionPath
from l20fs.prediction.calibration import Calibration, Calibrations, Shares
from l20fs.prediction.discriminant import ClassScatter
from l20fs.prediction.onnx import rule_model
from l20fs.solvers import SOLVERS
from l20fs.typing import Array

#: Estimators that both select and predict.
MODELS = (L20Classifier, L20Regressor, L20SelectorCV)

#: Records in the attributes of fitted estimators: plain numbers and arrays, whose making does nothing.
RECORDS = (
    *(Calibration, Calibrations, Certificate, ClassScatter, Occupied, PlainSquares, Shares, SolutionPath, Solution),
    Units,
)

#: skl2onnx's own parsers of what holds other estimators, before ours took their places.
_parsers: dict[type, Any] = {}


def trusted_types() -> list[str]:
    """Return the types that a file of skops with an estimator of this package may hold.

    These are the estimators, their solvers, the records in their attributes, and scikit-learn's splitters, which ``cv``
    may be. None of them does anything when it is made. What else skops names, an object of your own such as a callback, is
    yours to trust.

    Returns
    -------
    list of str
        Names for the parameter ``trusted`` of ``skops.io.load``, and ``skops_trusted_types`` of MLflow.

    Examples
    --------
    >>> "l20fs.estimators.models.L20Classifier" in trusted_types()
    True
    """
    public = [getattr(model_selection, name) for name in model_selection.__all__ if not name.startswith("Halving")]
    splitters = [thing for thing in public if inspect.isclass(thing) and hasattr(thing, "split")]
    types = [*_estimators(), *SOLVERS.values(), *RECORDS, *splitters]
    return sorted(f"{each.__module__}.{each.__name__}" for each in types)


def _estimators() -> Iterator[type[BaseSelector]]:
    """Yield every estimator of this package."""
    yield from (L20Selector, StabilitySelector, *MODELS)
    yield from discover().values()


def register_converters() -> None:
    """Make ``skl2onnx`` convert every estimator of this package.

    Selectors become the extraction of their columns. Where they stand last, :class:`~l20fs.L20Classifier`,
    :class:`~l20fs.L20Regressor` and :class:`~l20fs.L20SelectorCV` become their rules, which compute in double precision,
    whatever comes in; before other steps of a pipeline, and in unions of features, they select, as in scikit-learn.
    The option ``transform`` asks for that elsewhere: ``options={id(model): {"transform": True}}``. Probabilities are a
    matrix; the option ``zipmap``, which makes dicts of them in other classifiers, has no effect: ONNX has none of double
    precision.

    Raises
    ------
    ModuleNotFoundError
        If skl2onnx is not installed.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from l20fs.data import load_srbct
    >>> train = load_srbct()
    >>> model = make_pipeline(StandardScaler(), L20Classifier(10)).fit(train.data, train.target)
    >>> register_converters()  # doctest: +SKIP
    >>> skl2onnx.to_onnx(model, train.data[:1])  # doctest: +SKIP
    """
    try:
        from skl2onnx import update_registered_converter, update_registered_parser
    except ModuleNotFoundError:
        raise ModuleNotFoundError("register_converters() needs skl2onnx: pip install 'l20fs[onnx]'.") from None
    for kind in _estimators():
        alias = f"L20FS{kind.__name__}"
        if kind in MODELS:
            options = {"zipmap": [True, False], "transform": [False, True]}
            update_registered_converter(kind, alias, _shape_model, _convert_model, parser=_parse_model, options=options)
        else:
            update_registered_converter(kind, alias, _shape_columns, _convert_columns)
    if not _parsers:
        # The registry has no function that reads it.
        registry = inspect.getmodule(update_registered_parser).sklearn_parsers_map  # type: ignore[union-attr]
        _parsers.update({kind: registry[kind] for kind in (Pipeline, FeatureUnion, ColumnTransformer)})
        for kind in _parsers:
            update_registered_parser(kind, _parse_holder)


def _parse_holder(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the steps of a pipeline or a union; those that others follow, or stand beside, transform."""
    if isinstance(model, Pipeline):
        parser, members = _parsers[Pipeline], model.steps[:-1]
    elif isinstance(model, FeatureUnion):
        parser, members = _parsers[FeatureUnion], model.transformer_list
    else:
        parser, members = _parsers[ColumnTransformer], model.transformers_
    for member in members:
        last = _last_step(member[1])
        if isinstance(last, MODELS):
            scope.add_options(id(last), {"transform": True})
    return parser(scope, model, inputs, custom_parsers=custom_parsers)


def _last_step(model: Any) -> Any:
    """Return what transforms or predicts in the end."""
    while isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
        model = model.steps[-1][1] if isinstance(model, Pipeline) else model.best_estimator_
    return model


def _parse_model(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare a model: its label and probabilities, its numbers, or the columns it selects."""
    from skl2onnx import get_model_alias
    from skl2onnx.common.data_types import Int64TensorType, guess_tensor_type

    transforms = _transforms(scope, model)
    if isinstance(model, L20SelectorCV):
        if model.preprocess_ is not None:
            return _parse_holder(scope, _with_steps_before(scope, model, transforms), inputs, custom_parsers)
        if not transforms and model.estimator_ is not model.model_:
            return _parse_holder(scope, _with_own_estimator(scope, model), inputs, custom_parsers)
    operator = scope.declare_local_operator(get_model_alias(type(model)), model)
    operator.inputs = inputs
    numbers = guess_tensor_type(inputs[0].type)
    if transforms or not is_classifier(model):
        operator.outputs.append(scope.declare_local_variable("variable", numbers))
        return operator.outputs
    operator.outputs.append(scope.declare_local_variable("label", Int64TensorType()))
    operator.outputs.append(scope.declare_local_variable("probabilities", numbers))
    return operator.outputs


def _with_steps_before(scope: Any, model: L20SelectorCV, transforms: bool) -> Pipeline:
    """Return a pipeline of the steps before a selection, and the rest of it."""
    rest = copy.copy(model)
    rest.preprocess_, rest.n_features_in_ = None, model.model_.n_features_in_
    scope.add_options(id(rest), {"transform": transforms})
    return Pipeline([("preprocess", model.preprocess_), ("rest", rest)])


def _with_own_estimator(scope: Any, model: L20SelectorCV) -> Pipeline:
    """Return a pipeline of a selection and an estimator of another package, which was fitted on the selected columns."""
    if is_classifier(model.estimator_):
        scope.add_options(id(model.estimator_), {"zipmap": False})
    return Pipeline([("select", model), ("predict", model.estimator_)])


def onnx_labels(classes: Array) -> Array:
    """Return class labels as ONNX has them, texts or whole numbers.

    Examples
    --------
    >>> onnx_labels(np.array([False, True])), onnx_labels(np.array(["a", "b"], dtype=object))
    (array([0, 1]), array(['a', 'b'], dtype='<U1'))
    """
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(str)
    labels = classes.astype(np.int64)
    if not np.array_equal(labels, classes):
        raise ValueError(f"Classes {classes.tolist()[:5]} are neither texts nor whole numbers, the labels of ONNX.")
    return labels


def _label_type(labels: Array, shape: list[Any]) -> Any:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    return StringTensorType(shape) if labels.dtype.kind == "U" else Int64TensorType(shape)


def _shape_columns(operator: Any) -> None:
    """Set the shape of selected columns."""
    given = operator.inputs[0].type
    operator.outputs[0].type = type(given)([operator.inputs[0].get_first_dimension(), len(_columns(operator))])


def _convert_columns(scope: Any, operator: Any, container: Any) -> None:
    """Add the extraction of the selected columns."""
    from onnx import TensorProto

    columns, name = _columns(operator), scope.get_unique_variable_name("columns")
    container.add_initializer(name, TensorProto.INT64, [len(columns)], columns)
    container.add_node(
        "ArrayFeatureExtractor",
        [operator.inputs[0].full_name, name],
        operator.outputs[0].full_name,
        op_domain="ai.onnx.ml",
        name=scope.get_unique_operator_name("ArrayFeatureExtractor"),
    )


def _columns(operator: Any) -> Array:
    """Return the indices of the selected columns; there must be one."""
    selector = operator.raw_operator
    columns = np.flatnonzero(selector.support_)
    if not len(columns):
        raise ValueError(f"{type(selector).__name__} selected no feature, and ONNX has no matrix without columns.")
    return columns


def _transforms(scope: Any, model: Any) -> bool:
    return bool(scope.get_options(model, {"transform": False})["transform"])


def _shape_model(operator: Any) -> None:
    """Set the types and shapes of the outputs of a model."""
    from skl2onnx.common.data_types import guess_tensor_type

    if _transforms(operator.scope_inst, operator.raw_operator):
        return _shape_columns(operator)
    model, n_samples = operator.raw_operator, operator.inputs[0].get_first_dimension()
    numbers, n_values = type(guess_tensor_type(operator.inputs[0].type)), len(np.atleast_1d(model.intercept_))
    if is_classifier(model):
        operator.outputs[0].type = _label_type(onnx_labels(model.classes_), [n_samples])
        n_values = len(model.classes_)
    operator.outputs[-1].type = numbers([n_samples, n_values])


def _convert_model(scope: Any, operator: Any, container: Any) -> None:
    """Add the rule of a model."""
    from skl2onnx.common.data_types import DoubleTensorType
    from skl2onnx.helpers import add_onnx_graph

    if _transforms(scope, operator.raw_operator):
        return _convert_columns(scope, operator, container)
    model, k = operator.raw_operator, operator.raw_operator.n_features_to_select
    classifies = is_classifier(model)
    graph = rule_model(
        model.at(k)._linear_rule(),
        labels=onnx_labels(model.classes_) if classifies else None,
        calibration=model.at(k)._calibration() if classifies else None,
        n_features=model.n_features_in_,
        dtype=np.float64 if isinstance(operator.inputs[0].type, DoubleTensorType) else np.float32,
    )
    add_onnx_graph(scope, operator, container, graph)
