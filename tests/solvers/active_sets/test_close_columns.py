"""Columns that are nearly combinations of others: choices and exchanges, against all of them in float64 from scratch."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import qr
from supports import nearly_dependent

from l20fs.objective import make_problem
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.greedy import forward, swap

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
RIDGES = st.sampled_from([0.0, 0.0, 1e-12, 1e-6, 1e-3])
SHAPES = st.sampled_from([(9, 12), (30, 8)])

#: What an exchange or another row may still bring, as a share of f at W = 0.
LEAST = {np.float64: 1e-9, np.float32: 1e-6}

#: From here on a column is independent for certain: ten times the limit.
FAR = {np.float64: 1e-9, np.float32: 2e-5}


def _on_device(X):
    return pytest.importorskip("array_api_strict").asarray(X)


CONTAINERS = {
    "array": np.asarray,
    "sparse": sp.csr_array,
    "device": _on_device,
    "rows": lambda X: cut(X, 0, 2),
    "columns": lambda X: cut(X, 1, 3),
}


class Truth:
    """Losses of supports, by a QR factorisation of the columns as they are stored."""

    def __init__(self, problem, X, dtype, far=None):
        stored = problem if problem.design.location != "blocks" else LeastSquares(X.astype(np.float64), problem._Y)
        self.columns = stored.design.take(np.arange(X.shape[1]), slice(None)).astype(np.float64)
        self.targets, self.ridge, self.null_loss = stored.targets.T, problem.ridge, problem.null_loss
        self.far = far or FAR[dtype]

    def loss(self, support):
        size = len(support)
        columns = np.vstack([self.columns[:, support], np.sqrt(self.ridge) * np.eye(size)])
        left = np.vstack([self.targets, np.zeros((size, self.targets.shape[1]))])
        basis, triangle, _ = qr(columns / np.linalg.norm(columns, axis=0), mode="economic", pivoting=True)
        basis = basis[:, np.abs(np.diagonal(triangle)) > 1e-13]
        for _ in range(2):
            left = left - basis @ (basis.T @ left)
        return 0.5 * np.sum(left**2)

    def is_independent(self, row, others):
        column = self.columns[:, row]
        basis = np.linalg.qr(self.columns[:, others])[0] if others else np.zeros((len(column), 0))
        left = column - basis @ (basis.T @ column)
        return np.linalg.norm(left - basis @ (basis.T @ left)) > self.far * np.linalg.norm(column)

    def best_with(self, supports):
        """The smallest loss of those supports whose last row is independent of the others."""
        return min((self.loss(S) for S in supports if self.is_independent(S[-1], S[:-1])), default=np.inf)


@DTYPES
@pytest.mark.parametrize("container", CONTAINERS)
@given(data=nearly_dependent(SHAPES, smallest=1e-6), ridge=RIDGES)
@settings(max_examples=15)
def test_no_exchange_helps_and_no_other_row_helps_more(dtype, container, data, ridge):
    X, Y = data[0].astype(dtype), data[1]
    problem = make_problem(CONTAINERS[container](X), Y, ridge=ridge)
    design, features, is_gram = problem.design, range(X.shape[1]), problem.design.vectors == "features"
    truth = Truth(problem, X, dtype, far=1e-4 if is_gram else None)
    # Products with a sparse X are taken before it is centred, and a Gram matrix has half of the digits.
    longer = np.max(design.pull_norms() / np.sqrt(design.column_energy))
    least = (1e-5 if is_gram else LEAST[dtype] * longer) * truth.null_loss
    exchanged, grown = swap(problem, 3), forward(problem, 3)
    for k in range(1, 1 + min(exchanged.n_nonzero.max(), 3)):
        rows = exchanged.rows_at(k).tolist()
        others = [[*(row for row in rows if row != left), j] for left in rows for j in features if j not in rows]
        assert truth.loss(rows) <= truth.best_with(others) + least
    for k in range(1, 1 + min(grown.n_nonzero.max(), 3)):
        *rows, last = grown.order[:k].tolist()
        assert truth.loss([*rows, last]) <= truth.best_with([*rows, j] for j in features if j not in rows) + least
        assert grown.losses[k] == pytest.approx(truth.loss([*rows, last]), abs=least)


@DTYPES
@given(data=nearly_dependent(SHAPES, smallest=1e-6), ridge=RIDGES)
@settings(max_examples=20)
def test_no_exchange_of_groups_helps(dtype, data, ridge):
    X, Y = data[0].astype(dtype), data[1]
    problem, labels = LeastSquares(X, Y, ridge=ridge), np.arange(X.shape[1]) // 2
    truth, units = Truth(problem, X, dtype), range(labels[-1] + 1)

    def rows_of(chosen):
        return [row for unit in chosen for row in np.flatnonzero(labels == unit).tolist()]

    def is_clear(rows):
        return all(truth.is_independent(row, rows[:i]) for i, row in enumerate(rows))

    path = swap(problem, 2, penalty=RowPenalty.of_groups(labels, np.ones(X.shape[1])))
    for stage in range(1, len(path.n_nonzero)):
        chosen = np.unique(labels[path.rows_at(int(path.sizes[stage]))]).tolist()
        loss = truth.loss(rows_of(chosen)) if is_clear(rows_of(chosen)) else path.losses[stage]
        others = [[*(unit for unit in chosen if unit != left), j] for left in chosen for j in units if j not in chosen]
        best = min((truth.loss(rows_of(other)) for other in others if is_clear(rows_of(other))), default=np.inf)
        assert loss <= best + LEAST[dtype] * truth.null_loss


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(("dtype", "distance"), [(np.float32, 2e-3), (np.float64, 2e-3), (np.float64, 2e-6)])
def test_a_small_difference_of_two_columns_is_seen(container, dtype, distance):
    """y = a + b with the columns a and a + distance * b: both together explain it, and each alone does not."""
    random = np.random.default_rng(0)
    n_samples = 20 if dtype == np.float32 else 100
    a, b = random.standard_normal((2, n_samples))
    X = np.column_stack([a, a + distance * b, random.standard_normal((n_samples, 48))]).astype(dtype)
    problem = make_problem(CONTAINERS[container](X), (a + b)[:, None])
    is_gram = problem.design.vectors == "features"  # which has half of the digits
    if is_gram and distance < 1e-5:
        pytest.skip("below what a Gram matrix determines")
    rounding = 10 * (np.finfo(dtype).eps / distance) ** 2 + (1e-9 if is_gram else 1e-11)
    for solver in (forward, swap):
        path = solver(problem, 2)
        assert set(path.rows_at(2)) == {0, 1}
        assert path.losses[-1] <= rounding * path.null_loss


@DTYPES
def test_what_is_combined_from_others_up_to_the_rounding_of_x_stays_dependent(dtype):
    """In units of the last place before centring: a mean of 1000 leaves three digits fewer."""
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 8)) + np.where(np.arange(8) < 4, 1000.0, 0.0)
    X = np.hstack([X, X[:, :1] + X[:, 4:5], X[:, 5:6] - X[:, 6:7]]).astype(dtype)
    path = forward(LeastSquares(X, random.standard_normal((40, 3))), 10)
    assert path.n_nonzero.max() == 8
