"""A panel as text that others can read and run: a function in R, and a formula."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from l20fs.prediction.calibration import TIMIDITY
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

R_HEAD = """\
# Made by l20fs {version} from the panel with the sha256 {sha256}. Needs base R alone.
# predict_panel(X): X is a data frame or a matrix with one row per sample and the columns named in `features`.
predict_panel <- function(X) {{
  features <- {features}
  weights <- matrix({weights}, nrow = {n_features}, byrow = TRUE)
  intercept <- {intercept}
  if (!is.matrix(X)) X <- as.data.frame(X)
  missing <- setdiff(features, colnames(X))
  if (length(missing)) stop("X lacks the columns ", paste(missing, collapse = ", "))
  x <- as.matrix(X[, features, drop = FALSE])
  if (!is.numeric(x) || any(!is.finite(x))) stop("X has values that are missing or no finite numbers.")
"""

R_LOGARITHM = """\
  if (any(x < 0)) stop("X has negative values, and its logarithms are taken here.")
  x <- log1p(x)
"""

R_VALUES = """\
  values <- sweep(x %*% weights, 2, intercept, "+")
  if (any(!is.finite(values[, is.finite(intercept)]))) stop("X has values that are too large.")
"""

R_CLASSES = """\
  classes <- {classes}
{two}  predicted <- classes[apply(values, 1, which.max)]
  softmax <- function(scores) {{
    powers <- exp(scores - apply(scores, 1, max))
    powers / rowSums(powers)
  }}
  scores <- {slope} * values
  probabilities <- (1 - {doubt}) * softmax(scores) + {doubt} * softmax({timidity} * scores)
  dimnames(probabilities) <- list(rownames(x), classes)
  list(predicted = predicted, probabilities = probabilities)
}}
"""

R_TWO = "  values <- cbind(-values / 2, values / 2)\n"

R_NUMBERS = """\
  dimnames(values) <- list(rownames(x), {targets})
  {result}
}}
"""


def r_function(panel: Panel, k: int | None) -> str:
    """Return the text of :meth:`l20fs.Panel.to_r`."""
    rule, features = panel.rule_for(k), panel.features_for(k)
    text = R_HEAD.format(
        version=_word(panel.versions.get("l20fs", "")),
        sha256=panel.sha256,
        features=_r_texts(features),
        weights=_r_vector(map(_number, rule.weights.ravel())),
        n_features=len(features),
        intercept=_r_vector(map(_number, rule.intercept)),
    )
    text += (R_LOGARITHM if panel.transform == "log1p" else "") + R_VALUES
    if panel.classes is None:
        result = "values" if len(panel.targets) > 1 else "values[, 1]"
        return text + R_NUMBERS.format(targets=_r_texts(panel.targets), result=result)
    slope, doubt = panel.calibration_for(k)
    return text + R_CLASSES.format(
        classes=_r_texts(panel.classes),
        two=R_TWO if len(rule.intercept) == 1 else "",
        slope=_number(slope),
        doubt=_number(doubt),
        timidity=_number(TIMIDITY),
    )


def _r_texts(names: Sequence[str]) -> str:
    return _r_vector(quoted_text(name, only_ascii=True) for name in names)


def _r_vector(parts: Iterable[str]) -> str:
    return "c(" + ",\n    ".join(parts) + ")"


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
    classes = [quoted_text(name) for name in panel.classes]
    if len(rule.intercept) == 1:
        lines += [f"score[{classes[1]}] = ({_sum(names, rule.weights[:, 0], rule.intercept[0])}) / 2"]
        lines += [f"score[{classes[0]}] = -score[{classes[1]}]"]
    else:
        scored = zip(classes, rule.weights.T, rule.intercept, strict=True)
        lines += [f"score[{name}] = {_sum(names, w, b)}" for name, w, b in scored if b > float("-inf")]
    slope, doubt = panel.calibration_for(k)
    absent = [name for name, b in zip(classes, rule.intercept, strict=False) if b == float("-inf")]
    present = [name for name in classes if name not in absent]
    lines += ["# The class of the largest score is predicted."]
    for kind, factor in (("sure", slope), ("timid", TIMIDITY * slope)):
        lines += [f"{kind}[{name}] = exp({_number(factor)} * score[{name}])" for name in present]
        lines += [f"{kind}_total = " + " + ".join(f"{kind}[{name}]" for name in present)]
    shares = f"{_number(1.0 - doubt)} * sure[{{0}}] / sure_total + {_number(doubt)} * timid[{{0}}] / timid_total"
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
