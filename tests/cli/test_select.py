"""The options of ``l20fs select`` one by one, and the commands beside it."""

from __future__ import annotations

import html
import json
import os
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cli_samples import RESULTS, contents, page_data, planted, read_tsv, start, with_lonely, write_table
from samples import make_many_classes

from l20fs import L20Selector, L20SelectorCV, StabilitySelector
from l20fs.cli import run
from l20fs.cli.parameter_types import supervised_methods
from l20fs.estimators import panels
from l20fs.evaluation import choice
from l20fs.evaluation.metrics import METRICS
from l20fs.evaluation.predictions import predictions_by_k
from l20fs.evaluation.target_summary import summarise
from l20fs.methods import discover
from l20fs.text import with_interval


def noisy(seed=0):
    X, labels, _ = planted(random_state=seed)
    return X + 1.5 * np.random.default_rng(seed).standard_normal(X.shape), labels


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("data") / "table.tsv", *noisy())


@pytest.fixture(scope="module")
def quick_table(tmp_path_factory):
    X, labels, _ = planted()
    return write_table(tmp_path_factory.mktemp("data") / "quick.tsv", X, with_lonely(labels))


def summary_of(capsys, *arguments):
    """Run select and return what --json prints."""
    assert run(["select", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments, code=2):
    assert run(list(arguments)) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_scaling_and_ridge_are_said_in_words(quick_table, capsys, tmp_path):
    selector = L20Selector(3).fit(*(planted()[0], with_lonely(planted()[1])))
    said = summary_of(capsys, quick_table, "--target", "type", "-k", "3")["settings"]
    assert "share a unit" in said
    assert "'moderated'" in said
    assert f"the strength {selector.ridge_:.3g}, by the number of features per sample ('auto')" in said
    output = tmp_path / "results"
    given = ["--scale", "zscore", "--ridge", "2.5", "-o", str(output)]
    assert run(["select", quick_table, "--target", "type", "-k", "3", *given]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    page = (output / "report.html").read_text()
    for text in ("divided by its deviation ('zscore'), as asked for.", "The ridge term has the strength 2.5, as asked for."):
        assert text in printed
        assert text in html.unescape(page)


def test_units_that_differ_are_said_in_words(tmp_path, capsys):
    X, labels, _ = planted()
    file = write_table(tmp_path / "units.tsv", X * np.geomspace(1.0, 1e5, X.shape[1]), with_lonely(labels))
    assert "as in different units" in summary_of(capsys, file, "--target", "type", "-k", "3")["settings"]


@pytest.mark.parametrize("ridge", ["none", "-1", "nan", "inf"])
def test_an_odd_ridge_is_refused(quick_table, capsys, ridge):
    message = refused(capsys, "select", quick_table, "--target", "type", "--ridge", ridge)
    assert f"{ridge!r} is not valid. Use auto, or a number at least 0." in " ".join(message.split())


@pytest.mark.parametrize("rule", ["best", "auto"])
@pytest.mark.parametrize("seed", ["0", "3"])
def test_the_number_its_score_and_its_folds_are_those_of_the_library(table, capsys, rule, seed):
    X, labels = noisy()
    found = summary_of(capsys, table, "--target", "type", "-k", rule, "--seed", seed)
    own = L20SelectorCV(rule, random_state=int(seed)).fit(X, labels)
    assert found["k"] == own.n_features_ == len(found["selected"])
    assert [row["linear_fold_mean"] for row in found["cv"]] == pytest.approx(own.cv_results_["mean_test_score"].tolist())
    assert tuple(found["score"][name] for name in ("value", "lower", "upper")) == pytest.approx(
        own.quoted_scores_["accuracy"]
    )
    assert found["cv"][found["k"] - 1]["linear"] == found["score"]["value"], "one number for one k"
    assert found["skill"] == pytest.approx(own.skill_)
    texts = [with_interval(*own.quoted_scores_["accuracy"], is_share=True), "4 times 5-fold", "always the largest class"]
    assert all(text in found["answer"] for text in texts)


def test_where_nothing_predicts_the_first_line_says_so(tmp_path, capsys):
    X, labels = np.random.default_rng(2).standard_normal((40, 30)), np.array(["a", "b"])[np.arange(40) % 2]
    file = write_table(tmp_path / "noise.tsv", X, labels)
    found = summary_of(capsys, file, "--target", "type", "-o", str(tmp_path / "out"))
    assert found["k"] == 1
    assert found["skill"] <= 0.0
    assert found["answer"].startswith("No number of features predicts better than guessing; 1 of 30:")
    assert "No number of features predicts better than guessing" in (tmp_path / "out" / "report.html").read_text()


@pytest.fixture
def rising(tmp_path):
    """Eleven features, each high in one of eleven classes: all are needed."""
    X, y, _ = make_many_classes(n_classes=11, n_per_class=1, n_samples=10, n_noise=0)
    return write_table(tmp_path / "rising.tsv", X, y)


def test_the_search_goes_on_beyond_its_first_limit_and_the_page(rising, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(choice, "FIRST_LIMIT", 3)
    monkeypatch.setattr(panels, "MOST_FEATURES", 4)
    found = summary_of(capsys, rising, "--target", "type", "-k", "best", "-o", str(tmp_path / "out"))
    assert found["k"] > 9
    assert len(read_tsv(tmp_path / "out" / "selection.tsv")) == found["k"]
    assert not any("limit" in text for text in found["warnings"])
    assert any("The page shows the first 4 of" in text for text in found["warnings"])


def test_a_search_that_ends_at_its_limit_says_so(rising, tmp_path, capsys):
    search = ["-k", "best", "--max-features", "6"]
    assert run(["select", rising, "--target", "type", *search, "-o", str(tmp_path / "out")]) == 0
    sentence = "The search for the number of features ended at its limit of 6, which it chose"
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert sentence in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    found = summary_of(capsys, rising, "--target", "type", *search)
    assert found["k"] == 6
    assert any(sentence in text and "Raise it with --max-features" in text for text in found["warnings"])
    assert "-k 3 has none" in refused(capsys, "select", rising, "--target", "type", "--max-features", "6", "-k", "3")


@pytest.mark.parametrize("method", ["fisherscore", "MRMR", "relieff"])
def test_other_methods_rank_by_their_own_scores(table, tmp_path, capsys, method):
    X, labels = noisy()
    name = {name.lower(): name for name in discover()}[method.lower()]
    found = summary_of(capsys, table, "--target", "type", "-k", "4", "--method", method, "-o", str(tmp_path / "out"))
    selector = discover()[name](12).fit(X, labels)
    order = np.argsort(selector.ranking_)[:4]
    assert found["selected"] == [f"g{j}" for j in order]
    assert found["scores"] == pytest.approx(selector.scores_[order].tolist(), rel=1e-5)
    assert contents(tmp_path / "out").keys() == RESULTS - {"path.npz"}
    assert found["arguments"]["method"] == name
    predictions = predictions_by_k(discover()[name](), X, labels, range(1, 13), summarise(np.asarray(labels)).folds())
    expected = predictions.fold_scores(METRICS["accuracy"]).mean(axis=0)
    assert [row["linear_fold_mean"] for row in found["cv"]] == pytest.approx(expected.tolist())


def test_every_supervised_method_is_taken(quick_table, capsys):
    for name in supervised_methods():
        assert run(["select", quick_table, "--target", "type", "-k", "2", "--method", name.lower()]) == 0, name
        assert "2 of 12 features" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "fischer"], "'FisherScore'"),
        (["--method", "udfs"], "does not look at the labels"),
        (["--method", "rfs", "--include", "g1"], "--include does not go with --method RFS"),
        (["--method", "mrmr", "--feature-groups", "GROUPS"], "--feature-groups does not go with"),
        (["--method", "mrmr", "--scale", "none"], "--scale does not go with"),
        (["--method", "mrmr", "--alpha", "1"], "--alpha does not go with"),
        (["-k", "most"], "most"),
        (["-k", "0"], "0"),
        (["--open"], "-o DIR"),
        (["--stability", "7"], "even number"),
        (["--stability", "0"], "--stability"),
        (["--n-jobs", "0"], "--n-jobs"),
        (["--max-memory", "much"], "for example 8G"),
        (["--max-memory", "-1G"], "for example 8G"),
        (["--include", "g1,G2"], "The closest name is 'g2'"),
        (["--exclude", "g1,g1"], "--exclude names 'g1' twice"),
        (["--include", ","], "names nothing"),
        (["--include", "@nowhere.txt"], "'nowhere.txt' cannot be read"),
        (["--feature-groups", "nowhere.txt"], "'nowhere.txt' cannot be read"),
        (["--labels", "nowhere.txt"], "nowhere.txt"),
        (["--groups", "typo"], "'type'"),
        (["--samples-in", "tubes"], "tubes"),
    ],
)
def test_wrong_options_are_refused_before_any_work(table, tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "groups.txt").write_text("g1\tx\ng2\tx\n")
    options = ["groups.txt" if option == "GROUPS" else option for option in options]
    assert message in refused(capsys, "select", table, "--target", "type", *options)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["groups.txt"]


