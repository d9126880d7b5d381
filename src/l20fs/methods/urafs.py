"""URAFS: uncorrelated regression on an adaptive graph embedding, without labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.linalg import eigh, svd
from scipy.special import softmax, xlogy
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state

from l20fs.design import Scale
from l20fs.design.column_scale import scaled
from l20fs.methods._linalg import row_norms, smooth_row_norms, weighted_ridge
from l20fs.methods._method import POSITIVE, About, Callback, Method, Scored, Targets, choice, follow, number, rules
from l20fs.typing import Array

Init = Literal["pca", "random"]

#: Maximum number of generalised power iterations per update of the embedding, and their relative tolerance.
POWER_STEPS = 50
POWER_TOL = 1e-8


@dataclass(eq=False, repr=False, kw_only=True)
class URAFS(Method):
    r"""Rank features without labels, by an uncorrelated regression on an adaptive graph embedding of the samples.

    .. math:: \min_{W, F, S} \|\tilde X W - F\|^2 + \lambda \sum_j \|w_j\|
              + 2 a \Big[\operatorname{tr}(F' L_S F) + b \sum_{ij} s_{ij} \log s_{ij}\Big]

    subject to :math:`W' (\tilde X' \tilde X + \lambda G) W = I`, :math:`F'F = I`, :math:`F'1 = 0` and rows of S that sum to
    1, where :math:`\tilde X` is centred, :math:`L_S` is the Laplacian of the graph S and
    :math:`G_{jj} = 1 / (2 \sqrt{\|w_j\|^2 + \epsilon^2})`. Graph, weights and embedding are updated in turn.

    **This is a reconstruction** from the abstract of the publication and from related methods with the same parts; its
    results may differ from the published ones. See the page of this method in the documentation.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    n_clusters : int, default=5
        Number of columns of W and F; at most the number of features, and at most the number of samples minus 1.
    alpha : float, default=1.0
        Penalty :math:`\lambda` of the row norms, for X divided by the root mean square deviation of its features, so that it
        does not depend on the units of X.
    graph_weight : float, default=0.1
        Weight a of the graph relative to the regression.
    entropy : float, default=0.1
        Weight b relative to ``n_clusters / n_samples``, which is half the mean squared distance of two rows of F. A graph
        weight decreases by a factor e over ``entropy`` times the mean squared distance.
    scale : {"none", "moderated", "auto", "zscore"}, default="none"
        ``"zscore"`` scales every feature to standard deviation 1; ``"moderated"`` and ``"auto"`` as in
        :class:`~l20fs.L20Selector`. With ``"none"`` features of large variance are favoured.
    init : {"pca", "random"}, default="pca"
        Initial F: the leading principal components of the samples, or random orthonormal columns.
    random_state : int, RandomState or None, default=0
        Seed of ``init="random"``.
    max_iter : int, default=100
        Maximum number of rounds of updates.
    tol : float, default=1e-3
        Relative change of the objective below which the iterations stop.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each round.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Norm of the row of W; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    embedding_ : array of shape (n_samples, n_clusters)
        F after the last round, determined up to a rotation of its columns.
    objective_ : array of shape (``n_iter_``,)
        Objective after every round, with smoothed norms.
    n_iter_ : int
        Number of rounds.

    References
    ----------
    .. [1] X. Li, H. Zhang, R. Zhang, Y. Liu and F. Nie, "Generalized uncorrelated regression with adaptive graph for
       unsupervised feature selection", IEEE Transactions on Neural Networks and Learning Systems 30 (2019).

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((60, 10))
    >>> X[:30, 4] += 8.0  # two clusters
    >>> URAFS(1, n_clusters=1).fit(X).get_support(indices=True)
    array([4])
    """

    about = About(
        "Li, Zhang, Zhang, Liu and Nie, Generalized uncorrelated regression with adaptive graph (2019)",
        "embedded",
        "O(N^2 d + N^3) per iteration (N < d), else O(N d^2 + d^3 + N^2)",
        supervised=False,
    )
    checks = rules(alpha=POSITIVE, entropy=POSITIVE, graph_weight=number(), init=choice("pca", "random"))

    n_clusters: int = 5
    alpha: float = 1.0
    graph_weight: float = 0.1
    entropy: float = 0.1
    scale: Scale = "none"
    init: Init = "pca"
    random_state: Any = 0
    max_iter: int = 100
    tol: float = 1e-3
    callback: Callback | None = None

    def _score_features(self, X: Array, targets: Targets) -> Scored:
        X = scaled(X, self.scale)
        X /= np.sqrt(np.mean(X * X))
        (W, self.embedding_), objective = follow(self, self._rounds(X, min(self.n_clusters, X.shape[1], len(X) - 1)))
        return Scored(scores=row_norms(W), objective=objective)

    def _rounds(self, X: Array, n_columns: int) -> Iterator[tuple[tuple[Array, Array], float, float]]:
        """Yield W and F, the objective and its relative change after every round of updates."""
        F = starting_embedding(X, n_columns, self.init, self.random_state)
        beta, a = self.entropy * n_columns / len(X), self.graph_weight
        penalties, epsilon, before = np.full(X.shape[1], float(self.alpha)), None, np.inf
        while True:
            graph = entropy_graph(F, beta)
            L = laplacian(graph)
            W = uncorrelated_weights(X, F, penalties)
            image = X @ W
            F = power_iteration(np.eye(len(X)) - 1.0 / len(X) + 2.0 * a * L, image, F).F
            epsilon = max(1e-8 * float(np.sqrt(np.square(W).sum(axis=1).mean())), 1e-12) if epsilon is None else epsilon
            norms = smooth_row_norms(W, epsilon)
            penalties = self.alpha / (2.0 * norms)
            smoothness = np.sum(F * (L @ F)) + beta * xlogy(graph, graph).sum()
            objective = float(np.sum((image - F) ** 2) + self.alpha * norms.sum() + 2.0 * a * smoothness)
            # The entropy is negative, so the objective may be near zero; the regression term is of order n_columns.
            yield (W, F), objective, abs(before - objective) / max(abs(objective), n_columns)
            before = objective


def entropy_graph(F: Array, beta: float) -> Array:
    r"""Return the row-stochastic S that minimises :math:`\sum_{ij} s_{ij} (\|f_i - f_j\|^2 / 2 + \beta \log s_{ij})`.

    Examples
    --------
    >>> entropy_graph(np.array([[0.0], [0.0], [99.0]]), beta=0.1)[0]
    array([0.5, 0.5, 0. ])
    """
    return softmax(euclidean_distances(F, squared=True) / (-2.0 * beta), axis=1)


def laplacian(graph: Array) -> Array:
    """Return the Laplacian of the symmetrised graph."""
    symmetric = (graph + graph.T) / 2.0
    return np.diag(symmetric.sum(axis=1)) - symmetric


def uncorrelated_weights(X: Array, F: Array, penalties: Array) -> Array:
    r"""Return the W that maximises tr(W'K), with K = X'F, among those with W'MW = I, M = X'X + diag(penalties).

    :math:`W = M^{-1} K (K' M^{-1} K)^{-1/2}`, with the inverse square root on the range if K is rank deficient.
    """
    solved = weighted_ridge(X, F, 1.0 / penalties, np.ones(len(X)))
    inner = F.T @ (X @ solved)
    eigenvalues, vectors = eigh((inner + inner.T) / 2.0)
    is_positive = eigenvalues > eigenvalues[-1] * (len(X) * np.finfo(np.float64).eps)
    vectors = vectors[:, is_positive]
    return solved @ ((vectors / np.sqrt(eigenvalues[is_positive])) @ vectors.T)


class Power(NamedTuple):
    """Result of the generalised power iteration, with the objective at its start and after each step."""

    F: Array
    values: list[float]


def power_iteration(A: Array, B: Array, F: Array) -> Power:
    r"""Decrease :math:`\operatorname{tr}(F'AF) - 2 \operatorname{tr}(F'B)` over centred F with F'F = I, from a given F.

    Each step computes the orthonormal polar factor of :math:`(aI - A) F + B`, where a is an upper bound on the eigenvalues
    of A.
    """
    # Gershgorin: no eigenvalue exceeds the largest absolute row sum.
    bound = np.abs(A).sum(axis=1).max()
    A_F = A @ F
    values = [float(np.sum(F * (A_F - 2.0 * B)))]
    for _ in range(POWER_STEPS):
        step = bound * F - A_F + B
        # A and B are orthogonal to the constant vector up to rounding errors, which the iteration would amplify.
        left, _, right = svd(step - step.mean(axis=0), full_matrices=False)
        F = left @ right
        A_F = A @ F
        values.append(float(np.sum(F * (A_F - 2.0 * B))))
        if values[-2] - values[-1] <= POWER_TOL * abs(values[-1]):
            break
    return Power(F, values)


def starting_embedding(X: Array, n_columns: int, init: Init, random_state: Any) -> Array:
    """Return the initial embedding, centred orthonormal columns of shape (n_samples, n_columns); X is centred."""
    if init == "random":
        draw = check_random_state(random_state).standard_normal((len(X), n_columns))
        return np.linalg.qr(draw - draw.mean(axis=0))[0]
    gram = X @ X.T
    # The constant vector has eigenvalue zero; shifting it keeps it last if other eigenvalues are zero as well.
    lowered = gram - np.trace(gram) / len(X)
    return eigh(lowered, subset_by_index=[len(X) - n_columns, len(X) - 1])[1]
