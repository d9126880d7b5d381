"""Rooms that show compute nothing: no array or statistics package in report/, no statistics in what experiments/ shows."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import l20fs

SOURCE = Path(l20fs.__file__).parent
REPORT = sorted((SOURCE / "report").glob("*.py"))

#: What report/ may import besides the standard library: metrics for their names; pandas for type checkers only.
ALLOWED = {"jinja2", "l20fs.evaluation.metrics", "l20fs.report", "l20fs.text"}
FOR_TYPES = {"pandas"}

#: Modules of experiments/ that arrange and word numbers, and methods of pandas and NumPy that would make new ones.
SHOWING = ("claims", "exhibits", "figure_parts", "figures", "summary", "tables", "verdict")
STATISTICS = {"agg", "aggregate", "apply", "median", "merge", "pivot", "quantile", "sem", "std", "sum", "transform", "var"}


def imports(nodes):
    """Yield the modules that are imported, without those of blocks for type checkers."""
    for node in nodes:
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
        yield from imports(ast.iter_child_nodes(node))


def is_allowed(name, allowed):
    return name.split(".")[0] in sys.stdlib_module_names or any(f"{name}.".startswith(f"{each}.") for each in allowed)


@pytest.mark.parametrize("file", REPORT, ids=lambda file: file.name)
def test_report_imports_nothing_that_computes(file):
    tree = ast.parse(file.read_text())
    found = [name for name in imports(ast.iter_child_nodes(tree)) if not is_allowed(name, ALLOWED)]
    assert found == []
    every = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(is_allowed(name, ALLOWED | FOR_TYPES) for name in imports(every))


@pytest.mark.parametrize("name", SHOWING)
def test_what_shows_experiments_gets_numbers_ready(name):
    tree = ast.parse((SOURCE / "experiments" / f"{name}.py").read_text())
    called = {
        f"{node.func.attr} in line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in STATISTICS
    }
    assert called == set()
    assert not {"scipy", "sklearn"} & {module.split(".")[0] for module in imports(ast.iter_child_nodes(tree))}
