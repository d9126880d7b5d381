"""Data sets, plans, effects, and everything that ``python -m paper`` writes."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import DATA
from scipy.io import savemat

from l20fs import AHIHT, HIHT, L20Selector
from l20fs.data import load_srbct
from paper import effects, sets
from paper.__main__ import draw_all, main
from paper.page import make_tables, markdown, write_page
from paper.plans import PLANS, quick, run_plan
from paper.settings import paper_settings


def test_the_settings_of_the_paper():
    ends = {"alpha_min": 1e-4, "ranking": "norm"}
    assert paper_settings()["solver"] == AHIHT(alpha_start=0.4, rate=0.4, eta=0.1, **ends)
    assert paper_settings("hiht")["solver"] == HIHT(alpha_start=0.4, rate=0.4, eta=0.1, stopping="absolute", **ends)
    assert paper_settings(reading="printed")["solver"] == AHIHT(alpha_start=1.0, rate=0.4, eta=0.1, **ends)
    with pytest.raises(KeyError):
        paper_settings(reading="paper")


def test_plans_have_both_readings_and_the_grids_of_the_paper():
    grids = {method.label: method.grid for method in PLANS["accuracy"].settings.methods}
    assert grids["RFS"] == grids["RLSR"] == {"gamma": [1e-5, 1e-3, 1e-1, 1e1, 1e3, 1e5]}
    alphas = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    assert grids["l2,0-FS"] == {"solver__alpha_min": alphas}
    code, first = PLANS["repeats"].settings.methods[1:]
    assert (code.params["solver"].alpha_min, code.params["solver"].alpha_start) == (1e-4, 0.4)
    assert code.grid == {"solver__alpha_min": alphas}
    assert (first.params["solver"].alpha_min, first.grid) == (1e-5, {"solver__alpha_start": alphas})
    assert [each.solver.alpha_start for each in map(first.selector, first.choices)] == alphas
    assert [each.settings.n_splits for each in PLANS.values()] == [10, 10, 10, 10, 10, 100, 3]
    assert PLANS["accuracy"].settings.sizes == tuple(range(20, 401, 20))
    assert all(plan.settings.scale is None for plan in PLANS.values()), "the paper's methods get the values as they are"


# ---------------------------------------------------------------------------------------------------------------- data sets


def test_the_built_in_set_stands_in_for_a_file(tmp_path):
    found = sets.load_set("srbct", tmp_path)
    tumours = load_srbct(scale="paper")
    names = np.array(sets.catalogue()["srbct"].class_names)
    assert np.array_equal(found.X, tumours.data)
    assert names[found.y].tolist() == tumours.target.tolist()


def test_a_set_is_read_from_either_format_and_checked_by_its_digest(tmp_path, monkeypatch):
    X, y = np.arange(12.0).reshape(4, 3) + 1.0, np.array([0, 1, 1, 0])
    entry = sets.catalogue()["lung"]
    changed = {"lung": entry.__class__(**{**vars(entry), "sha256": sets.digest_of(X, y)})}
    monkeypatch.setattr(sets, "catalogue", lambda: changed)
    savemat(tmp_path / "lung.mat", {"X": X, "Y": y[:, None] + 1})
    assert np.allclose(sets.load_set("lung", tmp_path).X, np.log10(X))
    np.savez(tmp_path / "lung.npz", X=X.astype(np.float32), y=y)
    assert np.allclose(sets.load_set("lung", tmp_path).X, np.log10(X))
    np.savez(tmp_path / "lung.npz", X=X + 1.0, y=y)
    with pytest.raises(sets.DataSetError, match=r"lung\.npz: 4 x 3 values with the digest .*, but 'lung' has 203 x 1543"):
        sets.load_set("lung", tmp_path)


def test_a_missing_set_is_named_with_its_source(tmp_path):
    with pytest.raises(sets.DataSetError, match=r"brain: no brain\.npz or brain\.mat in .*To be had: datasets/brain\.mat"):
        sets.load_set("brain", tmp_path)


def test_every_set_that_is_here_is_the_one_of_the_catalogue():
    folder = DATA / "paper"
    if not folder.is_dir():
        pytest.skip("the paper's data sets are not here")
    for name, entry in sets.catalogue().items():
        found = sets.load_set(name, folder)
        assert found.X.shape == (entry.n_samples, entry.n_features)
        assert np.bincount(found.y).tolist() == entry.class_sizes


# ---------------------------------------------------------------------------------------------------- effects and the pages


def make_rows(**columns):
    n_rows = max(len(values) for values in columns.values() if isinstance(values, list))
    common = {"dataset": "nci", "method": "AHIHT", "choice": "{}", "split": 0, "fold": None, "classifier": "knn"}
    common |= {"n_features": 20, "accuracy": 0.5, "n_nonzero": 3, "fit_seconds": 1.0}
    return pd.DataFrame(common | columns, index=range(n_rows)).astype({"fold": "Int64", "n_nonzero": "Int64"})


def test_effects_of_lambda():
    choices = [f'{{"solver__alpha_min": {alpha}}}' for alpha in (1e-5, 1e-2, 1e-1)] * 2
    rows = make_rows(choice=choices, n_features=[20] * 3 + [40] * 3, accuracy=[0.9, 0.8, 0.4, 0.7, 0.7, 0.5])
    [row] = effects.alpha_effects(rows).itertuples()
    assert (row.median_change, row.largest_change) == (pytest.approx(5.0), pytest.approx(10.0))
    assert row.last_step == pytest.approx(45.0 - 77.5)


def test_effects_of_the_start_are_not_those_of_the_splits():
    starts = ['{"solver__init": "zeros"}', *(f'{{"solver__init": "uniform", "solver__random_state": {i}}}' for i in (0, 1))]
    rows = pd.concat(
        make_rows(choice=starts, split=split, accuracy=[a + 0.1 * split for a in (0.5, 0.6, 0.8)], n_nonzero=[4, 6, 8])
        for split in (0, 1)
    )
    spread = effects.spread_by_start(rows).set_index("init")
    assert spread.accuracy.tolist() == pytest.approx([55.0, 75.0])
    assert spread.accuracy_deviation["uniform"] == pytest.approx(np.std([65.0, 85.0], ddof=1))
    assert spread.n_draws.tolist() == [1, 2]
    [row] = effects.start_effects(rows).itertuples()
    assert (row.difference, row.fewest, row.most) == (pytest.approx(20.0), 4.0, 7.0)


def test_contrast_of_the_solvers():
    table = {"AHIHT": ([0.9, 0.8], [9, 7]), "HIHT": ([0.6, 0.7], [3, 3]), "forward": ([0.5, 0.5], [1, 2])}
    rows = pd.concat(
        make_rows(
            method=name,
            choice=['{"solver__alpha_min": 0.001}', '{"solver__alpha_min": 0.01}'],
            accuracy=accuracy,
            n_nonzero=counts,
        )
        for name, (accuracy, counts) in table.items()
    )
    [found] = effects.solver_contrasts(rows)
    assert (found["n_cases"], found["n_sparser"], found["n_more_accurate"]) == (2, 2, 2)
    assert found["mean_difference"] == pytest.approx(20.0)
    assert (found["spread_ahiht"], found["spread_hiht"]) == (pytest.approx(10.0), pytest.approx(10.0))
    assert (found["rows_forward"], found["rows_ahiht"], found["rows_hiht"]) == (1.5, 8.0, 3.0)
    assert found["forward_gain"] == pytest.approx(-35.0)


def test_a_trace_ends_at_the_objective_of_the_fit_and_never_rises_at_one_lambda():
    tumours = load_srbct(scale="paper")
    codes = np.unique(tumours.target, return_inverse=True)[1]
    one_hot = np.eye(4)[codes]
    values = effects.trace_homotopy(tumours.data, one_hot, max_steps=1)
    path = L20Selector(**paper_settings("ahiht")).fit(tumours.data, codes).path_
    expected = path.losses[-1] + path.alphas[-1] * path.n_nonzero[-1]
    assert values[-1] == pytest.approx(expected, rel=1e-6)
    falling = effects.trace_homotopy(tumours.data, one_hot, max_steps=50, one_lambda=True)
    assert np.diff(falling).max() <= 1e-9
    traces = pd.DataFrame({"dataset": "a", "method": "m", "iteration": range(4), "objective": [10.0, 1.0, 0.05, 0.0]})
    assert effects.iterations_needed(traces).needed.tolist() == [2]


def test_a_run_that_was_stopped_goes_on(tmp_path, monkeypatch):
    plan, data = quick(PLANS["time"]), sets.load_set("srbct", tmp_path)
    first = run_plan(plan, [data], tmp_path, note=lambda text: None)
    monkeypatch.setattr("paper.plans.evaluate_fit", lambda *given: pytest.fail("it was computed again"))
    pd.testing.assert_frame_equal(run_plan(plan, [data], tmp_path, note=lambda text: None), first)
    with pytest.raises(pytest.fail.Exception):
        run_plan(plan, [data._replace(X=data.X + 1.0)], tmp_path, note=lambda text: None)


def random_rows(name):
    """Return rows of a plan on all of its data sets with random scores."""
    plan, random, found = PLANS[name], np.random.default_rng(0), []
    for dataset in plan.datasets:
        for method in plan.settings.methods:
            sizes = [1000] if method.name == "Baseline" else plan.settings.sizes[:2]
            folds = [None, 0] if plan.settings.inner_folds and method.name != "Baseline" else [None]
            for choice in map(json.dumps, method.choices):
                for fold in folds:
                    for classifier in plan.settings.evaluators:
                        splits = [split for split in range(20) for _ in sizes]
                        values = {
                            "n_features": [*sizes] * 20,
                            "split": splits,
                            "accuracy": random.random(len(splits)).tolist(),
                        }
                        labels = {"dataset": dataset, "method": method.label, "choice": choice, "fold": fold}
                        found.append(make_rows(**labels, classifier=classifier, **values, n_nonzero=random.integers(1, 99)))
    return pd.concat(found, ignore_index=True)


def test_every_table_figure_and_section_is_made():
    rows = {name: random_rows(name) for name in PLANS}
    traces = [
        (name, method, i, 10.0 / (i + 1)) for name in effects.TRACED for method in ("l2,0-FS", "RPMFS") for i in range(9)
    ]
    rows["traces"] = pd.DataFrame(traces, columns=["dataset", "method", "iteration", "objective"])
    rows["traces"]["relative"] = rows["traces"].objective / 10.0
    drawn, tables = draw_all(rows), make_tables(rows)
    kinds = [*(f"{kind}-{protocol}" for kind in ("curves", "ranks") for protocol in ("optimistic", "honest"))]
    kinds += ["lambda", "initialisation", "solvers"]
    assert set(drawn) == {f"{kind}-{name}" for kind in kinds for name in ("knn", "softmax")} | {"convergence", "time"}
    for figure in drawn.values():
        figure.canvas.draw()
    page = write_page(tables, list(drawn))
    assert all(f"figures/{name}.png" in page for name in drawn)
    beside = page.partition("### Beside the printed accuracies")[2].partition("###")[0]
    assert beside.count("\n| ") - 1 == 8 * 9 * 2, "a row per cell, those of our own method too"
    for words in ("KNN on nci", "The baseline on srbct", "## Ten times over", "HIHT takes 1 times as long"):
        assert words in page
    assert "nan" not in page
    assert "its figures are not the results" not in page


def test_a_table_of_accuracies_marks_the_best_two():
    frame = pd.DataFrame({"set": ["a"], "k": pd.array([None], dtype="Int64"), "accuracy": [66.0]})
    assert markdown(frame).splitlines()[2] == "| a |  | 66.00 |"


@pytest.mark.parametrize(
    ("given", "said"), [(["speed"], "'speed' is not a plan"), (["lambda", "--data", "x"], "no brain.npz")]
)
def test_bad_requests_end_in_one_line(monkeypatch, tmp_path, capsys, given, said):
    monkeypatch.setattr(sys, "argv", ["paper", *given, "-o", str(tmp_path / "out")])
    with pytest.raises(SystemExit):
        main()
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
