"""What the rows show, in plain words. Nothing is said here that is not computed from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import pandas as pd

from l20fs.experiments import statistics
from l20fs.experiments.outcomes import honest, optimistic
from l20fs.experiments.plan import Plan
from l20fs.experiments.published import (
    ABOVE,
    BELOW,
    ONE_SPLIT,
    REPRODUCED,
    SUBSTITUTES,
    beside_published,
    published,
)
from l20fs.experiments.tables import CLASSIFIER_NAMES, frame_table, to_markdown

#: The method of the paper, and what uses all features.
OURS, BASELINE = "l2,0-FS", "Baseline"


def summary(rows: pd.DataFrame, plan: Plan | None = None, substitutes: Collection[str] = SUBSTITUTES) -> str:
    """Say in Markdown what was reproduced, what was not, and which differences between methods are real.

    Parameters
    ----------
    rows : DataFrame
        A row table.
    plan : Plan, optional
        What was to be run; None: what the paper prints, with ten splits.
    substitutes : collection of str
        The data sets that are not the paper's.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "srbct", "method": "l2,0-FS", "choice": "{}", "split": range(10), "fold": None,
    ...     "classifier": "knn", "n_features": 40, "accuracy": 1.0, "n_test": 19, "fit_seconds": 0.1, "n_nonzero": 40})
    >>> print(summary(rows).splitlines()[4])
    1 of 1 cell (data set and classifier) of l2,0-FS is reproduced: 1 within two standard errors of the printed accuracy, 0 above.
    """
    best, fair = optimistic(rows), honest(rows)
    compared = beside_published(best, substitutes)
    parts = [
        "# What the rows show",
        _section("The paper's own method", _own_method(compared)),
        _section("All methods beside the printed accuracies", _all_methods(compared)),
        _section("Is one method better?", _ranking(best, fair)),
        _section("How optimistic is the paper's protocol?", _optimism(best, fair)),
        _section("The data", _data(rows, substitutes)),
        _section("What was not run", _not_run(rows, best, fair, plan)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, paragraphs: Iterator[str]) -> str:
    return "\n\n".join([f"## {title}", *paragraphs])


# ------------------------------------------------------------------------------------------------------------- sections


def _own_method(compared: pd.DataFrame) -> Iterator[str]:
    cells = compared[(compared.method == OURS) & compared.verdict.isin([REPRODUCED, ABOVE, BELOW])]
    if not len(cells):
        yield f"There is no cell of {OURS} that could be set against a printed accuracy."
        return
    n_close, n_above = (cells.verdict == REPRODUCED).sum(), (cells.verdict == ABOVE).sum()
    yield (
        f"{n_close + n_above} of {_count(len(cells), 'cell')} (data set and classifier) of {OURS} "
        f"{'is' if len(cells) == 1 else 'are'} reproduced: {n_close} within two standard errors of the printed accuracy, "
        f"{n_above} above. Parameters and number of features are the best for the test part, as in the paper: optimistic."
    )
    misses = cells[cells.verdict == BELOW]
    if not len(misses):
        yield "No cell is below."
        return
    yield "Below:"
    yield "\n".join(f"- {_miss(row)}{_all_features(row, compared)}" for row in misses.itertuples())


def _miss(row: pd.Series) -> str:
    return (
        f"{row.dataset}, {_name(row.classifier)}: {row.accuracy:.2f} ± {row.standard_error:.2f} with {row.n_features:g} features; "
        f"printed {row.printed:.2f}{_with_features(row.printed_n_features)}; difference {row.difference:+.2f}."
    )


def _all_features(miss: pd.Series, compared: pd.DataFrame) -> str:
    """Say what all features give in the same cell: a gap that is there before any selection does not come from it."""
    same = compared[(compared.dataset == miss.dataset) & (compared.classifier == miss.classifier)]
    same = same[(same.method == BASELINE) & same.verdict.isin([REPRODUCED, ABOVE, BELOW])]
    if not len(same):
        return ""
    row = next(same.itertuples())
    told = f" With all features, where nothing is selected: {row.accuracy:.2f} ± {row.standard_error:.2f}, printed {row.printed:.2f}"
    return told + (", so that the gap is there before any selection." if row.verdict == BELOW else ".")


def _all_methods(compared: pd.DataFrame) -> Iterator[str]:
    cells = compared[compared.verdict.isin([REPRODUCED, ABOVE, BELOW])]
    if not len(cells):
        yield "There is no cell that could be set against a printed accuracy."
        return
    groups = cells.groupby("method", sort=False, observed=True)
    counts = groups["verdict"].value_counts().unstack(fill_value=0).reindex(columns=[REPRODUCED, ABOVE, BELOW], fill_value=0)
    counts = counts.reindex(cells.method.unique()).reset_index()
    counts["mean_difference"] = groups["difference"].mean().reindex(counts.method).to_numpy()
    caption = (
        "Cells by verdict (within two standard errors: reproduced), and the mean difference in points, ours minus printed."
    )
    yield to_markdown(frame_table(counts, caption)).rstrip()
    for classifier, group in cells.groupby("classifier", sort=False, observed=True):
        yield _best_cells(group, str(classifier))


def _best_cells(cells: pd.DataFrame, classifier: str) -> str:
    """Say on how many sets the paper's method is first, in print and here, among the same methods."""
    sets = [dataset for dataset, group in cells.groupby("dataset", sort=False) if OURS in set(group.method)]
    if not sets:
        return f"{_name(classifier)}: {OURS} was not run."
    n_printed = sum(_is_first(cells[cells.dataset == dataset], "printed") for dataset in sets)
    n_here = sum(_is_first(cells[cells.dataset == dataset], "accuracy") for dataset in sets)
    return (
        f"{_name(classifier)}: of the methods above, {OURS} has the highest accuracy, alone or with others, on {n_printed} of "
        f"{_count(len(sets), 'data set')} in print and on {n_here} here (optimistic both)."
    )


