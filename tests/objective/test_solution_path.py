from __future__ import annotations

import numpy as np
import pytest
from reference import centred, loss

from l20fs import Constraints, L20Selector
from l20fs.data import make_planted
from l20fs.design import finish
from l20fs.objective import make_problem
from l20fs.solvers import AHIHT


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = make_planted(40, 120, 5, 3)
    X = X * 3.0 + 7.0
    Y = np.eye(3)[y]
    problem = make_problem(X, Y, ridge=0.1, scale="zscore")
    return X, Y, problem, finish(AHIHT().walk(problem, 30)).with_refits(problem, 50)


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [4.0, 0.25, 1.0]])
def test_weights_of_targets_count_in_the_loss_and_not_in_the_coefficients(fitted, weights):
    X, Y, _, _ = fitted
    problem = make_problem(X, Y, ridge=0.1, scale="zscore", target_weights=np.array(weights))
    path = finish(AHIHT().walk(problem, 10)).with_refits(problem, 10)

    def value(coef, intercept):
        errors = np.square(X @ coef.T + intercept - Y).sum(axis=0) + problem.ridge * np.square(coef * path.x_scale).sum(
            axis=1
        )
        return 0.5 * np.dot(weights, errors)

    k = int(path.n_nonzero[-1])
    assert value(path.coef(k), path.intercept(k)) == pytest.approx(path.losses[-1])
    assert value(path.refit(10).coef, path.refit(10).intercept) == pytest.approx(path.refit(10).loss)
    assert path.null_loss == pytest.approx(value(np.zeros((3, 120)), Y.mean(axis=0)))


def test_coef_predicts_in_the_units_of_x(fitted):
    """The truncation at all active rows is the last iterate: its loss, computed from X itself, is the path's."""
    X, Y, problem, path = fitted
    k = int(path.n_nonzero[-1])
    prediction = X @ path.coef(k).T + path.intercept(k)
    scaled = (path.coef(k) * path.x_scale).T
    assert 0.5 * np.linalg.norm(prediction - Y) ** 2 + 0.5 * problem.ridge * np.linalg.norm(scaled) ** 2 == pytest.approx(
        path.losses[-1]
    )
    assert np.flatnonzero(path.coef(5).any(axis=0)).tolist() == sorted(path.support(5).tolist())


@pytest.mark.parametrize("k", [1, 7, 30, 50])
def test_refit_is_least_squares_on_the_support(fitted, k):
    X, Y, problem, path = fitted
    refit = path.refit(k)
    Xc, Yc = centred(X, Y)
    columns = Xc[:, path.support(k)] / X[:, path.support(k)].std(axis=0)
    W = np.linalg.solve(columns.T @ columns + problem.ridge * np.eye(k), columns.T @ Yc)
    assert np.allclose((refit.coef * path.x_scale)[:, path.support(k)].T, W, rtol=1e-7, atol=1e-9)
    assert refit.loss == pytest.approx(loss(columns, Yc, W, problem.ridge), rel=1e-8)
    # The intercept is the one that makes the mean prediction right.
    assert np.allclose((X @ refit.coef.T + refit.intercept).mean(axis=0), Y.mean(axis=0))


def test_refit_lowers_the_loss(fitted):
    path = fitted[3]
    assert path.refit(int(path.n_nonzero[-1])).loss < path.losses[-1]


def test_refit_of_more_rows_than_samples_interpolates():
    X, y, _ = make_planted(20, 60, 5, 3)
    problem = make_problem(X, np.eye(3)[y])
    path = finish(AHIHT().walk(problem, 40)).with_refits(problem, 40)
    assert path.refit(40).loss == pytest.approx(0.0, abs=1e-10)
    assert np.isfinite(path.refit(40).coef).all()


@pytest.mark.parametrize("k", [0, -1, 121])
def test_k_outside_the_features_is_refused(fitted, k):
    with pytest.raises(ValueError, match=rf"k={k} is outside 1 to 120"):
        fitted[3].support(k)


def test_refit_beyond_the_stored_factors_names_the_way_out(fitted):
    with pytest.raises(ValueError, match=r"up to k=50. Fit with max_features_to_select=51"):
        fitted[3].refit(51)


@pytest.mark.parametrize("ranking", ["entry", "norm"])
@pytest.mark.parametrize("groups", [None, [[0, 3], [1, 2]]])
def test_the_best_k_are_the_first_of_the_order(ranking, groups):
    """Whether only the top is sorted, or all features."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((40, 30)), np.arange(40) % 3
    X[:, 20] = X[:, 4]
    path = L20Selector(8, solver=AHIHT(ranking=ranking), constraints=Constraints(groups=groups, include=[5])).fit(X, y).path_
    for k in range(1, path.n_selectable):
        assert path.support(k).tolist() == [j for j in path.order if path.ranking[j] <= k]
    assert path.n_ranked == path.n_units == len(np.unique(path.ranking))
