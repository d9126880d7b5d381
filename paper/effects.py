"""Effects of lambda, initial weights and solver on accuracy and sparsity: the numbers of figures and claims.

Accuracies are in %. All functions but those on traces take rows of :func:`paper.plans.run_plan`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from l20fs.compare.runner import Dataset
from l20fs.design import finish
from l20fs.methods import ESFS, RPMFS
from l20fs.objective.problem import make_problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.homotopy import Iterate, target_grid
from l20fs.typing import Array
from paper.plans import OURS, choice_of
from paper.settings import paper_settings

#: Share of the whole decrease at which an objective counts as converged.
DONE = 0.99

#: Limit between lambda up to 0.01 and lambda = 0.1, which the paper compares.
SMALL_ALPHA = 0.05

#: Data sets of the traces, lambda of l2,0-FS in them, number of features of the other methods, and most iterations.
TRACED, ALPHA, SIZE, MOST_STEPS = ("leukemia", "prostate"), 1e-4, 100, 200


def trials_with(rows: pd.DataFrame, **parameters: str) -> pd.DataFrame:
    """Return the trials, accuracies in %, with a column for each of some parameters of their settings."""
    trials = rows[rows.fold.isna()]
    columns = {column: choice_of(trials, name) for column, name in parameters.items()}
    return trials.assign(accuracy=100.0 * trials.accuracy, n_nonzero=trials.n_nonzero.astype("float64"), **columns)


def accuracy_by_alpha(rows: pd.DataFrame) -> pd.DataFrame:
    """Return dataset, classifier, alpha, n_features, accuracy: the mean for every lambda and number of features."""
    trials = trials_with(rows, alpha="solver__alpha_min")
    return trials.groupby(["dataset", "classifier", "alpha", "n_features"], sort=False)["accuracy"].mean().reset_index()


def alpha_effects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the change of the accuracy over lambda up to 0.01, and from there to 0.1.

    Returns
    -------
    DataFrame
        classifier, dataset, median_change and largest_change over the numbers of features, last_step.
    """
    means = accuracy_by_alpha(rows)
    case, is_flat = ["classifier", "dataset"], means.alpha < SMALL_ALPHA
    changes = means[is_flat].groupby([*case, "n_features"], sort=False)["accuracy"].agg(_range)
    table = changes.groupby(case, sort=False).agg(median_change="median", largest_change="max")
    level, last = (means[chosen].groupby(case)["accuracy"].mean() for chosen in (is_flat, ~is_flat))
    return table.assign(last_step=last - level).reset_index()


