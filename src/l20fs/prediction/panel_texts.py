"""A panel as text that others can read and run: a function in R, and a formula."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from l20fs.prediction.calibration import SOFT_FACTOR
from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.prediction.panel import Panel


def quoted_text(text: str, *, only_ascii: bool = False) -> str:
    r"""Return a text as a string in double quotes, for R, Python and JSON alike up to U+FFFF; always one line.

    Examples
    --------
    >>> print(quoted_text('a"b\\c\n'), quoted_text("β", only_ascii=True))
    "a\"b\\c\u000a" "\u03b2"
    """
    return '"' + "".join(_escaped(letter, only_ascii=only_ascii) for letter in text) + '"'


def _escaped(letter: str, *, only_ascii: bool) -> str:
    if letter in '"\\':
        return "\\" + letter
    if letter.isprintable() and (letter.isascii() or not only_ascii):
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"


# --------------------------------------------------------------------------------------------------------------------- R

R_VALUES = """\
# Made by l20fs {version} from the panel with the sha256 {sha256}. Needs base R alone.
# predict_panel(X): X is a data frame or a matrix with one row per sample and the columns named in `features`.
predict_panel <- function(X) {{
  features <- {features}
  weights <- matrix({weights}, nrow = length(features), byrow = TRUE)
  intercept <- {intercept}
  if (!is.matrix(X)) X <- as.data.frame(X)
  missing <- setdiff(features, colnames(X))
  if (length(missing)) stop("X lacks the columns ", paste(missing, collapse = ", "))
  x <- as.matrix(X[, features, drop = FALSE])
  if (!is.numeric(x) || any(!is.finite(x))) stop("X has values that are missing or no finite numbers.")
{logarithm}  values <- sweep(x %*% weights, 2, intercept, "+")
  if (any(!is.finite(values[, is.finite(intercept)]))) stop("X has values that are too large.")
"""

R_LOGARITHM = """\
  if (any(x < 0)) stop("X has negative values, and its logarithms are taken here.")
  x <- log1p(x)
"""

R_CLASSES = """\
  classes <- {classes}
  if (ncol(values) == 1) values <- cbind(-values / 2, values / 2)
  predicted <- classes[apply(values, 1, which.max)]
  softmax <- function(scores) {{
    powers <- exp(scores - apply(scores, 1, max))
    powers / rowSums(powers)
  }}
  scores <- sweep({slope} * values, 2, {offset}, "+")
  probabilities <- (1 - {doubt}) * softmax(scores) + {doubt} * softmax({soft_factor} * scores)
  dimnames(probabilities) <- list(rownames(x), classes)
  list(predicted = predicted, probabilities = probabilities)
}}
"""

R_NUMBERS = """\
  dimnames(values) <- list(rownames(x), {targets})
  if (ncol(values) == 1) values[, 1] else values
}}
"""


def r_function(panel: Panel, k: int | None) -> str:
    """Return the text of :meth:`l20fs.Panel.to_r`."""
    rule = panel.rule_for(k)
    text = R_VALUES.format(
        version=_word(panel.versions.get("l20fs", "")),
        sha256=panel.sha256,
        features=_r_vector(panel.features_for(k)),
        weights=_r_vector(rule.weights.ravel().tolist()),
        intercept=_r_vector(rule.intercept.tolist()),
        logarithm=R_LOGARITHM if panel.transform == "log1p" else "",
    )
    if panel.classes is None:
        return text + R_NUMBERS.format(targets=_r_vector(panel.targets))
    slope, doubt, offset = panel.calibration_for(k)
    return text + R_CLASSES.format(
        classes=_r_vector(panel.classes),
        slope=_number(slope),
        doubt=_number(doubt),
        offset=_r_vector(list(offset) or [0.0] * len(panel.classes)),
        soft_factor=_number(SOFT_FACTOR),
    )


def _r_vector(values: Iterable[Any]) -> str:
    """Return texts, numbers, or TRUE and FALSE."""
    return "c(" + ",\n    ".join(map(_r_value, values)) + ")"


def _r_value(value: Any) -> str:
    if isinstance(value, str):
        return quoted_text(value, only_ascii=True)
    return str(value).upper() if isinstance(value, bool) else _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    return "-Inf" if value == float("-inf") else repr(float(value))


def _word(version: str) -> str:
    """Return a version as it can stand in a comment."""
    return "".join(letter for letter in version if letter.isascii() and (letter.isalnum() or letter in ".+-_"))[:40]


# --------------------------------------------------------------------------------------------------------------- formula


def formula(panel: Panel, k: int | None) -> str:
    """Return the text of :meth:`l20fs.Panel.formula`."""
    rule, features = panel.rule_for(k), panel.features_for(k)
    names = [quoted_text(name) for name in features]
    lines = [f"# x[name] is the value of a feature; {len(features)} features, numbers with all their digits."]
    if panel.transform == "log1p":
        lines += [f"x[{name}] = log(1 + x[{name}])" for name in names]
    if panel.classes is None:
        columns = zip(panel.targets, rule.weights.T, rule.intercept, strict=True)
        return "\n".join([*lines, *(f"y[{quoted_text(name)}] = {_sum(names, w, b)}" for name, w, b in columns)]) + "\n"
    classes = [quoted_text(label) if isinstance(label, str) else repr(label) for label in panel.classes]
    if len(rule.intercept) == 1:
        lines += [f"score[{classes[1]}] = ({_sum(names, rule.weights[:, 0], rule.intercept[0])}) / 2"]
        lines += [f"score[{classes[0]}] = -score[{classes[1]}]"]
    else:
        scored = zip(classes, rule.weights.T, rule.intercept, strict=True)
        lines += [f"score[{name}] = {_sum(names, w, b)}" for name, w, b in scored if b > float("-inf")]
    slope, doubt, offset = panel.calibration_for(k)
    added = dict(zip(classes, list(offset) or [0.0] * len(classes), strict=True))
    absent = [name for name, b in zip(classes, rule.intercept, strict=False) if b == float("-inf")]
    present = [name for name in classes if name not in absent]
    lines += ["# The class of the largest score is predicted; that of the largest probability may be another one."]
    for kind, factor in (("sharp", 1.0), ("soft", SOFT_FACTOR)):
        lines += [
            f"{kind}[{name}] = exp({_number(factor * slope)} * score[{name}] + {_number(factor * added[name])})"
            for name in present
        ]
        lines += [f"{kind}_total = " + " + ".join(f"{kind}[{name}]" for name in present)]
    shares = f"{_number(1.0 - doubt)} * sharp[{{0}}] / sharp_total + {_number(doubt)} * soft[{{0}}] / soft_total"
    lines += [f"probability[{name}] = " + shares.replace("{0}", name) for name in present]
    lines += [f"probability[{name}] = 0" for name in absent]
    return "\n".join(lines) + "\n"


def _sum(names: Sequence[str], weights: Array, intercept: float) -> str:
    """Return an intercept and products, with signs that read well."""
    signed = [
        f" {'-' if weight < 0 else '+'} {_number(abs(weight))} * x[{name}]"
        for name, weight in zip(names, weights, strict=True)
    ]
    return _number(intercept) + "".join(signed)
