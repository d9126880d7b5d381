"""Slow and obvious twins of what the package computes fast."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def centred(X, Y):
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def weighted(A, weights):
    """Take the weighted mean away and multiply each sample by the root of its weight."""
    return np.sqrt(weights)[:, None] * (A - weights @ A / weights.sum())


def loss(X, Y, W, mu=0.0):
    return 0.5 * np.linalg.norm(X @ W - Y) ** 2 + 0.5 * mu * np.linalg.norm(W) ** 2


def n_rows(W):
    return int(np.any(W != 0, axis=1).sum())


def homotopy(X, Y, lambdas, *, L, gamma=2.0, eta=0.1, mu=0.0, max_steps=1, tol=0.0):
    """Transcribe Algorithms 1 and 2 of the paper with dense arrays; returns W and L after every lambda.

    Everything is evaluated from scratch. The two amendments: L is capped where a good step is certain, and a point that
    does not move ends the lambda and leaves L as it was.
    """
    X, Y = centred(X, Y)
    cap = 1.01 * (np.linalg.norm(X, 2) ** 2 + mu + eta)
    W = np.zeros((X.shape[1], Y.shape[1]))
    stages = []
    for lam in lambdas:
        L_before = L
        for _ in range(max_steps):
            gradient = X.T @ (X @ W - Y) + mu * W
            while True:
                V = W - gradient / L
                V[np.sum(V**2, axis=1) <= 2 * lam / L] = 0.0
                decrease = loss(X, Y, W, mu) + lam * n_rows(W) - loss(X, Y, V, mu) - lam * n_rows(V)
                if decrease >= eta / 2 * np.linalg.norm(W - V) ** 2 - 1e-12 * loss(X, Y, W, mu) or cap <= L:
                    break
                L = min(gamma * L, cap)
            length = np.linalg.norm(V - W) ** 2
            if length == 0.0:
                L = L_before
                break
            W = V
            if length <= tol:
                break
        stages.append((W.copy(), L))
    return stages


def minimum(X, Y, support, mu=0.0):
    """Solve least squares with a ridge term on some columns: the value h of the support, and W on it."""
    X, Y = centred(X, Y)
    columns = X[:, list(support)]
    lifted = np.vstack([columns, np.sqrt(mu) * np.eye(len(support))])
    W = np.linalg.lstsq(lifted, np.vstack([Y, np.zeros((len(support), Y.shape[1]))]), rcond=None)[0]
    return loss(columns, Y, W, mu), W


def greedy(X, Y, k, mu=0.0):
    """Add the column that lowers h most, k times; every candidate is solved from scratch. Ties go to the lower index."""
    support, values = [], [minimum(X, Y, [], mu)[0]]
    for _ in range(k):
        others = [j for j in range(X.shape[1]) if j not in support]
        trials = [minimum(X, Y, [*support, j], mu)[0] for j in others]
        best = next(i for i, value in enumerate(trials) if value <= min(trials) + 1e-10 * values[0])
        support.append(others[best])
        values.append(trials[best])
    return support, values


def best_subset(X, Y, k, mu=0.0):
    """Search all supports of size k: the smallest h, and its support."""
    return min((minimum(X, Y, support, mu)[0], support) for support in combinations(range(X.shape[1]), k))


def best_objective(X, Y, lam, mu=0.0):
    """Search all supports: the global minimum of f + lam * (number of rows), and its support."""
    sizes = range(X.shape[1] + 1)
    return min(
        (minimum(X, Y, support, mu)[0] + lam * size, support)
        for size in sizes
        for support in combinations(range(X.shape[1]), size)
    )
