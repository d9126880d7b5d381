"""What is refused in one line before any work: folders that cannot be written to, results given as data, typos."""

from __future__ import annotations

import errno
import os
import tempfile

import pytest
from cli_samples import planted, with_lonely, write_table
from platforms import needs_permissions

from l20fs.cli import run


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X, labels, _ = planted(n_features=4)
    return write_table(tmp_path_factory.mktemp("data") / "table.tsv", X, with_lonely(labels))


@pytest.fixture
def no_work(monkeypatch):
    """Let every reader fail the test."""
    for name in ("l20fs.cli.load.read_table", "l20fs.cli.load.load_srbct"):
        monkeypatch.setattr(name, lambda *given, **named: pytest.fail("the data were read"))


def commands(data, place, tmp_path):
    (tmp_path / "panel.json").write_text("{}")
    panel = str(tmp_path / "panel.json")
    return [
        ["select", data, "--target=type", "-o", place],
        ["compare", data, "--target=type", "-o", place],
        ["predict", panel, data, "-o", place],
        ["validate", panel, data, "--target=type", "-o", place],
    ]


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("place", ["file", "file/out", "file/deep/out"])
def test_a_folder_that_is_or_lies_below_a_file(tmp_path, table, capsys, place):
    (tmp_path / "file").write_text("mine")
    for command in commands(table, str(tmp_path / place), tmp_path):
        code = run(command)
        said = capsys.readouterr().err
        assert code in (1, 2), command
        assert f"{tmp_path / 'file'} is no folder. Name another folder." in said
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_to(tmp_path, table, capsys, monkeypatch, number):
    def refuse(*given, **named):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    for place in (tmp_path, tmp_path / "new" / "deep"):
        for command in commands(table, str(place), tmp_path):
            assert run(command) == 1, command
            said = capsys.readouterr().err
            assert said.startswith(f"error: -o {command[-1]}: ")
            assert f"{tmp_path} cannot be written to ({os.strerror(number)}). Name another folder.\n" in said
            assert said.count("\n") == 1


@pytest.mark.usefixtures("no_work")
def test_a_folder_in_the_place_of_a_result(tmp_path, table, capsys):
    (tmp_path / "out" / "run.json").mkdir(parents=True)
    for command in commands(table, str(tmp_path / "out"), tmp_path):
        assert run([*command, "--force"]) == 1
        assert "run.json: not a regular file, and only such a file is replaced." in capsys.readouterr().err


@needs_permissions
def test_a_folder_without_permission(tmp_path, table, capsys):
    with tempfile.TemporaryDirectory(dir=tmp_path) as place:
        os.chmod(place, 0o500)
        assert run(["select", table, "--target=type", "-o", os.path.join(place, "out")]) == 1
        assert "cannot be written to (Permission denied)" in capsys.readouterr().err
