"""Figures: what the cells say about each configuration, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata, wilcoxon

from .cells import SIZES, STABILITY_SIZE, CellFile, Plan
from .configurations import Configuration
from .sets import Dataset

#: Means over a few splits are ratios of small whole numbers: closer ones are equal but for rounding.
TIE = 1e-9

#: Sizes that the settings are judged by, and the rules chosen.
SMALL = tuple(k for k in SIZES if k <= 100)


class Figures(NamedTuple):
    """What the cells of a configuration say; accuracies in percent, NaN for a set or a size that it does not have."""

    accuracy: np.ndarray  # (n_sets, n_sizes)
    stability: np.ndarray  # (n_sets,)
    seconds: np.ndarray  # (n_sets,), of one selection
    unconverged: int  # cells in which the method stopped at its limit

    def by_set(self, sizes: Sequence[int] = SIZES) -> np.ndarray:
        """Return the mean over the sizes that a set has, for each set."""
        columns = self.accuracy[:, [SIZES.index(k) for k in sizes]]
        return np.array([np.nan if np.isnan(row).all() else np.nanmean(row) for row in columns])


def collect(datasets: Sequence[Dataset], configurations: Iterable[Configuration], plan: Plan) -> dict[str, Figures]:
    """Return the figures of each configuration; a set with a cell missing or failed has none."""
    files = [CellFile(plan.folder, dataset.name) for dataset in datasets]
    found = {}
    for one in configurations:
        accuracy = np.full((len(datasets), len(SIZES)), np.nan)
        stability, seconds, unconverged = np.full(len(datasets), np.nan), np.full(len(datasets), np.nan), 0
        for i, (dataset, file) in enumerate(zip(datasets, files, strict=True)):
            splits = plan.splits_of(dataset)
            cells = [cell for cell in file.of(one.name, splits) if "scores" in cell]
            if len(cells) < len(splits):
                continue
            columns = [SIZES.index(k) for k in cells[0]["sizes"]]
            accuracy[i, columns] = 100 * np.mean([cell["scores"] for cell in cells], axis=(0, 2))
            stability[i] = stability_of([cell["features"] for cell in cells], dataset.X.shape[1])
            seconds[i] = np.mean([cell["seconds"] for cell in cells])
            unconverged += sum(not cell["converged"] for cell in cells)
        if np.isfinite(accuracy).any():
            found[one.name] = Figures(accuracy, stability, seconds, unconverged)
    return found


def complete(datasets: Sequence[Dataset], configurations: Iterable[Configuration], plan: Plan) -> list[Dataset]:
    """Return the sets that have all cells of all these configurations, and print the names of the others."""
    figures, names = collect(datasets, configurations, plan), [one.name for one in configurations]
    finite = np.array(
        [np.isfinite(figures[name].by_set()) if name in figures else [False] * len(datasets) for name in names]
    )
    whole = finite.all(axis=0)
    if not whole.all():
        print(
            "incomplete, left out:",
            ", ".join(one.name for one, is_whole in zip(datasets, whole, strict=True) if not is_whole),
        )
    return [one for one, is_whole in zip(datasets, whole, strict=True) if is_whole]


def stability_of(features: Sequence[dict[str, list[int]]], n_features: int) -> float:
    """Return how much the selections of the splits agree beyond chance."""
    key = str(STABILITY_SIZE)
    if len(features) < 2 or any(key not in one for one in features):
        return np.nan
    members = np.zeros((len(features), n_features), dtype=bool)
    for row, one in zip(members, features, strict=True):
        row[one[key]] = True
    share = members.mean(axis=0)  # of the splits that select each feature
    mean_size = share.sum()
    spread = len(features) / (len(features) - 1) * np.mean(share * (1.0 - share))
    return float(1.0 - spread / (mean_size / n_features * (1.0 - mean_size / n_features)))  # Nogueira and others, 2018


def left_out(datasets: Sequence[Dataset], configurations: Iterable[Configuration], plan: Plan) -> dict[str, list[str]]:
    """Return for each reason the cells that failed, as "method (sets)"."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for dataset in datasets:
        file = CellFile(plan.folder, dataset.name)
        for one in configurations:
            for reason in {cell["failed"] for cell in file.of(one.name, plan.splits_of(dataset)) if "failed" in cell}:
                reasons.setdefault(reason, {}).setdefault(one.name, []).append(dataset.name)
    return {reason: [f"{name} ({', '.join(sets)})" for name, sets in who.items()] for reason, who in reasons.items()}


