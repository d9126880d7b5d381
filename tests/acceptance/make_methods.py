"""Tables and options of the stored scores of all methods: run as a script, this file writes golden/methods.json.

The file keeps the numbers of other packages (``peers``), which nothing here can make again.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for this file as a script
from acceptance import doors

FILE = Path(__file__).parent / "golden" / "methods.json"
#: Options beside the defaults: methods with a single minimum go there, so that their scores do not speak of the way, and
#: features of a few states each are all redundant to CFS.
OPTIONS = {name: {"tol": 1e-11, "max_iter": 100_000} for name in ("L21", "LassoOVR", "NonnegativeL21", "RFS", "RLSR")}
OPTIONS["CFS"] = {"binning": "width", "n_bins": 3}


def tables():
    """Return a tall table with a rare class, tied values and a near copy, and a wide one with two classes, by name."""
    random = np.random.default_rng(0)
    y = random.permutation(np.repeat([0, 1, 2], [30, 14, 4]))
    X = random.standard_normal((48, 10)) * np.geomspace(0.5, 4.0, 10) + np.outer(y == 1, [2, 0, 3, 0, 1] * 2)
    X[:, 5] = X[:, 2] + 0.7 * random.standard_normal(48)
    X[:, ::3] = np.round(X[:, ::3])
    wide, labels = random.standard_normal((24, 30)), random.permutation(np.repeat([0, 1], 12))
    return {"tall": (X, y), "wide": (wide + np.outer(labels, np.geomspace(2.0, 0.02, 30)), labels)}


def fit(name, parameters, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some stop at their limit of steps
        return doors.method(name, 4, **parameters).fit(X, y)


def main():
    found = {}
    for name in doors.method_names():
        parameters = doors.method(name, 4, **OPTIONS.get(name, {})).get_params()
        parameters = {key: parameters[key] for key in sorted(parameters.keys() - {"n_features_to_select", "callback"})}
        scores = {}
        for table, (X, y) in tables().items():
            scores[table] = [float(f"{score:.12g}") for score in fit(name, parameters, X, y).scores_]
            units = 1.0 + 1e-9 * np.random.default_rng(1).standard_normal(X.shape[1])
            # Where rounding would decide, another table has to be taken.
            again = fit(name, parameters, X * units, y).scores_
            np.testing.assert_allclose(again, scores[table], rtol=1e-7, atol=1e-7 * max(scores[table]), err_msg=name)
        found[name] = {"parameters": parameters, "scores": scores}
    peers = json.loads(FILE.read_text())["peers"]
    FILE.write_text(json.dumps({"methods": found, "peers": peers}, indent=1) + "\n")


if __name__ == "__main__":
    main()
