"""The commands give what the library gives on the same table, refuse what they must, and never leave half of a result.

Only the helpers above the first test know how options, files of results and their columns are called.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from acceptance import doors
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss, roc_auc_score

N, K = 36, 3
GENES = [f"g{j}" for j in range(12)]
LIBRARY = {"ridge": 1.0, "scale": "zscore", "class_weight": None, "fit_intercept": True, "loss": "squared"}
OF_COMMAND = {
    "select": ("--target", "type", *(f"--config=model.{key}" for key in ("ridge=1", "scale=zscore", "class_weight=none"))),
    "validate": ("--target", "type"),
    "compare": ("--target", "type", "--config", "search.splits=3"),
    "predict": (),
}
posix = pytest.mark.skipif(os.name != "posix", reason="signals to another process are a matter of POSIX")


def words(command, *files, **options):
    """Return the words of a command; an option that is True has no value, and ``missing`` is a setting."""
    found = [command, *files, *OF_COMMAND[command]]
    for name, value in options.items():
        flag = {"k": "-k", "out": "-o"}.get(name, f"--{name}")
        if name == "missing":
            flag, value = "--config", f"input.missing={value}"
        found += [flag] if value is True else [flag, value]
    return [str(word) for word in found]


def features(folder):
    """Selected features of a result, best first."""
    return pd.read_csv(folder / "features.tsv", sep="\t")["feature"].tolist()


def scores(folder):
    """Scores by name: the accuracy in the folds of a selection, all of a validation, the best of each compared method."""
    if (folder / "comparison.tsv").exists():
        return (pd.read_csv(folder / "comparison.tsv", sep="\t").groupby("method")["accuracy"].max() / 100.0).to_dict()
    if (folder / "panel.json").exists():
        score = json.loads((folder / "panel.json").read_text())["provenance"]["score"]
        return {score["metric"]: score["value"]}
    table = pd.read_csv(folder / "validation.tsv", sep="\t")
    return table[table["what"] == "score"].set_index("name")["value"].to_dict()


def contents(folder):
    """Bytes of the tables and the panel."""
    files = [folder / name for name in ("features.tsv", "panel.json")]
    return {file.name: file.read_bytes() for file in files if file.exists()}


def run(*given, **options):
    return doors.run(*words(*given, **options))


def samples(seed=0, n=N):
    """Make a table of three classes, each of which is high in one gene."""
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((n, len(GENES))), random.permutation(np.arange(n) % 3)
    X[np.arange(n), y] += 2.0
    names = pd.Index([f"Probe {i:02d}" for i in range(n)], name="sample")
    return pd.DataFrame(X.round(3), names, GENES).assign(type=np.array(["left", "mid", "right"])[y])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a folder with a table and the results of a selection from it."""
    folder = tmp_path_factory.mktemp("results")
    samples().to_csv(folder / "table.csv")
    assert run("select", folder / "table.csv", k=K, out=folder / "out") == 0
    return folder


def assert_is_of_library(folder, X, y):
    """Compare features, their number, and what the panel says of many other samples, with those of a fit to X and y."""
    fitted = doors.fit(X, y, K, model="classifier", task="classification", limit=len(GENES), ranking="entry", **LIBRARY)
    selected, panel = [GENES[j] for j in fitted.order[:K]], doors.load_panel(folder / "panel.json")
    assert features(folder) == doors.panel_features(panel) == selected
    probes = np.random.default_rng(1).normal(scale=2.0, size=(3000, len(GENES)))
    assert np.array_equal(panel.predict(pd.DataFrame(probes, columns=GENES)), fitted.predict(probes))


def test_a_selection_is_that_of_the_library(results):
    assert_is_of_library(results / "out", samples()[GENES].to_numpy(), samples()["type"])


