"""Compare ReliefF with skrebate, side by side in one process: time, ratio and the largest difference of a score.

Run ``python benchmarks/relieff.py [--large]`` where skrebate is installed; without it only our times are printed. Data are
drawn with ``make_planted`` and thinned to classes of equal size, or of sizes that differ by one where the number of samples
is no multiple of theirs. skrebate lets all other classes count the same, ReliefF counts them by their shares, which are
equal here.
"""

from __future__ import annotations

import argparse
import importlib.util
import time

import numpy as np

from l20fs.data import make_planted
from l20fs.methods import ReliefF

SIZES = [(63, 2308, 4)]
LARGE = [(200, 20000, 8)]
N_NEIGHBORS = 10


def draw(n_samples: int, n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    X, y, _ = make_planted(4 * n_samples, n_features, 20, n_classes)
    # The place of each sample within its class: the lowest n_samples places are spread evenly over the classes.
    place = np.array([np.sum(y[:i] == y[i]) for i in range(len(y))])
    kept = np.sort(np.argsort(place, kind="stable")[:n_samples])
    sizes = np.bincount(y[kept], minlength=n_classes)
    if np.ptp(sizes) > 1:
        raise SystemExit(f"A class has too few samples: {sizes}. Draw more.")
    return X[kept], y[kept]


def timed(call, repeats: int = 1):
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds)), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also 200 x 20000 with 8 classes (minutes)")
    parser.add_argument("--repeats", type=int, default=5, help="of ours; the median counts")
    arguments = parser.parse_args()
    has_peer = importlib.util.find_spec("skrebate") is not None
    print(f"{'N x d x C':>14} {'relieff s':>10} {'nearest s':>10} {'feast s':>10} {'skrebate s':>11} {'ratio':>7}", end="")
    print(f" {'max diff':>9}")
    for size in SIZES + LARGE * arguments.large:
        X, y = draw(*size)
        seconds, selector = timed(lambda: ReliefF(n_neighbors=N_NEIGHBORS).fit(X, y), arguments.repeats)
        others = [
            timed(lambda: ReliefF(variant=variant).fit(X, y), arguments.repeats)[0] for variant in ("nearest", "feast")
        ]
        print(f"{'x'.join(map(str, size)):>14} {seconds:10.3f} {others[0]:10.3f} {others[1]:10.3f}", end="", flush=True)
        if not has_peer:
            print("  skrebate is not installed")
            continue
        from skrebate import ReliefF as Peer

        peer_seconds, peer = timed(lambda: Peer(n_neighbors=N_NEIGHBORS).fit(X, y))
        expected = peer.feature_importances_
        print(f" {peer_seconds:11.2f} {peer_seconds / seconds:7.0f}", end="")
        print(f" {np.abs(selector.scores_ - expected).max():9.1e}")


if __name__ == "__main__":
    main()
