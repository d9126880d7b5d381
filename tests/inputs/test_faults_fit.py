"""Faults of L20Selector, E16 to E26: numbers of features, rank, limits, interruption, threads, copies, memory."""

from __future__ import annotations

import pickle
import re
import tracemalloc

import joblib
import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CONTAINERS, HOMOTOPIES, REPLACING, SOLVERS, assert_same_fit, make_data, make_frame, make_solver
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_info, threadpool_limits

from l20fs import HIHT, Forward, L20Selector
from l20fs.solvers import forward


def is_fitted(selector):
    try:
        check_is_fitted(selector)
    except NotFittedError:
        return False
    return True


@pytest.mark.parametrize("k", [0, -1, True, np.True_, "many", 1.5, 0.0, -0.5, np.nan, np.inf, [3]], ids=repr)
def test_e16_numbers_of_features_without_meaning_are_refused(k):
    X, y = make_data()
    message = re.escape(f"n_features_to_select={k!r} is not valid. Use a whole number from 1, or a share")
    with pytest.raises(ValueError, match=message):
        L20Selector(k).fit(X, y)
    fitted = L20Selector(3).fit(X, y).set_params(n_features_to_select=k)
    with pytest.raises(ValueError, match=message):
        fitted.transform(X)


def test_e16_no_number_and_no_lambda_is_refused():
    X, y = make_data()
    with pytest.raises(ValueError, match=r"n_features_to_select=None selects .* that a lambda ends\. Give one"):
        L20Selector(None).fit(X, y)


@pytest.mark.parametrize("container", CONTAINERS)
def test_e16_more_features_than_there_are_is_clipped_with_a_warning(container):
    X, y = make_data()
    with pytest.warns(
        UserWarning, match="n_features_to_select=13 is greater than n_features=12. All the features will be ret"
    ):
        selector = L20Selector(13).fit(container(X), y)
    assert selector.support_.all()
    assert selector.transform(X).shape == X.shape


@pytest.mark.parametrize("k", [np.int64(3), np.int8(3), np.uint16(3), 0.25, np.float32(0.25)], ids=repr)
def test_e16_numpy_integers_and_shares_work(k):
    X, y = make_data()
    assert_same_fit(L20Selector(k).fit(X, y), L20Selector(3).fit(X, y))


def low_rank_data():
    X, y = make_data(2, 40, 12)
    return X @ np.random.default_rng(3).standard_normal((12, 4)) @ np.random.default_rng(4).standard_normal((4, 30)), y


# Ridge, scale and class weights, each with and without the others.
SETTINGS = [
    {"ridge": 0.0, "scale": "none", "class_weight": None},
    {"ridge": 0.1, "scale": "none", "class_weight": None},
    {"ridge": 0.0, "scale": "zscore", "class_weight": {0: 3.0, 2: 0.5}},
    {"ridge": 10.0, "scale": "zscore", "class_weight": "balanced"},
    {"ridge": 0.1, "scale": "none", "class_weight": {0: 3.0, 2: 0.5}},
]
DATA = [make_data(0, 80, 12), make_data(1, 20, 60), low_rank_data()]
data_of_every_rank = pytest.mark.parametrize("data", DATA, ids=["N>d", "N<d", "rank 4"])


def class_weights(class_weight, y):
    sizes = np.bincount(y)
    if class_weight == "balanced":
        return sizes.mean() / sizes
    return np.array([(class_weight or {}).get(label, 1.0) for label in range(len(sizes))])


@pytest.mark.parametrize("solver", SOLVERS)
@data_of_every_rank
@given(container=st.sampled_from(CONTAINERS), k=st.sampled_from([1, 4, 10]), options=st.sampled_from(SETTINGS))
@settings(max_examples=6)
def test_e20_solvers_are_finite_and_agree_with_their_own_weights(data, container, solver, k, options, rtol):
    X, y = data
    selector = L20Selector(k, solver=make_solver(solver, max_iter=20000), **options).fit(container(X), y)
    path = selector.path_
    assert selector.support_.sum() == k
    assert path.n_nonzero[-1] >= min(k, np.linalg.matrix_rank(X))
    refit = path.refit(k)
    coef, intercept = (part.copy() for part in (selector.coef_, selector.intercept_))
    for values in (path.alphas, path.losses, selector.scores_, coef, intercept, refit.coef, refit.intercept):
        assert np.isfinite(values).all()
    assert np.isfinite(path.lipschitz).all() == (solver in HOMOTOPIES)  # the others have no such parameter
    deviations = X.std(axis=0) if options["scale"] == "zscore" else np.ones(X.shape[1])
    mu = options["ridge"] * np.square((X - X.mean(axis=0)) / deviations).sum(axis=0).mean()
    weights = class_weights(options["class_weight"], y)

    def loss(coef, intercept):
        residual = X @ coef.T + intercept - np.eye(3)[y]
        penalty = np.square(coef * deviations).sum(axis=1)
        return 0.5 * weights @ (np.square(residual).sum(axis=0) + mu * penalty)

    assert loss(refit.coef, refit.intercept) <= loss(coef, intercept) * (1.0 + rtol[X.dtype])
    np.testing.assert_allclose(loss(refit.coef, refit.intercept), refit.loss, rtol=rtol[X.dtype])
    if solver in REPLACING and path.n_nonzero[-1] == k:  # they end at the minimum on their rows
        np.testing.assert_allclose(coef, refit.coef, rtol=1e-6, atol=1e-9 * np.abs(coef).max())
    # All rows that are not zero: the point whose loss the path states.
    selector.set_params(n_features_to_select=None)
    np.testing.assert_allclose(loss(selector.coef_, selector.intercept_), path.losses[-1], rtol=rtol[X.dtype])