def test_predictions_and_their_scores_are_those_of_the_panel(results, tmp_path):
    cohort, file = samples(seed=5, n=30), results / "out" / "panel.json"
    cohort[["type", *GENES[::-1]]].to_csv(tmp_path / "cohort.csv")
    truth, panel = cohort["type"], doors.load_panel(file)
    labels, chances = panel.predict(cohort[GENES]), panel.predict_proba(cohort[GENES])
    assert run("predict", file, tmp_path / "cohort.csv", out=tmp_path / "predicted.tsv") == 0
    found = pd.read_csv(tmp_path / "predicted.tsv", sep="\t")
    assert found["sample"].tolist() == cohort.index.tolist()
    assert found["predicted"].tolist() == labels.tolist()
    np.testing.assert_allclose(found[["probability_left", "probability_mid", "probability_right"]], chances, rtol=1e-8)
    assert run("validate", file, tmp_path / "cohort.csv", out=tmp_path / "validated") == 0
    expected = {
        "accuracy": accuracy_score(truth, labels),
        "balanced_accuracy": balanced_accuracy_score(truth, labels),
        "f1_macro": f1_score(truth, labels, average="macro"),
        "roc_auc": roc_auc_score(truth, chances, multi_class="ovr"),
        "log_loss": log_loss(truth, chances),
        "brier": np.square(chances - pd.get_dummies(truth).to_numpy()).sum(axis=1).mean(),
    }
    assert 0.5 < expected["accuracy"] < 1.0
    assert {name: scores(tmp_path / "validated")[name] for name in expected} == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("spelling", "first", "last"),
    [("{}", 0, 36), ("{}", 12, 36), ("{}", 0, 16), ("near", 0, 36), ("near", 0, 16), ("near, twice", 2, 36)],
)
def test_labels_of_a_second_file_are_joined_by_names(spelling, first, last, tmp_path, capsys):
    table = samples()
    table[GENES].to_csv(tmp_path / "table.csv")
    used = table.iloc[first:last]
    sheet = used[["type"]].sample(frac=1.0, random_state=0)
    if spelling != "{}":
        sheet.index = [f" {name.upper().replace(' ', '_')}" for name in sheet.index]
    if spelling == "near, twice":  # of each of these two samples, two names of the file are equally near
        sheet = pd.concat([sheet, pd.DataFrame({"type": "left"}, ["PROBE_00", "probe-00", "Probe_01", "PROBE.01"])])
    sheet.to_csv(tmp_path / "labels.csv", index_label="name")
    code = run("select", tmp_path / "table.csv", labels=tmp_path / "labels.csv", k=K, out=tmp_path / "out")
    assert code == 0
    assert_is_of_library(tmp_path / "out", used[GENES].to_numpy(), used["type"])
    assert len(used) == N or f"the {len(used)} in both" in capsys.readouterr().err


@pytest.mark.parametrize("names", ["almost none", "counts"])
def test_a_join_that_may_be_an_accident_stops(names, tmp_path):
    """Six names of 324 are the same, two of each class, or all are bare numbers, which count the lines of either file."""
    table = pd.concat([samples(seed) for seed in range(9)])
    table.index = [f"T{i}" if names == "almost none" else str(i + 1) for i in range(len(table))]
    table[GENES].to_csv(tmp_path / "table.csv", index_label="name")
    same = set(table.groupby("type").head(2).index)
    others = [f"S{i}" if names == "almost none" else str(i + 9) for i in range(len(table))]
    kept = [own if names == "almost none" and own in same else other for own, other in zip(table.index, others, strict=True)]
    sheet = table[["type"]].set_axis(kept)
    sheet.to_csv(tmp_path / "labels.csv", index_label="name")
    assert run("select", tmp_path / "table.csv", labels=tmp_path / "labels.csv", k=K, out=tmp_path / "out") == 3
    assert not (tmp_path / "out").exists()


def test_genes_in_rows_and_gaps_filled_by_medians_are_the_same_table(tmp_path):
    table = samples()
    table[GENES].T.to_csv(tmp_path / "turned.csv", index_label="gene")
    table[["type"]].to_csv(tmp_path / "labels.csv")
    assert run("select", tmp_path / "turned.csv", labels=tmp_path / "labels.csv", k=K, out=tmp_path / "out") == 0
    assert_is_of_library(tmp_path / "out", table[GENES].to_numpy(), table["type"])
    gaps = table[GENES].mask(np.random.default_rng(2).random((N, len(GENES))) < 0.15)
    gaps.assign(type=table["type"]).to_csv(tmp_path / "gaps.csv")
    assert run("select", tmp_path / "gaps.csv", missing="median", k=K, out=tmp_path / "filled") == 0
    assert_is_of_library(tmp_path / "filled", gaps.fillna(gaps.median()).to_numpy(), table["type"])


