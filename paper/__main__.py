"""``python -m paper``: every table and figure of the paper, under the paper's protocol and the honest one."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from l20fs.compare.evaluators import CLASSIFIERS, TITLES
from l20fs.compare.runner import Dataset
from paper import effects, figures, outcomes
from paper.page import Tables, make_tables, write_page
from paper.plans import PLANS, quick, run_plan
from paper.sets import DataSetError, load_set

PROTOCOLS = {"optimistic": "the paper's protocol, optimistic", "honest": "the honest protocol"}


def main() -> None:
    """Run the experiments that are asked for, and write tables, figures and the page."""
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument("plans", nargs="*", metavar="PLAN", help=f"one or more of {', '.join([*PLANS, 'convergence'])}; all")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/paper"), help="folder for results and cells")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder with the paper's sets as .npz or .mat")
    parser.add_argument("--n-jobs", type=int, default=2, help="fits at the same time, except where they are timed")
    parser.add_argument("--quick", action="store_true", help="a small version on the built-in set, without other data")
    given = parser.parse_args()
    names = given.plans or [*PLANS, "convergence"]
    unknown = [name for name in names if name not in {*PLANS, "convergence"}]
    if unknown:
        parser.error(f"{unknown[0]!r} is not a plan. Use {', '.join([*PLANS, 'convergence'])}.")
    plans = {name: quick(PLANS[name]) if given.quick else PLANS[name] for name in names if name in PLANS}
    traced = (("srbct",) if given.quick else effects.TRACED) if "convergence" in names else ()
    wanted = dict.fromkeys(name for sets in [*(plan.datasets for plan in plans.values()), traced] for name in sets)
    sets: dict[str, Dataset] = {}
    for name in wanted:
        try:
            sets[name] = load_set(name, given.data)
        except DataSetError as error:
            parser.exit(3, f"error: {error}\n")
    cells, rows = given.output / "cells", {}
    for name, plan in plans.items():
        # Times of fits that run side by side would not be comparable.
        here = [sets[each] for each in plan.datasets]
        rows[name] = run_plan(plan, here, cells, n_jobs=1 if name == "time" else given.n_jobs)
    if traced:
        rows["traces"] = effects.trace_objectives([sets[name] for name in traced])
    write_results(rows, given.output, is_quick=given.quick)


def write_results(rows: dict[str, pd.DataFrame], folder: Path, *, is_quick: bool = False) -> None:
    """Write rows and tables as CSV, figures as PNG, and the page."""
    tables, drawn = make_tables(rows), draw_all(rows)
    for kind, frames in (("rows", rows), ("tables", tables)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for name, frame in frames.items():
            frame.to_csv(folder / kind / f"{name}.csv", index=False)
    (folder / "figures").mkdir(exist_ok=True)
    for name, figure in drawn.items():
        figure.savefig(folder / "figures" / f"{name}.png", dpi=100, metadata={"Software": None})
    (folder / "README.md").write_text(write_page(tables, list(drawn), is_quick=is_quick), encoding="utf-8")
    print(f"Results are in {folder}. Look at {folder / 'README.md'}")


def draw_all(rows: dict[str, pd.DataFrame]) -> dict[str, Figure]:
    """Return the figures of the plans that were run, by name."""
    tables: Tables = make_tables(rows)
    found: dict[str, Figure] = {}
    for name in CLASSIFIERS:
        if "accuracy" in rows:
            for protocol in PROTOCOLS.keys() & tables.keys():
                curves = outcomes.CURVES[protocol](rows["accuracy"])
                found[f"curves-{protocol}-{name}"] = figures.draw_curves(curves, name, protocol)
                if tables[protocol].dataset.nunique() > 1:
                    tests = outcomes.RankTests.of(tables[protocol], name)
                    found[f"ranks-{protocol}-{name}"] = figures.draw_ranks(tests, f"{TITLES[name]}, {PROTOCOLS[protocol]}")
        if "lambda" in rows:
            found[f"lambda-{name}"] = figures.draw_lambda(effects.accuracy_by_alpha(rows["lambda"]), name)
        if "initialisation" in rows:
            spread = effects.spread_by_start(rows["initialisation"])
            found[f"initialisation-{name}"] = figures.draw_initialisation(spread, name)
        if "solvers" in rows:
            found[f"solvers-{name}"] = figures.draw_solvers(effects.means_by_solver(rows["solvers"]), name)
    if "traces" in rows:
        found["convergence"] = figures.draw_convergence(rows["traces"])
    if "time" in rows:
        found["time"] = figures.draw_times(tables["time"])
    return found


if __name__ == "__main__":
    main()
