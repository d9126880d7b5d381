from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from samples import CONTAINERS, SOLVERS, make_data
from select_findings import LETTERS, NAMES, findings, made
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss, roc_auc_score, roc_curve

from l20fs import Constraints, L20Selector, StabilitySelector
from l20fs.cli.options import SelectOptions
from l20fs.cli.select_content import build_content, selection_tsv
from l20fs.cli.select_sentences import data_warnings
from l20fs.estimators import feature_values, panels
from l20fs.estimators.panels import largest_k, ranked_units
from l20fs.evaluation.corrected_score import Estimate, fixed_score, wilson
from l20fs.evaluation.folds import make_stratified_folds
from l20fs.evaluation.metrics import METRICS
from l20fs.evaluation.predictions import predictions_by_k
from l20fs.methods import FisherScore
from l20fs.report import render
from l20fs.report.confusion import confused_pairs


def frame_of(text):
    return pd.read_csv(io.StringIO(text), sep="\t", keep_default_na=False)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(3))
def test_the_table_says_for_every_k_what_the_selection_frame_says(seed, solver):
    found = findings(
        L20Selector(4, solver=solver, max_features_to_select=12, constraints=Constraints(exclude=[3])), seed=seed
    )
    content = build_content(found)
    assert content.k_max == 11
    for k in range(1, content.k_max + 1):
        stated = frame_of(content.selection_tsv(k))
        expected = found.selector.set_params(n_features_to_select=k).to_frame(
            pd.DataFrame(found.samples.X, columns=NAMES), found.samples.y
        )
        same = {"feature": "feature", "rank": "rank", "level": "direction", "could_replace": "correlated_features"}
        for name, own in same.items():
            assert stated[name].tolist() == expected[own].tolist(), (k, name)
        np.testing.assert_allclose(stated["score"], expected["score"], rtol=1e-5)
        coef = found.selector.path_.refit(k).coef[:, found.selector.path_.support(k)]
        np.testing.assert_allclose(stated["failure_cost"], expected["loss_increase"], rtol=6e-3)
        for label, weights in zip(LETTERS, coef, strict=True):
            np.testing.assert_allclose(stated[f"coef_{label}"], weights, rtol=1e-3)


@given(st.integers(0, 2**32 - 1))
def test_substitutes_are_right_for_every_k_among_many_alike(seed):
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((60, 3))
    X = base[:, rng.integers(0, 3, 12)] + 0.3 * rng.standard_normal((60, 12))
    found = findings(X=X, predictions=None)
    content = build_content(found)
    for k in range(1, 13):
        expected = (
            found.selector.set_params(n_features_to_select=k)
            .to_frame(pd.DataFrame(X, columns=NAMES))["correlated_features"]
            .tolist()
        )
        assert [row["could_replace"] for _, row in frame_of(content.selection_tsv(k)).iterrows()] == expected


def test_the_list_of_substitutes_stays_short():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 1)) + 0.1 * rng.standard_normal((40, 300))
    y = LETTERS[rng.integers(0, 3, 40)]
    selector = L20Selector(100, max_features_to_select=100).fit(X, y)
    content = build_content(made(X, y, [f"x{j}" for j in range(300)], selector, 100))
    assert sum(map(len, content.substitutes)) < 100 * 15  # all pairs are 5000
    expected = selector.set_params(n_features_to_select=37).to_frame(X)["correlated_features"].tolist()
    assert frame_of(content.selection_tsv(37))["could_replace"].tolist() == expected


