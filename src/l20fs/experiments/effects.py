"""Effects of lambda, initial weights and solver on accuracy and sparsity: the numbers of figures and claims.

Accuracies are in %. All functions take *row tables*, see :mod:`l20fs.experiments.outcomes`.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pandas as pd

from l20fs.experiments.outcomes import check_rows, fit_times

#: Fraction of the whole decrease at which an objective counts as converged.
DONE = 0.99

#: Limit between lambda up to 0.01 and lambda = 0.1, which the paper compares.
SMALL_ALPHA = 0.05


def trials_with(rows: pd.DataFrame, *parameters: str) -> pd.DataFrame:
    """Return the trials with a column for each of some parameters of their choice; all must have the first one."""
    trials = check_rows(rows)[rows.fold.isna()]
    choices = [json.loads(choice) for choice in trials.choice]
    for parameter in parameters[:1]:
        if not all(parameter in choice for choice in choices):
            raise ValueError(f"Some rows have no {parameter!r} in their choice. Leave out methods without it.")
    return trials.assign(**{name: [choice.get(name) for choice in choices] for name in parameters})


def trials_of_classifier(rows: pd.DataFrame, classifier: str, *parameters: str) -> pd.DataFrame:
    """Return :func:`trials_with` of one classifier."""
    return trials_with(select_classifier(rows, classifier), *parameters)


def select_classifier(table: pd.DataFrame, classifier: str) -> pd.DataFrame:
    """Return the part of a table for one classifier, or raise an error if there is none."""
    found = table[table.classifier == classifier]
    if not len(found):
        known = ", ".join(table.classifier.unique()) or "none"
        raise ValueError(f"classifier={classifier!r} is not in the rows. Use one of {known}.")
    return found


def _at_size(trials: pd.DataFrame, n_features: int | None) -> pd.DataFrame:
    """Return the trials with this number of features; None: with the largest."""
    size = trials.n_features.max() if n_features is None else n_features
    if size not in set(trials.n_features):
        raise ValueError(f"n_features={n_features} is not in the rows. Use one of {sorted(trials.n_features.unique())}.")
    return trials[trials.n_features == size]


def _with_n_splits(table: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Add the number of splits of each data set."""
    return table.assign(n_splits=table.dataset.map(trials.groupby("dataset")["split"].nunique()))


# -------------------------------------------------------------------------------------------------------- behind figures


def accuracy_by_alpha(rows: pd.DataFrame, classifier: str, parameter: str = "alpha") -> pd.DataFrame:
    """Return the mean accuracy for every lambda and number of features.

    Parameters
    ----------
    rows : DataFrame
        Row table of one method whose ``choice`` has ``parameter``.
    classifier : str
    parameter : str, default="alpha"

    Returns
    -------
    DataFrame
        dataset, alpha, n_features, accuracy, n_splits.
    """
    trials = trials_of_classifier(rows, classifier, parameter).rename(columns={parameter: "alpha"})
    means = 100.0 * trials.groupby(["dataset", "alpha", "n_features"], sort=False)["accuracy"].mean()
    return _with_n_splits(means.reset_index(), trials)


def spread_by_start(rows: pd.DataFrame, classifier: str, n_features: int | None = None) -> pd.DataFrame:
    """Return means and deviations over repeated draws of the initial weights, by kind.

    Splits are averaged first, so that the deviations are due to the initial weights only.

    Parameters
    ----------
    rows : DataFrame
        Row table whose ``choice`` has ``init`` and, for random ones, ``random_state``.
    classifier : str
    n_features : int, optional
        Number of features; None: the largest in the rows.

    Returns
    -------
    DataFrame
        dataset, init, accuracy, accuracy_deviation, n_nonzero, n_nonzero_deviation, n_draws, n_features, n_splits.
    """
    trials = _at_size(trials_of_classifier(rows, classifier, "init", "random_state"), n_features)
    draws = trials.groupby(["dataset", "init", "random_state"], sort=False, dropna=False)
    values = draws.agg(accuracy=("accuracy", "mean"), n_nonzero=("n_nonzero", "mean")).astype("float64").reset_index()
    values["accuracy"] *= 100.0
    kinds = values.groupby(["dataset", "init"], sort=False)
    table = kinds.agg(
        accuracy=("accuracy", "mean"),
        accuracy_deviation=("accuracy", "std"),
        n_nonzero=("n_nonzero", "mean"),
        n_nonzero_deviation=("n_nonzero", "std"),
        n_draws=("accuracy", "count"),
    )
    return _with_n_splits(table.reset_index().assign(n_features=trials.n_features.max()), trials)


