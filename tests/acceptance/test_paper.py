"""The paper's algorithms on the paper's data: stages, rows and losses that another implementation gave.

AHIHT and HIHT with the authors' settings, written out: lambda falls from 0.4 lambda_0 = 0.4 by a factor 0.4, the step
parameter L starts at the largest squared norm of a sample and doubles, and HIHT ends a lambda by the absolute rule.
"""

from __future__ import annotations

import numpy as np
import pytest
from acceptance import doors

AUTHORS = {"ridge": 0.0, "scale": "none", "class_weight": None, "fit_intercept": True, "loss": "squared", "ranking": "norm"}
STEPS = {"rate": 0.4, "line_search_factor": 2.0, "eta": 0.1}
STEPS_OF_HIHT = STEPS | {"stopping": "absolute", "tol": 1e-6, "max_iter": 200}

# Losses have half a unit of the third decimal. Data set, lambda, AHIHT: stages, rows, f, last L; HIHT: rows, objective
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


def walk(X, y, alpha, solver="ahiht", start=0.4):
    """The fit with the settings of the authors, and its path."""
    steps = (STEPS if solver == "ahiht" else STEPS_OF_HIHT) | {"alpha_start": start}
    fitted = doors.fit(X, y, 20, solver=solver, steps=steps, alpha_min=alpha, task="classification", **AUTHORS)
    return fitted, doors.path(fitted)


@pytest.mark.parametrize(("name", "L", "loss"), [("brain", 3540, 16.476), ("srbct", 1619, 22.476), ("nci", 5446, 26.557)])
def test_constants_of_the_data(paper_set, name, L, loss):
    """L starts at the largest squared norm of a centred sample, the path at the loss without features."""
    _, path = walk(*paper_set(name), 10.0)  # no feature is worth a lambda of 10
    assert path.sizes.tolist() == [0]
    assert path.lipschitz[0] == pytest.approx(L, rel=2e-3)
    assert path.losses[0] == pytest.approx(loss, abs=5.1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # HIHT ends some lambdas after 200 steps
@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]:g}")
def test_golden_table(paper_set, row):
    name, alpha, n_stages, n_rows, loss, lipschitz, n_rows_of_hiht, objective = row
    _, path = walk(*paper_set(name), alpha)
    assert path.alphas == pytest.approx([*0.4 ** np.arange(1, n_stages), alpha], rel=1e-12)
    assert path.sizes[-1] == n_rows
    assert path.losses[-1] == pytest.approx(loss, abs=5.1e-4)
    assert path.lipschitz[-1] == pytest.approx(lipschitz, rel=2e-3)
    _, path = walk(*paper_set(name), alpha, "hiht")
    assert path.sizes[-1] == n_rows_of_hiht
    assert path.losses[-1] + alpha * path.sizes[-1] == pytest.approx(objective, abs=5.1e-4)


def paper_split(y, number):
    """Training samples: two thirds of every class, rounded up."""
    random = np.random.default_rng([0, number])
    members = (random.permutation(np.flatnonzero(y == label)) for label in np.unique(y))
    return np.sort(np.concatenate([those[: -(-2 * len(those) // 3)] for those in members]))


def first_rows(X, y):
    """Features that the first step enters at lambda = 1: from zero, L doubles until the objective falls by enough."""
    X, Y = X - X.mean(axis=0), np.eye(y.max() + 1)[y] - np.bincount(y) / len(y)
    products, L = X.T @ Y, np.square(X).sum(axis=1).max()
    while True:
        W = np.where(np.square(products).sum(axis=1, keepdims=True) > 2.0 * L, products / L, 0.0)
        rows = np.flatnonzero(W.any(axis=1)).tolist()
        if np.square(Y).sum() - np.square(X @ W - Y).sum() >= 2.0 * len(rows) + 0.1 * np.square(W).sum():
            return rows
        L *= 2.0


@pytest.mark.parametrize("name", ["brain", "breast3", "leukemia", "lung", "lymphoma", "nci", "prostate", "srbct"])
def test_the_readings_differ_where_a_feature_enters_at_lambda_0(paper_set, name):
    """The printed algorithms take their first step at lambda_0 = 1, the authors' later code at 0.4."""
    X, y = paper_set(name)
    splits = [(X[train], y[train]) for train in (paper_split(y, number) for number in range(10))]
    entered = [first_rows(*split) for split in splits]
    assert [walk(*split, 1.0, start=1.0)[1].supports[0].tolist() for split in splits] == entered
    assert any(entered) == (name in ("lung", "srbct"))
    (code, short), (printed, long) = (walk(*splits[0], 1e-4, start=start) for start in (0.4, 1.0))
    assert long.alphas == pytest.approx([1.0, *short.alphas], rel=1e-12)
    assert np.array_equal(code.order, printed.order) == (not entered[0])


def test_builtin_srbct_is_the_papers_set(paper_set):
    """The same tumours in another order: each of ours has its double among the paper's, with the same label."""
    X, y = paper_set("srbct")
    ours, labels = doors.builtin("srbct", subset="train", scale="paper")
    distance = np.linalg.norm(ours[:, None] - X[None], axis=2)
    double = distance.argmin(axis=1)
    assert len(np.unique(double)) == 63 == len(X)
    assert distance.min(axis=1).max() < 0.1  # one entry of one sample differs; unrelated samples are 40 or more apart
    assert np.array(["EWS", "RMS", "NB", "BL"])[y[double]].tolist() == labels.tolist()
