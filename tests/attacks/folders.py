"""Output folders with links, pipes and results of others in them; edited results; cells that were tampered with."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
from cli_samples import planted, write_table

from attacks import attack
from l20fs.cli import run
from l20fs.experiments import compare as comparison
from l20fs.storage.result_folder import ResultFolder

SMALL = ["--target=type", "-k", "2"]


def table(folder: Path) -> str:
    X, labels, _ = planted(n_features=4)
    return write_table(folder / "table.tsv", X, labels)


def select(folder: Path, *options: str) -> list[str]:
    return ["select", table(folder), *SMALL, "-o", str(folder / "out"), *options]


def run_quietly(arguments: list[str]) -> None:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        assert run(arguments) == 0


def results_of(folder: Path, command: str) -> None:
    """Make something that looks like the finished run of a command."""
    names = {"select": "selection.tsv", "compare": "comparison.csv", "reproduce": "index.html"}
    (folder / "out").mkdir()
    (folder / "out" / names[command]).write_text("")
    (folder / "out" / "run.json").write_text(json.dumps({"command": command, "files": {}}))


# ------------------------------------------------------------------------------------------------- links, pipes, devices


def linked(folder: Path, name: str, *, target: str = "elsewhere") -> None:
    (folder / "out").mkdir()
    (folder / "elsewhere").mkdir()
    (folder / "out" / name).symlink_to(folder / target)


@attack(r"stability is a symbolic link", code=2)
def resamples_into_a_linked_folder(folder: Path) -> list[str]:
    linked(folder, "stability")
    return select(folder, "--stability", "2")


@attack(r"folds is a symbolic link", code=2)
def folds_into_a_linked_folder(folder: Path) -> list[str]:
    linked(folder, "folds")
    return select(folder, "--force")


@attack(r"passes is a symbolic link", code=2)
def passes_into_a_dangling_link(folder: Path) -> list[str]:
    linked(folder, "passes", target="nothing")
    return select(folder, "--resume")


@attack(r"selection.tsv is a symbolic link", code=2)
def a_result_that_is_a_link(folder: Path) -> list[str]:
    linked(folder, "selection.tsv", target="table.tsv")
    return select(folder, "--force")


@attack(r"report.html is a pipe", code=2)
def a_result_that_is_a_pipe(folder: Path) -> list[str]:
    (folder / "out").mkdir()
    os.mkfifo(folder / "out" / "report.html")
    return select(folder, "--force")


@attack(r"run.json is a folder", code=2)
def a_result_that_is_a_folder(folder: Path) -> list[str]:
    (folder / "out" / "run.json").mkdir(parents=True)
    return select(folder, "--force")


@attack(r"folds is a file, where a folder", code=2)
def a_file_where_the_folds_go(folder: Path) -> list[str]:
    (folder / "out").mkdir()
    (folder / "out" / "folds").write_text("mine")
    return select(folder)


@attack(r"x is a symbolic link", code=2)
def cells_into_a_linked_folder(folder: Path) -> list[str]:
    (folder / "out" / "cells").mkdir(parents=True)
    (folder / "out" / "cells" / "x").symlink_to(folder)
    return ["compare", table(folder), "--target=type", "-o", str(folder / "out")]


@attack(r"this is a link that leads nowhere", code=1)
def a_folder_that_is_a_dangling_link(folder: Path) -> list[str]:
    (folder / "out").symlink_to(folder / "nothing")
    return select(folder)


@attack(r"Results are in", code=0)
def a_journal_that_leads_elsewhere(folder: Path) -> list[str]:
    (folder / "out").mkdir()
    part = ".x.0123456789abcdef.part"
    (folder / "out" / part).write_text("new")
    digest = "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"
    journal = {"put": {"../canary": [part, digest]}, "remove": {"../table.tsv": digest}}
    (folder / "out" / ".swap.json").write_text(json.dumps(journal))
    return select(folder)


# ------------------------------------------------------------------------------------------------- one folder, one command


@attack(r"holds results of `l20fs select` \(selection.tsv\)\. Name another folder", code=2)
def compare_into_a_selection(folder: Path) -> list[str]:
    results_of(folder, "select")
    return ["compare", table(folder), "--target=type", "-o", str(folder / "out"), "--force"]


@attack(r"holds results of `l20fs compare`", code=2)
def select_into_a_comparison(folder: Path) -> list[str]:
    results_of(folder, "compare")
    return select(folder, "--force")


@attack(r"holds results of `l20fs compare`", code=2)
def reproduce_into_a_comparison(folder: Path) -> list[str]:
    results_of(folder, "compare")
    return ["reproduce", "datasets", "-o", str(folder / "out")]


@attack(r"holds an unfinished run of `l20fs select`", code=2)
def compare_into_an_unfinished_selection(folder: Path) -> list[str]:
    (folder / "out" / "folds").mkdir(parents=True)
    (folder / "out" / "folds" / "fold-0-0.npz").write_text("")
    return ["compare", table(folder), "--target=type", "-o", str(folder / "out")]


@attack(r"holds an unfinished run of `l20fs compare`", code=2)
def reproduce_into_an_unfinished_comparison(folder: Path) -> list[str]:
    (folder / "out" / "cells" / "x").mkdir(parents=True)
    (folder / "out" / "cells" / "x" / f"RFS-0-{'0' * 32}.json").write_text("")
    (folder / "out" / ".run.json").write_text('{"command": "compare"}')
    return ["reproduce", "datasets", "-o", str(folder / "out")]


@attack(r"not written by `l20fs compare`: rows.csv", code=2)
def a_file_of_the_user_in_the_way(folder: Path) -> list[str]:
    (folder / "out").mkdir()
    (folder / "out" / "rows.csv").write_text("mine")
    return ["compare", table(folder), "--target=type", "-o", str(folder / "out")]


# --------------------------------------------------------------------------------------------------------- edited results


@cache
def selection() -> dict[str, bytes]:
    """Return the files of a selection, made once."""
    with tempfile.TemporaryDirectory() as name:
        run_quietly(select(Path(name)))
        return {file.name: file.read_bytes() for file in (Path(name) / "out").iterdir()}


def edited(folder: Path, name: str, old: bytes, new: bytes) -> None:
    (folder / "out").mkdir()
    for each, content in selection().items():
        (folder / "out" / each).write_bytes(content.replace(old, new) if each == name else content)


@attack(r"panel.json is not the file that its run wrote .* Give .*panel.json itself")
def a_panel_of_another_run(folder: Path) -> list[str]:
    edited(folder, "panel.json", b"\n", b"\n\n")
    return ["predict", str(folder / "out"), table(folder)]


@attack(r"panel of 2 features", code=0)
def a_panel_that_is_meant(folder: Path) -> list[str]:
    edited(folder, "panel.json", b"\n", b"\n\n")
    return ["predict", str(folder / "out" / "panel.json"), table(folder)]


@attack(r"changed after the run, .*: selection.tsv\. Use --force", code=2)
def a_selection_with_notes(folder: Path) -> list[str]:
    edited(folder, "selection.tsv", b"\n", b"\tnote\n")
    return select(folder, "--resume")


# ------------------------------------------------------------------------------------------------------- damaged cells


def compare(folder: Path) -> list[str]:
    small = ["--target=type", "--methods=FisherScore", "--sizes=2", "--splits=2", "--n-jobs=1"]
    return ["compare", table(folder), *small, "-o", str(folder / "out")]


@attack(r"8 stored results were damaged and are computed again\.\n(?!.*damaged)", code=0)
def tampered_cells(folder: Path) -> list[str]:
    with patch.object(comparison, "figure_writers", lambda figure, name: {}):
        run_quietly(compare(folder))
    place = next((folder / "out" / "cells").iterdir())
    cells = {file.name: file.read_bytes() for file in sorted(place.iterdir())}
    names = list(cells)
    assert len(names) == 12
    cells[names[0]] = cells[names[0]].replace(b'"accuracy": {"knn": [', b'"accuracy": {"knn": [1')
    cells[names[1]], cells[names[2]] = cells[names[2]], cells[names[1]]
    cells[names[3]] = bytes([*cells[names[3]][:-20], cells[names[3]][-20] ^ 1, *cells[names[3]][-19:]])
    cells[names[4]] = b"[" * 10**6
    cells[names[5]] = b'{"seal": "' + b"0" * 64 + b'", "value": ' + b"[" * 10**6 + b"}"
    cells[names[6]] = b"\xff" * 3 * 10**6
    cells[names[7]] = b""
    for name, content in cells.items():
        (place / name).write_bytes(content)
    return compare(folder)


@attack(r"3 stored results were damaged and are computed again", code=0)
def tampered_folds(folder: Path) -> list[str]:
    arguments = select(folder)
    with patch.object(ResultFolder, "forget", lambda self, *folders: None):
        run_quietly(arguments)
    for name in selection():
        (folder / "out" / name).unlink()
    files = sorted((folder / "out" / "folds").iterdir())
    files[0].write_bytes(files[1].read_bytes())
    files[2].write_bytes(files[2].read_bytes()[:-40])
    with np.load(files[3]) as stored:
        arrays = dict(stored)
    np.savez(files[3], **arrays | {"seal": np.zeros(0, dtype="S0"), "n_features": np.zeros(3)})
    return [*arguments, "--resume"]