def means_by_solver(
    rows: pd.DataFrame, classifier: str, parameter: str = "alpha", n_features: int | None = None
) -> pd.DataFrame:
    """Return means and standard errors over the splits for every solver and lambda.

    Parameters
    ----------
    rows : DataFrame
        Row table with the solvers as methods, whose ``choice`` has ``parameter``.
    classifier : str
    parameter : str, default="alpha"
    n_features : int, optional
        Maximum number of features; None: the largest in the rows.

    Returns
    -------
    DataFrame
        dataset, method, alpha, accuracy, accuracy_error, n_nonzero, n_nonzero_error, n_features, n_splits.
    """
    trials = _at_size(trials_of_classifier(rows, classifier, parameter), n_features).rename(columns={parameter: "alpha"})
    trials = trials.assign(percent=100.0 * trials.accuracy, count=trials.n_nonzero.astype("float64"))
    groups = trials.groupby(["dataset", "method", "alpha"], sort=False, observed=True)
    table = groups.agg(
        accuracy=("percent", "mean"),
        accuracy_error=("percent", "sem"),
        n_nonzero=("count", "mean"),
        n_nonzero_error=("count", "sem"),
    )
    return _with_n_splits(table.reset_index().assign(n_features=trials.n_features.max()), trials)


def relative_objectives(traces: pd.DataFrame) -> pd.DataFrame:
    """Return traces in the order of the iterations, with each objective divided by its first value as ``relative``.

    Parameters
    ----------
    traces : DataFrame
        dataset, method, iteration, objective. The methods have different objectives, so that only relative decreases can be
        compared.
    """
    traces = traces.sort_values("iteration", kind="stable")
    first = traces.groupby(["dataset", "method"])["objective"].transform("first")
    return traces.assign(relative=traces.objective / first)


# --------------------------------------------------------------------------------------------------------- behind claims


def alpha_effects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the change of the accuracy over lambda up to 0.01, and from there to 0.1.

    Returns
    -------
    DataFrame
        classifier, dataset, median_change and largest_change over the numbers of features, last_step (missing if 0.1 was
        not tried).
    """
    means = _means(rows, "alpha", ["n_features"])
    flat, steep = means[means.alpha < SMALL_ALPHA], means[means.alpha > SMALL_ALPHA]
    case = ["classifier", "dataset"]
    changes = flat.groupby([*case, "n_features"])["accuracy"].agg(_range)
    level, last = (part.groupby(case)["accuracy"].mean() for part in (flat, steep))
    found = changes.groupby(case, sort=False).agg(median_change="median", largest_change="max")
    return found.assign(last_step=last.reindex(found.index) - level.reindex(found.index)).reset_index()


def start_effects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return classifier, dataset, largest difference between kinds of initial weights, fewest and most non-zero rows."""
    found = []
    for (classifier, dataset), group in _means(rows, "init", []).groupby(["classifier", "dataset"], sort=False):
        counts = group.groupby("init")["n_nonzero"].mean()
        found.append((classifier, dataset, _range(group.accuracy), counts.min(), counts.max()))
    return pd.DataFrame(found, columns=["classifier", "dataset", "difference", "fewest", "most"])


