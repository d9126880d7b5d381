"""A hospital that nobody has seen: panels of several hospitals, with and without ``adjust_for``, judged in another one.

Run ``python benchmarks/hospitals.py [--repetitions 20] [--shift 1.5] [--jobs 2]``, one minute. Each repetition draws four
hospitals to learn from, with 40 samples each and different shares of two classes, and a fifth one with 400 samples and equal
shares. Of 500 genes 10 differ between the classes; every hospital shifts 100 others by amounts of its own, which tell the
classes as far as the hospital does, and all genes a little. The number of genes is chosen by plain cross-validation or by
leaving one hospital out. Printed are means over the repetitions and, in brackets, the smallest and the largest: the
corrected score that the folds promise, the accuracy in the fifth hospital, and the numbers of genes and of shifted ones.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold

from l20fs import L20SelectorCV

N_HOSPITALS, N_SAMPLES, N_NEW, N_GENES, N_INFORMATIVE, N_SHIFTED, LARGEST = 4, 40, 400, 500, 10, 100, 40
SHARES = (0.15, 0.35, 0.65, 0.85)
EFFECT, SLIGHT = 1.0, 0.3


class Hospitals(NamedTuple):
    """Samples of the hospitals to learn from, with the hospital of each, and those of another hospital."""

    X: np.ndarray
    y: np.ndarray
    hospital: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray


def draw(seed: int, shift: float) -> Hospitals:
    """Draw the genes of all hospitals; the first genes tell the classes, the next ones the hospitals."""
    rng = np.random.default_rng(seed)
    hospital = np.repeat(np.arange(N_HOSPITALS + 1), [N_SAMPLES] * N_HOSPITALS + [N_NEW])
    y = (rng.random(len(hospital)) < np.array([*rng.permutation(SHARES), 0.5])[hospital]).astype(int)
    X = rng.standard_normal((len(y), N_GENES))
    X[:, :N_INFORMATIVE] += EFFECT * y[:, None]
    shifts = SLIGHT * rng.standard_normal((N_HOSPITALS + 1, N_GENES))
    shifts[:, N_INFORMATIVE : N_INFORMATIVE + N_SHIFTED] *= shift / SLIGHT
    X += shifts[hospital]
    is_new = hospital == N_HOSPITALS
    return Hospitals(X[~is_new], y[~is_new], hospital[~is_new], X[is_new], y[is_new])


def judge(seed: int, shift: float, *, is_adjusted: bool, leaves_out: bool) -> tuple[float, float, int, int]:
    """Return the promised score, the accuracy in the new hospital, and the numbers of genes and of shifted ones."""
    data = draw(seed, shift)
    cv = LeaveOneGroupOut() if leaves_out else StratifiedKFold(5, shuffle=True, random_state=seed)
    selector = L20SelectorCV("1se", max_features=LARGEST, cv=cv)
    selector.fit(
        data.X,
        data.y,
        groups=data.hospital if leaves_out else None,
        adjust_for=data.hospital if is_adjusted else None,
    )
    is_shifted = selector.support_[N_INFORMATIVE : N_INFORMATIVE + N_SHIFTED]
    return selector.corrected_score_, selector.score(data.X_new, data.y_new), selector.n_features_, int(is_shifted.sum())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--shift", type=float, default=1.5)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    print("| adjust_for | k chosen by | promised % | new hospital % | genes | of these shifted |\n|---|---|---|---|---|---|")
    settings = [(is_adjusted, leaves_out) for is_adjusted in (False, True) for leaves_out in (False, True)]
    work = [(setting, seed) for setting in settings for seed in range(given.repetitions)]
    found = Parallel(given.jobs)(
        delayed(judge)(seed, given.shift, is_adjusted=is_adjusted, leaves_out=leaves_out)
        for (is_adjusted, leaves_out), seed in work
    )
    results = np.array(found).reshape(len(settings), given.repetitions, 4) * [100.0, 100.0, 1.0, 1.0]
    for (is_adjusted, leaves_out), rows in zip(settings, results, strict=True):
        cells = [f"{column.mean():.1f} ({column.min():.0f} to {column.max():.0f})" for column in rows.T]
        named = ["hospital" if is_adjusted else "-", "leaving a hospital out" if leaves_out else "plain folds"]
        print(f"| {' | '.join([*named, *cells])} |")


if __name__ == "__main__":
    main()
