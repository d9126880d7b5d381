"""``l20fs reproduce``: experiments of the paper."""

from __future__ import annotations

from pathlib import Path

import click

from l20fs.cli.data import data_dir_option
from l20fs.cli.output import cell_bars, note, show
from l20fs.data.catalogue import paper_sets

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


@click.command()
@click.argument("what", nargs=-1, required=True, type=click.Choice([*NAMES, "all"]))
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
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
@click.option("--n-jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Fits at the same time.")
@data_dir_option
def reproduce(
    what: tuple[str, ...], folder: Path, datasets: str | None, protocol: str, n_jobs: int, data_dir: Path | None
) -> None:
    """Reproduce the paper's tables and figures, beside the printed numbers.

    A run that was stopped is resumed: call it again with the same folder.

    \b
    Examples:
      l20fs reproduce accuracy -o out --datasets srbct
      l20fs reproduce all -o out --data-dir data
    """
    from l20fs.experiments.reproduce import Reproduction  # matplotlib takes a second to load
    from l20fs.report.index import write_reproduction_page

    wanted = None if datasets is None else [name.strip() for name in datasets.split(",")]
    for name in wanted or []:
        if name not in paper_sets():
            raise click.UsageError(f"--datasets: {name!r} is not a set of the paper. Use {', '.join(paper_sets())}.")
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
            show(f"{folder / name}\n")
    if made:
        note(f"All of it on one page: {write_reproduction_page(folder, made)}")
