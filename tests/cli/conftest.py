"""A table and the results of a selection from it, for all tests of this folder."""

from __future__ import annotations

import pytest
from cli_samples import planted, write

from l20fs.cli import run


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    return write(planted(), tmp_path_factory.mktemp("table") / "table.tsv")


@pytest.fixture(scope="session")
def results(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    assert run(["select", table, "--target", "type", "-k", "3", "-o", str(folder)]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Results by default go to a folder below the present one."""
    monkeypatch.chdir(tmp_path)
