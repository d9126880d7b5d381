"""``l20fs select``: the features that tell the classes of a table apart."""

from __future__ import annotations

import json
import os
import webbrowser
from pathlib import Path
from typing import Any

import click
from rich.table import Table as RichTable

from l20fs.cli.load import READING, Samples, complete, load
from l20fs.cli.options import SOLVERS, data_options, model_options
from l20fs.cli.output import note, plain, readable, show, show_tables
from l20fs.cli.results import (
    accuracy_table,
    check_output,
    check_same_run,
    clear_leftovers,
    clear_passes,
    describe_run,
    write_results,
)
from l20fs.cli.select_pipeline import DEFAULT_K, find
from l20fs.evaluation.predictions import JUDGES
from l20fs.report.build import Findings, build
from l20fs.report.content import Content
from l20fs.report.sentences import percent
from l20fs.storage.files import claimed

SHOWN_SIZES = (1, 2, 5, 10, 20, 50, 100)
MOST_ROWS_SHOWN = 20

#: Options that change where and how a result is shown, and not what it is.
WITHOUT_EFFECT = ("output", "n_jobs", "force", "resume", "as_json", "open_page", "max_memory")


@click.command()
@click.argument("data")
@data_options
@click.option("-k", "n_features", type=click.IntRange(min=1), help=f"Features to select.  [default: {DEFAULT_K}]")
@click.option(
    "--auto",
    type=click.Choice(["1se", "best"]),
    help="Let cross-validation choose the number: the best one, or the smallest within one standard error of it.",
)
@click.option("--nested", is_flag=True, help="Also estimate the accuracy with --auto repeated inside each fold.")
@model_options
@click.option(
    "--stability",
    type=click.IntRange(min=2),
    help="Repeat the selection on this many halves of the samples, for example 100.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for the result files and the report page.")
@click.option("--n-jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Fits at the same time.")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of the folds and halves."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON instead of tables.")
@click.option("--force", is_flag=True, help="Replace the results in the output folder.")
@click.option("--resume", is_flag=True, help="Go on with a run into this folder that was interrupted.")
@click.option("--open", "open_page", is_flag=True, help="Open the report page in the browser.")
def select(data: str, **options: Any) -> None:
    """Select features from DATA: a table with one sample per row (CSV, TSV, ...), or `srbct`, the built-in set.

    \b
    Examples:
      l20fs select srbct
      l20fs select tumours.tsv --target type -k 30 -o results --open
      l20fs select counts.csv --target cell_type --groups donor --log --auto 1se -o results
      l20fs select tumours.tsv --target type --include TP53,MYC --exclude @controls.txt --stability 100 -o results
    """
    check_combination(options)
    output = options["output"]
    check_output(output, force=options["force"], resume=options["resume"])
    options = complete(options)
    reading = {name: options[name] for name in READING}
    in_blocks = options["method"] in SOLVERS
    samples = load(data, options["target"], is_log=options["is_log"], in_blocks=in_blocks, **reading)
    run = describe_run(samples, arguments(data, options))
    if output is None:
        tell(*found(samples, options, run, None), options)
        note("Nothing was written; add -o DIR to keep the results and a report page.")
        return
    with claimed(output):
        check_output(output, force=options["force"], resume=options["resume"])
        if options["resume"]:
            check_same_run(output, run)
        clear_leftovers(output, cells=not options["resume"])
        findings, content = found(samples, options, run, output)
        names = write_results(output, findings, content)
        clear_passes(output)
    tell(findings, content, options)
    note(f"Results are in {output}{os.sep}: {', '.join(names)}")
    page = output / "report.html"
    note(f"Look at {page}")
    if options["open_page"]:
        webbrowser.open(page.resolve().as_uri())


def check_combination(options: dict[str, Any]) -> None:
    """Refuse options that contradict each other."""
    if options["n_features"] is not None and options["auto"] is not None:
        raise click.UsageError(f"-k {options['n_features']} and --auto {options['auto']}: give one of the two.")
    if options["nested"] and options["auto"] is None:
        raise click.UsageError("--nested repeats the choice that --auto makes. Give --auto 1se or --auto best with it.")
    if options["force"] and options["resume"]:
        raise click.UsageError("--force begins anew and --resume goes on: give one of the two.")
    if options["auto"] is not None and options["alpha"] is not None:
        raise click.UsageError(
            "--alpha ends the path where it says, --auto where cross-validation says: give one of the two."
        )
    if options["stability"] is not None and options["stability"] % 2:
        raise click.UsageError(f"--stability {options['stability']} is odd, but halves come in pairs. Use an even number.")
    for name in ("resume", "open_page"):
        if options[name] and options["output"] is None:
            raise click.UsageError(f"--{name.removesuffix('_page')} needs a folder. Add -o DIR.")


