r"""Extended BIC along a path, for a choice of the number of features without cross-validation.

If the targets were Gaussian with one variance around a linear function of k features out of d, twice the negative logarithm
of the likelihood would be :math:`N r \log(\mathrm{RSS}_k / N r)` up to a constant, where RSS is the residual sum of squares
over N samples of r linearly independent targets (one-hot labels of C classes have C - 1, or C without an intercept). Each of
the k r coefficients costs :math:`\log N`, as in BIC, and the choice of k out of d features costs twice the logarithm of the
number of such choices (Chen and Chen 2008, with their gamma = 1):

.. math:: \mathrm{EBIC}(k) = N r \log\frac{\mathrm{RSS}_k}{N r}
          + \frac{N}{N - k - 2} \Bigl( k r \log N + 2 \log\binom dk \Bigr)

The factor :math:`N / (N - k - 2)` is the small-sample correction of AICc (Hurvich and Tsai 1989). It matters here: with few
samples and thousands of features the residual of the best k falls faster than the plain penalty grows, and without the
factor as many features as samples would be selected from pure noise. Labels are not Gaussian, so that this is a rule of
thumb; :class:`~l20fs.L20SelectorCV` measures the score.

With sample weights N is their sum, since a weight of 2 is the same as the sample twice. Weights that are normalised to
another sum, such as 1, are refused where no feature could be chosen rather than rescaled: their sum is the only thing that
tells how much evidence there is, and a guess of it would decide the size.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from scipy.special import gammaln

from l20fs.objective.least_squares import LeastSquares
from l20fs.typing import Array


def ebic(
    problem: LeastSquares, rows: Array, *, ends: Array | None = None, n_candidates: int | None = None, n_fixed: int = 0
) -> Array:
    """Return the extended BIC of the first 0, 1, 2, ... of the features ``rows``, up to the number of samples.

    Parameters
    ----------
    problem : LeastSquares
    rows : array of feature indices
    ends : array, optional
        With groups: the number of ``rows`` in the first 0, 1, 2, ... groups.
    n_candidates : int, optional
        Number of features, or groups, that could be selected; all that vary by default.
    n_fixed : int
        Number of features, or groups, that are always selected. Smaller sizes have an infinite criterion.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((200, 30))
    >>> Y = X[:, :3] @ np.diag([3.0, 2.0, 1.0]) + np.random.default_rng(1).standard_normal((200, 3))
    >>> int(np.argmin(ebic(LeastSquares(X, Y), np.arange(8))))
    3
    """
    n_samples = problem.design.sample_weights.total
    refuse_few_samples(n_samples)
    n_targets = int(np.linalg.matrix_rank(problem.targets @ problem.targets.T, rtol=1e-9, hermitian=True))
    n_candidates = int(np.count_nonzero(problem.design.varies)) if n_candidates is None else n_candidates
    residuals = _residuals(problem, rows)
    n_rows = np.arange(len(residuals)) if ends is None else ends
    n_rows = n_rows[n_rows < min(n_samples - 2.0, len(residuals))]
    n_chosen = np.arange(len(n_rows)) - n_fixed
    is_allowed = n_chosen >= 0
    n_chosen = np.maximum(n_chosen, 0)
    log_choices = gammaln(n_candidates + 1.0) - gammaln(n_chosen + 1.0) - gammaln(n_candidates - n_chosen + 1.0)
    price = n_samples / (n_samples - n_rows - 2.0) * (n_targets * n_rows * np.log(n_samples) + 2.0 * log_choices)
    n_numbers = n_samples * n_targets
    return np.where(is_allowed, n_numbers * np.log(residuals[n_rows] / n_numbers) + price, np.inf)


def refuse_few_samples(n_samples: float) -> None:
    """Raise an error for a number of samples, or sum of their weights, at which the criterion is finite for no feature."""
    if n_samples <= 3.0:
        raise ValueError(
            f"The extended BIC counts {n_samples:.3g} samples (the sum of sample_weight, if given) and needs more than 3. "
            "Use sample_weight / sample_weight.mean() if its sum has no meaning, or give a number of features."
        )


def _residuals(problem: LeastSquares, rows: Array) -> Array:
    """Return the residual sums of squares of least squares on the first 0, 1, 2, ... rows, without a ridge term."""
    without_ridge = copy(problem)
    without_ridge.ridge = 0.0
    triangle, targets = without_ridge.factor(rows)
    energy = 2.0 * problem.null_loss
    # A row of the triangle is the part of its column orthogonal to those before it; one of rounding errors explains nothing.
    lengths = np.abs(np.diagonal(triangle))
    brings = lengths > 1e-10 * np.linalg.norm(triangle, axis=0)[: len(lengths)]
    explained = np.cumsum(np.where(brings, np.square(targets).sum(axis=1), 0.0))
    # The residual of a perfect fit is a rounding error; the floor keeps its size from deciding.
    return np.maximum(np.concatenate([[energy], energy - explained]), np.finfo(np.float64).eps * energy)
