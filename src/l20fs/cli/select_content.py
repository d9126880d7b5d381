"""The content of the report of ``l20fs select``: the numbers for every k, rounded and named."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from l20fs.cli.select_atlas import atlas_of
from l20fs.cli.select_findings import Findings, ScoreCurve, score_curve
from l20fs.cli.select_lookup import make_lookup
from l20fs.cli.select_sentences import answer, chance_name, describe
from l20fs.cli.select_strips import strips_of
from l20fs.estimators import panels
from l20fs.estimators.panels import heads_of
from l20fs.estimators.selection_table import NearestMembers
from l20fs.evaluation.levels import class_level
from l20fs.evaluation.metrics import METRICS, Outputs
from l20fs.evaluation.predictions import Predictions
from l20fs.evaluation.quoted_score import Estimate
from l20fs.evaluation.target_summary import Classes
from l20fs.evaluation.validation import class_rates, reliability
from l20fs.objective.path_ranking import RULES
from l20fs.report import sentences
from l20fs.report.confusion import MOST_CLASSES, confused_pairs
from l20fs.report.content import N_SUBSTITUTES, Content
from l20fs.report.delimited import join_names, write_rows
from l20fs.report.measures import (
    MOST_LINES,
    MOST_POINTS,
    MOST_ROC_POINTS,
    ClassRate,
    Curve,
    Numbers,
    PathLines,
    Reliability,
    Roc,
    Stability,
)
from l20fs.typing import Array

MOST_LAMBDAS = 200


def build_content(findings: Findings) -> Content:
    """Return the content of the page."""
    units = findings.units[: findings.k_max]
    heads = heads_of(units)
    metric, predictions = findings.metric, findings.predictions
    is_regression = findings.is_regression
    chance = findings.targets.chance(metric)
    nearest = NearestMembers(len(findings.samples.feature_names), min(findings.k, len(units)))
    substitutes = _substitutes(findings, heads, nearest)
    return Content(
        title=findings.samples.title,
        answer=answer(findings),
        sentences=describe(findings),
        warnings=list(findings.warnings),
        k=findings.k,
        k_rule=sentences.RULES[findings.k_rule],
        k_max=len(units),
        k_min=1 if findings.path is None else max(1, findings.path.least_size),
        n_samples=len(findings.samples.y),
        n_features=len(findings.samples.feature_names),
        classes=[] if is_regression else findings.classes.names,
        class_sizes=[] if is_regression else findings.classes.sizes,
        chance=chance if math.isfinite(chance) else None,
        curves=_curves(findings, len(units)),
        features=findings.names_of(units),
        columns=_columns(findings, units),
        substitutes=substitutes,
        heat=[[_rounded(mean) for mean in row] for row in findings.means[: len(units)]],
        heat_groups=_heat_groups(findings, len(units)),
        coef=_weights_for_every_k(findings, heads),
        failure_costs=_failure_costs(findings, range(1, len(units) + 1)),
        confusion=None if is_regression else _confusion(predictions, len(units)),
        path=_path_lines(findings, heads[:MOST_LINES]),
        stability=stability_of(findings),
        provenance=findings.provenance,
        score_name=metric.title,
        task=findings.targets.task,
        targets=[findings.target_name] if is_regression else [],
        score_format="percent" if metric.is_share else "number",
        score_is_loss=metric.sign < 0,
        chance_name=chance_name(findings),
        further=_further(findings, len(units)),
        strips=strips_of(findings, units),
        lookup=make_lookup(findings, nearest),
        atlas=atlas_of(findings),
        **({} if predictions is None else _measures(findings, predictions, len(units))),
    )


# ----------------------------------------------------------------------------------------------------------------- tables


class Panel(NamedTuple):
    """The selected features in numbers; what the method does not have is None."""

    features: list[str]
    scores: list[float]
    norms: list[float] | None
    rules: list[str] | None
    levels: list[str]


def panel_of(findings: Findings) -> Panel:
    """Return the selected features, as many as the page shows."""
    units = findings.units[: min(findings.k, findings.k_max)]
    heads, path = heads_of(units), findings.path
    return Panel(
        findings.names_of(units),
        [_digits(score, 6) for score in findings.selector.scores_[heads].tolist()],
        None if path is None else [_digits(norm, 6) for norm in panels.unit_norms(path, units)],
        None if path is None else [RULES[rule] for rule in path.rules[heads]],
        findings.levels[: len(units)],
    )


def selection_tsv(findings: Findings, content: Content) -> str:
    """Return the table of all selected features, beyond the limit of the page."""
    k = findings.k
    if k <= content.k_max:
        return content.selection_tsv(k)
    units = findings.units[:k]
    of_panels = ("coef", "failure_costs", "confusion", "confused", "path", "stability", "rates", "roc", "reliability")
    nothing: dict[str, Any] = dict.fromkeys((*of_panels, "numbers", "strips", "lookup", "panel"))
    whole = replace(
        content,
        k_max=k,
        curves=[],
        further=[],
        features=findings.names_of(units),
        columns=_columns(findings, units),
        substitutes=_substitutes(findings, heads_of(units)),
        heat=[],
        heat_groups=[],
        **nothing,
    )
    rows = [whole.row(k, place) for place in range(k)]
    for costs in _failure_costs(findings, [k]) or []:
        for row, cost in zip(rows, costs, strict=True):
            row.append(cost)
    if findings.path is not None and content.coef is not None:
        # The weights of one panel alone: those of all smaller ones would be too many.
        for row, weights in zip(rows, _coef_texts(panels.panel_weights(findings.path, heads_of(units), k)), strict=True):
            row += weights
    return write_rows([content.header(), *rows])


def _columns(findings: Findings, units: list[Array]) -> dict[str, list[str]]:
    """Return the columns that do not depend on k: a text per unit."""
    selector, path, heads = findings.selector, findings.path, heads_of(units)
    columns = {
        "rank": [str(place + 1) for place in range(len(units))],
        "score": [_text(score) for score in selector.scores_[heads]],
        "level": findings.levels[: len(units)],
    }
    if path is not None:
        columns["norm"] = [_text(norm) for norm in panels.unit_norms(path, units)]
        columns["entry_alpha"] = [_text(alpha) for alpha in path.entry_alphas[heads]]
        columns["rule"] = [RULES[rule] for rule in path.rules[heads]]
    if findings.stability is not None:
        columns["stability"] = [_text(share) for share in findings.stability.frequencies_[heads]]
    if findings.has_groups:
        names = findings.samples.feature_names
        columns["members"] = [join_names(str(names[j]) for j in members) for members in units]
    return columns


def _heat_groups(findings: Findings, n: int) -> list[tuple[str, list[int]]]:
    """Return the rows of the heatmap: features of the same level together, classes in order, and the best one first."""
    groups: dict[tuple[Any, ...], tuple[str, list[int]]] = {}
    for place, text in enumerate(findings.levels[:n]):
        key: tuple[Any, ...] = (not text, not text.startswith("rises"))
        if not findings.is_regression:
            level = class_level(findings.means[place], findings.classes.sizes)
            key = (not text, level.classes[:1], not level.is_high, level.classes)
        groups.setdefault(key, (text or "no difference", []))[1].append(place)
    return [groups[key] for key in sorted(groups)]


def _weights_for_every_k(findings: Findings, heads: Array) -> list[list[list[str]]] | None:
    """Return the weights of the panels of 1, 2, ... features, of methods that have weights."""
    path = findings.path
    if path is None or findings.has_groups:
        return None
    return [_coef_texts(panels.panel_weights(path, heads, k)) for k in range(1, len(heads) + 1)]


def _coef_texts(coef: Array) -> list[list[str]]:
    return [[f"{weight + 0.0:.4g}" for weight in row] for row in coef.tolist()]


def _failure_costs(findings: Findings, sizes: Iterable[int]) -> list[list[str]] | None:
    """Return what the failure of each feature costs in panels of some sizes, of methods that have weights."""
    if findings.path is None:
        return None
    costs = [panels.failure_costs(findings.path, findings.units[:k]) for k in sizes]
    return [[f"{cost:.3g}" if math.isfinite(cost) else "" for cost in panel] for panel in costs]


def _substitutes(
    findings: Findings, heads: Array, nearest: NearestMembers | None = None
) -> list[list[tuple[str, float, int]]]:
    """Return the substitutes of each feature at any k."""
    samples = findings.samples
    if findings.has_groups or not len(heads) or len(samples.y) < 2:
        return []
    excluded = panels.excluded_features(findings.path)
    X = samples.X if findings.shared is None else findings.shared
    found = panels.substitutes_for_every_k(X, heads, N_SUBSTITUTES, exclude=excluded, nearest=nearest)
    return [
        [(str(samples.feature_names[each.feature]), _rounded(each.correlation), each.rank) for each in entries]
        for entries in found
    ]


# --------------------------------------------------------------------------------------------------------------- pictures


def _places(predictions: Predictions, k_max: int) -> list[int | None]:
    """Return the places of the sizes 1, 2, ... among those that were measured."""
    place_of = {size: place for place, size in enumerate(predictions.sizes)}
    return [place_of.get(k) for k in range(1, k_max + 1)]


def _curves(findings: Findings, k_max: int) -> list[Curve]:
    if findings.predictions is None:
        return []
    places = _places(findings.predictions, k_max)
    return [_curve(judge, curve, places) for judge, curve in findings.curves.items()]


def _curve(name: str, curve: ScoreCurve, places: list[int | None]) -> Curve:
    columns = (curve.value, curve.error, curve.lower, curve.upper)
    return Curve(
        name, *([None if place is None else _digits(float(values[place]), 6) for place in places] for values in columns)
    )


def _further(findings: Findings, k_max: int) -> list[Curve]:
    """Return the mean absolute error of a regression, or R² where that is what was asked for."""
    predictions = findings.predictions
    if predictions is None or not findings.is_regression:
        return []
    other = METRICS["r2" if findings.metric.name == "mae" else "mae"]
    curve = score_curve(predictions, other, findings.samples.groups)
    return [_curve(other.title, curve, _places(predictions, k_max))]


def _measures(findings: Findings, predictions: Predictions, k_max: int) -> dict[str, Any]:
    """Return the numbers of a regression, or the rates of the classes, the ROC curve and the reliability, for every k."""
    places = _places(predictions, k_max)
    if not isinstance(predictions.targets, Classes):
        return {"numbers": _numbers(predictions, places)}
    measures: dict[str, Any] = {"rates": [place if place is None else _rates(predictions, place) for place in places]}
    if len(predictions.targets) > MOST_CLASSES:
        counts = [None if place is None else predictions.confusion(predictions.sizes[place]) for place in places]
        measures["confused"] = [None if each is None else confused_pairs(each.tolist()) for each in counts]
        return measures
    shown = predictions.first(METRICS["brier"])
    assert shown.probabilities is not None
    codes, probabilities = shown.truth, shown.probabilities.astype(np.float64)
    measures["reliability"] = [None if place is None else _reliability(codes, probabilities[:, place]) for place in places]
    if len(predictions.targets) == 2:
        areas = predictions.estimates(METRICS["roc_auc"], findings.samples.groups)
        measures["roc"] = [
            None if place is None else _roc(codes, probabilities[:, place, 1], areas[place]) for place in places
        ]
    return measures


def _rates(predictions: Predictions, place: int) -> list[ClassRate]:
    names = [str(name) for name in predictions.classes]
    found = class_rates(predictions.confusion(predictions.sizes[place]), names)
    return [ClassRate(_estimate(rate.sensitivity), _estimate(rate.specificity), rate.n_samples) for rate in found]


def _estimate(estimate: tuple[float, float, float] | None) -> tuple[float, float, float] | None:
    return None if estimate is None else (round(estimate[0], 4), round(estimate[1], 4), round(estimate[2], 4))


def _reliability(codes: Array, probabilities: Array) -> Reliability:
    predicted = probabilities.argmax(axis=1)
    bins = reliability(probabilities.max(axis=1), predicted == codes)
    outputs = Outputs(codes, probabilities.shape[1], probabilities=probabilities[:, None, :])
    weights = np.ones((1, len(codes)))
    brier, loss = (float(METRICS[name].formula(outputs, weights)[0, 0]) for name in ("brier", "log_loss"))
    points = [(round(each.probability, 4), round(each.right.value, 4), each.n_samples) for each in bins]
    intervals = [(round(each.right.lower, 4), round(each.right.upper, 4)) for each in bins]
    return Reliability(points, _digits(brier, 4), _digits(loss, 4), intervals)


def _roc(codes: Array, probabilities: Array, area: Estimate) -> Roc:
    """Return the ROC curve of the second class, with at most :data:`MOST_ROC_POINTS` points, and its area."""
    order = np.argsort(-probabilities, kind="stable")
    is_last = np.append(np.diff(probabilities[order]) != 0.0, True)  # samples of equal probability are one step
    steps = [np.concatenate([[0], np.cumsum(codes[order] == code)[is_last]]) for code in (0, 1)]
    kept = np.unique(np.linspace(0, len(steps[0]) - 1, MOST_ROC_POINTS).round().astype(int))
    shares = [(counts[kept] / max(counts[-1], 1)).round(4).tolist() for counts in steps]
    ends = [_digits(end, 4) if math.isfinite(end) else None for end in (area.lower, area.upper)]
    return Roc(list(zip(*shares, strict=True)), _digits(area.value, 6), *ends)


def _numbers(predictions: Predictions, places: list[int | None]) -> Numbers:
    """Return measured and predicted numbers of at most :data:`MOST_POINTS` samples, evenly spaced."""
    found = predictions.first(METRICS["r2"])
    shown = slice(None, None, -(-len(found.truth) // MOST_POINTS))
    assert found.numbers is not None
    predicted = found.numbers[shown, :, 0]
    return Numbers(
        [_rounded_numbers(found.truth[shown].reshape(-1))],
        [None if place is None else [_rounded_numbers(predicted[:, place])] for place in places],
    )


def _rounded_numbers(values: Array) -> list[float]:
    return [_digits(value, 6) for value in values.tolist()]


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
    alphas, norms = panels.norms_along_path(path, heads, MOST_LAMBDAS)
    return PathLines(
        alphas=[_digits(alpha, 5) for alpha in alphas.tolist()],
        norms=[[_digits(norm, 5) for norm in line] for line in norms.tolist()],
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