def test_curves_and_confusion_are_those_of_the_predictions():
    found = findings()
    content = build_content(found)
    assert [curve.name for curve in content.curves] == ["linear", "KNN-5"]
    for curve in content.curves:
        results = found.predictions.results(curve.name)
        np.testing.assert_allclose(curve.error[:10], results["standard_error"], rtol=1e-5)
        outputs = found.predictions.outputs(curve.name, found.metric)
        for k in range(10):
            expected = fixed_score(outputs, found.metric, k, folds=found.predictions.folds)
            assert (curve.mean[k], curve.lower[k], curve.upper[k]) == pytest.approx(expected, rel=1e-5)
        assert curve.mean[10:] == curve.error[10:] == curve.lower[10:] == curve.upper[10:] == [None, None]  # not measured
    for k in range(1, 11):
        np.testing.assert_array_equal(content.confusion[k - 1], found.predictions.confusion(k))
    assert "how well is not known" in content.answer
    assert "of samples right" in build_content(replace(found, score=Estimate(0.9, 0.8, 0.95))).answer
    assert content.chance == pytest.approx(1 / 3)


@pytest.mark.parametrize("most", [1, 90, 10**6])
def test_heat_of_a_group_is_the_mean_of_its_features(most, monkeypatch):
    monkeypatch.setattr(feature_values, "MOST_VALUES", most)  # one unit, three features or all of them at a time
    selector = L20Selector(2, max_features_to_select=9, constraints=Constraints(groups=[[0, 1, 2], [9, 5]]))
    found = findings(selector, predictions=None)
    z = (found.samples.X - found.samples.X.mean(axis=0)) / found.samples.X.std(axis=0)
    expected = [[z[found.samples.y == label][:, unit].mean() for label in LETTERS] for unit in ranked_units(selector)]
    np.testing.assert_allclose(build_content(found).heat, expected, atol=0.0051)


@pytest.mark.parametrize("make", CONTAINERS)
def test_heat_is_the_mean_z_score(make):
    drawn, _ = make_data(0)
    found = findings(X=make(drawn))
    z = (drawn - drawn.mean(axis=0)) / drawn.std(axis=0)
    order = found.selector.path_.order
    expected = [[z[found.samples.y == label, j].mean() for label in LETTERS] for j in order]
    np.testing.assert_allclose(build_content(found).heat, expected, atol=0.0051)


def test_features_of_the_same_level_stand_together_in_the_heatmap():
    content = build_content(findings(predictions=None))
    levels = content.columns["level"]
    assert len(set(levels)) > 2, "otherwise this test says nothing"
    assert dict(content.heat_groups) == {
        level or "no difference": [place for place, other in enumerate(levels) if other == level] for level in levels
    }
    *headings, last = [heading for heading, _ in content.heat_groups]
    classes = [heading.split(" in ")[1] for heading in headings]
    assert (classes, last) == (sorted(classes), "no difference")


def test_a_constant_feature_that_is_included_has_no_heat_and_no_substitute():
    X, _ = make_data(0)
    X[:, 5] = 2.0
    selector = L20Selector(4, max_features_to_select=12, constraints=Constraints(include=[5]))
    with pytest.warns(UserWarning, match="included features are constant"):
        found = findings(selector, X=X, predictions=None)
    content = build_content(found)
    place = content.features.index("g5")
    assert content.heat[place] == [0.0, 0.0, 0.0]
    assert content.substitutes[place] == []


@pytest.mark.parametrize("solver", SOLVERS)
def test_lines_are_the_norms_of_the_path(solver):
    found = findings(L20Selector(4, solver=solver, max_features_to_select=12))
    path, content = found.selector.path_, build_content(found)
    assert len(content.path.norms) == 12
    stages = np.unique(np.linspace(0, len(path.alphas) - 1, min(200, len(path.alphas))).round().astype(int))
    np.testing.assert_allclose(content.path.alphas, path.alphas[stages], rtol=1e-4)
    for place, feature in enumerate(path.order):
        for column, stage in enumerate(stages):
            norms = dict(zip(path.stage_rows(stage), path.stage_norms(stage), strict=True))
            assert content.path.norms[place][column] == pytest.approx(norms.get(feature, 0.0), rel=1e-4)


