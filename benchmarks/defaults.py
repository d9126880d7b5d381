"""Which settings of L20Selector generalise best, and do its defaults beat every competitor? What the defaults rest on.

Run ``make bench-defaults``, or ``python benchmarks/defaults.py DATA_DIR [settings] [methods] [numbers]``, where DATA_DIR
holds ``paper/brain.npz``, ``extra/glioma.npz`` and the others (X, y). Every method selects on the same random splits, two
thirds of each class for training, and once for all k; methods that optimise for one k are solved again for each. The figure
is the test accuracy on z-scores of the selected features, the mean over KNN-5 and logistic regression.

* ``settings``: scaling and ridge by set, beside the default, and the rules chosen without the study of a set.
* ``methods``: every competitor, as it is and with the scaling of the default.
* ``numbers``: scaling and ridge where numbers are to be predicted.

Cells are kept in ``--cache`` (``protocol/cells.py``), and all tables come from them alone. After a change of a method
compute its cells anew with ``--redo``, for example ``--redo "^default$"``. The splits are those of ``--splits``: choose by
some, and confirm on others.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from protocol.cells import SIZES, CellFile, Plan, compute_set
from protocol.configurations import (
    ALL_FEATURES,
    DEFAULT,
    PREVIOUS,
    RIDGES,
    SCALES,
    Configuration,
    competitors,
    setting_name,
    settings,
)
from protocol.figures import (
    SMALL,
    Figures,
    Rule,
    adjust,
    collect,
    complete,
    fight,
    leave_one_study_out,
    left_out,
    make_rules,
    mean_by,
    mean_ranks,
    score_rule,
)
from protocol.markdown import bold_best, mean, number, numbers, print_table
from protocol.sets import Dataset, load_all, numeric_sets

from l20fs import L20Regressor

PARTS = ("settings", "methods", "numbers")
RIDGES_FOR_NUMBERS = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0)

#: Values of a and c in the rules a q / (q + b) + c to choose from.
LEVELS = (0.03, 0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0)
LEVELS_FOR_NUMBERS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


def compute(datasets: Sequence[Dataset], configurations: Sequence[Configuration], plan: Plan, jobs: int) -> None:
    """Compute what is missing, a process for each set, those that take longest first."""
    order = sorted(datasets, key=lambda dataset: -dataset.X.size * (dataset.y.max() + 1 if dataset.has_labels else 1))
    tasks = (delayed(compute_set)(dataset, configurations, plan) for dataset in order)
    for line in Parallel(jobs, return_as="generator_unordered", max_nbytes=None)(tasks):
        print(line, flush=True)


# Settings


class Grid:
    """Scores of all settings, ``scores[scale]`` (n_rows, n_ridges); a row is a set, or the mean over related targets."""

    def __init__(self, datasets: Sequence[Dataset], ridges: Sequence[float], figures: dict[str, Figures], plan: Plan):
        rows = np.array([dataset.row for dataset in datasets])
        first = [datasets[int(np.argmax(rows == row))] for row in dict.fromkeys(rows)]
        self.names, self.studies = [one.row for one in first], [one.study for one in first]
        self.shapes = [" x ".join(map(str, one.X.shape)) for one in first]
        self.ridges = ridges
        by_setting = {name: mean_by(figure.by_set(SMALL), rows) for name, figure in figures.items()}
        self.scores = {scale: np.transpose([by_setting[setting_name(scale, ridge)] for ridge in ridges]) for scale in SCALES}
        self.default = by_setting[DEFAULT]
        cells = [CellFile(plan.folder, one.name).of(DEFAULT, plan.splits_of(one)) for one in first]
        self.q = np.array([np.mean([cell["ratio"] for cell in own]) for own in cells])
        self.spread = np.array([np.mean([cell["spread"] for cell in own]) for own in cells])
        used = [[cell["used"] for cell in own] for own in cells]
        self.scale = [max(SCALES, key=[scale for scale, _ in own].count) for own in used]
        self.ridge = np.array([np.mean([ridge for _, ridge in own]) for own in used])
        #: Of the scaling that the default uses on most splits.
        self.own = np.array([self.scores[scale][i] for i, scale in enumerate(self.scale)])

    def scores_of(self, scale: str) -> np.ndarray:
        return self.own if scale == "auto" else self.scores[scale]


def print_settings(grid: Grid, levels: Sequence[float], unit: str) -> None:
    for scale, title in zip(SCALES, ("z-scores", "divided by deviation + median deviation"), strict=True):
        lines = zip(grid.names, grid.shapes, grid.scores[scale], strict=True)
        rows = [[name, shape, *bold_best(scores)] for name, shape, scores in lines]
        rows.append(["**mean**", "", *bold_best(np.mean(grid.scores[scale], axis=0), 2)])
        print_table(f"{unit} by ridge, {title}", ["set", "shape", *map(str, grid.ridges)], rows)
    rules = make_rules(levels)
    print_default(grid, rules, unit)
    print_rules(grid, rules)


def print_default(grid: Grid, rules: Sequence[Rule], unit: str) -> None:
    """Print the default beside the best ridge of each set, and beside the rule that was chosen on all other studies."""
    best_own, best = grid.own.max(axis=1), np.max([scores.max(axis=1) for scores in grid.scores.values()], axis=0)
    without = leave_one_study_out(grid.studies, rules, lambda rule: score_rule(rule, grid.q, grid.ridges, grid.own))
    columns = (grid.default, best_own, grid.default - best_own, grid.default - best, without.reached)
    rows = [
        [
            *(name, number(grid.q[i], 1), number(grid.spread[i], 1), grid.scale[i], number(grid.ridge[i], 3)),
            *(number(column[i], 1) for column in columns),
            str(without.rules[i]),
        ]
        for i, name in enumerate(grid.names)
    ]
    rows.append(["**mean**", *[""] * 4, *(number(column.mean()) for column in columns), ""])
    head = ["set", "q", "spread", "scale", "ridge", "default", "best ridge", "loss", "loss, both scales"]
    print_table(f"The default by set, {unit}", [*head, "rule chosen without the study", "which"], rows)


def print_rules(grid: Grid, rules: Sequence[Rule]) -> None:
    """Print the best constant and the best rule of each scaling over all sets, and what their choice reaches elsewhere."""
    rows = []
    for scale, family in itertools.product(("auto", *SCALES), ([rule for rule in rules if rule.is_constant], rules)):
        scores = grid.scores_of(scale)
        score = functools.partial(score_rule, q=grid.q, ridges=grid.ridges, scores=scores)
        best = max(family, key=lambda rule: score(rule).mean())
        largest_loss = (score(best) - scores.max(axis=1)).min()
        without = leave_one_study_out(grid.studies, family, score).reached
        rows.append([scale, str(best), *numbers([score(best).mean(), largest_loss, without.mean()])])
    head = ["scale", "best rule", "mean", "largest loss on a set", "mean, rules chosen without the study"]
    print_table("Rules for the ridge (linear in log ridge between the measured ones)", head, rows)


# Methods


def print_methods(figures: dict[str, Figures], datasets: Sequence[Dataset]) -> None:
    figures = {("previous default" if name == PREVIOUS else name): figure for name, figure in figures.items()}
    contest = {name: figure for name, figure in figures.items() if name != ALL_FEATURES}
    ranks, default = mean_ranks(contest), figures[DEFAULT].by_set()
    studies = [dataset.study for dataset in datasets]
    duels = {name: fight(default, figure.by_set(), studies) for name, figure in contest.items() if name != DEFAULT}
    order = [DEFAULT, *sorted(duels, key=lambda name: duels[name].gain)]
    rows = []
    for name in sorted(figures, key=lambda name: -mean(figures[name].by_set() - default)):
        figure = figures[name]
        by_set, is_all = figure.by_set(), name == ALL_FEATURES
        sizes = [""] * len(SIZES) if is_all else numbers([mean(column) for column in figure.accuracy.T])
        tail = ["", ""] if is_all else [number(mean(figure.stability)), number(mean(figure.seconds), 3)]
        rank = number(ranks[name], 1) if name in ranks else ""
        rows.append([name, str(np.isfinite(by_set).sum()), number(mean(by_set)), rank, *sizes, *tail])
    head = ["method", "sets", "mean", "rank", *(f"k = {k}" for k in SIZES), "stability", "seconds"]
    print_table("Mean accuracy % over the sets that have such a k; stability at k = 50", head, rows)
    adjusted = dict(zip(duels, adjust([duel.p_sets for duel in duels.values()]), strict=True))
    rows = [
        [
            *(name, f"{duel.gain:+.2f}", f"{duel.wins}, {duel.losses}, {duel.ties}"),
            *(f"{100 * duel.wins / (duel.wins + duel.losses + duel.ties):.0f}", f"{duel.p_sets:.2g}"),
            *(f"{adjusted[name]:.2g}", f"{duel.p_studies:.2g}"),
        ]
        for name in order[1:]
        for duel in [duels[name]]
    ]
    head = ["method", "gain of the default", "won, lost, tied", "won %", "p", "Holm", "p over studies"]
    print_table("The default against each method, over the sets that both have", head, rows)
    shown = [name for name in (DEFAULT, *order[1:], ALL_FEATURES) if name in figures]
    rows = [[name, *numbers(figures[name].by_set(), 1)] for name in shown]
    print_table("Accuracy % by set", ["method", *(dataset.name for dataset in datasets)], rows)


# The command


def parse_splits(text: str) -> range:
    first, last = (int(part) for part in text.split(":"))
    if not 0 <= first < last:
        raise ValueError(text)
    return range(first, last)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("parts", nargs="*", default=PARTS, help="settings, methods, numbers")
    parser.add_argument("--cache", type=Path, default=Path("build/defaults"), help="folder of the cells")
    parser.add_argument("--splits", type=parse_splits, default="100:106", metavar="FROM:TO", help="seeds of the splits")
    parser.add_argument("--tall", type=int, default=2, help="how many of the splits sets of more than 1000 samples get")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", type=re.compile, default="", metavar="PATTERN", help="compute these configurations")
    parser.add_argument("--sets", type=re.compile, default="", metavar="PATTERN", help="use these sets")
    parser.add_argument("--redo", type=re.compile, metavar="PATTERN", help="compute these configurations anew")
    parser.add_argument("--report", action="store_true", help="compute nothing; show what the cache has")
    return parser.parse_intermixed_args()


def run(
    datasets: Sequence[Dataset], own: Sequence[Configuration], others: Sequence[Configuration], plan: Plan, jobs: int
) -> tuple[list[Dataset], dict[str, Figures]]:
    """Compute what is missing; return the sets that have all of our own settings, and the figures on them."""
    if jobs:
        compute(datasets, [*own, *others], plan, jobs)
    whole = complete(datasets, own, plan)
    for reason, who in left_out(whole, others, plan).items():
        print(f"left out, {reason}: {'; '.join(who)}")
    return whole, collect(whole, [*own, *others], plan)


def main() -> None:
    arguments = parse_arguments()
    plan = Plan(arguments.splits, arguments.tall, arguments.only, arguments.cache)
    jobs = 0 if arguments.report else arguments.jobs
    if arguments.redo:
        for file in arguments.cache.glob("*.jsonl"):
            CellFile(arguments.cache, file.stem).drop(lambda cell: bool(arguments.redo.search(cell["configuration"])))
    print(f"Splits {arguments.splits.start} to {arguments.splits.stop - 1}")
    if set(arguments.parts) & {"settings", "methods"}:
        datasets = [dataset for dataset in load_all(arguments.data) if arguments.sets.search(dataset.name)]
        others = competitors() if "methods" in arguments.parts else []
        datasets, figures = run(datasets, settings(), others, plan, jobs)
        if "settings" in arguments.parts:
            print_settings(Grid(datasets, RIDGES, figures, plan), LEVELS, "accuracy %")
        if "methods" in arguments.parts:
            shown = {DEFAULT, PREVIOUS, *(one.name for one in others)}
            print_methods({name: figure for name, figure in figures.items() if name in shown}, datasets)
    if "numbers" in arguments.parts:
        datasets = [dataset for dataset in numeric_sets(arguments.data) if arguments.sets.search(dataset.name)]
        datasets, figures = run(datasets, settings(L20Regressor, RIDGES_FOR_NUMBERS), [], plan, jobs)
        print_settings(Grid(datasets, RIDGES_FOR_NUMBERS, figures, plan), LEVELS_FOR_NUMBERS, "R^2 %")


if __name__ == "__main__":
    main()
