"""R code and formulas of a panel give its numbers, whatever its names are."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from panel_samples import columns_for, fitted
from samples import make_data

from l20fs import L20Classifier
from l20fs.prediction.panel_texts import quoted_text

KINDS = [2, 3, 0, -1]
by_kind = pytest.mark.parametrize("kind", KINDS, ids=["two", "three", "number", "numbers"])

#: Names that end a string, or begin code or a comment, where they are not quoted.
HOSTILE = ['a"); stop("x', "b\\", "'; q()", "%s{0}", "β名🧬", "a\u202eb", "# c", "`d`", "\\u0041", '"', "$x", "</script>"]


def hostile(panel):
    """Return the panel with hostile names of features, classes and targets."""
    n = len(panel.features)
    classes = None if panel.classes is None else HOSTILE[6 : 6 + len(panel.classes)]
    return replace(panel, features=HOSTILE[:n], classes=classes, targets=HOSTILE[-len(panel.targets) :])


def log_panel():
    X, y = make_data(3, n_samples=60, n_features=14)
    X = X - X.min()
    return L20Classifier(4).fit(X, y).to_panel(X, y, transform="log1p"), np.expm1(X)


def calibrated(panel):
    return replace(panel, rules=[replace(rule, slope=0.83, doubt=0.17) for rule in panel.rules])


def run_r(panel, columns):
    """Return what R code predicts, from a matrix and from a data frame, as a list of texts."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("Rscript is not installed")
    values = ", ".join(repr(float(value)) for value in columns.T.ravel())
    names = ", ".join(quoted_text(name, only_ascii=True) for name in panel.features_for())
    code = f"""{panel.to_r()}
X <- matrix(c({values}), nrow = {len(columns)}, dimnames = list(NULL, c({names})))
frame <- as.data.frame(X[, rev(seq_len(ncol(X))), drop = FALSE])
colnames(frame) <- rev(colnames(X))
for (found in list(predict_panel(X), predict_panel(frame))) {{
  if (is.list(found)) cat(enc2utf8(found$predicted), sep = "\\n")
  if (is.list(found)) found <- found$probabilities
  cat("\\n---\\n")
  cat(sprintf("%.17g", t(found)), sep = "\\n")
  cat("\\n---\\n")
}}
"""
    assert code.isascii()
    return code, rscript


@by_kind
@pytest.mark.parametrize("with_hostile_names", [False, True])
def test_r_predicts_what_the_panel_predicts(kind, with_hostile_names, tmp_path):
    panel, _, X, _ = fitted(kind)
    columns = columns_for(panel, X)
    panel = calibrated(hostile(panel) if with_hostile_names else panel)
    check_r(panel, columns, tmp_path)


def test_r_takes_logarithms(tmp_path):
    panel, X = log_panel()
    check_r(panel, columns_for(panel, X), tmp_path)


def check_r(panel, columns, folder):
    code, rscript = run_r(panel, columns)
    (folder / "panel.R").write_text(code)
    done = subprocess.run(
        [rscript, "--vanilla", str(folder / "panel.R")], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    parts = [part.split() for part in done.stdout.split("---")]
    for labels, numbers in (parts[:2], parts[2:4]):
        found = np.array(numbers, dtype=float)
        if panel.classes is None:
            np.testing.assert_allclose(found, panel.predict(columns).ravel(), rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_allclose(found, panel.predict_proba(columns).ravel(), rtol=0, atol=1e-9)
            if all(name.isascii() for name in panel.classes):
                assert labels == " ".join(panel.predict(columns)).split()


def evaluate(panel, columns):
    """Evaluate the formula line by line, as Python reads it: it has no name but those of its own tables."""
    results = []
    for row in columns:
        space = {
            "x": dict(zip(panel.features_for(), row.tolist(), strict=True)),
            "log": math.log,
            "exp": math.exp,
            "__builtins__": {},
            **{name: defaultdict(float) for name in ("score", "sharp", "soft", "probability", "y")},
        }
        exec(panel.formula(), space)
        results.append([dict(space[name]) for name in ("y", "probability")])
    return results


@by_kind
@pytest.mark.parametrize("with_hostile_names", [False, True])
def test_the_formula_gives_the_numbers_of_the_panel(kind, with_hostile_names):
    panel, _, X, _ = fitted(kind)
    columns = columns_for(panel, X)[:10]
    panel = calibrated(hostile(panel) if with_hostile_names else panel)
    check_formula(panel, columns)


def test_the_formula_takes_logarithms():
    panel, X = log_panel()
    check_formula(panel, columns_for(panel, X)[:10])


def test_the_formula_gives_nothing_to_a_class_without_samples():
    X, y = make_data(1, n_classes=4)
    weight = (y != 1).astype(float)
    panel = L20Classifier(3).fit(X, y, weight).to_panel(X, y, weight)
    check_formula(panel, columns_for(panel, X)[:10])
    assert "-Inf" in panel.to_r()


def check_formula(panel, columns):
    for number, (numbers, probabilities) in enumerate(evaluate(panel, columns)):
        if panel.classes is None:
            found = [numbers[name] for name in panel.targets]
            np.testing.assert_allclose(found, np.atleast_1d(panel.predict(columns)[number]), rtol=1e-9, atol=1e-9)
        else:
            found = [probabilities[name] for name in panel.classes]
            np.testing.assert_allclose(found, panel.predict_proba(columns)[number], rtol=0, atol=1e-9)


def test_a_name_stays_in_its_quotes():
    for name in [*HOSTILE, "\n\r\t\0", "".join(map(chr, range(0x300)))]:
        for only_ascii in (False, True):
            text = quoted_text(name, only_ascii=only_ascii)
            assert eval(text) == name
            assert len(text.splitlines()) == 1
            assert text.isascii() or not only_ascii
        if all(ord(letter) < 0x10000 for letter in name):
            assert json.loads(quoted_text(name)) == name


def test_labels_in_r_are_of_their_type():
    panel = fitted(2)[0]
    for classes, expected in (([3, 10], "3,\n    10"), ([False, True], "FALSE,\n    TRUE"), ([0.5, 1.0], "0.5,\n    1.0")):
        assert f"  classes <- c({expected})\n" in replace(panel, classes=classes).to_r()


def test_a_version_cannot_leave_its_comment():
    panel = replace(fitted(3)[0], versions={"l20fs": "1\nstop()"})
    assert panel.to_r().splitlines()[0].startswith("# Made by l20fs 1stop from the panel with the sha256 ")
