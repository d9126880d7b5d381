"""Which settings of L20Selector generalise best, and do its defaults beat every competitor? What the defaults rest on.

Run ``python benchmarks/defaults.py DATA_DIR``, where DATA_DIR holds ``paper/brain.npz``, ``extra/glioma.npz`` and the
others (X, y): fourteen sets of gene expression from twelve studies. Every method selects on the same random splits, two
thirds of the samples for training with the classes in proportion, once for the largest k; methods that optimise for one k
are solved again for each. The figure is the test accuracy, the mean over KNN-5 and logistic regression and over five k.

A cell is one configuration on one split of one set. Cells are kept as files in ``--cache``, so that a run that was stopped
goes on where it was. Their names depend on all parameters, on the data and on the protocol, but not on the code: after a
change of a method delete its cells (``rm build/defaults/L20Selector-*``). All tables come from the cells alone. To
choose by splits 0:10 and to confirm on others, run it again with ``--splits 10:20``.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import re
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from schedule import SETS, load
from scipy.stats import rankdata, wilcoxon
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from l20fs import L20Selector, paper_settings
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.scoring import SolvesForOneK
from l20fs.methods import Baseline, discover
from l20fs.storage.files import write_atomically

PANELS = (10, 20, 50, 100, 200)
FOLDERS = {
    "paper": SETS,
    "extra": ("allaml", "glioma", "prostate_ge", "tox_171", "colon_discrete", "lung_discrete"),
}
#: Sets that hold samples of another one: they count as one study where independence matters.
SAME_STUDY = {"allaml": "leukemia", "prostate_ge": "prostate"}

#: Methods whose answer depends on the scale of the features: run on the values as stored and on z-scores.
SCALE_MATTERS = ("ESFS", "L21", "LassoOVR", "LFS", "NonnegativeL21", "RFS", "RLSR", "RPMFS", "AHIHT (paper)", "HIHT (paper)")

#: Means over a few splits are ratios of small whole numbers: closer ones are equal but for rounding.
TIE = 1e-9
DEFAULT = "L20Selector (default)"


class Dataset(NamedTuple):
    """A set as the methods see it; the digest tells it from another version."""

    name: str
    X: np.ndarray
    y: np.ndarray
    digest: str

    @property
    def study(self) -> str:
        return SAME_STUDY.get(self.name, self.name)


def default_classifiers(n_samples: int) -> dict[str, Any]:
    """Return two kinds of classifier: nearest neighbours, and a linear one with a softmax."""
    return {
        "KNN-5": KNeighborsClassifier(min(5, n_samples)),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }


def load_all(folder: Path) -> list[Dataset]:
    datasets = []
    for sub, names in FOLDERS.items():
        for name in names:
            X, y = load(folder / sub, name)
            if name == "tox_171":
                # Stored on the linear scale, from 0.02 to 34000; below 1 is noise. Everybody takes logarithms of that.
                X = np.log10(np.maximum(X, 1.0))
            digest = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()
            datasets.append(Dataset(name, X, y, digest))
    return datasets


# The configurations


def competitors() -> dict[str, BaseSelector]:
    """Return every published method with its defaults, and the paper's own settings of AHIHT and HIHT."""
    found: dict[str, BaseSelector] = {name: method() for name, method in discover().items()}
    for solver in ("ahiht", "hiht"):
        found[f"{solver.upper()} (paper)"] = L20Selector(**paper_settings(solver), max_features=max(PANELS))
    return found


def grid() -> dict[str, dict[str, Any]]:
    """Return the settings of L20Selector among which the defaults are chosen."""
    settings = {}
    for solver, ranking in (("forward", None), ("ahiht", "entry"), ("ahiht", "norm")):
        for ridge, scale, weight in itertools.product((0.1, 1.0, 10.0, 100.0), ("none", "zscore"), (None, "balanced")):
            name = " ".join(filter(None, [solver, ranking, f"ridge={ridge:g}", scale.replace("none", "raw"), weight]))
            settings[name] = {"solver": solver, "ridge": ridge, "scale": scale, "class_weight": weight}
            if ranking is not None:
                settings[name]["ranking"] = ranking
    return settings


