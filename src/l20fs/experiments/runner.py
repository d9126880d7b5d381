"""Execution of plans: cells are computed in parallel, and returned as rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib

from l20fs.evaluation.parallel import results_of
from l20fs.experiments.cells import Cell, Dataset, cells_of, compute, selected_of
from l20fs.experiments.plan import Plan

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "dataset",
    "method",
    "choice",
    "split",
    "fold",
    "classifier",
    "n_features",
    "accuracy",
    "n_test",
    "fit_seconds",
    "n_nonzero",
)


#: A cell and its result.
Result = tuple[Cell, dict[str, Any]]


class RunProgress(NamedTuple):
    """Progress of a run: numbers of finished and of all cells."""

    n_done: int
    n_cells: int


def run(plan: Plan, datasets: Sequence[Dataset], folder: Path | None = None, **options: Any) -> pd.DataFrame:
    """Return the rows of a plan; the options are those of :func:`compute_all`."""
    return rows_of(compute_all(plan, datasets, folder, **options), plan.scoring)


def compute_all(
    plan: Plan,
    datasets: Sequence[Dataset],
    folder: Path | None = None,
    *,
    n_jobs: int | None = None,
    on_progress: Callable[[RunProgress], object] = lambda progress: None,
) -> list[Result]:
    """Compute the cells of a plan; trials first, so that the protocol of the paper is complete before the nested one.

    With a ``folder`` a run that was stopped goes on where it was: :class:`joblib.Memory` keeps every finished cell there, by
    the cell, the values of the data set and the version of this package. Cells are computed by ``n_jobs`` workers of the
    active joblib backend; except for the times, the results do not depend on it.
    """
    work = []
    for dataset in datasets:
        plan.refuse_small(dataset.name, dataset.X.shape[1])
        causes = (version("l20fs"), joblib.hash(dataset)) if folder is not None else ()
        work += [(joblib.hash((cell, causes)), cell, dataset) for cell in cells_of(plan, dataset)]
    work.sort(key=lambda each: each[1].fold is not None)
    compute_once = joblib.Memory(folder, verbose=0).cache(_compute, ignore=["cell", "dataset"])
    results: list[Result] = []
    with closing(results_of(compute_once, work, n_jobs)) as computed:
        for (_, cell, _), result in zip(work, computed, strict=True):
            results.append((cell, result))
            on_progress(RunProgress(len(results), len(work)))
    return results


def _compute(key: str, cell: Cell, dataset: Dataset) -> dict[str, Any]:
    return compute(cell, dataset)


def selections_of(results: Iterable[Result]) -> pd.DataFrame:
    """Return dataset, method, choice, split, n_features and ``selected``, best first, for all trials."""
    import pandas as pd

    rows = [
        (cell.dataset, cell.variant.label, json.dumps(dict(cell.variant.choice)), cell.split, size, selected)
        for cell, result in results
        if cell.fold is None
        for size, selected in selected_of(result).items()
    ]
    return pd.DataFrame(rows, columns=["dataset", "method", "choice", "split", "n_features", "selected"])


def rows_of(results: Iterable[Result], metric: str = "accuracy") -> pd.DataFrame:
    """Arrange results as rows: one per cell, classifier and number of features, with the values of a metric."""
    import pandas as pd

    rows = [
        (
            cell.dataset,
            cell.variant.label,
            json.dumps(dict(cell.variant.choice)),
            cell.split,
            cell.fold,
            classifier,
            size,
            value,
            result["n_test"],
            result["fit_seconds"],
            result["n_nonzero"],
        )
        for cell, result in results
        for classifier, values in result["scores"].items()
        for size, value in zip(result["sizes"], values, strict=True)
    ]
    columns = [metric if name == "accuracy" else name for name in COLUMNS]
    return pd.DataFrame(rows, columns=columns).astype({"fold": "Int64", "n_nonzero": "Int64"})
