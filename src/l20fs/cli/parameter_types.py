"""Types of command-line values: names of methods and metrics, lists of features, feature groups, sizes of memory."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from l20fs.cli.output import readable
from l20fs.evaluation.metrics import METRICS, find_metric
from l20fs.text import closest, printable
from l20fs.typing import SolverName

if TYPE_CHECKING:
    from l20fs.estimators.base import BaseSelector

SOLVERS: tuple[str, ...] = get_args(SolverName)

#: Largest list of names or groups: a million names of the length that genes have. Each takes five times its bytes.
MOST_BYTES = 2**24


def supervised_methods() -> dict[str, type[BaseSelector]]:
    """Return the supervised methods of this package by name."""
    from l20fs.methods import discover

    return {name: method for name, method in discover().items() if method.about.supervised}


class TextValue(click.ParamType[str]):
    """Name in a file, decoded in any locale."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return readable(value)


class MethodName(click.ParamType[str]):
    """Solver of L20Selector or another method, case-insensitive."""

    name = "method"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in SOLVERS:
            return str(value)
        from l20fs.methods import discover

        known = [*SOLVERS, *supervised_methods()]
        by_lower = {name.lower(): name for name in known}
        if value.lower() in by_lower:
            return by_lower[value.lower()]
        if value.lower() in {name.lower() for name in discover()}:
            self.fail(f"{value!r} does not look at the labels. Use one that does: {', '.join(known)}.", param, ctx)
        meant = by_lower[closest(value.lower(), by_lower)]
        self.fail(f"{value!r} is unknown. Did you mean {meant!r}?", param, ctx)


class Scoring(click.ParamType[str]):
    """Metric by its name or that of scikit-learn, or auto."""

    name = "metric"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "auto":
            return "auto"
        try:
            return find_metric(value).name
        except ValueError:
            self.fail(f"{value!r} is unknown. Use auto, or one of {', '.join(METRICS)}.", param, ctx)


class Ridge(click.ParamType[float | str]):
    """Strength of the ridge term: auto, or a number."""

    name = "auto|number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if value == "auto":
            return "auto"
        from l20fs.objective.ridge import check_ridge

        try:
            strength = float(value)
            check_ridge(strength)
        except ValueError:
            self.fail(f"{value!r} is not valid. Use auto, or a number at least 0.", param, ctx)
        return strength


class Share(click.ParamType[float | str]):
    """Share above the lowest loss, such as 0.1%, or auto."""

    name = "auto|share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if value == "auto":
            return "auto"
        from l20fs.inspection import share_of

        try:
            share = share_of(value)
        except ValueError:
            self.fail(f"{value!r} is not valid. Use auto, or a share such as 0.1%.", param, ctx)
        assert share is not None
        if share >= 1.0 and not str(value).endswith("%"):
            self.fail(f"{value!r} is {100.0 * share:g} %. Write {value}% if you mean per cent.", param, ctx)
        return share


class Names(click.ParamType[list[str]]):
    """Comma-separated names, or a file with one name per line."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        if value == "@-":
            self.fail("standard input is for the table (-) or --labels. Name a file, or use @<( ... ).", param, ctx)
        if value.startswith("@") or os.path.isfile(value):
            names = read_lines(Path(value.removeprefix("@")), param, ctx)
        else:
            names = [name.strip() for name in readable(value).split(",")]
        names = [name for name in names if name]
        if not names:
            self.fail(f"{value!r} names nothing. Give names separated by commas, or @FILE with one per line.", param, ctx)
        return names


class Groups(click.ParamType[dict[str, list[str]]]):
    """File with a feature and its group in each line."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, list[str]]:
        if isinstance(value, dict):
            return value
        groups: dict[str, list[str]] = {}
        for number, line in enumerate(read_lines(Path(value), param, ctx), 1):
            if not line:
                continue
            fields = line.split("\t")
            if len(fields) != 2 or not all(fields):
                self.fail(f"{value}: line {number} must be a feature, a tab and its group; it is {line[:60]!r}.", param, ctx)
            groups.setdefault(fields[1], []).append(fields[0])
        if not groups:
            self.fail(f"{value} is empty. Give a feature, a tab and its group in each line.", param, ctx)
        return groups