def build(settings: dict[str, dict[str, Any]]) -> tuple[dict[str, BaseSelector], dict[str, str]]:
    """Return the selectors, and the reasons why the others are unavailable: this version does not know their settings."""
    available: dict[str, BaseSelector] = {}
    unavailable = {}
    for name, parameters in settings.items():
        try:
            selector = L20Selector(**parameters, max_features=max(PANELS))
            # A value that is unknown is only refused by a fit.
            clone(selector).set_params(n_features_to_select=1).fit([[0.0, 1.0], [0.1, 3.0], [5.0, 2.0]], [0, 0, 1])
        except (TypeError, ValueError) as error:
            unavailable[name] = str(error)
        else:
            available[name] = selector
    return available, unavailable


# The cells


class Cell(NamedTuple):
    """One configuration on one split of one set, and where its result is kept."""

    selector: BaseSelector
    zscored: bool
    dataset: Dataset
    split: int
    file: Path


def make_cell(selector: BaseSelector, zscored: bool, dataset: Dataset, split: int, cache: Path) -> Cell:
    # All parameters, not those that repr shows: it hides the defaults, and these may change.
    parameters = sorted((name, repr(value)) for name, value in selector.get_params().items())
    identity = [type(selector).__name__, parameters, dataset.name, dataset.digest, split, PANELS] + ["zscored"] * zscored
    key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:20]
    return Cell(selector, zscored, dataset, split, cache / f"{identity[0]}-{dataset.name}-{split:02d}-{key}.json")


def compute(cell: Cell) -> None:
    """Select and classify, with one BLAS thread, and write the file of the cell."""
    X, y, split = cell.dataset.X, cell.dataset.y, cell.split
    train, test = next(StratifiedShuffleSplit(1, test_size=1 / 3, random_state=split).split(X, y))
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        seen = StandardScaler().fit_transform(X[train]) if cell.zscored else X[train]
        supports = select(clone(cell.selector), seen, y[train])
        seconds = time.perf_counter() - begin
        converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        scores = [accuracies(X[:, chosen], y, train, test) for chosen in supports]
    result = {
        "method": type(cell.selector).__name__,
        "parameters": {name: repr(value) for name, value in cell.selector.get_params().items()},
        "set": cell.dataset.name,
        "split": split,
        "accuracy": {name: [score[name] for score in scores] for name in scores[0]},
        "selected": [int(chosen.sum()) for chosen in supports],
        "seconds": seconds,
        "converged": converged,
    }
    write_atomically(cell.file, lambda stream: stream.write(json.dumps(result).encode()))


