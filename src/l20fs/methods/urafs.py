"""URAFS: uncorrelated regression on an adaptive graph embedding, without labels."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.linalg import eigh, svd
from scipy.special import softmax, xlogy
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state

from l20fs.design import Scale
from l20fs.design.column_scale import scaled
from l20fs.estimators.base import About
from l20fs.estimators.scoring import Callback, Progress, Scored, ScoringSelector, warn_not_converged
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import check_choice, check_number
from l20fs.methods._linalg import Form, smooth_row_norms, weighted_ridge
from l20fs.objective.prox import squared_row_norms
from l20fs.typing import Array

Init = Literal["pca", "random"]

#: Maximum number of generalised power iterations per update of the embedding, and their relative tolerance.
POWER_STEPS = 50
POWER_TOL = 1e-8


class URAFS(ScoringSelector):
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
        reference="Li, Zhang, Zhang, Liu and Nie, Generalized uncorrelated regression with adaptive graph (2019)",
        kind="embedded",
        cost="O(N^2 d + N^3) per iteration (N < d), else O(N d^2 + d^3 + N^2)",
        supervised=False,
    )

    embedding_: Array

    def __init__(
        self,
        n_features_to_select: int | float = 20,
        *,
        n_clusters: int = 5,
        alpha: float = 1.0,
        graph_weight: float = 0.1,
        entropy: float = 0.1,
        scale: Scale = "none",
        init: Init = "pca",
        random_state: Any = 0,
        max_iter: int = 100,
        tol: float = 1e-3,
        callback: Callback | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.graph_weight = graph_weight
        self.entropy = entropy
        self.scale = scale
        self.init = init
        self.random_state = random_state
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "max_iter"):
            check_number(name, getattr(self, name), minimum=1, strict=False, whole=True)
        for name in ("alpha", "entropy"):
            check_number(name, getattr(self, name), minimum=0.0)
        for name in ("graph_weight", "tol"):
            check_number(name, getattr(self, name), minimum=0.0, strict=False)
        check_choice("scale", self.scale, get_args(Scale))
        check_choice("init", self.init, ("pca", "random"))

    def _score_features(self, X: Array, targets: Targets) -> Scored:
        X = scaled(X, self.scale)
        X /= np.sqrt(np.mean(X * X))
        n_columns = min(self.n_clusters, X.shape[1], len(X) - 1)
        F = starting_embedding(X, n_columns, self.init, self.random_state)
        beta = self.entropy * n_columns / len(X)
        penalties = np.full(X.shape[1], float(self.alpha))
        epsilon = None
        objective: list[float] = []
        change = np.inf
        while len(objective) < self.max_iter and change > self.tol:
            graph = entropy_graph(F, beta)
            W = uncorrelated_weights(X, F, penalties)
            image = X @ W
            F = power_iteration(self._curvature(graph), image, F).F
            if epsilon is None:
                epsilon = max(1e-8 * float(np.sqrt(squared_row_norms(W).mean())), 1e-12)
            norms = smooth_row_norms(W, epsilon)
            penalties = self.alpha / (2.0 * norms)
            objective.append(self._objective(image, F, norms, graph, beta))
            if len(objective) > 1:
                # The entropy is negative, so the objective may be near zero; the regression term is of order n_columns.
                change = abs(objective[-2] - objective[-1]) / max(abs(objective[-1]), n_columns)
            if self.callback is not None:
                self.callback(Progress(len(objective), objective[-1]))
        if change > self.tol:
            warn_not_converged(self, change, self.tol, self.max_iter)
        self.embedding_ = F
        return Scored(scores=np.sqrt(squared_row_norms(W)), objective=objective)

    def _curvature(self, graph: Array) -> Array:
        """Return A = H + 2 a L_S with the centring matrix H, the quadratic form in F of the objective."""
        return np.eye(len(graph)) - 1.0 / len(graph) + 2.0 * self.graph_weight * laplacian(graph)

    def _objective(self, image: Array, F: Array, norms: Array, graph: Array, beta: float) -> float:
        smoothness = np.sum(F * (laplacian(graph) @ F))
        fit = np.sum((image - F) ** 2) + self.alpha * norms.sum()
        return float(fit + 2.0 * self.graph_weight * (smoothness + beta * xlogy(graph, graph).sum()))


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


def uncorrelated_weights(X: Array, F: Array, penalties: Array, *, form: Form = "auto") -> Array:
    r"""Return the W that maximises tr(W'K), with K = X'F, among those with W'MW = I, M = X'X + diag(penalties).

    :math:`W = M^{-1} K (K' M^{-1} K)^{-1/2}`, with the inverse square root on the range if K is rank deficient.
    """
    solved = weighted_ridge(X, F, 1.0 / penalties, np.ones(len(X)), form=form)
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
