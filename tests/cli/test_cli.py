from __future__ import annotations

import html
import json
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_samples import RESULTS, contents, page_data, planted, read_tsv, with_lonely, write_table
from samples import SOLVERS

from l20fs import L20Selector
from l20fs.cli import load, run
from l20fs.data import load_srbct, make_planted
from l20fs.evaluation import judges

DEFAULTS = L20Selector().get_params()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X, labels, _ = planted()
    return write_table(tmp_path_factory.mktemp("data") / "table.tsv", X, labels)


@pytest.fixture(scope="module")
def quick_table(tmp_path_factory):
    X, labels, _ = planted()
    return write_table(tmp_path_factory.mktemp("data") / "quick.tsv", X, with_lonely(labels))


@pytest.fixture(scope="module")
def first_results(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("first") / "out"
    assert run(["select", table, "--target", "type", "-k", "3", "-o", str(folder)]) == 0
    return folder


@pytest.fixture
def results(tmp_path, first_results):
    """A folder with the results of one run, to be spoiled."""
    return Path(shutil.copytree(first_results, tmp_path / "results"))


def test_built_in_set_prints_tables_on_stdout_and_messages_on_stderr(capsys):
    assert run(["select", "srbct"]) == 0
    printed = capsys.readouterr()
    tumours = load_srbct()
    selector = L20Selector(20, max_features_to_select=100).fit(tumours.data, tumours.target)
    genes = [tumours.feature_names[j] for j in selector.path_.support(20)]
    lines = printed.out.splitlines()
    places = [next(i for i, line in enumerate(lines) if gene in line) for gene in genes]
    assert places == sorted(places)
    assert "KNN-5" in printed.out
    assert "20 of 2308 features tell 4 classes apart: " in printed.out
    assert "36.5 %" in printed.out  # 23 of the 63 tumours are EWS
    assert "63 samples, 2308 features, 4 classes" in printed.err
    assert "-o DIR" in printed.err
    assert not any(gene in printed.err for gene in genes)


def test_output_folder_holds_the_results(results):
    assert contents(results).keys() == RESULTS
    summary = json.loads((results / "run.json").read_text())
    selection = read_tsv(results / "selection.tsv")
    assert [row["rank"] for row in selection] == ["1", "2", "3"]
    rows = read_tsv(results / "cv.tsv")
    assert [int(row["n_features"]) for row in rows] == list(range(1, 13))
    assert {row["metric"] for row in rows} == {"accuracy"}
    shown = page_data(results)
    assert shown["features"][:3] == [row["feature"] for row in selection]
    assert [shown["columns"]["score"][:3], shown["coef"][2]] == [
        [row["score"] for row in selection],
        ";".join(" ".join(row[f"coef_{name}"] for name in shown["classes"]) for row in selection),
    ]
    assert summary["command"] == "select"
    assert summary["input"]["n_samples"] == 60
    assert sum(summary["input"]["classes"].values()) == 60
    assert summary["arguments"]["n_features"] == 3
    options = {"method": "solver"} | {name: name for name in ("ridge", "scale", "class_weight")}
    assert {name: summary["arguments"][name] for name in options} == {
        name: DEFAULTS[parameter] for name, parameter in options.items()
    }


def test_a_rerun_writes_the_same_bytes(results, table):
    before = contents(results)
    arguments = ["select", table, "--target", "type", "-k", "3", "-o"]
    for name in RESULTS:
        (results / name).write_bytes(b"damaged")
    assert run([*arguments, str(results), "--force"]) == 0
    assert contents(results) == before
    elsewhere = results.parent / "new" / "folder"
    assert run([*arguments, str(elsewhere)]) == 0
    assert contents(elsewhere) == before


def test_the_way_a_run_is_spelled_changes_no_byte(tmp_path, quick_table):
    short, long = str(tmp_path / "short"), str(tmp_path / "long")
    assert run(["select", quick_table, "--target", "type", "-k", "3", "-o", short]) == 0
    given = [f"--method={DEFAULTS['solver']}", "--ridge", str(DEFAULTS["ridge"]), f"--scale={DEFAULTS['scale']}"]
    given += ["--class-weight", DEFAULTS["class_weight"] or "none"]
    assert run(["select", "--seed", "0", *given, "-k3", "--output", long, "--target", "type", quick_table]) == 0
    assert contents(tmp_path / "short") == contents(tmp_path / "long")


@pytest.mark.parametrize("present", [RESULTS, {"selection.tsv"}, {"run.json"}])
def test_results_are_not_replaced_without_force(results, table, capsys, present):
    for name in RESULTS - present:
        (results / name).unlink()
    before = contents(results)
    assert run(["select", table, "--target", "type", "-k", "2", "-o", str(results)]) == 2
    printed = capsys.readouterr()
    assert "--force" in printed.err
    assert printed.out == ""
    assert contents(results) == before


def test_other_files_in_the_output_folder_stay(tmp_path, quick_table):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert run(["select", quick_table, "--target", "type", "-k", "3", "-o", str(tmp_path / "out"), "--force"]) == 0
    assert contents(tmp_path / "out").keys() == RESULTS | {"notes.txt"}
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def loads_strictly(text):
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_is_what_the_files_hold(results, table, capsys):
    assert run(["select", table, "--target", "type", "-k", "3", "--json"]) == 0
    summary = loads_strictly(capsys.readouterr().out)
    stored = loads_strictly((results / "run.json").read_text())
    assert {name: summary[name] for name in stored.keys() - {"command"}}.items() <= stored.items()
    assert summary["selected"] == [row["feature"] for row in read_tsv(results / "selection.tsv")]
    assert summary["level"] == [row["level"] for row in read_tsv(results / "selection.tsv")]
    stated = read_tsv(results / "cv.tsv")
    assert len(summary["cv"]) == 12
    for entry, row in zip(summary["cv"], stated, strict=True):
        assert entry.pop("metric") == row.pop("metric") == summary["score"]["metric"]
        assert entry == pytest.approx({name: float(value) for name, value in row.items()}, rel=1e-9)  # ten digits
    page = html.unescape((results / "report.html").read_text()).replace("\N{NO-BREAK SPACE}", " ")
    assert all(text in page for text in (summary["answer"], *summary["warnings"]))


@pytest.mark.parametrize("seed", [0, 1])
def test_selection_from_a_file_is_that_of_the_library(tmp_path, capsys, seed):
    # Six classes give each of three features a say: all three were found for each of 200 seeds.
    X, y, informative = make_planted(400, 60, 3, 6, noise=0.1, random_state=seed)
    labels = with_lonely(y.astype(str))
    file = write_table(tmp_path / "planted.tsv", X, labels)
    assert run(["select", file, "--target", "type", "-k", "3", "--json"]) == 0
    selected = json.loads(capsys.readouterr().out)["selected"]
    expected = L20Selector(3, max_features_to_select=60).fit(X, labels).path_.support(3)
    assert selected == [f"g{j}" for j in expected]
    assert set(selected) == {f"g{j}" for j in informative}


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ([], {}),
        *((["--method", name], {"solver": name}) for name in SOLVERS),
        (["--scale", "zscore"], {"scale": "zscore"}),
        *((["--scale", name], {"scale": name}) for name in ("none", "moderated", "auto")),
        (["--ridge", "0.5"], {"ridge": 0.5}),
        (["--ridge", "0"], {"ridge": 0.0}),
        (["--ridge", "auto"], {"ridge": "auto"}),
        (["--class-weight", "balanced"], {"class_weight": "balanced"}),
        (["--class-weight", "none"], {"class_weight": None}),
    ],
    ids=str,
)
def test_options_reach_the_selector(tmp_path, capsys, monkeypatch, options, parameters):
    fitted = []

    class Recorder(L20Selector):
        def fit(self, *arguments, **named):
            fitted.append(self.get_params())
            return super().fit(*arguments, **named)

    monkeypatch.setattr(load, "L20Selector", Recorder)
    X, labels, _ = planted()
    X, labels = X * np.linspace(0.2, 2.0, X.shape[1]), with_lonely(labels)
    file = write_table(tmp_path / "table.tsv", X, labels)
    assert run(["select", file, "--target", "type", "-k", "4", "--json", *options]) == 0
    # What is not asked for is left to the selector, all of it.
    assert fitted == [DEFAULTS | {"n_features_to_select": 4, "max_features_to_select": 12} | parameters]
    summary = json.loads(capsys.readouterr().out)
    selector = L20Selector(4, max_features_to_select=12, **parameters).fit(X, labels)
    assert summary["selected"] == [f"g{j}" for j in selector.path_.support(4)]
    np.testing.assert_allclose(summary["scores"], selector.scores_[selector.path_.support(4)], rtol=1e-5)
    for option, value in zip(options[::2], options[1::2], strict=True):
        recorded = summary["arguments"][option.removeprefix("--").replace("-", "_")]
        assert recorded == (value if isinstance(recorded, str) else float(value))