@pytest.mark.parametrize("options", SETTINGS, ids=str)
@data_of_every_rank
def test_e20_solvers_agree_on_the_first_feature(data, options):
    X, y = data
    first = {}
    for solver in SOLVERS:
        # A rate near 1, so that no two features enter together.
        path = L20Selector(1, solver=make_solver(solver, max_iter=20000, rate=0.999), **options).fit(X, y).path_
        (first[solver],) = path.indices[: path.n_nonzero[path.n_nonzero > 0][0]]
    centred = X - X.mean(axis=0)
    if options["scale"] == "zscore":
        centred /= X.std(axis=0)
    squares = np.square(centred.T @ np.eye(3)[y]) @ class_weights(options["class_weight"], y)
    energies = np.square(centred).sum(axis=0)
    gains = squares / (energies + options["ridge"] * energies.mean())
    assert {first[name] for name in HOMOTOPIES} == {squares.argmax()}
    assert {first[name] for name in REPLACING} == {gains.argmax()}


def test_e21_step_limit_warns_with_reached_and_wanted_tolerance():
    X, y = make_data()
    with pytest.warns(
        ConvergenceWarning, match=r"lambdas stopped at max_iter=1 steps.*\(tol=1e-06\)\. Raise max_iter or tol"
    ):
        selector = L20Selector(3, solver=HIHT(max_iter=1)).fit(X, y)
    assert not selector.path_.converged.all()
    assert selector.path_.n_iters.max() == 1
    assert selector.support_.sum() == 3


def test_e21_enough_steps_do_not_warn():
    X, y = make_data()
    assert L20Selector(3, solver=HIHT(max_iter=5000)).fit(X, y).path_.converged.all()


class Interrupted(Forward):
    """Forward selection that is interrupted when its path is there."""

    def __init__(self, error=None):
        self.error = error

    def walk(self, problem, n_rows, *, penalty=None):
        yield from forward(problem, n_rows, penalty=penalty)
        raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("solver", SOLVERS)
def test_e22_interrupted_fit_leaves_the_estimator_unfitted(solver, error):
    X, y = make_frame()
    selector = L20Selector(3, solver=Interrupted(error))
    before = vars(selector).copy()
    with pytest.raises(error):
        selector.fit(X, y)
    assert vars(selector) == before
    assert not is_fitted(selector)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        selector.transform(X)
    assert is_fitted(selector.set_params(solver=solver).fit(X, y))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("solver", SOLVERS)
def test_e22_interrupted_second_fit_keeps_the_first_one_whole(solver, error):
    X, y = make_frame()
    selector = L20Selector(3, solver=make_solver(solver, max_iter=5000)).fit(X, y)
    expected = clone(selector).fit(X, y)
    selector.set_params(solver=Interrupted(error))
    with pytest.raises(error):
        selector.fit(make_data(1, 30, 20)[0], np.arange(30) % 2)
    assert vars(selector).keys() == vars(expected).keys()
    assert_same_fit(selector, expected)
    assert selector.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    np.testing.assert_array_equal(selector.transform(X), expected.transform(X))


def test_e22_refused_second_fit_keeps_the_first_one_whole():
    X, y = make_frame()
    selector = L20Selector(3).fit(X, y)
    expected = clone(selector).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        selector.fit(make_data(1, 30, 20)[0], np.zeros(30, dtype=int))
    assert vars(selector).keys() == vars(expected).keys()
    assert selector.n_features_in_ == 12
    assert_same_fit(selector, expected)


@pytest.mark.parametrize("solver", SOLVERS)
def test_e23_blas_threads_do_not_change_the_support(solver):
    X, y = make_data(0, 300, 2000)
    selectors = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {n_threads}
            selectors.append(L20Selector(20, solver=make_solver(solver, max_iter=5000)).fit(X, y))
    assert selectors[0].get_support(indices=True).tolist() == selectors[1].get_support(indices=True).tolist()


