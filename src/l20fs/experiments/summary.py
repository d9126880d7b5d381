"""Summary of a reproduction: sentences and tables about computed numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pandas as pd

from l20fs.evaluation.metrics import METRICS
from l20fs.experiments.claims import CLAIMS, claims
from l20fs.experiments.outcomes import honest, optimism, optimistic
from l20fs.experiments.plan import Plan
from l20fs.experiments.published import (
    ABOVE,
    BELOW,
    PAPER_METHOD,
    REPRODUCED,
    SUBSTITUTES,
    beside_published,
    comparable,
    count_verdicts,
    first_places,
    n_printed,
    published,
)
from l20fs.experiments.repeats import OTHER_READING
from l20fs.experiments.statistics import RankTests, rank_tests, score_matrix
from l20fs.experiments.tables import CLASSIFIER_NAMES, frame_table, score_with_error
from l20fs.report.document import Block, Bullets, Heading, Paragraph
from l20fs.text import counted, joined, p_text

Case = tuple[str, str, str]

#: The method of the paper, and the baseline with all features.
OURS, BASELINE = PAPER_METHOD, "Baseline"

CLAIMS_TITLE = "What the paper reads from its figures"


def summary(
    rows: pd.DataFrame,
    plan: Plan | None = None,
    substitutes: Mapping[str, str] = SUBSTITUTES,
    repeated: pd.DataFrame | None = None,
    others: Mapping[str, pd.DataFrame] | None = None,
) -> list[Block]:
    """Return the summary: what was reproduced, what was not, and which differences are significant.

    Parameters
    ----------
    rows : DataFrame
        Row table.
    plan : Plan, optional
        Plan of the run; None: all cells that the paper prints, with ten splits.
    substitutes : mapping
        Substituted data sets, with a description.
    repeated : DataFrame, optional
        Result of :func:`~l20fs.experiments.repeats.repeats_beside_published`.
    others : mapping, optional
        Rows of the other plans by name, and "traces", for :func:`~l20fs.experiments.claims.claims`.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "srbct", "method": "l2,0-FS", "choice": "{}", "split": range(10), "fold": None,
    ...     "classifier": "knn", "n_features": 40, "accuracy": 1.0, "n_test": 19, "fit_seconds": 0.1, "n_nonzero": 40})
    >>> print(summary(rows)[2].text.split(". ")[1])
    1 of them can be compared, 1 are reproduced: 1 within two standard errors of the printed accuracy, 0 above
    """
    best, fair = optimistic(rows), honest(rows)
    compared = beside_published(best, substitutes)
    others = others or {}
    return [
        Heading("What the rows show", level=1),
        *_section("The paper's own method", _own_method(compared, substitutes)),
        *(_section("The same experiment ten times", _repeats(repeated)) if repeated is not None else ()),
        *_section("All methods beside the printed accuracies", _all_methods(comparable(compared))),
        *(_section(CLAIMS_TITLE, claims(others)) if set(others) & set(CLAIMS) else ()),
        *_section("Is one method better?", _ranking(best, fair)),
        *_section("How optimistic is the paper's protocol?", _optimism(optimism(best, fair))),
        *_section("The data", _data(rows, substitutes)),
        *_section("What was not run", _not_run(best, fair, plan)),
    ]


def _section(title: str, blocks: Iterator[Block]) -> Iterator[Block]:
    yield Heading(title)
    yield from blocks


# ------------------------------------------------------------------------------------------------------------- sections


def _own_method(compared: pd.DataFrame, substitutes: Mapping[str, str]) -> Iterator[Block]:
    cells = comparable(compared[compared.method == OURS])
    n_close, n_above = len(cells[cells.verdict == REPRODUCED]), len(cells[cells.verdict == ABOVE])
    yield Paragraph(
        f"The paper prints {n_printed(OURS, substitutes)} cells (data set and classifier) of {OURS} on data sets that are "
        f"not substituted. {len(cells)} of them can be compared, {n_close + n_above} are reproduced: {n_close} within two "
        f"standard errors of the printed accuracy, {n_above} above. Parameters and number of features are the best for the "
        "test part, as in the paper: optimistic."
    )
    misses = cells[cells.verdict == BELOW]
    if len(misses):
        yield Paragraph("Below:")
        yield Bullets(tuple(f"{_miss(row)}{_all_features(row, compared)}" for row in misses.itertuples()))


def _repeats(repeated: pd.DataFrame) -> Iterator[Block]:
    yield Paragraph(
        "A printed accuracy is the mean of ten random splits, and another ten give another mean. Here the experiment is "
        "made ten times, on splits of its own each time. The deviation between the ten is the standard error of one of them."
    )
    cells = comparable(repeated)
    for method, reading in (
        (OURS, "If λ of the grid is where the path ends, as in the code that the authors published later"),
        (OTHER_READING, "If λ of the grid is where the path begins, the only λ among the inputs of the printed algorithm"),
    ):
        own = cells[cells.method == method]
        if not len(own):
            continue
        close, misses = own[own.verdict != BELOW], own[own.verdict == BELOW]
        told = f": {len(close)} of {len(own)} printed accuracies are within two standard errors of one experiment, or below "
        yield Paragraph(f"{told}ours.{' The others:' if len(misses) else ''}", lead=reading)
        if len(misses):
            yield Bullets(tuple(_repeated_miss(row, cells) for row in misses.itertuples()))


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
    """Describe the accuracy with all features in the same cell: a gap without selection is not due to the selection."""
    same = compared[(compared.dataset == miss.dataset) & (compared.classifier == miss.classifier)]
    same = comparable(same[same.method == BASELINE])
    if not len(same):
        return ""
    row = next(same.itertuples())
    told = f" With all features, where nothing is selected: {_with_error(row)}, printed {row.printed:.2f}"
    return told + (", so that the gap is there before any selection." if row.verdict == BELOW else ".")


def _all_methods(cells: pd.DataFrame) -> Iterator[Block]:
    if not len(cells):
        yield Paragraph("There is no cell that could be set against a printed accuracy.")
        return
    caption = (
        "Cells by verdict (within two standard errors: reproduced), and the mean difference in points, ours minus printed."
    )
    yield frame_table(count_verdicts(cells), caption)
    for classifier, group in cells.groupby("classifier", sort=False, observed=True):
        yield Paragraph(_best_cells(group, str(classifier)))


def _best_cells(cells: pd.DataFrame, classifier: str) -> str:
    """Describe on how many sets the paper's method is first, in print and here."""
    found = first_places(cells, OURS)
    if not found.n_sets:
        return f"{_name(classifier)}: {OURS} was not run."
    return (
        f"{_name(classifier)}: of the methods above, {OURS} has the highest accuracy, alone or with others, on "
        f"{found.in_print} of {counted(found.n_sets, 'data set')} in print and on {found.here} here (optimistic both)."
    )


