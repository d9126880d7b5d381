"""The samples and the selector that the options of a command ask for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from l20fs import Constraints, L20Selector
from l20fs.blocks import FileBlocks, format_bytes
from l20fs.cli.incoming import as_file, is_there, refuse_twice, title_of
from l20fs.cli.options import DataOptions, ModelOptions, ReadingOptions, flag
from l20fs.cli.output import note, readable, working
from l20fs.cli.parameter_types import SOLVERS, supervised_methods
from l20fs.data import load_srbct
from l20fs.data.readers import DataError, Samples, read_table
from l20fs.estimators.base import BaseSelector
from l20fs.inputs.names import Features
from l20fs.inputs.nuisances import encode_nuisances
from l20fs.text import abbreviated, by_number, counted
from l20fs.typing import Array, Task


def load(data: str, options: DataOptions, *, in_blocks: bool = False) -> Samples:
    """Load the built-in set or a file; with ``in_blocks`` a matrix larger than memory stays in its file."""
    given = options.given()
    if data == "srbct" and not os.path.exists(data):
        if options.target is not None or given:
            option = "target" if options.target is not None else next(iter(given))
            raise click.UsageError(f"{flag(option)}: the built-in srbct has its own labels. Leave the option out.")
        if options.task == "regression":
            raise click.UsageError("--task regression: the built-in srbct has labels, not numbers. Leave the option out.")
        tumours = load_srbct()
        digest = hashlib.sha256(tumours.data.tobytes()).hexdigest()
        samples = Samples(tumours.data, tumours.target, tumours.feature_names, digest, title="srbct")
        note("srbct: its open source has no gene names; the number is the gene's place in the data of Khan et al. (2001).")
    else:
        if not is_there(data):
            raise click.UsageError(f"{data!r} is neither a file nor a built-in data set (srbct).")
        wanted: dict[str, Any] = {"target": options.target, "in_blocks": in_blocks, "task": options.task}
        with working(f"Reading {readable(title_of(data))}"):
            samples = read(data, options.labels, given | wanted)
        refuse_target(samples)
    X = samples.X
    if isinstance(X, FileBlocks):
        than = f"the {format_bytes(options.max_memory)} of --max-memory" if options.max_memory else "the memory that is free"
        note(f"work on {samples.title} in memory would take more than {than}: it is read in blocks")
    if not options.is_log:
        return samples
    return replace(samples, X=X.mapped(logarithms, X.dtype)) if isinstance(X, FileBlocks) else samples.mapped(logarithms)


def refuse_target(samples: Samples) -> None:
    """Raise an error for nuisances among which is the target itself."""
    if samples.target_name in samples.adjust_for:
        raise click.UsageError(f"--adjust-for {samples.target_name!r} is the target. Name other columns.")


def load_features(
    data: str,
    names: Collection[str],
    substitutes: Collection[str],
    options: ReadingOptions,
    *,
    target: str | None = None,
    labels: Path | None = None,
    groups: str | None = None,
    task: Task = "auto",
    need_labels: bool = False,
) -> Samples:
    """Load some features of a file, and what can replace them; without ``need_labels`` it needs no labels."""
    if not is_there(data):
        raise click.UsageError(f"{data!r} is no file. Give a table of samples.")
    wanted: dict[str, Any] = {"target": target, "task": task, "groups": groups, "need_labels": need_labels}
    wanted |= {"needed": names, "substitutes": substitutes, "in_blocks": True, "adjust_for": ()}
    return read(data, labels, options.given() | wanted)


def read(data: str, labels: Path | None, options: dict[str, Any]) -> Samples:
    """Read a table from a file or a pipe, and print what the readers have to say."""
    refuse_twice(data, labels)
    most = options.get("max_memory")
    file = as_file(data, most)
    options |= {"labels": None if labels is None else as_file(labels, most)}
    samples = read_table(file, **options, in_use=resident_memory() if most is not None else 0)
    tell_notes(samples)
    return replace(samples, title=readable(samples.title))


def refuse_changed(samples: Samples) -> None:
    """Raise an error if a file that was read in blocks is no longer the same, before its results are told."""
    if isinstance(samples.X, FileBlocks) and samples.X.guard is not None:
        with working(f"Checking that {samples.title} is still the same"):
            samples.X.guard.verify()


def tell_notes(samples: Samples) -> None:
    """Print what the readers have to say about a file, and what they chose by themselves."""
    for text in samples.notes:
        note(text)


def resident_memory() -> int:
    """Return the bytes of memory that this process uses now, which a user's limit is meant to cover; 0 if unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


def logarithms(X: Any) -> Any:
    """Return log(1 + x) of a matrix or a block."""
    values = X.data if sp.issparse(X) else X
    lowest = float(np.fmin.reduce(values, axis=None, initial=0.0))  # values may be missing
    if lowest < 0.0:
        raise DataError(f"--log: the table has negative values, the lowest is {lowest:g}. Leave --log out.")
    return X.log1p() if sp.issparse(X) else np.log1p(X)


def nuisances_of(samples: Samples) -> Array | None:
    """Return the encoded columns of --adjust-for; None if there are none."""
    if not samples.adjust_for:
        return None
    return np.hstack([encode_nuisances(values, len(samples.y)) for values in samples.adjust_for.values()])