def test_stability_is_that_of_the_resamples():
    found = findings()
    stable = StabilitySelector(L20Selector(4, max_features_to_select=12), n_resamples=10, random_state=0).fit(
        found.samples.X, found.samples.y
    )
    content = build_content(replace(found, stability=stable))
    order = found.selector.path_.order
    assert content.stability.frequencies == pytest.approx(stable.frequencies_[order[:4]].tolist())
    assert content.stability.index == stable.stability_
    assert [float(text) for text in content.columns["stability"]] == pytest.approx(stable.frequencies_[order].tolist())
    assert any(text.startswith("Stability index: on 10 random halves") for text in content.sentences)


def test_methods_without_weights_have_no_columns_of_them():
    found = findings(FisherScore(10))
    content = build_content(found)
    assert (content.coef, content.path) == (None, None)
    assert list(content.columns) == ["rank", "score", "level"]
    order = np.argsort(found.selector.ranking_)
    assert content.features == [NAMES[j] for j in order]
    assert "rule" not in content.selection_tsv(3)


def test_groups_are_shown_as_groups():
    selector = L20Selector(2, max_features_to_select=12, constraints=Constraints(groups=[[0, 1, 2], [9, 5]]))
    groups = SelectOptions(feature_groups={"left": ["g0", "g1", "g2"], "right": ["g9", "g5"]})
    found = findings(selector, k=2, predictions=None, options=groups)
    content = build_content(found)
    assert (content.k_max, content.coef) == (9, None)
    members = dict(zip(content.features, content.columns["members"], strict=True))
    assert members["left"] == "g0, g1, g2"
    assert members["right"] == "g5, g9"
    assert members["g7"] == "g7"
    assert content.answer.startswith("2 of 9 feature groups")


def test_what_is_included_is_there_for_every_k():
    found = findings(L20Selector(4, max_features_to_select=12, constraints=Constraints(include=[0, 1])), predictions=None)
    content = build_content(found)
    assert set(content.features[:2]) == {"g0", "g1"}
    weights = found.selector.path_.refit(2).coef[:, found.selector.path_.order[0]]
    np.testing.assert_allclose([float(text) for text in content.coef[0][0]], weights, rtol=1e-3)


def test_more_features_than_the_page_shows_are_all_in_the_table(monkeypatch):
    found = findings(k=9)
    whole = build_content(found)
    monkeypatch.setattr(panels, "MOST_FEATURES", 5)
    content = build_content(replace(found, warnings=data_warnings(found)))
    assert (content.k, content.k_max) == (9, 5)
    assert selection_tsv(found, content) == whole.selection_tsv(9)
    assert any("the first 5 of the 9 features" in text for text in content.warnings)
    assert "<html" in render(content)
    other = findings(FisherScore(10), k=9)
    assert selection_tsv(other, build_content(other)).count("\n") == 10


def test_notes_of_the_run_are_among_the_warnings():
    content = build_content(findings(warnings=["something odd"], k_rule="1se"))
    assert content.warnings[-1] == "something odd"
    assert content.k_rule == "smallest within one standard error of the best"


def test_many_classes_have_a_list_of_confusions_and_rates():
    rng = np.random.default_rng(0)
    y = np.array([f"c{i % 40:02d}" for i in range(120)])
    X = rng.standard_normal((120, 30)) + (np.arange(120) % 40)[:, None] * rng.standard_normal(30)
    selector = L20Selector(3, max_features_to_select=30).fit(X, y)
    predictions = predictions_by_k(selector, X, y, range(1, 4), make_stratified_folds(y))
    content = build_content(made(X, y, [f"g{j}" for j in range(30)], selector, 3, predictions))
    assert content.confusion is None
    assert content.reliability is None
    for k in (1, 2, 3):
        counts = predictions.confusion(k)
        assert content.confused[k - 1] == confused_pairs(counts.tolist())
        right = [rate.sensitivity[0] for rate in content.rates[k - 1]]
        np.testing.assert_allclose(right, counts.diagonal() / counts.sum(axis=1), atol=5e-5)
    assert content.confused[3:] == [None] * (content.k_max - 3)  # not measured