def test_samples_of_a_group_are_tested_together(tmp_path):
    """Classes of donors are drawn by lot: only another sample of the same donor tells that of a sample."""
    random = np.random.default_rng(0)
    donors = np.repeat(np.arange(16), 4)
    X = random.standard_normal((16, 60))[donors] + 0.01 * random.standard_normal((64, 60))
    table = (
        pd.DataFrame(X.round(4)).add_prefix("g").assign(type=np.array(["left", "right"])[random.permutation(16) % 2][donors])
    )
    table.assign(donor=[f"D{donor}" for donor in donors]).to_csv(tmp_path / "table.csv", index=False)
    assert run("select", tmp_path / "table.csv", k=40, ignore="donor", out=tmp_path / "apart") == 0
    assert run("select", tmp_path / "table.csv", k=40, groups="donor", out=tmp_path / "together") == 0
    assert scores(tmp_path / "apart")["accuracy"] > 0.9
    assert scores(tmp_path / "together")["accuracy"] < 0.75


def test_a_comparison_names_every_method_and_its_score(results, tmp_path):
    options = {"methods": "L20Selector,FisherScore", "sizes": "2,4", "scoring": "accuracy"}
    assert run("compare", results / "table.csv", **options, out=tmp_path / "out") == 0
    found = scores(tmp_path / "out")
    assert found.keys() == {"L20Selector", "FisherScore"}
    assert 0.2 <= min(found.values()) <= max(found.values()) <= 1.0
    assert max(found.values()) > 0.5


def test_a_rerun_writes_the_same_bytes_and_only_by_force(results, tmp_path):
    table, out, first = results / "table.csv", tmp_path / "out", contents(results / "out")
    assert run("select", table, k=K, out=out) == 0
    assert contents(out) == first
    assert run("select", table, k=2, out=out) in (1, 2)
    assert contents(out) == first
    assert run("select", table, k=2, out=out, force=True) == 0
    assert len(features(out)) == 2
    assert run("select", table, k=K, out=out, force=True) == 0
    assert contents(out) == first


def stop(number, seconds, *given, **options):
    """Start a command as a process, stop it by a signal so long after its first word, and return its exit code."""
    process = subprocess.Popen(
        [sys.executable, "-m", "l20fs", *words(*given, **options)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell may have it ignored
    )
    process.stderr.read(1)
    while process.poll() is None:  # an extension module may swallow a single interrupt
        time.sleep(seconds)
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=60)
    return process.returncode


@posix
def test_a_killed_run_leaves_whole_files_of_the_earlier_results_or_new_ones(results, tmp_path):
    table, out, new = results / "table.csv", tmp_path / "out", tmp_path / "new"
    assert run("select", table, k=K, out=out) == run("select", table, k=2, out=new) == 0
    earlier = contents(out)
    for _ in range(3):
        stop(signal.SIGKILL, random.uniform(0.0, 0.5), "select", table, k=2, out=out, force=True)
        found, later = contents(out), contents(new)
        assert found.keys() == earlier.keys()
        assert all(found[name] in (earlier[name], later[name]) for name in found), "each is whole"


@posix
def test_an_interrupted_run_leaves_nothing(results, tmp_path):
    assert stop(signal.SIGINT, 0.5, "select", results / "table.csv", k=K, stability=50_000, out=tmp_path / "out") == 130
    assert contents(tmp_path / "out") == {}


def test_the_exit_code_tells_wrong_usage_from_bad_data(results, tmp_path):
    table, out = results / "table.csv", tmp_path / "out"
    (tmp_path / "ragged.csv").write_text("type,a,b\nx,1,2\ny,3\nx,4,5,6\n")
    (tmp_path / "one.csv").write_text("type,a,b\n" + "x,1,2\nx,3,4\n" * 5)
    assert doors.run(*words("select", table, k=K, out=out), "--no-such-option") == 2
    assert run("select", table, k=0, out=out) == 2
    assert run("select", table, target="nobody", out=out) == 2
    assert run("select", tmp_path / "ragged.csv", k=1, out=out) == 3
    assert run("select", tmp_path / "one.csv", k=1, out=out) == 3
    assert run("select", table, k=len(GENES) + 1, out=out) == 3
    assert not out.exists()


@pytest.mark.parametrize("out", ["file", "file/out", pytest.param("/proc/out", marks=posix)])
def test_nothing_is_written_where_nothing_can_be(out, results, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert run("select", results / "table.csv", k=K, out=tmp_path / out) in (1, 2)
    assert list(tmp_path.rglob("*")) == [tmp_path / "file"]
    assert (tmp_path / "file").read_text() == "mine"