# One method against another


class Duel(NamedTuple):
    """One method against another over the sets that both have; p-values of the two-sided signed-rank test of Wilcoxon."""

    gain: float
    wins: int
    losses: int
    ties: int
    p_sets: float
    p_studies: float


def fight(ours: np.ndarray, theirs: np.ndarray, studies: Sequence[str]) -> Duel:
    both = np.isfinite(ours) & np.isfinite(theirs)
    gains = (ours - theirs)[both]
    gains[np.abs(gains) < TIE] = 0.0
    by_study = mean_by(gains, np.array(studies)[both])
    wins, losses = int((gains > 0).sum()), int((gains < 0).sum())
    ties = len(gains) - wins - losses
    return Duel(float(gains.mean()), wins, losses, ties, signed_rank_p(gains), signed_rank_p(by_study))


def mean_by(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    return np.array([values[groups == group].mean() for group in dict.fromkeys(groups)])


def signed_rank_p(gains: np.ndarray) -> float:
    # Without any difference SciPy divides zero by zero.
    return float(wilcoxon(gains).pvalue) if gains.any() else 1.0


def adjust(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for their number (Holm)."""
    order = np.argsort(p_values)
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * np.array(p_values)[order]), 1.0)
    return adjusted.tolist()


def mean_ranks(figures: dict[str, Figures]) -> dict[str, float]:
    """Return the mean rank, 1 for the best of all that have the set, over the sets of each; equal accuracies share ranks."""
    by_set = np.array([figure.by_set() for figure in figures.values()])
    ranks = rankdata(-np.round(by_set / TIE) * TIE, axis=0, nan_policy="omit")
    return dict(zip(figures, np.nanmean(ranks, axis=1).tolist(), strict=True))


# Rules for the ridge


class Rule(NamedTuple):
    """The ridge ``a q / (q + b) + c`` for q features per sample; a constant if a is 0."""

    a: float
    b: float
    c: float

    @property
    def is_constant(self) -> bool:
        return not self.a

    def __call__(self, q: np.ndarray) -> np.ndarray:
        return self.a * q / (q + self.b) + self.c

    def __str__(self) -> str:
        slope = "" if self.is_constant else f"{self.a:g} q/(q + {self.b:g})"
        return " + ".join(filter(None, [slope, f"{self.c:g}" if self.c else ""]))


def make_rules(levels: Sequence[float], halves: Sequence[float] = (1.0, 3.0, 10.0, 30.0, 100.0)) -> list[Rule]:
    """Return constants, simplest first, and rules that grow with q to one of the levels."""
    constants = [Rule(0.0, 1.0, c) for c in levels]
    return constants + [Rule(a, b, c) for c in (0.0, *levels) for a in levels for b in halves if a > c]


def score_rule(rule: Rule, q: np.ndarray, ridges: Sequence[float], scores: np.ndarray) -> np.ndarray:
    """Return what a rule reaches on each set, from scores (n_sets, n_ridges) and linear in log(ridge) between them."""
    logs = np.log(ridges)
    return np.array([np.interp(np.log(ridge), logs, row) for ridge, row in zip(rule(q), scores, strict=True)])


class LeftOut(NamedTuple):
    """For each set: what the rule chosen on the other studies reaches, and which it is."""

    reached: np.ndarray
    rules: list[Rule]


def leave_one_study_out(studies: Sequence[str], rules: Sequence[Rule], score: Callable[[Rule], np.ndarray]) -> LeftOut:
    """Choose the rule with the best mean over all other studies, for each study; the first of equal ones."""
    scores = np.array([score(rule) for rule in rules])
    groups = np.array(studies)
    chosen = []
    for study in groups:
        others = groups != study
        means = [mean_by(row[others], groups[others]).mean() for row in scores]
        chosen.append(int(np.argmax(np.round(np.array(means) / TIE))))
    return LeftOut(scores[chosen, np.arange(len(groups))], [rules[i] for i in chosen])
