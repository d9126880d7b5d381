from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from l20fs import L20Selector, paper_settings
from l20fs.data import load_srbct, make_planted

CHECKED = [
    L20Selector(),
    L20Selector(1),
    L20Selector(0.5, scale="zscore", ridge=0.1),
    L20Selector(2, solver="hiht"),
    L20Selector(2, **paper_settings("ahiht")),
    L20Selector(2, **paper_settings("hiht")),
]


@pytest.mark.filterwarnings("ignore:n_features_to_select=.* is greater than n_features")
@pytest.mark.filterwarnings("ignore:.*lambdas stopped at max_iter")
@pytest.mark.filterwarnings("ignore:No features were selected")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def planted():
    return make_planted(200, 300, 6, 4, random_state=0)


def test_another_k_needs_no_second_fit(planted, monkeypatch):
    X, y, _ = planted
    selector = L20Selector(20, max_features=50).fit(X, y)
    ranking = selector.ranking_
    monkeypatch.setattr(L20Selector, "_fit_scores", None)  # a second fit would fail
    for k in (1, 5, 20, 50, 300):
        selector.set_params(n_features_to_select=k)
        expected = np.flatnonzero(ranking <= k)
        assert len(expected) == k
        assert selector.get_support(indices=True).tolist() == expected.tolist()
        assert selector.support_.sum() == k
        assert np.array_equal(selector.transform(X), X[:, expected])
        assert selector.get_feature_names_out().tolist() == [f"x{j}" for j in expected]
        assert np.flatnonzero(selector.coef_.any(axis=0)).tolist() == sorted(set(expected) & set(selector.path_.coef_rows))


def test_a_share_of_the_features(planted):
    X, y, _ = planted
    assert L20Selector(0.1).fit(X, y).support_.sum() == 30
    assert L20Selector(0.0001).fit(X, y).support_.sum() == 1


def test_none_keeps_the_rows_at_alpha(planted):
    X, y, _ = planted
    selector = L20Selector(None, alpha=0.05).fit(X, y)
    k = selector.support_.sum()
    assert k == selector.path_.n_nonzero[-1] > 0
    assert selector.path_.refit(int(k)).coef.any(axis=0).sum() == k
    assert str(k) in repr(selector.path_)
    with pytest.raises(ValueError, match="alpha is None"):
        L20Selector(None).fit(X, y)


def test_max_features_carries_the_path_further(planted):
    X, y, _ = planted
    short, long = L20Selector(10).fit(X, y), L20Selector(10, max_features=60).fit(X, y)
    assert short.path_.n_nonzero[-1] < 60 <= long.path_.n_nonzero[-1]
    assert long.support_.sum() == 10
    assert long.path_.refit(60).coef.shape == (4, 300)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_renaming_the_labels_changes_nothing(seed):
    X, y, _ = make_planted(40, 60, 4, 3, random_state=seed)
    names = np.array(["zebra", "ant", "mole"])
    a, b = L20Selector(10).fit(X, y), L20Selector(10).fit(X, names[y])
    assert np.allclose(a.scores_, b.scores_, rtol=1e-8)
    assert b.classes_.tolist() == sorted(set(names[y]))
    columns = [b.classes_.tolist().index(names[c]) for c in a.classes_]
    assert np.allclose(a.coef_, b.coef_[columns], rtol=1e-6, atol=1e-12)
    assert np.allclose(a.intercept_, b.intercept_[columns], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["int", "str", "bool", "category", "object", "datetime"])
def test_labels_of_any_type(kind):
    X, y, _ = make_planted(60, 40, 3, 2)
    labels = {
        "int": y + 5,
        "str": np.array(["no", "yes"])[y],
        "bool": y.astype(bool),
        "category": pd.Series(pd.Categorical.from_codes(y, ["low", "high"])),
        "object": np.array(["a", "b"], dtype=object)[y],
        "datetime": np.array(["2020-01-01", "2021-01-01"])[y],
    }[kind]
    selector = L20Selector(3).fit(X, labels)
    assert len(selector.classes_) == 2
    assert selector.coef_.shape == (2, 40)
    assert np.allclose(selector.scores_, L20Selector(3).fit(X, y).scores_)


def test_one_hot_indicator_and_numbers_are_targets_too():
    X, y, _ = make_planted(60, 40, 3, 3)
    labels = L20Selector(5).fit(X, y)
    indicator = L20Selector(5).fit(X, np.eye(3, dtype=int)[y])
    assert np.allclose(indicator.scores_, labels.scores_)
    assert indicator.classes_.tolist() == [0, 1, 2]
    numbers = L20Selector(5).fit(X, np.eye(3)[y] * 2.5 + 0.25)
    assert not hasattr(numbers, "classes_")
    assert np.allclose(numbers.scores_[numbers.support_], 2.5 * labels.scores_[labels.support_])
    single = L20Selector(5).fit(X, X[:, 7] - 2 * X[:, 9] + 0.01 * X[:, 3])
    assert single.coef_.shape == (1, 40)
    assert {7, 9} <= set(single.get_support(indices=True))
    assert not hasattr(labels.fit(X, X[:, 7]), "classes_"), "classes of a former fit must go"