def arguments(data: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return what the user asked for, as far as it decides the result."""
    kept = {name: value for name, value in sorted(options.items()) if name not in WITHOUT_EFFECT}
    kept = {name: readable(str(value)) if isinstance(value, Path) else value for name, value in kept.items()}
    return {"data": readable(data)} | kept


def found(samples: Samples, options: dict[str, Any], run: dict[str, Any], folder: Path | None) -> tuple[Findings, Content]:
    """Do the work, and say in the terminal what to beware of."""
    findings = find(samples, options, run, folder)
    content = build(findings)
    for text in content.warnings:
        if text not in findings.notes:  # those were said as they came up
            note(f"warning: {text}")
    return findings, content


def tell(findings: Findings, content: Content, options: dict[str, Any]) -> None:
    """Print the result, as JSON or as tables."""
    if options["as_json"]:
        show(json.dumps(summary(findings, content), indent=2) + "\n")
        return
    show_tables(*tables(findings, content))
    show(content.answer + "\n")
    if findings.nested is not None:
        show(next(text for text in content.sentences if text.startswith("With the number")) + "\n")


def summary(findings: Findings, content: Content) -> dict[str, Any]:
    """Return the result for programs: what run.json holds, the selection and the accuracy."""
    k = min(content.k, content.k_max)
    accuracy = accuracy_table(findings.predictions)
    columns = {name: [float(value) for value in values] for name, values in accuracy.items() if name != "n_features"}
    nested = findings.nested
    stability = content.stability
    return findings.provenance | {
        "answer": content.answer,
        "warnings": content.warnings,
        "k": findings.k,
        "k_rule": content.k_rule,
        "selected": content.features[:k],
        "strongest": None
        if content.strongest is None
        else [content.classes[place] if place >= 0 else None for place in content.strongest[k - 1]],
        "scores": [float(text) for text in content.columns["score"][:k]],
        "accuracy": None
        if findings.predictions is None
        else [
            {"n_features": size, **{name: values[place] for name, values in columns.items()}}
            for place, size in enumerate(accuracy["n_features"])
        ],
        "nested": nested and {"accuracy": nested.accuracies.tolist(), "n_features": nested.sizes},
        "stability": stability
        and {"index": stability.index, "interval": [stability.lower, stability.upper], "frequencies": stability.frequencies},
    }


def tables(findings: Findings, content: Content) -> list[RichTable]:
    """Return the selected features and the accuracy at a few k."""
    return [features_table(findings, content)] + ([accuracy_at_a_few(findings, content)] if content.curves else [])


def features_table(findings: Findings, content: Content) -> RichTable:
    """Return the best features with the class that each is most about."""
    k = min(content.k, content.k_max)
    n_more = findings.k - min(k, MOST_ROWS_SHOWN)
    caption = f"... and {n_more} more (all of them in selection.tsv with -o DIR)" if n_more else None
    table = RichTable(title=f"The best {findings.k} of {content.n_features} features", caption=caption)
    table.add_column("rank", justify="right")
    table.add_column("feature")
    has_weights = content.coef is not None and content.strongest is not None
    table.add_column("weight" if "norm" in content.columns else "score", justify="right")
    if has_weights:
        table.add_column("strongest class")
        table.add_column("sign")
    if content.stability is not None:
        table.add_column("found again", justify="right")
    for i in range(min(k, MOST_ROWS_SHOWN)):
        cells: list[Any] = [content.columns["rank"][i], plain(content.features[i]), weight_text(content, i)]
        if content.coef is not None and content.strongest is not None:
            place = content.strongest[k - 1][i]
            weight = content.coef[k - 1][i][place]
            cells += [plain(content.classes[place]), "-" if weight.startswith("-") else "+"] if place >= 0 else ["-", ""]
        if content.stability is not None:
            cells.append(percent(content.stability.frequencies[i]))
        table.add_row(*cells)
    return table


def weight_text(content: Content, i: int) -> str:
    """Return the norm of the weights of a feature, or what else put it in its place."""
    if "norm" not in content.columns:
        return f"{float(content.columns['score'][i]):.4g}"
    norm = float(content.columns["norm"][i])
    return f"{norm:.4g}" if norm else f"0 ({content.columns['rule'][i]})"


def accuracy_at_a_few(findings: Findings, content: Content) -> RichTable:
    """Return the accuracy at a few numbers of features."""
    assert findings.predictions is not None
    sizes = findings.predictions.sizes
    table = RichTable(
        title=f"Accuracy: {findings.provenance['protocol']}", caption=f"Always the largest class: {percent(content.chance)}"
    )
    table.add_column("features", justify="right")
    by_judge = {judge: findings.predictions.results(judge) for judge in JUDGES if judge in findings.predictions.predicted}
    for judge in by_judge:
        table.add_column(judge, justify="right")
    for size in [size for size in sizes if size in SHOWN_SIZES or size == findings.k]:
        place = sizes.index(size)
        scores = [
            f"{percent(results['mean_test_score'][place])} ± {percent(results['standard_error'][place])}"
            for results in by_judge.values()
        ]
        is_chosen = size == findings.k
        table.add_row(f"{'> ' if is_chosen else ''}{size}", *scores, style="bold" if is_chosen else None)
    return table
