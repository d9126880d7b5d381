"""Designs of some samples of a matrix in blocks that several fits share: they are those of these samples alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut

from l20fs.blocks import Blocks, as_blocks
from l20fs.blocks.jobs import Combined, run
from l20fs.design import make_design, share_samples
from l20fs.design.block_parts import PartBlocks
from l20fs.design.blocked import BlockedMatrix
from l20fs.design.cells import CellLines, CellMoments, Cells
from l20fs.design.grouped_lines import GroupedLines
from l20fs.design.moments import measure
from l20fs.design.sample_weights import SampleWeights

N_PART = 45

#: Samples of a part, in all blocks of samples.
INSIDE = np.sort(np.random.default_rng(1).permutation(60)[:N_PART])
OUTSIDE = np.setdiff1d(np.arange(60), INSIDE)


def make_columns(n_features, dtype=np.float64, n_samples=60):
    """Features of which some are constant, zero, constant in a part, far from zero, tiny, or beside an outlier."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n_samples, n_features)) * (random.random((n_samples, n_features)) < 0.4)
    X[:, 7], X[:, 8], X[INSIDE, 9] = 0.3, 0.0, 1.5
    X[:, 10] += 300.0
    X[:, 11] *= 1e-4
    X[OUTSIDE[2], 12] = 1e4
    X[INSIDE, 13] = 0.0
    return X.astype(dtype)