def test_recovers_planted_features(planted):
    X, y, informative = planted
    selector = L20Selector(6).fit(X, y)
    assert set(informative) == set(selector.get_support(indices=True))


def test_pipeline_grid_search_and_pandas_output(planted):
    X, y, _ = planted
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(300)])
    pipeline = make_pipeline(L20Selector(), LogisticRegression()).set_output(transform="pandas")
    search = GridSearchCV(pipeline, {"l20selector__n_features_to_select": [2, 6]}, cv=3).fit(frame, y)
    assert search.best_params_["l20selector__n_features_to_select"] == 6
    names = search.best_estimator_[0].get_feature_names_out()
    assert search.best_estimator_[:-1].transform(frame).columns.tolist() == names.tolist()


def test_clone_and_pickle(planted):
    X, y, _ = planted
    selector = L20Selector(7, ridge=0.1, scale="zscore").fit(X, y)
    copy = pickle.loads(pickle.dumps(selector))
    assert np.array_equal(copy.transform(X), selector.transform(X))
    assert np.array_equal(copy.coef_, selector.coef_)
    assert clone(selector).get_params() == selector.get_params()
    assert len(pickle.dumps(selector)) < X.nbytes / 2, "the fit must not drag X along"


@pytest.mark.parametrize("init", ["gaussian", "uniform"])
def test_random_start(init):
    """The paper's finding: the start hardly matters. Of the best 20 genes, 18 or more are those of the zero start."""
    X, y = tumours()
    settings = paper_settings() | {"init": init}
    one, two, three = (L20Selector(20, **settings, random_state=seed).fit(X, y) for seed in (0, 0, 1))
    assert np.array_equal(one.scores_, two.scores_)
    assert not np.array_equal(one.scores_, three.scores_)
    zeros = L20Selector(20, **paper_settings()).fit(X, y)
    assert np.sum(one.support_ & zeros.support_) >= 18


def test_start_from_an_array(planted):
    X, y, _ = planted
    start = np.zeros((4, 300))
    assert np.array_equal(L20Selector(6, init=start).fit(X, y).scores_, L20Selector(6).fit(X, y).scores_)
    for bad in (np.nan, np.inf, 1e200):
        with pytest.raises(ValueError, match="init holds values that are missing, infinite or above 1e\\+100"):
            L20Selector(6, init=np.full((4, 300), bad)).fit(X, y)
    with pytest.raises(ValueError, match=r"shape \(3, 300\); expected .* = \(4, 300\)"):
        L20Selector(6, init=start[:3]).fit(X, y)


def test_callback_and_verbose(planted, capsys):
    X, y, _ = planted
    seen = []
    selector = L20Selector(6, callback=seen.append, verbose=1).fit(X, y)
    assert [stage.alpha for stage in seen] == selector.path_.alphas.tolist()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(seen)
    assert "lambda=" in lines[0]


def test_selection_frame(planted):
    X, y, _ = planted
    names = np.array(["red", "green", "blue", "grey"])
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(300)])
    selector = L20Selector(5).fit(frame, names[y])
    table = selector.selection_frame()
    assert table["rank"].tolist() == [1, 2, 3, 4, 5]
    assert table["feature"].tolist() == [f"g{j}" for j in selector.path_.support(5)]
    weights = table[[f"coef_{name}" for name in sorted(names)]].to_numpy()
    assert np.allclose(np.linalg.norm(weights, axis=1), table["score"])
    assert table["strongest"].tolist() == np.array(sorted(names))[np.abs(weights).argmax(axis=1)].tolist()
    assert table["entry_alpha"].is_monotonic_decreasing or table["entry_alpha"].notna().all()
    assert selector.set_params(n_features_to_select=300).selection_frame()["rule"].unique().tolist()[0] == "weight"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("solver", "newton"),
        ("stopping", "never"),
        ("scale", "minmax"),
        ("init", "ones"),
        ("ridge", -1.0),
        ("rate", 1.0),
        ("rate", 0.0),
        ("alpha", 0.0),
        ("alpha", float("nan")),
        ("alpha_start", -1.0),
        ("line_search_factor", 1.0),
        ("eta", -0.1),
        ("lipschitz_start", "big"),
        ("max_iter", 0),
        ("max_iter", 2.5),
        ("tol", None),
        ("max_features", 0),
        ("max_features", True),
    ],
)
def test_bad_parameters_are_named(planted, name, value):
    X, y, _ = planted
    with pytest.raises(ValueError, match=rf"{name}={value!r} is (unknown|not valid)\. Use "):
        L20Selector(5, **{name: value}).fit(X, y)


def test_paper_settings_are_the_authors():
    selector = L20Selector(20, **paper_settings("ahiht")).fit(*tumours())
    assert selector.path_.alphas[:-1] == pytest.approx(0.4 ** np.arange(1, 10))
    assert selector.path_.alphas[-1] == 1e-4
    assert selector.n_iter_ == 10


def tumours():
    data = load_srbct(scale="paper")
    return data.data, data.target


def test_fit_changes_no_parameter_and_no_input(planted):
    X, y, _ = planted
    selector = L20Selector(5, scale="zscore")
    before, bytes_before = selector.get_params(), X.tobytes()
    selector.fit(X, y)
    assert selector.get_params() == before
    assert X.tobytes() == bytes_before
