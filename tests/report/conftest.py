"""Pages of real runs, opened in Chromium from disk."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from browser import Opened, chromium
from cli_samples import planted, write

from l20fs.cli import run

#: Names that would be markup, a formula, or read from the right.
EVIL = ['</script><img src=x onerror="alert(1)">', "=cmd|' /C calc'!A0", "\u05d0\u05d1\u05d2 abc", "x" * 900, "{{ 7 * 7 }}"]


@pytest.fixture(scope="session")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Results of a selection with everything that can be asked for."""
    folder = tmp_path_factory.mktemp("page")
    table = write(planted(40), folder / "table.tsv")
    more = ["--stability", "10", "--alternatives", "--config", "model.ridge=10"]
    assert run(["select", table, "--target", "type", "-k", "6", *more, "-o", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture(scope="session")
def numbers(tmp_path_factory):
    """Results of a selection that predicts numbers."""
    folder = tmp_path_factory.mktemp("numbers")
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.standard_normal((60, 9)), columns=[f"m{j}" for j in range(9)])
    frame["age"] = (40 + 9 * frame["m2"] - 5 * frame["m5"] + random.standard_normal(60)).round(3)
    table = write(frame, folder / "table.tsv")
    assert run(["select", table, "--target", "age", "--task", "regression", "-k", "2", "-o", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture(scope="session")
def evil(tmp_path_factory):
    """Results of a selection from a table with hostile names of features and classes."""
    folder = tmp_path_factory.mktemp("evil")
    frame = planted(5).rename(columns=dict(zip([f"g{j}" for j in range(5)], EVIL, strict=True)))
    frame["type"] = frame["type"].replace({"left": "</script><b>left", "mid": "'\"&mid"})
    table = write(frame, folder / "table.tsv")
    assert run(["select", table, "--target", "type", "-k", "4", "-o", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture
def show(browser):
    """Open a page from disk; at the end nothing may have been asked for or complained of."""
    contexts, opened_pages = [], []

    def show(file, **options):
        contexts.append(browser.new_context(**options))
        opened = Opened(contexts[-1], file)
        opened_pages.append((opened, file))
        return opened.page

    yield show
    for opened, file in opened_pages:
        assert opened.complaints == []
        assert opened.requests == [file.as_uri()]
    for context in contexts:
        context.close()
