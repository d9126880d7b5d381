"""Feature names for matrices without names of their own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from samples import assert_same_fit, make_frame

from l20fs import L20Selector, L20SelectorCV, StabilitySelector
from l20fs.inputs.names import NamedColumns
from l20fs.methods import FisherScore


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_fit_knows_the_names(container):
    frame, y = make_frame()
    named = NamedColumns(container(frame.to_numpy()), list(frame.columns))
    found, expected = L20Selector(4, include=["g1"]).fit(named, y), L20Selector(4, include=["g1"]).fit(frame, y)
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    assert found.selection_frame()["feature"].tolist() == expected.selection_frame()["feature"].tolist()
    if container is np.asarray:
        assert_same_fit(found, expected)


@pytest.mark.parametrize(
    "selector",
    [
        FisherScore(3),
        L20SelectorCV(3, cv=3, max_features=4),
        StabilitySelector(L20Selector(3), n_resamples=4, random_state=0),
    ],
    ids=lambda selector: type(selector).__name__,
)
def test_every_selector_takes_them(selector):
    frame, y = make_frame()
    selector.fit(NamedColumns(frame.to_numpy(), list(frame.columns)), y)
    assert selector.feature_names_in_.tolist() == list(frame.columns)


def test_there_is_one_name_per_column():
    frame, y = make_frame()
    with pytest.raises(ValueError, match=r"There are 2 names for 12 columns of X\. Give one per column"):
        L20Selector(3).fit(NamedColumns(frame.to_numpy(), ["g0", "g1"]), y)


def test_warnings_name_the_features():
    frame, y = make_frame()
    X = frame.to_numpy(copy=True)
    X[:, 3] = 1.0
    with pytest.warns(UserWarning, match="1 of the included features are constant, first 'g3'"):
        L20Selector(4, include=[3]).fit(NamedColumns(X, list(frame.columns)), y)
