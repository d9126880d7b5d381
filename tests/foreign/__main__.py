"""Tests of other packages' selectors on ours: ``make test-foreign``, or ``python -m foreign`` with ``tests`` on the path."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from foreign.outcomes import Recorder, compare
from foreign.suites import SUITES, Suite

LISTED = Path(__file__).with_name("listed.toml")
TESTS = str(Path(__file__).parents[1])
CONFIGURATION = "[pytest]\nfilterwarnings =\n"


def run_here(suite: Suite) -> dict[str, str]:
    """Run a suite in this process, which it leaves with names replaced."""
    suite.replace()
    recorder = Recorder()
    configuration = Path(sys.prefix) / "pytest.ini"  # not that of this repository, by which warnings are errors
    configuration.write_text(CONFIGURATION)
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-c", str(configuration), "--rootdir", sys.prefix]
    pytest.main([*options, "-k", suite.only, str(suite.path())], plugins=[recorder])
    return recorder.outcomes


def run(name: str, log: Path) -> dict[str, str]:
    """Run a suite in a process and a folder of its own, and return the outcome of every test."""
    with tempfile.TemporaryDirectory() as folder:
        if SUITES[name].prepare is not None:
            SUITES[name].prepare(Path(folder))
        result = Path(folder) / "outcomes.json"
        there = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, os.environ.get("PYTHONPATH", TESTS).split(os.pathsep)))
        }
        with log.open("w") as output:
            subprocess.run(
                [sys.executable, "-m", "foreign", "--here", name, "--result", str(result)],
                cwd=folder,
                env=there,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        return json.loads(result.read_text()) if result.exists() else {}


def main() -> int:
    parser = argparse.ArgumentParser(prog="foreign", description="Run the tests of other packages' selectors on ours.")
    parser.add_argument("--only", nargs="*", choices=SUITES, help="suites; all without any")
    parser.add_argument("--logs", type=Path, default=Path("build/foreign"), help="folder for pytest's own output")
    parser.add_argument("--here", choices=SUITES, help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        options.result.write_text(json.dumps(run_here(SUITES[options.here])))
        return 0
    options.logs.mkdir(parents=True, exist_ok=True)
    listed = tomllib.loads(LISTED.read_text())
    n_news = len(set(listed) - set(SUITES))
    print("".join(f"{name} is listed, but there is no such suite\n" for name in set(listed) - set(SUITES)), end="")
    for name in options.only or SUITES:
        outcomes = run(name, options.logs / f"{name.replace(' ', '-')}.txt")
        reasons = {test: reason for reason, tests in listed.get(name, {}).items() for test in tests}
        news = compare(outcomes, reasons)
        n_hold = sum(not why for why in outcomes.values())
        print(f"{name}: {n_hold} of {len(outcomes)} hold, {len(reasons)} listed with a reason", flush=True)
        print("".join(f"    {line}\n" for line in news), end="", flush=True)
        n_news += len(news)
    return 1 if n_news else 0


if __name__ == "__main__":
    sys.exit(main())
