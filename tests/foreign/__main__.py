"""Tests of other packages' selectors on ours: ``make test-foreign``, or ``python -m foreign`` with ``tests`` on the path."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

from foreign.suites import SUITES, Suite

LISTED = Path(__file__).with_name("listed.toml")
CONFIGURATION = "[pytest]\nfilterwarnings =\n"


class Recorder:
    """Plugin of pytest that keeps the outcome of every test: "", or the first line of why it does not hold."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.outcomes["collection"] = str(report.longrepr)[-2000:]

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid.partition("::")[2]
        if report.skipped:
            self.outcomes.pop(name, None)  # nothing was said
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.outcomes[name] = (crash.message if crash else str(report.longrepr)).partition("\n")[0] or "failed"
        else:
            self.outcomes.setdefault(name, "")


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
        with log.open("w") as output:
            subprocess.run(
                [sys.executable, "-m", "foreign", "--here", name, "--result", str(result)],
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        return json.loads(result.read_text()) if result.exists() else {}


def compare(outcomes: dict[str, str], listed: dict[str, str]) -> list[str]:
    """Return what is new about the outcomes of a suite: failures that no reason covers, and reasons that nothing needs."""
    if not outcomes:
        return ["no test ran"]
    news = [f"fails, with no reason listed: {name}: {why}" for name, why in outcomes.items() if why and name not in listed]
    news += [f"holds now, take it off the list: {name}" for name in listed if outcomes.get(name) == ""]
    return news + [f"is listed, but there is no such test: {name}" for name in listed if name not in outcomes]


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
    n_news = 0
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
