"""One function per method: from a problem to the best k rows, for every k of its panels.

Each is a generator of ``(k, rows)`` in the order in which the package gets there, so that the clock can be read at each k.
A package that returns one support per run starts with the largest k: its time to that k is then of that run alone.
Packages are imported inside, so that one that is missing, or breaks on import, takes no other with it.

**Paths along lambda** start where the first row enters and walk down by a factor 0.955, each point from the solution of the
one before, until as many rows are non-zero as the largest panel asks for. The support for k is the k rows of largest norm at
the first point that has at least k non-zero rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from data import Problem

Panels = Iterator[tuple[int, np.ndarray]]
Select = Callable[[Problem], Panels]

RATE = 0.955
N_LAMBDAS = 300  # down to a millionth of the first lambda
THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))


def largest(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the k rows of largest score."""
    return np.argsort(-scores, kind="stable")[:k]


def read_path(norms_along_path: Iterator[np.ndarray], panels: tuple[int, ...]) -> Panels:
    """Watch the row norms from lambda to lambda, and yield each panel at the first lambda that has rows enough."""
    waiting = sorted(panels)
    n_rows = 0
    for norms in norms_along_path:
        n_rows = np.count_nonzero(norms)
        while waiting and n_rows >= waiting[0]:
            k = waiting.pop(0)
            yield k, largest(norms, k)
        if not waiting:
            return
    raise RuntimeError(f"the path ended with {n_rows} rows, short of {waiting[0]}")


def first_lambda(X: np.ndarray, Y: np.ndarray) -> float:
    """Return the lambda of ``1/(2N) ||XW - Y||^2 + lambda sum_j ||w_j||`` at which the first row enters."""
    return np.linalg.norm(X.T @ Y, axis=1).max() / len(X)


def walk(path: Callable[..., Any], problem: Problem, at_once: int = 1, **parameters: Any) -> Panels:
    """Follow a path function of scikit-learn's kind, ``at_once`` lambdas per call."""
    X, Y = problem.centred()
    lambdas = first_lambda(X, Y) * RATE ** np.arange(1, N_LAMBDAS + 1)

    def norms_along_path() -> Iterator[np.ndarray]:
        coef = None
        for start in range(0, N_LAMBDAS, at_once):
            coefs = path(X, Y, alphas=lambdas[start : start + at_once], coef_init=coef, **parameters)[1]
            coef = coefs[..., -1]
            yield from np.linalg.norm(coefs, axis=0).T

    return read_path(norms_along_path(), problem.panels)


def sklearn_multitask_lasso(problem: Problem) -> Panels:
    from sklearn.linear_model import lasso_path

    # A call per lambda costs what one call for all would: the checks are off, and X is neither copied nor scanned.
    return walk(lasso_path, problem, check_input=False)


def celer_mtl_path(problem: Problem) -> Panels:
    from celer.homotopy import mtl_path

    # Each call checks X and takes its norms anew. Four lambdas at once share that, and overshoot by three at most.
    return walk(mtl_path, problem, at_once=4)


def skglm_path(problem: Problem, X: np.ndarray, Y: np.ndarray, penalty: Any, first: float, **options: Any) -> Panels:
    """Do what ``MultiTaskBCD.path`` does, but look at the rows after each lambda."""
    from skglm.datafits import QuadraticMultiTask
    from skglm.solvers import MultiTaskBCD

    solver = MultiTaskBCD(fit_intercept=False, tol=1e-4, **options)  # the tolerance of its MultiTaskLasso

    def norms_along_path() -> Iterator[np.ndarray]:
        weights, fitted = np.zeros((X.shape[1], Y.shape[1])), np.zeros_like(Y)
        for step in range(1, N_LAMBDAS + 1):
            penalty.alpha = first * RATE**step
            weights = solver.solve(X, Y, QuadraticMultiTask(), penalty, weights, fitted)[0]
            yield np.linalg.norm(weights, axis=1)

    return read_path(norms_along_path(), problem.panels)


def skglm_multitask_lasso(problem: Problem) -> Panels:
    from skglm.penalties import L2_1

    X, Y = problem.centred()
    return skglm_path(problem, X, Y, L2_1(1.0), first_lambda(X, Y))


def skglm_block_mcp(problem: Problem) -> Panels:
    from skglm.penalties import BlockMCPenalty

    X, Y = problem.centred()
    X /= X.std(axis=0)  # gamma = 3 is meant for features of variance 1: below 1/3 the operator has the wrong sign
    return skglm_path(problem, X, Y, BlockMCPenalty(1.0, 3.0), first_lambda(X, Y))


def skglm_l2_05(problem: Problem) -> Panels:
    from skglm.penalties import L2_05

    X, Y = problem.centred()
    X /= X.std(axis=0)  # as for BlockMCP, and the supports are better for it
    first = (2 / 3 * first_lambda(X, Y)) ** 1.5  # the operator of l0.5 cuts at 3/2 lambda^(2/3)
    # Zero is a critical point of l2,0.5 at any lambda: only the fixed-point rule ever lets a row in.
    return skglm_path(problem, X, Y, L2_05(1.0), first, ws_strategy="fixpoint")


