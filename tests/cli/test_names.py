"""Names from files never reach the terminal as they are, and no command prints but through ``cli/output.py``."""

from __future__ import annotations

import csv
import io
import re

import click
import numpy as np
import pytest

import l20fs.cli
from l20fs.cli import output, run
from l20fs.cli.output import Table, note, plain, show

#: Title of the window, bell, concealed text, clear screen (C1), backspace, delete, right to left, markup of rich.
HOSTILE = "\x1b]0;t\x07\x1b[8m\x9b2J\b\x7f\u202e\u2028[red]:boy:"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U0001f466]")

# ------------------------------------------------------------------------------------------------------------- structure


# ------------------------------------------------------------------------------------------------------------- functions


def test_lines_stay_lines_and_control_characters_are_shown(capsys):
    note(f"one {HOSTILE}\n   two")
    show(f"one {HOSTILE}\ntwo")
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert printed.out.count("\n") == 1
    assert not CONTROL.search(printed.err + printed.out)
    assert printed.err.endswith("[red]:boy: two\n")
    assert "\\x1b]0;t\\x07" in printed.err


def test_tables_take_no_markup(capsys):
    table = Table(HOSTILE, "[b]x[/b]", title=HOSTILE, caption="[i]" + HOSTILE)
    table.add_row(HOSTILE, "a\nb")
    output.show_tables(table)
    printed = capsys.readouterr().out
    assert not CONTROL.search(printed)
    assert "[b]x[/b]" in printed
    assert "a\\nb" in printed
    assert plain("[red]" + "x" * 10_000).plain == "[red]" + "x" * 495 + "…"


# -------------------------------------------------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder, a table and a list whose names are all hostile; one class has one sample, so that a run is quick."""
    folder = tmp_path_factory.mktemp("names") / f"folder {HOSTILE}"
    folder.mkdir()
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(20, 6)), np.arange(20) % 2
    X[:, 0] += 3 * codes
    names = [*(f"g{j}{HOSTILE}" for j in range(4)), "a\nb", '"quoted, twice"']
    with open(folder / f"table {HOSTILE}.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sample", f"y{HOSTILE}", f"donor{HOSTILE}", *names])
        for i in range(20):
            label = f"lonely{HOSTILE}" if i == 0 else f"c{codes[i]}{HOSTILE}"
            writer.writerow([f"s{i}{HOSTILE}", label, f"d{i % 5}{HOSTILE}", *X[i]])
    return folder


def with_target(place, *arguments):
    file = str(place / f"table {HOSTILE}.csv")
    return [*arguments, file, "--target", f"y{HOSTILE}", "--groups", f"donor{HOSTILE}"]


COMMANDS = {
    "select": (0, lambda place: [*with_target(place, "select"), "-k", "4"]),
    "select --json": (0, lambda place: [*with_target(place, "select"), "-k", "4", "--json"]),
    "select -o": (0, lambda place: [*with_target(place, "select"), "-k", "6", "-o", str(place / f"out {HOSTILE}")]),
    "no panel": (2, lambda place: ["predict", str(place), str(place)]),
    "no column": (2, lambda place: [*with_target(place, "select"), "--target", f"no{HOSTILE}"]),
    "no feature": (2, lambda place: [*with_target(place, "select"), "--include", f"no{HOSTILE}"]),
    "no option": (2, lambda place: ["select", f"--no{HOSTILE}"]),
    "no argument": (2, lambda place: ["select", "srbct", f"no{HOSTILE}\nError: forged"]),
    "no file": (2, lambda place: ["select", f"no{HOSTILE}"]),
    "no command": (2, lambda place: [f"no{HOSTILE}"]),
    "no number": (2, lambda place: ["select", "srbct", "-k", f"no{HOSTILE}"]),
    "no choice": (2, lambda place: ["select", "srbct", "--decimal", f"no{HOSTILE}"]),
    "no sheet": (3, lambda place: [*with_target(place, "select"), "--sheet", f"no{HOSTILE}"]),
    "no folder": (1, lambda place: [*with_target(place, "select"), "-o", with_target(place)[0]]),
    "no method": (2, lambda place: [*with_target(place, "compare"), "-o", str(place / "c"), "--methods", f"no{HOSTILE}"]),
}


@pytest.mark.filterwarnings("default")  # a class of one sample
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_prints_control_characters(name, place, capsys):
    code, arguments = COMMANDS[name]
    assert run(arguments(place)) == code
    printed = capsys.readouterr()
    assert not CONTROL.search(printed.out)
    assert not CONTROL.search(printed.err)
    assert "\nError: forged" not in printed.err
    if name == "select -o":  # the file has them verbatim
        with open(place / f"out {HOSTILE}" / "selection.tsv", newline="", encoding="utf-8") as stream:
            names = [row["feature"] for row in csv.DictReader(stream, delimiter="\t")]
        assert {f"g0{HOSTILE}", "a\nb", '"quoted, twice"'} <= set(names)
    if name == "select":
        assert "\\x1b]0;t\\x07" in printed.out


def test_messages_of_click_stay_as_they_are(capsys):
    """Against click's own way to show an error."""
    assert run(["predict"]) == 2
    printed = capsys.readouterr().err
    expected = io.StringIO()
    try:
        l20fs.cli.cli.main(["predict"], prog_name="l20fs", standalone_mode=False)
    except click.UsageError as error:
        error.show(expected)
    assert printed.split() == expected.getvalue().split()
    assert printed.count("\n") == 4
