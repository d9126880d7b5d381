"""Pictures: what is drawn is what was given, names are shown as they are, and no text lies on another."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from samples import SOLVERS, make_data, make_frame, make_solver
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest

from l20fs import L20Selector, L20SelectorCV, StabilitySelector, paper_settings, plots
from l20fs.data import load_srbct
from l20fs.plots import PathDisplay, ScoreCurveDisplay, SelectionHeatmapDisplay, StabilityDisplay
from l20fs.plots.canvas import MOST_NAMES, PALE, spread
from l20fs.text import shorten

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from drawing import drawn_texts  # noqa: E402

ODD = ["$x^2$", "a_b", "<b>", "100%", "\\alpha", "$", "A&B", "{x}", "_hidden", "^", "#1", "~"]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def visible_texts(display):
    return drawn_texts(display.figure_)


def assert_nothing_overlaps(display):
    """No two texts share a spot, and all of them are within the figure."""
    texts = visible_texts(display)
    boxes = [text.get_window_extent() for text in texts]
    width, height = display.figure_.canvas.get_width_height()
    for i, box in enumerate(boxes):
        assert box.x0 >= -1, texts[i]
        assert box.y0 >= -1, texts[i]
        assert box.x1 <= width + 1, texts[i]
        assert box.y1 <= height + 1, texts[i]
        for j in range(i):
            is_apart = (
                box.x1 <= boxes[j].x0 + 1
                or boxes[j].x1 <= box.x0 + 1
                or box.y1 <= boxes[j].y0 + 2
                or boxes[j].y1 <= box.y0 + 2
            )
            assert is_apart, f"{texts[i]} and {texts[j]}"


def row_names(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


class Fitted(BaseEstimator):
    """An estimator with the attributes it is given."""

    def fit(self, **attributes):
        vars(self).update(attributes)
        return self


# ---------------------------------------------------------------------------------------------------------------- score


def fitted_cv(**changes):
    results = {
        "ridge": np.repeat([0.1, 10.0], 4),
        "alpha": np.full(8, np.nan),
        "n_features": np.tile([1.0, 2.0, 3.0, 4.0], 2),
        "mean_test_score": np.array([0.5, 0.7, 0.8, 0.75, 0.6, 0.85, 0.9, 0.9]),
        "standard_error": np.linspace(0.01, 0.08, 8),
    } | changes.pop("results", {})
    attributes = {"cv_results_": results, "ridge_": 10.0, "alpha_": None, "support_": np.array([True, True, False])}
    return Fitted().fit(**(attributes | {"scoring": "balanced_accuracy"} | changes))


def band_of(display):
    """Return the lower and the upper edge of the band by place."""
    edges: dict[float, set[float]] = {}
    for x, y in display.band_.get_paths()[0].vertices:
        edges.setdefault(x, set()).add(round(y, 12))
    return {x: (min(ys), max(ys)) for x, ys in edges.items()}


def test_score_curve_shows_the_chosen_ridge_with_its_band_and_marks():
    display = ScoreCurveDisplay.from_estimator(fitted_cv())
    assert display.line_.get_xydata().tolist() == [[1, 0.6], [2, 0.85], [3, 0.9], [4, 0.9]]
    error = np.linspace(0.01, 0.08, 8)[4:]
    assert band_of(display) == {
        k: (pytest.approx(m - e), pytest.approx(m + e))
        for k, m, e in zip([1, 2, 3, 4], [0.6, 0.85, 0.9, 0.9], error, strict=True)
    }
    assert display.best_.get_xydata().tolist() == [[3, 0.9]], "of equal scores the one with fewer features"
    assert display.rule_.get_ydata() == pytest.approx([0.9 - error[2]] * 2)
    assert list(display.chosen_.get_xdata()) == [2, 2]
    assert display.other_lines_ == {}
    assert display.ax_.get_xlabel() == "number of features"
    assert display.ax_.get_ylabel() == "cross-validated balanced accuracy"
    assert display.ax_.get_xscale() == "linear"
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert {"highest: 3 features", "chosen: 2 features", "± standard error"} <= set(legend)
    assert_nothing_overlaps(display)


def test_score_curve_of_every_ridge():
    display = ScoreCurveDisplay.from_estimator(fitted_cv(), all_ridges=True)
    assert list(display.other_lines_) == [0.1]
    assert display.other_lines_[0.1].get_ydata().tolist() == [0.5, 0.7, 0.8, 0.75]
    assert display.line_.get_ydata().tolist() == [0.6, 0.85, 0.9, 0.9]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend[:2] == ["ridge 0.1", "ridge 10 (chosen)"]


def test_score_curve_marks_the_highest_score_of_all_ridges_as_the_choice_does():
    display = ScoreCurveDisplay.from_estimator(fitted_cv(ridge_=0.1))
    assert display.line_.get_ydata().tolist() == [0.5, 0.7, 0.8, 0.75]
    assert display.best_.get_xydata().tolist() == [[3, 0.9]]
    assert display.best_.get_label() == "highest: 3 features, ridge 10"
    assert display.rule_.get_ydata() == pytest.approx([0.9 - 0.07] * 2)


def test_score_curve_along_lambda_falls_and_prefers_the_sparser_model():
    results = {"alpha": np.tile([0.01, 0.1, 1.0, 10.0], 2)}
    display = ScoreCurveDisplay.from_estimator(fitted_cv(results=results, alpha_=0.1, scoring=max))
    assert display.line_.get_xydata().tolist() == [[10.0, 0.9], [1.0, 0.9], [0.1, 0.85], [0.01, 0.6]]
    assert display.best_.get_xydata().tolist() == [[10.0, 0.9]]
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.xaxis.get_inverted()
    assert display.ax_.get_xlabel().startswith("λ")
    assert display.ax_.get_ylabel() == "cross-validated score"
    assert list(display.chosen_.get_xdata()) == [0.1, 0.1]


@pytest.fixture(scope="module")
def planted():
    X, y = make_data(n_samples=90)
    return X, y


def test_score_curve_of_a_cross_validation(planted):
    cv = L20SelectorCV("1se", ridge=[0.1, 10.0], max_features=6).fit(*planted)
    display = ScoreCurveDisplay.from_estimator(cv, all_ridges=True)
    results = cv.cv_results_
    for ridge, line in {cv.ridge_: display.line_, **display.other_lines_}.items():
        assert np.array_equal(line.get_ydata(), results["mean_test_score"][results["ridge"] == ridge])
    assert list(display.chosen_.get_xdata()) == [cv.n_features_] * 2
    on_curve = display.line_.get_ydata()[list(display.line_.get_xdata()).index(cv.n_features_)]
    assert on_curve == cv.best_score_
    assert on_curve >= display.rule_.get_ydata()[0] - 1e-9, "that is what 1se means"
    assert display.best_.get_ydata() == results["mean_test_score"].max()
    assert display.ax_.get_ylabel() == "cross-validated accuracy"
    cv.set_params(n_features_to_select=5)
    assert list(ScoreCurveDisplay.from_estimator(cv).chosen_.get_xdata()) == [5, 5], "what is selected now"
    assert len(PathDisplay.from_estimator(cv).labels_) == 5
    assert SelectionHeatmapDisplay.from_estimator(cv, *planted).means.shape == (5, 3)


def test_score_curve_of_a_cross_validation_over_lambdas(planted):
    X, y = planted
    top = L20Selector(1).fit(X, y).path_.alphas[0]
    alphas = [0.9 * top, 0.5 * top, 0.1 * top]
    cv = L20SelectorCV("best", alpha=alphas, estimator="regressor").fit(X, y.astype(float))
    display = ScoreCurveDisplay.from_estimator(cv)
    assert display.line_.get_xdata().tolist() == alphas
    assert list(display.chosen_.get_xdata()) == [cv.alpha_] * 2
    assert display.best_.get_xdata() == [cv.alpha_]
    assert display.ax_.get_ylabel() == "cross-validated R²"


def test_score_curve_of_a_given_size_follows_the_path_of_the_chosen_lambda(planted):
    X, y = planted
    top = L20Selector(1).fit(X, y).path_.alphas[0]
    cv = L20SelectorCV(2, alpha=[0.5 * top, 0.1 * top], max_features=4).fit(X, y)
    display = ScoreCurveDisplay.from_estimator(cv)
    shown = cv.cv_results_["alpha"] == cv.alpha_
    assert display.line_.get_xdata().tolist() == [1, 2, 3, 4]
    assert np.array_equal(display.line_.get_ydata(), cv.cv_results_["mean_test_score"][shown])
    assert list(display.chosen_.get_xdata()) == [2, 2]


def test_score_curve_from_arrays_in_any_order():
    display = ScoreCurveDisplay(n_features=[50, 1, 5], mean=[0.9, 0.5, 0.8], error=[0.1, 0.2, 0.3]).plot()
    assert display.line_.get_xydata().tolist() == [[1, 0.5], [5, 0.8], [50, 0.9]]
    assert band_of(display)[5] == (0.5, 1.1)
    assert display.chosen_ is None
    assert display.ax_.get_xscale() == "log", "so uneven steps are even there"
    single = ScoreCurveDisplay(n_features=[1], mean=[0.9], error=[0.1], chosen=1).plot()
    assert "chosen: 1 feature" in [text.get_text() for text in single.ax_.get_legend().get_texts()]
    assert_nothing_overlaps(single)


def test_score_curve_refuses_what_does_not_belong_together():
    with pytest.raises(ValueError, match="needs either n_features or alpha"):
        ScoreCurveDisplay(mean=[1.0], error=[1.0])
    with pytest.raises(ValueError, match="needs either n_features or alpha"):
        ScoreCurveDisplay(n_features=[1], alpha=[1.0], mean=[1.0], error=[1.0])
    with pytest.raises(ValueError, match="error has 1 entries for 2 points"):
        ScoreCurveDisplay(n_features=[1, 2], mean=[1.0, 1.0], error=[1.0])
    with pytest.raises(ValueError, match=r"chosen_ridge=None is none of \[1, 2\]"):
        ScoreCurveDisplay(n_features=[1, 1], mean=[1.0, 1.0], error=[0.0, 0.0], ridge=[1, 2])
    with pytest.raises(ValueError, match=r"chosen_ridge=3 is none of \[1, 2\]"):
        ScoreCurveDisplay(n_features=[1, 1], mean=[1.0, 1.0], error=[0.0, 0.0], ridge=[1, 2], chosen_ridge=3)


# ----------------------------------------------------------------------------------------------------------------- path


def assert_lines_are_the_path(display, path, names, selected):
    by_name = dict(zip(display.names, display.lines_, strict=True))
    visited = set(path.indices.tolist())
    assert set(by_name) == {names[j] for j in visited}
    for j in visited:
        expected = np.full(len(path.alphas), np.nan)
        for stage in range(len(path.alphas)):
            rows, norms = path.stage_rows(stage), path.stage_norms(stage)
            if j in rows:
                expected[stage] = norms[rows.tolist().index(j)]
        line = by_name[names[j]]
        assert np.array_equal(line.get_xdata(), path.alphas)
        assert np.array_equal(line.get_ydata(), expected, equal_nan=True)
        assert (line.get_color() != PALE) == selected[j]


@pytest.mark.parametrize("solver", SOLVERS)
def test_path_lines_are_the_norms_of_every_stage(solver):
    X, y = make_frame()
    selector = L20Selector(3, solver=make_solver(solver, max_iter=5000), max_features=6).fit(X, y)
    display = PathDisplay.from_estimator(selector)
    assert_lines_are_the_path(display, selector.path_, X.columns, selector.support_)
    assert {label.get_text() for label in display.labels_} == set(X.columns[selector.support_])
    assert display.ax_.get_xscale() == "log"
    left, right = display.ax_.get_xlim()
    assert left > selector.path_.alphas[0]
    assert right < selector.path_.alphas[-1]
    assert_nothing_overlaps(display)


def test_path_of_the_paper_with_many_features_that_are_not_selected():
    X, y = make_data(n_features=300)
    selector = L20Selector(4, **paper_settings()).fit(X, y)
    display = PathDisplay.from_estimator(selector)
    assert len(display.lines_) > 50
    assert_lines_are_the_path(display, selector.path_, [f"x{j}" for j in range(300)], selector.support_)
    assert len(display.labels_) == 4


def test_path_labels_stand_at_the_ends_of_their_lines_in_their_colours():
    display = PathDisplay(
        alphas=[4.0, 2.0, 1.0],
        norms=[[0.0, 1.0, 2.0], [3.0, 3.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, 0.5]],
        names=["grows", "leaves", "late", "other"],
        selected=[True, True, True, False],
    ).plot()
    assert [label.get_text() for label in display.labels_] == ["grows", "leaves", "late"]
    leaders = np.array(display.leaders_.get_segments())
    assert leaders[:, 0].tolist() == [[1.0, 2.0], [2.0, 3.0], [1.0, 1.0]]
    at_label = display.ax_.transAxes.inverted().transform(display.ax_.transData.transform(leaders[:, 1]))
    assert np.allclose(at_label[:, 0], 1.05)
    assert np.allclose(at_label[:, 1], [label.get_position()[1] for label in display.labels_])
    colours = matplotlib.colors.to_rgba_array([label.get_color() for label in display.labels_])
    assert np.array_equal(display.leaders_.get_colors(), colours)
    assert [label.get_color() for label in display.labels_] == [line.get_color() for line in display.lines_[:3]]
    assert len({line.get_color() for line in display.lines_}) == 4
    assert [line.get_markevery() for line in display.lines_] == [[1], [0], [2], [0, 2]], "a dot where a feature enters"
    assert_nothing_overlaps(display)


def test_path_from_a_path_without_names_shows_the_last_lambda():
    X, y = make_data()
    path = L20Selector(3, solver="ahiht").fit(X, y).path_
    display = PathDisplay.from_path(path)
    assert {label.get_text() for label in display.labels_} == {f"x{j}" for j in path.coef_rows}
    with pytest.raises(ValueError, match="names has 2 entries for 12 features of the path"):
        PathDisplay.from_path(path, ["a", "b"])


@pytest.mark.parametrize("k", [1, 20, 60, 300])
def test_path_names_as_many_as_there_is_room_for(k):
    rng = np.random.default_rng(0)
    norms = np.cumsum(rng.random((k, 5)), axis=1)
    display = PathDisplay(
        alphas=0.5 ** np.arange(5), norms=norms, names=[f"a long name of gene {j}" for j in range(k)], selected=np.ones(k)
    ).plot()
    texts = {text.get_text() for text in visible_texts(display)}
    from_above = sorted(display.lines_, key=lambda line: -line.get_ydata()[-1])
    assert all(one.get_color() != two.get_color() for one, two in pairwise(from_above)), "neighbours are told apart"
    if k <= MOST_NAMES:
        assert len(display.labels_) == k
    else:
        assert MOST_NAMES <= len(display.labels_) < MOST_NAMES + 10
        assert f"… and {k - len(display.labels_)} more" in texts
    assert_nothing_overlaps(display)


def test_path_without_any_feature():
    X, y = make_data()
    selector = L20Selector(3, alpha=1e6).fit(X, y)
    display = PathDisplay.from_estimator(selector)
    assert display.lines_ == []
    assert "no features selected" in [text.get_text() for text in visible_texts(display)]


# -------------------------------------------------------------------------------------------------------------- heatmap


def class_means(X, y):
    """Z-scores over all samples, averaged in each class: (n_classes, n_features)."""
    return ((X - X.mean()) / X.std(ddof=0)).groupby(y).mean()


@pytest.mark.parametrize("container", ["frame", "array", "csr", "csc", "polars", "float32"])
def test_heatmap_shows_the_mean_z_scores_of_the_selected_features(container):
    X, y = make_frame()
    X = X.where(X.abs() > 0.3, 0.0)
    labels = np.array(["b", "a", "c"])[y]
    given_X = {
        "frame": X,
        "array": X.to_numpy(),
        "csr": sp.csr_array(X.to_numpy()),
        "csc": sp.csc_matrix(X.to_numpy()),
        "polars": pl.from_pandas(X),
        "float32": X.astype(np.float32),
    }[container]
    selector = L20Selector(5).fit(given_X, labels)
    display = SelectionHeatmapDisplay.from_estimator(selector, given_X, labels)
    expected = class_means(X, labels)
    names = [f"g{int(name[1:])}" for name in row_names(display)]
    assert sorted(names) == sorted(X.columns[selector.support_])
    drawn = display.image_.get_array()
    assert np.allclose(drawn, expected[names].T, atol=1e-5 if container == "float32" else 1e-9)
    highest = np.argmax(drawn, axis=1)
    assert np.all(np.diff(highest) >= 0), "the features of a class stand together"
    assert np.all(np.diff(drawn.max(axis=1))[np.diff(highest) == 0] <= 0)
    low, high = display.image_.get_clim()
    assert -low == high == np.abs(drawn).max()
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["a\n(20)", "b\n(20)", "c\n(20)"]
    assert_nothing_overlaps(display)


def test_heatmap_of_other_samples_and_of_any_selector():
    X, y = make_frame()
    selector = SelectKBest(k=3).fit(X, y)
    display = SelectionHeatmapDisplay.from_estimator(selector, X[:31], y[:31])
    assert np.allclose(display.image_.get_array(), class_means(X[:31], y[:31])[row_names(display)].T)
    assert display.sizes.tolist() == np.bincount(y[:31]).tolist()


def test_heatmap_reads_only_the_selected_columns():
    """The others may be so large that their sums overflow."""
    X, y = make_data()
    selector = L20Selector(3).fit(X, y)
    huge = np.where(selector.support_, X, np.where(np.arange(60)[:, None] > 0, 1.7e308, 0.0))
    display = SelectionHeatmapDisplay.from_estimator(selector, huge, y)
    assert np.array_equal(display.means, SelectionHeatmapDisplay.from_estimator(selector, X, y).means)


def test_heatmap_refuses_other_data():
    X, y = make_frame()
    selector = L20Selector(3).fit(X, y)
    draw = SelectionHeatmapDisplay.from_estimator
    with pytest.raises(ValueError, match="feature names should match"):
        draw(selector, X.rename(columns={"g3": "other"}), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        draw(selector, X, y[:50])
    with pytest.raises(ValueError, match="SelectionHeatmapDisplay needs one class label per sample"):
        draw(selector, X, np.linspace(0.0, 1.0, 60))
    with pytest.raises(ValueError, match="SelectionHeatmapDisplay needs one class label per sample"):
        draw(selector, X, np.eye(3, dtype=int)[y])
    with pytest.raises(ValueError, match="one class only"):
        draw(selector, X, np.zeros(60, dtype=int))
    with pytest.raises(ValueError, match="missing values"):
        draw(selector, X.mask(X > 2.0), y)
    assert selector.feature_names_in_.tolist() == X.columns.tolist()


@pytest.mark.parametrize("k", [1, 20, 50, 300])
@pytest.mark.parametrize("n_classes", [2, 8, 100])
def test_heatmap_of_any_size_is_readable(k, n_classes):
    rng = np.random.default_rng(k)
    display = SelectionHeatmapDisplay(
        means=rng.standard_normal((k, n_classes)),
        names=[f"gene {j}" for j in range(k)],
        classes=[f"type {c}" for c in range(n_classes)],
        sizes=np.arange(n_classes),
    ).plot()
    assert_nothing_overlaps(display)
    rows = display.ax_.get_yticks().tolist()
    assert row_names(display) == [f"gene {row}" for row in rows]
    assert len(rows) == k if k <= MOST_NAMES else 40 <= len(rows) <= 60
    assert len(set(np.diff(rows))) <= 1, "evenly thinned"


def test_heatmap_without_any_feature():
    X, y = make_frame()
    selector = L20Selector(3, alpha=1e6).fit(X, y)
    display = SelectionHeatmapDisplay.from_estimator(selector, X, y)
    assert display.means.shape == (0, 3)
    assert "no features selected" in [text.get_text() for text in visible_texts(display)]


# ------------------------------------------------------------------------------------------------------------ stability


def fitted_stability(n_features=6, **changes):
    frequencies = np.linspace(0.0, 1.0, n_features)
    attributes = {
        "frequencies_": frequencies,
        "ranking_": np.arange(n_features, 0, -1),
        "support_": frequencies >= 0.6,
        "threshold": 0.6,
        "n_features_to_select": None,
        "standard_errors_": np.minimum(0.05, 1.0 - frequencies),
        "sizes_": np.full(50, 3),
        "stability_": 0.7123,
        "stability_interval_": (0.654, 0.766),
        "n_features_in_": n_features,
    }
    return Fitted().fit(**(attributes | changes))


def test_stability_bars_are_the_frequencies_best_on_top():
    display = StabilityDisplay.from_estimator(fitted_stability(feature_names_in_=np.array(list("abcdef"))))
    assert row_names(display) == list("fedcb"), "a was never selected"
    assert [bar.get_width() for bar in display.bars_] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])
    assert [bar.get_y() + bar.get_height() / 2 for bar in display.bars_] == pytest.approx([0, 1, 2, 3, 4])
    assert display.ax_.yaxis.get_inverted()
    colours = [bar.get_facecolor() for bar in display.bars_]
    assert colours[0] == colours[1] == colours[2] != colours[3] == colours[4]
    assert list(display.threshold_line_.get_xdata()) == [0.6, 0.6]
    segments = display.bars_.errorbar.lines[2][0].get_segments()
    for frequency, segment in zip([1.0, 0.8, 0.6, 0.4, 0.2], segments, strict=True):
        error = min(0.05, 1.0 - frequency)
        assert segment[:, 0] == pytest.approx([frequency - error, frequency + error])
    assert display.ax_.get_xlabel() == (
        "share of 50 resamples in which the feature is selected (± standard error)\n"
        "stability index of the selection: 0.71 (0.65 to 0.77)"
    )
    assert_nothing_overlaps(display)


def test_stability_whiskers_end_where_shares_end():
    display = StabilityDisplay(frequencies=[0.9, 0.1], names=["a", "b"], errors=[0.2, 0.3]).plot()
    ends = [segment[:, 0] for segment in display.bars_.errorbar.lines[2][0].get_segments()]
    assert ends[0] == pytest.approx([0.7, 1.0])
    assert ends[1] == pytest.approx([0.0, 0.4])


def test_stability_of_a_real_selection():
    tumours = load_srbct()
    frame = pd.DataFrame(tumours.data[:, :300], columns=tumours.feature_names[:300])
    stable = StabilitySelector(L20Selector(10), n_resamples=10, random_state=0).fit(frame, tumours.target)
    display = StabilityDisplay.from_estimator(stable)
    table = stable.selection_frame().head(30)
    assert row_names(display) == table["feature"].tolist()
    assert [bar.get_width() for bar in display.bars_] == pytest.approx(table["stability"].tolist())
    assert display.errors == pytest.approx(table["standard_error"].tolist())
    assert "share of 10 resamples" in display.ax_.get_xlabel()
    assert display.threshold_line_ is not None
    by_number = StabilityDisplay.from_estimator(stable.set_params(n_features_to_select=5))
    assert by_number.threshold_line_ is None, "the most frequent five, whatever the threshold"
    assert by_number.selected.sum() == 5
    single = StabilitySelector(L20Selector(10), n_resamples=2, random_state=0).fit(frame, tumours.target)
    assert StabilityDisplay.from_estimator(single).bars_.errorbar is None


def test_stability_without_what_is_optional():
    display = StabilityDisplay(frequencies=[0.9, 0.1], names=["a", "b"]).plot()
    assert display.threshold_line_ is None
    assert display.bars_.errorbar is None
    assert display.ax_.get_xlabel() == "share of resamples in which the feature is selected"
    with pytest.raises(ValueError, match="names has 1 entries for 2 frequencies"):
        StabilityDisplay(frequencies=[0.9, 0.1], names=["a"])


@pytest.mark.filterwarnings("ignore:Conversion of an array with ndim:DeprecationWarning")  # by matplotlib before 3.11
@pytest.mark.parametrize(("n_features", "n_shown"), [(2, 1), (31, 30), (301, 300)])
def test_stability_of_any_size_is_readable(n_features, n_shown):
    display = StabilityDisplay.from_estimator(fitted_stability(n_features), max_features=n_shown)
    assert len(display.bars_) == n_shown
    assert_nothing_overlaps(display)


def test_stability_of_nothing():
    display = StabilityDisplay.from_estimator(fitted_stability(frequencies_=np.zeros(6), support_=np.zeros(6, dtype=bool)))
    assert len(display.bars_) == 0
    assert "no features selected" in [text.get_text() for text in visible_texts(display)]


# ------------------------------------------------------------------------------------------------------------------ all


def path_display(names, ax=None):
    norms = np.arange(1.0, 1.0 + len(names))[:, None] * [0.0, 1.0]
    return PathDisplay(alphas=[2.0, 1.0], norms=norms, names=names, selected=np.ones(len(names))).plot(ax)


def heatmap_display(names, ax=None):
    means = np.linspace(-1.0, 1.0, 2 * len(names)).reshape(-1, 2)
    return SelectionHeatmapDisplay(means=means, names=names, classes=names[:2], sizes=[3, 4]).plot(ax)


def stability_display(names, ax=None):
    return StabilityDisplay(frequencies=np.linspace(1.0, 0.5, len(names)), names=names).plot(ax)


def score_display(names, ax=None):
    return ScoreCurveDisplay(n_features=[1, 2], mean=[0.5, 0.6], error=[0.1, 0.1], score_name=names[0]).plot(ax)


NAMED = [path_display, heatmap_display, stability_display]


@pytest.mark.parametrize("make", NAMED)
def test_odd_names_are_shown_as_they_are(make):
    display = make(ODD)
    texts = visible_texts(display)
    shown = [text for text in texts if text.get_text() in ODD]
    assert {text.get_text() for text in shown} == set(ODD)
    assert not any(text.get_parse_math() or text.get_usetex() for text in shown)
    assert_nothing_overlaps(display)


def test_odd_class_names_are_shown_as_they_are():
    display = heatmap_display(ODD)
    labels = display.ax_.get_xticklabels()
    assert [label.get_text() for label in labels] == ["$x^2$\n(3)", "a_b\n(4)"]
    assert not any(label.get_parse_math() for label in labels)


def test_an_odd_score_name_is_shown_as_it_is():
    display = score_display(["$cost_1$ in $"])
    assert display.ax_.get_ylabel() == "cross-validated $cost_1$ in $"
    visible_texts(display)
    assert not display.ax_.yaxis.label.get_parse_math()


@pytest.mark.parametrize("make", NAMED)
def test_long_names_are_cut_in_the_middle(make):
    names = [f"{j:03d} {'very ' * 40}long name {j:03d}" for j in range(8)]
    display = make(names)
    shown = [text.get_text() for text in visible_texts(display) if "…" in text.get_text()]
    assert {text[:3] for text in shown} == {name[:3] for name in names}
    assert max(map(len, shown)) < 40
    assert_nothing_overlaps(display)


@pytest.mark.parametrize("make", [*NAMED, score_display])
def test_axes_that_are_given_are_drawn_on(make):
    figure, axes = plt.subplots(1, 2, layout="constrained", figsize=(12, 4))
    display = make([f"g{j}" for j in range(15)], axes[1])
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert not axes[0].has_data()
    assert_nothing_overlaps(display)


@pytest.mark.parametrize("make", [*NAMED, score_display])
def test_a_part_of_a_figure_is_drawn_on(make):
    part = plt.figure(layout="constrained").subfigures(1, 2)[0]
    display = make(["a", "b"], part.subplots())
    assert display.figure_ is part


@pytest.mark.parametrize("make", NAMED)
def test_small_axes_get_fewer_names(make):
    _, ax = plt.subplots(figsize=(5, 2.2), layout="constrained")
    display = make([f"g{j}" for j in range(40)], ax)
    n_names = sum(text.get_text().startswith("g") for text in visible_texts(display))
    assert 3 <= n_names <= 22
    assert_nothing_overlaps(display)


@pytest.mark.parametrize("make", [*NAMED, score_display])
def test_a_display_can_be_drawn_twice(make):
    display = make(["a", "b"])
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first


@pytest.mark.parametrize("name", plots.__all__)
def test_estimators_of_another_kind_are_refused(name):
    display = getattr(plots, name)
    X, y = make_data()
    data = (X, y) if display is SelectionHeatmapDisplay else ()
    with pytest.raises(NotFittedError):
        display.from_estimator(L20Selector(), *data)
    with pytest.raises(TypeError, match="not an estimator instance"):
        display.from_estimator("L20Selector", *data)
    with pytest.raises(TypeError, match=rf"{name} needs \w+_\w*, which Fitted does not have\. Give a fitted \w+"):
        display.from_estimator(Fitted().fit(fitted_=True), *data)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("make", [*NAMED, score_display])
def test_without_matplotlib_the_message_names_the_extra(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"Plots need matplotlib: pip install 'l20fs\[plots\]'"):
        make(["a", "b"])


def test_importing_the_displays_loads_no_matplotlib():
    code = "import sys, l20fs.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---------------------------------------------------------------------------------------------------------------- words


@given(st.text(max_size=60), st.integers(3, 30))
def test_shortened_names_keep_both_ends(name, limit):
    short = shorten(name, limit)
    line = " ".join(name.split())
    assert len(short) <= limit
    assert short == line if len(line) <= limit else short.count("…") == 1 + short.replace("…", "", 1).count("…")
    head, _, tail = short.partition("…") if len(line) > limit else (short, "", "")
    assert line.startswith(head[: limit // 2])
    assert line.endswith(tail) or "…" in line


@given(
    st.lists(st.floats(-0.2, 1.2), max_size=6).map(lambda places: np.array(places, dtype=np.float64)),
    st.floats(0.0, 0.2),
)
def test_labels_move_apart_as_little_as_possible(places, gap):
    moved = spread(places, gap, 0.0, 1.0)
    order = np.argsort(places, kind="stable")
    apart = np.diff(moved[order])
    gap = min(gap, 1.0 / max(1, len(places) - 1))
    assert np.all(apart >= gap - 1e-9)
    assert np.all((moved >= -1e-9) & (moved <= 1.0 + 1e-9))
    if len(places) > 1:
        best = minimize(
            lambda x: np.sum((x - places[order]) ** 2),
            np.linspace(0.0, 1.0, len(places)),
            jac=lambda x: 2.0 * (x - places[order]),
            bounds=[(0.0, 1.0)] * len(places),
            constraints={"type": "ineq", "fun": lambda x: np.diff(x) - gap},
            method="SLSQP",
        )
        assert np.sum((moved - places) ** 2) <= best.fun + 1e-6


def test_no_labels_need_no_room():
    assert len(spread(np.empty(0), 0.1, 0.0, 1.0)) == 0


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "plots.md").read_text()
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(block, names)
    assert {file.name for file in tmp_path.iterdir()} == {"heatmap.png", "path.png", "score.png", "stability.png"}
    table, pairs = names["table"], names["pairs"]
    genes = pairs.groupby("feature", sort=False)["substitute"].apply(list)
    assert table["could_replace"][0].startswith(f"gene{genes.iloc[0][0] + 1:04d} (")