def spread_by_start(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means and deviations over repeated draws of the initial weights, by their kind.

    Splits are averaged first, so that the deviations are due to the initial weights only.

    Returns
    -------
    DataFrame
        dataset, classifier, init, accuracy, accuracy_deviation, n_nonzero, n_nonzero_deviation, n_draws.
    """
    trials = trials_with(rows, init="solver__init", draw="solver__random_state")
    case = ["dataset", "classifier", "init"]
    draws = trials.groupby([*case, "draw"], sort=False, dropna=False)[["accuracy", "n_nonzero"]].mean()
    columns = {
        "accuracy": ("accuracy", "mean"),
        "accuracy_deviation": ("accuracy", "std"),
        "n_nonzero": ("n_nonzero", "mean"),
        "n_nonzero_deviation": ("n_nonzero", "std"),
        "n_draws": ("accuracy", "count"),
    }
    return draws.groupby(case, sort=False).agg(**columns).reset_index()


def start_effects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return classifier, dataset, largest difference between kinds of initial weights, fewest and most non-zero rows."""
    kinds = spread_by_start(rows).groupby(["classifier", "dataset"], sort=False)
    return kinds.agg(difference=("accuracy", _range), fewest=("n_nonzero", "min"), most=("n_nonzero", "max")).reset_index()


def means_by_solver(rows: pd.DataFrame) -> pd.DataFrame:
    """Return dataset, classifier, method, alpha, and means and standard errors of accuracy and n_nonzero."""
    groups = trials_with(rows, alpha="solver__alpha_min").groupby(["dataset", "classifier", "method", "alpha"], sort=False)
    columns = {
        "accuracy": ("accuracy", "mean"),
        "accuracy_error": ("accuracy", "sem"),
        "n_nonzero": ("n_nonzero", "mean"),
        "n_nonzero_error": ("n_nonzero", "sem"),
    }
    return groups.agg(**columns).reset_index()


def solver_contrasts(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Compare HIHT, AHIHT and forward selection over data sets and lambdas below 0.1, for each classifier.

    ``spread_*`` is the range of the accuracy over lambda, mean over data sets; ``rows_*`` are median numbers of non-zero
    rows; ``forward_gain`` is the difference in accuracy of forward selection and AHIHT.
    """
    means = means_by_solver(rows)
    means = means[means.alpha < SMALL_ALPHA]
    found = []
    for classifier, group in means.groupby("classifier", sort=False):
        cases = group.set_index(["dataset", "alpha", "method"])[["accuracy", "n_nonzero"]].unstack("method")
        accuracy, counts = cases["accuracy"], cases["n_nonzero"]
        difference = accuracy["AHIHT"] - accuracy["HIHT"]
        spreads = accuracy.groupby("dataset").agg(_range).mean()
        medians = counts.median()
        found.append(
            {
                "classifier": classifier,
                "n_cases": len(cases),
                "n_sparser": int((counts["HIHT"] < counts["AHIHT"]).sum()),
                "n_more_accurate": int((difference > 0).sum()),
                "mean_difference": difference.mean(),
                "spread_ahiht": spreads["AHIHT"],
                "spread_hiht": spreads["HIHT"],
                "rows_forward": medians["forward"],
                "rows_ahiht": medians["AHIHT"],
                "rows_hiht": medians["HIHT"],
                "forward_gain": (accuracy["forward"] - accuracy["AHIHT"]).mean(),
            }
        )
    return found


def fit_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Return dataset, method, seconds (the mean over settings and splits), least and most."""
    fits = rows[rows.fold.isna()].drop_duplicates(["dataset", "method", "choice", "split"])
    groups = fits.groupby(["dataset", "method"], sort=False)["fit_seconds"]
    return groups.agg(seconds="mean", least="min", most="max").reset_index()


def _range(values: pd.Series) -> float:
    return float(values.max() - values.min())


# ------------------------------------------------------------------------------------------------------------------ traces


def trace_objectives(datasets: Sequence[Dataset]) -> pd.DataFrame:
    """Return dataset, method, iteration, objective, and ``relative``: the objective divided by its first value.

    l2,0-FS is AHIHT with the authors' constants: its objective is that of its last lambda at every step. "HIHT, one lambda"
    iterates at that lambda only, where every step must decrease the objective. The methods have different objectives, so
    that only relative decreases can be compared.
    """
    rows = []
    for name, X, y, *_ in datasets:
        one_hot = np.eye(int(y.max()) + 1)[y]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = {
                OURS: trace_homotopy(X, one_hot, max_steps=1),
                "HIHT, one lambda": trace_homotopy(X, one_hot, max_steps=MOST_STEPS, one_lambda=True),
                "RPMFS": RPMFS(SIZE).fit(X, y).objective_.tolist(),
                "ESFS": ESFS(SIZE).fit(X, y).objective_.tolist(),
            }
        rows += [
            (name, method, iteration, float(value), float(value) / float(values[0]))
            for method, values in found.items()
            for iteration, value in enumerate(values[: MOST_STEPS + 1])
        ]
    return pd.DataFrame(rows, columns=["dataset", "method", "iteration", "objective", "relative"])


def trace_homotopy(X: Array, one_hot: Array, *, max_steps: int, one_lambda: bool = False) -> list[float]:
    """Return f + lambda * (number of rows) at the start and after every accepted step, for the last lambda."""
    problem, solver = make_problem(X, one_hot), paper_settings("ahiht")["solver"]
    iterate = Iterate(problem, RowPenalty.plain(X.shape[1]), solver)
    lambdas = [ALPHA] if one_lambda else target_grid(solver.alpha_start, ALPHA, solver.rate)
    values = [problem.null_loss]
    for lam in lambdas:
        for _ in range(max_steps):
            trial = finish(iterate.step(lam))
            if trial.squared_length == 0.0:
                break
            values.append(iterate.loss() + ALPHA * len(iterate.rows))
    return values


def iterations_needed(traces: pd.DataFrame) -> pd.DataFrame:
    """Return dataset, method, iterations until :data:`DONE` of the decrease, and all iterations."""
    found = []
    for (dataset, method), line in traces.groupby(["dataset", "method"], sort=False):
        first, lowest = line.objective.iloc[0], line.objective.min()
        needed = line.iteration[line.objective <= first - DONE * (first - lowest)].iloc[0]
        found.append((dataset, method, needed, line.iteration.iloc[-1]))
    return pd.DataFrame(found, columns=["dataset", "method", "needed", "all"])
