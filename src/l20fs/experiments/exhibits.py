"""Exhibits of the paper: the plans, tables, figures and texts of each one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from l20fs.data.catalogue import paper_sets
from l20fs.experiments import effects, figures, outcomes
from l20fs.experiments.figure_parts import figure_writers
from l20fs.experiments.published import beside_published
from l20fs.experiments.repeats import repeats, repeats_beside_published
from l20fs.experiments.statistics import rank_tests, score_matrix
from l20fs.experiments.summary import summary
from l20fs.experiments.tables import CLASSIFIER_NAMES, PROTOCOL_NAMES, accuracy_table, frame_table, times_table
from l20fs.report.document import Block, Table
from l20fs.report.formats import table_files, write_markdown
from l20fs.report.index import Exhibit
from l20fs.storage.files import Writable

Files = dict[str, Writable]


class Recipe(NamedTuple):
    """Recipe of an exhibit: its title, its plans and the function that makes it.

    ``make(rows, files)`` takes the rows of each plan, and the objective traces as "traces" if needed, adds its
    files to ``files`` and returns one :class:`~l20fs.report.index.Exhibit` per file name, with its content.
    """

    title: str
    plans: tuple[str, ...]
    make: Callable[[dict[str, pd.DataFrame], Files], list[Exhibit]]
    needs_traces: bool = False


def make_datasets(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Write the table of the data sets, of the paper and of this run."""
    frame = pd.DataFrame(
        {
            "data set": entry.title,
            "samples": entry.n_samples,
            "features": entry.n_features,
            "classes": len(entry.class_names),
            "in the paper": " x ".join(map(str, entry.paper_shape)),
            "ours": "the paper's values" if entry.exact else f"a substitute: {entry.differs}",
        }
        for entry in paper_sets().values()
    )
    return [add_table(files, "datasets", frame_table(frame, "The data sets of the paper, and what is used for them"))]