def _is_first(cells: pd.DataFrame, column: str) -> bool:
    value = cells.loc[cells.method == OURS, column].iloc[0]
    return bool(value >= cells[column].max() - 1e-9)


def _ranking(best: pd.DataFrame, fair: pd.DataFrame) -> Iterator[str]:
    for table in (best, fair):
        for classifier in table.classifier.unique():
            scores = statistics.score_matrix(table, classifier)
            title = f"**{_name(classifier)}, {table.protocol.iloc[0]}.**"
            if min(scores.shape) < 2:
                yield f"{title} Too few data sets have a value for every method: {_count(len(scores), 'data set')}."
                continue
            yield f"{title} {_tests(scores)}"


def _tests(scores: pd.DataFrame) -> str:
    ranks = statistics.mean_ranks(scores).sort_values(kind="stable")
    listed = ", ".join(f"{method} {rank:.2f}" for method, rank in ranks.items())
    test = statistics.friedman(scores)
    if test.f_p_value >= statistics.LEVEL:
        verdict = "the methods cannot be told apart"
    else:
        verdict = "not all methods are alike"
    difference = statistics.critical_difference(test.n_methods, test.n_sets)
    worse = [method for method, rank in ranks.items() if rank - ranks.iloc[0] >= difference]
    pairs = statistics.wilcoxon_holm(scores)
    clear = pairs[pairs.p_holm < statistics.LEVEL]
    sentences = [
        f"Mean ranks over {test.n_sets} data sets (1 is best): {listed}.",
        f"Friedman: χ² = {test.statistic:.2f}, p = {_p(test.p_value)}; Iman-Davenport: F = {test.f_statistic:.2f}, "
        f"p = {_p(test.f_p_value)}: {verdict} at {statistics.LEVEL:g}.",
        f"Nemenyi: ranks that are {difference:.2f} apart differ; from {ranks.index[0]}, the first, {_differ(worse)}.",
        f"Wilcoxon with Holm's correction, against {pairs.against.iloc[0]}: {_differ(list(clear.method))}.",
    ]
    if pairs.least_p_holm.iloc[0] >= statistics.LEVEL:
        sentences.append(
            f"With {test.n_sets} data sets and {test.n_methods} methods it cannot find any first difference: a method that wins "
            f"on every set would have p = {_p(pairs.least_p_holm.iloc[0])}."
        )
    return " ".join(sentences)


