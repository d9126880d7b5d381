"""What the paper says about its figures, and what the same figures show here. Every number is computed from the rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pandas as pd

from l20fs.experiments.outcomes import check_rows, fit_times
from l20fs.experiments.tables import CLASSIFIER_NAMES, seconds

#: An objective has come down when this share of its whole decrease is done.
DONE = 0.99


def claims(rows: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Say for every figure that there are rows for what the paper reads from its own and what is seen here.

    Parameters
    ----------
    rows : mapping
        Row tables by the name of their plan (lambda, initialisation, time, solvers), and "traces".
    """
    for name, say in SAYINGS.items():
        if name in rows and len(rows[name]):
            claim, *seen = say(rows[name])
            yield claim
            yield "\n".join(f"- {sentence}" for sentence in seen)


def about_lambda(rows: pd.DataFrame) -> Iterator[str]:
    """Compare accuracies for lambda up to 0.01, and those with those for 0.1."""
    yield "**Lambda.** The paper sees almost no fluctuation from 1e-5 to 1e-2 and the worst accuracy at 1e-1."
    means = _means(rows, "alpha", ["n_features"])
    flat = means[means.alpha < 0.05]
    spread = flat.groupby(["classifier", "dataset", "n_features"])["accuracy"].agg(
        lambda values: values.max() - values.min()
    )
    steep = means[means.alpha > 0.05].groupby(["classifier", "dataset"])["accuracy"].mean()
    level = flat.groupby(["classifier", "dataset"])["accuracy"].mean()
    for (classifier, dataset), values in spread.groupby(["classifier", "dataset"], sort=False):
        told = f"{dataset}, {_name(classifier)}: from 1e-5 to 1e-2 the accuracy changes by {values.median():.1f} points "
        told += f"(median over the numbers of features, at most {values.max():.1f})"
        if (classifier, dataset) in steep.index:
            change = steep[classifier, dataset] - level[classifier, dataset]
            told += f", at 1e-1 it is {abs(change):.1f} points {'lower' if change < 0 else 'higher'}"
        yield f"{told}."


def about_initialisation(rows: pd.DataFrame) -> Iterator[str]:
    """Compare three kinds of starting points."""
    yield "**Starting point.** The paper sees the same results for zeros, Gaussian and uniform numbers."
    means = _means(rows, "init", [])
    for (classifier, dataset), group in means.groupby(["classifier", "dataset"], sort=False):
        gap = group.accuracy.max() - group.accuracy.min()
        counts = group.groupby("init")["n_nonzero"].mean()
        yield (
            f"{dataset}, {_name(classifier)}: {gap:.2f} points between the kinds; {counts.min():.0f} to {counts.max():.0f} "
            "rows are not zero."
        )


def about_convergence(traces: pd.DataFrame) -> Iterator[str]:
    """Count the iterations until most of the decrease is done."""
    yield "**Convergence.** The paper sees its method come down faster than RPMFS and ESFS."
    for dataset, group in traces.groupby("dataset", sort=False):
        counts = []
        for method, line in group.groupby("method", sort=False):
            line = line.sort_values("iteration")
            first, lowest = line.objective.iloc[0], line.objective.min()
            done = line.iteration[line.objective <= first - DONE * (first - lowest)].iloc[0]
            counts.append(f"{method} {done - line.iteration.iloc[0]} of {line.iteration.iloc[-1] - line.iteration.iloc[0]}")
        yield f"{dataset}: iterations until {DONE:.0%} of the decrease is done: {', '.join(counts)}."


def about_time(rows: pd.DataFrame) -> Iterator[str]:
    """Give mean times over the data sets."""
    yield ("**Time.** The paper sees RFS, RPMFS and AHIHT take much less time than RLSR, ESFS and HIHT.")
    times = fit_times(rows)
    whole = times.groupby("method")["dataset"].nunique()
    times = times[times.method.isin(whole.index[whole == whole.max()])]
    means = times.groupby("method", sort=False)["seconds"].mean().sort_values()
    listed = ", ".join(f"{method} {seconds(value)} s" for method, value in means.items())
    yield f"Mean over {times.dataset.nunique()} data sets: {listed}."
    if {"HIHT", "AHIHT"} <= set(means.index):
        yield f"HIHT takes {means['HIHT'] / means['AHIHT']:.1f} times as long as AHIHT."


def about_solvers(rows: pd.DataFrame) -> Iterator[str]:
    """Compare HIHT with AHIHT where lambda is below 0.1."""
    yield (
        "**HIHT against AHIHT.** The paper sees, for lambda below 0.1, fewer rows with HIHT and a higher accuracy with "
        "AHIHT, which it also finds less sensitive to lambda."
    )
    means = _means(rows, "alpha", [])
    below = means[means.alpha < 0.05].set_index(["classifier", "dataset", "alpha", "method"])[["accuracy", "n_nonzero"]]
    both = below.unstack("method").dropna()
    if not len(both) or not {"HIHT", "AHIHT"} <= set(below.index.get_level_values("method")):
        return
    for classifier, group in both.groupby("classifier", sort=False):
        rows_of, accuracy = group["n_nonzero"], group["accuracy"]
        difference = accuracy["AHIHT"] - accuracy["HIHT"]
        spreads = accuracy.groupby("dataset").agg(lambda values: values.max() - values.min()).mean()
        told = (
            f"{_name(classifier)}: of {len(group)} cases (data set and lambda) HIHT has fewer rows in "
            f"{(rows_of['HIHT'] < rows_of['AHIHT']).sum()}, AHIHT is more accurate in {(difference > 0).sum()}, by "
            f"{difference.mean():.1f} points in the mean; over lambda the accuracy changes by {spreads['AHIHT']:.1f} points "
            f"(AHIHT) and {spreads['HIHT']:.1f} (HIHT)"
        )
        if "forward" in accuracy:
            told += (
                f". Forward selection has {rows_of['forward'].median():.0f} rows (AHIHT {rows_of['AHIHT'].median():.0f}, "
                f"HIHT {rows_of['HIHT'].median():.0f}; medians) and is "
                f"{_versus((accuracy['forward'] - accuracy['AHIHT']).mean())} AHIHT"
            )
        yield f"{told}."


#: What is said about the rows of each plan.
SAYINGS = {
    "lambda": about_lambda,
    "initialisation": about_initialisation,
    "traces": about_convergence,
    "time": about_time,
    "solvers": about_solvers,
}


def _means(rows: pd.DataFrame, parameter: str, by: list[str]) -> pd.DataFrame:
    """Return mean accuracy in % and mean number of non-zero rows for each value of a parameter."""
    trials = check_rows(rows)[rows.fold.isna()]
    values = [json.loads(choice)[parameter] for choice in trials.choice]
    trials = trials.assign(**{parameter: values, "n_nonzero": trials.n_nonzero.astype("float64")})
    groups = trials.groupby(["classifier", "dataset", "method", parameter, *by], sort=False, observed=True)
    means = groups[["accuracy", "n_nonzero"]].mean().reset_index()
    return means.assign(accuracy=100.0 * means.accuracy)


def _versus(difference: float) -> str:
    return f"{abs(difference):.1f} points {'more' if difference > 0 else 'less'} accurate than"


def _name(classifier: object) -> str:
    return CLASSIFIER_NAMES.get(str(classifier), str(classifier))
