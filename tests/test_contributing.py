"""CONTRIBUTING.md is true: its rooms, files, arrows, names, paths and make targets are those of the tree."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections import Counter
from pathlib import Path

import pytest
from test_structure import FILES, LEVELS, SOURCE, imports, level

from l20fs import L20Selector
from l20fs.data import make_planted
from l20fs.design import DenseDesign

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
GRAPH = re.search(r"```mermaid\n(.*?)```", PAGE, flags=re.DOTALL).group(1)
CODE = re.compile(r"(?<!`)`([^`\n]+)`")


def table_rows():
    """Yield the folder, the description and the files of every room in the table."""
    table = re.search(r"\| room \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE).group(1)
    for line in table.splitlines():
        room, description, files = line.strip("| ").split(" | ")
        name = room.strip("`")
        yield SOURCE if name == "l20fs" else SOURCE / name, description, CODE.findall(files)


ROWS = list(table_rows())
by_room = pytest.mark.parametrize(("folder", "description", "files"), ROWS, ids=lambda value: getattr(value, "name", ""))


def arrows(kind=r"-->|==>(?:\|[^|]*\|)?"):
    """Yield the arrows of the graph as pairs of rooms, those of one kind or all."""
    plain = re.sub(r"\[[^\]]*\]", "", GRAPH)
    for starts, ends in re.findall(rf"^ +([\w &]+?) (?:{kind}) ?([\w &]+)$", plain, flags=re.MULTILINE):
        yield from itertools.product(starts.split(" & "), ends.split(" & "))


@functools.cache
def imported_rooms():
    """Return the pairs of different rooms of which the first imports the second."""
    pairs = set()
    for file in FILES:
        own = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        pairs |= {(own, name.split(".")[1]) for name in imports(file) if name and name.startswith("l20fs.")}
    return {(own, other) for own, other in pairs if own != other}


def reachable(room):
    """Return the rooms that the arrows lead to from a room, directly or further down."""
    found, left = set(), {room}
    while left:
        left = {end for start, end in arrows() if start in left} - found
        found |= left
    return found


@by_room
def test_rooms_and_their_files_exist(folder, description, files):
    assert folder.is_dir()
    assert not [name for name in files if not (folder / name).exists()]


@by_room
def test_names_of_a_room_are_found_there(folder, description, files):
    text = "\n".join(file.read_text() for file in [*folder.glob("*.py"), *folder.glob("*.toml")])
    for name in CODE.findall(description):
        assert name in files or re.search(rf"\b{re.escape(name)}\b", text), f"{folder.name} has no {name}"


def test_every_file_is_in_one_row():
    listed = Counter(folder / name.rstrip("/") for folder, _, names in ROWS for name in names)
    assert not [file for file, n in listed.items() if n > 1], "listed twice"
    missing = [file for file in FILES if file not in listed and file.stat().st_size]
    assert not missing, "in no row of the table of CONTRIBUTING.md"
    others = {file for file in SOURCE.rglob("*") if file.is_file() and not {file.suffix, file.parent.name} & {".pyc", ".py"}}
    assert not [file for file in others if file not in listed and file.parent not in listed]


def test_the_graph_has_every_room():
    drawn = set(itertools.chain.from_iterable(arrows()))
    assert drawn == set(itertools.chain.from_iterable(LEVELS))
    folders = {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()}
    assert drawn == folders | {file.stem for file in SOURCE.glob("*.py")}


def test_no_line_of_the_graph_is_passed_over():
    drawn = [line for line in GRAPH.splitlines() if "->" in line or "=>" in line]
    n_arrows = sum((line.split("--")[0].count("&") + 1) * (line.split(">", 1)[1].count("&") + 1) for line in drawn)
    assert n_arrows == len(list(arrows())) > 0
    assert len(drawn) == len(GRAPH.splitlines()) - 1


def test_arrows_are_imports_and_point_downwards():
    for start, end in arrows():
        assert level(end) <= level(start), f"{start} --> {end} contradicts LEVELS in tests/test_structure.py"
        assert (start, end) in imported_rooms(), f"{start} imports nothing from {end}"


def test_every_import_follows_from_the_arrows():
    for start, end in imported_rooms():
        assert end in reachable(start), f"{start} imports {end}; draw an arrow"


def test_the_thick_arrows_are_the_way_of_a_fit(monkeypatch):
    ways, pull = [], DenseDesign.pull

    def watched(self, *args, **kwargs):
        frames = [frame for frame in inspect.stack()[1:] if SOURCE in Path(frame.filename).parents]
        way = [(Path(frame.filename).relative_to(SOURCE).parts[0], frame.function) for frame in frames[::-1]]
        if not any(function == "__get__" for _, function in way):  # what is computed once comes when it is first read
            ways.append(way)
        return pull(self, *args, **kwargs)

    monkeypatch.setattr(DenseDesign, "pull", watched)
    X, y, _ = make_planted(n_samples=60, n_features=20, n_informative=3, random_state=0)
    L20Selector(3, scale="zscore").fit(X, y)  # no look at the targets before the walk
    thick = list(arrows(r"==>(?:\|[^|]*\|)"))
    assert [start for start, _ in thick][1:] == [end for _, end in thick][:-1], "the thick arrows are one way"
    assert ways
    for way in ways:
        rooms = [room for room, _ in itertools.groupby(room for room, _ in way)]
        assert [*rooms, "design"] == [thick[0][0], *(end for _, end in thick)]
        functions = [name for _, name in way]
        assert functions.index("fit") < functions.index("_learn") < functions.index("forward")  # its walk


def test_make_targets_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = re.findall(r"\bmake ([\w-]+)(?= *#|`)", PAGE)
    assert len(named) > 2
    assert not set(named) - targets


def test_paths_exist():
    outside_table = re.sub(r"^\|.*$", "", PAGE, flags=re.MULTILINE)
    named = [name for name in CODE.findall(outside_table) if re.fullmatch(r"[\w./-]+(/|\.py|\.md|\.toml)", name)]
    assert len(named) > 10
    homes = (ROOT, SOURCE, SOURCE / "data" / "readers")
    assert not [name for name in named if not any((home / name).exists() for home in homes)]
