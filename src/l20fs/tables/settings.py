"""Settings of a run: one typed record, from which files, ``KEY=VALUE``, the options of the command and the docs take keys.

A setting is named by its section and its key, as in ``input.decimal``; a TOML file has a table for each section.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from l20fs.defaults import DEFAULT_CLASS_WEIGHT, DEFAULT_RIDGE, DEFAULT_SCALE, DEFAULT_SOLVER
from l20fs.tables.errors import SettingError
from l20fs.text import did_you_mean, quoted
from l20fs.typing import Decimal, Duplicates, Join, Missing, Scale, SolverName

SamplesIn = Literal["rows", "columns"]

#: Numbers above this are slips of the finger.
MOST = 10**9


def _about(help: str, least: float = -math.inf) -> dict[str, Any]:
    """Return what is known of a key: one sentence, and the least value of a number."""
    return {"help": help, "least": least}


class _Section:
    """Base of the sections: values are checked, and texts become what the key holds, when one is made."""

    def __post_init__(self) -> None:
        kinds = get_type_hints(type(self))
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if value is not None and value != each.default:
                object.__setattr__(self, each.name, _checked(each.name, value, kinds[each.name], each.metadata["least"]))


@dataclass(frozen=True, kw_only=True)
class Input(_Section):
    """Reading of a file: the keywords of :func:`~l20fs.tables.read_table`."""

    samples_in: SamplesIn | None = field(
        default=None, metadata=_about("whether samples are rows or columns; else names of labels and samples show it")
    )
    layer: str | None = field(
        default=None, metadata=_about("layer of an h5ad file or a zarr store to read in the place of X")
    )
    sheet: str | None = field(
        default=None, metadata=_about("sheet of a workbook; else the first one that has what is asked for")
    )
    labels_sheet: str | None = field(default=None, metadata=_about("sheet of the file of labels"))
    encoding: str | None = field(
        default=None, metadata=_about("encoding of texts; else UTF-8, UTF-16 with or without a mark, or that of Windows")
    )
    decimal: Decimal | None = field(default=None, metadata=_about("decimal mark; else the one that the cells show"))
    na: Sequence[str] = field(default=(), metadata=_about("texts that stand for a missing value, besides the usual ones"))
    duplicates: Duplicates = field(
        default="number", metadata=_about("features of one name: number, average or refuse them, or keep the first")
    )
    missing: Missing = field(
        default="median",
        metadata=_about("missing values: fill them by median or knn of the training samples, drop or refuse"),
    )
    join: Join | None = field(
        default=None,
        metadata=_about("samples and labels: all of both (exact), those in both (inner), also similar names (near)"),
    )


@dataclass(frozen=True, kw_only=True)
class Model(_Section):
    """The selector."""

    solver: SolverName = field(default=DEFAULT_SOLVER, metadata=_about("solver of the path"))
    ridge: float | Literal["auto"] = field(default=DEFAULT_RIDGE, metadata=_about("strength of the ridge term", 0.0))
    scale: Scale = field(default=DEFAULT_SCALE, metadata=_about("scaling of the features"))
    class_weight: Literal["balanced", "none"] = field(
        default=DEFAULT_CLASS_WEIGHT, metadata=_about("whether rare classes count as much")
    )


@dataclass(frozen=True, kw_only=True)
class Search(_Section):
    """The choice of the number of features."""

    max_features: int | None = field(default=None, metadata=_about("largest number of features that is tried", 1))
    seed: int = field(default=0, metadata=_about("seed of the folds and halves", 0))
    splits: int = field(default=10, metadata=_about("random splits of a comparison", 2))


@dataclass(frozen=True, kw_only=True)
class Constraints(_Section):
    """Conditions on every panel."""

    groups: str | None = field(
        default=None, metadata=_about("file with a feature and its group in each line: groups are selected as a whole")
    )
    costs: str | None = field(default=None, metadata=_about("file with a feature and its cost in each line"))
    budget: float | None = field(default=None, metadata=_about("what the features of a panel may cost together", 0.0))
    min_per_class: int | None = field(default=None, metadata=_about("features of each class, or set, at least", 0))
    max_per_class: int | None = field(default=None, metadata=_about("features of each class, or set, at most", 0))
    sets: str | None = field(default=None, metadata=_about("file with the sets that min_per_class and max_per_class mean"))
    exclusive: str | None = field(
        default=None, metadata=_about("file with features in each line of which at most one is selected")
    )


@dataclass(frozen=True, kw_only=True)
class Run(_Section):
    """The computation."""

    n_jobs: int = field(default=1, metadata=_about("fits at the same time", 1))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a run."""

    input: Input = field(default_factory=Input)
    model: Model = field(default_factory=Model)
    search: Search = field(default_factory=Search)
    constraints: Constraints = field(default_factory=Constraints)
    run: Run = field(default_factory=Run)


