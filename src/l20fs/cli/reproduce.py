"""``l20fs reproduce``: experiments of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from l20fs.cli.data import data_dir_option
from l20fs.cli.folder import require_plots
from l20fs.cli.output import cell_bars, note, show
from l20fs.cli.parameter_types import JOBS
from l20fs.storage.files import check_writable
from l20fs.text import did_you_mean, joined

#: The exhibits, in the order of the paper; ``all`` stands for every one.
NAMES = (
    "datasets",
    "accuracy",
    "curves",
    "lambda",
    "initialisation",
    "convergence",
    "time",
    "solvers",
    "readings",
    "repeats",
    "summary",
)


def hint(name: str, known: list[str]) -> str:
    """Ask for known names like ``name``, or list them all.

    Examples
    --------
    >>> hint("brian", ["brain", "lung"]), hint("iris", ["brain", "lung"])
    ("Did you mean 'brain'?", 'Use brain or lung.')
    """
    question = did_you_mean(name, known)
    return question if question.startswith("Did") else f"Use {joined(known, 'or')}."


class ExhibitName(click.Choice[str]):
    """Name of an exhibit, or all."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            self.fail(f"{value!r} is no exhibit. {hint(value, list(self.choices))}", param, ctx)
        return str(value)


@click.command()
@click.argument("what", metavar="EXHIBIT...", nargs=-1, required=True, type=ExhibitName([*NAMES, "all"]))
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for everything.",
)
@click.option("--datasets", help="Only these sets, separated by commas.  [default: all]")
@click.option(
    "--protocol",
    type=click.Choice(["paper", "both"]),
    default="both",
    show_default=True,
    help="The paper's protocol, which is optimistic, or the honest one beside it (five times the work).",
)
@click.option("--n-jobs", type=JOBS, default=2, show_default=True, help="Fits at the same time.")
@data_dir_option
def reproduce(
    what: tuple[str, ...],
    folder: Path,
    datasets: str | None,
    protocol: str,
    n_jobs: int,
    data_dir: Path | None,
) -> None:
    """Reproduce the paper's tables and figures, beside the printed numbers.

    EXHIBIT is one or more of datasets, accuracy, curves, lambda, initialisation, convergence, time, solvers, readings,
    repeats and summary, or all. A run that was stopped goes on where it was: call it again with the same folder.

    \b
    Examples:
      l20fs reproduce accuracy -o out --datasets srbct
      l20fs reproduce all -o out --data-dir data
    """
    require_plots()
    from l20fs.data.catalogue import paper_sets
    from l20fs.experiments.reproduce import Reproduction
    from l20fs.report.index import PAGE

    wanted = None if datasets is None else [name.strip() for name in datasets.split(",")]
    for name in wanted or []:
        if name not in paper_sets():
            raise click.UsageError(f"--datasets: {name!r} is not a set of the paper. {hint(name, list(paper_sets()))}")
    check_writable(folder)
    with cell_bars() as on_progress:
        reproduction = Reproduction(
            folder,
            data_dir=data_dir,
            datasets=wanted,
            is_honest=protocol == "both",
            n_jobs=n_jobs,
            note=note,
            on_progress=on_progress,
        )
        names = list(NAMES) if "all" in what else list(dict.fromkeys(what))
        made = reproduction.make(names)
    for exhibit in made:
        for name in exhibit.files:
            show(str(folder / name))
    if made:
        note(f"All of it on one page: {folder / PAGE}")