def _optimism(best: pd.DataFrame, fair: pd.DataFrame) -> Iterator[str]:
    names = ["dataset", "method", "classifier"]
    both = best.merge(fair, on=names, suffixes=("_best", "_fair"))
    both = both[both.n_splits_best == both.n_splits_fair]
    if not len(both):
        yield "The honest protocol was not run, so that it is not known."
        return
    both["optimism"] = both.accuracy_best - both.accuracy_fair
    groups = both.groupby("method", sort=False, observed=True)
    table = groups.agg(
        optimistic=("accuracy_best", "mean"),
        honest=("accuracy_fair", "mean"),
        difference=("optimism", "mean"),
        largest=("optimism", "max"),
        cells=("optimism", "count"),
    ).reset_index()
    caption = (
        "Mean accuracy in % over cells (data set and classifier) that have both, and what choosing on the test part adds."
    )
    yield to_markdown(frame_table(table, caption)).rstrip()


def _data(rows: pd.DataFrame, substitutes: Collection[str]) -> Iterator[str]:
    present = [name for name in rows.dataset.unique() if name in substitutes]
    if not present:
        yield "No data set is a substitute."
        return
    yield (
        f"{_and(present)}: a substitute for the paper's data (same name, other values). Its accuracies are shown, and count where "
        f"methods are compared with each other, but are never set against printed ones."
    )


def _not_run(rows: pd.DataFrame, best: pd.DataFrame, fair: pd.DataFrame, plan: Plan | None) -> Iterator[str]:
    printed = published()
    datasets, methods = printed.dataset.unique().tolist(), printed.method.unique().tolist()
    classifiers, n_splits = printed.classifier.unique().tolist(), 10
    if plan is not None:
        datasets, methods, classifiers, n_splits = (
            list(plan.datasets),
            list(plan.labels),
            list(plan.classifiers),
            plan.n_splits,
        )
    wanted = [(d, m, c) for d in datasets for m in methods for c in classifiers]
    reports: list[tuple[str, Callable[[tuple[str, str, str]], bool]]] = []
    for protocol, table in (("optimistic", best), ("honest", fair)):
        n_found = {(r.dataset, r.method, r.classifier): r.n_splits for r in table.itertuples()}
        reports.append((f"Not run ({protocol})", lambda case, n_found=n_found: case not in n_found))
        reports.append(
            (
                f"With fewer than {n_splits} splits ({protocol})",
                lambda case, n_found=n_found: 0 < n_found.get(case, 0) < n_splits,
            )
        )
    lines = [
        f"- {title}: {_describe([case for case in wanted if is_missing(case)], datasets, methods, classifiers)}"
        for title, is_missing in reports
        if any(map(is_missing, wanted))
    ]
    if (rows.groupby("dataset")["split"].nunique() == 1).any():
        lines.append(f'- Some data sets have one split only and no standard error: their verdict is "{ONE_SPLIT}".')
    yield "\n".join(lines) if lines else "Everything was run."


# ---------------------------------------------------------------------------------------------------------------- words


def _describe(cases: list[tuple[str, str, str]], datasets: list[str], methods: list[str], classifiers: list[str]) -> str:
    """Say which cases, whole data sets and whole methods by their name alone."""
    if len(cases) == len(datasets) * len(methods) * len(classifiers):
        return "everything."
    parts = []
    rest = list(cases)
    for place, names, size in (
        (0, datasets, len(methods) * len(classifiers)),
        (1, methods, len(datasets) * len(classifiers)),
    ):
        whole = [name for name in names if sum(case[place] == name for case in cases) == size]
        if whole:
            parts.append(f"{_and(whole)} ({'all methods' if place == 0 else 'on all data sets'})")
            rest = [case for case in rest if case[place] not in whole]
    by_pair: dict[tuple[str, str], list[str]] = {}
    for dataset, method, classifier in rest:
        by_pair.setdefault((dataset, method), []).append(classifier)
    for (dataset, method), found in by_pair.items():
        parts.append(
            f"{method} on {dataset}" + ("" if len(found) == len(classifiers) else f" with {_and(map(_name, found))}")
        )
    return "; ".join(parts) + "."


def _differ(methods: list[str]) -> str:
    return f"{_and(methods)} differ{'s' if len(methods) == 1 else ''}" if methods else "none differs"


def _and(names: Collection[str] | Iterator[str]) -> str:
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _name(classifier: str) -> str:
    return CLASSIFIER_NAMES.get(classifier, classifier)


def _with_features(n_features: object) -> str:
    return "" if pd.isna(n_features) else f" with {n_features}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
