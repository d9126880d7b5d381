"""Outcomes of the tests of another package, and what is new about them."""

from __future__ import annotations

from typing import Any

import numpy as np


class Recorder:
    """Plugin of pytest that keeps the outcome of every test: "", or the first line of why it does not hold."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_setup(self, item: Any) -> None:
        np.random.seed(0)  # noqa: NPY002  # of tests that draw data without a seed, so that an outcome is not by chance

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


def compare(outcomes: dict[str, str], listed: dict[str, str]) -> list[str]:
    """Return what is new about the outcomes of a suite: failures that no reason covers, and reasons that nothing needs.

    Examples
    --------
    >>> outcomes = {"test_a": "", "test_b": "ValueError", "test_c": "ValueError", "test_d": ""}
    >>> print("\\n".join(compare(outcomes, {"test_b": "a reason", "test_d": "another", "test_e": "a third"})))
    fails, with no reason listed: test_c: ValueError
    holds now, take it off the list: test_d
    is listed, but there is no such test: test_e
    >>> compare({}, {})
    ['no test ran: see build/foreign']
    """
    if not outcomes:
        return ["no test ran: see build/foreign"]
    news = [f"fails, with no reason listed: {name}: {why}" for name, why in outcomes.items() if why and name not in listed]
    news += [f"holds now, take it off the list: {name}" for name in listed if outcomes.get(name) == ""]
    return news + [f"is listed, but there is no such test: {name}" for name in listed if name not in outcomes]
