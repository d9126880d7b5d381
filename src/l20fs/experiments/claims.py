"""Claims of the paper about its figures, compared with the reproduced ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pandas as pd

from l20fs.experiments import effects
from l20fs.experiments.tables import CLASSIFIER_NAMES, seconds
from l20fs.report.document import Block, Bullets, Paragraph


def claims(rows: Mapping[str, pd.DataFrame]) -> Iterator[Block]:
    """Yield for every available figure the claim of the paper and the observation here.

    Parameters
    ----------
    rows : mapping
        Row tables by the name of their plan (lambda, initialisation, time, solvers), and "traces".
    """
    for name in CLAIMS:
        if name in rows and len(rows[name]):
            yield from describe_claim(name, rows[name])


def describe_claim(name: str, rows: pd.DataFrame) -> Iterator[Block]:
    """Return the claim of the paper about a figure, and the observation here."""
    (lead, text), describe = CLAIMS[name]
    yield Paragraph(f" {text}", lead)
    seen = tuple(describe(rows))
    if seen:
        yield Bullets(seen)


def about_lambda(rows: pd.DataFrame) -> Iterator[str]:
    """Compare the accuracies for lambda up to 0.01 with each other and with those for 0.1."""
    for row in effects.alpha_effects(rows).itertuples():
        told = f"{row.dataset}, {_name(row.classifier)}: from 1e-5 to 1e-2 the accuracy changes by "
        told += f"{row.median_change:.1f} points (median over the numbers of features, at most {row.largest_change:.1f})"
        if pd.notna(row.last_step):
            told += f", at 1e-1 it is {abs(row.last_step):.1f} points {'lower' if row.last_step < 0 else 'higher'}"
        yield f"{told}."


def about_initialisation(rows: pd.DataFrame) -> Iterator[str]:
    """Compare three kinds of initial weights."""
    for row in effects.start_effects(rows).itertuples():
        yield (
            f"{row.dataset}, {_name(row.classifier)}: {row.difference:.2f} points between the kinds; {row.fewest:.0f} to "
            f"{row.most:.0f} rows are not zero."
        )


def about_convergence(traces: pd.DataFrame) -> Iterator[str]:
    """Count the iterations until :data:`~l20fs.experiments.effects.DONE` of the decrease."""
    for dataset, group in effects.iterations_needed(traces).groupby("dataset", sort=False):
        counts = ", ".join(f"{method} {needed} of {total}" for _, method, needed, total in group.itertuples(index=False))
        yield f"{dataset}: iterations until {effects.DONE:.0%} of the decrease is done: {counts}."


def about_time(rows: pd.DataFrame) -> Iterator[str]:
    """Describe the mean times over the data sets."""
    means, n_datasets = effects.mean_times(rows)
    listed = ", ".join(f"{method} {seconds(value)} s" for method, value in means.items())
    yield f"Mean over {n_datasets} data sets: {listed}."
    if {"HIHT", "AHIHT"} <= set(means.index):
        yield f"HIHT takes {means['HIHT'] / means['AHIHT']:.1f} times as long as AHIHT."


def about_solvers(rows: pd.DataFrame) -> Iterator[str]:
    """Compare HIHT with AHIHT for lambda below 0.1."""
    for found in effects.solver_contrasts(rows):
        told = (
            f"{_name(found.classifier)}: of {found.n_cases} cases (data set and lambda) HIHT has fewer rows in "
            f"{found.n_sparser}, AHIHT is more accurate in {found.n_more_accurate}, by {found.mean_difference:.1f} points "
            f"in the mean; over lambda the accuracy changes by {found.spread_ahiht:.1f} points (AHIHT) and "
            f"{found.spread_hiht:.1f} (HIHT)"
        )
        if found.forward is not None:
            forward = found.forward
            told += (
                f". Forward selection has {forward.rows:.0f} rows (AHIHT {forward.rows_ahiht:.0f}, HIHT "
                f"{forward.rows_hiht:.0f}; medians) and is {_versus(forward.difference)} AHIHT"
            )
        yield f"{told}."


#: Claim of the paper for each plan, and the function that describes the rows of this run.
CLAIMS: dict[str, tuple[tuple[str, str], Callable[[pd.DataFrame], Iterator[str]]]] = {
    "lambda": (
        ("Lambda.", "The paper sees almost no fluctuation from 1e-5 to 1e-2 and the worst accuracy at 1e-1."),
        about_lambda,
    ),
    "initialisation": (
        ("Starting point.", "The paper sees the same results for zeros, Gaussian and uniform numbers."),
        about_initialisation,
    ),
    "traces": (
        ("Convergence.", "The paper sees its method come down faster than RPMFS and ESFS."),
        about_convergence,
    ),
    "time": (
        ("Time.", "The paper sees RFS, RPMFS and AHIHT take much less time than RLSR, ESFS and HIHT."),
        about_time,
    ),
    "solvers": (
        (
            "HIHT against AHIHT.",
            "The paper sees, for lambda below 0.1, fewer rows with HIHT and a higher accuracy with AHIHT, which it also "
            "finds less sensitive to lambda.",
        ),
        about_solvers,
    ),
}


def _versus(difference: float) -> str:
    return f"{abs(difference):.1f} points {'more' if difference > 0 else 'less'} accurate than"


def _name(classifier: object) -> str:
    return CLASSIFIER_NAMES.get(str(classifier), str(classifier))
