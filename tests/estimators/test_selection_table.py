"""The table of the selection, and the features that could take the place of others."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from blocked import cut
from hypothesis import example, given
from hypothesis import strategies as st
from samples import make_data, make_frame
from sklearn.base import BaseEstimator

from l20fs import AHIHT, Constraints, L20Selector
from l20fs.estimators import selection_table
from l20fs.estimators.selection_table import substitutes, worthwhile_correlation


def substitutes_twin(X, chosen, n):
    """Look at the whole correlation matrix; exact ties alone go by index."""
    varies = np.ptp(X, axis=0) > 0.0
    correlations = np.zeros((X.shape[1], X.shape[1]))
    correlations[np.ix_(varies, varies)] = np.atleast_2d(np.corrcoef(X[:, varies].T))
    return [
        (feature, other, correlations[feature, other])
        for feature in chosen
        if varies[feature]
        for other in sorted(
            (j for j in range(X.shape[1]) if varies[j] and j not in chosen),
            key=lambda j: (-round(abs(correlations[feature, j]), 10), j),
        )[:n]
    ]


@st.composite
def tables(draw):
    """Integers, so that duplicates, opposite copies, constant features and equal correlations are common."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_samples, n_features = draw(st.integers(2, 12)), draw(st.integers(1, 10))
    X = rng.integers(0, draw(st.integers(2, 9)), size=(n_samples, n_features)).astype(np.float64)
    X *= rng.choice([1.0, -1.0, 1e3], size=n_features)
    X[:, rng.random(n_features) < 0.2] = 3.0
    X[0, 0] += 1.0 if np.ptp(X) == 0.0 or not (np.ptp(X, axis=0) > 0.0).any() else 0.0
    chosen = rng.permutation(n_features)[: draw(st.integers(0, n_features))]
    return X, chosen, draw(st.integers(1, 12))


# Three features have the correlation 0 with the last but one; which of them is further from 0 by rounding does not count.
UNCORRELATED = (
    np.array([[1e3, 1, 2, 2, 0, 0, 2, -2, 0], [0, 2, 1, 0, -2, 0, 1, -1, -1], [0, 0, 2, 2, -2, 1e3, 2, 0, -1]]),
    np.array([7, 5]),
    5,
)


@example(UNCORRELATED, np.asarray)
@given(tables(), st.sampled_from([np.asarray, sp.csr_array, sp.csc_matrix, pd.DataFrame]))
def test_substitutes_are_those_of_the_correlation_matrix(table, container):
    X, chosen, n = table
    found = substitutes(container(X), chosen, n)
    expected = substitutes_twin(X, chosen.tolist(), n)
    assert list(zip(found.feature, found.substitute, strict=True)) == [pair[:2] for pair in expected]
    assert np.allclose(found.correlation, [pair[2] for pair in expected], atol=1e-9)
    assert np.abs(found.correlation).max(initial=0.0) <= 1.0


@pytest.mark.parametrize(
    ("chosen", "n", "message"),
    [
        ([0], 0, "n=0 is not valid. Use a whole number at least 1"),
        ([0], 1.5, "n=1.5 is not valid"),
        ([0, 12], 3, "chosen names feature 12, but X has the features 0 to 11"),
        ([-1], 3, "chosen names feature -1"),
        ([0.5], 3, "Give the indices of features"),
        (np.ones(12, dtype=bool), 3, "Give the indices of features"),
        ([[1]], 3, "Give the indices of features"),
    ],
)
def test_odd_requests_are_refused(chosen, n, message):
    with pytest.raises(ValueError, match=message):
        substitutes(make_data()[0], chosen, n)


@pytest.fixture
def any_correlation(monkeypatch):
    """Let every correlation be worth it."""
    monkeypatch.setattr(selection_table, "worthwhile_correlation", lambda n_samples, n_features: 0.0)


@pytest.fixture
def fitted():
    X, y = make_frame()
    return L20Selector(3).fit(X, y), X


def test_the_columns_of_the_table(fitted):
    selector, X = fitted
    weights = [f"coef_{label}" for label in selector.classes_]
    assert selector.to_frame().columns.tolist() == ["feature", "rank", "score", "loss_increase", *weights]
    y = selector.classes_[np.argmax(X @ selector.coef_.T + selector.intercept_, axis=1)]
    table = selector.to_frame(X, y, stability=stability_of(selector))
    optional = ["direction", "stability", "correlated_features"]
    assert table.columns.tolist() == ["feature", "rank", "score", *optional, "loss_increase", *weights]


