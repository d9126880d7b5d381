"""A clock for all tests of this folder."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from l20fs.evaluation import engine


@pytest.fixture
def steady_clock(monkeypatch):
    """Let every fit take exactly one second."""
    seconds = itertools.count()
    monkeypatch.setattr(engine, "time", SimpleNamespace(perf_counter=lambda: float(next(seconds))))
