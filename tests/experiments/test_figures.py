"""Figures: what is drawn is what the rows say; texts do not overlap; the same figure gives the same bytes."""

from __future__ import annotations

import json
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from rows import as_rows, make_rows

matplotlib = pytest.importorskip("matplotlib")
from drawing import drawn_texts  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402

from l20fs.experiments import effects, figures, outcomes, statistics  # noqa: E402
from l20fs.experiments.exhibits import add_figure  # noqa: E402
from l20fs.experiments.figure_parts import styles_of  # noqa: E402

METHODS = ["Baseline", "Relief", "mRMR", "RFS", "RLSR", "RPMFS", "ESFS", "l2,0-FS", "L20Selector"]


def accuracy_rows(n_datasets=3, methods=METHODS, folds=(None, 0, 1)):
    random = np.random.default_rng(0)
    rows = []
    for dataset in [f"set {i}" for i in range(n_datasets)]:
        for method in methods:
            for choice in ["{}"] if method != "RFS" else ['{"gamma": 1}', '{"gamma": 2}']:
                for split in range(3):
                    for fold in folds if method != "Baseline" else [None]:
                        for k in [20, 40, 60] if method != "Baseline" else [900]:
                            for classifier in ("knn", "softmax"):
                                values = {"dataset": dataset, "method": method, "choice": choice, "split": split}
                                values |= {"fold": fold, "classifier": classifier, "n_features": k, "n_test": 20}
                                values |= {"accuracy": random.integers(10, 21) / 20, "fit_seconds": random.uniform(0.01, 3)}
                                rows.append(values | {"n_nonzero": None})
    return as_rows(rows)


def choice_rows(choices, methods=("AHIHT",), datasets=("breast3", "lung"), sizes=(30, 60), n_splits=2):
    random = np.random.default_rng(1)
    rows = []
    for dataset in datasets:
        for method in methods:
            for choice in choices:
                for split in range(n_splits):
                    n_nonzero = int(random.integers(0, 500))
                    for k in sizes:
                        values = {
                            "dataset": dataset,
                            "method": method,
                            "choice": json.dumps(choice),
                            "split": split,
                            "fold": None,
                        }
                        values |= {"classifier": "knn", "n_features": k, "accuracy": random.integers(10, 21) / 20}
                        rows.append(values | {"n_test": 20, "fit_seconds": 0.1, "n_nonzero": n_nonzero})
    return as_rows(rows)


def assert_readable(figure):
    """No two texts share a spot, and all of them are within the figure."""
    texts = drawn_texts(figure)
    boxes = [text.get_window_extent() for text in texts]
    width, height = figure.canvas.get_width_height()
    for i, box in enumerate(boxes):
        assert box.x0 >= -1, texts[i]
        assert box.y0 >= -1, texts[i]
        assert box.x1 <= width + 1, texts[i]
        assert box.y1 <= height + 1, texts[i]
        for j in range(i):
            other = boxes[j]
            is_apart = box.x1 <= other.x0 + 1 or other.x1 <= box.x0 + 1 or box.y1 <= other.y0 + 2 or other.y1 <= box.y0 + 2
            assert is_apart, f"{texts[i]} and {texts[j]}"


def caption(figure):
    return " ".join(figure.get_suptitle().split())


def panels(figure):
    return {ax.get_title(): ax for ax in figure.axes if ax.get_title()}