def make_accuracy(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Write accuracies and numbers of features under every protocol, and beside the printed ones."""
    made = []
    for name, table in protocols_of(rows["accuracy"]).items():
        for classifier in table.classifier.unique():
            made.append(add_table(files, f"accuracy-{name}-{classifier}", accuracy_table(table, classifier)))
        if name == "optimistic":
            caption = "Ours and the printed accuracy (%) under the paper's protocol, which is optimistic"
            beside = frame_table(for_people(beside_published(table)), caption)
            made.append(add_table(files, "accuracy-beside-paper", beside))
    return made


def make_curves(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Draw accuracy against the number of features."""
    made = []
    for protocol in protocols_of(rows["accuracy"]):
        table = outcomes.curves(rows["accuracy"], protocol)
        for classifier in rows["accuracy"].classifier.unique():
            made.append(add_figure(files, f"curves-{protocol}-{classifier}", figures.curves(table, classifier)))
    return made


def make_lambda(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Draw accuracy for every lambda and number of features."""
    table = rows["lambda"]
    return [
        add_figure(files, f"lambda-{name}", figures.lambda_sensitivity(effects.accuracy_by_alpha(table, name), name))
        for name in table.classifier.unique()
    ]


def make_initialisation(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Draw accuracy and number of non-zero rows for three kinds of initial weights."""
    table = _of_all_rows(rows["initialisation"])
    return [
        add_figure(files, f"initialisation-{name}", figures.initialisation(effects.spread_by_start(table, name), name))
        for name in table.classifier.unique()
    ]


def make_solvers(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Draw accuracy and number of non-zero rows against lambda for HIHT, AHIHT and forward selection."""
    table = _of_all_rows(rows["solvers"])
    return [
        add_figure(files, f"solvers-{name}", figures.solvers(effects.means_by_solver(table, name), name))
        for name in table.classifier.unique()
    ]


def make_convergence(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Draw objectives against iterations."""
    return [add_figure(files, "convergence", figures.convergence(effects.relative_objectives(rows["traces"])))]


def make_time(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Write and draw the times of one fit."""
    times = outcomes.fit_times(rows["time"])
    table, figure = add_table(files, "time", times_table(times)), add_figure(files, "time", figures.time(times))
    return [replace(table, files=table.files + figure.files)]


def make_readings(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Write the accuracies of the paper's method with the first lambda as printed and as in the authors' code."""
    table = outcomes.optimistic(rows["readings"])
    names = table.classifier.unique()
    return [add_table(files, f"readings-{name}", accuracy_table(table, name)) for name in names]


def make_repeats(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Write the accuracies of the paper's method in ten experiments of ten splits, for both readings of lambda."""
    caption = (
        "The paper's experiment ten times, each time on ten splits of its own: the mean of the ten accuracies (%), the "
        "deviation between them (the standard error of one experiment), the lowest and the highest. Optimistic, as in print."
    )
    table = repeats_beside_published(repeats(rows["repeats"]))
    return [add_table(files, "repeats", frame_table(for_people(table), caption))]


def for_people(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table for display, with integer numbers of features and differences rounded to two decimals."""
    return table.astype({"n_features": "int64"}).assign(difference=table.difference.round(2) + 0.0)


def make_summary(rows: dict[str, pd.DataFrame], files: Files) -> list[Exhibit]:
    """Write the summary of the reproduction, and draw the critical differences."""
    repeated = repeats_beside_published(repeats(rows["repeats"])) if "repeats" in rows else None
    made = [add_document(files, "summary", summary(rows["accuracy"], repeated=repeated, others=rows))]
    for protocol, table in protocols_of(rows["accuracy"]).items():
        for classifier in table.classifier.unique():
            scores = score_matrix(table, classifier)
            if len(scores) >= 2 and scores.shape[1] >= 3:
                title = f"{CLASSIFIER_NAMES[classifier]}: {PROTOCOL_NAMES[protocol].rstrip('.')}"
                figure = figures.critical_difference(rank_tests(scores), title)
                made.append(add_figure(files, f"ranks-{protocol}-{classifier}", figure))
    return made


def add_table(files: Files, name: str, table: Table) -> Exhibit:
    """Add a table in all formats."""
    return Exhibit(name, _added(files, table_files(name, table)), table=table)


def add_figure(files: Files, name: str, figure: Figure) -> Exhibit:
    """Add a figure in all formats."""
    return Exhibit(name, _added(files, figure_writers(figure, name)))


def add_document(files: Files, name: str, blocks: Iterable[Block]) -> Exhibit:
    """Add a text as Markdown."""
    text = tuple(blocks)
    return Exhibit(name, _added(files, {f"{name}.md": write_markdown(text)}), text=text)


def _added(files: Files, new: Mapping[str, Writable]) -> tuple[str, ...]:
    """Add files, and return their names."""
    files |= new
    return tuple(new)


#: Exhibits by their names in ``l20fs reproduce``.
RECIPES = {
    "datasets": Recipe("the data sets", (), make_datasets),
    "accuracy": Recipe("accuracy with the number of features", ("accuracy",), make_accuracy),
    "curves": Recipe("accuracy against the number of features", ("accuracy",), make_curves),
    "lambda": Recipe("sensitivity to lambda", ("lambda",), make_lambda),
    "initialisation": Recipe("sensitivity to the starting point", ("initialisation",), make_initialisation),
    "convergence": Recipe("objective against iteration", (), make_convergence, needs_traces=True),
    "time": Recipe("time of one fit", ("time",), make_time),
    "solvers": Recipe("HIHT against AHIHT and forward selection", ("solvers",), make_solvers),
    "readings": Recipe("the first lambda as printed and as in the authors' code", ("readings",), make_readings),
    "repeats": Recipe("the paper's method on ten times ten splits", ("repeats",), make_repeats),
    "summary": Recipe("what was reproduced, in words", ("accuracy",), make_summary),
}

#: Data sets on which convergence is shown.
TRACED = ("leukemia", "prostate")


def protocols_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the reports of the rows under each protocol."""
    found = {"optimistic": outcomes.optimistic(rows)}
    if rows.fold.notna().any():
        found["honest"] = outcomes.honest(rows)
    return found


def plans_of(names: Iterable[str]) -> list[str]:
    """Return the plans that some exhibits need, each once."""
    return list(dict.fromkeys(plan for name in names for plan in RECIPES[name].plans))


def _of_all_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Set the number of features to 0: each fit has its own number of non-zero rows."""
    return rows.assign(n_features=0)
