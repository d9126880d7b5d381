"""Slow and obvious twins of what the package computes fast."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from l20fs.compare.evaluators import Softmax


def centred(X, Y):
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def weighted(A, weights):
    """Take the weighted mean away and multiply each sample by the root of its weight."""
    return np.sqrt(weights)[:, None] * (A - weights @ A / weights.sum())


def loss(X, Y, W, mu=0.0):
    return 0.5 * np.linalg.norm(X @ W - Y) ** 2 + 0.5 * mu * np.linalg.norm(W) ** 2


def n_rows(W):
    return int(np.any(W != 0, axis=1).sum())


def cost(W, units=None, costs=None):
    """What the non-zero rows cost: 1 each, or the cost of their unit, once."""
    if units is None:
        return n_rows(W)
    return sum(costs[u] for u in set(units[np.any(W != 0, axis=1)].tolist()))


def hard_threshold(V, squared_threshold, units=None, costs=None):
    """Zero the rows, or the units of rows for what they cost, that are too short; unit by unit."""
    V = V.copy()
    for u in range(len(V)) if units is None else range(len(costs)):
        members = [u] if units is None else np.flatnonzero(units == u)
        price = 1.0 if units is None else costs[u]
        if price > 0.0 and np.sum(V[members] ** 2) <= squared_threshold * price:
            V[members] = 0.0
    return V


def homotopy(X, Y, lambdas, *, L, gamma=2.0, eta=0.1, mu=0.0, max_steps=1, tol=0.0, units=None, costs=None):
    """Transcribe Algorithms 1 and 2 of the paper with dense arrays; returns W and L after every lambda.

    Everything is evaluated from scratch. The two amendments: L is capped where a good step is certain, and a point that
    does not move ends the lambda and leaves L as it was. ``units`` and ``costs`` generalise the penalty.
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
                V = hard_threshold(W - gradient / L, 2 * lam / L, units, costs)
                saved = lam * (cost(W, units, costs) - cost(V, units, costs))
                decrease = loss(X, Y, W, mu) - loss(X, Y, V, mu) + saved
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


def unit_minimum(X, Y, chosen, units, mu=0.0):
    """The value h of the features of some units."""
    return minimum(X, Y, np.flatnonzero(np.isin(units, list(chosen))), mu)[0]


def best_units(X, Y, lam, units, costs, mu=0.0):
    """Search all sets of units that hold what is included: the smallest f + lam * cost, and the set."""
    included = np.flatnonzero(costs == 0.0).tolist()
    free = [u for u in range(len(costs)) if 0.0 < costs[u] < np.inf]
    chosen = [(*included, *some) for size in range(len(free) + 1) for some in combinations(free, size)]
    return min((unit_minimum(X, Y, some, units, mu) + lam * costs[list(some)].sum(), sorted(some)) for some in chosen)


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


def paper_accuracy(classifier, X, y, fold, columns):
    """Train a classifier of the paper on some columns, and return the share of test samples that it gets right."""
    if not len(columns):
        labels, counts = np.unique(y[fold.train], return_counts=True)
        return float(np.mean(y[fold.test] == labels[counts.argmax()]))
    neighbours = KNeighborsClassifier(min(5, len(fold.train)), algorithm="brute")
    model = {"knn": neighbours, "softmax": Softmax()}[classifier].fit(X[np.ix_(fold.train, columns)], y[fold.train])
    return float(np.mean(model.predict(X[np.ix_(fold.test, columns)]) == y[fold.test]))


def vote(X_train, y_train, sample, n=5):
    """Vote among the nearest; of equally near ones the first, and on a tie the first label in the alphabet."""
    distances = [((x - sample) ** 2).sum() for x in X_train]
    votes = Counter(y_train[i] for i in np.argsort(distances, kind="stable")[:n])
    return min(votes, key=lambda label: (-votes[label], label))


def robust_unit(Y, sample_weight):
    """The root mean square of the targets about their weighted mean."""
    return np.sqrt(sample_weight @ ((Y - sample_weight @ Y / sample_weight.sum()) ** 2).sum(axis=1) / sample_weight.sum())


def robust_loss(X, Y, W, b, mu, sample_weight, delta=0.0):
    """Sum of residual norms in units of the targets, squares below a share ``delta`` of the unit, and the ridge term."""
    unit = robust_unit(Y, sample_weight)
    lengths = np.linalg.norm(X @ W + b - Y, axis=1)
    short = lengths < delta * unit
    lengths[short] = (lengths[short] ** 2 / (delta * unit) + delta * unit) / 2
    return unit * sample_weight @ lengths + 0.5 * mu * (W**2).sum()


def robust_minimum(X, Y, support, mu, sample_weight, delta=0.0, n_rounds=25, n_reweightings=30):
    """Reweighted least squares, hundreds of times, with errors floored at a length that is halved again and again."""
    support, unit = list(support), robust_unit(Y, sample_weight)
    columns = np.column_stack([np.ones(len(X)), X[:, support]])
    ridge = np.diag([0.0] + [mu] * len(support))
    W, best = np.zeros((len(support) + 1, Y.shape[1])), np.inf
    for floor in unit * np.maximum(0.5 ** np.arange(n_rounds), delta):
        for _ in range(n_reweightings):
            omega = sample_weight * unit / np.maximum(np.linalg.norm(columns @ W - Y, axis=1), floor)
            gram = (columns.T * omega) @ columns + ridge
            W = np.linalg.lstsq(gram, (columns.T * omega) @ Y, rcond=None)[0]
        best = min(best, robust_loss(X[:, support], Y, W[1:], W[0], mu, sample_weight, delta))
    return best


