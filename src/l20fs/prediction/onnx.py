"""ONNX models of linear rules, built from their numbers: any ONNX runtime predicts with them, in double precision.

All operators are of the default domain and have kernels for double precision in onnxruntime. The graphs are written as text,
one operator per line, in the syntax of ``onnx.parser``.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.prediction.calibration import SOFT_FACTOR, Calibration, per_class, scaled_scores
from l20fs.prediction.linear_rule import LinearRule
from l20fs.typing import Array

if TYPE_CHECKING:
    from onnx import ModelProto

    from l20fs.prediction.panel import Panel

#: Versions of the operators and of the file format that runtimes since 2021 read.
OPSET, IR_VERSION = 13, 7
#: Codes of types of numbers in ONNX.
TYPES = {"float": 1, "int64": 7, "double": 11}

#: log(1 + x) with all digits: x log(u) / (u - 1) for u = 1 + x rounded, x itself where u is 1, NaN where x < 0.
LOG1P = """
is_low = Less (x, zero)
numbers = Where (is_low, nan, x)
above = Add (numbers, one)
is_one = Equal (above, one)
gap = Sub (above, one)
rise = Where (is_one, one, gap)
logarithm = Log (above)
share = Div (logarithm, rise)
factor = Where (is_one, one, share)
z = Mul (numbers, factor)
"""

#: What :func:`l20fs.prediction.calibration.blurred` does.
PROBABILITIES = """
score_product = MatMul (z, score_weights)
scores = Add (score_product, score_intercept)
sharp = Softmax <axis = 1> (scores)
soft_scores = Mul (scores, soft_factor)
soft = Softmax <axis = 1> (soft_scores)
sharp_part = Mul (sharp, rest)
soft_part = Mul (soft, doubt)
blurred = Add (sharp_part, soft_part)
"""


def to_onnx(panel: Panel, k: int | None = None) -> ModelProto:
    """Return the ONNX model of a panel, see :meth:`l20fs.Panel.to_onnx`."""
    if find_spec("onnx") is None:
        raise ModuleNotFoundError("to_onnx() needs the package onnx: pip install 'l20fs[onnx]', or onnx alone.")
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
    from onnx import TensorProto, checker, numpy_helper, parser

    numbers = "double" if np.dtype(dtype) == np.float64 else "float"
    constants = {"weights": rule.weights, "intercept": rule.intercept, "rows": rule.rows.astype(np.int64)}
    constants |= {"zero": np.array(0.0), "one": np.array(1.0), "nan": np.array(np.nan)}
    text = "chosen = Identity (X)" if n_features is None else "chosen = Gather <axis = 1> (X, rows)"
    text += f"\nx = Cast <to = {TYPES['double']}> (chosen)\n"
    text += LOG1P if transform == "log1p" else "z = Identity (x)\n"
    text += "product = MatMul (z, weights)\nvalues = Add (product, intercept)\n"
    if calibration is None or labels is None:
        outputs = f"{numbers}[N, {len(rule.intercept)}] variable"
        text += f"variable = Cast <to = {TYPES[numbers]}> (values)\n"
    else:
        constants |= {"doubt": np.array(calibration.doubt), "rest": np.array(1.0 - calibration.doubt)}
        constants["soft_factor"] = np.array(SOFT_FACTOR)
        constants["score_weights"] = calibration.slope * per_class(rule.weights)
        offset = np.array(calibration.offset) if len(calibration.offset) else 0.0
        constants["score_intercept"] = scaled_scores(calibration.slope, per_class(rule.intercept)) + offset
        text += _decided(labels, constants) + PROBABILITIES
        text += f"probabilities = Cast <to = {TYPES[numbers]}> (blurred)\n"
        kind = TensorProto.DataType.Name(numpy_helper.from_array(constants["classes"]).data_type).lower()
        outputs = f"{kind}[N] label, {numbers}[N, {len(labels)}] probabilities"
    head = f'<ir_version: {IR_VERSION}, opset_import: ["" : {OPSET}], producer_name: "l20fs">'
    n_columns = len(rule.rows) if n_features is None else n_features
    model = parser.parse_model(f"{head}\nl20fs ({numbers}[N, {n_columns}] X) => ({outputs}) {{\n{text}}}")
    for place, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{place}"
    used = {name for node in model.graph.node for name in node.input} & constants.keys()
    model.graph.initializer.extend(numpy_helper.from_array(constants[name], name) for name in sorted(used))
    checker.check_model(model, full_check=True)
    return model


def _decided(labels: Array, constants: dict[str, Array]) -> str:
    """Return what :func:`l20fs.prediction.linear_rule.decide` does, and the label; of a sample with a NaN an empty text."""
    constants["place"] = np.array(0)
    text = "first = Gather <axis = 1> (values, place)\n"
    if len(labels) == 2:
        text += f"is_second = Greater (first, zero)\ncode = Cast <to = {TYPES['int64']}> (is_second)\n"
    else:
        text += "code = ArgMax <axis = 1, keepdims = 0> (values)\n"
    if labels.dtype.kind != "U":
        constants["classes"] = labels
        return text + "label = Gather <axis = 0> (classes, code)\n"
    constants["classes"], constants["none"] = np.append(labels, "").astype(object), np.array(len(labels))
    text += "is_missing = IsNaN (first)\nknown = Where (is_missing, none, code)\n"
    return text + "label = Gather <axis = 0> (classes, known)\n"