def adelie_multigaussian(problem: Problem) -> Panels:
    import adelie

    Y = problem.one_hot
    n_classes, most = Y.shape[1], max(problem.panels)

    def norms(betas: Any) -> np.ndarray:
        """The entries of a row of W lie side by side, in a sparse vector for each lambda."""
        return np.linalg.norm(betas.toarray().reshape(-1, n_classes), axis=1)

    # max_active_size would stop before the last panel is full, and early_exit where 90 % are explained.
    state = adelie.grpnet(
        np.asfortranarray(problem.X),
        adelie.glm.multigaussian(Y),
        lmda_path_size=N_LAMBDAS,
        min_ratio=RATE ** (N_LAMBDAS - 1),
        early_exit=False,
        exit_cond=lambda state: state.betas.shape[0] > 0 and np.count_nonzero(norms(state.betas[-1:])) >= most,
        n_threads=THREADS,
        progress_bar=False,
    )
    return read_path((norms(state.betas[i : i + 1]) for i in range(state.betas.shape[0])), problem.panels)


def abess_rows(problem: Problem, sizes: Any, **parameters: Any) -> np.ndarray:
    from abess import MultiTaskRegression

    model = MultiTaskRegression(support_size=sizes, thread=THREADS, **parameters).fit(problem.X, problem.one_hot)
    return np.flatnonzero(model.coef_.any(axis=1))


def abess_fits(problem: Problem) -> Panels:
    """Fit each k alone, from its own start."""
    for k in sorted(problem.panels, reverse=True):
        yield k, abess_rows(problem, k)


def abess_path(step: int) -> Select:
    """Fit the sizes up to k one after the other, each from the last; by loss alone the largest is the one returned."""

    def select(problem: Problem) -> Panels:
        for k in sorted(problem.panels, reverse=True):
            yield k, abess_rows(problem, range(k, 0, -step)[::-1], ic_type="loss")

    return select


def fastcan_greedy(problem: Problem) -> Panels:
    from fastcan import FastCan

    # Labels would be read as one numeric target.
    order = FastCan(max(problem.panels), verbose=0).fit(problem.X, problem.one_hot).indices_
    for k in problem.panels:
        yield k, order[:k]


def spams_somp(problem: Problem) -> Panels:
    import spams

    X, Y = problem.centred()
    X /= np.linalg.norm(X, axis=0)
    one_group = np.zeros(1, dtype=np.int32)
    for k in sorted(problem.panels, reverse=True):
        coef = spams.somp(Y, X, one_group, L=k, eps=0.0, numThreads=THREADS)
        yield k, np.unique(coef.indices)


def select_k_best(problem: Problem) -> Panels:
    from sklearn.feature_selection import SelectKBest, f_classif

    scores = SelectKBest(f_classif).fit(problem.X, problem.labels).scores_
    for k in problem.panels:
        yield k, largest(scores, k)


def rfe_ridge(problem: Problem) -> Panels:
    from sklearn.feature_selection import RFE
    from sklearn.linear_model import Ridge

    for k in sorted(problem.panels, reverse=True):
        selector = RFE(Ridge(), n_features_to_select=k, step=0.1).fit(problem.X, problem.one_hot)
        yield k, np.flatnonzero(selector.support_)


def ours(**parameters: Any) -> Select:
    """Fit once for the largest panel and read all panels from the path."""

    def select(problem: Problem) -> Panels:
        from l20fs import L20Selector

        path = L20Selector(max(problem.panels), **parameters).fit(problem.X, problem.labels).path_
        for k in problem.panels:
            # Swapped sets are not nested: the best of each size counts. A path may end early where the fit is perfect.
            is_set = parameters.get("solver") == "swap" and k in path.n_nonzero
            yield k, path.rows_at(k) if is_set else path.support(k)

    return select


@dataclass(frozen=True)
class Method:
    """How a method runs, which package has to be installed, and what it counts as."""

    select: Select
    package: str
    kind: Literal["ours", "row-sparse", "filter"] = "row-sparse"


PLAIN: dict[str, Any] = {"ridge": 0.0, "scale": "none", "class_weight": None}  # the objective that the losses are of

METHODS = {
    "ours, ridge 10, z-scores": Method(ours(ridge=10.0, scale="zscore"), "l20fs", "ours"),
    "ours, forward": Method(ours(solver="forward", **PLAIN), "l20fs", "ours"),
    "ours, swap": Method(ours(solver="swap", **PLAIN), "l20fs", "ours"),
    "ours, ahiht": Method(ours(solver="ahiht", **PLAIN), "l20fs", "ours"),
    "ours, hiht": Method(ours(solver="hiht", **PLAIN), "l20fs", "ours"),
    "abess, one fit per k": Method(abess_fits, "abess"),
    "abess, sizes 1, 2 .. k": Method(abess_path(1), "abess"),
    "abess, sizes 2, 4 .. k": Method(abess_path(2), "abess"),
    "adelie multigaussian": Method(adelie_multigaussian, "adelie"),
    "scikit-learn MultiTaskLasso": Method(sklearn_multitask_lasso, "scikit-learn"),
    "celer mtl_path": Method(celer_mtl_path, "celer"),
    "skglm MultiTaskLasso": Method(skglm_multitask_lasso, "skglm"),
    "skglm BlockMCP": Method(skglm_block_mcp, "skglm"),
    "skglm L2_05": Method(skglm_l2_05, "skglm"),
    "fastcan": Method(fastcan_greedy, "fastcan"),
    "spams somp": Method(spams_somp, "spams-bin"),
    "SelectKBest(f_classif)": Method(select_k_best, "scikit-learn", "filter"),
    "RFE(Ridge)": Method(rfe_ridge, "scikit-learn", "filter"),
}
