"""The door of the command: whatever goes wrong is told in one line, with --debug also where."""

from __future__ import annotations

import errno
import os
import zipfile
import zlib

import numpy as np
import pytest
from cli_samples import start
from platforms import needs_linux

from l20fs.cli import load, run


class Panic(BaseException):
    """As libraries in Rust panic."""


def unicode_error():
    try:
        b"\xff".decode("utf-8")
    except UnicodeDecodeError as error:
        return error


def array_error():
    try:
        np.empty((2**25, 2**32))
    except MemoryError as error:
        return error


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyError("rows"), 1, "error: unexpected KeyError: 'rows'. Run again with --debug to see where, and report it."),
        (IndexError("a\nb\x1b"), 1, "error: unexpected IndexError: a b\\x1b. Run again"),
        (TypeError("no"), 1, "error: unexpected TypeError: no. "),
        (RecursionError("deep"), 1, "error: unexpected RecursionError: deep. "),
        (OverflowError("large"), 1, "error: unexpected OverflowError: large. "),
        (AssertionError(), 1, "error: unexpected AssertionError: . "),
        (zipfile.BadZipFile("no zip"), 1, "error: unexpected BadZipFile: no zip. "),
        (zlib.error("damaged"), 1, "error: unexpected error: damaged. "),
        (unicode_error(), 1, "error: unexpected UnicodeDecodeError: "),
        (Panic("at src/lib.rs"), 1, "error: unexpected Panic: at src/lib.rs. "),
        (MemoryError(), 1, "error: There is not enough memory. Use fewer samples or features, or "),
        (array_error(), 1, "error: There is not enough memory (Unable to allocate 1.00 EiB "),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out/run.json"),
            1,
            "error: No space left on device: out/run.json",
        ),
        (OSError("a line of our own"), 1, "error: a line of our own"),
        (ValueError("bad data"), 3, "error: bad data"),
        (KeyboardInterrupt(), 130, "interrupted."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_whatever_goes_wrong_is_one_line(monkeypatch, capsys, error, code, message):
    def failing(*arguments, **options):
        raise error

    monkeypatch.setattr(load, "load", failing)
    assert run(["select", "srbct"]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.strip().startswith(message)  # click ends the line of an interrupt
    assert printed.err.strip().count("\n") == 0
    for place in range(3):
        arguments = ["select", "srbct"]
        arguments.insert(place, "--debug")
        assert run(arguments) == code
        printed = capsys.readouterr().err
        assert printed.splitlines()[-1].startswith(message)
        assert ("Traceback" in printed) == ("in failing" in printed) == (code != 130)


def test_an_exit_stays_one(monkeypatch):
    def leaving(*arguments, **options):
        raise SystemExit(7)

    monkeypatch.setattr(load, "load", leaving)
    with pytest.raises(SystemExit) as stop:
        run(["select", "srbct"])
    assert stop.value.code == 7


def test_debug_is_no_option_of_the_run(capsys):
    assert run(["--debug", "select", "--help"]) == 0
    assert run(["select", "--debug", "--help"]) == 0
    assert run(["select", "--", "--debug"]) == 2
    assert "'--debug' is neither a file" in capsys.readouterr().err
    assert run(["--help"]) == 0
    assert "--debug" in capsys.readouterr().out


@needs_linux
def test_a_full_disk_behind_stdout_is_named():
    with open("/dev/full", "wb") as full:
        done = start("select", "srbct", "-k", "2", "--json", stdout=full)
    assert done.returncode == 1
    assert done.stderr.endswith(b"error: No space left on device: standard output\n")
