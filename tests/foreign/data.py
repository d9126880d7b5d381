"""Data in the place of skrebate's, which are not on PyPI: genotypes of which two decide together, under its file names."""

from __future__ import annotations

from pathlib import Path

import numpy as np

#: Samples and features of each file, as in skrebate's.
N_SAMPLES, N_FEATURES = 1600, 20

_EPISTASIS = "GAMETES_Epistasis_2-Way_"
_SETTINGS = "a_20s_1600her_0.4__maf_0.2_EDM-2_01"


def write_genotypes(folder: Path) -> None:
    """Write the five tables that skrebate's tests read into ``folder / "data"``."""
    import pandas as pd

    rng = np.random.default_rng(20)
    X = rng.binomial(2, 0.2, (N_SAMPLES, N_FEATURES)).astype(float)
    pair = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    label = (pair ^ (rng.random(N_SAMPLES) < 0.1)).astype(int)
    number = label + rng.normal(scale=0.3, size=N_SAMPLES)
    mixed = X.copy()
    mixed[:, ::2] += rng.uniform(-0.5, 0.5, mixed[:, ::2].shape)
    missing = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    tables = {
        f"{_EPISTASIS}20atts_0.4H_EDM-1_1": (X, label),
        f"{_EPISTASIS}continuous_endpoint_{_SETTINGS}": (X, number),
        f"{_EPISTASIS}mixed_attribute_{_SETTINGS}": (mixed, label),
        f"{_EPISTASIS}missing_values_0.1_{_SETTINGS}": (missing, label),
        "3Class_Datasets_Loc_2_01": (X, label + (X[:, 2] > 1)),
    }
    (folder / "data").mkdir(exist_ok=True)
    for name, (features, targets) in tables.items():
        table = pd.DataFrame(features, columns=[f"N{j}" for j in range(N_FEATURES)])
        table.assign(**{"class": targets}).to_csv(folder / "data" / f"{name}.csv", index=False)
