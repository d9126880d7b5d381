"""How far panels of 20 features can be from the best ones, on the paper's data sets, at the defaults of L20Selector.

Run ``python benchmarks/certificate.py DATA_DIR``, where DATA_DIR holds ``brain.npz`` and the others (X, y). For every set it
prints the certified gap of forward selection in per cent of the loss, how much exchanges lower the loss, and the seconds of
processor time of the fit and of the certificate. ``--ridge`` and ``--scale`` set others than the defaults. With
``--exact S`` branch and bound is given so many seconds: the gap that is left, and how far forward is above the best panel.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from l20fs import L20Selector
from l20fs.inspection import certify, solve_exactly

SETS = ("brain", "breast3", "leukemia", "lung", "lymphoma", "nci", "prostate", "srbct")
K = 20


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
    # The substitute Lung set is on the linear scale; every other set is a logarithm or a ratio.
    return (np.log10(X) if name == "lung" else X), y


def timed(function):
    begin = time.process_time()
    result = function()
    return result, time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--ridge", type=float, help="the default is automatic")
    parser.add_argument("--scale", default="auto")
    parser.add_argument("--exact", type=float, metavar="S", help="seconds for branch and bound")
    arguments = parser.parse_args()
    options = {"scale": arguments.scale} | ({} if arguments.ridge is None else {"ridge": arguments.ridge})
    print(f"{'set':10}{'ridge':>7}{'gap %':>8}{'swap: lower by %':>18}{'fit s':>8}{'certify s':>11}", end="")
    print(f"{'exact: gap %':>14}{'forward above %':>17}{'s':>7}" if arguments.exact else "")
    for name in SETS:
        X, y = load(arguments.data, name)
        selector, fit = timed(lambda: L20Selector(K, **options).fit(X, y))
        found, certified = timed(lambda: certify(selector, X, y))
        swapped = certify(L20Selector(K, solver="swap", **options).fit(X, y), X, y)
        lower = 100.0 * (1.0 - swapped.upper_bound / found.upper_bound)
        print(f"{name:10}{selector.ridge_:7.2f}{100.0 * found.gap:8.2f}{lower:18.3f}{fit:8.2f}{certified:11.2f}", end="")
        if arguments.exact:
            best, spent = timed(lambda: solve_exactly(selector, X, y, time_limit=arguments.exact))
            above = 100.0 * (found.upper_bound / best.certificate.upper_bound - 1.0)
            print(f"{100.0 * best.certificate.gap:14.3f}{above:17.3f}{spent:7.1f}", end="")
        print(flush=True)


if __name__ == "__main__":
    main()
