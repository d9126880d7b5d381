"""Output folders with folders and pipes in the places of results."""

from __future__ import annotations

import os
from pathlib import Path

from cli_samples import planted, write_table

from attacks import attack

SMALL = ["--target=type", "-k", "2"]


def table(folder: Path) -> str:
    X, labels, _ = planted(n_features=4)
    return write_table(folder / "table.tsv", X, labels)


def select(folder: Path, *options: str) -> list[str]:
    return ["select", table(folder), *SMALL, "-o", str(folder / "out"), *options]


@attack(r"report.html: not a regular file, and only", code=1)
def a_result_that_is_a_pipe(folder: Path) -> list[str]:
    (folder / "out").mkdir()
    os.mkfifo(folder / "out" / "report.html")
    return select(folder, "--force")


@attack(r"run.json: not a regular file, and only", code=1)
def a_result_that_is_a_folder(folder: Path) -> list[str]:
    (folder / "out" / "run.json").mkdir(parents=True)
    return select(folder, "--force")


@attack(r"out is no folder. Name another folder", code=1)
def a_folder_that_is_a_dangling_link(folder: Path) -> list[str]:
    (folder / "out").symlink_to(folder / "nothing")
    return select(folder)