@pytest.mark.parametrize("form", ["commas", "@file", "file"])
def test_included_and_excluded_features(table, tmp_path, capsys, form):
    file = tmp_path / "names.txt"
    file.write_text("g7\n\n  g10 \n", encoding="utf-8")
    wish = {"commas": "g7, g10", "@file": f"@{file}", "file": str(file)}[form]
    found = summary_of(capsys, table, "--target", "type", "-k", "4", "--include", wish, "--exclude", "g0")
    X, labels = noisy()
    expected = L20Selector(4, include=[7, 10], exclude=[0], max_features=12).fit(X, labels)
    assert found["selected"] == [f"g{j}" for j in expected.path_.support(4)]
    assert {"g7", "g10"} == set(found["selected"][:2])
    assert [row["n_features"] for row in found["cv"]] == list(range(2, 12))  # what is included is always there
    left_out = summary_of(capsys, table, "--target", "type", "-k", "11", "--exclude", wish)
    assert len(left_out["selected"]) == 10
    assert not {"g7", "g10"} & set(left_out["selected"])


def test_groups_of_features(table, tmp_path, capsys):
    file, output = tmp_path / "pathways.tsv", tmp_path / "out"
    file.write_text("g3\tupper\ng5\tupper\ng8\tlower\ng9\tlower\n\ng11\tlower\n")
    options = ["--feature-groups", str(file), "-k", "3", "-o", str(output)]
    found = summary_of(capsys, table, "--target", "type", *options)
    X, labels = noisy()
    selector = L20Selector(3, feature_groups=[[3, 5], [8, 9, 11]], max_features=12).fit(X, labels)
    rows = read_tsv(output / "selection.tsv")
    members = {name for row in rows for name in row["members"].split(", ")}
    assert members == {f"g{j}" for j in selector.path_.support(3)}
    assert [row["feature"] for row in rows] == found["selected"]
    assert "3 of 9 feature groups" in found["answer"]
    file.write_text("g3 upper\n")
    assert "line 1 must be a feature, a tab and its group" in refused(capsys, "select", table, *options, "--force")
    file.write_text("G3\tupper\n")
    assert "closest name is 'g3'" in refused(capsys, "select", table, "--target", "type", *options, "--force")
    file.write_text("\n")
    assert "is empty" in refused(capsys, "select", table, *options, "--force")


