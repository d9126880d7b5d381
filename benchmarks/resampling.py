"""Price of cross-validation and stability selection in fits, on tables in memory.

Run ``python benchmarks/resampling.py [--runs 5] [--source FOLDER ...]``. For each table it prints the time of a fit of 100
features, of ``L20SelectorCV`` up to 100 features with its 4 x 5 folds and final fit, and of 50 halves of
``StabilitySelector`` beside a fit of 20 features, by the clock of a machine with two cores; the lowest and the highest ratio
over the runs. With ``--source`` the same is measured with the packages in other folders, for example ``src`` of an earlier
version, in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings

import numpy as np

TABLES = {"63 x 2308 x 4": None, "200 x 20 000 x 8": (200, 20_000, 8), "5000 x 5000 x 10": (5000, 5000, 10)}


def make_table(shape: tuple[int, int, int] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the built-in data, or normal values with 30 features that tell the classes apart."""
    if shape is None:
        from l20fs.data import load_srbct

        tumours = load_srbct()
        return np.asarray(tumours.data, dtype=np.float64), tumours.target
    n_samples, n_features, n_classes = shape
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_samples)
    X = rng.standard_normal((n_samples, n_features))
    X[:, :30] += 0.8 * rng.standard_normal((n_classes, 30))[y]
    return X, y


def measure(name: str, n_runs: int) -> dict:
    """Return the seconds of each step in each run, after one run that does not count."""
    from l20fs import L20Selector, L20SelectorCV, StabilitySelector

    X, y = make_table(TABLES[name])
    steps = {
        "fit": lambda: L20Selector(100).fit(X, y),
        "cv": lambda: L20SelectorCV(sizes=range(1, 101)).fit(X, y),
        "fit20": lambda: L20Selector(20).fit(X, y),
        "halves": lambda: StabilitySelector(L20Selector(20), n_resamples=50, random_state=0).fit(X, y),
    }
    seconds: dict = {step: [] for step in steps}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run in range(n_runs + 1):
            for step, call in steps.items():
                if step.startswith("fit"):
                    call()  # the first one after a larger step pays for its memory
                start = time.perf_counter()
                fitted = call()
                if run:
                    seconds[step].append(time.perf_counter() - start)
                if step == "cv":
                    seconds["cv_support"] = np.flatnonzero(fitted.support_).tolist()
                if step == "halves":
                    seconds["halves_orders"] = fitted.orders_.tolist()
    return seconds


def ratios(over: list[float], under: list[float]) -> str:
    found = np.array(over) / np.array(under)
    return f"{found.min():.1f} to {found.max():.1f} fits"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--source", nargs="*", default=[])
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        print(json.dumps(measure(arguments.inside, arguments.runs)))
        return
    for name in arguments.tables:
        found = {}
        for source in ["this version", *arguments.source]:
            environment = os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
            if source != "this version":
                environment["PYTHONPATH"] = source
            command = [sys.executable, __file__, "--inside", name, "--runs", str(arguments.runs)]
            inside = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            found[source] = taken = json.loads(inside.stdout.splitlines()[-1])
            print(
                f"{name:18} {source}: fit {1e3 * np.median(taken['fit']):.0f} ms, "
                f"CV(5) + fit {np.median(taken['cv']):.2f} s = "
                f"{ratios(taken['cv'], taken['fit'])}; fit of 20 {1e3 * np.median(taken['fit20']):.0f} ms, 50 halves "
                f"{np.median(taken['halves']):.2f} s = {ratios(taken['halves'], taken['fit20'])}",
                flush=True,
            )
        for what in ("cv_support", "halves_orders"):
            same = all(taken[what] == found["this version"][what] for taken in found.values())
            if len(found) > 1:
                print(f"{name:18} {what}: {'the same' if same else 'not the same'} in all versions")


if __name__ == "__main__":
    main()
