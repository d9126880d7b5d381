"""Selection of 20 and 50 rows, side by side with every package that people use for it.

Run ``python benchmarks/peers/run.py``, or ``make bench-rows``, which installs the peers first, each on its own. Every pair
of method and problem gets a process of its own with a limit of time and memory (Linux), and every package the same number
of threads. Printed for each, in Markdown:

* seconds from the raw X and labels to 50 rows, and to both panels: best of the repeats, with the centring or scaling that
  a method needs, without imports and compilers. The two differ for a package that returns one support per run;
* peak memory of the process, data and imports included;
* for both k the loss 0.5 ||XW - Y||^2 on centred data after least squares on exactly the k rows, computed here and not by
  the package, and in brackets how many of the 20 planted rows are among them.

Filters and wrappers are marked with a star: they are quick because they do not look for rows that work together, and set no
time to beat. ``--sets DATA_DIR`` runs the npz files (X, y) of a folder as well; where a set has few samples the larger panel
stays three rows short of them. ``methods.py`` tells how each package is called.

``--runs 6`` prints instead how far times vary: all methods one after the other, six times, and for each of ours the lowest
and the highest ratio to the fastest row-sparse peer of the same run, in seconds of the processor, which other work on the
machine changes less than those of the clock. Packages that vary by themselves are to be quoted with such ranges.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from data import SIZES, Problem, load
from methods import METHODS

HERE = Path(__file__).parent
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Result:
    """What a method took and found: seconds by the clock and of the processor, loss and planted rows by k."""

    seconds: dict[int, float]
    processor: dict[int, float]
    megabytes: float
    losses: dict[int, float]
    hits: dict[int, str]

    @property
    def seconds_to_last(self) -> float:
        return self.seconds[max(self.seconds)]

    @property
    def seconds_to_all(self) -> float:
        return max(self.seconds.values())


class MethodFailed(Exception):
    """Why there is no result, in words for the table."""


def run(method: str, problem: Problem, source: str, options: argparse.Namespace) -> Result:
    """Measure in a process of its own, then judge the rows here."""
    runs = measure(method, source, options)
    rows = {int(k): chosen for k, chosen in runs[0]["rows"].items()}
    for k, chosen in rows.items():
        if len(set(chosen)) != k:
            raise MethodFailed(f"gave {len(set(chosen))} rows for k = {k}")
    return Result(
        seconds={k: min(run["seconds"][str(k)] for run in runs) for k in rows},
        processor={k: min(run["processor"][str(k)] for run in runs) for k in rows},
        megabytes=runs[0]["megabytes"],
        losses={k: refit_loss(problem, chosen) for k, chosen in rows.items()},
        hits={k: n_planted(problem, chosen) for k, chosen in rows.items()},
    )


def measure(method: str, source: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the runs that ended before the limit."""
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(options.threads))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.jsonl"
        file.touch()
        arguments = [method, source, options.repeats, options.memory, file]
        command = [sys.executable, HERE / "measure.py", *map(str, arguments)]
        try:
            subprocess.run(command, env=environment, capture_output=True, text=True, timeout=options.limit, check=True)
        except subprocess.CalledProcessError as error:
            raise MethodFailed(reason(error)) from error
        except subprocess.TimeoutExpired as error:
            if not file.stat().st_size:
                raise MethodFailed(f"more than {options.limit:g} s") from error
        return [json.loads(line) for line in file.read_text().splitlines()]


def reason(error: subprocess.CalledProcessError) -> str:
    """Return what ended a process: its signal, or the last line it wrote."""
    if error.returncode < 0:
        return f"crashed with {signal.Signals(-error.returncode).name}"
    return (error.stderr.strip().splitlines() or ["no message"])[-1][:100].replace("|", "/")


def refit_loss(problem: Problem, rows: list[int]) -> float:
    """Return 0.5 ||XW - Y||^2 after least squares on these rows, with an intercept."""
    X, Y = problem.X[:, rows], problem.one_hot
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    return 0.5 * float(np.square(X @ np.linalg.lstsq(X, Y, rcond=None)[0] - Y).sum())


def n_planted(problem: Problem, rows: list[int]) -> str:
    """Return how many planted rows were found, as it stands behind a loss; nothing where no row was planted."""
    return "" if problem.planted is None else f" ({len(np.intersect1d(rows, problem.planted))})"