def test_donors_stay_together(tmp_path, capsys):
    X, labels = noisy()
    donors = [f"d{i % 6}" for i in range(60)]
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(12)])
    frame.assign(type=labels, donor=donors).to_csv(tmp_path / "table.csv", index=False)
    options = ["--target", "type", "--groups", "donor", "-k", "3", "--stability", "6"]
    found = summary_of(capsys, str(tmp_path / "table.csv"), *options)
    stable = StabilitySelector(L20Selector(3, max_features=12), n_resamples=6, random_state=0)
    assert found["stability"]["index"] == pytest.approx(stable.fit(X, labels, groups=donors).stability_)
    folds = summarise(np.asarray(labels)).folds(donors)
    expected = predictions_by_k(L20Selector(), X, labels, range(1, 13), folds).fold_scores(METRICS["accuracy"])
    assert [row["linear_fold_mean"] for row in found["cv"]] == pytest.approx(expected.mean(axis=0).tolist())
    assert "by group" in found["protocol"]
    frame.assign(type=labels, donor=np.where(labels == "left", "d9", donors)).to_csv(tmp_path / "table.csv", index=False)
    found = summary_of(capsys, str(tmp_path / "table.csv"), "--target", "type", "--groups", "donor", "-k", "3")
    assert any(text.startswith("Class 'left' is in one 'donor' only") for text in found["warnings"])