@pytest.mark.parametrize("protocol", ["optimistic", "honest"])
@pytest.mark.parametrize("n_datasets", [1, 3, 8])
def test_curves(protocol, n_datasets):
    rows = accuracy_rows(n_datasets)
    table = outcomes.curves(rows, protocol)
    figure = figures.curves(table, "knn")
    table = table[table.classifier == "knn"]
    assert list(panels(figure)) == [f"set {i}" for i in range(n_datasets)]
    for dataset, ax in panels(figure).items():
        lines = {line.get_label(): line for line in ax.lines}
        assert list(lines) == METHODS
        for method, line in lines.items():
            expected = table[(table.dataset == dataset) & (table.method == method)].sort_values("n_features")
            if method == "Baseline":
                assert list(line.get_ydata()) == [expected.accuracy.iloc[0]] * 2
            else:
                assert line.get_xdata().tolist() == [20, 40, 60]
                assert line.get_ydata().tolist() == expected.accuracy.tolist()
    assert protocol in caption(figure)
    assert {"optimistic", "honest"} - {protocol} - set(caption(figure).replace(":", "").split())
    assert "KNN, mean of 3 splits" in caption(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == METHODS
    assert_readable(figure)


def test_no_two_methods_differ_in_colour_alone():
    styles = styles_of([*METHODS, *(f"other {i}" for i in range(6))])
    looks = [(style.marker, style.linestyle) for style in styles.values()]
    assert len(set(looks)) == len(looks)
    okabe_ito = {"#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7"}
    assert {to_hex(style.color) for style in styles.values()} <= okabe_ito | {"#767676"}


def test_lambda_map_shows_the_mean_of_every_pair():
    rows = choice_rows([{"alpha": a} for a in (1e-1, 1e-5, 1e-3)])
    figure = figures.lambda_sensitivity(effects.accuracy_by_alpha(rows, "knn"), "knn")
    for dataset, ax in panels(figure).items():
        alphas, sizes = [1e-5, 1e-3, 1e-1], [30, 60]
        shown = {tuple(round(p) for p in text.get_position()): text.get_text() for text in ax.texts}
        assert len(shown) == 6
        for i, alpha in enumerate(alphas):
            for j, k in enumerate(sizes):
                here = rows[
                    (rows.dataset == dataset) & (rows.n_features == k) & (rows.choice == json.dumps({"alpha": alpha}))
                ]
                assert shown[j, i] == f"{100 * here.accuracy.mean():.1f}"
                assert ax.images[0].get_array()[i, j] == pytest.approx(100 * here.accuracy.mean())
        assert [label.get_text() for label in ax.get_yticklabels()] == ["$10^{-5}$", "$10^{-3}$", "$10^{-1}$"]
    limits = {ax.images[0].get_clim() for ax in panels(figure).values()}
    assert len(limits) == 1, "one scale of colours for all"
    assert_readable(figure)


def test_initialisation_shows_the_spread_over_draws_not_over_splits():
    choices = [{"init": "zeros"}, *({"init": "gaussian", "random_state": i} for i in range(3))]
    rows = choice_rows(choices, datasets=("srbct",))
    figure = figures.initialisation(effects.spread_by_start(rows, "knn"), "knn")
    largest = rows[rows.n_features == 60]
    means = largest.groupby("choice", sort=False).agg(a=("accuracy", "mean"), n=("n_nonzero", "mean")).astype(float)
    for ax, values in zip(figure.axes, (100 * means.a, means.n), strict=True):
        [container] = ax.containers
        line, _, [bars] = container
        assert line.get_ydata().tolist() == pytest.approx([values.iloc[0], values.iloc[1:].mean()])
        lengths = [(segment[1, 1] - segment[0, 1]) / 2 for segment in bars.get_segments()]
        assert lengths == pytest.approx([0.0, values.iloc[1:].std()])
    assert "at most 60 features" in caption(figure)
    assert_readable(figure)
    smaller = effects.spread_by_start(rows, "knn", n_features=30)
    assert "at most 30 features" in caption(figures.initialisation(smaller, "knn"))


def test_convergence_is_relative_to_the_first_value():
    values = {"RPMFS": [80.0, 100.0, 4.0], "l2,0-FS": [8.0, 4.0, 2.0]}
    table = [
        {"dataset": dataset, "method": method, "iteration": i, "objective": value * scale}
        for dataset, scale in (("leukemia", 1.0), ("prostate", 3.0))
        for method, sequence in values.items()
        for i, value in enumerate(sequence)
    ]
    figure = figures.convergence(effects.relative_objectives(pd.DataFrame(table[::-1])))
    for ax in panels(figure).values():
        found = {line.get_label(): line.get_ydata().tolist() for line in ax.lines}
        assert found == {"RPMFS": [1.0, 1.25, 0.05], "l2,0-FS": [1.0, 0.5, 0.25]}
        assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    assert_readable(figure)
    wide = pd.DataFrame(table).assign(objective=lambda t: t.objective**3)
    figure = figures.convergence(effects.relative_objectives(wide))
    assert {ax.get_yscale() for ax in panels(figure).values()} == {"log"}
    signed = pd.DataFrame(table).assign(objective=lambda t: t.objective - 10.0)
    assert {ax.get_yscale() for ax in panels(figures.convergence(effects.relative_objectives(signed))).values()} == {
        "linear"
    }


@pytest.mark.parametrize("n_datasets", [1, 8])
def test_time(n_datasets):
    rows = accuracy_rows(n_datasets)
    figure = figures.time(outcomes.fit_times(rows))
    fits = rows[rows.fold.isna()].drop_duplicates(["dataset", "method", "choice", "split"])
    for dataset, ax in panels(figure).items():
        assert ax.get_xscale() == "log"
        for place, method in enumerate(METHODS):
            seconds = fits[(fits.dataset == dataset) & (fits.method == method)].fit_seconds
            bar, line = ax.patches[place], ax.lines[place]
            assert bar.get_x() + bar.get_width() == pytest.approx(seconds.mean())
            assert line.get_xdata() == pytest.approx([seconds.min(), seconds.max()])
    assert_readable(figure)


def test_solvers():
    rows = choice_rows([{"alpha": a} for a in (1e-3, 1e-2, 1e-1)], methods=("HIHT", "AHIHT", "forward"), sizes=(400,))
    figure = figures.solvers(effects.means_by_solver(rows, "knn"), "knn")
    top, bottom = figure.axes[:2], figure.axes[2:]
    for dataset, above, below in zip(("breast3", "lung"), top, bottom, strict=True):
        assert above.get_title() == dataset
        for method, first, second in zip(("HIHT", "AHIHT", "forward"), above.containers, below.containers, strict=True):
            here = rows[(rows.dataset == dataset) & (rows.method == method)].groupby("choice", sort=False)
            assert first[0].get_ydata().tolist() == pytest.approx((100 * here.accuracy.mean()).tolist())
            assert second[0].get_ydata().tolist() == pytest.approx(here.n_nonzero.mean().astype(float).tolist())
            places = first[0].get_xdata()
            assert np.abs(np.log10(np.asarray(places, dtype=float)) - [-3, -2, -1]).max() < 0.05, "moved aside, but not far"
    assert_readable(figure)


@pytest.mark.parametrize("n_methods", [2, 5, 9])
def test_critical_difference(n_methods):
    random = np.random.default_rng(n_methods)
    scores = pd.DataFrame(random.uniform(size=(8, n_methods)) + np.arange(n_methods) / 4, columns=METHODS[:n_methods])
    figure = figures.critical_difference(statistics.rank_tests(scores), "KNN, honest")
    ranks = statistics.mean_ranks(scores)
    texts = " ".join(text.get_text() for text in figure.axes[0].texts)
    for method, rank in ranks.items():
        assert method in texts
        assert f"{rank:.2f}" in texts
    difference = statistics.critical_difference(n_methods, 8)
    bars = [line for line in figure.axes[0].lines if line.get_linewidth() == 4.0]
    expected = statistics.alike(ranks, difference)
    assert len(bars) == len(expected)
    for bar, group in zip(bars, expected, strict=True):
        assert bar.get_xdata() == pytest.approx([ranks[group[0]], ranks[group[-1]]], abs=0.05)
    assert "KNN, honest. Mean ranks over 8 data sets" in caption(figure)
    assert_readable(figure)


def test_the_same_figure_gives_the_same_bytes():
    rows = accuracy_rows(1)
    found = []
    for _ in range(2):
        files, streams = {}, (BytesIO(), BytesIO())
        made = add_figure(files, "curves", figures.curves(outcomes.optimistic_curves(rows), "knn"))
        assert made.files == ("curves.svg", "curves.png")
        for name, stream in zip(made.files, streams, strict=True):
            files[name](stream)
        found.append([stream.getvalue() for stream in streams])
    assert found[0] == found[1]
    svg, png = found[0]
    assert svg.startswith(b"<?xml")
    assert b"<dc:date>" not in svg
    assert png.startswith(b"\x89PNG")
    assert b"Matplotlib" not in png


def test_names_are_shown_as_they_are():
    odd = "$x^2$_%"
    figure = figures.curves(outcomes.optimistic_curves(make_rows(dataset=odd, method="a_$b$")), "knn")
    assert odd in [text.get_text() for text in drawn_texts(figure)]


def test_what_cannot_be_drawn_is_refused():
    rows = accuracy_rows(1)
    with pytest.raises(ValueError, match=r"classifier='svm' is not in the rows. Use one of knn, softmax"):
        figures.curves(outcomes.optimistic_curves(rows), "svm")
    with pytest.raises(ValueError, match=r"classifier='svm' is not in the rows. Use one of knn, softmax"):
        effects.accuracy_by_alpha(rows, "svm")
    with pytest.raises(ValueError, match=r"protocol='fair' is unknown. Use 'optimistic' or 'honest'"):
        outcomes.curves(rows, "fair")
    with pytest.raises(ValueError, match="have no 'alpha' in their choice"):
        effects.accuracy_by_alpha(rows, "knn")
    with pytest.raises(ValueError, match="n_features=7 is not in the rows"):
        effects.means_by_solver(choice_rows([{"alpha": 1.0}]), "knn", n_features=7)