SECTIONS: dict[str, type[Any]] = {
    "input": Input,
    "model": Model,
    "search": Search,
    "constraints": Constraints,
    "run": Run,
}
KEYS = {f"{section}.{each.name}": each for section, kind in SECTIONS.items() for each in fields(kind)}


def read_settings(items: Sequence[str]) -> tuple[Settings, dict[str, Any]]:
    """Return the settings that files and ``KEY=VALUE`` give, and those that were given, by section and key.

    ``KEY=VALUE`` counts before a file, and a later one before an earlier one.

    Examples
    --------
    >>> settings, given = read_settings(["input.decimal=,", "search.seed=7"])
    >>> settings.input.decimal, settings.search.seed, given
    (',', 7, {'input.decimal': ',', 'search.seed': 7})
    """
    is_file = ["=" not in item or Path(item).is_file() for item in items]
    found: dict[str, Any] = {}
    for item, is_one in zip(items, is_file, strict=True):
        if is_one:
            found |= _of_file(Path(item))
    for item, is_one in zip(items, is_file, strict=True):
        if not is_one:
            key, _, value = item.partition("=")
            found[_known(key.strip())] = value
    by_section: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for key, value in found.items():
        section, _, name = key.partition(".")
        by_section[section][name] = value
    settings = Settings(**{section: SECTIONS[section](**values) for section, values in by_section.items()})
    given = {key: getattr(getattr(settings, key.partition(".")[0]), key.partition(".")[2]) for key in found}
    return settings, given


def input_settings(given: Mapping[str, Any]) -> Input:
    """Return the section ``input`` of keywords, of which an unknown one names the closest."""
    for name in given:
        if f"input.{name}" not in KEYS:
            known = [each.name for each in fields(Input)]
            raise TypeError(f"read_table() has no setting {name!r}. {did_you_mean(name, known)}")
    return Input(**{name: value for name, value in given.items() if value is not None})


def _of_file(file: Path) -> dict[str, Any]:
    """Return the settings of a TOML file, or of the panel.json of an earlier run."""
    try:
        content = file.read_text(encoding="utf-8")
        stored = json.loads(content).get("settings", {}) if file.suffix == ".json" else tomllib.loads(content)
    except OSError as error:
        raise SettingError(f"{file}: cannot be read ({error.strerror}). Give a TOML file, or KEY=VALUE.") from error
    except (ValueError, AttributeError, RecursionError) as error:
        raise SettingError(f"{file}: not a TOML file of settings ({str(error).splitlines()[0]}).") from error
    if any(not isinstance(table, dict) for table in stored.values()):
        raise SettingError(f"{file}: a setting stands outside of a section. Use {quoted(list(SECTIONS), 'or')}.")
    return {_known(f"{section}.{name}"): value for section, table in stored.items() for name, value in table.items()}


def _known(key: str) -> str:
    """Return a key, or raise an error that names the closest one."""
    if key in KEYS:
        return key
    ending = key.rpartition(".")[2]
    near = [known for known in KEYS if known.endswith(f".{ending}")]
    raise SettingError(f"There is no setting {key!r}. {did_you_mean(near[0] if near else key, KEYS)}")


def _checked(name: str, value: Any, kind: Any, least: float) -> Any:
    """Return the value of a key in its type, or raise an error that says what it may be."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    choices = [choice for each in kinds if get_origin(each) is Literal for choice in get_args(each)]
    if isinstance(value, str) and value in choices:
        return value
    is_number = int in kinds or float in kinds
    if is_number:
        number = _number(value)
        if number is not None and least <= number <= MOST and (float in kinds or number.is_integer()):
            return number if float in kinds else int(number)
    elif Sequence[str] in kinds and (texts := _texts(value)) is not None:
        return texts
    elif str in kinds and isinstance(value, str | Path):
        return str(value)
    allowed = [quoted(choices, "or")] if choices else []
    if is_number:
        allowed.append(f"{'a whole number' if int in kinds else 'a number'} at least {least:g}")
    raise SettingError(f"{name}={value!r} is not valid. Use {' or '.join(allowed) or 'a text'}.")


def _texts(value: Any) -> list[str] | None:
    texts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    return list(texts) if isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts) else None


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