def select(selector: BaseSelector, X: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return the masks of the selected columns, one for every k."""
    if isinstance(selector, Baseline):
        return [np.ones(X.shape[1], dtype=bool)] * len(PANELS)
    if isinstance(selector, SolvesForOneK):
        selector.set_params(sizes=PANELS)
    selector.set_params(n_features_to_select=max(PANELS)).fit(X, y)
    return [selector.support_for(k) for k in PANELS]


def accuracies(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
    scores = {}
    for name, model in default_classifiers(len(train)).items():
        # Settings that end the path at a lambda may leave nothing to learn from.
        classifier = model if X.shape[1] else DummyClassifier()
        scores[name] = float(classifier.fit(X[train], y[train]).score(X[test], y[test]))
    return scores


# The figures


class Figures(NamedTuple):
    """What the cells of a configuration say, accuracies in percent."""

    by_set: np.ndarray  # (n_sets,)
    by_panel: np.ndarray  # (n_panels,)
    seconds: float  # of one selection
    unconverged: int  # cells in which the method stopped at its limit

    @property
    def mean(self) -> float:
        return float(self.by_set.mean())


def read(cells: Sequence[Cell], datasets: Sequence[Dataset]) -> Figures | None:
    """Return the figures of one configuration; None while cells are missing, since a part is no fair comparison."""
    if not all(cell.file.exists() for cell in cells):
        return None
    results = [json.loads(cell.file.read_text()) for cell in cells]
    accuracy = {dataset.name: [] for dataset in datasets}
    for result in results:
        accuracy[result["set"]].append(100 * np.mean(list(result["accuracy"].values()), axis=0))
    by_set_and_panel = np.array([np.mean(rows, axis=0) for rows in accuracy.values()])
    return Figures(
        by_set=by_set_and_panel.mean(axis=1),
        by_panel=by_set_and_panel.mean(axis=0),
        seconds=float(np.mean([result["seconds"] for result in results])),
        unconverged=sum(not result["converged"] for result in results),
    )


def mean_ranks(figures: dict[str, Figures]) -> dict[str, float]:
    """Return the mean over the sets of the rank on each, 1 for the best; equal accuracies share their ranks."""
    by_set = np.array([figure.by_set for figure in figures.values()])
    ranks = rankdata(-np.round(by_set / TIE) * TIE, axis=0)
    return dict(zip(figures, ranks.mean(axis=1).tolist(), strict=True))


class Duel(NamedTuple):
    """One method against another over the sets; p-values of the two-sided signed-rank test of Wilcoxon."""

    gain: float
    wins: int
    losses: int
    ties: int
    p_sets: float
    p_studies: float


def fight(ours: np.ndarray, theirs: np.ndarray, studies: Sequence[str]) -> Duel:
    gains = ours - theirs
    gains[np.abs(gains) < TIE] = 0.0
    by_study = np.array([gains[np.array(studies) == study].mean() for study in dict.fromkeys(studies)])
    wins, losses = int((gains > 0).sum()), int((gains < 0).sum())
    return Duel(
        gain=float(gains.mean()),
        wins=wins,
        losses=losses,
        ties=len(gains) - wins - losses,
        p_sets=signed_rank_p(gains),
        p_studies=signed_rank_p(by_study),
    )


def signed_rank_p(gains: np.ndarray) -> float:
    # Without any difference SciPy divides zero by zero.
    return float(wilcoxon(gains).pvalue) if gains.any() else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for their number: each is the chance of any false one among those up to it."""
    order = np.argsort(p_values)
    raised = np.array(p_values)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return adjusted.tolist()


def choose_without(study: str, ours: dict[str, Figures], studies: Sequence[str]) -> str:
    """Return the configuration with the best mean over the sets of all other studies; the first of equal ones."""
    others = np.array(studies) != study
    return max(ours, key=lambda name: round(ours[name].by_set[others].mean() / TIE))


# The report


def report(
    reference: dict[str, Figures], ours: dict[str, Figures], baseline: Figures | None, datasets: Sequence[Dataset]
) -> None:
    """Print all tables: ``reference`` are the competitors, ``ours`` the settings of L20Selector, the default among them."""
    contest = reference | {DEFAULT: ours[DEFAULT]} if DEFAULT in ours else reference
    shown = contest | ({"Baseline": baseline} if baseline else {})
    if not shown:
        return
    print_means("Competitors and the default", shown, mean_ranks(contest) if contest else {})
    print_sets("Accuracy % by set", shown, datasets)
    studies = [dataset.study for dataset in datasets]
    if DEFAULT in ours:
        print_duels(DEFAULT, ours[DEFAULT].by_set, reference, studies)
    if len(ours) > 1:
        print_means("Settings of L20Selector", ours, {})
        print_sets("Accuracy % by set", ours, datasets)
        choices = [choose_without(study, ours, studies) for study in studies]
        reached = np.array([ours[name].by_set[i] for i, name in enumerate(choices)])
        print_left_out(choices, reached, ours, reference, datasets)
        print_duels("The settings chosen without the study", reached, reference, studies)


def print_means(title: str, figures: dict[str, Figures], ranks: dict[str, float]) -> None:
    print(f"\n{title}: mean accuracy % over the sets; mean rank; seconds per selection; cells that did not converge")
    print(f"{'':36}{'mean':>7}{'rank':>7}" + "".join(f"{f'k={k}':>7}" for k in PANELS) + f"{'seconds':>9}{'limit':>7}")
    for name, figure in best_first(figures):
        rank = f"{ranks[name]:7.2f}" if name in ranks else f"{'-':>7}"
        panels = "".join(f"{accuracy:7.2f}" for accuracy in figure.by_panel)
        print(f"{name:36}{figure.mean:7.2f}{rank}{panels}{figure.seconds:9.3f}{figure.unconverged:7d}")


def print_sets(title: str, figures: dict[str, Figures], datasets: Sequence[Dataset]) -> None:
    print(f"\n{title}")
    print(f"{'':36}" + "".join(f"{dataset.name[:11]:>12}" for dataset in datasets))
    for name, figure in best_first(figures):
        print(f"{name:36}" + "".join(f"{accuracy:12.2f}" for accuracy in figure.by_set))


def best_first(figures: dict[str, Figures]) -> list[tuple[str, Figures]]:
    return sorted(figures.items(), key=lambda item: -item[1].mean)


def print_duels(title: str, ours: np.ndarray, reference: dict[str, Figures], studies: Sequence[str]) -> None:
    duels = {name: fight(ours, figure.by_set, studies) for name, figure in best_first(reference)}
    adjusted = dict(zip(duels, holm([duel.p_sets for duel in duels.values()]), strict=True))
    print(f"\n{title} ({ours.mean():.2f}) against each competitor: gain in points; sets won, lost, tied; Wilcoxon's p over")
    print("sets; the same adjusted for the number of competitors (Holm); p over studies, with the mean of related sets")
    print(f"{'':36}{'gain':>7}{'won':>6}{'lost':>6}{'tied':>6}{'p':>10}{'Holm':>10}{'studies':>10}")
    for name, duel in duels.items():
        counts = f"{duel.wins:6d}{duel.losses:6d}{duel.ties:6d}"
        print(f"{name:36}{duel.gain:7.2f}{counts}{duel.p_sets:10.2g}{adjusted[name]:10.2g}{duel.p_studies:10.2g}")
    print_list("not beaten in the mean", (name for name, duel in duels.items() if duel.gain <= 0))
    print_list("beaten, but p >= 0.05", (name for name, duel in duels.items() if duel.gain > 0 and duel.p_sets >= 0.05))


def print_list(title: str, names: Iterable[str]) -> None:
    print(f"{title}: {', '.join(names) or 'none'}")


def print_left_out(
    choices: Sequence[str],
    reached: np.ndarray,
    ours: dict[str, Figures],
    reference: dict[str, Figures],
    datasets: Sequence[Dataset],
) -> None:
    related = ", ".join(f"{name} and {study}" for name, study in SAME_STUDY.items())
    print(f"\nLeave one study out ({related} are one study each): accuracy % on a set with the settings that have the best")
    print("mean over the sets of all other studies; the best of all settings and competitors there, in hindsight")
    print(f"{'':16}{'reached':>9}{'ours':>9}{'theirs':>9}  settings")
    best = [np.max([figure.by_set for figure in group.values()], axis=0) for group in (ours, reference) if group]
    for dataset, choice, accuracies in zip(datasets, choices, np.transpose([reached, *best]), strict=True):
        print(f"{dataset.name:16}" + "".join(f"{accuracy:9.2f}" for accuracy in accuracies) + f"  {choice}")
    print(f"{'mean':16}" + "".join(f"{column.mean():9.2f}" for column in (reached, *best)))


def parse_splits(text: str) -> range:
    first, last = (int(part) for part in text.split(":"))
    if not 0 <= first < last:
        raise ValueError(text)
    return range(first, last)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("build/defaults"), help="folder of the cells")
    parser.add_argument("--splits", type=parse_splits, default="0:10", metavar="FROM:TO", help="seeds of the splits")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", type=re.compile, default="", metavar="PATTERN", help="compute these configurations")
    parser.add_argument("--report", action="store_true", help="compute nothing; show what the cache has")
    return parser.parse_args()


