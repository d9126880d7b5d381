"""What a command is given: the samples, and a selector as the options ask for."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from l20fs import L20Selector
from l20fs.blocks import FileBlocks, format_bytes
from l20fs.cli.options import DEFAULTS, OWN_OPTIONS, SOLVERS, supervised_methods
from l20fs.cli.output import note, readable
from l20fs.data import load_srbct
from l20fs.data.readers import DataError, Table, read_table
from l20fs.estimators.base import BaseSelector
from l20fs.inputs.constraints import Features
from l20fs.typing import Array

#: Options that only say how a file is to be read.
READING = ("labels", "groups", "samples_in", "layer", "sheet", "max_memory")


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples as the options ask for, and the name of what they were read from.

    ``notes`` are things that the reader of the file noticed.
    """

    X: Any
    y: Array
    feature_names: list[str]
    sha256: str
    title: str
    groups: Array | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table, title: str) -> Samples:
        """Take over what a reader found."""
        return cls(table.X, table.y, table.feature_names, table.sha256, title, table.groups, table.notes)


def load(data: str, target: str | None, *, is_log: bool = False, in_blocks: bool = False, **reading: Any) -> Samples:
    """Load the built-in set or a file; with ``in_blocks`` a matrix larger than memory stays in its file."""
    given = {name: value for name, value in reading.items() if value is not None}
    if data == "srbct" and not os.path.exists(data):
        if target is not None or given:
            option = "target" if target is not None else next(iter(given)).replace("_", "-")
            raise click.UsageError(f"--{option}: the built-in srbct has its own labels. Leave the option out.")
        tumours = load_srbct()
        digest = hashlib.sha256(tumours.data.tobytes()).hexdigest()
        samples = Samples(tumours.data, tumours.target, tumours.feature_names, digest, "srbct")
    else:
        if not os.path.exists(data):  # False for impossible names, too
            raise click.UsageError(f"{data!r} is neither a file nor a built-in data set (srbct).")
        in_use = resident_memory() if "max_memory" in given else 0
        table = read_table(Path(data), target, in_blocks=in_blocks, in_use=in_use, **given)
        samples = Samples.of(table, readable(Path(data).name))
    X = samples.X
    if isinstance(X, FileBlocks):
        limit = reading.get("max_memory")
        than = f"the {format_bytes(limit)} of --max-memory" if limit else "the memory that is free"
        note(f"work on {samples.title} in memory would take more than {than}: it is read in blocks")
    if not is_log:
        return samples
    return replace(samples, X=X.mapped(logarithms, X.dtype) if isinstance(X, FileBlocks) else logarithms(X))


def resident_memory() -> int:
    """Return the bytes of memory that this process has now, which a user's limit is meant to cover; 0 if nobody tells."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


def refuse_for_blocks(samples: Samples, options: dict[str, Any]) -> None:
    """Refuse what needs all samples in memory where they are not."""
    if not isinstance(samples.X, FileBlocks):
        return
    way_out = f"{samples.title} is read in blocks. Leave the option out, or allow more memory (--max-memory)."
    if options.get("certify"):
        raise click.UsageError(f"--certify needs the data in memory, and {way_out}")
    if options["feature_groups"] and options["method"] in ("forward", "swap", "sbr") and samples.X.axis == 0:
        raise click.UsageError(
            f"--feature-groups with --method {options['method']} needs the data in memory, and {way_out} Or use --method "
            "ahiht, which does not need that."
        )


def logarithms(X: Any) -> Any:
    """Return log(1 + x) of all values, of a matrix or a block of one."""
    values = X.data if sp.issparse(X) else X
    lowest = float(values.min(initial=0.0))
    if lowest < 0.0:
        raise DataError(f"--log: the table has negative values, the lowest is {lowest:g}. Leave --log out.")
    return X.log1p() if sp.issparse(X) else np.log1p(X)


def complete(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse what a method does not take, and fill in the defaults of what was not given."""
    own = {name: options[name] for name in OWN_OPTIONS}
    if options["method"] not in SOLVERS:
        given = [name for name, value in own.items() if value is not None]
        if given:
            raise click.UsageError(
                f"--{given[0].replace('_', '-')} does not go with --method {options['method']}. Use one of "
                f"{', '.join(SOLVERS)}, or leave the option out."
            )
        return options
    defaults = {name: DEFAULTS[name] for name in ("scale", "ranking")} | {"class_weight": DEFAULTS["class_weight"] or "none"}
    return options | {name: default for name, default in defaults.items() if own[name] is None}


def make_selector(
    samples: Samples, options: dict[str, Any], max_features: int, checkpoint: Path | None = None
) -> BaseSelector:
    """Return the unfitted selector; features are known by index from here on. A fit to a file is kept in ``checkpoint``."""
    method = options["method"]
    if method not in SOLVERS:
        selector = supervised_methods()[method]()
        if sp.issparse(samples.X) and not selector.takes_sparse:
            raise click.UsageError(
                f"--method {method} needs a dense table, and this one is sparse. Use one of {', '.join(SOLVERS)}."
            )
        return selector
    features = Features(len(samples.feature_names), np.array(samples.feature_names, dtype=object))
    wishes: dict[str, Any] = {name: _indices(features, name, options[name]) for name in ("include", "exclude")}
    groups = options["feature_groups"]
    return L20Selector(
        solver=method,
        alpha=options["alpha"],
        ridge=options["ridge"],
        scale=options["scale"],
        class_weight=None if options["class_weight"] == "none" else options["class_weight"],
        ranking=options["ranking"],
        max_features=max_features,
        feature_groups=groups and [_indices(features, "feature_groups", members) for members in groups.values()],
        checkpoint=checkpoint if isinstance(samples.X, FileBlocks) else None,
        **wishes,
    )


def unit_names(samples: Samples, groups: dict[str, list[str]] | None) -> dict[int, str]:
    """Return the names of feature groups by their lowest feature."""
    place = {name: index for index, name in enumerate(samples.feature_names)}
    return {min(place[name] for name in members): label for label, members in (groups or {}).items()}


def _indices(features: Features, option: str, names: list[str] | None) -> list[int] | None:
    if names is None:
        return None
    try:
        return features.find_all(f"--{option.replace('_', '-')}", names)
    except ValueError as error:
        raise click.UsageError(str(error).replace("which X does not have", "which the table does not have")) from error
