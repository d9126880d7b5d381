"""The data of the comparison: planted problems that anyone can make again, and stored sets of labelled samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: (samples, features, classes) of the planted problems.
SIZES = {
    "small": (63, 2308, 4),
    "medium": (200, 20000, 8),
    "large": (5000, 5000, 10),
}
WARM_UP = (40, 60, 3)
PANELS = (20, 50)
N_PLANTED = 20


@dataclass(frozen=True)
class Problem:
    """Samples with a class each, the numbers of rows to select, and the rows that made the classes, where known."""

    name: str
    X: np.ndarray
    labels: np.ndarray
    panels: tuple[int, ...]
    planted: np.ndarray | None = None

    @property
    def one_hot(self) -> np.ndarray:
        """The targets for a package that takes outputs, not labels."""
        return np.eye(self.labels.max() + 1)[self.labels]

    def centred(self) -> tuple[np.ndarray, np.ndarray]:
        """Return X and the one-hot targets without their means, columns contiguous: for a package without intercept."""
        Y = self.one_hot
        return np.subtract(self.X, self.X.mean(axis=0), order="F"), np.subtract(Y, Y.mean(axis=0), order="F")


def load(name: str) -> Problem:
    """Return the planted problem of that name, or the one in that npz file."""
    if name in SIZES:
        return planted(name, *SIZES[name], panels=PANELS)
    return stored(Path(name))


def warm_up() -> Problem:
    """Return a problem small enough to be solved at once by any method, for imports and compilers."""
    return planted("warm-up", *WARM_UP, panels=(2, 4))


def planted(name: str, n_samples: int, n_features: int, n_classes: int, *, panels: tuple[int, ...]) -> Problem:
    """Make Gaussian features of which 20 decide the class, with noise of half the signal's deviation."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features))
    rows = np.sort(rng.choice(n_features, N_PLANTED, replace=False))
    signal = X[:, rows] @ rng.standard_normal((N_PLANTED, n_classes))
    labels = (signal + 0.5 * signal.std() * rng.standard_normal(signal.shape)).argmax(axis=1)
    return Problem(name, X, labels, panels, rows)


def stored(file: Path) -> Problem:
    """Read X and y; a set of few samples gets a last panel that cannot yet fit everything."""
    with np.load(file, allow_pickle=False) as archive:
        X, y = archive["X"].astype(np.float64), archive["y"]
    if file.stem == "lung":
        X = np.log10(X)  # the one set on the linear scale; every other is a logarithm or a ratio
    labels = np.unique(y, return_inverse=True)[1]
    return Problem(file.stem, X, labels, tuple(min(k, len(X) - 3) for k in PANELS))