def refuse_for_blocks(samples: Samples, options: ModelOptions, *, atlas: bool = False) -> None:
    """Refuse options that need all samples in memory if the samples are read in blocks."""
    if not isinstance(samples.X, FileBlocks):
        return
    way_out = f"{samples.title} is read in blocks. Leave the option out, or allow more memory (--max-memory)."
    if atlas:
        raise click.UsageError(f"--atlas needs the data in memory, and {way_out}")
    if options.feature_groups and options.method in ("forward", "swap") and samples.X.axis == 0:
        raise click.UsageError(
            f"--feature-groups with --method {options.method} needs the data in memory, and {way_out} Or use --method "
            "ahiht, which does not need that."
        )


def make_selector(samples: Samples, options: ModelOptions, max_features: int) -> BaseSelector:
    """Return the unfitted selector, with features by index."""
    method = options.method
    if method not in SOLVERS:
        selector = supervised_methods()[method]()
        if samples.task == "regression" and selector._needs_labels and not selector._takes_numbers:
            others = {name: kind() for name, kind in supervised_methods().items()}
            able = [name for name, other in others.items() if other._takes_numbers or not other._needs_labels]
            raise click.UsageError(
                f"--method {method} needs class labels, and --task regression gives numbers. Use one of "
                f"{', '.join([*SOLVERS, *able])}."
            )
        if sp.issparse(samples.X) and not selector._takes_sparse:
            able = [name for name, other in supervised_methods().items() if other._takes_sparse]
            raise click.UsageError(
                f"--method {method} needs a dense table, and this one is sparse. Use one of {', '.join([*SOLVERS, *able])}."
            )
        return for_numbers(selector) if samples.task == "regression" else selector
    features = Features(len(samples.feature_names), np.array(samples.feature_names, dtype=object), source="the table")
    checked: dict[str, Any] = {name: getattr(options, name) for name in ("ridge", "scale")}
    return L20Selector(
        **checked | {"solver": method, "task": "regression" if samples.task == "regression" else "auto"},
        class_weight=None if options.class_weight == "none" else options.class_weight,
        max_features_to_select=max_features,
        constraints=make_constraints(samples, features, options),
    )


def for_numbers(selector: BaseSelector) -> BaseSelector:
    """Set what a published method needs to fit numbers: whole ones are no labels, and their mean needs no features."""
    known = selector.get_params()
    changes = {"task": "regression", "bias": "unpenalised"}
    return selector.set_params(**{name: value for name, value in changes.items() if name in known})


def group_names(samples: Samples, groups: dict[str, list[str]] | None) -> dict[int, str]:
    """Return the names of feature groups by their lowest feature."""
    place = {name: index for index, name in enumerate(samples.feature_names)}
    return {min(place[name] for name in members): label for label, members in (groups or {}).items()}


def _refuse_left_out(samples: Samples, names: list[str] | None) -> list[str] | None:
    """Raise an error for a feature to include that was left out when the file was read."""
    left_out = [name for name in names or [] if name in samples.others and name not in samples.feature_names]
    if left_out:
        is_guess = any(left_out[0] in choices.get("ignore", ()) for choices in samples.choices.values())
        why = "it holds text or counts the samples. Encode it as numbers" if is_guess else "as you asked. Change --ignore"
        raise click.UsageError(f"--include {left_out[0]!r}: this column was left out, {why}, or do not include it.")
    return names


def _without_left_out(samples: Samples, names: list[str] | None) -> list[str] | None:
    """Return the names without those of columns that were left out when the file was read, for good."""
    others = set(samples.others).difference(samples.feature_names)
    return None if names is None else [name for name in names if name not in others]


def make_constraints(samples: Samples, features: Features, options: ModelOptions) -> Constraints | None:
    """Return the constraints; features of sets and with costs that the table does not have are left out."""
    groups = options.feature_groups
    known = dict.fromkeys(() if features.names is None else features.names)
    has_atlas = getattr(options, "atlas", None) is not None
    if options.costs and options.budget is None and not has_atlas:
        raise click.UsageError(
            "--costs without --budget, or --atlas of l20fs select, has no effect. Give one of them, or no costs."
        )
    costs = options.costs and {name: cost for name, cost in options.costs.items() if name in known}
    sets = options.sets and {name: [row for row in rows if row in known] for name, rows in options.sets.items()}
    _tell_others("costs", options.costs or {}, known)
    _tell_others("sets", dict.fromkeys(row for rows in (options.sets or {}).values() for row in rows), known)
    constraints = Constraints(
        include=_indices(features, "include", _refuse_left_out(samples, options.include)),
        exclude=_indices(features, "exclude", _without_left_out(samples, options.exclude)),
        groups=groups and [_indices(features, "feature_groups", members) for members in groups.values()],
        min_per_class=options.min_per_class,
        max_per_class=options.max_per_class,
        budget=options.budget,
        costs=None if options.budget is None else costs,  # those of an atlas alone limit nothing
        exclusive=options.exclusive and [_indices(features, "exclusive", rows) for rows in options.exclusive],
        sets=sets,
    )
    if constraints == Constraints():
        return None
    try:
        constraints.check()
        return constraints.by_index(features)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _tell_others(option: str, names: Collection[str], known: Collection[str]) -> None:
    """Say how many names the table does not have; if it has none of them, raise an error."""
    n_others = len(set(names).difference(known))
    if n_others and n_others == len(names):
        raise click.UsageError(
            f"{flag(option)}: none of its features is in the table. It has {abbreviated(list(names))}, the table "
            f"{abbreviated(list(known))}. Use the same names in both."
        )
    if n_others:
        are = by_number(n_others, "is not in the table, and is", "are not in the table, and are")
        note(f"{flag(option)}: {n_others} of {counted(len(names), 'feature')} {are} left out.")


def _indices(features: Features, option: str, names: list[str] | None) -> list[int] | None:
    if names is None:
        return None
    try:
        return features.find_all(flag(option), names)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
