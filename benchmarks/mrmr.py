"""MRMR side by side with mrmr_selection and scikit-feature, where these are installed.

Run ``python benchmarks/mrmr.py`` for 63 x 2308 with 4 classes, and with ``--large`` for 200 x 20000 with 8 classes as well.
For each size it times the first 50 features,

* ``fcq``: of the numbers as they are, against ``mrmr.mrmr_classif`` with one job;
* ``mid``: of the integers floor(2 X), against ``MRMR.mrmr`` of skfeature-chappers (not for the large size,
  where it would take many minutes);

and prints seconds, ratios and whether both give the same features in the same order. Releases of skfeature-chappers from 1.2
on weigh the sum of redundancies by 0.8 where mRMR takes their mean, so that the order differs there at the same cost. Our
times are the best of three, those of the peers are of one run, and each is a whole fit with its checks.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from l20fs.data import make_planted
from l20fs.methods import MRMR

K = 50

# The peer's package has the name of this file, which a script finds first.
sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).parent]


def seconds(function, repeats=1):
    """Return the best time and the last result."""
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - begin)
    return best, result


def ours(X, y, **parameters):
    selector = MRMR(K, **parameters).fit(X, y)
    return np.argsort(selector.ranking_)[:K].tolist()


def mrmr_selection(X, y):
    import pandas as pd
    from mrmr import mrmr_classif

    frame, labels = pd.DataFrame(X), pd.Series(y)
    return seconds(lambda: [int(j) for j in mrmr_classif(frame, labels, K, n_jobs=1, show_progress=False)])


def scikit_feature(X, y):
    from skfeature.function.information_theoretical_based import LCSI

    integers = X.astype(int)
    # Straight to what MRMR.mrmr calls, as that gives ranks or indices depending on the release.
    found = seconds(lambda: LCSI.lcsi(integers, y, gamma=0, function_name="MRMR", n_selected_features=K, mode="index"))
    return found[0], np.asarray(found[1][0] if isinstance(found[1], tuple) else found[1]).tolist()


def compare(X, y, peer_module, peer, **parameters):
    fit, order = seconds(lambda: ours(X, y, max_features=K, **parameters), repeats=3)
    default = seconds(lambda: ours(X, y, **parameters), repeats=3)[0]
    name = f"{X.shape[0]} x {X.shape[1]} {parameters['variant']}"
    print(f"{name:18} l20fs {fit:8.3f} s (searching 100 features: {default:.3f} s)", end="", flush=True)
    if importlib.util.find_spec(peer_module) is None:
        print(f"   {peer_module} is not installed")
        return
    spent, peer_order = peer(X, y)
    print(f"   {peer_module} {spent:8.2f} s   ratio {spent / fit:7.1f}   same order: {order == peer_order}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="200 x 20000 with 8 classes as well; minutes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y, _ = make_planted(63, 2308, 20, 4)
    compare(X, y, "mrmr", mrmr_selection, variant="fcq")
    compare(np.floor(2 * X), y, "skfeature", scikit_feature, variant="mid", binning="floor")
    if arguments.large:
        X, y, _ = make_planted(200, 20000, 20, 8)
        compare(X, y, "mrmr", mrmr_selection, variant="fcq")


if __name__ == "__main__":
    main()
