from __future__ import annotations

import pickle

import array_api_strict
import numpy as np
import pytest
from reference import centred, loss

from l20fs import L20Selector, SolutionPath
from l20fs.data import make_planted
from l20fs.inputs.devices import Place
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.path_ranking import RULES
from l20fs.objective.stage import Stage
from l20fs.solvers import Schedule, ahiht


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = make_planted(40, 120, 5, 3)
    X = X * 3.0 + 7.0
    Y = np.eye(3)[y]
    problem = LeastSquares(X, Y, ridge=0.1, scale="zscore")
    return X, Y, problem, ahiht(problem, Schedule(n_rows=30)).with_refits(problem, 50)


def test_ranking_rules_in_order():
    """Rows 4 and 2 survive, 5 and 1 left at different lambdas, 0 and 6 never entered, 3 is constant."""
    X = np.random.default_rng(0).standard_normal((10, 7))
    X[:, 3] = 1.0
    problem = LeastSquares(X, np.random.default_rng(1).standard_normal((10, 2)))
    stages = [
        Stage(3.0, np.array([1, 2]), np.array([9.0, 1.0]), 5.0, 1.0, 1, True),
        Stage(2.0, np.array([2, 5]), np.array([1.0, 0.5]), 4.0, 1.0, 1, True),
        Stage(1.0, np.array([2, 4]), np.array([1.0, 2.0]), 3.0, 1.0, 1, True),
    ]
    weights = np.zeros((2, 7))
    weights[:, [2, 4]] = [[1.0, 2.0], [0.0, 0.0]]
    path = SolutionPath.from_stages(problem, stages, weights, np.array([1.0, 0, 0, 0, 0, 0, 4.0]))
    assert path.order.tolist() == [4, 2, 5, 1, 6, 0, 3]
    assert [RULES[rule] for rule in path.rules[path.order]] == ["weight"] * 2 + ["path"] * 2 + ["gradient"] * 2 + [
        "constant"
    ]
    assert np.all(np.diff(path.scores[path.order][:-1]) < 0)
    assert path.scores[3] == -np.inf
    assert path.objectives.tolist() == [5.0 + 6.0, 4.0 + 4.0, 3.0 + 2.0]
    assert np.array_equal(path.entry_alphas, [np.nan, 3.0, 3.0, np.nan, 1.0, 2.0, np.nan], equal_nan=True)


def test_ranked_by_entry_the_row_that_came_to_stay_first_leads():
    """Rows 1, 4 and 5 end the path: 1 came first, went and came back; 4 and 5 came together, 5 with the longer row."""
    problem = LeastSquares(
        np.random.default_rng(0).standard_normal((10, 6)), np.random.default_rng(1).standard_normal((10, 1))
    )
    stages = [
        Stage(4.0, np.array([1]), np.array([9.0]), 5.0),
        Stage(3.0, np.array([2, 4, 5]), np.array([1.0, 1.0, 2.0]), 4.0),
        Stage(2.0, np.array([1, 4, 5]), np.array([9.0, 4.0, 3.0]), 3.0),
    ]
    by_norm = SolutionPath.from_stages(problem, stages, np.array([[9.0, 4.0, 3.0]]), np.array([1.0, 0, 0, 2.0, 0, 0]))
    assert by_norm.order.tolist() == [1, 4, 5, 2, 3, 0]
    by_entry = by_norm.ranked_by("entry")
    assert by_entry.order.tolist() == [5, 4, 1, 2, 3, 0]
    assert [RULES[rule] for rule in by_entry.rules[by_entry.order]] == ["entry"] * 3 + ["path"] + ["gradient"] * 2
    assert np.all(np.diff(by_entry.scores[by_entry.order]) < 0)
    assert np.all((by_entry.scores[[1, 4, 5]] > 0.0) & (by_entry.scores[[1, 4, 5]] <= 1.0))
    back = by_entry.ranked_by("norm")
    assert back.order.tolist() == by_norm.order.tolist()
    assert np.array_equal(back.scores, by_norm.scores)
    assert np.array_equal(back.rules, by_norm.rules)


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [4.0, 0.25, 1.0]])
def test_weights_of_targets_count_in_the_loss_and_not_in_the_coefficients(fitted, weights):
    X, Y, _, _ = fitted
    problem = LeastSquares(X, Y, ridge=0.1, scale="zscore", target_weights=np.array(weights))
    path = ahiht(problem, Schedule(n_rows=10)).with_refits(problem, 10)

    def value(coef, intercept):
        errors = np.square(X @ coef.T + intercept - Y).sum(axis=0) + problem.ridge * np.square(coef * path.x_scale).sum(
            axis=1
        )
        return 0.5 * np.dot(weights, errors)

    k = int(path.n_nonzero[-1])
    assert value(path.coef(k), path.intercept(k)) == pytest.approx(path.losses[-1])
    assert value(path.refit(10).coef, path.refit(10).intercept) == pytest.approx(path.refit(10).loss)
    assert path.null_loss == pytest.approx(value(np.zeros((3, 120)), Y.mean(axis=0)))


