"""ONNX models of linear rules, built from their numbers: any ONNX runtime predicts with them, in double precision.

All operators are of the default domain and have kernels for double precision in onnxruntime.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.prediction.calibration import Calibration, per_class, scaled_scores
from l20fs.prediction.linear_rule import LinearRule
from l20fs.typing import Array

if TYPE_CHECKING:
    from onnx import ModelProto

    from l20fs.prediction.panel import Panel

#: Versions of the operators and of the file format that runtimes since 2021 read.
OPSET, IR_VERSION = 13, 7


def to_onnx(panel: Panel, k: int | None = None) -> ModelProto:
    """Return the ONNX model of a panel, see :meth:`l20fs.Panel.to_onnx`."""
    _refuse_without_onnx()
    from onnx import helper

    k = panel.k if k is None else k
    labels = None if panel.classes is None else np.array(panel.classes)
    calibration = None if panel.classes is None else panel.calibration_for(k)
    model = rule_model(panel.rule_for(k), labels=labels, calibration=calibration, transform=panel.transform)
    about = {"sha256": panel.sha256, "task": panel.task, "k": k, "features": panel.features_for(k), "targets": panel.targets}
    if panel.classes is not None:
        about["classes"] = panel.classes
    # Texts as they are, all else as JSON.
    helper.set_model_props(model, {key: text if isinstance(text, str) else json.dumps(text) for key, text in about.items()})
    return model


def _refuse_without_onnx() -> None:
    """Raise an error that names the extra, if onnx is not installed."""
    if find_spec("onnx") is None:
        raise ModuleNotFoundError("to_onnx() needs the package onnx: pip install 'l20fs[onnx]', or onnx alone.")


def rule_model(
    rule: LinearRule,
    *,
    labels: Array | None = None,
    calibration: Calibration | None = None,
    transform: str = "none",
    n_features: int | None = None,
    dtype: Any = np.float64,
) -> ModelProto:
    """Return the ONNX model of a rule: of ``labels`` with a ``calibration``, or else of numbers.

    The input ``X`` has the columns of the rule in its order, or all ``n_features`` of which the rule takes its rows.
    Numbers come in and go out as ``dtype``; between they are in double precision. The outputs are ``label`` and
    ``probabilities``, or ``variable``.
    """
    graph = _Graph(dtype)
    columns = graph.input("X", len(rule.rows) if n_features is None else n_features)
    if n_features is not None:
        columns = graph.add("Gather", columns, graph.constant("rows", rule.rows.astype(np.int64)), axis=1)
    columns = graph.to_double(columns)
    if transform == "log1p":
        columns = _log1p(graph, columns)
    elif transform != "none":
        raise ValueError(f"transform={transform!r} has no ONNX operators. Use 'none' or 'log1p'.")
    values = _linear(graph, "", columns, rule.weights, rule.intercept)
    if calibration is None or labels is None:
        graph.output("variable", values, [len(rule.intercept)])
        return graph.model()
    graph.output("label", _labels(graph, values, labels), [])
    logits = _linear(graph, "logit_", columns, *_calibrated(rule, calibration))
    graph.output("probabilities", graph.add("Softmax", logits, axis=1), [len(labels)])
    return graph.model()


def _linear(graph: _Graph, prefix: str, columns: str, weights: Array, intercept: Array) -> str:
    """Add a linear rule."""
    product = graph.add("MatMul", columns, graph.constant(f"{prefix}weights", weights))
    return graph.add("Add", product, graph.constant(f"{prefix}intercept", intercept))


def _calibrated(rule: LinearRule, calibration: Calibration) -> tuple[Array, Array]:
    """Return the weights and intercepts of the values of which the probabilities are the softmax."""
    weights, intercept = per_class(rule.weights), per_class(rule.intercept)
    return calibration.slope * weights, scaled_scores(calibration.slope, intercept) + calibration.offset


def _labels(graph: _Graph, values: str, labels: Array) -> str:
    """Add what :func:`l20fs.prediction.linear_rule.decide` does, and the labels; a sample with a NaN has an empty text."""
    first = graph.add("Gather", values, graph.constant("first", np.array(0)), axis=1)
    if len(labels) == 2:
        codes = graph.add("Cast", graph.add("Greater", first, graph.constant("zero", np.array(0.0))), to=graph.INT64)
    else:
        codes = graph.add("ArgMax", values, axis=1, keepdims=0)
    if labels.dtype.kind == "U":
        codes = graph.add("Where", graph.add("IsNaN", first), graph.constant("none", np.array(len(labels))), codes)
        labels = np.append(labels, "")
    return graph.add("Gather", graph.constant("classes", labels), codes, axis=0)


def _log1p(graph: _Graph, numbers: str) -> str:
    """Add log(1 + x) with all digits: x log(u) / (u - 1) for u = 1 + x rounded, x itself where u is 1, NaN where x < 0."""
    one, zero, nan = (
        graph.constant(name, np.array(float(value))) for name, value in (("one", 1), ("zero", 0), ("nan", "nan"))
    )
    numbers = graph.add("Where", graph.add("Less", numbers, zero), nan, numbers)
    above = graph.add("Add", numbers, one)
    is_one = graph.add("Equal", above, one)
    rise = graph.add("Where", is_one, one, graph.add("Sub", above, one))
    share = graph.add("Div", graph.add("Log", above), rise)
    return graph.add("Mul", numbers, graph.add("Where", is_one, one, share))


class _Graph:
    """An ONNX graph under construction, whose values are known by their names."""

    def __init__(self, dtype: Any) -> None:
        from onnx import TensorProto, helper, numpy_helper

        self.INT64, self.DOUBLE = TensorProto.INT64, TensorProto.DOUBLE
        self._helper, self._from_array = helper, numpy_helper.from_array
        self._type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, n_columns: int) -> str:
        """Add an input of numbers, one row per sample."""
        self._inputs.append(self._helper.make_tensor_value_info(name, self._type, ["N", n_columns]))
        return name

    def constant(self, name: str, values: Array) -> str:
        """Add numbers or texts."""
        self._constants[name] = self._from_array(values.astype(object) if values.dtype.kind == "U" else values, name)
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator and return the name of its result."""
        name = f"{operator}_{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def to_double(self, name: str) -> str:
        """Return numbers of the type of the input in double precision."""
        return name if self._type == self.DOUBLE else self.add("Cast", name, to=self.DOUBLE)

    def output(self, name: str, value: str, shape: list[int]) -> None:
        """Add an output of labels, which have no further dimension, or of numbers."""
        kind = self._type if shape else self._constants["classes"].data_type
        # A cast to the type that it has already is nothing, and gives the value its name.
        self._nodes.append(self._helper.make_node("Cast", [value], [name], name=name, to=kind))
        self._outputs.append(self._helper.make_tensor_value_info(name, kind, ["N", *shape]))

    def model(self) -> ModelProto:
        """Return the checked model."""
        from onnx import checker

        graph = self._helper.make_graph(self._nodes, "l20fs", self._inputs, self._outputs, list(self._constants.values()))
        opsets = [self._helper.make_opsetid("", OPSET)]
        model = self._helper.make_model(graph, producer_name="l20fs", opset_imports=opsets, ir_version=IR_VERSION)
        checker.check_model(model, full_check=True)
        return model
