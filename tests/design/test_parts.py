"""Designs of some samples of an X in memory that several fits share: they are those of a copy of these samples."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from l20fs.design import Part, make_design, pays_to_share, share_samples, storage_errors
from l20fs.design.parts import PartDesign, SharedMatrix

N_PART = 45


def make_columns(dtype=np.float64, n_samples=60, n_features=30):
    """Features of which one is constant, one zero, one constant in a part, one far from zero, one tiny, one an outlier."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n_samples, n_features)) * (random.random((n_samples, n_features)) < 0.6)
    X[:, 7], X[:, 8], X[:N_PART, 9] = 0.3, 0.0, 1.5
    X[:, 10] += 300.0
    X[:, 11] *= 1e-4
    X[N_PART + 2, 12] = 1e4
    X[:N_PART, 13] = 0.0
    X[:, 14] = X[:, 15]
    return X.astype(dtype)


OPTIONS = {
    "plain": {},
    "zscore": {"scale": "zscore"},
    "moderated": {"scale": "moderated"},
    "given": {"scale": np.arange(30) + 1.0},
    "without intercept": {"scale": "zscore", "fit_intercept": False},
    "weights": {"scale": "zscore", "sample_weight": np.arange(N_PART) % 3 + 0.5},
    "weights without intercept": {"sample_weight": np.arange(N_PART) % 3, "fit_intercept": False},
    "nuisances": {"scale": "zscore", "nuisances": np.eye(3)[np.arange(N_PART) // 15]},
    "weighted nuisances": {"sample_weight": np.arange(N_PART) % 3, "nuisances": np.eye(3)[np.arange(N_PART) // 15]},
}
CONTAINERS = {"dense": np.asarray, "csr": sp.csr_array}
ROWS = {
    "sorted": np.arange(N_PART),
    "unsorted": np.random.default_rng(1).permutation(N_PART),
}

in_each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
in_each_container = pytest.mark.parametrize("container", CONTAINERS)


def residual_of(design, n_lines=2):
    """Lines that solvers multiply: in the range of X~."""
    residual = np.random.default_rng(2).standard_normal((n_lines, design.n_samples))
    return design.sample_weights.centred(design.sample_weights.times_root(residual))


@in_each_dtype
@in_each_container
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("order", ROWS)
def test_design_of_a_part_is_that_of_its_samples(container, dtype, name, order):
    X, rows, options = make_columns(dtype), ROWS[order], OPTIONS[name]
    X = CONTAINERS[container](X)
    expected, found = make_design(X[rows], **options), make_design(share_samples(X)[rows], **options)
    assert isinstance(found, PartDesign)
    assert (found.dtype, found.location, found.vectors) == (dtype, "memory", "samples")
    assert found.varies.tolist() == expected.varies.tolist()
    assert found.scale_rule == expected.scale_rule
    is_clear = found.varies.copy()
    is_clear[12] = dtype == np.float64  # beside the outlier of another part few digits of float32 are left
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-4, "atol": 3e-4}
    np.testing.assert_allclose(found.mean[found.varies], expected.mean[found.varies], rtol=close["rtol"], atol=1e-6)
    for attribute in ("scale", "column_energy", "max_sample_energy", "explained_energy", "largest_deviation"):
        np.testing.assert_allclose(getattr(found, attribute), getattr(expected, attribute), **close, err_msg=attribute)
    residual, values = residual_of(expected), np.random.default_rng(3).standard_normal((2, 4))
    few = np.array([0, 10, 3, 11])
    for operation in (
        lambda design: design.pull(residual)[:, is_clear],
        lambda design: design.pull_exactly(residual),
        lambda design: design.pull(residual, few),
        lambda design: design.pull_among(few)(residual),
        lambda design: design.pull_among(slice(2, 12))(residual),
        lambda design: design.push(few, values),
        lambda design: design.take(few, slice(3, 9)),
        lambda design: design.column(12),
        lambda design: design.column(7),
        lambda design: np.abs(design.triangle(few, residual, 0.5)),
        lambda design: design.squared_lengths(residual)[is_clear],
        lambda design: design.gram_top(),
    ):
        scale = max(np.abs(operation(expected)).max(), 1e-300)
        np.testing.assert_allclose(operation(found) / scale, operation(expected) / scale, **close)


@in_each_dtype
@in_each_container
@pytest.mark.parametrize("name", OPTIONS)
def test_norms_bound_the_products_and_their_errors(container, dtype, name):
    """``pull_norms`` are those of what is multiplied, so that bounds and tolerances hold beside an outlier, too."""
    X, options = CONTAINERS[container](make_columns(dtype)), OPTIONS[name]
    rows = ROWS["sorted"]
    samples = share_samples(X)
    found, exact = make_design(samples[rows], **options), make_design(X[rows].astype(np.float64), **options)
    weights, base = found.sample_weights, samples.shared.base(found.sample_weights.fit_intercept)
    values = X[rows].toarray() if sp.issparse(X) else X[rows]
    multiplied = weights.times_root((values - base.origin).T.astype(np.float64)) / found.scale[:, None]
    norms = np.where(found.varies, np.linalg.norm(multiplied, axis=1), 0.0)
    np.testing.assert_allclose(found.pull_norms(), norms, rtol=2e-2 if dtype == np.float32 else 1e-9, atol=1e-12)
    residual = residual_of(found)
    lengths = np.linalg.norm(residual, axis=1)[:, None]
    assert np.all(np.abs(found.pull(residual)) <= lengths * found.pull_norms() * (1 + 1e-5))
    # In the same units: deviations beside an outlier are known to fewer digits, and are no errors of the products.
    expected = exact.pull(residual) * (exact.scale / found.scale)
    assert np.all(np.abs(found.pull(residual) - expected) <= 30 * lengths * storage_errors(found) + 1e-300)


@pytest.mark.parametrize("name", ["zscore", "nuisances"])
def test_far_columns_keep_their_digits(name):
    X = np.random.default_rng(0).standard_normal((60, 30))
    X[:, 2:4] = 1e9 + 1e-4 * X[:, 2:4]
    X[:15, 3] += 0.01  # of which a batch explains nearly all
    few, rows, options = np.arange(4), ROWS["sorted"], OPTIONS[name]
    expected, found = make_design(X[rows], **options), make_design(share_samples(X)[rows], **options)
    np.testing.assert_allclose(found.take(few, slice(None)), expected.take(few, slice(None)), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found.scale, expected.scale, rtol=1e-9)


def test_a_part_has_no_copy_of_its_samples():
    X = make_columns()
    samples = share_samples(X)
    base = samples.shared.base(True)
    for rows in ROWS.values():
        part = samples[rows]
        assert part.shared.X is X
        make_design(part)
    assert samples.shared.base(True) is base
    assert samples.shared.base(False) is not base


@in_each_container
def test_samples_that_are_drawn_repeatedly_count_repeatedly(container):
    X = CONTAINERS[container](make_columns())
    rows = np.random.default_rng(0).integers(60, size=50)
    assert len(np.unique(rows)) < 50
    expected, found = make_design(X[rows], "zscore"), make_design(share_samples(X)[rows], "zscore")
    for attribute in ("mean", "scale", "column_energy", "varies"):
        np.testing.assert_array_equal(getattr(found, attribute), getattr(expected, attribute))
    residual = residual_of(expected)
    np.testing.assert_array_equal(found.pull(residual), expected.pull(residual))


@in_each_container
def test_samples_and_columns_of_a_part_are_those_of_X(container):
    X = make_columns()
    rows = np.random.default_rng(1).permutation(60)[:40]
    part = share_samples(CONTAINERS[container](X))[rows]
    assert (part.shape, part.dtype, part.ndim, part.is_in_blocks, part.has_short_columns) == (
        (40, 30),
        X.dtype,
        2,
        False,
        False,
    )

    def dense(found):
        return found.toarray() if sp.issparse(found) else found

    mask = np.arange(30) % 3 == 1
    for columns in ([4], np.array([9, 2, 2]), slice(3, 20, 4), mask, slice(None), [], -1, 5, np.int64(6)):
        np.testing.assert_array_equal(dense(part[:, columns]), X[rows][:, columns])
    chosen = np.arange(40) % 4 == 2
    for samples in ([3, 1], slice(5, 9), chosen, np.array([7, 7]), slice(None)):
        assert isinstance(part[samples], Part)
        np.testing.assert_array_equal(dense(part[samples].whole()), X[rows][samples])
        np.testing.assert_array_equal(dense(part[samples, 4:6]), X[rows][samples, 4:6])
    assert share_samples(X).is_whole
    assert share_samples(X)[np.arange(60)].is_whole
    assert not part.is_whole
    assert not share_samples(X)[np.arange(60)[::-1]].is_whole


def test_all_samples_need_no_measurement_of_their_own():
    X = make_columns()
    expected, samples = make_design(X, "moderated"), share_samples(X)
    samples.shared.base(True).weighted_sums = None  # not called
    found = make_design(samples, "moderated")
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.scale, expected.scale, rtol=1e-12)


@in_each_dtype
@in_each_container
def test_weighted_sums_are_those_of_what_is_multiplied(container, dtype):
    X = make_columns(dtype)
    base = make_design(CONTAINERS[container](X), "zscore")
    multiplied = ((X - base.origin) / base.scale)[:, base.varies]
    weights = np.random.default_rng(0).random((3, 60)) * (np.arange(60) % 4 > 0)
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-4}
    sums, squares = (found[:, base.varies] for found in base.weighted_sums(weights))
    np.testing.assert_allclose(sums, weights @ multiplied, **close)
    np.testing.assert_allclose(squares, weights @ multiplied**2, **close)


def test_products_of_several_fits_are_computed_at_once(monkeypatch):
    X = make_columns()
    samples = share_samples(X)
    parts = [samples[np.flatnonzero(np.arange(60) % 3 != fold)] for fold in range(3)]
    n_lines, base = [], samples.shared.base(True)
    pull = base.pull
    monkeypatch.setattr(base, "pull", lambda lines, *rest: n_lines.append(len(lines)) or pull(lines, *rest))

    def products(part, n_targets):
        design = make_design(part, "zscore")
        return design.pull(residual_of(design, n_targets))

    calls = [lambda part=part, n=n: products(part, n) for n, part in enumerate(parts, start=1)]
    together = samples.shared.together(calls)
    assert sorted(n_lines) == [2, 4], "of the second fit, and of the two others: one group computes while the other runs"
    for n, (found, part) in enumerate(zip(together, parts, strict=True), start=1):
        design = make_design(X[part.rows], "zscore")
        np.testing.assert_allclose(found, design.pull(residual_of(design, n)), rtol=1e-9, atol=1e-9)


def test_which_X_is_shared(monkeypatch):
    small, large = np.zeros((10, 10)), np.zeros((1 << 10, 1 << 10))
    assert [pays_to_share(X) for X in (small, large, sp.csr_array(large), large.tolist())] == [False, True, False, False]
    monkeypatch.setattr("l20fs.design.LEAST_SHARED", 100)
    assert pays_to_share(small)
    assert SharedMatrix(small).n_at_once > 1
