from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA
from scipy.io import savemat

from l20fs.cli import run
from l20fs.data import load_dataset, paper_sets

X = np.random.default_rng(0).standard_normal((8, 3))
Y = np.array([1, 2, 2, 1, 1, 2, 1, 2])


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder that is found by the environment."""
    monkeypatch.setenv("L20FS_DATA_DIR", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def mat(tmp_path):
    savemat(tmp_path / "mine.mat", {"X": X, "Y": Y})
    return str(tmp_path / "mine.mat")


def answer(capsys, *arguments, code=0):
    """Run and return what was printed to stdout, as JSON where it was asked for, and to stderr."""
    assert run(["data", *map(str, arguments)]) == code
    printed = capsys.readouterr()
    return (json.loads(printed.out) if "--json" in arguments and not code else printed.out), printed.err


def test_the_list_without_any_file(store, capsys):
    rows, messages = answer(capsys, "list", "--json")
    assert messages == ""
    assert [row["name"] for row in rows] == list(paper_sets())
    assert [row["status"] for row in rows] == ["missing"] * 7 + ["built-in"]
    for row, entry in zip(rows, paper_sets().values(), strict=True):
        assert (row["n_samples"], row["n_features"]) == entry.shape
        assert row["n_classes"] == len(row["classes"]) == len(entry.class_names)
        assert list(row["classes"].values()) == list(entry.class_sizes)
        assert tuple(row["paper_shape"]) == entry.paper_shape
        assert (row["exact"], row["source"], row["reference"]) == (entry.exact, entry.source, entry.reference)
        assert row["file"] is None
        assert row["sha256"] == entry.sha256 or row["status"] == "built-in"
    table, messages = answer(capsys, "list")
    for entry in paper_sets().values():
        line = next(line for line in table.splitlines() if f" {entry.name} " in line)
        assert str(entry.n_features) in line
    assert str(store) in messages
    assert "missing: not here" in messages
    assert "l20fs data info NAME" in messages
    assert not store.exists()


def test_the_list_of_the_real_files(capsys):
    if not (DATA / "paper").is_dir():
        pytest.skip("the paper's files are not here; set L20FS_DATA to the folder that holds paper/*.npz")
    rows, _ = answer(capsys, "list", "--json", "--data-dir", DATA)
    assert {row["name"]: row["status"] for row in rows} == dict.fromkeys(paper_sets(), "exact") | {"lung": "substitute"}
    _, messages = answer(capsys, "list", "--data-dir", DATA)
    assert "l20fs data info NAME" not in messages


def test_import_list_and_info_of_a_set_of_ones_own(store, mat, capsys):
    printed, messages = answer(capsys, "import", mat, "--as", "mine")
    assert printed == "mine: 8 samples, 3 features, 2 classes; a set of your own\n"
    assert str(store / "mine.npz") in messages
    np.testing.assert_array_equal(load_dataset("mine").X, X)
    rows, _ = answer(capsys, "list", "--json")
    assert [row["name"] for row in rows] == [*paper_sets(), "mine"]
    described, _ = answer(capsys, "info", "mine", "--json")
    assert described == rows[-1]
    assert described["status"] == "own"
    assert described["classes"] == {"1": 4, "2": 4}
    assert described["file"] == str(store / "mine.npz")
    text, _ = answer(capsys, "info", "mine")
    assert "1 4, 2 4" in text
    assert "own" in answer(capsys, "list")[0]
    again, _ = answer(capsys, "import", mat, "--as", "mine", "--json")
    assert again["sha256"] == described["sha256"]
    assert again["status"] == "own"


def test_the_option_comes_before_the_environment(store, mat, tmp_path, capsys):
    answer(capsys, "import", mat, "--as", "mine", "--data-dir", tmp_path / "other")
    assert (tmp_path / "other" / "mine.npz").is_file()
    assert not store.exists()
    assert answer(capsys, "info", "mine", "--data-dir", tmp_path / "other", "--json")[0]["status"] == "own"
    answer(capsys, "info", "mine", code=2)


def test_a_table_is_imported_by_its_column(store, tmp_path, capsys):
    file = tmp_path / "t.csv"
    file.write_text("a,b,kind\n1,2,u\n3,4,v\n5,6,u\n7,8,v\n")
    found, _ = answer(capsys, "import", file, "--as", "mine", "--target", "kind", "--json")
    assert found["classes"] == {"u": 2, "v": 2}
    assert load_dataset("mine").feature_names == ["a", "b"]
    assert "--target" in answer(capsys, "import", file, "--as", "mine2", code=2)[1]
    assert "'kin'" in answer(capsys, "import", file, "--as", "mine2", "--target", "kin", code=2)[1]


def test_info_says_what_is_missing_and_where_it_can_be_had(store, capsys):
    text, messages = answer(capsys, "info", "lung")
    words = " ".join(text.split())
    for part in (paper_sets()["lung"].differs, paper_sets()["lung"].source, "203 x 3312", "AD 139", "missing"):
        assert part in words
    assert "l20fs data import FILE --as lung" in messages
    text, messages = answer(capsys, "info", "srbct")
    assert "built-in" in text
    assert messages == ""


def test_a_bad_file_does_not_stop_the_list(store, mat, capsys):
    store.mkdir()
    (store / "brain.npz").write_bytes(b"damaged")
    (store / "mine.npz").write_bytes(b"")
    (store / "folder.npz").mkdir()
    rows, _ = answer(capsys, "list", "--json")
    by_name = {row["name"]: row for row in rows}
    assert by_name["brain"]["status"] == by_name["mine"]["status"] == "bad"
    assert "brain.npz" in by_name["brain"]["problem"]
    assert by_name["nci"]["status"] == "missing"
    assert "folder" not in by_name
    table, messages = answer(capsys, "list")
    assert "bad: here, but not to be used" in messages
    assert "?" in table
    assert "brain.npz" in " ".join(answer(capsys, "info", "brain")[0].split())


def test_a_wrong_set_is_refused_with_3(store, mat, capsys):
    printed, messages = answer(capsys, "import", mat, "--as", "brain", code=3)
    assert printed == ""
    assert "error: mine.mat: 8 x 3 values, but 'brain' has 42 x 5597" in messages
    assert not store.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["import", "MAT"], "--as"),
        (["import", "nowhere.mat", "--as", "mine"], "nowhere.mat"),
        (["import", "MAT", "--as", "../../etc/x"], "is no name for a data set"),
        (["import", "MAT", "--as", "x\0"], "is no name for a data set"),
        (["import", "MAT", "--as", "a" * 300], "is no name for a data set"),
        (["info", "a/b"], "is no name for a data set"),
        (["info", "brian"], "'brian' is neither in the catalogue (brain,"),
        (["info"], "NAME"),
        (["list", "--data-dir", "MAT"], "is a file"),
        (["lst"], "lst"),
    ],
)
def test_wrong_usage_ends_with_2(store, mat, tmp_path, capsys, arguments, message):
    printed, messages = answer(capsys, *(mat if argument == "MAT" else argument for argument in arguments), code=2)
    assert message in " ".join(messages.split())
    assert printed == ""
    assert {file.name for file in tmp_path.rglob("*")} == {"mine.mat"}


def test_a_folder_that_cannot_be_made_ends_with_1(mat, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert "error: " in answer(capsys, "import", mat, "--as", "mine", "--data-dir", tmp_path / "file" / "x", code=1)[1]


@pytest.mark.parametrize("variables", [{"HOME": ""}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_without_a_home_and_on_poor_terminals(tmp_path, variables):
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "SYSTEMROOT")}
    command = [sys.executable, "-m", "l20fs.cli", "data", "list"]
    done = subprocess.run(command, env=kept | variables, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert b"srbct" in done.stdout
    assert list(Path(tmp_path).iterdir()) == []
