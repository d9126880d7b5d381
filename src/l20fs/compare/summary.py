"""Summary of a comparison on one data set: the table of methods, the answer in one sentence, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.utils.validation import has_fit_parameter

from l20fs.compare.evaluators import TITLES
from l20fs.compare.outcomes import CASE, choose, compare_with_best, curves, honest, stability
from l20fs.compare.runner import FEWEST_TESTED, Dataset, Settings
from l20fs.evaluation.metrics import Metric, metric_of
from l20fs.text import counted, joined, listed, number_with_error

#: Level of the test behind the answer, and its name.
LEVEL = 0.05
TEST = f"corrected resampled t-test with Holm's correction, level {LEVEL:g}"

#: Smaller errors would be written as 0.00, and are left out: splits that agree prove no certainty.
LEAST_ERROR = 0.005


def comparison_table(rows: pd.DataFrame, data: Dataset) -> pd.DataFrame:
    """Return one row per classifier and method, the best of each classifier first; ties go to fewer features."""
    metric, chosen = metric_of(rows), choose(rows)
    table = honest(rows).merge(stability(chosen, data.X.shape[1]), on=CASE)
    seconds = rows[rows.fold.isna()].groupby("method")["fit_seconds"].mean()
    table = table.merge(seconds.rename("seconds"), on="method")
    parts = []
    for name in table.classifier.unique():
        part = table[table.classifier == name].sort_values("n_features", kind="stable")
        part = part.sort_values(metric.name, ascending=metric.sign < 0, kind="stable")
        tests = compare_with_best(part.method.tolist(), chosen[chosen.classifier == name], len(data.y))
        parts.append(part.merge(tests, how="left", on="method"))
    columns = ["method", "classifier", metric.name, "standard_error", "below_best", "p_value", "n_features", "choice"]
    columns += ["stability", "stability_lower", "stability_upper", "seconds"]
    return pd.concat(parts, ignore_index=True)[columns].rename(columns={"choice": "parameters"})


def comparison_curves(rows: pd.DataFrame, data: Dataset) -> pd.DataFrame:
    """Return score and stability of every method and classifier for every number of features."""
    agreement = stability(choose(rows, fixed=["n_features"]), data.X.shape[1], [*CASE, "n_features"])
    return curves(rows).merge(agreement).drop(columns="dataset")


def find_answer(table: pd.DataFrame) -> str:
    """Return the best method of all, if the test tells it apart from the others."""
    metric = metric_of(table)
    best = table.loc[(metric.sign * table[metric.name]).fillna(-np.inf).idxmax()]
    others = table[(table.classifier == best.classifier) & (table.method != best.method)]
    unit = " %" if metric.is_share else ""
    reached = f"{score_text(best[metric.name], best.standard_error, metric)}{unit} with {best.n_features:g} features"
    reached += f", judged by {TITLES[best.classifier]}"
    if others.empty:
        return f"{best.method}: {metric.title} {reached}."
    unclear = others.method[~(others.p_value < LEVEL)].tolist()
    if not unclear:
        return (
            f"{best.method} is best: its mean {metric.title} ({reached}) is better than that of any other method ({TEST})."
        )
    names = joined(unclear) if len(unclear) <= 3 else f"{', '.join(unclear[:2])} and {len(unclear) - 2} more"
    extreme = "highest" if metric.sign > 0 else "lowest"
    return (
        f"No method is clearly best: {best.method} has the {extreme} mean {metric.title} ({reached}), but {names} cannot be "
        f"told apart from it ({TEST})."
    )


def remarks(data: Dataset, settings: Settings) -> Iterator[str]:
    """Yield remarks on missing values, nuisances, groups and classes that are never tested."""
    n_gaps = int(np.isnan(data.X if data.unprepared is None else data.unprepared.X).any(axis=0).sum())
    if n_gaps:
        yield (
            f"{counted(n_gaps, 'feature')} with missing values, which were filled in by what the training samples of every "
            "split say."
        )
    if data.nuisances is not None:
        able = [method.label for method in settings.methods if has_fit_parameter(method.selector(), "adjust_for")]
        yield f"Adjusted for nuisances (--adjust-for): {listed(able)}; other methods cannot."
    if data.groups is not None:
        yield f"Samples of a group are on the same side of every split; there are {len(np.unique(data.groups))} groups."
        return
    labels, counts = np.unique(data.strata, return_counts=True)
    rare = [f"{str(label)!r} ({count})" for label, count in zip(labels, counts, strict=True) if count < FEWEST_TESTED]
    if rare:
        yield (
            f"Never tested, since all their samples are needed for training (fewer than {FEWEST_TESTED}): "
            f"{'class' if len(rare) == 1 else 'classes'} {joined(rare)}."
        )


def score_text(score: float, error: float, metric: Metric) -> str:
    """Write a score and its standard error, percents with two decimals.

    Examples
    --------
    >>> from l20fs.evaluation.metrics import METRICS
    >>> score_text(97.5, 1.25, METRICS["accuracy"]), score_text(43.2109, 0.5, METRICS["mae"])
    ('97.50 ± 1.25', '43.21 ± 0.50')
    """
    if not metric.is_share:
        return number_with_error(score, error)
    return f"{score:.2f} ± {error:.2f}" if error >= LEAST_ERROR else f"{score:.2f}"
