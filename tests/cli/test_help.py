"""The help of the commands is short, in titled sections, and names every option once."""

from __future__ import annotations

import re

import pytest

from l20fs.cli import COMMANDS, run

#: Options, -h among them.
OPTIONS = {"select": 18, "predict": 5, "validate": 9, "compare": 11}


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command, capsys):
    assert run([command, "-h"]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 45
    assert len(shown.split()) <= 280
    options = re.findall(r"^  (-\S+)", shown, re.MULTILINE)
    assert len(options) == len(set(options)) == OPTIONS[command]
    assert re.findall(r"^(\w[\w ]*):$", shown, re.MULTILINE)[-1] == "Other"


def test_select_has_five_sections(capsys):
    run(["select", "--help"])
    titles = re.findall(r"^(\w[\w ]*):$", capsys.readouterr().out, re.MULTILINE)
    assert titles == ["Input", "Number of features", "Panel", "Output", "Other"]


def test_commands_and_version(capsys):
    assert run(["-h"]) == run(["--version"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)
