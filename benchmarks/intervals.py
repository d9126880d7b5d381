"""Bias and coverage of the quoted score where the truth is known: ``python benchmarks/intervals.py [--repetitions 200]``.

Gaussian features of which 16 have another mean in each class, or none. The truth of a fit is the accuracy of its final model
on fresh samples. The table has, in points, the bias of the quoted score of ``L20SelectorCV()`` with its standard error; the
bias of the same score with a bootstrap correction for the choice (Tsamardinos, Greasidou and Borboudakis 2018);
how often the nominal 95 % interval has the truth inside; its mean width, and that of Wilson's interval of as many samples.
Outcomes are kept in the cache; ``--report`` prints the table of what is there.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from protocol.markdown import print_table
from scipy.stats import binomtest

from l20fs import L20SelectorCV

N_INFORMATIVE, N_FRESH, N_DRAWS = 16, 20_000, 300


class Cell(NamedTuple):
    """A kind of data: the shares of the classes, and the distance of their means, 0 for noise."""

    n_samples: int
    n_features: int
    shares: tuple[float, ...]
    distance: float = 0.0

    @property
    def means(self) -> np.ndarray:
        """Means of the informative features in each class: weaker and weaker ones, the signs by a fixed draw."""
        signs = np.random.default_rng(7).choice([-0.5, 0.5], (len(self.shares), N_INFORMATIVE))
        signs[1] = -signs[0]
        return self.distance * 0.93 ** np.arange(N_INFORMATIVE) * signs

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        sizes = np.round(np.array(self.shares) * self.n_samples).astype(int)
        y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        X = rng.standard_normal((len(y), self.n_features))
        X[:, :N_INFORMATIVE] += self.means[y]
        return X, y

    def accuracy(self, model, rng: np.random.Generator) -> float:
        """Return the accuracy of a linear model on fresh samples, of which only its columns are drawn."""
        y = rng.choice(len(self.shares), N_FRESH, p=np.array(self.shares) / sum(self.shares))
        rows = np.flatnonzero(model.support_)
        centres = np.zeros((len(self.shares), len(rows)))
        is_informative = rows < N_INFORMATIVE
        centres[:, is_informative] = self.means[:, rows[is_informative]]
        X = centres[y] + rng.standard_normal((N_FRESH, len(rows)))
        decision = X @ model.coef_[:, rows].T + model.intercept_
        return float(np.mean((decision.argmax(axis=1) if len(self.shares) > 2 else decision[:, 0] > 0.0) == y))


HALVES, THIRDS, QUARTERS = (0.5, 0.5), (1 / 3, 1 / 3, 1 / 3), (0.25,) * 4
CELLS = (
    *(Cell(60, 5000, THIRDS), Cell(40, 2000, HALVES), Cell(100, 2000, (0.92, 0.08)), Cell(100, 1000, (0.7, 0.2, 0.1))),
    *(Cell(60, 500, HALVES, distance) for distance in (0.6, 0.95, 1.4, 1.9)),
    *(Cell(120, 500, HALVES, distance) for distance in (0.6, 1.1, 1.8, 2.2)),
    *(Cell(300, 50, HALVES, distance) for distance in (0.55, 1.65)),
    *(Cell(60, 500, QUARTERS, distance) for distance in (1.9, 3.4, 4.2)),
    *(Cell(120, 2000, QUARTERS, distance) for distance in (1.45, 3.2)),
    *(Cell(100, 1000, (0.7, 0.2, 0.1), distance) for distance in (1.8, 3.0)),
)


def corrected(found: L20SelectorCV, rng: np.random.Generator) -> float:
    """Return the accuracy without the optimism of the choice: on samples that were not drawn, chosen by those that were."""
    predicted, labels = found.out_of_fold_.probabilities, found.out_of_fold_.labels_or_numbers
    codes, n_classes = found.out_of_fold_.truth, found.out_of_fold_.n_classes
    squares = np.square(predicted.outputs.probabilities - np.eye(n_classes)[predicted.outputs.truth][:, None]).sum(axis=2)
    is_right = labels.outputs.labels == labels.outputs.truth[:, None]
    losses, right = (
        np.array([part[rows.samples == sample].mean(axis=0) for sample in range(len(codes))])
        for part, rows in ((squares, predicted), (is_right, labels))
    )
    chosen, changes = found.best_index_, []
    for _ in range(N_DRAWS):
        drawn = np.concatenate(
            [rng.choice(np.flatnonzero(codes == code), np.sum(codes == code)) for code in range(n_classes)]
        )
        errors, left = losses[drawn].mean(axis=0), np.setdiff1d(np.arange(len(codes)), drawn)
        is_enough = found.cv_results_["n_features"] >= min(10, found.n_features_in_ / 10)
        near = is_enough & (errors <= 1.05 * errors[is_enough].min())
        other = int(np.argmax(near)) if errors.min() < 1.0 - np.square(np.bincount(codes) / len(codes)).sum() else 0
        changes.append(right[left, other].mean() - right[left, chosen].mean())
    return float(right[:, chosen].mean() + np.mean(changes))


def run(cell: Cell, seed: int) -> list[float]:
    """Return the truth, the quoted score and its interval, the corrected score, and the number of features."""
    rng = np.random.default_rng([seed, cell.n_samples, cell.n_features, len(cell.shares), round(100 * cell.distance)])
    found = L20SelectorCV().fit(*cell.draw(rng))
    value, (lower, upper) = found.corrected_score_, found.corrected_interval_
    return [cell.accuracy(found, rng), value, lower, upper, corrected(found, rng), found.n_features_]


def row(cell: Cell, outcomes: list[list[float]]) -> list[str]:
    truth, value, lower, upper, after, n_features = np.transpose(outcomes)
    wilson = [binomtest(round(v * cell.n_samples), cell.n_samples).proportion_ci(method="wilson") for v in value]
    is_inside = (lower <= truth) & (truth <= upper)
    biases = [
        f"{100 * (each - truth).mean():+.1f} ({100 * (each - truth).std() / np.sqrt(len(truth)):.1f})"
        for each in (value, after)
    ]
    return [
        *(f"{cell.n_samples} x {cell.n_features}", ", ".join(f"{share:.2g}" for share in cell.shares)),
        *(f"{100 * truth.mean():.1f}", f"{n_features.mean():.0f}", *biases),
        *(f"{100 * is_inside.mean():.1f}", f"{100 * np.mean(upper - lower):.1f}"),
        f"{100 * np.mean([high - low for low, high in wilson]):.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--cells", type=re.compile, default=re.compile(""), help="pattern of the cells to compute")
    parser.add_argument("--cache", type=Path, default=Path("build/intervals.json"))
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = json.loads(arguments.cache.read_text()) if arguments.cache.exists() else {}
    for cell in () if arguments.report else CELLS:
        outcomes = stored.setdefault(repr(cell), [])
        if arguments.cells.search(repr(cell)):
            outcomes += [run(cell, seed) for seed in range(len(outcomes), arguments.repetitions)]
            print(row(cell, outcomes), flush=True)
            arguments.cache.parent.mkdir(parents=True, exist_ok=True)
            arguments.cache.write_text(json.dumps(stored))
    rows = [row(cell, stored[repr(cell)]) for cell in CELLS if stored.get(repr(cell))]
    head = [
        "table",
        "shares",
        "truth %",
        "number",
        "bias (se)",
        "bias, corrected (se)",
        "coverage %",
        "width",
        "Wilson's width",
    ]
    print_table(f"The quoted accuracy, up to {arguments.repetitions} repetitions", head, rows)
    inside = [(o[2] <= o[0] <= o[3]) for outcomes in stored.values() for o in outcomes]
    print(f"\nPooled coverage: {100 * np.mean(inside):.1f} % of {len(inside)}")


if __name__ == "__main__":
    main()
