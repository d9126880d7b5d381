"""``l20fs compare``: comparison of methods on the same splits of a table."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from l20fs.cli import options
from l20fs.cli.options import NumberOfFeatures, SectionedCommand, add_options, option
from l20fs.cli.results import check_folder, write_results
from l20fs.cli.terminal import note, noted_warnings, show, show_files
from l20fs.tables.settings import Settings

if TYPE_CHECKING:
    from l20fs.compare.methods import Method

COMPARISON = "Comparison"

#: The files of the results, the page last.
FILES = ("comparison.tsv", "comparison.html")


class Sizes(NumberOfFeatures):
    """Numbers of features, separated by commas."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, list):
            return value
        return [super(Sizes, self).convert(part.strip(), param, ctx) for part in value.split(",")]


@click.command(cls=SectionedCommand, context_settings={"max_content_width": 100})
@click.argument("data")
@add_options(
    options.target,
    options.labels,
    options.groups,
    options.log1p,
    option("--methods", section=COMPARISON, metavar="NAMES", help="Such as L20Selector,RFS,mRMR; all; list shows them."),
    option("--sizes", section=COMPARISON, type=Sizes(), metavar="NUMBERS", help="Features.  [default: 5,10,20,50,100]"),
    options.scoring(COMPARISON),
    options.output("l20fs-comparison"),
    options.open_page,
    options.config,
)
def compare(
    data: str,
    target: str | None,
    labels: Path | None,
    groups: str | None,
    log1p: bool,
    methods: str | None,
    sizes: list[int] | None,
    scoring: str | None,
    output: Path,
    open_page: bool,
    config: tuple[Settings, dict[str, Any]],
) -> None:
    """Compare methods on DATA: a table (CSV, Excel, h5ad, ...), or demo.

    All methods get the same random splits. Features, their number and parameters are chosen on the training samples
    alone; scores are those of the test samples.

    \b
    l20fs compare tumours.csv --target type
    """
    if methods == "list":
        list_methods()
        return
    import scipy.sparse as sp

    from l20fs.cli.samples import load_samples
    from l20fs.compare.runner import Dataset, make_settings, run
    from l20fs.compare.summary import comparison_curves, comparison_table, find_answer, remarks
    from l20fs.report.comparison import comparison_page

    check_folder(output, FILES, force=False, way_out="Remove them, or name another folder with -o.")
    settings = config[0]
    with noted_warnings() as warnings:
        samples = load_samples(data, settings, target=target, labels=labels, groups=groups, log1p=log1p)
        if sp.issparse(samples.X):
            raise ValueError("The table is sparse, and most methods need a dense one. Export the features of interest.")
        task: Any = samples.task
        dataset = Dataset(samples.title, samples.X, samples.y, task, samples.unprepared, samples.groups)
        plan = make_settings(
            dataset,
            parse_methods(methods, for_labels=task == "classification"),
            sizes=sizes or (),
            scoring=scoring or "auto",
            n_splits=settings.search.splits,
            seed=settings.search.seed,
        )
        notes = list(remarks(dataset, plan))
        for text in notes:
            note(text)
        bar = click.progressbar(length=1, label="Comparison", file=sys.stderr, hidden=not sys.stderr.isatty())
        with bar as shown:

            def advance(n_done: int, n_fits: int) -> None:
                shown.length = n_fits
                shown.update(1)

            rows = run(plan, dataset, n_jobs=settings.run.n_jobs, on_progress=advance)
    table, curves = comparison_table(rows, dataset), comparison_curves(rows, dataset)
    answer = find_answer(table)
    page = comparison_page(
        table,
        curves,
        title=samples.title,
        answer=answer,
        n_splits=plan.n_splits,
        n_samples=len(samples.y),
        n_features=samples.X.shape[1],
        has_groups=samples.groups is not None,
        chance=dataset.targets.chance(plan.metric),
        notes=[*samples.notes, *notes, *warnings],
    )
    text = table.to_csv(sep="\t", index=False, float_format="%.10g", lineterminator="\n")
    names = write_results(output, {"comparison.tsv": text, "comparison.html": page}, FILES)
    show(answer)
    show_files(output, names, "comparison.html", is_to_open=open_page)


def list_methods() -> None:
    """Print the names of all methods with their references."""
    from l20fs.compare.methods import known_methods

    for method in known_methods().values():
        show(f"{method.label}: {method.selector().about.reference or 'no features are selected'}")


def parse_methods(text: str | None, *, for_labels: bool) -> tuple[Method, ...]:
    """Return the requested methods; names are separated by commas, except for the one that is part of a name."""
    from l20fs.compare.methods import choose_methods, known_methods

    names = None
    if text is not None:
        with_comma = [re.escape(name) for name in known_methods() if "," in name]
        found = re.findall(rf"\s*({'|'.join([*with_comma, '[^,]+'])})", text, re.IGNORECASE)
        names = [name.strip() for name in found if name.strip()]
        if not names:
            raise click.UsageError(f"--methods {text!r} names none. Name some, separated by commas, or leave it out.")
    try:
        return choose_methods(names, for_labels=for_labels)
    except ValueError as error:
        raise click.UsageError(f"--methods: {error}") from error
