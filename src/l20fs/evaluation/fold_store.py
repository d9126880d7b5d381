"""Results of folds in files, for a run that is resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from l20fs.evaluation.engine import Judged
from l20fs.evaluation.folds import Fold
from l20fs.storage.keyed_store import Key, KeyedStore
from l20fs.typing import Array


class FoldResult(NamedTuple):
    """Values of each judge at the test samples of a fold, and the number of features of each size."""

    by_judge: dict[str, Array]
    n_features: Array


class FoldStore:
    """Results of the folds of one run, one file each, with a checksum; nothing in them is executed.

    Parameters
    ----------
    folder : path
    causes : mapping
        Everything that the results depend on, beside the folds, sizes and judges: the data, the options, the versions.
    label : str
        First part of the names of the files.
    """

    def __init__(self, folder: str | os.PathLike[str], causes: Mapping[str, Any], label: str = "fold") -> None:
        self.folder, self.causes, self.label = folder, causes, label
        self._store = KeyedStore(folder, causes, suffix=".npz")

    def inside(self, number: int) -> FoldStore:
        """Return the store for the folds inside the training samples of a fold."""
        return FoldStore(self.folder, self.causes, f"{self.label}-{number}-inner")

    def results(
        self,
        folds: Sequence[Fold],
        sizes: Sequence[int],
        judges: Sequence[str],
        compute: Callable[[list[Fold]], Generator[Judged, None, None]],
    ) -> Generator[FoldResult, None, None]:
        """Yield the results of all folds in order; ``compute`` those that are not stored, and store them."""
        keys = [self._key(number, fold, sizes, judges) for number, fold in enumerate(folds)]
        stored = [None if values is None else _result_of(values) for values in self._store.load_all(keys)]
        with closing(compute([fold for fold, found in zip(folds, stored, strict=True) if found is None])) as computed:
            for key, found in zip(keys, stored, strict=True):
                yield self._save(key, next(computed)) if found is None else found

    def _key(self, number: int, fold: Fold, sizes: Sequence[int], judges: Sequence[str]) -> Key:
        return self._store.key(f"{self.label}-{number}", list(sizes), list(judges), fold.train, fold.test)

    def _save(self, key: Key, judged: Judged) -> FoldResult:
        by_judge = {name: np.asarray(values) for name, values in judged.by_judge.items()}
        self._store.save(key, {**by_judge, "n_features": judged.n_features})
        return FoldResult(by_judge, judged.n_features)


def _result_of(values: dict[str, Array]) -> FoldResult:
    return FoldResult({name: array for name, array in values.items() if name != "n_features"}, values["n_features"])
