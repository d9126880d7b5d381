"""Folders of results: of one command, exchanged as a whole, and with nothing of anybody else replaced."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from cli_samples import contents
from platforms import needs_posix

from l20fs.storage.files import JOURNAL, claimed
from l20fs.storage.result_folder import LAYOUTS, ResultFolder, TakenFolderError, command_of, describe_change, owner_of
from l20fs.storage.swap import recover


def write(content):
    return lambda stream: stream.write(content)


def fill(folder, version=b"1", **more):
    """Write the results of a run of predict, as far as the folder knows."""
    folder.write({"predictions.tsv": write(version), **{name: write(version) for name in more.values()}}, {"k": 1})


@pytest.fixture
def folder(tmp_path):
    made = ResultFolder(tmp_path / "out", "predict")
    with made.claim():
        fill(made)
    return made


def test_run_json_has_the_command_and_the_hash_of_every_file(folder):
    assert contents(folder.path).keys() == {"predictions.tsv", "run.json"}
    assert folder.record == {"command": "predict", "k": 1, "files": {"predictions.tsv": hashlib.sha256(b"1").hexdigest()}}
    assert (folder.changed(), folder.missing()) == ([], [])
    assert command_of(folder.path) == "predict"
    assert describe_change(folder.path, "predictions.tsv") is None
    (folder.path / "predictions.tsv").write_bytes(b"2")
    assert folder.changed() == ["predictions.tsv"]
    assert "is not the file that its run wrote" in describe_change(folder.path, "predictions.tsv")
    (folder.path / "predictions.tsv").unlink()
    assert folder.missing() == ["predictions.tsv"]


@pytest.mark.parametrize("record", ["", "[]", "{", "[" * 10**5, '{"files": 3}', '{"files": {"../x": 3}}', '{"command": []}'])
def test_a_damaged_run_json_is_like_none(folder, record):
    (folder.path / "run.json").write_text(record)
    assert (folder.recorded, folder.changed(), folder.missing()) == ({}, [], ["run.json"])
    assert command_of(folder.path) == "predict", "known by its files"
    with pytest.raises(TakenFolderError, match="holds results already"):
        folder.check()


@pytest.mark.parametrize("other", sorted(LAYOUTS.keys() - {"predict"}))
def test_no_other_command_writes_into_a_folder_not_even_by_force(folder, other):
    before = contents(folder.path)
    for force in (False, True):
        with pytest.raises(TakenFolderError, match=r"holds results of `l20fs predict` \(predictions\.tsv\)"):
            ResultFolder(folder.path, other).check(force=force)
    assert contents(folder.path) == before


def test_results_are_replaced_by_force_and_other_files_never(folder):
    (folder.path / "notes.txt").write_text("mine")
    with pytest.raises(TakenFolderError, match="Use --force"), folder.claim():
        pass
    with folder.claim(force=True):
        fill(folder, b"2", more="extra.tsv")
    with folder.claim(force=True):
        fill(folder, b"3")
    assert contents(folder.path).keys() == {"predictions.tsv", "run.json", "notes.txt"}, "what the last run has, and mine"


def test_a_run_is_marked_until_it_has_results_or_nothing(tmp_path):
    folder = ResultFolder(tmp_path / "out", "compare")

    cell = folder.path / "cells" / "x" / f"RFS-0-{'0' * 32}.json"

    def stop(n_cells):
        with folder.claim(data="a"):
            assert (folder.path / ".run.json").exists()
            if n_cells:
                cell.parent.mkdir(parents=True)
                cell.write_text("1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop(0)
    assert not folder.path.exists()
    with pytest.raises(KeyboardInterrupt):
        stop(1)
    assert owner_of(folder.path) == "compare"
    for other in ("select", "reproduce", "predict"):
        with pytest.raises(TakenFolderError, match="holds an unfinished run of `l20fs compare`"):
            ResultFolder(folder.path, other).check(force=True)
    with pytest.raises(TakenFolderError, match="on other data"):
        folder.check(data="b")
    with folder.claim(data="a"):
        folder.write({"comparison.csv": write(b"1")}, {"data": "a"})
    assert contents(folder.path).keys() == {"cells/x/RFS-0-" + "0" * 32 + ".json", "comparison.csv", "run.json"}
    with pytest.raises(TakenFolderError, match="on other data"):
        folder.check(data="b")
    folder.check(data="a")
    folder.check(data="b", force=True)


def test_files_that_a_repeated_command_did_not_write_are_not_replaced(tmp_path):
    folder = ResultFolder(tmp_path, "compare")
    (tmp_path / "curves-mine.svg").write_text("mine")
    with pytest.raises(TakenFolderError, match=r"not written by `l20fs compare`: curves-mine\.svg"):
        folder.check()
    (tmp_path / "curves-mine.svg").rename(tmp_path / "mine.svg")
    with folder.claim():
        folder.write({"comparison.csv": write(b"1"), "curves-KNN.svg": write(b"1")}, {})
    with folder.claim():
        folder.write({"comparison.csv": write(b"1")}, {})
    assert contents(tmp_path).keys() == {"comparison.csv", "run.json", "mine.svg"}
    (tmp_path / "comparison.csv").write_text("with my notes")
    with pytest.raises(TakenFolderError, match=r"changed after the run, .*: comparison\.csv\. Use --force"):
        folder.check()
    folder.check(force=True)


def test_folders_of_versions_that_kept_no_list_are_known_by_their_files(tmp_path):
    for name in ("exhibits.json", "accuracy-knn.md", "index.html"):
        (tmp_path / name).write_text("1")
    folder = ResultFolder(tmp_path, "reproduce")
    with folder.claim():
        folder.write({"datasets.md": write(b"2")}, {})
    assert folder.recorded.keys() == {"exhibits.json", "accuracy-knn.md", "index.html", "datasets.md"}
    folder.check()


def test_a_list_of_files_that_somebody_else_wrote_removes_nothing(folder):
    (folder.path / "notes.txt").write_text("mine")
    record = folder.record
    record["files"] |= {"notes.txt": "0" * 64, "../run.json": "0" * 64}
    (folder.path / "run.json").write_text(json.dumps(record))
    with folder.claim(force=True):
        fill(folder)
    assert contents(folder.path).keys() == {"predictions.tsv", "run.json", "notes.txt"}


@pytest.mark.parametrize("command", LAYOUTS)
def test_a_folder_in_which_a_run_is_writing_is_refused_before_the_work(tmp_path, command):
    folder = ResultFolder(tmp_path, command)
    with claimed(tmp_path), pytest.raises(BlockingIOError, match="another run is writing"):
        folder.check(force=True)
    folder.check()
    with folder.claim():
        folder.check()


@needs_posix
def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    folder = ResultFolder(tmp_path / "out", "predict")
    folder.check()
    with folder.claim():
        fill(folder)
    assert contents(tmp_path / "real").keys() == {"predictions.tsv", "run.json"}


def test_a_folder_inside_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "folds").mkdir()
    check = __import__("l20fs.storage.result_folder", fromlist=["x"]).check_writable

    def refuse(folder):
        if folder.name == "folds":
            raise OSError("cannot be written to (Permission denied)")
        check(folder)

    monkeypatch.setattr("l20fs.storage.result_folder.check_writable", refuse)
    with pytest.raises(OSError, match="Permission denied"):
        ResultFolder(tmp_path, "select").check()


# ------------------------------------------------------------------------------------------------------------- exchange


@pytest.mark.parametrize("name", ["replace", "fsync", "unlink"])
def test_a_write_that_fails_anywhere_leaves_the_old_set_or_the_new_one(tmp_path, monkeypatch, name):
    """Whoever opens the folder next finds one of the two, whole, and no other file."""
    original, n_states = getattr(os, name), {b"1": 0, b"2": 0}
    for call in range(1, 20):
        folder = ResultFolder(tmp_path / f"{call}", "predict")
        with folder.claim():
            fill(folder, b"1", stale="stale.tsv")
        old, n_calls = contents(folder.path), 0

        def fail(*given, call=call, **named):
            nonlocal n_calls
            n_calls += 1
            if n_calls == call:
                raise OSError(5, "Input/output error")
            return original(*given, **named)

        with claimed(folder.path), monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with suppress(OSError):
                fill(folder, b"2", more="more.tsv")
        if n_calls < call:
            break
        with folder.claim(force=True):
            pass
        version = (folder.path / "predictions.tsv").read_bytes()
        n_states[version] += 1
        assert not folder.changed()
        if version == b"1":
            assert contents(folder.path) == old
        else:
            assert contents(folder.path).keys() == {"predictions.tsv", "more.tsv", "run.json"}
    assert n_calls < call, "every call was tried"
    assert name != "replace" or min(n_states.values()) > 0


def test_readers_finish_what_a_killed_run_began(folder, monkeypatch):
    replace, n_calls = os.replace, 0

    def die(*given):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3:
            raise KeyboardInterrupt
        replace(*given)

    with claimed(folder.path), monkeypatch.context() as patch:
        patch.setattr(os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            fill(folder, b"2")
    assert (folder.path / JOURNAL).exists()
    with claimed(folder.path), pytest.raises(BlockingIOError, match="another run is writing"):
        describe_change(folder.path, "predictions.tsv")
    assert describe_change(folder.path, "predictions.tsv") is None
    assert (folder.path / "predictions.tsv").read_bytes() == b"2"
    assert contents(folder.path).keys() == {"predictions.tsv", "run.json"}


HELLO = hashlib.sha256(b"hello").hexdigest()
PART = ".x.0123456789abcdef.part"


@pytest.mark.parametrize(
    "journal",
    [
        {"put": {"../x": [PART, HELLO]}, "remove": {}},
        {"put": {"x": ["../mine", HELLO]}, "remove": {}},
        {"put": {"x": ["mine", HELLO]}, "remove": {}},
        {"put": {"x": [PART, "0" * 64]}, "remove": {}},
        {"put": {}, "remove": {"../mine": HELLO}},
        {"put": {}, "remove": {"mine": "0" * 64}},
        {"put": {}, "remove": ["mine"]},
        {"put": 3, "remove": {}},
        [],
    ],
)
def test_a_journal_of_somebody_else_does_nothing(tmp_path, journal):
    folder = tmp_path / "out"
    folder.mkdir()
    for file in (tmp_path / "mine", folder / "mine", folder / PART):
        file.write_bytes(b"hello")
    (folder / JOURNAL).write_text(json.dumps(journal))
    recover(folder)
    assert contents(tmp_path) == {"mine": b"hello", "out/mine": b"hello", f"out/{PART}": b"hello"}


@needs_posix
def test_a_journal_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / JOURNAL).symlink_to(Path("/dev/zero"))
    with pytest.raises(OSError, match="a symbolic link"):
        recover(tmp_path)
