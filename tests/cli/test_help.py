"""Help and version: whole sentences, at once, and true."""

from __future__ import annotations

import subprocess
import sys

import pytest

from l20fs import __version__
from l20fs.cli import COMMANDS, run

HEAVY = {"scipy", "sklearn", "pandas", "joblib", "matplotlib", "jinja2"}
LOADED = """
import sys
from l20fs.cli import run
code = run(sys.argv[1:])
print(*sorted({name.split(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


def loaded_by(*arguments):
    """Run the command line in a process of its own, and return what it prints and the packages that it loads."""
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True)
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_the_program_answers_without_numpy(arguments):
    printed, loaded = loaded_by(*arguments)
    assert "l20fs" in printed
    assert not loaded & (HEAVY | {"numpy"})


def test_help_of_no_command_loads_what_takes_a_second():
    calls = "; ".join(f"run([{name!r}, '--help'])" for name in COMMANDS)
    code = f"import sys; from l20fs.cli import run; {calls}; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("Usage: l20fs ") == len(COMMANDS)
    assert not {name.split(".")[0] for name in done.stderr.split()} & HEAVY


def test_the_group_shows_every_command_in_a_whole_sentence(capsys):
    assert run(["--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for name, sentence in COMMANDS.items():
        assert f"{name} {sentence}" in printed
        assert sentence.endswith(".")
    assert "..." not in printed.partition("Commands:")[2]
    assert run(["--version"]) == 0
    assert __version__ in capsys.readouterr().out
