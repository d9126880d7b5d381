"""Execution of plans: missing cells are computed in parallel, and all are returned as rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from l20fs.evaluation.parallel import results_of
from l20fs.experiments.cells import Cell, Dataset, cells_of, compute, selected_of
from l20fs.experiments.plan import Plan
from l20fs.storage.keyed_store import Key, KeyedStore

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


class RunProgress(NamedTuple):
    """Progress of a run: numbers of finished, of all, and of stored cells."""

    n_done: int
    n_cells: int
    n_found: int


class Job(NamedTuple):
    """Cell with its data and the key of its result."""

    cell: Cell
    dataset: Dataset
    key: Key


def run(
    plan: Plan,
    datasets: Sequence[Dataset],
    folder: Path,
    *,
    n_jobs: int | None = None,
    on_progress: Callable[[RunProgress], object] | None = None,
) -> pd.DataFrame:
    """Compute the missing cells of a plan and return its rows.

    Every cell is stored in ``folder`` as soon as it is finished: a run that was killed is resumed, and results of another
    configuration, of other data or of another version are never used. Cells are computed by ``n_jobs`` workers of the active
    joblib backend; except for the times, the rows do not depend on it.
    """
    for dataset in datasets:
        plan.refuse_small(dataset.name, dataset.X.shape[1])
    store = KeyedStore(folder)
    jobs = jobs_of(plan, datasets, store)
    keys = list(dict.fromkeys(job.key for job in jobs))
    results = dict(zip(keys, store.load_all(keys), strict=True))
    missing = [job for job in jobs if results[job.key] is None]
    n_found = len(jobs) - len(missing)
    report = on_progress or (lambda progress: None)
    report(RunProgress(n_found, len(jobs), n_found))
    calls = ((number, job.cell, job.dataset) for number, job in enumerate(missing))
    with closing(results_of(_numbered, calls, n_jobs, in_order=False)) as computed:
        for n_new, (number, result) in enumerate(computed, 1):
            key = missing[number].key
            store.save(key, result)
            results[key] = result
            report(RunProgress(n_found + n_new, len(jobs), n_found))
    return rows_of(((job.cell, results[job.key]) for job in jobs), plan.metric.name)


def selections(plan: Plan, datasets: Sequence[Dataset], folder: Path) -> pd.DataFrame:
    """Return dataset, method, choice, split, n_features and ``selected``, best first, for all trials of a finished run."""
    import pandas as pd

    store, rows = KeyedStore(folder), []
    for job in jobs_of(plan, datasets, store):
        if job.cell.fold is not None:
            continue
        result = store.load(job.key)
        if result is None:
            raise FileNotFoundError(f"{store.file(job.key)} is missing or damaged. Run the plan first.")
        names = (job.cell.dataset, job.cell.variant.label, json.dumps(dict(job.cell.variant.choice)), job.cell.split)
        rows += [(*names, size, selected) for size, selected in selected_of(result).items()]
    return pd.DataFrame(rows, columns=["dataset", "method", "choice", "split", "n_features", "selected"])


def jobs_of(plan: Plan, datasets: Sequence[Dataset], store: KeyedStore) -> list[Job]:
    """Return all cells of a plan; trials first, so that the protocol of the paper is complete before the nested one."""
    jobs = []
    for dataset in datasets:
        data_digest = dataset.digest
        jobs += [Job(cell, dataset, cell.key(store, data_digest)) for cell in cells_of(plan, dataset)]
    return sorted(jobs, key=lambda job: job.cell.fold is not None)


def _numbered(number: int, cell: Cell, dataset: Dataset) -> tuple[int, dict[str, Any]]:
    return number, compute(cell, dataset)


def rows_of(results: Iterable[tuple[Cell, Any]], metric: str = "accuracy") -> pd.DataFrame:
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
        for classifier, values in result[metric].items()
        for size, value in zip(result["sizes"], values, strict=True)
    ]
    columns = [metric if name == "accuracy" else name for name in COLUMNS]
    return pd.DataFrame(rows, columns=columns).astype({"fold": "Int64", "n_nonzero": "Int64"})
