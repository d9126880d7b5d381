"""Findings of ``l20fs select`` without a file and a command line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from samples import make_data

from l20fs import L20Selector
from l20fs.cli.options import SelectOptions
from l20fs.cli.select_findings import Findings
from l20fs.cli.select_sentences import data_warnings
from l20fs.data.readers import Samples
from l20fs.estimators.panels import ranked_units
from l20fs.evaluation.predictions import predictions_by_k
from l20fs.evaluation.target_summary import summarise
from l20fs.inputs.names import NamedColumns

LETTERS = np.array(["a", "b", "c"])
NAMES = [f"g{j}" for j in range(12)]


def made(X, y, names, selector, k, predictions=None, **changes):
    samples = Samples(X, y, names, "", title="toy")
    targets = summarise(y)
    found = Findings(
        samples,
        SelectOptions(),
        targets,
        targets.metric,
        selector,
        ranked_units(selector),
        k,
        "asked",
        predictions=predictions,
    )
    found = replace(found, **changes)
    return replace(found, warnings=[*data_warnings(found), *found.warnings])


def findings(selector=None, k=4, seed=0, X=None, y=None, **changes):
    drawn, codes = make_data(seed)
    X, y = drawn if X is None else X, LETTERS[codes] if y is None else y
    selector = L20Selector(k, max_features_to_select=12) if selector is None else selector
    selector.fit(NamedColumns(X, NAMES[: X.shape[1]]), y)
    folds = summarise(y).folds()
    predictions = None if "predictions" in changes else predictions_by_k(selector, X, y, range(1, 11), folds)
    return made(X, y, NAMES[: X.shape[1]], selector, k, **{"predictions": predictions} | changes)
