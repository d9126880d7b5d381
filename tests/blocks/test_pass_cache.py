"""Cache of passes: nothing repeated, nothing of other data, nothing damaged."""

from __future__ import annotations

import numpy as np
import pytest

from l20fs import L20Selector
from l20fs.blocks import FileBlocks, PassCache
from l20fs.blocks.passes import extents

MEMORY = 2**27


def make_matrix(seed=0, shape=(30, 8), density=0.4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) * (rng.random(shape) < density)


def column_sums(block, factor):
    return block.sum(axis=0) * factor


def count_and_sum(block, factor):
    return np.array(block.size), block.sum(axis=0) * factor


def probe(blocks):
    return blocks.total(column_sums, [(np.array(0.5),)] * len(extents(blocks)))


def cut(X, edges=(0, 10, 30)):
    return FileBlocks(X.shape, X.dtype, 0, np.array(edges), False, X.__getitem__, MEMORY, "a test")


def run_passes(cache, arguments):
    return (
        cache.total(column_sums, arguments),
        cache.each(count_and_sum, arguments),
        cache.each(column_sums, arguments, [1]),
    )


def test_passes_are_stored_and_not_repeated(tmp_path):
    X = make_matrix()
    results, n_passes = [], []
    for _ in range(2):
        cache = PassCache(cut(X), tmp_path / "new", probe)
        results.append(run_passes(cache, [(cache.keep(np.array(2.0)),), (cache.send(np.array(3.0)),)]))
        n_passes.append(cache.traffic.n_passes)
    assert n_passes == [4, 1]  # with the probe
    expected, found = results
    np.testing.assert_array_equal(found[0], expected[0])
    for mine, theirs in zip(found[1], expected[1], strict=True):
        assert isinstance(mine, tuple)
        assert mine[0] == theirs[0]
        np.testing.assert_array_equal(mine[1], theirs[1])
    np.testing.assert_array_equal(found[2], expected[2])


def test_more_results_than_one_digit_counts_keep_their_order(tmp_path):
    X = make_matrix()
    own = [(np.array(float(i)),) for i in range(30)]
    for _ in range(2):
        cache = PassCache(cut(X, range(31)), tmp_path, probe)
        np.testing.assert_array_equal(np.array(cache.each(column_sums, own)), X * np.arange(30.0)[:, None])
    assert cache.traffic.n_passes == 1
    assert cache.each(column_sums, own, []) == cache.each(column_sums, own, []) == []


def test_no_result_of_anything_else_is_taken(tmp_path):
    X = make_matrix()
    two, three = np.array(2.0), np.array(3.0)

    def n_passes(X, edges=(0, 10, 30), kernel=column_sums, arguments=(two, two), which=None, how="total"):
        cache = PassCache(cut(X, edges), tmp_path, probe)
        own = [(value,) for value in arguments]
        if how == "total":
            cache.total(kernel, own)
        else:
            cache.each(kernel, own, which)
        return cache.traffic.n_passes - 1

    assert n_passes(X) == 1
    assert n_passes(X) == 0
    other = X.copy()
    other[7, 3] += 1e-9
    assert n_passes(other) == 1
    assert n_passes(X, edges=(0, 11, 30)) == 1
    assert n_passes(X, arguments=(two, three)) == 1
    assert n_passes(X, arguments=(three, two)) == 1
    assert n_passes(X, kernel=count_and_sum, how="each") == 1
    assert n_passes(X, how="each") == 1
    assert n_passes(X, how="each", which=[0]) == 1
    assert n_passes(X, how="each", which=[1]) == 1
    assert n_passes(X) == 0
    for file in tmp_path.glob("pass-*.npz"):
        file.write_bytes(file.read_bytes()[:-30])
    assert n_passes(X) == 1
    assert n_passes(X) == 0


def test_files_that_are_not_what_their_names_say_are_not_taken(tmp_path):
    X = make_matrix()

    def sums():
        cache = PassCache(cut(X), tmp_path, probe)
        own = [(np.array(2.0),), (np.array(3.0),)]
        return cache.total(column_sums, own), cache.each(count_and_sum, own), cache.traffic.n_passes - 1

    expected = sums()
    first, second = sorted(tmp_path.glob("pass-*.npz"))
    content = first.read_bytes(), second.read_bytes()
    first.write_bytes(content[1])
    second.write_bytes(content[0])
    np.testing.assert_array_equal(sums()[0], expected[0])
    for file in (first, second):
        np.savez(file, other=np.eye(2))
    found = sums()
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[2] == 2
    assert sums()[2] == 0


def test_a_folder_that_is_full(tmp_path, monkeypatch):
    def fail(file, write):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("l20fs.storage.keyed_store.write_atomically", fail)
    with pytest.raises(
        OSError, match=r"cannot be written to \(No space left on device\)\. The results so far are kept: free disk space"
    ):
        PassCache(cut(make_matrix()), tmp_path, probe).total(column_sums, [(np.array(2.0),)] * 2)


@pytest.mark.parametrize("folder", [3, "", True])
def test_what_is_no_folder(folder):
    X = make_matrix()
    with pytest.raises(TypeError, match=r"checkpoint=.* is not a folder\. Give the path of one, or None"):
        L20Selector(3, checkpoint=folder).fit(X, np.arange(30) % 3)


def test_a_null_byte_in_the_name_of_a_folder():
    with pytest.raises(OSError, match=r"checkpoint=.* cannot be written to .*null"):
        L20Selector(3, checkpoint="a\0b").fit(make_matrix(), np.arange(30) % 3)


def test_a_huge_value_hides_nothing_from_the_checkpoint(tmp_path):
    """A sample of weight 0 may hold anything; another one that differs is another table."""
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 60, 20))
    first[0] = second[0] = 1e20
    y, weights = np.arange(60) % 3, np.append(0.0, np.ones(59))
    L20Selector(4, checkpoint=tmp_path).fit(first, y, sample_weight=weights)
    found = L20Selector(4, checkpoint=tmp_path).fit(second, y, sample_weight=weights)
    np.testing.assert_array_equal(found.ranking_, L20Selector(4).fit(second, y, sample_weight=weights).ranking_)
