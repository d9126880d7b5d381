"""The size of what a user meets, and its words: what is counted here grows only on purpose."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import click
import pytest

import l20fs
from l20fs.cli import COMMANDS, cli

ROOT = Path(__file__).parents[1]
SOURCE = Path(l20fs.__file__).parent
PAGES = sorted((ROOT / "docs").glob("*.md"))

#: Parameters of constructors, options of commands with -h, at most.
PARAMETERS = {"L20Selector": 12, "L20SelectorCV": 11, "L20Classifier": 11, "L20Regressor": 10, "StabilitySelector": 7}
OPTIONS = {"select": 18, "predict": 5, "validate": 9, "compare": 11}

#: Words and phrases that the field does not use, or that stand for something that has a name.
BANNED = [
    r"\bdear(er)?\b", r"\bwishes\b", r"\bhonest(ly)?\b", r"\btimid\b", r"\batlas\b", r"too sure",
    r"how sure", r"\bpromised %", r"what is left over", r"told right", r"mixed up", r"small print", r"has had enough",
    r"blown up", r"price tag", r"slow twin",
]  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name):
    assert len(inspect.signature(getattr(l20fs, name)).parameters) <= PARAMETERS[name]


def test_commands_and_options():
    assert set(COMMANDS) == set(OPTIONS)
    for name, most in OPTIONS.items():
        command = cli.get_command(click.Context(cli), name)
        options = [each for each in command.get_params(click.Context(command)) if isinstance(each, click.Option)]
        assert len(options) <= most, name
        help_text = command.get_help(click.Context(command, info_name=name, terminal_width=100, max_content_width=100))
        assert len(help_text.splitlines()) <= 45, name


def test_words_and_pages():
    counts = {page.stem: len(page.read_text().split()) for page in PAGES}
    assert len(counts) <= 15, "14 pages and the API"
    assert max(counts.values()) <= 2000
    assert sum(counts.values()) <= 15_000
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        assert (ROOT / name).stat().st_size <= 6 * 1024, name
    assert len((ROOT / "SECURITY.md").read_text().split()) <= 300


def texts():
    """Yield the name and the text of every page, template and docstring."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES, *SOURCE.rglob("*.html")]:
        yield page.name, page.read_text()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file.name}: {getattr(node, 'name', 'module')}", ast.get_docstring(node) or ""


@pytest.mark.parametrize("word", BANNED)
def test_words_of_the_field(word):
    found = [name for name, text in texts() if re.search(word, text, flags=re.IGNORECASE)]
    assert not found