def test_help_offers_every_solver_and_states_the_defaults(capsys):
    assert run(["select", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert ", ".join(SOLVERS) in text
    stated = [DEFAULTS[name] or "none" for name in ("solver", "ridge", "scale", "class_weight")]
    for value in [DEFAULTS["n_features_to_select"], *stated]:
        assert f"[default: {value}" in text


def shown_weights(printed):
    cells = [[cell.strip() for cell in line.split("│")[1:4]] for line in printed.splitlines()]
    return {row[1]: row[2] for row in cells if len(row) == 3 and row[1].startswith("g")}


def test_seed_changes_the_folds_only(table, capsys):
    summaries = []
    for seed in ("0", "1"):
        assert run(["select", table, "--target", "type", "-k", "3", "--json", "--seed", seed]) == 0
        summaries.append(json.loads(capsys.readouterr().out))
    assert summaries[0]["selected"] == summaries[1]["selected"]
    assert summaries[0]["cv"] != summaries[1]["cv"]


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["select", "--help"], ["--version"]])
def test_help_ends_with_0(capsys, arguments):
    assert run(arguments) == 0
    assert "l20fs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage"),
        (["selekt"], "selekt"),
        (["select"], "DATA"),
        (["select", "nowhere.csv", "--target", "type"], "'nowhere.csv'"),
        (["select", "TABLE"], "--target"),
        (["select", "TABLE", "--target", "tpye"], "'type'"),
        (["select", "TABLE", "--target", "type", "-k", "0"], "-k"),
        (["select", "TABLE", "--target", "type", "-k", "few"], "-k"),
        (["select", "TABLE", "--target", "type", "--method", "lasso"], "lasso"),
        (["select", "TABLE", "--target", "type", "--class-weight", "equal"], "equal"),
        (["select", "TABLE", "--target", "type", "--ridge", "-1"], "--ridge"),
        (["select", "TABLE", "--target", "type", "--seed", "-1"], "seed"),
        (["select", "TABLE", "--target", "type", "--nonsense"], "--nonsense"),
    ],
)
def test_wrong_usage_ends_with_2(table, capsys, arguments, message):
    assert run([table if argument == "TABLE" else argument for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", [], "empty"),
        ("type,a,b\n", [], "no samples"),
        ("type,a,b\nu,1,2\nv,3,4\nu,5,6,7\n", [], "3 fields"),
        ("type,a,b\nu,1,x\nv,3,y\nu,5,z\nv,7,w\n", [], "'b'"),
        ("type,a,b\nu,1,2\nv,3,\nu,5,6\nv,7,8\n", ["--missing", "refuse"], "'b'"),
        ("type,a,b\nu,1,2\nv,3,inf\nu,5,6\nv,7,8\n", [], "'b'"),
        ("type,a,b\nu,1,2\nu,3,4\nu,5,6\nu,7,8\n", ["-k", "1"], "one class only, 'u'"),
        ("type,a,b\nu,1,2\nv,3,4\nu,5,6\nv,7,8\n", ["-k", "3"], "2 features"),
        ("type,a,b\nu,1,2\nv,1,2\nu,1,2\nv,1,2\n", ["-k", "1"], ""),
    ],
)
def test_bad_data_end_with_3(tmp_path, capsys, content, options, message):
    file = tmp_path / "table.csv"
    file.write_text(content)
    output = tmp_path / "out"
    assert run(["select", str(file), "--target", "type", "-k", "2", "-o", str(output), *options]) == 3
    printed = capsys.readouterr()
    assert message in printed.err
    assert "error: " in printed.err
    assert printed.out == ""
    assert not output.exists()