def _ranking(best: pd.DataFrame, fair: pd.DataFrame) -> Iterator[Block]:
    for classifier in best.classifier.unique():
        pairs = []
        for table in (best, fair):
            scores = score_matrix(table, classifier)
            lead = f"{_name(classifier)}, {'optimistic' if table is best else 'honest'}."
            if min(scores.shape) < 2:
                found = f"{counted(len(scores), 'data set')} with a value for each of {counted(scores.shape[1], 'method')}"
                yield Paragraph(f" Not tested: {found}.", lead)
                continue
            tests = rank_tests(scores)
            pairs.append(tests.pairs)
            yield Paragraph(f" {_tests(tests)}", lead)
        if len(pairs) == 2:
            common = [f"{better} is better than {worse}" for better, worse in pairs[0] if (better, worse) in pairs[1]]
            found = joined(common) if common else "nothing"
            yield Paragraph(f"{_name(classifier)}, significant under both protocols (Nemenyi): {found}.")


def _tests(tests: RankTests) -> str:
    listed = ", ".join(f"{method} {rank:.2f}" for method, rank in tests.ranks.items())
    test = tests.friedman
    sentences = [
        f"Mean ranks over {test.n_sets} data sets (1 is best): {listed}.",
        f"Friedman ({'exact' if test.is_exact else 'random orders'}): χ² = {test.statistic:.2f}, {p_text(test.p_value)}: "
        f"{'not all methods are alike' if tests.is_different else 'the methods cannot be told apart'} at {tests.level:g}.",
    ]
    if tests.is_different:
        sentences += [_nemenyi(tests), _wilcoxon(tests)]
    return " ".join(sentences)


