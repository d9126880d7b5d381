"""The exhibits of the paper: what each one needs, and how it is made from stored rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from l20fs.data.catalogue import paper_sets
from l20fs.experiments import figures, outcomes, statistics
from l20fs.experiments.published import beside_published
from l20fs.experiments.repeats import repeats, repeats_beside_published
from l20fs.experiments.summary import summary
from l20fs.experiments.tables import CLASSIFIER_NAMES, PROTOCOL_NAMES, accuracy_table, frame_table, times_table, write_table
from l20fs.storage.files import write_atomically


class Exhibit(NamedTuple):
    """What an exhibit is called, the plans whose rows it is made from, and what makes it.

    ``make(rows, folder)`` gets the rows of each plan, and the objective traces as "traces" if it needs them, and returns
    the files that it wrote.
    """

    title: str
    plans: tuple[str, ...]
    make: Callable[[dict[str, pd.DataFrame], Path], list[Path]]
    needs_traces: bool = False


def make_datasets(rows: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Write the table of the data sets: what the paper prints, and what this run has."""
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
    return write_table(folder, "datasets", frame_table(frame, "The data sets of the paper, and what is used for them"))


def make_accuracy(rows: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Write accuracies with numbers of features under every protocol there are rows for, and beside the printed ones."""
    files = []
    for name, table in protocols_of(rows["accuracy"]).items():
        for classifier in table.classifier.unique():
            files += write_table(folder, f"accuracy-{name}-{classifier}", accuracy_table(table, classifier))
        if name == "optimistic":
            caption = "Ours and the printed accuracy (%) under the paper's protocol, which is optimistic"
            files += write_table(folder, "accuracy-beside-paper", frame_table(for_people(beside_published(table)), caption))
    return files


def make_curves(rows: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Draw accuracy against the number of features."""
    files = []
    for protocol in protocols_of(rows["accuracy"]):
        for classifier in rows["accuracy"].classifier.unique():
            figure = figures.curves(rows["accuracy"], classifier, protocol)
            files += figures.save(figure, folder, f"curves-{protocol}-{classifier}")
    return files


def make_lambda(rows: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Draw accuracy for every lambda and number of features."""
    table = rows["lambda"]
    return _for_each_classifier(table, folder, "lambda", figures.lambda_sensitivity)


def make_initialisation(rows: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Draw accuracy and number of rows for three kinds of starting points."""
    return _for_each_classifier(_of_all_rows(rows["initialisation"]), folder, "initialisation", figures.initialisation)


def make_solvers(rows: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Draw accuracy and number of rows against lambda for HIHT, AHIHT and forward selection."""
    return _for_each_classifier(_of_all_rows(rows["solvers"]), folder, "solvers", figures.solvers)


def make_convergence(rows: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Draw objectives against iterations."""
    return figures.save(figures.convergence(rows["traces"]), folder, "convergence")


def make_time(rows: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Write and draw the times of one fit."""
    table = write_table(folder, "time", times_table(outcomes.fit_times(rows["time"])))
    return table + figures.save(figures.time(rows["time"]), folder, "time")


def make_repeats(rows: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Write what the paper's method reaches in ten experiments of ten splits, under both readings of its lambda."""
    caption = (
        "The paper's experiment ten times, each time on ten splits of its own: the mean of the ten accuracies (%), the "
        "deviation between them (the standard error of one experiment), the lowest and the highest. Optimistic, as in print."
    )
    table = repeats_beside_published(repeats(rows["repeats"]))
    return write_table(folder, "repeats", frame_table(for_people(table), caption))


def for_people(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with whole numbers of features, and no differences that two decimals cannot show."""
    return table.astype({"n_features": "int64"}).assign(difference=table.difference.round(2) + 0.0)


def make_summary(rows: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Say in words what was reproduced, and draw which methods can be told apart."""
    file = folder / "summary.md"
    repeated = repeats_beside_published(repeats(rows["repeats"])) if "repeats" in rows else None
    text = summary(rows["accuracy"], repeated=repeated, others=rows)
    write_atomically(file, lambda stream: stream.write(text.encode()))
    files = [file]
    for protocol, table in protocols_of(rows["accuracy"]).items():
        for classifier in table.classifier.unique():
            scores = statistics.score_matrix(table, classifier)
            if len(scores) >= 2 and scores.shape[1] >= 3:
                figure = figures.critical_difference(
                    scores, f"{CLASSIFIER_NAMES[classifier]}: {PROTOCOL_NAMES[protocol].rstrip('.')}"
                )
                files += figures.save(figure, folder, f"ranks-{protocol}-{classifier}")
    return files


#: Every exhibit by the name that ``l20fs reproduce`` takes.
EXHIBITS = {
    "datasets": Exhibit("the data sets", (), make_datasets),
    "accuracy": Exhibit("accuracy with the number of features", ("accuracy",), make_accuracy),
    "curves": Exhibit("accuracy against the number of features", ("accuracy",), make_curves),
    "lambda": Exhibit("sensitivity to lambda", ("lambda",), make_lambda),
    "initialisation": Exhibit("sensitivity to the starting point", ("initialisation",), make_initialisation),
    "convergence": Exhibit("objective against iteration", (), make_convergence, needs_traces=True),
    "time": Exhibit("time of one fit", ("time",), make_time),
    "solvers": Exhibit("HIHT against AHIHT and forward selection", ("solvers",), make_solvers),
    "repeats": Exhibit("the paper's method on ten times ten splits", ("repeats",), make_repeats),
    "summary": Exhibit("what was reproduced, in words", ("accuracy",), make_summary),
}

#: The data sets on which convergence is shown.
TRACED = ("leukemia", "prostate")


def protocols_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what the rows report under each protocol for which they are there."""
    found = {"optimistic": outcomes.optimistic(rows)}
    if rows.fold.notna().any():
        found["honest"] = outcomes.honest(rows)
    return found


def plans_of(names: Iterable[str]) -> list[str]:
    """Return the plans that some exhibits need, each once."""
    return list(dict.fromkeys(plan for name in names for plan in EXHIBITS[name].plans))


def _of_all_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Forget how many features there were: each fit has a number of its own, that of its non-zero rows."""
    return rows.assign(n_features=0)


def _for_each_classifier(
    rows: pd.DataFrame, folder: Path, name: str, draw: Callable[[pd.DataFrame, str], Any]
) -> list[Path]:
    files = []
    for classifier in rows.classifier.unique():
        files += figures.save(draw(rows, classifier), folder, f"{name}-{classifier}")
    return files