def test_a_pickle_is_refused_and_not_run(tmp_path, capsys):
    file, canary = tmp_path / "table.pkl", tmp_path / "canary"
    file.write_bytes(pickle.dumps(Canary(canary)))
    assert run(["select", str(file), "--target", "type"]) == 3
    assert ".pkl" in capsys.readouterr().err
    assert not canary.exists()


def test_an_interrupt_at_work_ends_with_130(monkeypatch, results, table, capsys):
    before = contents(results)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(judges, "nearest_neighbours", interrupt)
    assert run(["select", table, "--target", "type", "-k", "2", "-o", str(results), "--force"]) == 130
    printed = capsys.readouterr()
    assert "interrupted" in printed.err
    assert printed.out == ""
    assert contents(results) == before


def test_a_class_with_one_sample_has_no_cross_validation(tmp_path, quick_table, capsys):
    output = tmp_path / "out"
    assert run(["select", quick_table, "--target", "type", "-k", "3", "-o", str(output)]) == 0
    printed = capsys.readouterr()
    assert "No cross-validation: class 'lonely' has 1 sample only" in printed.err
    assert "Accuracy" not in printed.out
    assert contents(output).keys() == RESULTS
    assert json.loads((output / "run.json").read_text())["protocol"] is None
    assert page_data(output)["confusion"] is None
    assert "how well is not known" in printed.out
    assert read_tsv(output / "cv.tsv") == []


