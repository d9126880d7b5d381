"""Scores of methods on data sets, under the optimistic protocol of the paper and under nested validation.

Both start from the same *row table*, a DataFrame with one row per trial (``fold`` missing) or inner fold of its training
part, and for each choice of parameters, number of features and classifier (:data:`COLUMNS`). Data sets, methods and
classifiers keep the order of their first appearance in the rows, which is that of the plan. The accuracy may be any other
metric: its column has the name of the metric, here and in what is made of the rows. Shares are in % in all but the rows.
"""

from __future__ import annotations

import pandas as pd

from l20fs.evaluation.metrics import Metric, metric_of

#: Columns of a row table with their types.
COLUMNS = {
    "dataset": "str",
    "method": "str",
    "choice": "str",
    "split": "int64",
    "fold": "Int64",
    "classifier": "str",
    "n_features": "int64",
    "accuracy": "float64",
    "n_test": "int64",
    "fit_seconds": "float64",
    "n_nonzero": "Int64",
}

#: Columns that identify a reported accuracy, and columns that are chosen for it.
CASE = ["dataset", "method", "classifier"]
CANDIDATE = ["choice", "n_features"]

#: Means that agree in this many digits are tied: sums of the same numbers in another order differ in the last digits.
DIGITS = 10


def check_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row table, or raise an error for missing columns, duplicate rows or invalid accuracies."""
    metric = metric_of(rows)
    absent = [name for name in COLUMNS if name not in rows and (name != "accuracy" or metric.name == "accuracy")]
    if absent:
        raise ValueError(f"The rows have no column {absent[0]!r}. A row table has {', '.join(COLUMNS)}.")
    twice = rows.duplicated([*CASE, *CANDIDATE, "split", "fold"])
    if twice.any():
        first = rows[twice].iloc[0]
        raise ValueError(
            f"{twice.sum()} rows occur twice, the first for {first.dataset}, {first.method}, {first.classifier}, split "
            f"{first.split}. Give each result once."
        )
    if metric.is_for_labels and metric.is_share:
        wrong = ~rows[metric.name].between(0, 1)
        if wrong.any():
            raise ValueError(f"{metric.name}={rows[metric.name][wrong].iloc[0]} is not a share. Give numbers from 0 to 1.")
    return rows


def optimistic(rows: pd.DataFrame) -> pd.DataFrame:
    """Report the best mean accuracy on the test parts, as the paper does, with choices made on them.

    Parameters
    ----------
    rows : DataFrame
        Row table; inner folds are ignored.

    Returns
    -------
    DataFrame
        dataset, method, classifier, accuracy and standard_error over the splits (in %), n_features, choice, protocol,
        n_splits. Ties go to fewer features, then to the first choice. Choices with missing splits are left out: a maximum
        over fewer splits is not comparable.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "srbct", "method": "RFS", "choice": "{}", "split": [0, 0, 1, 1], "fold": None,
    ...     "classifier": "knn", "n_features": [20, 40, 20, 40], "accuracy": [0.8, 0.9, 0.8, 1.0], "n_test": 10,
    ...     "fit_seconds": 0.1, "n_nonzero": None})
    >>> optimistic(rows)[["accuracy", "standard_error", "n_features"]].values.tolist()
    [[95.0, 5.0, 40.0]]
    """
    trials = _with_order(_trials(rows))
    candidates = _summarise(
        trials.groupby([*CASE, *CANDIDATE, "order"], sort=False, observed=True), [*CASE, *CANDIDATE, "order"]
    )
    metric = metric_of(rows)
    best = _first_of_best(candidates, CASE, metric.name, "n_splits", metric)
    return _in_order(best.assign(protocol="optimistic"), rows)


def honest(rows: pd.DataFrame) -> pd.DataFrame:
    """Report the score with all choices made on inner folds of the training part.

    Returns
    -------
    DataFrame
        As :func:`optimistic`; ``n_features`` is the median of the chosen numbers, ``choice`` the most frequent one, the
        first of them on a tie.

    See Also
    --------
    honest_choices : choices in every split.
    """
    groups = honest_choices(rows).sort_values("order", kind="stable").groupby(CASE, sort=False, observed=True)
    table = _summarise(groups, CASE)
    table["n_features"] = groups["n_features"].median().to_numpy(dtype="float64")
    table["choice"] = [_most_frequent(choices) for _, choices in groups["choice"]]
    return _in_order(table.assign(protocol="honest"), rows)


def honest_choices(rows: pd.DataFrame, fixed: tuple[str, ...] = ()) -> pd.DataFrame:
    """Choose in every split by the mean score over the inner folds of its training part.

    Ties go to fewer features, then to the first choice. Methods without a choice are used unchanged; splits without inner
    folds are left out, since a choice there would use the test samples.

    Parameters
    ----------
    rows : DataFrame
        Row table.
    fixed : tuple of str, default=()
        Columns that are not chosen: with ``("n_features",)`` a choice is made for every number of features.

    Returns
    -------
    DataFrame
        Rows of the chosen trials, one per data set, method, classifier and split (and ``fixed``), with the
        ``inner_accuracy`` of the choice (or ``inner_`` and the name of another metric), its number of folds, and the
        position of the choice in the plan (``order``).
    """
    rows, metric = _with_order(check_rows(rows)), metric_of(rows)
    trials, inner = rows[rows.fold.isna()], rows[rows.fold.notna()]
    groups = inner.groupby([*CASE, "split", *CANDIDATE], sort=False, observed=True)[metric.name]
    inner_score = f"inner_{metric.name}"
    means = groups.agg(**{inner_score: "mean", "n_folds": "count"}).reset_index()
    candidates = trials.merge(means, how="left", on=[*CASE, "split", *CANDIDATE])
    group = [*CASE, *fixed]
    identity = candidates.choice + candidates.n_features.astype(str)
    n_rivals = identity.groupby([candidates[name] for name in group], observed=True).transform("nunique")
    candidates = candidates[candidates[inner_score].notna() | (n_rivals == 1)]
    return _first_of_best(candidates, [*group, "split"], inner_score, "n_folds", metric)


def optimistic_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean score for every number of features, each method with the choice of its best mean."""
    trials = _trials(rows).merge(optimistic(rows)[[*CASE, "choice"]], on=[*CASE, "choice"])
    group = [*CASE, "n_features"]
    return _summarise(trials.groupby(group, sort=False, observed=True), group).assign(protocol="optimistic")