OPTIONS = {
    "plain": {},
    "moderated": {"scale": "moderated"},
    "without intercept": {"scale": "zscore", "fit_intercept": False},
    "weights": {"scale": "zscore", "sample_weight": np.arange(N_PART) % 3 + 0.5},
    "nuisances": {"scale": "zscore", "nuisances": np.eye(3)[np.arange(N_PART) // 15]},
    "weighted nuisances": {"sample_weight": np.arange(N_PART) % 3, "nuisances": np.eye(3)[np.arange(N_PART) // 15]},
}

#: Blocks of samples, and of columns with more (plan C or D) or fewer (plan E) samples than features.
CUTS = {"samples": (0, 20), "columns": (1, 20), "short columns": (1, 100)}


def dask_array(X, axis):
    """Blocks of a Dask array, without workers."""
    chunks = (X.shape[0] // 4, -1) if axis == 0 else (-1, X.shape[1] // 4)
    return as_blocks(pytest.importorskip("dask.array").from_array(X, chunks=chunks))


def containers(X, axis):
    return {
        "dense": lambda: cut(X, axis, 5),
        "sparse": lambda: cut(sp.csr_array(X), axis, 5),
        "Dask": lambda: dask_array(X, axis),
    }


def operations(design, lines):
    """Return what solvers ask a design for."""
    few = np.array([0, 1, 2, 3, 10, 12])
    found = {"max_sample_energy": design.max_sample_energy, "gram_top": design.gram_top()}
    found |= {"columns": design.cache.gathered(few) if design.vectors == "samples" else design.inner(few)}
    found |= {"squared lengths": design.squared_lengths(lines), "pull norms": design.pull_norms()}
    if design.vectors == "features":
        return found | {"products": design.products_with(lines)}
    found |= {"pull": design.pull(lines), "pull some": design.pull(lines, few), "among": design.pull_among(few)(lines)}
    found |= {"slice": design.pull_among(slice(15, 70))(lines), "exactly": design.pull_exactly(lines)}
    return found | {"push": design.push(few, lines[:, :6]), "long": design.long_columns(lines, 0.5)[1]}


@pytest.mark.parametrize(
    ("container", "dtype"),
    [("dense", np.float32), ("dense", np.float64), ("sparse", np.float32), ("sparse", np.float64), ("Dask", np.float64)],
)
@pytest.mark.parametrize("shape", CUTS)
@pytest.mark.parametrize("name", OPTIONS)
def test_design_of_a_part_is_that_of_its_samples(shape, container, dtype, name):
    axis, n_features = CUTS[shape]
    X, options = make_columns(n_features, dtype), OPTIONS[name]
    blocks = containers(X, axis)[container]()
    own = sp.csr_array(X[INSIDE]) if container == "sparse" else X[INSIDE]
    expected, found = make_design(cut(own, axis, 3), **options), make_design(share_samples(blocks)[INSIDE], **options)
    assert not found.varies[[7, 8, 9, 13]].any() or name == "without intercept"
    assert type(found) is type(expected)
    assert (found.location, found.vectors, found.dtype) == ("blocks", expected.vectors, dtype)
    assert found.varies.tolist() == expected.varies.tolist()
    assert found.scale_rule == expected.scale_rule
    close = {"rtol": 1e-8, "atol": 1e-9} if dtype == np.float64 else {"rtol": 3e-4, "atol": 3e-4}
    np.testing.assert_allclose(found.mean[found.varies], expected.mean[found.varies], rtol=close["rtol"], atol=1e-6)
    for attribute in ("scale", "column_energy", "explained_energy", "largest_deviation"):
        np.testing.assert_allclose(getattr(found, attribute), getattr(expected, attribute), **close, err_msg=attribute)
    lines = np.random.default_rng(2).standard_normal((2, N_PART))
    lines = found.sample_weights.centred(found.sample_weights.times_root(lines))
    wanted = operations(expected, lines)
    for operation, values in operations(found, lines).items():
        size = np.abs(wanted[operation]).max()
        np.testing.assert_allclose(values / size, wanted[operation] / size, **close, err_msg=operation)


@pytest.mark.parametrize("container", ["dense", "sparse", "Dask"])
@pytest.mark.parametrize("axis", [0, 1])
def test_samples_and_columns_of_a_part_are_those_of_X(container, axis):
    X = make_columns(20)
    samples = share_samples(containers(X, axis)[container]())
    rows = np.array([0, 3, 4, 5, 40, 41, 59])  # none of some blocks, all of none
    part = samples[rows]
    assert (part.shape, part.is_in_blocks, part.is_whole, samples.is_whole) == ((7, 20), True, False, True)
    assert not part.has_short_columns if axis == 0 else part.has_short_columns

    def dense(found):
        return found.toarray() if sp.issparse(found) else found

    for columns in ([4], np.array([9, 2, 19]), slice(3, 20, 4), np.arange(20) % 3 == 1, []):
        np.testing.assert_array_equal(dense(part[:, columns]), X[rows][:, columns])
        np.testing.assert_array_equal(dense(part[2:5, columns]), X[rows][2:5, columns])
    np.testing.assert_array_equal(dense(part[np.array([1, 6])][:, [3, 5]]), X[[3, 59]][:, [3, 5]])
    blocks = part.whole()
    assert isinstance(blocks, Blocks)
    assert (blocks.shape, blocks.is_sparse, blocks.axis) == ((7, 20), container == "sparse", axis)
    np.testing.assert_array_equal(dense(blocks.columns(np.arange(20))), X[rows])
    with pytest.raises(ValueError, match="must be indexed in increasing order, each of them once"):
        samples[[3, 1]].whole()
    with pytest.raises(ValueError, match="has the sample_weight 2"):
        samples[[3, 3]].whole()


@pytest.mark.parametrize("axis", [0, 1])
def test_far_columns_keep_their_digits(axis):
    """Means that are rounded in the tenth digit of a deviation: what is lost is not lost for the products, too."""
    X = np.random.default_rng(0).standard_normal((60, 8))
    X[:, 2:4] = 1e9 + 1e-4 * X[:, 2:4]
    few, found = np.arange(8), make_design(share_samples(cut(X, axis, 5))[INSIDE], "zscore")
    centred = X[INSIDE] - X[INSIDE[0]]  # exact
    centred -= centred.mean(axis=0)
    columns = centred / centred.std(axis=0)
    np.testing.assert_allclose(found.inner(few), columns.T @ columns, rtol=1e-9, atol=1e-9)


def test_fits_ask_for_different_columns_at_once():
    X = make_columns(100)
    blocks = cut(X, 1, 5)
    samples = share_samples(blocks)
    designs = [make_design(samples[INSIDE], "zscore"), make_design(samples[INSIDE[:40]], "zscore")]
    spans, lines = [slice(25, 45), slice(70, 95)], np.random.default_rng(0).standard_normal((1, 45))
    n_passes = blocks.traffic.n_passes

    def products(design, span):
        return design.pull_among(span)(design.sample_weights.centred(lines[:, : design.n_samples]))

    pairs = list(zip(designs, spans, strict=True))
    found = samples.shared.together([lambda pair=pair: products(*pair) for pair in pairs])
    assert blocks.traffic.n_passes == n_passes + 1
    for (design, span), together in zip(pairs, found, strict=True):
        whole = design.pull(design.sample_weights.centred(lines[:, : design.n_samples]))
        np.testing.assert_allclose(together, whole[:, span], rtol=1e-12, atol=1e-12)


def test_blocks_of_a_part_have_its_edges_and_name():
    shared = share_samples(cut(make_columns(20), 0, 5)).shared
    some = PartBlocks(shared, np.array([0, 3, 40, 41, 59]))
    assert (some.edges.tolist(), some.homes, some.name) == ([0, 2, 4, 5], [0, 3, 4], "5 samples of a test")
    assert PartBlocks(shared, np.arange(60)).name == "a test"
    assert PartBlocks(shared, np.arange(60)).local == [None] * 5
    assert [own is None for own in PartBlocks(shared, np.arange(1, 60)).local] == [False, True, True, True, True]


def test_passes_of_several_fits_are_one():
    X = make_columns(20)
    blocks = cut(X, 0, 5)
    shared = share_samples(blocks)
    parts = [shared[np.flatnonzero(np.arange(60) % 4 != fold)].whole() for fold in range(4)]
    parts.append(shared[np.arange(3)].whole())  # in one block only
    n_before = blocks.traffic.n_passes

    def work(part):
        sums = part.total(column_sums, [(1.0,)] * len(part.homes))
        largest = part.total(column_sums, [(2.0,)] * len(part.homes), np.maximum)
        return sums, largest, part.each(n_rows, [()] * len(part.homes))

    found = shared.shared.together([lambda part=part: work(part) for part in parts])
    assert blocks.traffic.n_passes == n_before + 3
    for part, (sums, largest, counts) in zip(parts, found, strict=True):
        own = part.columns(np.arange(20))
        cuts = [own[start:stop].sum(axis=0) for start, stop in zip(part.edges[:-1], part.edges[1:], strict=True)]
        np.testing.assert_allclose(sums, own.sum(axis=0), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(largest, 2.0 * np.max(cuts, axis=0), rtol=1e-12, atol=1e-12)
        assert counts == np.diff(part.edges).tolist()


def column_sums(block, factor):
    return factor * block.sum(axis=0)


def n_rows(block):
    return block.shape[0]


def test_results_that_are_missing_are_no_part_of_a_sum():
    combined = Combined([lambda left, right: left + right, max, None])
    assert combined((1, None, None), (2, 3, None)) == (3, 3, None)
    assert combined((1, 4, None), (None, 3, None)) == (1, 4, None)


WEIGHTS = {
    "folds": [(np.arange(60) % 5 != fold).astype(float) for fold in range(5)],
    "halves": [(np.arange(60) % 2 == half).astype(float) for half in range(2)],
    "weighted folds": [(np.arange(60) % 3 != fold) * (1.0 + np.arange(60) % 7) for fold in range(3)],
    "all": [np.ones(60)],
    "folds without some samples": [(np.arange(60) % 3 != fold) * (np.arange(60) > 4.0) for fold in range(3)],
}


def fetch(lines, rows):
    """Return rows of the Gram matrices of cells."""
    held, job = lines.fetching(rows)
    return held if job is None else held | run(lines.base.blocks, [job])[0]


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("container", ["dense", "sparse", "Dask"])
def test_moments_of_cells_are_those_of_their_samples(container, axis, name):
    X, weights = make_columns(20), WEIGHTS[name]
    blocks = containers(X, axis)[container]()
    found = CellMoments(blocks, Cells.of(weights))
    assert blocks.traffic.n_passes == 1
    pairs = [(found.whole, measure(X)), *((found.of(own), measure(X, own)) for own in (*weights, np.max(weights, axis=0)))]
    for one, other in pairs:
        assert one.weight == pytest.approx(other.weight)
        assert one.varies.tolist() == other.varies.tolist()
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(one.length, other.length, rtol=1e-10, atol=1e-14)
    assert found.of(0.5 * weights[0]) is None
    assert found.of(np.zeros(60)) is None


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("container", ["dense", "sparse"])
def test_sums_of_cells_are_rows_of_gram_matrices(container, name):
    X, weights = make_columns(20), WEIGHTS[name]
    X[:, 10] -= 250.0
    blocks = containers(X, 0)[container]()
    base = BlockedMatrix(blocks, "zscore", SampleWeights(60))
    columns = np.where(base.varies, (X - base.mean) / base.scale, 0.0)
    cells, rows = Cells.of(weights), np.array([3, 0, 12])
    assert cells is not None
    lines = CellLines(base, cells, 2**20)
    n_before = blocks.traffic.n_passes
    for own in (*weights, np.max(weights, axis=0)):  # the last one is the fit to all samples
        uses = cells.uses(own)
        found = [uses @ fetch(lines, rows)[row] for row in rows.tolist()]
        np.testing.assert_allclose(found, (columns[:, rows] * own[:, None]).T @ columns, rtol=1e-9, atol=1e-9)
    assert blocks.traffic.n_passes == n_before + 1
    assert cells.uses(0.5 * weights[0]) is None
    part_of_a_cell = weights[0].copy()
    part_of_a_cell[np.flatnonzero(part_of_a_cell)[0]] = 0.0
    assert cells.uses(part_of_a_cell) is None


def test_there_are_no_more_cells_than_fits():
    random = np.random.default_rng(0)
    assert Cells.of([random.permutation(np.arange(60) % 2.0) for _ in range(3)]) is None
    assert Cells.of([np.ones(60), np.full(60, 2.0)]) is None  # a cell has one weight


def test_rows_of_cells_are_dropped_beyond_their_budget():
    base = BlockedMatrix(cut(make_columns(20), 0, 5), "zscore", SampleWeights(60))
    lines = CellLines(base, Cells.of(WEIGHTS["halves"]), 8 * 2 * 20 * 3)
    n_before = base.blocks.traffic.n_passes
    for rows, n_passes in (([0, 1, 2], 1), ([0, 2], 1), ([3, 4], 2), ([3, 4, 2], 2), ([0], 3), ([5, 6, 7, 8], 4)):
        assert set(fetch(lines, np.array(rows))) == set(rows)
        assert base.blocks.traffic.n_passes == n_before + n_passes, rows


@pytest.mark.parametrize("name", ["plain", "without intercept"])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_after_its_folds_takes_no_pass_for_their_rows(name, weighted):
    X = make_columns(20)
    blocks = cut(X, 0, 5)
    samples, weights = share_samples(blocks), 1.0 + np.arange(60) % 3 if weighted else np.ones(60)
    rows = np.array([1, 2, 5])

    def lines(part):
        own = weights[part.rows] if weighted else None
        return make_design(part, sample_weight=own, fit_intercept=name == "plain").matrix.gram_lines(rows)

    parts = [samples[np.flatnonzero(np.arange(60) % 3 != fold)] for fold in range(3)]
    together = samples.shared.together([lambda part=part: lines(part) for part in parts])
    n_passes = blocks.traffic.n_passes
    finally_found = lines(samples)
    assert blocks.traffic.n_passes <= n_passes + (2 if weighted else 1), "moments, and columns beside the outlier, at most"
    for part, found in (*zip(parts, together, strict=True), (samples, finally_found)):
        own = weights[part.rows]
        centred = X[part.rows] - (np.average(X[part.rows], axis=0, weights=own) if name == "plain" else 0.0)
        gram = (centred * own[:, None]).T @ centred
        expected = np.where(np.ptp(X[part.rows], axis=0) > 0.0, gram, 0.0)[rows] if name == "plain" else gram[rows]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize("container", ["dense", "sparse", "Dask"])
@pytest.mark.parametrize("axis", [0, 1])
def test_weighted_sums_have_a_closed_form(container, axis):
    X = make_columns(20)
    base = BlockedMatrix(containers(X, axis)[container](), "zscore", SampleWeights(60))
    columns = np.where(base.varies, (X - base.mean) / base.scale, 0.0)
    weights = np.random.default_rng(0).random((3, 60)) * (np.arange(60) % 4 > 0)
    sums, squares = base.weighted_sums(weights)
    np.testing.assert_allclose(sums, weights @ columns, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(squares, weights @ columns**2, rtol=1e-9, atol=1e-9)


def test_memory_is_divided_among_the_fits():
    samples = share_samples(cut(make_columns(20), 0, 5, budget=8000))
    found = samples.shared.together([lambda: samples[:30].whole().budget] * 2)
    assert (found, samples[:30].whole().budget) == ([2000, 2000], 4000)


def labelled(rows, seed):
    """Centred targets of three classes, each with a weight of its own, over some samples."""
    one_hot = np.eye(3)[rows % 3].T * np.random.default_rng(seed).random((3, 1))
    return one_hot - one_hot.mean(axis=1, keepdims=True)


PARTS = {
    "folds": [np.flatnonzero(np.arange(60) % 5 != fold) for fold in range(5)],
    "a class that some lack": [np.flatnonzero(np.arange(60) % 3 > 0), np.arange(40), np.arange(30, 60)],
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("container", ["dense", "sparse", "Dask"])
def test_products_of_classes_come_from_their_sums(container, name):
    X, parts = make_columns(20), PARTS[name]
    X[:, 10] -= 300.0  # not far from zero
    lines = [labelled(rows, seed) for seed, rows in enumerate(parts)]
    grouped = GroupedLines.of(list(zip(lines, parts, strict=True)), 60)
    assert len(grouped) == 3
    blocks = containers(X, 0)[container]()
    samples = share_samples(blocks)
    designs = [make_design(samples[rows], "zscore") for rows in parts]
    n_passes = blocks.traffic.n_passes
    calls = [lambda design=design, own=own: design.products_with(own) for design, own in zip(designs, lines, strict=True)]
    found = samples.shared.together(calls)
    assert blocks.traffic.n_passes == n_passes + 1
    for design, own, rows, products in zip(designs, lines, parts, found, strict=True):
        columns = np.where(design.varies, (X[rows] - design.mean) / design.scale, 0.0)
        np.testing.assert_allclose(products, own @ columns, rtol=1e-10, atol=1e-10)


def test_lines_are_grouped_only_where_groups_are_the_same_for_all():
    rows, other = np.arange(40), np.arange(20, 60)
    numbers = np.random.default_rng(0).standard_normal((2, 40))
    assert GroupedLines.of([(labelled(rows, 0), rows), (numbers, other)], 60) is None
    assert GroupedLines.of([(labelled(rows, 0), rows), (np.round(labelled(other, 1)[:1]), other)], 60) is None
    assert GroupedLines.of([(labelled(rows, 0)[:1], rows), (labelled(other, 1)[:1], other)], 60) is None  # saves nothing
    many = np.random.default_rng(0).standard_normal((2, 600))
    assert GroupedLines.of([(many, np.arange(600))], 600) is None
