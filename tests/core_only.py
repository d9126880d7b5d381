"""Plugin of pytest for ``make test-core``: a test that needs an optional package is skipped, with the name of the package.

Only a test itself may import one, or the package refuse with a message that names the extra: any other import of an optional
package by the package fails the test.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

SOURCE = str(Path(importlib.util.find_spec("l20fs").origin).parent)


def missing_package(error: BaseException, last_file: str) -> str | None:
    """Return why a test cannot run without an optional package; None if it must."""
    if extra := re.search(r"pip install 'l20fs\[(\w+)", str(error)):
        return f"needs the extra {extra[1]}"
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package not in ("", "l20fs") and not last_file.startswith(SOURCE):
        return f"needs the package {package}"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    try:
        report = yield
    except SystemExit as error:  # of l20fs.cli
        longrepr = (str(collector.path), 0, f"Skipped: {missing_package(error, '')}")
        return pytest.CollectReport(collector.nodeid, "skipped", longrepr, [])
    told = re.findall(r"^E +ModuleNotFoundError: No module named '(\w+)", str(report.longrepr), flags=re.MULTILINE)
    if report.failed and told:
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: needs the package {told[-1]}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and call.excinfo is not None:
        error, last_file = call.excinfo.value, str(call.excinfo.traceback[-1].path)
        if getattr(error, "failures", None) or hasattr(error, "exc_info"):  # of a doctest
            failures = getattr(error, "failures", [error])
            error, last_file = failures[-1].exc_info[1] if hasattr(failures[-1], "exc_info") else error, ""
        reason = missing_package(error, last_file)
        if reason is not None:
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {reason}")
    return report
