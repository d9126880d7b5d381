"""The content of the report of ``l20fs select``: the numbers for every k, rounded and named."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from l20fs.cli.select_findings import Findings
from l20fs.cli.select_sentences import answer, describe
from l20fs.estimators import panels
from l20fs.estimators.panels import heads_of
from l20fs.evaluation.predictions import Predictions
from l20fs.objective.path_ranking import RULES
from l20fs.report import sentences
from l20fs.report.content import MOST_LINES, N_SUBSTITUTES, Content, Curve, PathLines, Stability, write_tsv
from l20fs.typing import Array

MOST_LAMBDAS = 200
MOST_CLASSES = 30


def build_content(findings: Findings) -> Content:
    """Return the content of the page."""
    units = findings.units[: findings.k_max]
    heads = heads_of(units)
    coef, strongest = _weights_for_every_k(findings, heads)
    means = panels.class_means(findings.samples.X, units, findings.classes.codes)
    return Content(
        title=findings.samples.title,
        answer=answer(findings),
        sentences=describe(findings),
        warnings=list(findings.warnings),
        k=findings.k,
        k_rule=sentences.RULES[findings.k_rule],
        k_max=len(units),
        n_samples=len(findings.samples.y),
        n_features=len(findings.samples.feature_names),
        classes=findings.classes.names,
        class_sizes=findings.classes.sizes,
        chance=findings.classes.largest_share,
        curves=_curves(findings.predictions, len(units)),
        features=findings.names_of(units),
        columns=_columns(findings, units),
        substitutes=_substitutes(findings, heads),
        heat=[[_rounded(mean) for mean in row] for row in means],
        coef=coef,
        strongest=strongest,
        confusion=_confusion(findings.predictions, len(units)),
        path=_path_lines(findings, heads[:MOST_LINES]),
        stability=stability_of(findings),
        provenance=findings.provenance,
    )


# ----------------------------------------------------------------------------------------------------------------- tables


class Panel(NamedTuple):
    """The selected features in numbers; what the method does not have is None."""

    features: list[str]
    scores: list[float]
    norms: list[float] | None
    rules: list[str] | None
    weights: panels.PanelWeights | None


def panel_of(findings: Findings) -> Panel:
    """Return the selected features, as many as the page shows."""
    units = findings.units[: min(findings.k, findings.k_max)]
    heads, path = heads_of(units), findings.path
    return Panel(
        findings.names_of(units),
        [_digits(score, 6) for score in findings.selector.scores_[heads].tolist()],
        None if path is None else [_digits(norm, 6) for norm in panels.unit_norms(path, units)],
        None if path is None else [RULES[rule] for rule in path.rules[heads]],
        None if path is None or findings.has_groups else panels.panel_weights(path, heads, len(units)),
    )


def selection_tsv(findings: Findings, content: Content) -> str:
    """Return the table of all selected features, beyond the limit of the page."""
    k = findings.k
    if k <= content.k_max:
        return content.selection_tsv(k)
    units = findings.units[:k]
    nothing: dict[str, Any] = dict.fromkeys(("coef", "strongest", "confusion", "path", "stability"))
    whole = replace(
        content,
        k_max=k,
        curves=[],
        features=findings.names_of(units),
        columns=_columns(findings, units),
        substitutes=_substitutes(findings, heads_of(units)),
        heat=[],
        **nothing,
    )
    rows = [whole.row(k, place) for place in range(k)]
    if findings.path is not None and content.coef is not None:
        # The weights of one panel alone: those of all smaller ones would be too many.
        coef, strongest = panels.panel_weights(findings.path, heads_of(units), k)
        for row, weights, place in zip(rows, _coef_texts(coef), strongest, strict=True):
            row += ["" if place < 0 else content.classes[place], *weights]
    return write_tsv([content.header(), *rows])


def _columns(findings: Findings, units: list[Array]) -> dict[str, list[str]]:
    """Return the columns that do not depend on k: a text per unit."""
    selector, path, heads = findings.selector, findings.path, heads_of(units)
    columns = {
        "rank": [str(place + 1) for place in range(len(units))],
        "score": [_text(score) for score in selector.scores_[heads]],
    }
    if path is not None:
        columns["norm"] = [_text(norm) for norm in panels.unit_norms(path, units)]
        columns["entry_alpha"] = [_text(alpha) for alpha in path.entry_alphas[heads]]
        columns["rule"] = [RULES[rule] for rule in path.rules[heads]]
    if findings.stability is not None:
        columns["stability"] = [_text(share) for share in findings.stability.frequencies_[heads]]
    if findings.has_groups:
        names = findings.samples.feature_names
        columns["members"] = [", ".join(str(names[j]) for j in members) for members in units]
    return columns


def _weights_for_every_k(findings: Findings, heads: Array) -> tuple[list[list[list[str]]] | None, list[list[int]] | None]:
    """Return the weights and strongest classes of the panels of 1, 2, ... features, of methods that have weights."""
    path = findings.path
    if path is None or findings.has_groups:
        return None, None
    of_each = [panels.panel_weights(path, heads, k) for k in range(1, len(heads) + 1)]
    return [_coef_texts(weights.coef) for weights in of_each], [weights.strongest for weights in of_each]


def _coef_texts(coef: Array) -> list[list[str]]:
    return [[f"{weight + 0.0:.4g}" for weight in row] for row in coef.tolist()]


def _substitutes(findings: Findings, heads: Array) -> list[list[tuple[str, float, int]]]:
    """Return the substitutes of each feature at any k."""
    samples = findings.samples
    if findings.has_groups or not len(heads) or len(samples.y) < 2:
        return []
    excluded = panels.excluded_features(findings.path)
    found = panels.substitutes_for_every_k(samples.X, heads, N_SUBSTITUTES, exclude=excluded)
    return [
        [(str(samples.feature_names[each.feature]), _rounded(each.correlation), each.rank) for each in entries]
        for entries in found
    ]


# --------------------------------------------------------------------------------------------------------------- pictures


def _curves(predictions: Predictions | None, k_max: int) -> list[Curve]:
    if predictions is None:
        return []
    place_of = {size: place for place, size in enumerate(predictions.sizes)}
    places = [place_of.get(k) for k in range(1, k_max + 1)]
    curves = []
    for judge in predictions.predicted:
        results = predictions.results(judge)
        columns = [
            [None if place is None else round(float(results[key][place]), 6) for place in places]
            for key in ("mean_test_score", "standard_error")
        ]
        curves.append(Curve(judge, *columns))
    return curves


def _confusion(predictions: Predictions | None, k_max: int) -> list[list[list[int]]] | None:
    if predictions is None or len(predictions.classes) > MOST_CLASSES:
        return None
    n_classes = len(predictions.classes)
    nothing = np.zeros((n_classes, n_classes), dtype=np.intp)
    tables = [predictions.confusion(k) if k in predictions.sizes else nothing for k in range(1, k_max + 1)]
    return [table.tolist() for table in tables]


def _path_lines(findings: Findings, heads: Array) -> PathLines | None:
    """Return the norms of the weights along lambda."""
    path = findings.path
    if path is None or findings.has_groups:
        return None
    found = panels.norms_along_path(path, heads, MOST_LAMBDAS)
    return PathLines(
        alphas=[_digits(alpha, 5) for alpha in found.alphas.tolist()],
        norms=[[_digits(norm, 5) for norm in line] for line in found.norms.tolist()],
        entry=[None if math.isnan(alpha) else _digits(alpha, 5) for alpha in found.entry_alphas.tolist()],
    )


def stability_of(findings: Findings) -> Stability | None:
    """Return how stable the selection is, if that was asked for."""
    stable = findings.stability
    if stable is None:
        return None
    heads = heads_of(findings.units[: min(findings.k, findings.k_max)])
    frequencies = [round(share, 6) for share in stable.frequencies_[heads].tolist()]
    numbers = (stable.stability_, *stable.stability_interval_)
    index, lower, upper = (float(value) if math.isfinite(value) else None for value in numbers)
    return Stability(frequencies, index, lower, upper, len(stable.orders_))


# ---------------------------------------------------------------------------------------------------------------- numbers


def _text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _digits(value: float, n: int) -> float:
    """Round to n significant digits."""
    return float(f"{value:.{n}g}")


def _rounded(value: float) -> float:
    """Round to two decimals, never to -0.0."""
    return round(value, 2) + 0.0