def robust_greedy(X, Y, k, mu, sample_weight, delta):
    """Add the row with the lowest minimum of the robust loss, by trying all of them; the losses of all sizes."""
    support, losses = [], [robust_minimum(X, Y, [], mu, sample_weight, delta)]
    for _ in range(k):
        left = [j for j in range(X.shape[1]) if j not in support]
        values = [robust_minimum(X, Y, [*support, j], mu, sample_weight, delta) for j in left]
        support.append(left[int(np.argmin(values))])
        losses.append(min(values))
    return losses


def discriminant(scatter, weights, least_scatter=0.01):
    """Discriminant analysis of the predictions ``x @ weights`` on the first features: weights and intercepts of scores."""
    k, n_classes = len(weights), len(scatter.shares)
    centres, spread = scatter.means[:, :k] @ weights, weights.T @ scatter.within[:k, :k] @ weights
    middle = scatter.shares @ centres
    total = max(np.trace(spread) + scatter.shares @ ((centres - middle) ** 2).sum(axis=1), 1e-6 * middle @ middle)
    spread = spread + (least_scatter * total / n_classes or 1.0) * np.eye(n_classes)
    if scatter.fit_intercept:
        axes = np.linalg.solve(spread, centres.T)
        with np.errstate(divide="ignore"):
            intercept = np.log(scatter.shares) - 0.5 * np.diagonal(centres @ axes)
    else:
        axes = np.linalg.solve(spread + (centres.T * scatter.shares) @ centres, centres.T * scatter.shares)
        intercept = np.where(scatter.shares > 0, 0.0, -np.inf)
    if n_classes == 2:
        return weights @ (axes[:, 1:] - axes[:, :1]), intercept[1:] - intercept[:1]
    known = scatter.shares > 0
    return weights @ (axes - axes[:, known].mean(axis=1, keepdims=True)), intercept - intercept[known].mean()


def values_of_rule(model, X, end):
    """Values at samples of the rule on the best ``end`` features: least squares of least norm, and its class scores."""
    path = model.path_
    rows = path.order[:end]
    weights = np.linalg.lstsq(path.refit_triangle[:, :end], path.refit_targets, rcond=None)[0] / path.y_scale
    scatter, intercept = getattr(model, "_scatter", None), path.y_mean
    if scatter is not None:
        weights, intercept = discriminant(scatter, weights)
    return (X[:, rows] - path.x_mean[rows]) / path.x_scale[rows] @ weights + intercept


def relieff(X, y, k):
    """ReliefF by its formula: one sample, one class, one feature, one neighbour at a time; NaN is missing."""
    n_samples, n_features = X.shape
    shares = {label: np.mean(y == label) for label in np.unique(y)}
    total = np.zeros(n_features)
    for i in range(n_samples):
        for label in np.unique(y):
            weight = -1.0 if label == y[i] else shares[label] / (1.0 - shares[y[i]])
            near = nearest_samples(X, i, [m for m in range(n_samples) if m != i and y[m] == label])[:k]
            for j in range(n_features):
                there = [difference(X, i, m, j) for m in near if not np.isnan(difference(X, i, m, j))]
                total[j] += weight * sum(there) / len(there) if there else 0.0
    return total / n_samples


def rrelieff(X, y, k):
    """RReliefF by the formula of Robnik-Sikonja and Kononenko, with k equally weighted neighbours; NaN is missing."""
    n_samples, n_features = X.shape
    scores = np.zeros(n_features)
    for j in range(n_features):
        n_apart = n_feature = n_both = n_pairs = 0.0
        for i in range(n_samples):
            for m in nearest_samples(X, i, [m for m in range(n_samples) if m != i])[:k]:
                if np.isnan(difference(X, i, m, j)):
                    continue
                apart = abs(y[i] - y[m]) / (y.max() - y.min())
                n_apart += apart
                n_feature += difference(X, i, m, j)
                n_both += apart * difference(X, i, m, j)
                n_pairs += 1.0
        if n_apart > 0.0:
            scores[j] += n_both / n_apart
        if n_pairs > n_apart:
            scores[j] -= (n_feature - n_both) / (n_pairs - n_apart)
    return scores


def difference(X, i, m, j):
    """Difference of two samples in a feature, as a share of its range; NaN if one of them has no value."""
    return abs(X[i, j] - X[m, j]) / (np.nanmax(X[:, j]) - np.nanmin(X[:, j]))


def nearest_samples(X, i, others):
    """Samples by their mean difference to sample i over the features of both, of equally near ones the later first."""
    span = np.nanmax(X, axis=0) - np.nanmin(X, axis=0)

    def distance(m):
        differences = np.abs(X[i] - X[m]) / span
        there = differences[~np.isnan(differences)]
        return there.mean() if len(there) else np.inf

    return sorted(others, key=lambda m: (round(distance(m), 12), -m))