def test_logarithms(tmp_path, capsys):
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b"], 30)
    counts = rng.negative_binomial(0.5, 0.02, size=(60, 30)).astype(float)
    counts[:30, :3] *= 4
    file = write_table(tmp_path / "counts.tsv", counts, labels)
    plain = summary_of(capsys, file, "--target", "type", "-k", "3")
    assert any("--log" in text for text in plain["warnings"])
    logged = summary_of(capsys, file, "--target", "type", "-k", "3", "--log")
    assert not any("--log" in text for text in logged["warnings"])
    expected = L20Selector(3, max_features=30).fit(np.log1p(counts), labels)
    assert logged["selected"] == [f"g{j}" for j in expected.path_.support(3)]
    assert logged["scores"] == pytest.approx(expected.scores_[expected.path_.support(3)].tolist(), rel=1e-5)
    file = write_table(tmp_path / "negative.tsv", counts - 1, labels)
    assert "the lowest is -1" in refused(capsys, "select", file, "--target", "type", "--log", code=3)


def test_stability(table, tmp_path, capsys):
    X, labels = noisy()
    options = ["--target", "type", "-k", "3", "--stability", "10", "--seed", "4"]
    found = summary_of(capsys, table, *options, "-o", str(tmp_path / "out"))
    expected = StabilitySelector(L20Selector(3, max_features=12), n_resamples=10, random_state=4).fit(X, labels)
    order = L20Selector(3, max_features=12).fit(X, labels).path_.support(3)
    assert found["stability"]["index"] == pytest.approx(expected.stability_)
    assert found["stability"]["frequencies"] == pytest.approx(expected.frequencies_[order].tolist())
    rows = read_tsv(tmp_path / "out" / "stability.tsv")
    assert [row["feature"] for row in rows] == [f"g{j}" for j in np.argsort(expected.ranking_)[: len(rows)]]
    two = summary_of(capsys, table, *options, "--n-jobs", "2", "-o", str(tmp_path / "two"))
    assert two == found
    assert contents(tmp_path / "two") == contents(tmp_path / "out")
    # A run without it, into the same folder, leaves nothing of it.
    assert run(["select", table, "--target", "type", "-o", str(tmp_path / "out"), "--force"]) == 0
    assert contents(tmp_path / "out").keys() == RESULTS


def test_stability_is_that_of_the_number_that_was_chosen(table, capsys):
    X, labels = noisy()
    found = summary_of(capsys, table, "--target", "type", "-k", "auto", "--stability", "6")
    k = found["k"]
    assert k < 12  # of all of them the stability would be 1
    expected = StabilitySelector(L20Selector(k, max_features=12), n_resamples=6, random_state=0).fit(X, labels)
    assert found["stability"]["index"] == pytest.approx(expected.stability_)


def test_a_method_without_a_path_leaves_no_path_of_an_earlier_run(quick_table, tmp_path):
    output = str(tmp_path / "out")
    assert run(["select", quick_table, "--target", "type", "-o", output]) == 0
    assert run(["select", quick_table, "--target", "type", "-o", output, "--force", "--method", "MRMR"]) == 0
    assert contents(tmp_path / "out").keys() == RESULTS - {"path.npz"}


def test_what_the_reader_notices_is_in_the_report(tmp_path, capsys):
    X, labels, _ = planted()
    names = ["1-Mar", *(f"g{j}" for j in range(1, 12))]
    file = write_table(tmp_path / "table.tsv", X, with_lonely(labels), names)
    found = summary_of(capsys, file, "--target", "type", "-k", "3")
    assert any("date" in text for text in found["warnings"])


