"""Values of single samples on the page of ``l20fs select``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from samples import make_data
from select_findings import LETTERS, findings
from sklearn.impute import SimpleImputer

from l20fs import Constraints, L20Selector
from l20fs.cli.options import SelectOptions
from l20fs.cli.select_content import build_content
from l20fs.cli.select_strips import strips_of
from l20fs.data.readers.table import Unprepared
from l20fs.report import render


def of(found):
    return strips_of(found, found.units[: found.k_max])


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_values_are_those_of_the_classes_in_ascending_order(container):
    X, _ = make_data(0)
    found = findings(X=container(X), predictions=None)
    strips = of(found)
    assert len(strips.values) == 12
    for place, feature in enumerate(found.selector.path_.order):
        for c, letter in enumerate(LETTERS):
            values = np.sort(X[found.samples.y == letter, feature])
            assert strips.values[place][c] == sorted(strips.values[place][c])
            np.testing.assert_allclose(strips.values[place][c], values, atol=np.ptp(X[:, feature]) / 1000)
            assert strips.medians[place][c] == pytest.approx(np.median(values), abs=np.ptp(X[:, feature]) / 1000)
    assert (strips.targets, strips.unit) == ([], "")
    assert of(replace(found, options=SelectOptions(is_log=True))).unit == "log(1 + value)"


def test_values_that_were_filled_in_are_not_shown():
    """Neither as dots nor in medians; of a group, whose mean needs all features, they are, and the page says so."""
    found = findings(predictions=None)
    X = found.samples.X
    gaps = np.zeros(X.shape, dtype=bool)
    gaps[::3, found.selector.path_.order[:3]] = True
    unprepared = Unprepared(np.where(gaps, np.nan, X), SimpleImputer(strategy="median"))
    samples = replace(found.samples, X=unprepared.prepared(), unprepared=unprepared, missing={"g0": 1 / 3})
    with_gaps = replace(found, samples=samples)
    for feature, values in zip(found.selector.path_.order, of(with_gaps).values, strict=True):
        measured = [np.sort(X[(found.samples.y == letter) & ~gaps[:, feature], feature]) for letter in LETTERS]
        for shown, expected in zip(values, measured, strict=True):
            np.testing.assert_allclose(shown, expected, atol=np.ptp(X[:, feature]) / 500)
    sentence = "A sample without a measured value of the feature has no dot."
    assert sentence in render(build_content(with_gaps))
    assert sentence not in render(build_content(found))
    groups = findings(
        L20Selector(2, max_features_to_select=9, constraints=Constraints(groups=[[0, 1, 2], [9, 5]])), predictions=None
    )
    strips = of(replace(groups, samples=samples))
    assert sum(map(len, strips.values[0])) == 60
    assert strips.unit.endswith("mean of the features of the group, missing values filled in")


def test_values_of_numbers_stand_beside_the_target():
    X, _ = make_data(0)
    y = X[:, 0] - 0.5 * X[:, 3]
    found = findings(L20Selector(4, max_features_to_select=12, task="regression"), X=X, y=y, predictions=None)
    strips = of(found)
    np.testing.assert_allclose(strips.targets, y, rtol=1e-5)
    for place, feature in enumerate(found.selector.path_.order):
        np.testing.assert_allclose(strips.values[place][0], X[:, feature], atol=np.ptp(X[:, feature]) / 1000)
    content = build_content(found)
    levels = dict(zip(content.features, content.columns["level"], strict=True))
    assert (levels["g0"], levels["g3"]) == ("rises with target", "falls with target")
    X[5, found.selector.path_.order[0]] = np.nan
    assert of(found).values[0][0][5] is None