@pytest.mark.parametrize("solver", SOLVERS)
def test_e23_jobs_side_by_side_do_not_change_the_support(solver):
    tasks = [(L20Selector(5, solver=make_solver(solver, max_iter=5000)), *make_data(seed)) for seed in range(8)]
    alone = [selector.fit(X, y).support_.tolist() for selector, X, y in tasks]
    together = joblib.Parallel(n_jobs=2, prefer="threads")(
        joblib.delayed(clone(selector).fit)(X, y) for selector, X, y in tasks
    )
    assert [selector.support_.tolist() for selector in together] == alone


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_e24_pickle_and_joblib_keep_the_fit(container, solver, tmp_path):
    X, y = make_data()
    X = container(X)
    selector = L20Selector(4, solver=make_solver(solver, max_iter=5000)).fit(X, np.array(["a", "b", "c"])[y])
    joblib.dump(selector, tmp_path / "selector.joblib")
    for copy in (pickle.loads(pickle.dumps(selector)), joblib.load(tmp_path / "selector.joblib")):
        assert copy.get_params() == selector.get_params()
        assert_same_fit(copy, selector)
        chosen = sp.csr_array(X)[:, np.flatnonzero(selector.support_)].toarray()
        np.testing.assert_array_equal(sp.csr_array(copy.transform(X)).toarray(), chosen)
        copy.set_params(n_features_to_select=2)
        assert copy.support_.sum() == 2


@pytest.mark.parametrize(
    ("solver", "init"), [*((name, "zeros") for name in SOLVERS), ("hiht", "gaussian"), ("hiht", "uniform")]
)
def test_e24_clone_is_unfitted_and_fits_the_same(solver, init):
    X, y = make_data()
    selector = L20Selector(4, solver=make_solver(solver, max_iter=5000, init=init, random_state=3), ridge=0.01).fit(X, y)
    copy = clone(selector)
    assert copy.get_params() == selector.get_params()
    assert not is_fitted(copy)
    assert_same_fit(copy.fit(X, y), selector)


@pytest.mark.parametrize(
    "rename",
    [lambda X: X.rename(columns={"g1": "other"}), lambda X: X[X.columns[::-1]], lambda X: X.drop(columns="g1")],
    ids=["renamed", "reordered", "missing"],
)
def test_e25_other_feature_names_at_transform_are_refused(rename):
    X, y = make_frame()
    selector = L20Selector(3).fit(X, y)
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        selector.transform(rename(X))


def test_e25_other_number_of_features_at_transform_is_refused():
    X, y = make_data()
    selector = L20Selector(3).fit(X, y)
    with pytest.raises(ValueError, match="X has 11 features, but L20Selector is expecting 12 features as input"):
        selector.transform(X[:, :11])


def test_e25_names_on_one_side_only_are_warned_about():
    X, y = make_frame()
    with pytest.warns(
        UserWarning, match="X does not have valid feature names, but L20Selector was fitted with feature names"
    ):
        L20Selector(3).fit(X, y).transform(X.to_numpy())
    with pytest.warns(UserWarning, match="X has feature names, but L20Selector was fitted without feature names"):
        L20Selector(3).fit(X.to_numpy(), y).transform(X)


def large_sparse_data(n_samples, n_features, n_classes, spacing=20):
    """One value in each run of ``spacing`` columns; the first 200 columns are a topic of class 0."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_samples)
    per_row = n_features // spacing
    indices = rng.integers(spacing, size=(n_samples, per_row), dtype=np.int32)
    indices += np.arange(0, n_features, spacing, dtype=np.int32)
    data = rng.random((n_samples, per_row))
    data[:, : 200 // spacing] *= np.where(y == 0, 30.0, 1.0)[:, None]
    indptr = np.arange(0, data.size + 1, per_row, dtype=np.int32)
    return sp.csr_array((data.ravel(), indices.ravel(), indptr), shape=(n_samples, n_features)), y


def test_e26_large_sparse_data_is_held_at_most_twice():
    n_samples, n_features = 20_000, 30_000
    X, y = large_sparse_data(n_samples, n_features, 4)
    stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    tracemalloc.start()
    try:
        selector = L20Selector(20, ridge=0.0, scale="moderated").fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert selector.get_support(indices=True).max() < 200
    # One copy of X, one feature in 32, fetched to look ahead, and some hundred vectors over samples and features.
    beside = stored // 32 + 100 * 8 * (n_samples + n_features)
    assert beside < stored // 6
    copied = 0 if parse_version(scipy.__version__) >= parse_version("1.17") else X.indices.nbytes  # by tocsc() of SciPy
    assert peak <= stored + copied + beside
