"""``l20fs path``: table of all stages of the path."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from l20fs.cli.options import DataOptions, ModelOptions, data_options, model_options
from l20fs.cli.output import log_of_blocks, note, show_text, stated_warnings, working
from l20fs.cli.parameter_types import FEATURES, SOLVERS
from l20fs.storage.files import check_writable, sweep, write_atomically
from l20fs.storage.regular_files import kind_of
from l20fs.text import printable

if TYPE_CHECKING:
    import pandas as pd

    from l20fs.objective.solution_path import SolutionPath

#: Default number of features to go to.
DEFAULT_STEPS = 50


@dataclass(frozen=True, kw_only=True)
class PathOptions(DataOptions, ModelOptions):
    """All options of ``l20fs path``."""

    n_features: int | None = None
    certify: bool = False
    output: Path | None = None
    force: bool = False


@click.command()
@click.argument("data")
@data_options
@click.option("-k", "n_features", type=FEATURES, help=f"Features to go to.  [default: {DEFAULT_STEPS}]")
@model_options
@click.option("--certify", is_flag=True, help="Also say how far from the best of all selections each size is at most.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File for the table (TSV).")
@click.option("--force", is_flag=True, help="Replace the file.")
def path(data: str, **given: Any) -> None:
    """Print the path of DATA: a line per lambda, with the features that enter and leave.

    Names with control characters are escaped on the terminal, and verbatim in the file of -o.

    \b
    Examples:
      l20fs path srbct -k 10
      l20fs path tumours.tsv --target type --certify -o path.tsv
    """
    from l20fs import L20Selector
    from l20fs.cli.load import load, make_selector, nuisances_of, refuse_changed, refuse_for_blocks
    from l20fs.inputs.names import NamedColumns
    from l20fs.report.delimited import write_frame
    from l20fs.report.formats import text_writer

    options = PathOptions(**given)
    output = options.output
    if options.method not in SOLVERS:
        raise click.UsageError(f"--method {options.method} has no path. Use one of {', '.join(SOLVERS)}.")
    if output is not None:
        check_output(output, force=options.force)
    options = options.completed()
    samples = load(data, options, in_blocks=True)
    refuse_for_blocks(samples, options)
    k = min(options.n_features or DEFAULT_STEPS, samples.X.shape[1])
    selector = make_selector(samples, options, k)
    assert isinstance(selector, L20Selector)
    selector.set_params(n_features_to_select=k, certify=options.certify)
    with stated_warnings(), log_of_blocks(samples.X), working("Fit"):
        selector.fit(NamedColumns(samples.X, samples.feature_names), samples.y, adjust_for=nuisances_of(samples))
    refuse_changed(samples)
    names = samples.feature_names if output is not None else [printable(name) for name in samples.feature_names]
    frame = path_frame(selector.path_, names, with_gaps=options.certify)
    if output is None:
        show_text(write_frame(frame))
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    sweep(output.parent)
    write_atomically(output, text_writer(write_frame(frame)))
    note(f"The path is in {output}")


def check_output(file: Path, *, force: bool) -> None:
    """Raise an error before any work is done if the table cannot be written to a file, or must not."""
    if os.path.lexists(file) and not stat.S_ISREG(os.lstat(file).st_mode):
        kind = kind_of(os.lstat(file).st_mode)
        raise click.UsageError(f"-o {file}: {kind}, and only a regular file is replaced. Leave -o out to print the table.")
    if file.exists() and not force:
        raise click.UsageError(f"-o {file}: the file exists. Use --force to replace it.")
    check_writable(file.parent, given=file)


def path_frame(path: SolutionPath, names: list[str], *, with_gaps: bool) -> pd.DataFrame:
    """Return a row per stage: size, lambda, entering and leaving features, loss, and the gap on request."""
    import pandas as pd

    from l20fs.report.delimited import join_names

    rows = []
    before: set[int] = set()
    for stage, size in enumerate(path.sizes.tolist()):
        now = set(path.stage_rows(stage).tolist())
        rows.append(
            {
                "size": size,
                "lambda": path.alphas[stage],
                "enters": join_names(names[j] for j in sorted(now - before)),
                "leaves": join_names(names[j] for j in sorted(before - now)),
                "loss": path.losses[stage],
            }
        )
        if with_gaps:
            is_known = max(1, path.least_size) <= size < len(path.lower_bounds)
            rows[-1]["gap"] = path.gap(size) if is_known else float("nan")
        before = now
    return pd.DataFrame(rows)
