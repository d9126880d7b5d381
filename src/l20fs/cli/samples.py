"""The samples that a command works on: the built-in set, a file, or standard input."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from l20fs.cli.terminal import note
from l20fs.data import load_srbct
from l20fs.inputs.nuisances import encode_nuisances
from l20fs.tables import DataError, Samples, UnknownColumnError, read_table
from l20fs.tables.settings import Settings
from l20fs.typing import Array

#: Names of the built-in set.
DEMO = ("demo", "srbct")


def load_samples(
    data: str,
    settings: Settings,
    *,
    target: str | None = None,
    labels: Path | None = None,
    log1p: bool = False,
    needed: Collection[str] | None = None,
    substitutes: Collection[str] = (),
    **asked: Any,
) -> Samples:
    """Read the samples, and print what the readers decided.

    Parameters
    ----------
    data : str
        A file, ``-`` for standard input, or the built-in set.
    settings : Settings
        Those of its section ``input`` are for the reader.
    target, labels
        Where the classes or numbers are.
    log1p : bool
        Whether to take log(1 + x) of all values.
    needed, substitutes : collection of str
        Of a panel: the features to read, and those that can replace them.
    **asked
        Further parameters of :func:`~l20fs.tables.read_table`, such as ``groups``.
    """
    if data in DEMO and not os.path.isfile(data):
        samples = load_demo(target, labels)
    else:
        given = {name: value for name, value in vars(settings.input).items() if value not in (None, ())}
        with ExitStack() as stack:
            file = _as_file(data, stack)
            try:
                samples = read_table(
                    file, target, labels=labels, needed=needed, substitutes=substitutes, **{**given, **_given(asked)}
                )
            except UnknownColumnError as error:
                raise click.UsageError(str(error)) from error
        title = "standard input" if data == "-" else os.fsencode(Path(data).name).decode(errors="backslashreplace")
        samples = replace(samples, title=title)
    for text in samples.notes:
        note(text)
    return samples.mapped(_logarithms) if log1p else samples


def load_demo(target: str | None, labels: Path | None) -> Samples:
    """Return the built-in tumours."""
    if target is not None or labels is not None:
        raise click.UsageError("The built-in set has its own classes. Leave --target and --labels out.")
    tumours = load_srbct()
    digest = hashlib.sha256(tumours.data.tobytes()).hexdigest()
    about = "demo: 4 childhood tumours (Khan et al. 2001); the open source of these data numbers the genes."
    names = list(tumours.feature_names)
    return Samples(
        tumours.data, tumours.target, names, digest, title="demo", target_name="tumour", notes=(about,), format="built-in"
    )


def covariates_of(samples: Samples) -> Array | None:
    """Return the encoded columns of --adjust-for; None if there are none."""
    if not samples.adjust_for:
        return None
    return np.hstack([encode_nuisances(values, len(samples.y)) for values in samples.adjust_for.values()])


def _given(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if value is not None}


def _as_file(data: str, stack: ExitStack) -> Path:
    """Return a file that can be read more than once; standard input and pipes are copied."""
    if data != "-" and not Path(data).is_fifo():
        if not os.path.exists(data):
            raise click.UsageError(f"{data!r} is no file. Give a table of samples, or demo, the built-in set.")
        return Path(data)
    if data == "-" and sys.stdin.isatty():
        raise click.UsageError("Standard input is a terminal. Send a table into it: zcat table.csv.gz | l20fs ... -")
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="l20fs-input-")), "input")
    with open(0 if data == "-" else data, "rb", closefd=data != "-") as stream, open(copy, "wb") as kept:
        shutil.copyfileobj(stream, kept)
    return copy


def _logarithms(X: Any) -> Any:
    """Return log(1 + x) of a matrix."""
    values = X.data if sp.issparse(X) else X
    lowest = float(np.fmin.reduce(values, axis=None, initial=0.0))  # values may be missing
    if lowest < 0.0:
        raise DataError(f"--log1p: the table has negative values, the lowest is {lowest:g}. Leave --log1p out.")
    return np.log1p(X) if not sp.issparse(X) else X.log1p()
