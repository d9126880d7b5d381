"""Pictures: what is drawn is what was given, names are shown as they are, and no text lies on another."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from samples import SOLVERS, make_data, make_frame, make_solver
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from l20fs import AHIHT, L20Selector, StabilitySelector, plots
from l20fs.data import load_srbct
from l20fs.plots import PathDisplay, ScoreCurveDisplay, SelectionHeatmapDisplay, StabilityDisplay
from l20fs.plots.canvas import PALE

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
        "n_features": np.tile([1.0, 2.0, 3.0, 4.0], 2),
        "mean_test_score": np.array([0.5, 0.7, 0.8, 0.75, 0.6, 0.85, 0.9, 0.9]),
        "standard_error": np.linspace(0.01, 0.08, 8),
    } | changes.pop("results", {})
    attributes = {"cv_results_": results, "ridge_": 10.0, "support_": np.array([True, True, False])}
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


@pytest.fixture(scope="module")
def planted():
    X, y = make_data(n_samples=90)
    return X, y


def test_score_curve_refuses_what_does_not_belong_together():
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
    selector = L20Selector(3, solver=make_solver(solver, max_iter=5000), max_features_to_select=6).fit(X, y)
    display = PathDisplay.from_estimator(selector)
    assert_lines_are_the_path(display, selector.path_, X.columns, selector.support_)
    assert {label.get_text() for label in display.labels_} == set(X.columns[selector.support_])
    assert display.ax_.get_xscale() == "log"
    left, right = display.ax_.get_xlim()
    assert left > selector.path_.alphas[0]
    assert right < selector.path_.alphas[-1]
    assert_nothing_overlaps(display)


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


def test_path_without_any_feature():
    X, y = make_data()
    selector = L20Selector(3, solver=AHIHT(alpha_min=1e6)).fit(X, y)
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


def test_heatmap_without_any_feature():
    X, y = make_frame()
    selector = L20Selector(3, solver=AHIHT(alpha_min=1e6)).fit(X, y)
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


def test_stability_of_a_real_selection():
    tumours = load_srbct()
    frame = pd.DataFrame(tumours.data[:, :300], columns=tumours.feature_names[:300])
    stable = StabilitySelector(L20Selector(10), n_resamples=10, random_state=0).fit(frame, tumours.target)
    display = StabilityDisplay.from_estimator(stable)
    table = stable.to_frame().head(30)
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


@pytest.mark.parametrize("make", [*NAMED, score_display])
def test_axes_that_are_given_are_drawn_on(make):
    figure, axes = plt.subplots(1, 2, layout="constrained", figsize=(12, 4))
    display = make([f"g{j}" for j in range(15)], axes[1])
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert not axes[0].has_data()
    assert_nothing_overlaps(display)


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