def test_a_class_with_three_samples_has_three_folds(tmp_path, capsys):
    X, labels, _ = planted()
    labels = labels.astype(object)
    labels[:3] = "rare"
    file = write_table(tmp_path / "table.tsv", X, labels)
    assert run(["select", file, "--target", "type", "-k", "3", "--json"]) == 0
    printed = capsys.readouterr()
    assert "3 folds instead of 5: class 'rare' has 3 samples" in printed.err
    assert json.loads(printed.out)["protocol"].startswith("3-fold")


@pytest.mark.parametrize("name", ["[red]x", "[/]", "x[5]", r"\[red]x", ":boy:", "None", "=cmd|'/c calc'!A1", "gène", "a b"])
def test_names_are_shown_and_written_as_they_are(tmp_path, capsys, name):
    X, labels, informative = planted()
    names = [f"g{j}" for j in range(X.shape[1])]
    names[informative[0]] = name
    labels = with_lonely(np.where(labels == "left", name, labels))
    file = write_table(tmp_path / "table.tsv", X, labels, names)
    assert run(["select", file, "--target", "type", "-k", "12", "-o", str(tmp_path / "out")]) == 0
    cells = [[cell.strip() for cell in line.split("│")[2:5:2]] for line in capsys.readouterr().out.splitlines()]
    shown = [row for row in cells if len(row) == 2]
    assert name in [feature for feature, _ in shown]
    assert any(level in (f"high in {name}", f"low in {name}") for _, level in shown)
    selection = read_tsv(tmp_path / "out" / "selection.tsv")
    assert [row["feature"] for row in selection if row["feature"] not in names] == []
    assert name in [row["feature"] for row in selection]
    assert f"coef_{name}" in selection[0]


def test_stdout_cut_by_head(quick_table):
    command = [sys.executable, "-m", "l20fs.cli", "select", quick_table, "--target", "type", "-k", "3", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as selecting:
        head = subprocess.run(["head", "-1"], stdin=selecting.stdout, stdout=subprocess.PIPE, check=True)
        selecting.stdout.close()
        messages = selecting.stderr.read()
    assert head.stdout == b"{\n"
    assert b"60 samples" in messages
    assert b"Traceback" not in messages
    assert b"Exception ignored" not in messages


class Canary:
    """Creates a file when it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def test_constant_columns_are_not_counted_among_the_panel_sizes(tmp_path, capsys):
    X, labels, _ = planted()
    X[:, 3:] = 1.0
    file = write_table(tmp_path / "table.tsv", X, labels)
    assert run(["select", file, "--target", "type", "--json"]) == 0
    printed = capsys.readouterr()
    summary = json.loads(printed.out)
    assert sorted(summary["selected"]) == ["g0", "g1", "g2"]
    assert [entry["n_features"] for entry in summary["cv"]] == [1, 2, 3]
    assert "only 3 of" in printed.err
    assert any("only 3 of" in text for text in summary["warnings"])


def test_the_common_options_are_the_first_of_the_help(capsys):
    assert run(["select", "--help"]) == 0
    text = capsys.readouterr().out
    named = re.findall(r"^  (-\w|--[a-z-]+)", text[text.index("Options:") :], re.MULTILINE)
    assert named[:5] == ["--target", "-k", "--auto", "-o", "--open"]
    assert len(named) == len(set(named))


def test_a_mistyped_command_is_asked_for(capsys):
    assert run(["selct", "srbct"]) == 2
    assert "There is no command 'selct'. Did you mean 'select'?" in capsys.readouterr().err


def test_all_of_few_features_are_selected_with_a_word(tmp_path, capsys):
    (tmp_path / "a.csv").write_text(
        "type,g,h\n" + "".join(f"{'uv'[i % 2]},{i % 2 + i / 9},{i * i % 7}\n" for i in range(12))
    )
    note = "All features are selected: they are no more than 20. Choose fewer: -k N, or --auto 1se."
    assert run(["select", str(tmp_path / "a.csv"), "--target", "type"]) == 0
    assert note in capsys.readouterr().err
    assert run(["select", str(tmp_path / "a.csv"), "--target", "type", "-k", "2"]) == 0
    assert note not in capsys.readouterr().err
