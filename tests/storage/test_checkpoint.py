"""Checkpoints: a name for whatever differs, nothing taken that is damaged, nothing written by halves."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from l20fs import AHIHT, HIHT, L20Selector, methods
from l20fs.storage import checkpoint
from l20fs.storage.checkpoint import Picked, describe, digest, open_checkpoint

PICKED = Picked(np.array([7, 3, 5], dtype=np.int32), 2)


def test_what_was_saved_is_loaded(tmp_path):
    store = open_checkpoint(tmp_path / "deep" / "folder", 10, seed=1)
    assert store.load(0) is None
    store.save(0, PICKED)
    found = store.load(0)
    assert found.order.tolist() == [7, 3, 5]
    assert found.order.dtype == np.int32
    assert found.size == 2
    assert store.load(1) is None
    empty = Picked(np.empty(0, dtype=np.int32), 0)
    store.save(1, empty)
    assert len(store.load(1).order) == store.load(1).size == 0
    assert len(list((tmp_path / "deep" / "folder").iterdir())) == 2, "no temporary file stays"


def test_a_folder_holds_every_order_of_all_features(tmp_path):
    store = open_checkpoint(tmp_path, 20_000, seed=1)
    store.save(0, Picked(np.arange(20_000, dtype=np.int32)[::-1], 20_000))
    assert store.load(0).size == 20_000


def test_c5_other_causes_are_never_mixed(tmp_path):
    open_checkpoint(tmp_path, 10, seed=1, X=np.eye(3)).save(0, PICKED)
    assert open_checkpoint(tmp_path, 10, seed=1, X=np.eye(3)).load(0) is not None
    assert open_checkpoint(tmp_path, 10, seed=2, X=np.eye(3)).load(0) is None
    assert open_checkpoint(tmp_path, 10, seed=1, X=2 * np.eye(3)).load(0) is None


def test_c5_another_version_of_the_package_is_never_mixed(tmp_path, monkeypatch):
    open_checkpoint(tmp_path, 10, seed=1).save(0, PICKED)
    monkeypatch.setattr(checkpoint, "version", lambda name: "99.0")
    assert open_checkpoint(tmp_path, 10, seed=1).load(0) is None


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[:-5],
    "a digit": lambda content: content.replace(b"[7, 3", b"[7, 4"),
    "size": lambda content: content.replace(b'"size": 2', b'"size": 3'),
    "seal": lambda content: content.replace(b'"seal"', b'"deal"'),
    "no object": lambda content: b"[1, 2]",
    "words": lambda content: content.replace(b"7", b'"x"'),
    "huge": lambda content: content.replace(b"7", b"7" * 40),
    "deep": lambda content: b"[" * 1100,
    "not text": lambda content: b"\xff\xfe" + content,
    "pickle": lambda content: pickle.dumps(PICKED),
    "endless": lambda content: content + b" " * 5000,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_count_as_missing(tmp_path, damage):
    store = open_checkpoint(tmp_path, 10, seed=1)
    store.save(0, PICKED)
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    assert damage(content) != content
    file.write_bytes(damage(content))
    assert store.load(0) is None
    store.save(0, PICKED)
    assert file.read_bytes() == content


def test_a_renamed_file_counts_as_missing(tmp_path):
    store = open_checkpoint(tmp_path, 10, seed=1)
    store.save(0, PICKED)
    store.save(1, PICKED)
    first, second = sorted(tmp_path.iterdir())
    second.write_bytes(first.read_bytes())
    assert store.load(0) is not None
    assert store.load(1) is None


def test_c2_a_folder_that_cannot_be_written_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    for folder in (file, file / "below"):
        with pytest.raises(OSError, match=r"checkpoint='.*file.*' cannot be written to .*\. Give a folder that can"):
            open_checkpoint(folder, 10, seed=1)
    assert file.read_text() == "mine"


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
        (L20Selector(3, verbose=1, callback=print), L20Selector(3)),
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
    with pytest.raises(TypeError, match=r"^init is a .*, of which a checkpoint cannot tell whether it is the same"):
        describe(L20Selector(solver=AHIHT(init=value)), "selector")


def test_a_digest_sees_every_value_and_copies_little(monkeypatch):
    X = np.random.default_rng(0).standard_normal((50, 7))
    whole = digest(X)
    monkeypatch.setattr(checkpoint, "BLOCK", 200)
    assert digest(X) == whole, "the blocks do not show"
    for i in range(50):
        changed = X.copy()
        changed[i, i % 7] += 1e-9
        assert digest(changed) != whole
