"""Data sets: those of DATA_DIR, of scikit-learn, and of the packages scanpy and ISLP where they are installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.preprocessing import PolynomialFeatures

PAPER = ("brain", "breast3", "leukemia", "lung", "lymphoma", "nci", "prostate", "srbct")
EXPRESSION = (*PAPER, "allaml", "glioma", "prostate_ge", "tox_171", "colon_discrete", "lung_discrete")
EXTRA = (*EXPRESSION[len(PAPER) :], "arcene", "coil20", "isolet", "madelon", "pcmac", "warppie10p", "yale")
SCIKIT_LEARN = ("breast_cancer", "wine", "digits", "iris")

#: Sets that hold samples of another one: they count as one study where independence matters.
SAME_STUDY = {"allaml": "leukemia", "prostate_ge": "prostate", "nci60": "nci"}

#: From so many samples on fewer splits tell as much, and cost more.
TALL = 1000


class Dataset(NamedTuple):
    """A table with a whole number for each sample, its class, or with one or more floating-point numbers to predict."""

    name: str
    X: np.ndarray
    y: np.ndarray
    study: str

    @property
    def row(self) -> str:
        """Return the line of a table that the set belongs to: that of a name without what follows a colon."""
        return self.name.split(":")[0]

    @property
    def is_tall(self) -> bool:
        return len(self.y) > TALL

    @property
    def has_labels(self) -> bool:
        return self.y.dtype.kind == "i"


def load_all(folder: Path, names: tuple[str, ...] = (*PAPER, *EXTRA, *SCIKIT_LEARN, "pbmc68k")) -> list[Dataset]:
    """Return the sets that are there, and print a line for each one that is not."""
    found = []
    for name in names:
        try:
            X, y = load(folder, name)
        except (FileNotFoundError, ModuleNotFoundError) as error:
            print(f"{name} is left out: {error}")
        else:
            codes = np.unique(y, return_inverse=True)[1]
            found.append(Dataset(name, np.asarray(X, dtype=np.float64), codes, SAME_STUDY.get(name, name)))
    return found


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in SCIKIT_LEARN:
        return getattr(datasets, f"load_{name}")(return_X_y=True)
    if name in ("pbmc68k", "nci60"):
        return load_cells() if name == "pbmc68k" else load_nci60()
    with np.load(folder / ("paper" if name in PAPER else "extra") / f"{name}.npz", allow_pickle=False) as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
    # Stored on the linear scale, from 0.02 to 34000; below 1 is noise. Everybody takes logarithms of that.
    return (np.log10(np.maximum(X, 1.0)) if name == "tox_171" else X), y


def load_cells() -> tuple[np.ndarray, np.ndarray]:
    """Return the blood cells that come with scanpy, 700 x 765, and their types."""
    import h5py

    with h5py.File(folder_of("scanpy") / "datasets" / "10x_pbmc68k_reduced.h5ad") as stored:
        return stored["X"][...], stored["obs"]["bulk_labels"]


def load_khan() -> dict[str, np.ndarray]:
    """Return the small round blue cell tumours of Khan et al. (2001) as ISLP has them, natural logarithms of ratios."""
    folder = folder_of("ISLP") / "data"
    tables = {part: np.loadtxt(folder / f"Khan_{part}.csv", delimiter=",", skiprows=1) for part in ("xtrain", "xtest")}
    labels = {part: np.loadtxt(folder / f"Khan_{part}.csv", skiprows=1, dtype=int) for part in ("ytrain", "ytest")}
    return tables | labels


def load_nci60() -> tuple[np.ndarray, np.ndarray]:
    """Return the cell lines of ISLP, 6830 genes, of the types that have at least two lines."""
    folder = folder_of("ISLP") / "data"
    _, codes, sizes = np.unique(
        np.loadtxt(folder / "NCI60labs.csv", skiprows=1, dtype=str), return_inverse=True, return_counts=True
    )
    kept = sizes[codes] > 1
    return np.load(folder / "NCI60data.npy")[kept], codes[kept]


def numeric_sets(folder: Path, n_genes: int = 4) -> list[Dataset]:
    """Return diabetes and its products, and for every expression set a few genes, each to be told from all others."""
    X, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    found = [
        Dataset("diabetes", X, y, "diabetes"),
        Dataset("diabetes, products", PolynomialFeatures(2, include_bias=False).fit_transform(X), y, "diabetes"),
    ]
    for dataset in load_all(folder, (*(name for name in EXPRESSION if "discrete" not in name), "pbmc68k")):
        deviation = dataset.X.std(axis=0)
        # Genes that hardly vary are noise, which nothing tells.
        lively = np.flatnonzero(deviation > np.median(deviation))
        genes = np.sort(np.random.default_rng(0).choice(lively, n_genes, replace=False))
        others = np.delete(dataset.X, genes, axis=1)
        for gene in genes:
            found.append(Dataset(f"{dataset.name}, one gene:{gene}", others, dataset.X[:, gene], dataset.study))
        found.append(Dataset(f"{dataset.name}, {n_genes} genes", others, dataset.X[:, genes], dataset.study))
    return found


def folder_of(package: str) -> Path:
    """Return the folder of an installed package, without an import: its own needs may be missing."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the package {package} is not installed; make bench-defaults installs it")
    return Path(spec.origin).parent
