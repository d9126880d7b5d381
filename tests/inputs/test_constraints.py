"""Feature constraints: resolved or refused, and kept by every solver at every k."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SOLVERS, make_data, make_frame
from sklearn.base import clone

from l20fs import L20Classifier, L20Regressor, L20Selector, L20SelectorCV, SolutionPath
from l20fs.objective.path_ranking import RULES

SEEDS = st.integers(0, 2**32 - 1)
NAMES = np.array(["TP53", "MYC", "KRAS", "EGFR", "BRCA1"])


def quiet_fit(selector, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not every lambda of HIHT converges within the limit
        return selector.fit(X, y)


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"include": ["MYK"]}, "include names 'MYK', which X does not have. The closest name is 'MYC'"),
        ({"exclude": ["xyz"]}, "exclude names 'xyz', which X does not have. The closest name is"),
        ({"include": [5]}, "include has the index 5, which is outside 0 to 4"),
        ({"include": [-1]}, "include has the index -1, .*negative indices are not supported"),
        ({"include": [True, False]}, "include is a mask of length 2 for 5 features"),
        ({"include": "MYC"}, "include='MYC' is not a list"),
        ({"include": [1, "MYC"]}, "include names 'MYC' twice"),
        ({"include": [1], "exclude": ["MYC"]}, "'MYC' is both included .* and excluded"),
        (
            {"include": [1], "exclude": [2], "feature_groups": [[1, 2]]},
            "'MYC' is included and 'KRAS' is excluded, but both are in one group",
        ),
        ({"penalty_factor": [1, 2]}, "penalty_factor has 2 factors for 5 features"),
        ({"penalty_factor": [1, 1, -2, 1, 1]}, "penalty_factor=-2 of 'KRAS' is not valid"),
        ({"feature_groups": [["TP53", "MYC"], ["MYC"]]}, "'MYC' in two groups, 0 and 1"),
        ({"feature_groups": {"a": []}}, r"feature_groups\['a'\] is empty\. Remove it"),
        ({"feature_groups": [[0, 1], 2]}, r"feature_groups\[1\]=2 is not a list"),
        ({"feature_groups": ["a", "b"]}, "feature_groups has 2 labels for 5 features"),
        ({"feature_groups": ["a", None, "a", "b", "b"]}, "feature_groups has no label for 'MYC'"),
    ],
    ids=str,
)
def test_odd_wishes_are_refused_with_the_way_out(wishes, message):
    frame = pd.DataFrame(make_data()[0][:, :5], columns=NAMES)
    with pytest.raises(ValueError, match=message) as caught:
        L20Selector(2, **wishes).fit(frame, make_data()[1])
    assert "\n" not in str(caught.value)


@st.composite
def wishes(draw, n_features):
    """Draw include, exclude, factors and groups that do not contradict each other."""
    random = np.random.default_rng(draw(SEEDS))
    labels = random.integers(0, n_features // 2, n_features) if draw(st.booleans()) else np.arange(n_features)
    features = random.permutation(n_features)
    included, excluded = features[: draw(st.integers(0, 3))], features[n_features - draw(st.integers(0, 3)) :]
    excluded = excluded[~np.isin(labels[excluded], labels[included])]
    factor = random.uniform(0.2, 4.0, n_features) if draw(st.booleans()) else None
    return {"include": included, "exclude": excluded, "penalty_factor": factor, "feature_groups": labels}


@pytest.mark.filterwarnings("ignore:n_features_to_select=.* goes beyond")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@given(asked=wishes(12), seed=SEEDS, ranking=st.sampled_from(["entry", "norm"]), ridge=st.sampled_from([0.0, 1.0]))
@settings(max_examples=12)
def test_every_solver_keeps_to_the_wishes_at_every_k(solver, container, asked, seed, ranking, ridge):
    X, y = make_data(seed)
    X[:, 4], X[:, 7], X[:, 8] = 1.0, X[:, 3], X[:, 0] + X[:, 1]
    selector = L20Selector(6, solver=solver, ranking=ranking, ridge=ridge, **asked)
    assert_wishes_are_kept(selector, container(X), y, asked, varies=np.arange(12) != 4)


@pytest.mark.filterwarnings("ignore:n_features_to_select=.* goes beyond")
@pytest.mark.parametrize("solver", ["forward", "swap"])
@given(asked=wishes(12), seed=SEEDS)
@settings(max_examples=8)
def test_the_robust_loss_keeps_to_them_too(solver, asked, seed):
    X, y = make_data(seed)
    X[:, 4] = 1.0
    selector = L20Selector(6, solver=solver, loss="l21", **asked)
    assert_wishes_are_kept(selector, X, y, asked, varies=np.arange(12) != 4)


def assert_wishes_are_kept(selector, X, y, asked, varies):
    labels, included, excluded = asked["feature_groups"], asked["include"], asked["exclude"]
    selector = quiet_fit(selector, X, y)
    path = selector.path_
    must, must_not = np.isin(labels, labels[included]) & varies, np.isin(labels, labels[excluded])
    must[included] = True
    constant = ~varies & ~must
    n_units = len(np.unique(selector.ranking_[np.isfinite(selector.scores_)]))
    for k in range(max(1, path.n_included), n_units + 1):
        support = selector.set_params(n_features_to_select=k).support_
        assert support[must].all()
        assert not support[must_not].any()
        assert not support[constant].any()
        for label in np.unique(labels):
            members = support[(labels == label) & ~constant]
            assert members.all() or not members.any()
        assert len(np.unique(selector.ranking_[support])) == k
        assert np.array_equal(support, (selector.ranking_ <= k) & np.isfinite(selector.scores_))
        assert not selector.coef_[:, ~support].any()
        assert sorted(path.support(k)) == np.flatnonzero(support).tolist()
    for stage in range(len(path.alphas)):
        rows = path.stage_rows(stage)
        assert not (must_not | constant)[rows].any()
    assert (selector.scores_[must_not] == -np.inf).all()
    if path.n_included > 1:
        selector.set_params(n_features_to_select=path.n_included - 1)
        with pytest.raises(ValueError, match=f"{path.n_included} features or groups that are included"):
            selector.get_support()
        with pytest.raises(ValueError, match="Ask for more, or include fewer"):
            quiet_fit(selector, X, y)


@pytest.mark.parametrize("solver", SOLVERS)
def test_at_a_lambda_what_is_included_stays(solver):
    X, y = make_data(0)
    selector = quiet_fit(L20Selector(None, alpha=1e-3, ridge=0.0, solver=solver, include=[0, 11]), X, y)
    assert selector.support_[[0, 11]].all()
    assert selector.support_.sum() > 2
    for k in (None, 5):
        selector = quiet_fit(L20Selector(k, alpha=1e6, ridge=0.0, solver=solver, include=[0, 11]), X, y)
        assert np.flatnonzero(selector.support_).tolist() == [0, 11]
        assert selector.coef_[:, [0, 11]].any(axis=0).all()
        assert selector.path_.objectives[-1] == selector.path_.losses[-1]


def test_a_constant_that_is_included_is_kept_with_a_warning():
    frame, y = make_frame()
    frame["g3"] = 2.0
    with pytest.warns(
        UserWarning, match="1 of the included features are constant, first 'g3'. They are selected as requested"
    ):
        selector = L20Selector(3, include=["g3", "g5"]).fit(frame, y)
    assert selector.support_[[3, 5]].all()
    assert selector.support_.sum() == 3
    assert not selector.coef_[:, 3].any()
    assert selector.transform(frame).shape == (60, 3)


@pytest.mark.parametrize("ridge", [0.0, 10.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_copies_that_are_included_are_kept_with_a_warning(solver, ridge):
    X, y = make_data(1)
    X[:, 7], X[:, 8] = X[:, 3], 2.0 * X[:, 3] - X[:, 1]
    with pytest.warns(
        UserWarning, match="2 of the included features are copies or combinations .* first feature 7, feature 8"
    ):
        selector = quiet_fit_but_wishes(L20Selector(5, include=[1, 3, 7, 8], ridge=ridge, solver=solver), X, y)
    assert selector.support_[[1, 3, 7, 8]].all()
    assert selector.support_.sum() == 5
    assert np.isfinite(selector.coef_).all()
    assert np.isfinite(selector.path_.refit(5).loss)


def quiet_fit_but_wishes(selector, X, y):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*lambdas stopped")
        return selector.fit(X, y)


def test_one_hot_columns_of_an_included_group_are_no_reason_to_warn():
    X, y = make_data(2)
    X = np.hstack([X, np.eye(3)[np.random.default_rng(0).integers(0, 3, 60)]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = L20Selector(3, include=[12], feature_groups=[[12, 13, 14]], ridge=0.0).fit(X, y)
    assert selector.support_[12:].all()
    assert selector.support_.sum() == 5


def test_what_cannot_be_had_is_warned_about_or_refused():
    X, y = make_data(0)
    with pytest.warns(UserWarning, match="n_features_to_select=5, but only 3 of 12 features may be selected"):
        assert L20Selector(5, exclude=range(3, 12)).fit(X, y).support_.sum() == 3
    with pytest.warns(UserWarning, match="n_features_to_select=5, but only 2 of 3 features and groups may be selected"):
        assert L20Selector(5, exclude=[0], feature_groups=np.arange(12) // 4).fit(X, y).support_.sum() == 8
    with pytest.warns(UserWarning, match="n_features_to_select=5, but only 3 of 3 features and groups may be selected"):
        assert L20Selector(5, feature_groups=np.arange(12) // 4).fit(X, y).support_.all()
    with pytest.raises(ValueError, match="All 12 features are excluded or constant"):
        L20Selector(2, exclude=range(12)).fit(X, y)
    with pytest.raises(ValueError, match="n_features_to_select=2 is less than the 3 features or groups"):
        L20Selector(2, include=[1, 2, 3]).fit(X, y)
    with pytest.raises(ValueError, match=r"n_features_to_select=0\.1 is less than the 3 features or groups"):
        L20Selector(0.1, include=[1, 2, 3]).fit(X, y)


def test_a_share_is_that_of_the_units():
    X, y = make_data(0)
    selector = L20Selector(0.5, feature_groups=np.arange(12) // 3).fit(X, y)
    assert selector.support_.sum() == 6
    assert selector.ranking_.max() == 4


def test_dear_features_are_taken_where_they_are_worth_it():
    X, y = make_data(0)
    cheap = L20Selector(1).fit(X, y)
    best = int(np.flatnonzero(cheap.support_)[0])
    assert not L20Selector(1, penalty_factor={best: 100.0}).fit(X, y).support_[best]
    assert L20Selector(12, penalty_factor={best: 100.0}).fit(X, y).support_[best]


def test_names_indices_and_masks_give_the_same_fit():
    frame, y = make_frame()
    mask = np.isin(frame.columns, ["g1", "g4"])
    fits = [
        L20Selector(4, include=include, exclude=["g2"], feature_groups={"x": ["g5", "g9"]}).fit(frame, y)
        for include in (["g1", "g4"], [1, 4], mask)
    ]
    for fit in fits:
        assert fit.ranking_.tolist() == fits[0].ranking_.tolist()
        assert fit.support_[[1, 4]].all()
        assert not fit.support_[2]
        assert fit.support_[5] == fit.support_[9]
    assert clone(fits[0]).fit(frame, y).ranking_.tolist() == fits[0].ranking_.tolist()
    table = fits[0].selection_frame()
    assert table["feature"].tolist()[:2] in (["g1", "g4"], ["g4", "g1"])
    assert table["rule"].tolist()[:2] == ["included", "included"]
    assert (np.diff(table["rank"]) >= 0).all()
    with pytest.raises(ValueError, match="include names 'g1', but X has no feature names"):
        L20Selector(4, include=["g1"]).fit(frame.to_numpy(), y)


def test_a_failed_wish_leaves_the_former_fit():
    X, y = make_data(0)
    selector = L20Selector(4).fit(X, y)
    before = selector.ranking_.tolist()
    with pytest.raises(ValueError, match="index 12"):
        selector.set_params(include=[12]).fit(X, y)
    assert selector.ranking_.tolist() == before


def test_class_weight_and_scale_go_with_the_wishes():
    """Weights of targets and deviations of features are part of the problem; constraints are not."""
    X, y = make_data(3)
    y[:20] = 0
    for scale in ("none", "zscore"):
        for class_weight in (None, "balanced", {0: 2.0, 1: 1.0, 2: 5.0}):
            options = {"scale": scale, "class_weight": class_weight, "ridge": 0.0}
            asked = L20Selector(5, exclude=[0, 6], **options).fit(X, y)
            without = L20Selector(5, **options).fit(np.delete(X, [0, 6], axis=1), y)
            assert np.delete(asked.ranking_, [0, 6]).tolist() == without.ranking_.tolist()
            np.testing.assert_allclose(asked.path_.losses, without.path_.losses, rtol=1e-9)


@pytest.mark.parametrize("wishes", [{}, {"include": [0, 11]}, {"feature_groups": np.arange(12) // 2}], ids=str)
def test_models_predict_with_what_was_selected(wishes):
    X, y = make_data(0)
    model = L20Classifier(4, **wishes).fit(X, y)
    assert model.score(X, y) > 0.6
    for k in (4, 3):
        model.set_params(n_features_to_select=k)
        assert np.array_equal(model.coef_.any(axis=0), model.support_)
    numbers = L20Regressor(4, ridge=1e-6, **wishes).fit(X, X[:, [2, 5]])
    columns = np.column_stack([X[:, numbers.support_], np.ones(60)])
    expected = columns @ np.linalg.lstsq(columns, X[:, [2, 5]])[0]
    np.testing.assert_allclose(numbers.predict(X), expected, atol=1e-4)


def test_a_saved_path_remembers_the_wishes(tmp_path):
    X, y = make_data(0)
    path = L20Selector(4, include=[3], exclude=[5], feature_groups=[[0, 1, 2]]).fit(X, y).path_
    path.save(tmp_path / "path.npz")
    loaded = SolutionPath.load(tmp_path / "path.npz")
    assert loaded.n_included == 1
    assert loaded.n_selectable == 9
    assert loaded.support(3).tolist() == path.support(3).tolist()
    assert RULES[loaded.rules[3]] == "included"
    assert RULES[loaded.rules[5]] == "excluded"


@pytest.mark.parametrize(
    "wishes", [{"include": ["g0", "g11"], "exclude": ["g5"]}, {"feature_groups": np.arange(12) // 3}], ids=str
)
@pytest.mark.parametrize("rule", ["best", "auto", 3])
def test_cross_validation_tries_only_what_may_be_had(wishes, rule):
    frame, y = make_frame()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The search for the number of features ended at its limit")
        selector = L20SelectorCV(rule, selector=L20Selector(**wishes), max_features=6, cv=3).fit(frame, y)
    support = selector.support_
    if "include" in wishes:
        assert support[[0, 11]].all()
        assert not support[5]
        assert selector.cv_results_["n_features"].tolist() == [2, 3, 4, 5, 6]
    else:
        assert selector.cv_results_["n_features"].tolist() == [3, 6, 9, 12]
        assert support.reshape(4, 3).all(axis=1).tolist() == support.reshape(4, 3).any(axis=1).tolist()
        assert support.sum() == (9 if rule == 3 else selector.n_features_)
    chosen = selector.cv_results_["n_features"][selector.best_index_]
    assert chosen == support.sum() == selector.n_features_
    assert selector.predict(frame).shape == (60,)


def test_a_series_belongs_to_the_features_that_its_index_names():
    frame, y = make_frame()
    backwards = frame.columns[::-1]
    factors = pd.Series(1.0, index=backwards)
    factors["g3"] = 0.0
    assert L20Selector(2, penalty_factor=factors).fit(frame, y).support_[3]
    assert L20Selector(2, include=pd.Series(backwards == "g3", index=backwards)).fit(frame, y).support_[3]
    groups = pd.Series(["both" if name in ("g2", "g9") else name for name in backwards], index=backwards)
    found = L20Selector(1, feature_groups=groups).fit(frame, y)
    assert found.ranking_[2] == found.ranking_[9]
    positional = pd.Series(factors.to_numpy()[::-1])  # index 0, 1, 2, ...: by position
    assert L20Selector(2, penalty_factor=positional).fit(frame.to_numpy(), y).support_[3]
    with pytest.raises(ValueError, match="penalty_factor is a Series whose index does not name the features of X"):
        L20Selector(2, penalty_factor=factors.rename({"g0": "other"})).fit(frame, y)
    with pytest.raises(ValueError, match=r"include\.to_numpy\(\) for the order of the columns"):
        L20Selector(2, include=pd.Series(backwards == "g3", index=backwards)).fit(frame.to_numpy(), y)
