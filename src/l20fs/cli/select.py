"""``l20fs select``: selection of features from a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from l20fs.cli.folder import check_output
from l20fs.cli.options import (
    CommonFirst,
    SelectOptions,
    check_scoring,
    data_options,
    model_options,
    scoring_option,
)
from l20fs.cli.output import Table, note, readable, show, show_json, show_tables, tell_results
from l20fs.cli.parameter_types import FEATURES, JOBS, SEED, SHARE, SOLVERS, Count
from l20fs.defaults import DEFAULT_N_FEATURES
from l20fs.evaluation.choice import FIRST_LIMIT, LAST_LIMIT
from l20fs.text import percent, with_interval

if TYPE_CHECKING:
    from l20fs.cli.select_content import Panel
    from l20fs.cli.select_findings import Findings
    from l20fs.report.measures import Stability

SHOWN_SIZES = (1, 2, 5, 10, 20, 50, 100)
MOST_ROWS_SHOWN = 20

#: Options that change where and how a result is shown, and not what it is.
WITHOUT_EFFECT = ("output", "n_jobs", "force", "as_json", "open_page", "max_memory")


@click.command(cls=CommonFirst)
@click.argument("data")
@data_options
@click.option("-k", "n_features", type=FEATURES, help=f"Features to select.  [default: {DEFAULT_N_FEATURES}]")
@click.option(
    "--auto",
    type=click.Choice(["1se", "best"]),
    help="Let cross-validation choose the number: the best one, or the smallest within one standard error of it.",
)
@click.option(
    "--max-features",
    type=FEATURES,
    help="The largest number that --auto tries.  "
    f"[default: {FIRST_LIMIT}, doubled up to {LAST_LIMIT} while the best is there]",
)
@click.option("--nested", is_flag=True, help="Also estimate the score with --auto repeated inside each fold.")
@scoring_option
@model_options
@click.option(
    "--stability",
    type=Count(2, 100_000, "100 halves are enough, and 1000 are exact to one per cent"),
    help="Repeat the selection on this many halves of the samples, for example 100.",
)
@click.option(
    "--atlas",
    type=SHARE,
    help="Also list all panels whose loss is within this share of the best, for example 0.1%, and with --costs name the "
    "cheapest; auto: as large a share as a minute allows. The search ends after a minute.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for the result files and the report page.")
@click.option("--n-jobs", type=JOBS, default=1, show_default=True, help="Fits at the same time.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the folds and halves.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON instead of tables.")
@click.option("--force", is_flag=True, help="Replace the results in the output folder.")
@click.option("--open", "open_page", is_flag=True, help="Open the report page in the browser.")
def select(data: str, **given: Any) -> None:
    """Select features from DATA: a table with one sample per row (CSV, TSV, ...), or `srbct`, the built-in set.

    \b
    Examples:
      l20fs select srbct
      l20fs select tumours.tsv --target type -k 30 -o results --open
      l20fs select counts.csv --target cell_type --groups donor --log --auto 1se -o results
      l20fs select tumours.tsv --target type --include TP53,MYC --exclude @controls.txt --stability 100 -o results
      l20fs select tumours.tsv --target type -k 20 --min-per-class 2 --atlas 0.1% -o results
      l20fs select relapse.csv --target relapse --scoring roc_auc --auto best -o results
      l20fs select methylation.csv --target age --task regression --auto 1se -o results
    """
    from l20fs.cli.load import load, refuse_changed
    from l20fs.cli.results import describe_run, write_selection
    from l20fs.cli.select_pipeline import run_selection

    options = SelectOptions(**given)
    check_combination(options)
    output = options.output
    if output is not None:
        check_output(output, "select", force=options.force)
    options = options.completed()
    samples = load(data, options, in_blocks=options.method in SOLVERS)
    findings = run_selection(samples, options, describe_run(samples, arguments(data, options)))
    refuse_changed(samples)
    names = None if output is None else write_selection(output, findings)
    tell(findings)
    if output is None or names is None:
        note("Nothing was written; add -o DIR to keep the results and a report page.")
    else:
        tell_results(output, names, open_page=options.open_page)


def check_combination(options: SelectOptions) -> None:
    """Raise an error for contradictory options."""
    if options.n_features is not None and options.auto is not None:
        raise click.UsageError(f"-k {options.n_features} and --auto {options.auto}: give one of the two.")
    if options.nested and options.auto is None:
        raise click.UsageError("--nested repeats the choice that --auto makes. Give --auto 1se or --auto best with it.")
    if options.max_features is not None and options.auto is None:
        raise click.UsageError("--max-features limits the search of --auto. Give --auto 1se or --auto best with it, or -k.")
    check_scoring(options.scoring, options.task)
    if options.task == "regression" and options.class_weight is not None:
        raise click.UsageError("--class-weight is for labels, and --task regression for numbers. Leave one of the two out.")
    if options.stability is not None and options.stability % 2:
        raise click.UsageError(f"--stability {options.stability} is odd, but halves come in pairs. Use an even number.")
    if options.atlas is not None and (options.method not in SOLVERS or options.ridge == 0):
        given = f"--method {options.method}" if options.method not in SOLVERS else "--ridge 0"
        raise click.UsageError(
            f"--atlas does not go with {given}: its proofs need the loss of {', '.join(SOLVERS)}, with a ridge term. Leave "
            "one of the two out."
        )
    if options.open_page and options.output is None:
        raise click.UsageError("--open needs a folder. Add -o DIR.")


def arguments(data: str, options: SelectOptions) -> dict[str, Any]:
    """Return the options that determine the result."""
    kept = {name: value for name, value in sorted(vars(options).items()) if name not in WITHOUT_EFFECT}
    kept = {name: readable(str(value)) if isinstance(value, Path) else value for name, value in kept.items()}
    return {"data": readable(data)} | kept


def tell(findings: Findings) -> None:
    """Print the result, as JSON or as tables."""
    from l20fs.cli.select_atlas import tell_atlas
    from l20fs.cli.select_content import panel_of, stability_of
    from l20fs.cli.select_sentences import answer, nested_answer, settings

    panel, stability = panel_of(findings), stability_of(findings)
    if findings.options.as_json:
        show_json(summary(findings, panel, stability))
        return
    scores = [scores_at_a_few(findings)] if findings.predictions is not None else []
    show_tables(features_table(findings, panel, stability), *scores)
    for text in (answer(findings), nested_answer(findings), settings(findings), *tell_atlas(findings)):
        if text is not None:
            show(text)


def summary(findings: Findings, panel: Panel, stability: Stability | None) -> dict[str, Any]:
    """Return the result for programs: run.json, selection and scores."""
    from l20fs.cli.results import cv_table
    from l20fs.cli.select_atlas import atlas_record
    from l20fs.cli.select_sentences import answer, settings
    from l20fs.report.sentences import RULES

    columns = cv_table(findings)
    nested, score, nested_score = findings.nested, findings.score, findings.nested_score
    return findings.provenance | {
        "answer": answer(findings),
        "warnings": list(findings.warnings),
        "k": findings.k,
        "k_rule": RULES[findings.k_rule],
        "settings": settings(findings),
        "selected": panel.features,
        "level": panel.levels,
        "scores": panel.scores,
        "score": score and {"metric": findings.metric.name, "is_corrected": findings.is_corrected, **score._asdict()},
        "cv": None
        if findings.predictions is None
        else [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        "nested": nested
        and nested_score
        and {**nested_score._asdict(), "folds": nested.scores.tolist(), "n_features": nested.sizes},
        "atlas": atlas_record(findings),
        "stability": stability
        and {"index": stability.index, "interval": [stability.lower, stability.upper], "frequencies": stability.frequencies},
    }


def features_table(findings: Findings, panel: Panel, stability: Stability | None) -> Table:
    """Return the best features, and where each of them is high or low."""
    n_rows = min(len(panel.features), MOST_ROWS_SHOWN)
    n_more = findings.k - n_rows
    n_features = len(findings.samples.feature_names)
    where = "selection.tsv" if findings.options.output is not None else "selection.tsv with -o DIR"
    caption = f"... and {n_more} more (all of them in {where})" if n_more else ""
    table = Table(title=f"The best {findings.k} of {n_features} features", caption=caption)
    table.add_column("rank", justify="right")
    table.add_column("feature")
    table.add_column("score" if panel.norms is None else "weight", justify="right")
    table.add_column("level")
    if stability is not None:
        table.add_column("stability", justify="right")
    for i in range(n_rows):
        cells = [str(i + 1), panel.features[i], weight_text(panel, i), panel.levels[i]]
        if stability is not None:
            cells.append(percent(stability.frequencies[i]))
        table.add_row(*cells)
    return table


def weight_text(panel: Panel, i: int) -> str:
    """Return the norm of the weights of a feature, what ranked it where that is zero, or its score."""
    if panel.norms is None or panel.rules is None:
        return f"{panel.scores[i]:.4g}"
    return f"{panel.norms[i]:.4g}" if panel.norms[i] else f"0 ({panel.rules[i]})"


def scores_at_a_few(findings: Findings) -> Table:
    """Return the scores at a few numbers of features, with their intervals."""
    from l20fs.cli.select_sentences import chance_text

    assert findings.predictions is not None
    sizes, metric = findings.predictions.sizes, findings.metric
    title = f"{metric.title[0].upper()}{metric.title[1:]} (95 % interval): {findings.provenance['protocol']}"
    caption = chance_text(findings)
    table = Table(title=title, caption=caption[0].upper() + caption[1:])
    table.add_column("features", justify="right")
    for judge in findings.curves:
        table.add_column(judge, justify="right")
    for size in [size for size in sizes if size in SHOWN_SIZES or size == findings.k]:
        place = sizes.index(size)
        found = [[float(values[place]) for values in curve[:3]] for curve in findings.curves.values()]
        scores = [with_interval(*each, is_share=metric.is_share) for each in found]
        is_chosen = size == findings.k
        table.add_row(f"{'> ' if is_chosen else ''}{size}", *scores, style="bold" if is_chosen else None)
    return table