def test_lookup_has_all_features_with_their_ranks_entries_and_nearest_members():
    X, codes = make_data(5)
    X[:, 6] = 1.0
    found = findings(k=4, X=X, y=LETTERS[codes])
    path, lookup = found.path, build_content(found).lookup
    order = np.argsort(found.selector.ranking_, kind="stable")
    assert lookup.names == [NAMES[j] for j in order]
    assert lookup.names[-1] == "g6"
    assert lookup.ranks == [*range(1, 12), 0]
    assert (lookup.n_ranked, lookup.n_followed) == (11, 11)
    np.testing.assert_allclose(lookup.entry, path.entry_alphas[order[: len(lookup.entry)]], rtol=1e-3)
    assert np.isnan(path.entry_alphas[order[len(lookup.entry) :]]).all()
    with np.errstate(invalid="ignore"):
        matrix = np.abs(np.nan_to_num(np.corrcoef(X.T)))[:, order[:4]]
    assert lookup.nearest == [-1 if j == 6 else int(matrix[j].argmax()) for j in order]
    np.testing.assert_allclose(np.abs(lookup.correlations), matrix[order].max(axis=1), atol=0.0051)
    other = build_content(findings(FisherScore(4), k=4)).lookup
    assert (other.entry, other.n_followed, other.ranks) == (None, 0, [])


@given(st.integers(2, 500))
def test_the_page_has_room_for_the_weights(n_classes):
    k = largest_k(n_classes)
    assert 1 <= k <= 100
    assert k * k * n_classes <= 80_000
    assert k == 100 or (k + 1) ** 2 * n_classes > 80_000


def test_a_sparse_table_is_never_made_dense(monkeypatch):
    drawn, _ = make_data(0)
    X = np.where(np.abs(drawn) > 0.8, drawn, 0.0)
    dense, sparse = findings(X=X), findings(X=sp.csr_array(X))
    expected = build_content(dense)
    original = sp.csr_array.toarray

    def refuse_all_columns(self, *arguments, **named):
        assert self.shape != X.shape
        return original(self, *arguments, **named)

    monkeypatch.setattr(sp.csr_array, "toarray", refuse_all_columns)
    monkeypatch.setattr(panels, "MOST_FEATURES", 5)
    content = build_content(sparse)
    assert content.features == expected.features[:5]
    assert content.heat == expected.heat[:5]


def test_a_separating_feature_is_told_of_in_wide_tables_only():
    rng = np.random.default_rng(0)
    y = np.repeat(LETTERS, 4)
    for n_features, is_told in ((13, True), (12, False)):
        X = np.hstack([np.repeat([5.0, 1.0, 8.0], 4)[:, None], rng.standard_normal((12, n_features - 1))])
        found = made(X, y, [f"g{j}" for j in range(n_features)], L20Selector(2, max_features_to_select=5).fit(X, y), 2)
        assert any("'g0' alone separates all classes" in text for text in found.warnings) == is_told


def test_counts_are_told_of_unless_logarithms_are_taken(monkeypatch):
    monkeypatch.setattr("l20fs.evaluation.data_checks.FEWEST_COUNTED", 12)
    counts = np.random.default_rng(0).negative_binomial(0.3, 0.01, size=(30, 12)).astype(float)
    for is_log in (False, True):
        found = findings(X=counts[np.arange(make_data(0)[0].shape[0]) % 30], options=SelectOptions(is_log=is_log))
        assert any("raw counts" in text for text in found.warnings) != is_log


def two_classes(n_samples=200, **changes):
    rng = np.random.default_rng(0)
    y = rng.choice(LETTERS[:2], n_samples)
    X = rng.standard_normal((n_samples, 12)) + 0.4 * (y == "b")[:, None]
    return findings(X=X, y=y, **changes)


