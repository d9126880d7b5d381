"""AHIHT: fast homotopy with one accepted step per lambda (Algorithm 2 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

from l20fs.solvers.homotopy import HomotopySolver, Trial


@dataclass(repr=False, eq=False, kw_only=True)
class AHIHT(HomotopySolver):
    """Take one thresholded gradient step per lambda: the fast homotopy of the paper.

    The result is not stationary at the last lambda: it is a few steps of thresholded gradient descent, and this early
    stop acts like shrinkage.

    Parameters
    ----------
    alpha_start : float or None, default=None
        Lambda of the first stage (lambda_0 in the paper), from which the path descends by ``rate``. None: where the first
        feature is about to enter.
    alpha_min : float or None, default=None
        Lambda at which the path ends, whatever number of features is asked for. None: it ends when so many are non-zero.
    rate : float, default=0.9
        Factor between two lambdas (rho in the paper), 0.999 at most.
    line_search_factor : float, default=2.0
        Factor by which the step parameter L grows after a rejected trial (gamma in the paper), 1.01 at least.
    eta : float or None, default=None
        Decrease that a step must bring, per half its squared length. None: 1e-4 times the starting L.
    lipschitz_start : float or None, default=None
        Starting value of L. None: the largest squared norm of a centred sample.
    init : {"zeros", "gaussian", "uniform"} or array of shape (n_targets, n_features), default="zeros"
        Where the path starts. The random starts are small against the threshold of the first lambda, since parts of W that
        do not change XW are never undone by a gradient step.
    ranking : {"entry", "norm"}, default="entry"
        Order of the features of the last lambda: by how early they came to stay, or by the norm of their weights.
    random_state : int, RandomState or None, default=None
        Seed of a random start.

    References
    ----------
    Sun and Yu, Robust multi-class feature selection via l2,0-norm regularization minimization (2020), Algorithm 2.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> selector = L20Selector(3, solver=AHIHT(rate=0.5))
    >>> selector.set_params(solver__rate=0.8).solver
    AHIHT(rate=0.8)
    """

    name = "ahiht"
    _max_steps = 1

    def _is_converged(self, trial: Trial) -> bool:
        return True
