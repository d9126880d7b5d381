"""Reproduction of the paper's exhibits, for ``l20fs reproduce``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from l20fs.data.readers import DataError
from l20fs.data.store import MissingDataError, load_dataset
from l20fs.experiments.cells import Dataset
from l20fs.experiments.exhibits import RECIPES, TRACED, plans_of
from l20fs.experiments.plan import Plan, load_plan
from l20fs.experiments.runner import RunProgress, run
from l20fs.experiments.tables import write_csv
from l20fs.experiments.traces import traces
from l20fs.report.index import PAGE, Exhibit, write_page
from l20fs.storage.files import Writable
from l20fs.storage.results import versions, write_results
from l20fs.text import joined


class Reproduction:
    """Run of the paper's experiments into a folder.

    ``cells/`` keeps what was computed, ``rows.csv`` all results as a table, ``traces.csv`` the objectives; tables and
    figures are made from the two tables only.

    Parameters
    ----------
    folder : path
    data_dir : path, optional
        See :func:`~l20fs.data.store.find_data_dir`.
    datasets : sequence of str, optional
        Data sets to run; None: all of the plans.
    is_honest : bool
        Whether parameters and sizes are also chosen on inner folds, which takes some five times as long.
    n_jobs : int, optional
    note : callable
        Called with notes on missing data sets and on progress.
    on_progress : callable, optional
        Called with the name of a plan and a :class:`~l20fs.experiments.runner.RunProgress`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        data_dir: Path | None = None,
        datasets: Sequence[str] | None = None,
        is_honest: bool = True,
        n_jobs: int | None = None,
        note: Callable[[str], object] = print,
        on_progress: Callable[[str, RunProgress], object] = lambda plan, progress: None,
    ) -> None:
        self.folder, self.data_dir, self.datasets = folder, data_dir, datasets
        self.is_honest, self.n_jobs, self.note, self.on_progress = is_honest, n_jobs, note, on_progress
        self._loaded: dict[str, Dataset | None] = {}

    def make(self, names: Iterable[str]) -> list[Exhibit]:
        """Compute what is missing for some exhibits, write them, and return them."""
        names = list(names)
        plans = {name: self._plan(name) for name in plans_of(names)}  # a bad plan fails before anything is computed
        data = {name: self._load_all(plan.datasets) for name, plan in plans.items()}
        traced = self._load_all(TRACED) if any(RECIPES[name].needs_traces for name in names) else []
        self._refuse_without_data(names, [*(name for name in plans if data[name]), *(["traces"] if traced else [])])
        for name, plan in plans.items():
            for dataset in data[name]:
                plan.refuse_small(dataset.name, dataset.X.shape[1])
        files: dict[str, Writable] = {}
        rows = {name: self._run(name, plan, data[name]) for name, plan in plans.items() if data[name]}
        if rows:
            together = pd.concat([table.assign(plan=name) for name, table in rows.items()])
            files["rows.csv"] = write_csv(together)
        if traced:
            rows["traces"] = traces(traced)
            files["traces.csv"] = write_csv(rows["traces"])
        made: list[Exhibit] = []
        for name in names:
            if self._needs(name) <= rows.keys():
                made += RECIPES[name].make(rows, files)
            else:
                self.note(f"{name}: none of its data sets is here; left out.")
        if made:
            files[PAGE] = write_page(self.folder, made, files)
            write_results(self.folder, "reproduce", files, {"versions": versions()})
        return made

    @staticmethod
    def _needs(name: str) -> set[str]:
        """Return the tables of rows that an exhibit is made from."""
        return {*RECIPES[name].plans, *(["traces"] if RECIPES[name].needs_traces else [])}

    def _refuse_without_data(self, names: list[str], available: list[str]) -> None:
        """Raise an error, before anything is computed, if all exhibits lack their data."""
        if any(self._needs(name) <= set(available) for name in names):
            return
        known = [*(name for plan in plans_of(names) for name in load_plan(plan).datasets)] or [*TRACED]
        asked = "is here" if self.datasets is None else "is among --datasets"
        raise MissingDataError(f"{joined(names)}: needs {joined([*dict.fromkeys(known)], 'or')}, of which none {asked}.")

    def _plan(self, name: str) -> Plan:
        plan = load_plan(name)
        wanted = tuple(dataset for dataset in plan.datasets if self._is_wanted(dataset))
        return replace(plan, datasets=wanted, inner_folds=plan.inner_folds if self.is_honest else 0)

    def _is_wanted(self, dataset: str) -> bool:
        return self.datasets is None or dataset in self.datasets

    def _load_all(self, names: Iterable[str]) -> list[Dataset]:
        """Load the available data sets among those that are wanted; print the source of the others."""
        names = [name for name in names if self._is_wanted(name)]
        for name in names:
            if name not in self._loaded:
                try:
                    found = load_dataset(name, self.data_dir)
                    self._loaded[name] = Dataset(name, found.X, found.y)
                except DataError as error:
                    if self.datasets is not None:
                        raise  # it was asked for
                    self._loaded[name] = None
                    self.note(f"without {name}: {error}")
        return [dataset for name in names if (dataset := self._loaded[name]) is not None]

    def _run(self, name: str, plan: Plan, datasets: list[Dataset]) -> pd.DataFrame:
        # Times of fits that run in parallel would not be comparable.
        n_jobs = 1 if name == "time" else self.n_jobs
        cells = self.folder / "cells"
        return run(plan, datasets, cells, n_jobs=n_jobs, on_progress=partial(self.on_progress, name))