def test_rates_are_those_of_the_confusion_matrix():
    found = findings()
    content = build_content(found)
    for k in (1, 4, 10):
        truth, predicted = found.predictions.targets.codes, found.predictions.predicted["linear"][:, k - 1]
        for code, rate in enumerate(content.rates[k - 1]):
            n_found = int(((predicted == code) & (truth == code)).sum())
            expected = n_found / 20, *wilson(n_found, 20)
            assert rate.sensitivity == pytest.approx(expected, abs=1e-4)
            assert rate.specificity[0] == pytest.approx((predicted != code)[truth != code].mean(), abs=1e-4)
            assert rate.n_samples == 20
    assert content.rates[10:] == [None, None]  # not measured
    assert content.roc is None


def test_the_roc_curve_is_that_of_scikit_learn_with_fewer_points():
    found = two_classes()
    content = build_content(found)
    for k in (1, 7):
        scores = found.predictions.probabilities[:, k - 1, 1]
        shares = np.round(roc_curve(found.samples.y == "b", scores, drop_intermediate=False)[:2], 4)
        assert set(content.roc[k - 1].points) <= set(zip(*shares.tolist(), strict=True))
        assert 50 <= len(content.roc[k - 1].points) <= 60
        assert content.roc[k - 1].auc == pytest.approx(roc_auc_score(found.samples.y == "b", scores))
    outputs = found.predictions.outputs("linear", METRICS["roc_auc"])
    expected = fixed_score(outputs, METRICS["roc_auc"], found.k - 1, folds=found.predictions.folds)
    chosen = content.roc[found.k - 1]
    assert (chosen.lower, chosen.upper) == pytest.approx((expected.lower, expected.upper), rel=1e-3)
    assert [roc.lower for roc in content.roc[: found.k - 1]] == [None] * (found.k - 1)


@pytest.mark.parametrize("make", [findings, two_classes])
def test_reliability_is_that_of_the_probabilities_of_the_predicted_classes(make):
    found = make()
    content = build_content(found)
    codes = found.predictions.targets.codes
    for k in (2, 6):
        probabilities = found.predictions.probabilities[:, k - 1]
        highest, is_right = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
        shares, means = calibration_curve(is_right, highest, n_bins=10)
        np.testing.assert_allclose(
            [point[:2] for point in content.reliability[k - 1].bins], np.stack([means, shares], 1), atol=1e-4
        )
        assert sum(point[2] for point in content.reliability[k - 1].bins) == len(codes)
        assert content.reliability[k - 1].log_loss == pytest.approx(log_loss(codes, probabilities), rel=1e-3)


def test_the_page_of_a_regression_is_made():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 12))
    found = findings(L20Selector(4, max_features_to_select=12, task="regression"), X=X, y=X @ rng.standard_normal(12))
    content = build_content(found)
    assert len(content.numbers.measured[0]) == 234  # every third
    assert "<html" in render(content)


def test_leaving_a_group_out_has_its_cost_beyond_the_page_too(monkeypatch):
    found = findings(L20Selector(4, max_features_to_select=6, constraints=Constraints(groups=[[0, 1], [2, 3]])))
    content = build_content(found)
    path = found.selector.path_
    for k in (1, 4):
        heads = np.array([unit[0] for unit in found.units[:k]])
        costs = dict(zip(path.support(k), path.failure_costs(k), strict=True))
        stated = [float(text) for text in content.failure_costs[k - 1]]
        np.testing.assert_allclose(stated, [costs[head] for head in heads], rtol=6e-3)
    expected = frame_of(content.selection_tsv(4))
    monkeypatch.setattr("l20fs.cli.select_findings.largest_k", lambda n_classes: 2)
    short = build_content(found)
    assert short.k_max == 2
    assert frame_of(selection_tsv(found, short))["failure_cost"].tolist() == expected["failure_cost"].tolist()
    assert build_content(findings(FisherScore(4))).failure_costs is None