def table(problem: Problem, source: str, options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of one problem's table as they are measured, and what they say at the end."""
    n_samples, n_features = problem.X.shape
    first, last = problem.panels
    yield f"\n## {problem.name}: {n_samples} x {n_features}, {problem.labels.max() + 1} classes\n"
    yield f"| method | s to k = {last} | s to both | MB | loss k = {first} | loss k = {last} |"
    yield "|---|---|---|---|---|---|"
    results = {}
    for name in options.methods:
        label = name + (" *" if METHODS[name].kind == "filter" else "")
        try:
            result = results[name] = run(name, problem, source, options)
        except MethodFailed as failure:
            yield f"| {label} | {failure} | | | | |"
            continue
        losses = " | ".join(f"{result.losses[k]:.6g}{result.hits[k]}" for k in problem.panels)
        yield f"| {label} | {result.seconds_to_last:.3g} | {result.seconds_to_all:.3g} | {result.megabytes:.0f} | {losses} |"
    yield from verdict(results, problem)


def verdict(results: dict[str, Result], problem: Problem) -> Iterator[str]:
    """Yield the marks that the peers set, and for each of ours whether it reaches them."""
    peers = {name: result for name, result in results.items() if METHODS[name].kind != "ours"}
    row_sparse = {name: result for name, result in peers.items() if METHODS[name].kind == "row-sparse"}
    if not row_sparse:
        return
    first, last = problem.panels
    to_last = min(row_sparse, key=lambda name: row_sparse[name].seconds_to_last)
    to_all = min(row_sparse, key=lambda name: row_sparse[name].seconds_to_all)
    lowest = {k: min(peers, key=lambda name: peers[name].losses[k]) for k in problem.panels}
    yield (
        f"\nFastest row-sparse peer: {to_last} (to k = {last}), {to_all} (to both). "
        f"Lowest loss of all peers: {lowest[first]} (k = {first}), {lowest[last]} (k = {last})."
    )
    rounding = 1e-9 * refit_loss(problem, [])  # against the loss of no rows, this is a perfect fit
    for name, result in results.items():
        if METHODS[name].kind == "ours":
            seconds = [
                result.seconds_to_last / peers[to_last].seconds_to_last,
                result.seconds_to_all / peers[to_all].seconds_to_all,
            ]
            losses = [(result.losses[k] + rounding) / (peers[lowest[k]].losses[k] + rounding) for k in problem.panels]
            yield f"- {name}: at least as fast: {at_most_one(seconds)}; loss no higher: {at_most_one(losses)}"


def ranges(problem: Problem, source: str, options: argparse.Namespace) -> Iterator[str]:
    """Yield the lowest and the highest ratio of each of ours to the fastest row-sparse peer of the same run."""
    ours: dict[str, list[tuple[float, float]]] = {}
    seconds: dict[str, list[float]] = {}
    first, last = problem.panels
    for _ in range(options.runs):
        results = {}
        for name in options.methods:
            try:
                results[name] = run(name, problem, source, options)
            except MethodFailed as failure:
                yield f"- {name}: {failure}"
        peers = {name: result for name, result in results.items() if METHODS[name].kind == "row-sparse"}
        if not peers:
            return
        times = {name: (result.processor[last], max(result.processor.values())) for name, result in results.items()}
        marks = [min(times[name][place] for name in peers) for place in range(2)]
        for name in results:
            if METHODS[name].kind == "ours":
                ours.setdefault(name, []).append((times[name][0] / marks[0], times[name][1] / marks[1]))
            elif name in peers:
                seconds.setdefault(name, []).append(times[name][0])
    yield f"\n## {problem.name}: ratios to the fastest row-sparse peer over {options.runs} runs\n"
    for name, those in seconds.items():
        yield f"- {name}: {min(those):.3g} to {max(those):.3g} s to k = {last}"
    for name, ratios in ours.items():
        spans = (f"{min(those):.2f} to {max(those):.2f}" for those in zip(*ratios, strict=True))
        yield f"- {name}: {next(spans)} to k = {last}, {next(spans)} to k = {first} and {last}"


def at_most_one(ratios: list[float]) -> str:
    """Return the ratios of ours to the peer's, each with its answer; a part in a billion is rounding."""
    return ", ".join(f"{'yes' if ratio <= 1.0 + 1e-9 else 'no'} ({ratio:.5g} x)" for ratio in ratios)


def installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} not installed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", choices=SIZES, default=list(SIZES), metavar="SIZE", help=", ".join(SIZES))
    parser.add_argument("--sets", type=Path, metavar="DATA_DIR", help="also the npz files of this folder")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="NAME", help="as in the table"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--runs", type=int, help="print ranges of ratios over so many runs of everything")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds per process; runs that ended before it count")
    parser.add_argument("--memory", type=float, default=12.0, help="gigabytes per process")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    packages = dict.fromkeys(["numpy", "scipy"] + [METHODS[name].package for name in options.methods])
    print(f"Python {platform.python_version()}, {', '.join(map(installed, packages))}")
    print(f"{options.threads} of {os.cpu_count()} cores, best of at least {options.repeats}")
    for source in options.sizes + sorted(map(str, options.sets.glob("*.npz")) if options.sets else []):
        for line in (ranges if options.runs else table)(load(source), source, options):
            print(line, flush=True)


if __name__ == "__main__":
    main()