@pytest.mark.usefixtures("any_correlation")
def test_could_replace_names_the_substitutes(fitted):
    selector, X = fitted
    table = selector.to_frame(X, n_substitutes=2)
    found = substitutes(X, selector.path_.support(3), 2)
    pairs = [f"g{j} ({r:.2f})" for j, r in zip(found.substitute, found.correlation, strict=True)]
    assert table["correlated_features"].tolist() == [", ".join(pairs[i : i + 2]) for i in (0, 2, 4)]
    assert "stability" not in table
    plain = selector.to_frame()
    pd.testing.assert_frame_equal(table.drop(columns="correlated_features"), plain)
    assert (selector.to_frame(X)["correlated_features"].str.count(",") == 2).all()


def test_an_empty_selection_is_an_empty_frame():
    X, y = make_frame()
    selector = L20Selector(3, solver=AHIHT(alpha_min=1e6)).fit(X, y)
    table = selector.to_frame(X, y, stability=stability_of(selector))
    assert len(table) == 0
    assert {"loss_increase", "stability", "correlated_features", "direction", "coef_0"} <= set(table.columns)


def test_the_data_must_be_those_of_the_fit(fitted):
    selector, X = fitted
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        selector.to_frame(X.rename(columns={"g3": "g03"}))
    with (
        pytest.raises(ValueError, match="X has 11 features, but L20Selector is expecting 12"),
        pytest.warns(match="valid feature names"),
    ):
        selector.to_frame(X.to_numpy()[:, :11])
    with pytest.raises(ValueError, match=r"1 missing values \(NaN\), first in 'g4'"):
        selector.to_frame(X.mask((X.index.to_numpy()[:, None] == 5) & (X.columns == "g4")))
    assert selector.feature_names_in_.tolist() == X.columns.tolist(), "the fit is as it was"


class FittedStability(BaseEstimator):
    """What selection_frame needs of a stability selection."""

    def fit(self, frequencies, names=None):
        self.frequencies_, self.n_features_in_ = np.asarray(frequencies), len(frequencies)
        if names is not None:
            self.feature_names_in_ = names
        return self


def stability_of(selector):
    return FittedStability().fit(np.linspace(0.0, 1.0, 12), selector.feature_names_in_)


def test_stability_is_the_frequency_of_each_feature(fitted):
    selector, _ = fitted
    expected = np.linspace(0.0, 1.0, 12)[selector.path_.support(3)]
    assert selector.to_frame(stability=stability_of(selector))["stability"].tolist() == expected.tolist()
    nameless = FittedStability().fit(np.linspace(0.0, 1.0, 12))
    assert selector.to_frame(stability=nameless)["stability"].tolist() == expected.tolist()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array, lambda X: cut(X, 0, 3)])
def test_level_tells_where_a_feature_is_high_or_low(container):
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c", "d"])[np.arange(80) % 4]
    X = rng.standard_normal((80, 6))
    X[:, 1] += 3.0 * (y == "b")
    X[:, 2] -= 3.0 * (y == "c")
    X[:, 4] += 3.0 * np.isin(y, ["a", "d"])
    frame = L20Selector(3).fit(X, y).to_frame(container(X), y).set_index("feature")
    assert frame["direction"].to_dict() == {"x1": "high in b", "x2": "low in c", "x4": "high in a, d"}


def test_substitutes_by_chance_are_not_listed():
    """The rule is more than the largest correlation of unrelated features as a rule is, by simulation; and 0.5 at least."""
    rng = np.random.default_rng(0)
    for n_samples, n_features in ((10, 50), (20, 1000), (30, 200)):
        largest = []
        for _ in range(100):
            z = rng.standard_normal((n_samples, n_features + 1))
            z = (z - z.mean(axis=0)) / z.std(axis=0)
            largest.append(np.abs(z[:, 1:].T @ z[:, 0]).max() / n_samples)
        assert np.median(largest) < worthwhile_correlation(n_samples, n_features) < max(largest)
    assert worthwhile_correlation(1000, 10**6) == 0.5
    assert worthwhile_correlation(2, 5) == np.inf
    X, y = rng.standard_normal((100, 8)), np.arange(100) % 2
    X[:, 0] += 2.0 * y
    X[:, 1] = -X[:, 0] + 0.5 * rng.standard_normal(100)
    table = L20Selector(1).fit(X, y).to_frame(X)
    assert re.fullmatch(r"x1 \(-0\.9\d\)", table["correlated_features"][0])


def test_excluded_features_replace_nothing():
    X, y = make_data()
    X = np.column_stack([X, X[:, 2]])
    named = pd.DataFrame(X, columns=[f"g{j}" for j in range(12)] + ["copy"])
    table = L20Selector(2, constraints=Constraints(include=["g2"], exclude=["copy"])).fit(named, y).to_frame(named)
    assert not table["correlated_features"].str.contains("copy").any()
    free = L20Selector(1, constraints=Constraints(include=["g2"])).fit(named, y).to_frame(named)
    assert free["correlated_features"][0].startswith("copy (1.00)")
