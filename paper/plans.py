"""Plans of the experiments: data sets, methods with their grids, numbers of features and splits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

from l20fs.compare.methods import Method
from l20fs.compare.runner import NONZERO, Dataset, Fit, Settings, evaluate_fit, run
from paper.settings import PricedForward, paper_settings

#: Name of the method of the paper, and of the same method where lambda of the grid is the first one.
OURS, LAMBDA_FIRST = "l2,0-FS", "l2,0-FS (lambda first)"

#: The grid of lambda in the paper, and that of the penalties of RFS and RLSR.
ALPHAS = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
GAMMAS = [1e-5, 1e-3, 1e-1, 1e1, 1e3, 1e5]

SETS = ("brain", "breast3", "leukemia", "lung", "lymphoma", "nci", "prostate", "srbct")
SIZES = tuple(range(20, 401, 20))

BASELINE = Method("Baseline", "Baseline")
PAPER = Method(OURS, params=paper_settings("ahiht"), grid={"solver__alpha_min": ALPHAS})

#: One setting of our own selector, not the rules that follow the data.
L20 = Method("L20Selector", params={"ridge": 10.0, "scale": "zscore"})


@dataclass(frozen=True)
class Plan:
    """Plan of an experiment: its title, data sets and settings; features are as they are, scaled by each method itself."""

    title: str
    datasets: tuple[str, ...]
    settings: Settings


def _settings(*methods: Method, **options: Any) -> Settings:
    return Settings(methods, **{"sizes": SIZES, "inner_folds": 0, "scale": None, **options})


def _started(init: str, **grid: list[Any]) -> Method:
    """Return the paper's method from some kind of initial weights."""
    return Method(init, params=paper_settings("ahiht"), grid={"solver__init": [init], **grid})


DRAWS = list(range(10))

PLANS = {
    "accuracy": Plan(
        "accuracy with the number of selected features",
        SETS,
        _settings(
            BASELINE,
            Method("Relief", "ReliefF", {"variant": "feast"}),  # the paper runs Relief and mRMR of the FEAST package
            Method("mRMR", "MRMR"),
            Method("RFS", "RFS", grid={"gamma": GAMMAS}),
            Method("RLSR", "RLSR", grid={"gamma": GAMMAS}),
            Method("RPMFS", "RPMFS"),
            Method("ESFS", "ESFS"),
            PAPER,
            L20,
            inner_folds=5,
        ),
    ),
    "lambda": Plan(
        "sensitivity to lambda",
        ("brain", "leukemia", "lung", "prostate"),
        _settings(replace(PAPER, grid={"solver__alpha_min": ALPHAS[:-1]}), sizes=tuple(range(30, 181, 30))),
    ),
    "initialisation": Plan(
        "sensitivity to the starting point: zeros, Gaussian, uniform; ten draws each",
        ("breast3", "lung", "srbct"),
        _settings(
            _started("zeros"),
            _started("gaussian", solver__random_state=DRAWS),
            _started("uniform", solver__random_state=DRAWS),
            sizes=(NONZERO,),
        ),
    ),
    "solvers": Plan(
        "HIHT against AHIHT, and forward selection of the same objective: accuracy and rows at each lambda",
        ("breast3", "lung", "nci"),
        _settings(
            replace(PAPER, label="AHIHT"),
            Method("HIHT", params=paper_settings("hiht"), grid={"solver__alpha_min": ALPHAS}),
            Method(
                "forward",
                params={"solver": PricedForward(), "ridge": 0.0, "scale": "none"},
                grid={"solver__alpha_min": ALPHAS},
            ),
            sizes=(NONZERO,),
        ),
    ),
    # In the splits of the other six sets no feature enters at lambda_0 = 1: the printed reading adds a stage without a step.
    "readings": Plan(
        "the first lambda as printed (lambda_0) and as in the authors' later code (0.4 lambda_0)",
        ("lung", "srbct"),
        _settings(
            PAPER, Method(f"{OURS} (printed)", params=paper_settings(reading="printed"), grid={"solver__alpha_min": ALPHAS})
        ),
    ),
    # The paper's accuracies are means of ten splits. A hundred splits are ten such experiments: they tell how much ten say.
    # Lambda of the grid is where the path ends, as in the authors' later code, or where it begins: the only lambda among the
    # inputs of the printed algorithm, and that of its first stage.
    "repeats": Plan(
        "the paper's method ten times over, for both readings of its lambda",
        SETS,
        _settings(
            BASELINE,
            PAPER,
            Method(
                LAMBDA_FIRST,
                params=paper_settings("ahiht", alpha_min=1e-5),
                grid={"solver__alpha_start": ALPHAS},
            ),
            n_splits=100,
        ),
    ),
    "time": Plan(
        "time of one fit",
        SETS,
        _settings(
            *(Method(name, name) for name in ("RFS", "RLSR", "RPMFS", "ESFS")),
            Method("HIHT", params=paper_settings("hiht")),
            Method("AHIHT", params=paper_settings("ahiht")),
            L20,
            sizes=(100,),
            evaluators=("knn",),
            n_splits=3,
        ),
    ),
}


def quick(plan: Plan) -> Plan:
    """Return a small version of a plan: the built-in set, a fifth of the splits and three numbers of features."""
    given = plan.settings
    n_splits, inner_folds = max(2, given.n_splits // 5), min(2, given.inner_folds)
    settings = replace(given, sizes=given.sizes[:3], n_splits=n_splits, inner_folds=inner_folds)
    return replace(plan, datasets=("srbct",), settings=settings)


def run_plan(
    plan: Plan,
    datasets: Sequence[Dataset],
    cells: Path,
    *,
    n_jobs: int = 1,
    note: Callable[[str], object] = print,
) -> pd.DataFrame:
    """Return the rows of a plan on some data sets; a run that was stopped goes on where it was.

    :class:`joblib.Memory` keeps every finished fit in the folder ``cells``, by the fit, the values of the data set, the
    settings and the version of this package.
    """
    memory = joblib.Memory(cells, verbose=0)
    evaluate_once = memory.cache(_evaluate, ignore=["fit", "data", "settings"])
    tables = []
    for data in datasets:
        causes = joblib.hash((version("l20fs"), data, replace(plan.settings, methods=(), n_splits=0)))
        found = run(plan.settings, data, n_jobs=n_jobs, evaluate=_Remembered(evaluate_once, causes))
        tables.append(found.drop(columns="selected"))
        note(f"{plan.title}: {data.name} done")
    return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True)
class _Remembered:
    """Evaluation that looks up what was computed before."""

    evaluate: Callable[..., list[tuple[Any, ...]]]
    causes: str

    def __call__(self, fit: Fit, data: Dataset, settings: Settings) -> list[tuple[Any, ...]]:
        return self.evaluate(joblib.hash((self.causes, fit)), fit, data, settings)


def _evaluate(key: str, fit: Fit, data: Dataset, settings: Settings) -> list[tuple[Any, ...]]:
    """Evaluate a fit; what it selected is not kept, since nothing here asks for it."""
    return [(*row[:-1], None) for row in evaluate_fit(fit, data, settings)]


def choice_of(rows: pd.DataFrame, parameter: str) -> list[Any]:
    """Return a parameter of the settings of rows, None where it has none."""
    return [json.loads(choice).get(parameter) for choice in rows.choice]
