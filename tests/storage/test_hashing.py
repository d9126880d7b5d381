"""Hashes: a different one for whatever differs, the same for the same result."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from l20fs import AHIHT, HIHT, L20Selector, methods
from l20fs.storage import hashing
from l20fs.storage.hashing import describe, digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (1, "1"),
        (None, "None"),
        ([1, 2], [2, 1]),
        ({0: 1.0}, {1: 1.0}),
        ({0: 1.0}, {"0": 1.0}),
        (np.eye(2), np.eye(2, dtype=np.float32)),
        (np.zeros(2), np.zeros(2, dtype=np.int64)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.array(["a", "b"]), np.array(["a", "c"])),
        (np.array([1, "b"], dtype=object), np.array(["1", "b"], dtype=object)),
        (np.array(1.0), np.array(2.0)),
        (sp.csr_array(np.eye(2)), sp.csc_array(np.eye(2))),
        (sp.csr_array(np.eye(2)), sp.csr_array(2 * np.eye(2))),
        (sp.csr_array(np.eye(2)), sp.csr_array(np.eye(2)[::-1])),
        (sp.csr_array((2, 3)), sp.csr_array((2, 4))),
        (L20Selector(3), L20Selector(4)),
        (L20Selector(1), L20Selector(1.0)),
        (L20Selector(3), methods.FisherScore(3)),
        (L20Selector(solver=AHIHT(init=np.zeros((1, 2)))), L20Selector(solver=AHIHT(init=np.ones((1, 2))))),
        (L20Selector(solver=AHIHT()), L20Selector(solver=HIHT())),
        (AHIHT(rate=0.5), AHIHT(rate=0.6)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_differs_is_told_apart(one, other):
    assert json.dumps(describe(one, "x")) != json.dumps(describe(other, "x"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.int64(3), 3),
        (np.float64(0.5), 0.5),
        (np.eye(3)[::2], np.asfortranarray(np.eye(3)[::2])),
        (L20Selector(3, callback=print), L20Selector(3)),
        (methods.MRMR(np.int32(3)), methods.MRMR(3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_the_same_result_is_the_same(one, other):
    assert json.dumps(describe(one, "x")) == json.dumps(describe(other, "x"))


@pytest.mark.parametrize(
    "value", [print, object(), {1, 2}, np.random.default_rng(0), L20Selector], ids=lambda value: type(value).__name__
)
def test_what_has_no_name_is_refused(value):
    with pytest.raises(TypeError, match=r"^init is a .*, which cannot be compared with that of a later run"):
        describe(L20Selector(solver=AHIHT(init=value)), "selector")


def test_a_digest_sees_every_value_and_copies_little(monkeypatch):
    X = np.random.default_rng(0).standard_normal((50, 7))
    whole = digest(X)
    monkeypatch.setattr(hashing, "BLOCK", 200)
    assert digest(X) == whole, "the blocks do not show"
    for i in range(50):
        changed = X.copy()
        changed[i, i % 7] += 1e-9
        assert digest(changed) != whole