def honest_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean score for every number of features, with the choice made on inner folds for each of them."""
    group = [*CASE, "n_features"]
    chosen = honest_choices(rows, fixed=("n_features",))
    return _summarise(chosen.groupby(group, sort=False, observed=True), group).assign(protocol="honest")


def curves(rows: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """Return the mean score for every number of features under a protocol.

    Parameters
    ----------
    rows : DataFrame
        Row table.
    protocol : {"optimistic", "honest"}
        Whether the parameters of a method are the best on the test parts, as in the paper, or chosen for every number of
        features on inner folds.
    """
    make = {"optimistic": optimistic_curves, "honest": honest_curves}
    if protocol not in make:
        raise ValueError(f"protocol={protocol!r} is unknown. Use {' or '.join(map(repr, make))}.")
    return make[protocol](rows)


def optimism(best: pd.DataFrame, fair: pd.DataFrame) -> pd.DataFrame:
    """Compare the protocols over the cases with both, on the same splits.

    Parameters
    ----------
    best, fair : DataFrame
        Results of :func:`optimistic` and :func:`honest`.

    Returns
    -------
    DataFrame
        method, mean accuracy ``optimistic`` and ``honest``, mean ``difference``, ``largest`` difference, number of
        ``cells``. Empty if no case has both.
    """
    both = best.merge(fair, on=CASE, suffixes=("_best", "_fair"))
    both = both[both.n_splits_best == both.n_splits_fair]
    both = both.assign(optimism=both.accuracy_best - both.accuracy_fair)
    groups = both.groupby("method", sort=False, observed=True)
    return groups.agg(
        optimistic=("accuracy_best", "mean"),
        honest=("accuracy_fair", "mean"),
        difference=("optimism", "mean"),
        largest=("optimism", "max"),
        cells=("optimism", "count"),
    ).reset_index()


def total_fit_seconds(rows: pd.DataFrame) -> float:
    """Return the time of all fits, including those on inner folds."""
    inner = rows[rows.fold.notna()].drop_duplicates(["method", "choice", "split", "fold"])
    return float(fits(rows).fit_seconds.sum() + inner.fit_seconds.sum())


def fits(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per fit on a trial, which is evaluated for many sizes and by several classifiers."""
    return _trials(rows).drop_duplicates(["dataset", "method", "choice", "split"])


def fit_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Return dataset, method, seconds (the mean over choices and splits), least, most and n_fits."""
    groups = fits(rows).groupby(["dataset", "method"], sort=False, observed=True)["fit_seconds"]
    return groups.agg(seconds="mean", least="min", most="max", n_fits="count").reset_index()


def _trials(rows: pd.DataFrame) -> pd.DataFrame:
    return check_rows(rows)[rows.fold.isna()]


def _with_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Number the choices of each method in the order of their first row."""
    keys = pd.MultiIndex.from_frame(rows[["method", "choice"]])
    return rows.assign(order=pd.factorize(keys)[0])


def _summarise(groups: pd.api.typing.DataFrameGroupBy, by: list[str]) -> pd.DataFrame:
    """Return score and standard error of each group, shares in %, and the number of splits behind them."""
    metric = metric_of(groups.obj)
    unit = 100.0 if metric.is_share else 1.0
    columns = {metric.name: "mean", "standard_error": "sem", "n_splits": "count"}
    table = groups[metric.name].agg(**columns).reset_index()
    table[metric.name] = (unit * table[metric.name]).round(DIGITS)
    table["standard_error"] = (unit * table.standard_error).round(DIGITS)
    return table


def _first_of_best(candidates: pd.DataFrame, group: list[str], score: str, support: str, metric: Metric) -> pd.DataFrame:
    """Return the row with the best score of each group; ties go to fewer features, then to the first choice.

    Only rows with the largest ``support`` in their group are compared.
    """
    ranked = candidates.assign(
        _support=-candidates[support].fillna(0), _score=-metric.sign * candidates[score].round(DIGITS)
    )
    ranked = ranked.sort_values(["_support", "_score", "n_features", "order"], kind="stable")
    first = ranked.drop_duplicates(group).sort_index()
    return first.drop(columns=["_support", "_score"]).reset_index(drop=True)


def _most_frequent(choices: pd.Series) -> str:
    """Return the most frequent value; ties go to the first to appear."""
    return str(choices.value_counts(sort=False).idxmax())


def _in_order(table: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a report, its cases in the order of the rows."""
    columns = [*CASE, metric_of(rows).name, "standard_error", "n_features", "choice", "protocol", "n_splits"]
    places = rows.drop_duplicates(CASE)[CASE].reset_index(drop=True)
    return places.merge(table[columns], on=CASE).astype({"n_features": "float64"})[columns]
