"""Tables of the experiments as Markdown, and the page that shows them beside the printed results."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from l20fs.compare.evaluators import TITLES
from l20fs.compare.outcomes import honest
from l20fs.text import joined, p_text
from paper import effects, outcomes
from paper.plans import LAMBDA_FIRST, OURS, PLANS
from paper.sets import catalogue

#: Smaller standard errors would be written as 0.00, and are left out.
LEAST_ERROR = 0.005

Tables = dict[str, pd.DataFrame]


def make_tables(rows: Mapping[str, pd.DataFrame]) -> Tables:
    """Return the tables of the plans that were run, by name.

    Parameters
    ----------
    rows : mapping of str to DataFrame
        Rows by the name of their plan, and "traces".
    """
    tables: Tables = {"datasets": datasets_table()}
    if "accuracy" in rows:
        best = tables["optimistic"] = outcomes.optimistic(rows["accuracy"])
        tables["beside"] = outcomes.beside_published(best)
        if rows["accuracy"].fold.notna().any():
            tables["honest"] = honest(rows["accuracy"])
            tables["optimism"] = outcomes.optimism(best, tables["honest"])
    if "readings" in rows:
        tables["readings"] = outcomes.optimistic(rows["readings"])
    if "repeats" in rows:
        tables["repeats"] = outcomes.repeated_beside_published(rows["repeats"])
    if "lambda" in rows:
        tables["lambda"] = effects.alpha_effects(rows["lambda"])
    if "initialisation" in rows:
        tables["initialisation"] = effects.start_effects(rows["initialisation"])
    if "solvers" in rows:
        tables["solvers"] = pd.DataFrame(effects.solver_contrasts(rows["solvers"]))
    if "time" in rows:
        tables["time"] = effects.fit_times(rows["time"])
    if "traces" in rows:
        tables["convergence"] = effects.iterations_needed(rows["traces"])
    return tables


def datasets_table() -> pd.DataFrame:
    """Return the data sets of the paper, and what is used for them."""
    return pd.DataFrame(
        {
            "dataset": entry.name,
            "content": entry.title,
            "samples": entry.n_samples,
            "features": entry.n_features,
            "classes": len(entry.class_names),
            "in the paper": "{} x {}".format(*(entry.paper_shape or (entry.n_samples, entry.n_features))),
            "ours": f"a substitute: {entry.differs}" if entry.differs else "the paper's values",
        }
        for entry in catalogue().values()
    )


def write_page(tables: Tables, figures: list[str], *, is_quick: bool = False) -> str:
    """Return the page as Markdown: every result beside the printed one."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # Markdown
    )
    environment.filters.update(markdown=markdown, p=p_text, s=seconds)
    given = {
        "tables": tables,
        "figures": figures,
        "is_quick": is_quick,
        "plans": PLANS,
        "titles": TITLES,
        "ours": OURS,
        "lambda_first": LAMBDA_FIRST,
        "substitutes": outcomes.SUBSTITUTES,
        "substituted": joined(list(outcomes.SUBSTITUTES)),
        "done": f"{effects.DONE:.0%}",
        "level": outcomes.LEVEL,
    }
    functions = (accuracy_matrix, verdicts_table, first_places, rank_tests, misses, times_matrix, means_of_times)
    text = environment.get_template("README.md.j2").render(**given, **{each.__name__: each for each in functions})
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


# ------------------------------------------------------------------------------------------------------ parts of the page


def accuracy_matrix(table: pd.DataFrame, classifier: str) -> pd.DataFrame:
    """Return accuracies as data sets x methods, the best two of each row marked.

    Of equal accuracies, as displayed, the one with fewer features is better, as in the paper; ties in both share the mark.
    """
    shown = table[table.classifier == classifier].copy()
    keys = pd.Series(list(zip(-shown.accuracy.round(2), shown.n_features, strict=True)), index=shown.index)
    texts = []
    for row, key in zip(shown.itertuples(), keys, strict=True):
        levels = sorted(set(keys[shown.dataset == row.dataset]))
        mark = {0: "**{:.2f}**", 1: "<ins>{:.2f}</ins>"}.get(levels.index(key), "{:.2f}").format(row.accuracy)
        error = f" ± {row.standard_error:.2f}" if row.standard_error >= LEAST_ERROR else ""
        texts.append(f"{mark}{error} ({row.n_features:g})")
    return _matrix(shown.assign(text=texts))


def times_matrix(times: pd.DataFrame) -> pd.DataFrame:
    """Return seconds as data sets x methods: the mean, and the least to the most."""
    texts = [f"{seconds(row.seconds)} ({seconds(row.least)} to {seconds(row.most)})" for row in times.itertuples()]
    return _matrix(times.assign(text=texts))


def _matrix(table: pd.DataFrame) -> pd.DataFrame:
    """Return the texts of a table as data sets x methods, in the order of the table."""
    grid = table.pivot(index="dataset", columns="method", values="text").fillna("")
    return grid.reindex(index=table.dataset.unique(), columns=table.method.unique()).reset_index()


def means_of_times(times: pd.DataFrame) -> dict[str, float]:
    """Return the mean seconds of every method over the data sets, the fastest first."""
    return times.groupby("method")["seconds"].mean().sort_values().to_dict()


def verdicts_table(beside: pd.DataFrame) -> pd.DataFrame:
    """Return the number of cells by verdict, and the mean difference from print, of each method."""
    return outcomes.count_verdicts(outcomes.comparable(beside))


def first_places(beside: pd.DataFrame, classifier: str) -> dict[str, int]:
    """Return on how many sets the paper's method has the highest accuracy, in print and here."""
    return outcomes.count_first_places(outcomes.comparable(beside[beside.classifier == classifier]))


def rank_tests(table: pd.DataFrame, classifier: str) -> outcomes.RankTests:
    """Return the rank tests of a table of accuracies."""
    return outcomes.RankTests.of(table, classifier)


def misses(beside: pd.DataFrame, method: str) -> list[dict[str, Any]]:
    """Return the cells of a method that are below print, each with the baseline of the same cell."""
    cells = outcomes.comparable(beside).set_index(["dataset", "classifier", "method"])
    return [
        {**row, "dataset": dataset, "classifier": name, "baseline": cells.loc[dataset, name, "Baseline"].to_dict()}
        for (dataset, name, each), row in zip(cells.index, cells.to_dict("records"), strict=True)
        if each == method and row["verdict"] == outcomes.BELOW
    ]


# ------------------------------------------------------------------------------------------------------------------- words


def markdown(table: pd.DataFrame) -> str:
    """Return a table as Markdown, numbers with two decimals and on the right.

    Examples
    --------
    >>> print(markdown(pd.DataFrame({"set": ["nci"], "n_features": [20], "accuracy": [66.0]})))
    | set | n features | accuracy |
    |---|---:|---:|
    | nci | 20 | 66.00 |
    """
    is_number = [pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes]
    lines = [[str(name).replace("_", " ") for name in table.columns], ["---:" if each else "---" for each in is_number]]
    lines += [[_show(value) for value in row] for row in table.itertuples(index=False, name=None)]
    texts = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([texts[0], texts[1].replace(" ", ""), *texts[2:]])


def _show(value: Any) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def seconds(value: float) -> str:
    """Write a time with two significant digits, three from a hundred seconds on.

    Examples
    --------
    >>> [seconds(value) for value in (0.00123, 0.5, 12.34, 345.6)]
    ['0.0012', '0.50', '12', '346']
    """
    decimals = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{decimals}f}"
