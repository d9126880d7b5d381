"""Cells: one configuration on one split of one set, kept as a line of the file of the set.

A run that was stopped goes on where it was. A line is known by its configuration with all parameters, its set and its split,
not by the code: after a change of a method its lines have to be computed anew (``--redo``).
"""

from __future__ import annotations

import json
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from threadpoolctl import threadpool_limits

from l20fs.storage.files import write_atomically

from .configurations import DEFAULT, Configuration, used_by_default
from .scaling import spread_of_deviations, varying
from .sets import Dataset

SIZES = (3, 5, 10, 20, 50, 100, 200)

#: The size at which selections of different splits are compared.
STABILITY_SIZE = 50

#: Seconds of one core after which a selection is given up.
LIMIT = 20.0


class Plan(NamedTuple):
    """What to compute: seeds of the splits, the first ``n_tall`` of them for tall sets; names of configurations."""

    splits: Sequence[int]
    n_tall: int
    only: re.Pattern[str]
    folder: Path

    def splits_of(self, dataset: Dataset) -> Sequence[int]:
        return self.splits[: self.n_tall] if dataset.is_tall else self.splits


def divide(dataset: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows: two thirds of every class, rounded up, are for training."""
    random = np.random.default_rng(seed)
    groups = dataset.y if dataset.has_labels else np.zeros(len(dataset.y))
    parts = [random.permutation(np.flatnonzero(groups == label)) for label in np.unique(groups)]
    train = np.concatenate([part[: -(-2 * len(part) // 3)] for part in parts])
    return np.sort(train), np.setdiff1d(np.arange(len(groups)), train)


class Judge:
    """Test scores of two models on z-scores of some features: nearest neighbours and a linear one.

    For labels these are KNN-5 and logistic regression, and the score is the accuracy. For numbers, KNN-5 and ridge
    regression, and 1 - (mean squared error / variance of all samples), which is R^2 but for the denominator: the few
    test samples of a split have a variance of their own. Equal selections are judged once.
    """

    def __init__(self, dataset: Dataset, train: np.ndarray, test: np.ndarray) -> None:
        X, self.y = dataset.X, dataset.y
        mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
        self.Z = (X - mean) / np.where(deviation > 0.0, deviation, 1.0)
        self.train, self.test = train, test
        self.score = self._accuracy if dataset.has_labels else self._explained
        self.known: dict[bytes, list[float]] = {}

    def judge(self, features: np.ndarray) -> list[float]:
        rows = np.sort(features)
        key = rows.tobytes()
        if key not in self.known:
            self.known[key] = self.score(self.Z[:, rows])
        return self.known[key]

    def _accuracy(self, Z: np.ndarray) -> list[float]:
        models = KNeighborsClassifier(5), LogisticRegression(max_iter=100)
        if not Z.shape[1]:  # settings that end the path at a lambda may leave nothing to learn from
            models = DummyClassifier(), DummyClassifier()
        return [float(np.mean(self._predict(model, Z) == self.y[self.test])) for model in models]

    def _explained(self, Z: np.ndarray) -> list[float]:
        variance, models = self.y.var(axis=0), (KNeighborsRegressor(5), RidgeCV(np.logspace(-2, 3, 11)))
        errors = [((self._predict(model, Z) - self.y[self.test]) ** 2).mean(axis=0) for model in models]
        return [float(np.mean(1.0 - error / variance)) for error in errors]

    def _predict(self, model: Any, Z: np.ndarray) -> np.ndarray:
        return model.fit(Z[self.train], self.y[self.train]).predict(Z[self.test])


def compute_set(dataset: Dataset, configurations: Sequence[Configuration], plan: Plan) -> str:
    """Compute the cells of a set that are missing, write them to its file, and say how long it took."""
    begin, store, n_computed = time.perf_counter(), CellFile(plan.folder, dataset.name), 0
    wanted = [one for one in configurations if plan.only.search(one.name)]
    too_slow = {cell["configuration"] for cell in store.cells if cell.get("failed") == too_long()}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for split in plan.splits_of(dataset):
            missing = [one for one in wanted if not store.has(one, split)]
            if missing:
                train, test = divide(dataset, split)
                judge = Judge(dataset, train, test)
            for one in missing:
                # A method that was too slow on one split, or without scaling, would be on the others as well.
                is_slow = any(one.name.startswith(name) for name in too_slow)
                found = {"failed": too_long()} if is_slow else compute_cell(dataset, one, train, judge)
                if found.get("failed") == too_long():
                    too_slow.add(one.name)
                store.add(one, split, found)
                n_computed += 1
    return f"{dataset.name}: {n_computed} cells in {time.perf_counter() - begin:.0f} s"


def compute_cell(dataset: Dataset, one: Configuration, train: np.ndarray, judge: Judge) -> dict[str, Any]:
    """Select on the training rows and judge the selections on the test rows."""
    X, y = dataset.X[train], dataset.y[train]
    sizes = [k for k in SIZES if k < X.shape[1]] if dataset.has_labels else [k for k in SIZES if k < min(X.shape[1], 100)]
    used = used_by_default(one.selector, X, y) if one.name == DEFAULT else ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.process_time()
        try:
            with time_limit(LIMIT):
                features = one.select(X, y, sizes)
        except TimeoutError:
            return {"failed": too_long()}
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            return {"failed": str(error)}
        seconds = time.process_time() - begin
    return {
        "ratio": float(np.count_nonzero(varying(X)) / len(X)),
        "spread": spread_of_deviations(X),
        "used": used,
        "sizes": sizes,
        "scores": [judge.judge(features[k]) for k in sizes],
        # Two sizes, since the selections of some methods are not nested.
        "features": {k: features[k][:k].tolist() for k in {STABILITY_SIZE, sizes[-1]} & set(sizes)},
        "seconds": seconds,
        "converged": not any(issubclass(warning.category, ConvergenceWarning) for warning in caught),
    }


def too_long() -> str:
    return f"a selection takes more than {LIMIT:g} s"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise a TimeoutError when the process has computed for so long; in its main thread only."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, previous)


class CellFile:
    """The file of the cells of one set, one JSON object per line."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / (re.sub(r"\W+", "-", name) + ".jsonl")
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        # A line that was cut off is not a cell.
        self.cells: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("}")]
        self.known = {(cell["configuration"], cell["parameters"], cell["split"]) for cell in self.cells}

    def has(self, one: Configuration, split: int) -> bool:
        return (one.name, parameters_of(one), split) in self.known

    def add(self, one: Configuration, split: int, found: dict[str, Any]) -> None:
        cell = {"configuration": one.name, "parameters": parameters_of(one), "split": split, **found}
        self.cells.append(cell)
        with self.path.open("a") as stream:
            stream.write(json.dumps(cell) + "\n")

    def drop(self, unwanted: Callable[[dict[str, Any]], bool]) -> None:
        kept = [json.dumps(cell) + "\n" for cell in self.cells if not unwanted(cell)]
        write_atomically(self.path, "".join(kept))

    def of(self, name: str, splits: Iterable[int]) -> list[dict[str, Any]]:
        """Return the cells of a configuration; the last one where a split has several."""
        found = {cell["split"]: cell for cell in self.cells if cell["configuration"] == name}
        return [found[split] for split in splits if split in found]


def parameters_of(one: Configuration) -> str:
    # All parameters, not those that repr shows: it hides the defaults, and these may change.
    return json.dumps([str(one.scale), sorted((name, repr(value)) for name, value in one.selector.get_params().items())])
