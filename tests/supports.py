"""Small problems of every kind, and the loss of each of their supports by brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from hypothesis import assume
from hypothesis import strategies as st

from l20fs.objective import make_problem


def dense(problem):
    """The centred and scaled X of a problem in float64, one column per feature."""
    return problem.design.columns(np.arange(problem.n_features)).T


def loss_of(problem, support):
    """The loss of a support, from its definition."""
    columns, targets, size = dense(problem)[:, list(support)], problem.targets.T, len(support)
    ridge_rows = np.sqrt(problem.ridge) * np.eye(size)
    weights = np.linalg.lstsq(np.vstack([columns, ridge_rows]), np.vstack([targets, np.zeros((size, targets.shape[1]))]))[0]
    return 0.5 * np.sum((columns @ weights - targets) ** 2) + 0.5 * problem.ridge * np.sum(weights**2)


def all_losses(problem):
    """The loss of every support, the empty one first."""
    features = range(problem.n_features)
    return {S: loss_of(problem, S) for size in range(len(features) + 1) for S in combinations(features, size)}


def exact_optima(X, Y, mu):
    """The smallest loss of at most k features for k = 0 to all, of X and Y as they are given, in exact arithmetic."""
    losses = exact_losses(X, Y, mu, [[j] for j in range(X.shape[1])])
    return [min(loss for panel, loss in losses.items() if len(panel) <= k) for k in range(X.shape[1] + 1)]


def exact_losses(X, Y, mu, units):
    """The loss of every set of units, lists of columns that are taken together, in exact arithmetic.

    A column of which no more than 1e-13 of its length is left counts as dependent on those before it.
    """
    columns, targets = ([_exactly_centred(column) for column in A.T] for A in (X, Y))
    moments = [[_dot(x, y) for y in targets] for x in columns]
    gram = [[_dot(x, y) for y in columns] for x in columns]
    energies = [gram[j][j] for j in range(len(columns))]
    losses = {}

    def extend(panel, gram, moments, loss):
        losses[panel] = loss
        for unit in range(panel[-1] + 1 if panel else 0, len(units)):
            extend((*panel, unit), *add(units[unit], gram, moments, loss))

    def add(members, gram, moments, loss):
        for j in members:
            room = gram[j][j] + mu
            if room > Fraction(1, 10**26) * energies[j]:
                shares = [line[j] / room for line in gram]
                loss -= sum(moment * moment for moment in moments[j]) / room / 2
                gram, moments = _less(gram, shares, gram[j]), _less(moments, shares, moments[j])
        return gram, moments, loss

    extend((), gram, moments, sum(_dot(y, y) for y in targets) / 2)
    return losses


def _less(lines, shares, taken):
    return [[a - share * b for a, b in zip(line, taken, strict=True)] for line, share in zip(lines, shares, strict=True)]


def _exactly_centred(column):
    values = [Fraction(float(value)) for value in column]
    mean = sum(values) / len(values)
    return [value - mean for value in values]


def _dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


SMALL = st.tuples(st.integers(3, 9), st.integers(1, 5))


@st.composite
def nearly_dependent(draw, shapes=SMALL, smallest=1e-12):
    """Draw X and Y: columns that are combinations of others, up to a distance or altogether, and targets they explain."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_samples, n_features = draw(shapes)
    X = random.standard_normal((n_samples, n_features))
    distances, differences = st.just(0.0) | powers_of_ten(np.log10(smallest), 0), []
    for distance in draw(st.lists(distances, max_size=min(4, n_features - 1))):
        j, i, other = random.choice(n_features, 3, replace=n_features < 3)
        combined = random.choice([1.0, -3.0]) * X[:, i] + random.choice([0.0, 1.0]) * X[:, other]
        difference = random.standard_normal(n_samples)
        X[:, j] = combined + distance * difference
        differences.append(difference + X[:, i])
    X += draw(st.sampled_from([0.0, 0.0, 10.0]))
    Y = random.standard_normal((n_samples, draw(st.integers(1, 2))))
    kind = draw(st.sampled_from(["noise", "sum", "difference"]))
    if kind == "sum":
        weights = random.standard_normal((n_features, Y.shape[1])) * 10.0 ** random.uniform(0, 5, (n_features, 1))
        Y = X @ weights + draw(st.sampled_from([0.0, 1e-3])) * Y * np.abs(weights).max()
    elif kind == "difference" and differences:
        Y[:, 0] = random.choice(differences)
    assume((np.ptp(X, axis=0) > 1e-6).all())
    return X, Y / np.linalg.norm(Y)


def powers_of_ten(low, high):
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


#: From 1e-6 to 100 times the mean energy of a feature.
RIDGES = powers_of_ten(-6, 2)


@st.composite
def problems(draw, ridge=RIDGES):
    """Draw a problem: few or many samples, copies, dependent and constant columns, units, zeros, float32, weights.

    With or without an intercept.
    """
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_samples, n_features = draw(st.integers(2, 12)), draw(st.integers(1, 7))
    X = random.standard_normal((n_samples, n_features))
    if draw(st.booleans()):
        X[1:] *= random.random(X[1:].shape) < 0.5  # no column is all zero; constant ones come below
    for kind in draw(st.lists(st.sampled_from(["copy", "sum", "constant", "unit", "mean"]), max_size=3)):
        j, i = random.integers(n_features, size=2)
        if kind == "copy":
            X[:, j] = X[:, i]
        elif kind == "sum":
            X[:, j] = X @ random.integers(1, 3, n_features)
        elif kind == "constant":
            X[:, j] = 1.0 / 3.0
        elif kind == "unit":
            X[:, j] *= 10.0 ** random.integers(-3, 4)
        else:
            X[:, j] += 1000.0
    X = X.astype(draw(st.sampled_from([np.float64, np.float32])))
    if not (np.ptp(X, axis=0) > 1e-6).any():
        X[:, 0] = np.arange(n_samples)
    n_targets = draw(st.integers(1, 4))
    Y = random.standard_normal((n_samples, n_targets))
    if draw(st.booleans()):
        Y = np.eye(n_targets)[random.integers(n_targets, size=n_samples)]
    if draw(st.booleans()) and np.ptp(X[:, -1]) > 1e-6:
        Y[:, 0] = X[:, -1]  # a feature that explains a target altogether
    container = draw(st.sampled_from([np.asarray, sp.csr_array]))
    sample_weight = random.integers(1, 5, n_samples) / 2.0 if draw(st.booleans()) else None
    scale = draw(st.sampled_from(["none", "zscore", "moderated"]))
    options = {"scale": scale, "sample_weight": sample_weight, "fit_intercept": draw(st.booleans())}
    problem = make_problem(container(X), Y, ridge=draw(ridge), **options)
    assume(not 0.0 < problem.null_loss < 1e-20)  # targets that do not vary but for rounding
    return problem
