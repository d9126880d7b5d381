"""Fill the content of a report from what a run found."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from l20fs.design import equality_tolerance
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.selection_table import likeness, strongest_class
from l20fs.estimators.selector import L20Selector
from l20fs.estimators.stability import StabilitySelector
from l20fs.evaluation.engine import dense_columns
from l20fs.evaluation.folds import N_FOLDS, number_of_folds
from l20fs.evaluation.predictions import JUDGES, Nested, Predictions
from l20fs.objective.prox import order_descending
from l20fs.objective.solution_path import RULES, SolutionPath
from l20fs.report import sentences
from l20fs.report.content import Content, Curve, PathLines, Stability
from l20fs.typing import Array

#: A page with a weight for each of k features, each class and each k has about this many of them at most.
MOST_WEIGHTS = 40_000
MOST_FEATURES = 100
MOST_LINES = 30
MOST_LAMBDAS = 200
MOST_CLASSES = 30
N_SUBSTITUTES = 3
#: Values of columns that are made dense at a time.
MOST_VALUES = 2**22


@dataclass(frozen=True, eq=False)
class Findings:
    """What a run was given, what it was asked for, and what it found.

    ``k`` counts features, or groups where the selector has any; ``k_rule`` is a key of :data:`l20fs.report.sentences.RULES`.
    ``unit_names`` names groups by their lowest feature. ``notes`` are warnings that came up on the way.
    """

    title: str
    X: Any
    y: Array
    names: Sequence[str]
    selector: BaseSelector
    method: str
    k: int
    k_rule: str
    predictions: Predictions | None = None
    nested: Nested | None = None
    stability: StabilitySelector | None = None
    groups: Array | None = None
    group_name: str = ""
    unit_names: dict[int, str] = field(default_factory=dict)
    is_log: bool = False
    notes: Sequence[str] = ()
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> SolutionPath | None:
        """The path, of methods that have one."""
        return self.selector.path_ if isinstance(self.selector, L20Selector) else None

    @property
    def has_groups(self) -> bool:
        """Whether features are selected in groups."""
        return int(self.selector.ranking_.max()) < len(self.names)

    @property
    def noun(self) -> str:
        """What k counts."""
        return "feature group" if self.has_groups else "feature"


def largest_k(n_classes: int) -> int:
    """Return how many features a page can show with all their weights.

    Examples
    --------
    >>> largest_k(4), largest_k(8), largest_k(100)
    (100, 100, 28)
    """
    return min(MOST_FEATURES, math.isqrt(2 * MOST_WEIGHTS // n_classes))


def build(findings: Findings) -> Content:
    """Return the content of the page."""
    n_classes = len(np.unique(findings.y))
    units = ranked_units(findings.selector)[: largest_k(n_classes)]
    classes, codes, sizes = np.unique(findings.y, return_inverse=True, return_counts=True)
    heads = _heads(units)
    coef, strongest = _weights_for_all(findings, heads)
    return Content(
        title=findings.title,
        answer=answer(findings),
        sentences=describe(findings),
        warnings=warnings_of(findings, len(units)),
        k=findings.k,
        k_rule=sentences.RULES[findings.k_rule],
        k_max=len(units),
        n_samples=len(findings.y),
        n_features=len(findings.names),
        classes=[str(label) for label in classes],
        class_sizes=sizes.tolist(),
        chance=float(sizes.max() / sizes.sum()),
        curves=_curves(findings.predictions, len(units)),
        features=[_name(findings, members) for members in units],
        columns=_columns(findings, units),
        substitutes=_substitutes(findings, heads),
        heat=_heat(findings.X, units, codes),
        coef=coef,
        strongest=strongest,
        confusion=_confusion(findings.predictions, len(units)),
        path=_path_lines(findings, heads[:MOST_LINES]),
        stability=_stability(findings, heads[: findings.k]),
        provenance=findings.provenance,
    )


def selection_tsv(findings: Findings, content: Content) -> str:
    """Return the table of all selected features, also of more than the page can show."""
    if findings.k <= content.k_max:
        return content.selection_tsv(findings.k)
    units = ranked_units(findings.selector)[: findings.k]
    heads = _heads(units)
    nothing: dict[str, Any] = dict.fromkeys(("coef", "strongest", "confusion", "path", "stability"))
    whole = replace(
        content,
        k_max=findings.k,
        curves=[],
        features=[_name(findings, members) for members in units],
        columns=_columns(findings, units),
        substitutes=_substitutes(findings, heads),
        heat=[],
        **nothing,
    )
    lines = whole.selection_tsv(findings.k).splitlines()
    if content.coef is None:
        return "".join(line + "\n" for line in lines)
    # The weights of one panel alone: those of all smaller ones would be too many.
    coef, strongest = _weights(findings, heads, findings.k)
    cells = [["strongest", *(f"coef_{name}" for name in content.classes)]]
    cells += [[content.classes[place] if place >= 0 else "", *row] for place, row in zip(strongest, coef, strict=True)]
    return "".join("\t".join([line, *map(_in_one_cell, row)]) + "\n" for line, row in zip(lines, cells, strict=True))


def _in_one_cell(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)


def _heads(units: list[Array]) -> Array:
    """Return the lowest feature of each unit."""
    return np.array([members[0] for members in units], dtype=np.intp)


def ranked_units(selector: BaseSelector) -> list[Array]:
    """Return the features, or groups of features, that can be selected, best first."""
    usable = np.flatnonzero(np.isfinite(selector.scores_))
    if isinstance(selector, L20Selector) and selector.alpha is not None and not _goes_on(selector):
        usable = np.flatnonzero(selector.path_.is_selected)
    order = usable[np.argsort(selector.ranking_[usable], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(selector.ranking_[order])) + 1) if len(order) else []


def _goes_on(selector: L20Selector) -> bool:
    """Whether anything but what is included is worth its price at the last lambda: then the ranking goes on behind it."""
    return int(selector.path_.sizes[-1]) > selector.path_.n_included


def score_at(findings: Findings, judge: str = JUDGES[0]) -> tuple[float, float] | None:
    """Return the mean accuracy of the selection and its standard error, if there is one."""
    if findings.predictions is None:
        return None
    results = findings.predictions.results(judge)
    place = findings.predictions.sizes.index(findings.k)
    return float(results["mean_test_score"][place]), float(results["standard_error"][place])


def answer(findings: Findings) -> str:
    """Return the answer in one sentence."""
    _, sizes = np.unique(findings.y, return_counts=True)
    return sentences.answer(
        findings.k,
        int(findings.selector.ranking_.max()),
        len(sizes),
        score=score_at(findings),
        n_folds=len(findings.predictions.folds) if findings.predictions else 0,
        chance=float(sizes.max() / sizes.sum()),
        noun=findings.noun,
    )


def describe(findings: Findings) -> list[str]:
    """Return what was done and what it means."""
    n_samples, n_features = findings.X.shape
    about = findings.selector.about
    said = [
        sentences.what_was_done(findings.method, n_samples, n_features, reference=about.reference, log=findings.is_log),
        sentences.how_k_was_chosen(findings.k, findings.k_rule, findings.noun),
    ]
    if findings.predictions is not None:
        groups = findings.group_name if findings.groups is not None else None
        said.append(sentences.how_accuracy_was_estimated(len(findings.predictions.folds), n_samples, groups=groups))
        if score_at(findings) == (1.0, 0.0):
            said.append(sentences.all_were_right(n_samples))
    if findings.nested is not None:
        accuracies = findings.nested.accuracies
        error = accuracies.std(ddof=1) / math.sqrt(len(accuracies))
        said.append(sentences.nested_estimate(accuracies.mean(), error, findings.nested.sizes))
    if findings.stability is not None:
        stable = findings.stability
        if math.isfinite(stable.stability_):
            said.append(sentences.how_stable(stable.stability_, *stable.stability_interval_, len(stable.orders_)))
    return [*said, sentences.what_it_does_not_mean()]


def warnings_of(findings: Findings, k_max: int) -> list[str]:
    """Return everything that the reader should beware of."""
    classes, codes, sizes = np.unique(findings.y, return_inverse=True, return_counts=True)
    n_groups = None if findings.groups is None else len(np.unique(findings.groups))
    best = int(np.argmin(findings.selector.ranking_))
    first_values = dense_columns(findings.X, np.array([best]))[:, 0]
    said = [
        sentences.few_folds(number_of_folds(findings.y, findings.groups), N_FOLDS, classes, sizes.tolist(), n_groups),
        sentences.rare_classes(classes, sizes.tolist()),
        sentences.few_samples(len(findings.y)),
        sentences.imbalance(classes, sizes.tolist()),
        sentences.lonely_classes(findings.y, findings.groups, findings.group_name),
        sentences.raw_counts(findings.X, log=findings.is_log),
        sentences.identifier(findings.names[best], first_values, codes, len(findings.names)),
        sentences.optimistic_choice(findings.k_rule, is_nested=findings.nested is not None),
        sentences.more_than_shown(findings.k, k_max, findings.noun),
    ]
    return [*(text for text in said if text), *findings.notes]


def _name(findings: Findings, members: Array) -> str:
    return findings.unit_names.get(int(members[0]), str(findings.names[members[0]]))


def _columns(findings: Findings, units: list[Array]) -> dict[str, list[str]]:
    """Return what does not depend on k: a text per unit."""
    selector, path = findings.selector, findings.path
    heads = [members[0] for members in units]
    columns = {
        "rank": [str(place + 1) for place in range(len(units))],
        "score": [_number(score) for score in selector.scores_[heads]],
    }
    if path is not None:
        norms = np.zeros(path.n_features)
        norms[path.coef_rows] = path.stage_norms(-1)
        entries = path.entry_alphas
        columns["norm"] = [_number(float(np.linalg.norm(norms[members]))) for members in units]
        columns["entry_alpha"] = [_number(entries[head]) for head in heads]
        columns["rule"] = [RULES[rule] for rule in path.rules[heads]]
    if findings.stability is not None:
        columns["stability"] = [_number(share) for share in findings.stability.frequencies_[heads]]
    if findings.has_groups:
        columns["members"] = [", ".join(str(findings.names[j]) for j in members) for members in units]
    return columns


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _weights_for_all(findings: Findings, heads: Array) -> tuple[list[list[list[str]]] | None, list[list[int]] | None]:
    """Return the weights and strongest classes of the panels of 1, 2, ... features, of methods that have weights."""
    if findings.path is None or findings.has_groups:
        return None, None
    panels = [_weights(findings, heads, k) for k in range(1, len(heads) + 1)]
    return [coef for coef, _ in panels], [strongest for _, strongest in panels]


def _weights(findings: Findings, heads: Array, k: int) -> tuple[list[list[str]], list[int]]:
    """Return the least-squares weights on exactly the best k features as texts, and the strongest class of each."""
    path = findings.path
    assert path is not None
    # What is included is there for every k, and weighs in whether it is shown or not.
    values = path.refit(max(k, path.n_included)).coef[:, heads[:k]].T
    places = [strongest_class(row) for row in values]
    coef = [[f"{weight + 0.0:.4g}" for weight in row] for row in values.tolist()]
    return coef, [-1 if place is None else place for place in places]


def _curves(predictions: Predictions | None, k_max: int) -> list[Curve]:
    if predictions is None:
        return []
    curves = []
    for judge in predictions.predicted:
        results = predictions.results(judge)
        by_size = dict(zip(predictions.sizes, range(len(predictions.sizes)), strict=True))
        places = [by_size.get(k) for k in range(1, k_max + 1)]
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


def _heat(X: Any, units: list[Array], codes: Array) -> list[list[float]]:
    """Return the mean z-score of each unit in each class."""
    membership = np.eye(int(codes.max()) + 1)[codes]
    membership /= membership.sum(axis=0)
    rows = []
    for batch in _batches(units, max(1, MOST_VALUES // len(codes))):
        columns = dense_columns(X, np.concatenate(batch)).astype(np.float64)
        columns -= columns.mean(axis=0)
        deviations = columns.std(axis=0)
        deviations[deviations == 0.0] = 1.0
        means = (membership.T @ columns) / deviations
        for part in np.split(means, np.cumsum([len(members) for members in batch])[:-1], axis=1):
            rows.append([round(value, 2) + 0.0 for value in part.mean(axis=1).tolist()])
    return rows


def _batches(units: list[Array], most: int) -> Iterator[list[Array]]:
    """Cut the units into runs of at most ``most`` features, or of one unit: a run is read at once."""
    batch: list[Array] = []
    for members in units:
        if batch and sum(map(len, batch)) + len(members) > most:
            yield batch
            batch = []
        batch.append(members)
    if batch:
        yield batch


def _substitutes(findings: Findings, heads: Array) -> list[list[tuple[str, float, int]]]:
    """Return what could replace each feature at any k: features behind it in the list, and others."""
    if findings.has_groups or not len(heads) or len(findings.y) < 2:
        return []
    path = findings.path
    excluded = np.flatnonzero(path.rules == RULES.index("excluded")) if path is not None else np.empty(0, dtype=np.intp)
    outside, within = likeness(findings.X, heads, N_SUBSTITUTES, exclude=excluded)
    rank_of = {int(feature): place + 1 for place, feature in enumerate(heads)}
    found = []
    for place, feature in enumerate(heads):
        others = outside.feature == feature
        candidates = np.concatenate([outside.substitute[others], heads[place + 1 :]])
        correlations = np.concatenate([outside.correlation[others], within[place, place + 1 :]])
        known = np.isfinite(correlations)
        found.append(_ever_shown(candidates[known], correlations[known], rank_of, findings.names))
    return found


def _ever_shown(
    candidates: Array, correlations: Array, rank_of: dict[int, int], names: Sequence[str]
) -> list[tuple[str, float, int]]:
    """Keep the candidates that are among the best three which are not selected, for any k.

    One of rank r can be shown up to k = r - 1. There the fewest others are in its way: those that are not in the list, or
    of a higher rank. If three of these come before it, it is never shown.
    """
    by_index = np.argsort(candidates, kind="stable")
    order = by_index[order_descending(np.abs(correlations[by_index]), rtol=equality_tolerance(np.dtype(np.float64)))]
    seen: list[float] = []
    kept = []
    for place in order:
        feature = int(candidates[place])
        rank = rank_of.get(feature, 0)
        in_the_way = sum(other > (rank or math.inf) or other == math.inf for other in seen)
        seen.append(rank or math.inf)
        if in_the_way < N_SUBSTITUTES:
            kept.append((str(names[feature]), round(float(correlations[place]), 2) + 0.0, rank))
    return kept


def _path_lines(findings: Findings, heads: Array) -> PathLines | None:
    """Return the norms of the weights along lambda."""
    path = findings.path
    if path is None or findings.has_groups:
        return None
    n_stages = len(path.alphas)
    stages = np.unique(np.linspace(0, n_stages - 1, min(n_stages, MOST_LAMBDAS)).round().astype(int))
    column = np.full(path.n_features, -1)
    column[heads] = np.arange(len(heads))
    norms = np.zeros((len(heads), len(stages)))
    for place, stage in enumerate(stages.tolist()):
        rows = column[path.stage_rows(stage)]
        norms[rows[rows >= 0], place] = path.stage_norms(stage)[rows >= 0]
    entries = path.entry_alphas[heads]
    return PathLines(
        alphas=[_short(alpha) for alpha in path.alphas[stages].tolist()],
        norms=[[_short(norm) for norm in line] for line in norms.tolist()],
        entry=[None if math.isnan(alpha) else _short(alpha) for alpha in entries.tolist()],
    )


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _stability(findings: Findings, heads: Array) -> Stability | None:
    if findings.stability is None:
        return None
    stable = findings.stability
    frequencies = [round(share, 6) for share in stable.frequencies_[heads].tolist()]
    numbers = (stable.stability_, *stable.stability_interval_)
    index, lower, upper = (float(value) if math.isfinite(value) else None for value in numbers)
    return Stability(frequencies, index, lower, upper, len(stable.orders_))