def compute_missing(name: str, cells: Sequence[Cell], jobs: int) -> None:
    missing = [cell for cell in cells if not cell.file.exists()]
    if missing:
        begin = time.perf_counter()
        Parallel(n_jobs=jobs)(delayed(compute)(cell) for cell in missing)
        print(f"{name}: {len(missing)} cells in {time.perf_counter() - begin:.0f} s", flush=True)


def main() -> None:
    arguments = parse_arguments()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    datasets = load_all(arguments.data)
    published = competitors()
    settings, unavailable = build({DEFAULT: {}} | grid())
    runs = {name: (selector, False) for name, selector in (published | settings).items()}
    rescaled = {f"{name} on z-scores": (published[name], True) for name in SCALE_MATTERS}
    cells = {
        name: [make_cell(*run, data, split, arguments.cache) for data in datasets for split in arguments.splits]
        for name, run in (runs | rescaled).items()
    }
    for name in cells:
        if not arguments.report and arguments.only.search(name):
            compute_missing(name, cells[name], arguments.jobs)
    figures = {name: figure for name in cells if (figure := read(cells[name], datasets))}
    for reason in dict.fromkeys(unavailable.values()):
        print_list(f"unavailable, {reason}", (name for name in unavailable if unavailable[name] == reason))
    counts = {name: sum(cell.file.exists() for cell in cells[name]) for name in cells if name not in figures}
    print_list("incomplete, left out below", (f"{name} ({n}/{len(cells[name])})" for name, n in counts.items()))
    reference = {name: figures[name] for name in (*published, *rescaled) if name in figures and name != "Baseline"}
    ours = {name: figures[name] for name in settings if name in figures}
    report(reference, ours, figures.get("Baseline"), datasets)


if __name__ == "__main__":
    main()