def iterations_needed(traces: pd.DataFrame) -> pd.DataFrame:
    """Return dataset, method, iterations until :data:`DONE` of the decrease, and all iterations."""
    found = []
    for (dataset, method), line in traces.groupby(["dataset", "method"], sort=False):
        line = line.sort_values("iteration")
        first, lowest = line.objective.iloc[0], line.objective.min()
        done = line.iteration[line.objective <= first - DONE * (first - lowest)].iloc[0]
        start = line.iteration.iloc[0]
        found.append((dataset, method, done - start, line.iteration.iloc[-1] - start))
    return pd.DataFrame(found, columns=["dataset", "method", "needed", "all"])


class MeanTimes(NamedTuple):
    """Mean seconds of a fit by method, the fastest first, over the data sets on which all of these methods were run."""

    seconds: pd.Series
    n_datasets: int


def mean_times(rows: pd.DataFrame) -> MeanTimes:
    """Return the mean times of the methods that were run on most data sets."""
    times = fit_times(rows)
    n_run = times.groupby("method")["dataset"].nunique()
    times = times[times.method.isin(n_run.index[n_run == n_run.max()])]
    means = times.groupby("method", sort=False)["seconds"].mean().sort_values()
    return MeanTimes(means, times.dataset.nunique())


class SolverContrast(NamedTuple):
    """Contrast of HIHT and AHIHT over data sets and lambdas below 0.1; ``forward`` is that of forward selection, if run.

    ``spread_*`` is the range of the accuracy over lambda, mean over data sets.
    """

    classifier: str
    n_cases: int
    n_sparser: int
    n_more_accurate: int
    mean_difference: float
    spread_ahiht: float
    spread_hiht: float
    forward: ForwardContrast | None


class ForwardContrast(NamedTuple):
    """Median numbers of non-zero rows, and the difference in accuracy of forward selection and AHIHT."""

    rows: float
    rows_ahiht: float
    rows_hiht: float
    difference: float


def solver_contrasts(rows: pd.DataFrame) -> list[SolverContrast]:
    """Compare HIHT with AHIHT for each classifier; nothing if one of them was not run."""
    means = _means(rows, "alpha", [])
    means = means[means.alpha < SMALL_ALPHA]
    if not {"HIHT", "AHIHT"} <= set(means.method):
        return []
    values = means.set_index(["classifier", "dataset", "alpha", "method"])[["accuracy", "n_nonzero"]]
    both = values.unstack("method").dropna()
    return [_contrast(str(name), group) for name, group in both.groupby("classifier", sort=False)]


def _contrast(classifier: str, group: pd.DataFrame) -> SolverContrast:
    counts, accuracy = group["n_nonzero"], group["accuracy"]
    difference = accuracy["AHIHT"] - accuracy["HIHT"]
    spreads = accuracy.groupby("dataset").agg(_range).mean()
    forward = None
    if "forward" in accuracy:
        medians = counts.median()
        gain = (accuracy["forward"] - accuracy["AHIHT"]).mean()
        forward = ForwardContrast(medians["forward"], medians["AHIHT"], medians["HIHT"], gain)
    return SolverContrast(
        classifier,
        len(group),
        int((counts["HIHT"] < counts["AHIHT"]).sum()),
        int((difference > 0).sum()),
        difference.mean(),
        spreads["AHIHT"],
        spreads["HIHT"],
        forward,
    )


def _means(rows: pd.DataFrame, parameter: str, by: list[str]) -> pd.DataFrame:
    """Return mean accuracy and mean number of non-zero rows for each value of a parameter."""
    trials = trials_with(rows, parameter)
    trials = trials.assign(n_nonzero=trials.n_nonzero.astype("float64"))
    groups = trials.groupby(["classifier", "dataset", "method", parameter, *by], sort=False, observed=True)
    means = groups[["accuracy", "n_nonzero"]].mean().reset_index()
    return means.assign(accuracy=100.0 * means.accuracy)


def _range(values: pd.Series) -> float:
    return float(values.max() - values.min())
