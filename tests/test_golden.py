"""Numbers that other implementations of the paper's algorithms gave on the paper's data (see docs/algorithm.md)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from l20fs import L20Selector, paper_settings
from l20fs.experiments.plan import load_plan
from l20fs.experiments.protocol import paper_split
from l20fs.objective.least_squares import LeastSquares

CONSTANTS = {"brain": (3540, 14240, 16.476), "srbct": (1619, 8239, 22.476), "nci": (5446, 48470, 26.557)}

# data set, lambda, AHIHT: stages, rows, f, last L; HIHT: rows, objective
TABLE = [
    ("brain", 1e-1, 2, 0, 16.476, 3540, 0, 16.476),
    ("brain", 1e-2, 5, 176, 7.606, 3540, 18, 4.839),
    ("brain", 1e-4, 10, 1481, 0.534, 3540, 144, 0.094),
    ("srbct", 1e-1, 2, 28, 6.377, 1619, 10, 3.740),
    ("srbct", 1e-2, 5, 63, 1.972, 1619, 20, 1.562),
    ("srbct", 1e-4, 10, 478, 0.491, 3240, 96, 0.070),
    ("nci", 1e-2, 5, 163, 6.991, 5446, 35, 4.377),
    ("nci", 1e-4, 10, 981, 1.834, 21800, 123, 0.211),
]


def as_printed(printed):
    """Half a unit of the third decimal, as the table prints it."""
    return pytest.approx(printed, abs=5.1e-4)


def three_digits(printed):
    return pytest.approx(printed, rel=2e-3)


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_of_the_data(paper_set, name):
    X, y = paper_set(name)
    problem = LeastSquares(X, np.eye(y.max() + 1)[y])
    lower, lipschitz, null_loss = CONSTANTS[name]
    assert problem.lipschitz_lower == three_digits(lower)
    assert problem.lipschitz == three_digits(lipschitz)
    assert problem.null_loss == as_printed(null_loss)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]:g}")
def test_ahiht(paper_set, row):
    name, alpha, n_stages, n_rows, f, lipschitz, _, _ = row
    X, y = paper_set(name)
    path = L20Selector(20, **(paper_settings("ahiht") | {"alpha": alpha})).fit(X, y).path_
    assert len(path.alphas) == n_stages
    assert path.n_nonzero[-1] == n_rows
    assert path.losses[-1] == as_printed(f)
    assert path.lipschitz[-1] == three_digits(lipschitz)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]:g}")
def test_hiht(paper_set, row):
    name, alpha, _, _, _, _, n_rows, objective = row
    X, y = paper_set(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some lambdas end at the limit of 200 steps, as in the table
        path = L20Selector(20, **(paper_settings("hiht") | {"alpha": alpha})).fit(X, y).path_
    assert path.n_nonzero[-1] == n_rows
    assert path.objectives[-1] == as_printed(objective)


@pytest.mark.parametrize("name", ["brain", "breast3", "leukemia", "lung", "lymphoma", "nci", "prostate", "srbct"])
def test_the_readings_differ_where_a_feature_enters_at_the_first_lambda(paper_set, name):
    """On six sets no feature enters at lambda_0 = 1 in any split of the paper: the plan of the readings has the others."""
    X, y = paper_set(name)
    parts = [paper_split(y, number).train for number in range(10)]
    alone = [L20Selector(20, **(paper_settings(reading="printed") | {"alpha": 1.0})).fit(X[one], y[one]) for one in parts]
    entered = [selector.path_.n_nonzero[-1] > 0 for selector in alone]
    assert any(entered) == (name in load_plan("readings").datasets)
    code, printed = (
        L20Selector(20, **paper_settings(reading=reading)).fit(X[parts[0]], y[parts[0]]).path_
        for reading in ("code", "printed")
    )
    assert len(printed.alphas) == len(code.alphas) + 1
    assert np.array_equal(printed.order, code.order) != entered[0]


def test_builtin_srbct_is_the_papers_set(paper_set):
    """Same tumours in another order: each of our samples has its double among the paper's, with the same label."""
    from l20fs.data import load_srbct

    X, y = paper_set("srbct")
    ours = load_srbct(scale="paper")
    distance = np.linalg.norm(ours.data[:, None] - X[None], axis=2)
    double = distance.argmin(axis=1)
    assert sorted(double.tolist()) == list(range(63))
    assert distance.min(axis=1).max() < 0.1  # one entry of one sample differs; unrelated samples are 40 or more apart
    assert np.array(["EWS", "RMS", "NB", "BL"])[y[double]].tolist() == ours.target.tolist()
