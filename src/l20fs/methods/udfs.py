"""UDFS: unsupervised discriminative feature selection with an l2,1 penalty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.neighbors import NearestNeighbors

from l20fs.design import Scale
from l20fs.design.column_scale import scaled
from l20fs.methods._linalg import row_norms, smooth_row_norms
from l20fs.methods._method import About, Callback, Method, Scored, Targets, follow, number, rules
from l20fs.typing import Array

#: A ridge term below this share of what it is added to is lost in rounding, and the matrix may be singular.
LEAST_RIDGE = 1e-12


@dataclass(eq=False, repr=False, kw_only=True)
class UDFS(Method):
    r"""Rank features without labels, by projections that vary little within neighbourhoods.

    .. math:: \min_{W'W = I} \operatorname{tr}(W' X' L X W) + \gamma \sum_j \|w_j\|, \qquad
              L = \sum_i S_i H (H X_i X_i' H + \lambda I)^{-1} H S_i'

    :math:`X_i` holds sample i and its nearest neighbours, H centres them, and :math:`S_i` maps them to their indices among
    all samples. The norms are smoothed, :math:`\sqrt{\|w_j\|^2 + \epsilon^2}`, and majorised by quadratics with weights D;
    each iteration computes the eigenvectors of :math:`X'LX + \gamma D` with the smallest eigenvalues. The score of a feature
    is :math:`\|w_j\|`.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    n_clusters : int, default=5
        Number of columns of W (m in the paper), the expected number of clusters; at most the number of features.
    n_neighbors : int, default=5
        Number of neighbours of each sample, without itself; at most all other samples.
    alpha : float, default=0.01
        Penalty :math:`\gamma` of the row norms.
    local_ridge : float, default=10.0
        Ridge :math:`\lambda` relative to the mean squared distance of a sample to the centre of its neighbourhood, so that
        it does not depend on the units of X.
    scale : {"zscore", "moderated", "auto", "none"}, default="zscore"
        ``"zscore"`` scales every feature to standard deviation 1; ``"moderated"`` and ``"auto"`` as in
        :class:`~l20fs.L20Selector`. With ``"none"`` features of small variance also vary little within neighbourhoods and
        rank first for that reason alone.
    max_iter : int, default=20
        Maximum number of eigenproblems.
    tol : float, default=1e-6
        Relative change of the objective below which the iterations stop.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each iteration.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Norm of the row of W; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    objective_ : array of shape (``n_iter_``,)
        Objective after every iteration, with smoothed norms.
    n_iter_ : int
        Number of iterations.

    References
    ----------
    .. [1] Y. Yang, H. T. Shen, Z. Ma, Z. Huang and X. Zhou, "l2,1-norm regularized discriminative feature selection for
       unsupervised learning", International Joint Conference on Artificial Intelligence (2011).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> selector = UDFS(2, n_clusters=3).fit(load_iris().data)
    >>> selector.get_support(indices=True)
    array([2, 3])
    """

    about = About(
        "Yang, Shen, Ma, Huang and Zhou, l2,1-norm regularized discriminative feature selection (2011)",
        "embedded",
        "O(N^2 d) per iteration (N < d), else O(d^3)",
        supervised=False,
    )
    checks = rules(alpha=number(LEAST_RIDGE), local_ridge=number(LEAST_RIDGE))

    n_clusters: int = 5
    n_neighbors: int = 5
    alpha: float = 0.01
    local_ridge: float = 10.0
    scale: Scale = "zscore"
    max_iter: int = 20
    tol: float = 1e-6
    callback: Callback | None = None

    def _score_features(self, X: Array, targets: Targets) -> Scored:
        X = scaled(X, self.scale)
        Z = local_root(X, neighbourhoods(X, self.n_neighbors), self.local_ridge)
        W, objective = follow(self, self._rounds(Z, min(self.n_clusters, X.shape[1])))
        return Scored(scores=row_norms(W), objective=objective)

    def _rounds(self, Z: Array, n_columns: int) -> Iterator[tuple[Array, float, float]]:
        """Yield W, the objective and its relative change after every eigenproblem."""
        inverse_weights, before = starting_weights(Z, n_columns), np.inf
        # Relative to sqrt(m / d), the root mean square row norm of W.
        epsilon = max(1e-8 * float(np.sqrt(n_columns / Z.shape[1])), 1e-12)
        while True:
            W = smallest_eigenvectors(Z, inverse_weights, self.alpha, n_columns)
            norms = smooth_row_norms(W, epsilon)
            objective = float(np.sum((Z @ W) ** 2) + self.alpha * norms.sum())
            inverse_weights = 2.0 * norms
            yield W, objective, abs(before - objective) / abs(objective)
            before = objective


def neighbourhoods(X: Array, n_neighbors: int) -> Array:
    """Return the index of each sample followed by those of its nearest neighbours, (n_samples, n_neighbors + 1).

    Examples
    --------
    >>> neighbourhoods(np.array([[0.0], [1.0], [5.0]]), n_neighbors=1)
    array([[0, 1],
           [1, 0],
           [2, 1]])
    """
    search = NearestNeighbors(n_neighbors=min(n_neighbors, len(X) - 1)).fit(X)
    # Without an argument, kneighbors() excludes each sample from its own neighbours, also if there are duplicates.
    return np.column_stack([np.arange(len(X)), search.kneighbors(return_distance=False)])


def local_matrix(gram: Array, table: Array, local_ridge: float) -> Array:
    r"""Return :math:`L = \sum_i S_i H (H G_i H + \lambda I)^{-1} H S_i'` from the Gram matrix of the samples.

    :math:`G_i` is the Gram matrix of the samples in row i of ``table``; :math:`\lambda` is ``local_ridge`` times
    the mean diagonal entry of all :math:`H G_i H`.
    """
    size = table.shape[1]
    centring = np.eye(size) - 1.0 / size
    scatter = centring @ gram[table[:, :, None], table[:, None, :]] @ centring
    ridge = local_ridge * np.trace(scatter, axis1=1, axis2=2).mean() / size
    # If all neighbourhoods consist of equal samples, the scatter is zero and the ridge cannot be relative to it.
    inverse = np.linalg.inv(scatter + (ridge or local_ridge) * np.eye(size))
    L = np.zeros_like(gram)
    np.add.at(L, (table[:, :, None], table[:, None, :]), centring @ inverse @ centring)
    return (L + L.T) / 2.0


def local_root(X: Array, table: Array, local_ridge: float) -> Array:
    """Return Z with Z'Z = X'LX and at most n_samples rows."""
    eigenvalues, vectors = eigh(local_matrix(X @ X.T, table, local_ridge))
    # L is positive semi-definite; negative and tiny eigenvalues are rounding errors.
    is_positive = eigenvalues > eigenvalues[-1] * (len(X) * np.finfo(np.float64).eps)
    return (np.sqrt(eigenvalues[is_positive])[:, None] * vectors[:, is_positive].T) @ X


def starting_weights(Z: Array, n_columns: int) -> Array:
    """Return the initial diagonal of P: ones, as published, if W is then unique.

    If Z'Z has more than ``n_columns`` zero eigenvalues, the eigenvectors would depend on the eigensolver; then the initial
    weights are inversely proportional to the variation of the features within neighbourhoods.
    """
    if Z.shape[1] - Z.shape[0] <= n_columns:
        return np.ones(Z.shape[1])
    cost = np.einsum("ij,ij->j", Z, Z)
    floor = max(1e-8 * cost.mean(), np.finfo(np.float64).tiny)
    return (cost.mean() + floor) / (cost + floor)


def smallest_eigenvectors(Z: Array, inverse_weights: Array, alpha: float, n_columns: int) -> Array:
    r"""Return the eigenvectors of :math:`Z'Z + \gamma D` with the smallest eigenvalues, (n_features, n_columns).

    Both forms compute the largest eigenvalues of :math:`\gamma (Z'Z + \gamma D)^{-1}` without dividing by
    :math:`P = D^{-1}`, the diagonal matrix of ``inverse_weights``: the primal one by a dense d x d matrix, the dual one by
    Lanczos iterations with :math:`P - P Z' (\gamma I + Z P Z')^{-1} Z P`, which needs an N x N matrix.
    """
    n_rows, n_features = Z.shape
    root = np.sqrt(inverse_weights)
    scaled = Z * root
    # Lanczos iterations cannot compute all eigenvectors.
    if n_columns < n_features and n_rows < n_features:
        return _iterate(scaled, root, alpha, n_columns)
    dense = scaled.T @ scaled
    dense.flat[:: n_features + 1] += alpha
    inverse = root[:, None] * cho_solve(cho_factor(dense), np.diag(alpha * root))
    return eigh((inverse + inverse.T) / 2.0, subset_by_index=[n_features - n_columns, n_features - 1])[1]


def _iterate(scaled: Array, root: Array, alpha: float, n_columns: int) -> Array:
    """Compute the leading eigenvectors of the dual operator by Lanczos iterations."""
    n_rows, n_features = scaled.shape
    factor = cho_factor(scaled @ scaled.T + alpha * np.eye(n_rows))

    def multiply(vector: Array) -> Array:
        inner = root * vector.ravel()
        return root * (inner - scaled.T @ cho_solve(factor, scaled @ inner))

    operator = LinearOperator((n_features, n_features), matvec=multiply, dtype=np.float64)
    random = np.random.default_rng(0)
    # With few distinct eigenvalues, newer SciPy draws more random directions; the seed makes them reproducible.
    seed = {"rng": random} if "rng" in signature(eigsh).parameters else {}
    n_basis = min(n_features, max(4 * n_columns, 40))
    return eigsh(operator, k=n_columns, which="LA", v0=random.standard_normal(n_features), ncv=n_basis, **seed)[1]