def test_labels_of_another_file_and_samples_in_columns(tmp_path, capsys):
    X, labels, _ = planted()
    samples = [f"s{i}" for i in range(60)]
    frame = pd.DataFrame(X.T, columns=samples, index=[f"g{j}" for j in range(12)])
    frame.to_csv(tmp_path / "genes.csv", index_label="gene")
    pd.DataFrame({"sample": samples[::-1], "kind": labels[::-1]}).to_csv(tmp_path / "labels.csv", index=False)
    options = ["--labels", str(tmp_path / "labels.csv"), "--samples-in", "columns", "-k", "3"]
    found = summary_of(capsys, str(tmp_path / "genes.csv"), *options)
    assert found["selected"] == [f"g{j}" for j in L20Selector(3, max_features=12).fit(X, labels).path_.support(3)]


def test_a_sparse_h5ad_file_stays_sparse(tmp_path, capsys, monkeypatch):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 40)
    X = sp.random_array((120, 300), density=0.1, random_state=rng, format="csr")
    X = sp.csr_array(X + sp.csr_array(np.where(np.arange(300) < 6, 1.0, 0.0) * (rng.random((120, 300)) < 0.1)))
    X.data[:] += 0.1
    adata = anndata.AnnData(sp.csr_matrix(X))
    adata.obs["kind"] = pd.Categorical(labels)
    adata.var_names = [f"g{j}" for j in range(300)]
    adata.write_h5ad(tmp_path / "cells.h5ad")
    widest = []
    original = sp.csr_array.toarray
    for kind in (sp.csr_array, sp.csc_array):
        monkeypatch.setattr(
            kind, "toarray", lambda self, *given, **named: widest.append(self.shape) or original(self, *given)
        )
    options = ["--target", "kind", "-k", "4", "-o", str(tmp_path / "out")]
    found = summary_of(capsys, str(tmp_path / "cells.h5ad"), *options)
    assert found["selected"] == [f"g{j}" for j in L20Selector(4, max_features=100).fit(X, labels).path_.support(4)]
    assert max(n_columns for _, n_columns in widest) <= 200  # the features of the largest panel, and their substitutes
    message = refused(capsys, "select", str(tmp_path / "cells.h5ad"), "--target", "kind", "--method", "MRMR")
    assert "needs a dense table" in message


def test_the_page_is_opened(quick_table, tmp_path):
    browser, seen = tmp_path / "browser", tmp_path / "seen.txt"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    output = tmp_path / "out"
    environment = {"BROWSER": f"{browser} %s"}
    assert (
        start("select", quick_table, "--target", "type", "-o", str(output), "--open", environment=environment).returncode
        == 0
    )
    assert seen.read_text().strip() == (output / "report.html").as_uri()


def test_the_package_itself_can_be_run():
    command = [sys.executable, "-m", "l20fs", "--version"]
    assert b"l20fs, version" in subprocess.run(command, capture_output=True, check=True, env=os.environ).stdout


def test_every_command_has_help_with_an_example(capsys):
    for command in ("select", "predict", "validate", "compare"):
        assert run([command, "--help"]) == 0
        assert f"  l20fs {command}" in capsys.readouterr().out, command


def test_more_features_than_the_page_shows(tmp_path, capsys):
    rng = np.random.default_rng(0)
    labels = with_lonely(np.repeat(["a", "b", "c"], 20))
    file = write_table(tmp_path / "wide.tsv", rng.standard_normal((60, 130)), labels)
    found = summary_of(capsys, file, "--target", "type", "-k", "120", "-o", str(tmp_path / "out"))
    assert found["k"] == 120
    assert len(read_tsv(tmp_path / "out" / "selection.tsv")) == 120
    assert len(page_data(tmp_path / "out")["features"]) == 100


def test_without_a_folder_the_page_is_not_built(table, tmp_path, monkeypatch, capsys):
    from l20fs.cli import results

    def refuse(findings):
        raise AssertionError("nobody asked for a page")

    monkeypatch.setattr(results, "build_content", refuse)
    assert run(["select", table, "--target", "type", "-k", "3"]) == 0
    capsys.readouterr()
    assert run(["select", table, "--target", "type", "-k", "3", "-o", str(tmp_path / "out")]) == 1
    assert "nobody asked for a page" in capsys.readouterr().err