def test_stage_access(fitted):
    path = fitted[3]
    assert path.stage_rows(-1).tolist() == path.coef_rows.tolist()
    assert len(path.stage_rows(0)) == len(path.stage_norms(0)) == 0
    assert path.n_nonzero.sum() == len(path.indices)
    with pytest.raises(IndexError):
        path.stage_rows(len(path.alphas))


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
    problem = LeastSquares(X, np.eye(3)[y])
    path = ahiht(problem, Schedule(n_rows=40)).with_refits(problem, 40)
    assert path.refit(40).loss == pytest.approx(0.0, abs=1e-10)
    assert np.isfinite(path.refit(40).coef).all()


@pytest.mark.parametrize("k", [0, -1, 121])
def test_k_outside_the_features_is_refused(fitted, k):
    with pytest.raises(ValueError, match=rf"k={k} is outside 1 to 120"):
        fitted[3].support(k)


def test_refit_beyond_the_stored_factors_names_the_way_out(fitted):
    with pytest.raises(ValueError, match=r"up to k=50. Fit with max_features=51"):
        fitted[3].refit(51)


def test_save_and_load(fitted, tmp_path):
    path = fitted[3]
    file = tmp_path / "deep" / "path.npz"
    file.parent.mkdir()
    path.save(file)
    loaded = SolutionPath.load(file)
    for name in vars(path):
        assert np.array_equal(getattr(loaded, name), getattr(path, name)), name
    assert np.array_equal(loaded.refit(50).coef, path.refit(50).coef)
    assert [f.name for f in file.parent.iterdir()] == ["path.npz"]
    first = file.read_bytes()
    path.save(file)
    assert file.read_bytes() == first


def test_a_failed_save_leaves_the_old_file(fitted, tmp_path, monkeypatch):
    file = tmp_path / "path.npz"
    file.write_bytes(b"old")
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError("No space left on device")))
    with pytest.raises(OSError, match="No space"):
        fitted[3].save(file)
    assert file.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("ranking", ["entry", "norm"])
@pytest.mark.parametrize("groups", [None, [[0, 3], [1, 2]]])
def test_the_best_k_are_the_first_of_the_order(ranking, groups):
    """Whether only the top is sorted, or all features."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((40, 30)), np.arange(40) % 3
    X[:, 20] = X[:, 4]
    path = L20Selector(8, ranking=ranking, feature_groups=groups, include=[5]).fit(X, y).path_
    for k in range(1, path.n_selectable):
        assert path.support(k).tolist() == [j for j in path.order if path.ranking[j] <= k]
    assert path.n_ranked == path.n_units == len(np.unique(path.ranking))


def test_features_of_a_device_are_sorted_there_until_the_path_is_copied(monkeypatch):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((30, 50)), np.arange(30) % 3
    X[:, 20] = X[:, 30]  # a tie
    there = L20Selector(3).fit(array_api_strict.asarray(X), y).path_
    expected, copied = L20Selector(3).fit(X, y).path_.ranking.tolist(), pickle.loads(pickle.dumps(there))
    sent, send = [], Place.send
    monkeypatch.setattr(Place, "send", lambda place, values: sent.append(len(values)) or send(place, values))
    assert copied.ranking.tolist() == expected
    assert not sent
    assert there.ranking.tolist() == expected
    assert sent == [50]