def _nemenyi(tests: RankTests) -> str:
    worse: dict[str, list[str]] = {}
    for winner, loser in tests.pairs:
        worse.setdefault(winner, []).append(loser)
    found = "; ".join(f"{winner} is better than {joined(losers)}" for winner, losers in worse.items())
    return f"Nemenyi (ranks that are {tests.difference:.2f} apart differ): {found or 'no pair differs'}."


def _wilcoxon(tests: RankTests) -> str:
    pairs = tests.against_best
    test = f"Wilcoxon with Holm's correction, against {pairs.against.iloc[0]}, the first"
    least = pairs.least_p_holm.iloc[0]
    if least >= tests.level:
        return (
            f"{test}: with {tests.friedman.n_sets} data sets and {tests.friedman.n_methods} methods nothing can be found, "
            f"since even a method that wins on every set would have {p_text(least)}."
        )
    clear = pairs.method[pairs.p_holm < tests.level].tolist()
    return f"{test}: {f'different from {joined(clear)}' if clear else 'no method differs'}."


def _optimism(table: pd.DataFrame) -> Iterator[Block]:
    if not len(table):
        yield Paragraph("The honest protocol was not run, so that it is not known.")
        return
    caption = (
        "Mean accuracy in % over cells (data set and classifier) that have both, and what choosing on the test part adds."
    )
    yield frame_table(table, caption)


def _data(rows: pd.DataFrame, substitutes: Mapping[str, str]) -> Iterator[Block]:
    present = [name for name in rows.dataset.unique() if name in substitutes]
    if not present:
        yield Paragraph("No data set is a substitute.")
    for name in present:
        yield Paragraph(
            f"{name} is a substitute for the paper's data: {substitutes[name]}. Its accuracies are shown, and count where "
            "methods are compared with each other, but are never set against printed ones."
        )


def _not_run(best: pd.DataFrame, fair: pd.DataFrame, plan: Plan | None) -> Iterator[Block]:
    wanted = _planned(plan)
    n_splits = 10 if plan is None else plan.n_splits
    lines = []
    for protocol, table in (("optimistic", best), ("honest", fair)):
        counts = {(row.dataset, row.method, row.classifier): row.n_splits for row in table.itertuples()}
        missing = [case for case in wanted if case not in counts]
        if missing:
            lines.append(f"Not run ({protocol}): {_describe(missing, wanted)}.")
        few = [counts[case] for case in wanted if counts.get(case, n_splits) < n_splits]
        if few:
            lines.append(f"Fewer than {n_splits} splits ({protocol}): {counted(len(few), 'cell')}, the fewest {min(few)}.")
    yield Bullets(tuple(lines)) if lines else Paragraph("Everything was run.")


def _planned(plan: Plan | None) -> list[Case]:
    """Return the data sets, methods and classifiers of the plan, or of the paper."""
    if plan is None:
        return list(published()[["dataset", "method", "classifier"]].itertuples(index=False, name=None))
    return [(dataset, label, name) for dataset in plan.datasets for label in plan.labels for name in plan.classifiers]


# ---------------------------------------------------------------------------------------------------------------- words


def _describe(all_cases: list[Case], wanted: list[Case]) -> str:
    """Describe cases, with whole data sets and whole methods by name."""
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
    return score_with_error(row.accuracy, row.standard_error, METRICS["accuracy"])


def _with_features(n_features: object) -> str:
    return "" if pd.isna(n_features) else f" with {n_features}"