class Columns(click.ParamType[Any]):
    """File with some columns: the fields of its lines, which are separated by tabs, or by commas if there are no tabs."""

    name = "file"

    def __init__(self, what: str) -> None:
        self.what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self.read(value, param, ctx) if isinstance(value, str) else value

    def read(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what the file holds."""
        lines = [line for line in read_lines(Path(value), param, ctx) if line]
        separator = "\t" if any("\t" in line for line in lines) else ","
        rows = [[field.strip() for field in line.split(separator)] for line in lines]
        for number, row in enumerate(rows, 1):
            if len(row) < 2:
                self.fail(
                    f"{value}: line {number} has one column, {row[0][:60]!r}. Give {self.what} in each line.", param, ctx
                )
        if not rows:
            self.fail(f"{value} is empty. Give {self.what} in each line.", param, ctx)
        return rows


class Costs(Columns):
    """File with a feature and its cost in each line; the first line may be a header."""

    def __init__(self) -> None:
        super().__init__("a feature, a tab and its cost")

    def read(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, float]:
        costs: dict[str, float] = {}
        rows = super().read(value, param, ctx)
        for number, (name, cost, *_) in enumerate(rows):
            if name in costs:
                self.fail(f"{value} names {name[:60]!r} twice. Give each feature once.", param, ctx)
            try:
                costs[name] = float(cost)
            except ValueError:
                is_header = number == 0 and len(rows) > 1 and not any(sign.isdigit() for sign in cost)
                if not is_header:
                    self.fail(f"{value}: {cost[:60]!r}, the cost of {name[:60]!r}, is no number.", param, ctx)
                continue
            if not 0.0 <= costs[name] < math.inf:
                self.fail(f"{value}: {cost[:60]!r}, the cost of {name[:60]!r}, is not finite and at least 0.", param, ctx)
        return costs


class Sets(Columns):
    """File with sets of features: GMT, or a set and a feature in each line."""

    def __init__(self) -> None:
        super().__init__("a set, a tab and a feature, or a set in the format GMT (name, description, features)")

    def read(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, list[str]]:
        rows = super().read(value, param, ctx)
        first = 1 if all(len(row) == 2 for row in rows) else 2  # GMT has a description in the second column
        sets: dict[str, dict[str, None]] = {}
        for row in rows:
            sets.setdefault(row[0], {}).update(dict.fromkeys(name for name in row[first:] if name))
        return {name: list(members) for name, members in sets.items()}


class Count(click.IntRange):
    """Whole number between two limits; ``reason`` says why more would make no sense."""

    def __init__(self, least: int, most: int, reason: str) -> None:
        super().__init__(least, most)
        self.name, self.reason = "integer", reason

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{printable(str(value), 20)!r} is not a whole number.", param, ctx)
        if number > self.most:
            self.fail(
                f"{printable(str(number), 20)} is more than {self.most}: {self.reason}. Use a smaller number.", param, ctx
            )
        return int(super().convert(number, param, ctx))

    @property
    def most(self) -> int:
        """Largest number that is allowed."""
        assert self.max is not None
        return int(self.max)


#: Numbers that options take.
FEATURES = Count(1, 10**8, "no table that fits into a computer has as many features")
LIMIT = Count(0, 10**8, "no table that fits into a computer has as many features")
JOBS = Count(1, 1024, "no computer works on as many fits at the same time")
SEED = Count(0, 2**32 - 1, "seeds have 32 bits")
#: Share of the lowest loss within which panels are listed.
SHARE = Share()


class Bytes(click.ParamType[int]):
    """Number of bytes, such as 500M or 8G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from l20fs.blocks import parse_bytes

        size = parse_bytes(value)
        if size is None:
            self.fail(f"{value!r} is not a size. Use a number with K, M, G or T, for example 8G.", param, ctx)
        return size


def read_lines(file: Path, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
    """Return the stripped lines of a small text file, or of a pipe."""
    try:
        with open(file, "rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # UnicodeDecodeError among them
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise click.BadParameter(
            f"{str(file)!r} cannot be read ({reason}). Give a text file.", ctx=ctx, param=param
        ) from error
    if len(content) > MOST_BYTES:
        raise click.BadParameter(
            f"{file}: larger than {MOST_BYTES} bytes, as no such file is. Name another one.", ctx=ctx, param=param
        )
    return [line.strip() for line in text.splitlines()]
