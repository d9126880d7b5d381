"""What the rows show, in plain words. Nothing is said here that is not computed from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pandas as pd

from l20fs.experiments import statistics
from l20fs.experiments.claims import SAYINGS, claims
from l20fs.experiments.outcomes import honest, optimistic
from l20fs.experiments.plan import Plan
from l20fs.experiments.published import ABOVE, BELOW, PAPER_METHOD, REPRODUCED, SUBSTITUTES, beside_published, published
from l20fs.experiments.repeats import OTHER_READING
from l20fs.experiments.tables import CLASSIFIER_NAMES, frame_table, to_markdown
from l20fs.text import counted, joined, p_text

Case = tuple[str, str, str]

#: The method of the paper, and what uses all features.
OURS, BASELINE = PAPER_METHOD, "Baseline"


def summary(
    rows: pd.DataFrame,
    plan: Plan | None = None,
    substitutes: Mapping[str, str] = SUBSTITUTES,
    repeated: pd.DataFrame | None = None,
    others: Mapping[str, pd.DataFrame] | None = None,
) -> str:
    """Say in Markdown what was reproduced, what was not, and which differences between methods are real.

    Parameters
    ----------
    rows : DataFrame
        A row table.
    plan : Plan, optional
        What was to be run; None: what the paper prints, with ten splits.
    substitutes : mapping
        The data sets that are not the paper's, and what they are.
    repeated : DataFrame, optional
        What :func:`~l20fs.experiments.repeats.repeats_beside_published` returns.
    others : mapping, optional
        Rows of the other plans by name, and "traces": what :func:`~l20fs.experiments.claims.claims` takes.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "srbct", "method": "l2,0-FS", "choice": "{}", "split": range(10), "fold": None,
    ...     "classifier": "knn", "n_features": 40, "accuracy": 1.0, "n_test": 19, "fit_seconds": 0.1, "n_nonzero": 40})
    >>> print(summary(rows).splitlines()[4].split(". ")[1])
    1 of them can be compared, 1 are reproduced: 1 within two standard errors of the printed accuracy, 0 above
    """
    best, fair = optimistic(rows), honest(rows)
    compared = beside_published(best, substitutes)
    parts = [
        "# What the rows show",
        _section("The paper's own method", _own_method(compared, substitutes)),
        _section("The same experiment ten times", _repeats(repeated)) if repeated is not None else "",
        _section("All methods beside the printed accuracies", _all_methods(compared)),
        _section("What the paper reads from its figures", claims(others or {})) if set(others or {}) & set(SAYINGS) else "",
        _section("Is one method better?", _ranking(best, fair)),
        _section("How optimistic is the paper's protocol?", _optimism(best, fair)),
        _section("The data", _data(rows, substitutes)),
        _section("What was not run", _not_run(best, fair, plan)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, paragraphs: Iterator[str]) -> str:
    return "\n\n".join([f"## {title}", *paragraphs])


# ------------------------------------------------------------------------------------------------------------- sections


def _own_method(compared: pd.DataFrame, substitutes: Mapping[str, str]) -> Iterator[str]:
    printed = published()
    n_printed = ((printed.method == OURS) & ~printed.dataset.isin(list(substitutes))).sum()
    cells = compared[(compared.method == OURS) & compared.verdict.isin([REPRODUCED, ABOVE, BELOW])]
    n_close, n_above = (cells.verdict == REPRODUCED).sum(), (cells.verdict == ABOVE).sum()
    yield (
        f"The paper prints {n_printed} cells (data set and classifier) of {OURS} on data sets that are not substituted. "
        f"{len(cells)} of them can be compared, {n_close + n_above} are reproduced: {n_close} within two standard errors of "
        f"the printed accuracy, {n_above} above. Parameters and number of features are the best for the test part, as in "
        "the paper: optimistic."
    )
    misses = cells[cells.verdict == BELOW]
    if len(misses):
        yield "Below:"
        yield "\n".join(f"- {_miss(row)}{_all_features(row, compared)}" for row in misses.itertuples())


def _repeats(repeated: pd.DataFrame) -> Iterator[str]:
    yield (
        "A printed accuracy is the mean of ten random splits, and another ten give another mean. Here the experiment is "
        "made ten times, on splits of its own each time. The deviation between the ten is the standard error of one of them."
    )
    cells = repeated[repeated.verdict.isin([REPRODUCED, ABOVE, BELOW])]
    for method, reading in (
        (OURS, "If λ of the grid is where the path ends, as in the code that the authors published later"),
        (OTHER_READING, "If λ of the grid is where the path begins, the only λ among the inputs of the printed algorithm"),
    ):
        own = cells[cells.method == method]
        if not len(own):
            continue
        close, misses = own[own.verdict != BELOW], own[own.verdict == BELOW]
        told = f"**{reading}**: {len(close)} of {len(own)} printed accuracies are within two standard "
        told += "errors of one experiment, or below ours."
        yield told + (" The others:" if len(misses) else "")
        if len(misses):
            yield "\n".join(f"- {_repeated_miss(row, cells)}" for row in misses.itertuples())


def _repeated_miss(row: pd.Series, cells: pd.DataFrame) -> str:
    told = f"{row.dataset}, {_name(row.classifier)}: {_with_error(row)}, the highest {row.highest:.2f}; "
    told += f"printed {row.printed:.2f}."
    same = cells[(cells.dataset == row.dataset) & (cells.classifier == row.classifier) & (cells.method == BASELINE)]
    if len(same):
        base = next(same.itertuples())
        told += f" With all features {_with_error(base)}, printed {base.printed:.2f}"
        told += ": the gap is there before any selection." if base.verdict == BELOW else "."
    return told


def _miss(row: pd.Series) -> str:
    return (
        f"{row.dataset}, {_name(row.classifier)}: {_with_error(row)} with {row.n_features:g} features; "
        f"printed {row.printed:.2f}{_with_features(row.printed_n_features)}; difference {row.difference:+.2f}."
    )


def _all_features(miss: pd.Series, compared: pd.DataFrame) -> str:
    """Say what all features give in the same cell: a gap that is there before any selection does not come from it."""
    same = compared[(compared.dataset == miss.dataset) & (compared.classifier == miss.classifier)]
    same = same[(same.method == BASELINE) & same.verdict.isin([REPRODUCED, ABOVE, BELOW])]
    if not len(same):
        return ""
    row = next(same.itertuples())
    told = f" With all features, where nothing is selected: {_with_error(row)}, printed {row.printed:.2f}"
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
        f"{_name(classifier)}: of the methods above, {OURS} has the highest accuracy, alone or with others, on {n_printed} "
        f"of {counted(len(sets), 'data set')} in print and on {n_here} here (optimistic both)."
    )


def _is_first(cells: pd.DataFrame, column: str) -> bool:
    value = cells.loc[cells.method == OURS, column].iloc[0]
    return bool(value >= cells[column].max() - 1e-9)


def _ranking(best: pd.DataFrame, fair: pd.DataFrame) -> Iterator[str]:
    for classifier in best.classifier.unique():
        pairs = []
        for table in (best, fair):
            scores = statistics.score_matrix(table, classifier)
            title = f"**{_name(classifier)}, {'optimistic' if table is best else 'honest'}.**"
            if min(scores.shape) < 2:
                found = f"{counted(len(scores), 'data set')} with a value for each of {counted(scores.shape[1], 'method')}"
                yield f"{title} Not tested: {found}."
                continue
            pairs.append(statistics.different_pairs(scores))
            yield f"{title} {_tests(scores)}"
        if len(pairs) == 2:
            common = [f"{better} is better than {worse}" for better, worse in pairs[0] if (better, worse) in pairs[1]]
            found = joined(common) if common else "nothing"
            yield f"{_name(classifier)}, significant under both protocols (Nemenyi): {found}."


def _tests(scores: pd.DataFrame) -> str:
    ranks = statistics.mean_ranks(scores).sort_values(kind="stable")
    listed = ", ".join(f"{method} {rank:.2f}" for method, rank in ranks.items())
    test = statistics.friedman(scores)
    is_different = test.f_p_value < statistics.LEVEL
    sentences = [
        f"Mean ranks over {test.n_sets} data sets (1 is best): {listed}.",
        f"Friedman: χ² = {test.statistic:.2f}, {p_text(test.p_value)}; Iman-Davenport: F = {test.f_statistic:.2f}, "
        f"{p_text(test.f_p_value)}: {'not all methods are alike' if is_different else 'the methods cannot be told apart'} "
        f"at {statistics.LEVEL:g}.",
    ]
    if is_different:
        sentences += [_nemenyi(scores), _wilcoxon(scores)]
    return " ".join(sentences)


def _nemenyi(scores: pd.DataFrame) -> str:
    difference = statistics.critical_difference(scores.shape[1], len(scores))
    worse: dict[str, list[str]] = {}
    for winner, loser in statistics.different_pairs(scores):
        worse.setdefault(winner, []).append(loser)
    found = "; ".join(f"{winner} is better than {joined(losers)}" for winner, losers in worse.items())
    return f"Nemenyi (ranks that are {difference:.2f} apart differ): {found or 'no pair differs'}."


def _wilcoxon(scores: pd.DataFrame) -> str:
    pairs = statistics.wilcoxon_holm(scores)
    test = f"Wilcoxon with Holm's correction, against {pairs.against.iloc[0]}, the first"
    least = pairs.least_p_holm.iloc[0]
    if least >= statistics.LEVEL:
        return (
            f"{test}: with {len(scores)} data sets and {scores.shape[1]} methods nothing can be found, since even a method "
            f"that wins on every set would have {p_text(least)}."
        )
    clear = pairs.method[pairs.p_holm < statistics.LEVEL].tolist()
    return f"{test}: {f'different from {joined(clear)}' if clear else 'no method differs'}."


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


def _data(rows: pd.DataFrame, substitutes: Mapping[str, str]) -> Iterator[str]:
    present = [name for name in rows.dataset.unique() if name in substitutes]
    if not present:
        yield "No data set is a substitute."
    for name in present:
        yield (
            f"{name} is a substitute for the paper's data: {substitutes[name]}. Its accuracies are shown, and count where "
            "methods are compared with each other, but are never set against printed ones."
        )


def _not_run(best: pd.DataFrame, fair: pd.DataFrame, plan: Plan | None) -> Iterator[str]:
    wanted = _planned(plan)
    n_splits = 10 if plan is None else plan.n_splits
    lines = []
    for protocol, table in (("optimistic", best), ("honest", fair)):
        counts = {(row.dataset, row.method, row.classifier): row.n_splits for row in table.itertuples()}
        missing = [case for case in wanted if case not in counts]
        if missing:
            lines.append(f"- Not run ({protocol}): {_describe(missing, wanted)}.")
        few = [counts[case] for case in wanted if counts.get(case, n_splits) < n_splits]
        if few:
            lines.append(f"- Fewer than {n_splits} splits ({protocol}): {counted(len(few), 'cell')}, the fewest {min(few)}.")
    yield "\n".join(lines) if lines else "Everything was run."


def _planned(plan: Plan | None) -> list[Case]:
    """Return data set, method and classifier of what was to be run: by the plan, or by the paper."""
    if plan is None:
        return list(published()[["dataset", "method", "classifier"]].itertuples(index=False, name=None))
    return [(dataset, label, name) for dataset in plan.datasets for label in plan.labels for name in plan.classifiers]


# ---------------------------------------------------------------------------------------------------------------- words


def _describe(all_cases: list[Case], wanted: list[Case]) -> str:
    """Say which cases, and whole data sets and whole methods by their name alone."""
    parts, cases = [], all_cases
    for place, words in ((0, "all methods"), (1, "all data sets")):
        missing, planned = (Counter(case[place] for case in these) for these in (all_cases, wanted))
        whole = [name for name in missing if missing[name] == planned[name] and any(case[place] == name for case in cases)]
        if whole:
            parts.append(f"{joined(whole)} ({words})")
            cases = [case for case in cases if case[place] not in whole]
    return "; ".join(parts + [f"{method} on {dataset} with {_name(classifier)}" for dataset, method, classifier in cases])


def _name(classifier: str) -> str:
    return CLASSIFIER_NAMES.get(classifier, classifier)


def _with_error(row: pd.Series) -> str:
    return f"{row.accuracy:.2f} ± {row.standard_error:.2f}"


def _with_features(n_features: object) -> str:
    return "" if pd.isna(n_features) else f" with {n_features}"
