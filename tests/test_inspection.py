"""Certificates, all near-optimal panels and the best panel, for selectors and searches."""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from supports import loss_of

from l20fs import Constraints, L20Classifier, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.data import make_planted
from l20fs.design import run
from l20fs.estimators.near_optimal import loss_noise
from l20fs.inspection import certify, near_optimal_panels, solve_exactly
from l20fs.objective import make_problem
from l20fs.objective.row_penalty import RowPenalty


@pytest.fixture(scope="module")
def planted():
    X, y, _ = make_planted(n_samples=60, n_features=12, n_informative=3, random_state=0)
    X[:, 11] = X[:, 0] + 1e-3 * X[:, 11]
    return X, y


def fitted(planted, k=3, **options):
    return L20Selector(k, ridge=1.0, **options).fit(*planted)


@pytest.mark.parametrize("kind", [L20Selector, L20Classifier])
def test_panels_meet_the_constraints_and_are_all_there_are(planted, kind):
    X, y = planted
    selector = kind(3, ridge=1.0, constraints=Constraints(include=[2], exclude=[5])).fit(X, y)
    before = pickle.dumps(selector)
    found = near_optimal_panels(selector, X, y, tolerance=0.1)
    assert pickle.dumps(selector) == before
    options = {"ridge": 1.0, "scale": selector.scale_, "target_weights": len(y) / (len(set(y)) * np.bincount(y))}
    problem = make_problem(X, np.eye(len(set(y)))[y], **options)
    losses = {rows: loss_of(problem, list(rows)) for rows in combinations(range(12), 3) if 2 in rows and 5 not in rows}
    least = min(losses.values())
    assert {tuple(panel) for panel in found.panels.tolist()} == {r for r, loss in losses.items() if loss <= 1.1 * least}
    np.testing.assert_allclose(found.losses, [losses[tuple(panel)] for panel in found.panels.tolist()])
    assert (2 in found.in_all, 5 in found.in_none, found.is_complete) == (True, True, True)
    assert len(found.in_all) + len(found.in_some) + len(found.in_none) == 12
    assert near_optimal_panels(selector, X, y, 2, tolerance="10%", time_limit=None).panels.shape[1] == 2


def test_panels_can_be_asked_for_substitutes_costs_and_stability(planted):
    X, y = planted
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"g{i}" for i in range(12)])
    selector = L20Selector(3, ridge=1.0).fit(frame, y)
    found = near_optimal_panels(selector, frame, y, tolerance=0.5)
    table = found.to_frame()
    assert table["rank"].tolist() == list(range(1, len(found) + 1))
    assert table["features"][0] == found[0].names == [f"g{i}" for i in found.panels[0]]
    assert found[0].gap == 0.0 < found[1].gap
    first, other = int(found.panels[0][0]), int(found.in_some[-1])
    assert first not in found.without([f"g{first}"]).features
    assert found.containing([other]).rank == 1 + next(i for i, panel in enumerate(found.panels) if other in panel)
    assert found.cheapest({f"g{first}": 5.0}).rank == found.without([first]).rank
    stability = StabilitySelector(L20Selector(3, ridge=1.0), n_resamples=10, random_state=0).fit(frame, y)
    means = [stability.frequencies_[panel].mean() for panel in found.panels]
    assert means[found.most_stable(stability).rank - 1] == pytest.approx(max(means))
    assert found.replacements()[0][11] == found.replacements()[11][0] > 0
    pairs = [(a, b) for a, b in combinations(map(set, found.panels.tolist()), 2) if len(a - b) == 1]
    assert sum(sum(numbers.values()) for numbers in found.replacements().values()) == 2 * len(pairs)
    for wrong, words in (
        (lambda: found.without(range(12)), "No listed panel is without"),
        (lambda: found.cheapest([1.0, 2.0, 3.0]), "costs has the shape"),
        (lambda: found.cheapest({"g1": np.nan}), "costs of 'g1' is missing"),
    ):
        with pytest.raises(ValueError, match=words):
            wrong()


def test_limits_of_the_search_are_told(planted):
    X, y = planted
    selector = fitted(planted)
    whole = near_optimal_panels(selector, X, y, time_limit=None)
    assert whole.tolerance == whole.noise > 0.0
    some = near_optimal_panels(selector, X, y, time_limit=None, max_panels=whole.n_panels - 1)
    assert some.is_complete
    assert some.tolerance < whole.tolerance
    assert np.isin(some.losses, whole.losses).all()
    counted = near_optimal_panels(selector, X, y, tolerance=whole.tolerance, max_panels=2)
    assert len(counted) == 2 < counted.n_panels == whole.n_panels
    np.testing.assert_array_equal(counted.counts, whole.counts)
    assert "all counted, 2 listed" in repr(counted)
    stopped = near_optimal_panels(selector, X, y, tolerance=0.5, time_limit=0.0)
    assert not stopped.is_complete
    assert "the search was stopped" in repr(stopped)


def test_a_search_is_inspected_as_its_model(planted):
    X, y = planted
    search = L20SelectorCV(3, selector=L20Selector(ridge=1.0), cv=3).fit(X, y)
    alone = fitted(planted)
    expected = near_optimal_panels(alone, X, y, tolerance=0.1)
    np.testing.assert_array_equal(near_optimal_panels(search, X, y, tolerance=0.1).panels, expected.panels)
    assert certify(search, X, y).lower_bound == pytest.approx(certify(alone, X, y).lower_bound)
    assert solve_exactly(search, X, y).support.tolist() == expected.panels[0].tolist()
    steps = make_pipeline(StandardScaler())
    scaled = L20SelectorCV(3, selector=L20Selector(ridge=1.0, scale="none"), preprocess=steps, cv=3).fit(X, y)
    Z = StandardScaler().fit_transform(X)
    same = near_optimal_panels(L20Selector(3, ridge=1.0, scale="none").fit(Z, y), Z, y, tolerance=0.1)
    np.testing.assert_array_equal(near_optimal_panels(scaled, X, y, tolerance=0.1).panels, same.panels)


@pytest.mark.parametrize("solver", ["forward", "swap"])
def test_the_certificate_is_that_of_the_constrained_panels(planted, solver):
    """Lower limits need two features, so that no panel is smaller; upper limits hold at every size."""
    X, y = planted
    limits = {"min_per_class": 1, "sets": {"low": [0, 1], "high": [2, 3, 4]}, "exclusive": [[3, 5], [0, 6, 7]]}
    selector = L20Selector(4, solver=solver, ridge=2.0, scale="zscore", class_weight=None, constraints=Constraints(**limits))
    selector.fit(X, y)
    problem = make_problem(X, np.eye(len(set(y)))[y], ridge=2.0, scale="zscore")
    panels = {
        rows: loss_of(problem, list(rows))
        for size in range(2, 5)
        for rows in combinations(range(12), size)
        if {0, 1} & {*rows} and {2, 3, 4} & {*rows} and len({3, 5} & {*rows}) < 2 and len({0, 6, 7} & {*rows}) < 2
    }
    found = certify(selector, X, y)
    best = min(panels.values())
    assert 0.9 * best <= found.lower_bound <= best * (1.0 + 1e-12)
    assert found.upper_bound == pytest.approx(panels[tuple(np.flatnonzero(selector.support_).tolist())])


@pytest.mark.parametrize("strength", [0.5, 5.0])
def test_the_noise_is_that_of_bootstrap_samples(strength):
    """The standard error of the difference of two losses, with mu and the panels fixed."""
    random = np.random.default_rng(0)
    X = random.standard_normal((300, 8))
    X[:, 1] = X[:, 0] + 0.4 * X[:, 1]
    problem = make_problem(X, X[:, :1] + strength * X[:, 2:3] + random.standard_normal((300, 1)), ridge=0.5)
    random = np.random.default_rng(1)
    draws = run(problem.reweighted(np.bincount(random.integers(300, size=300), minlength=300)) for _ in range(300))
    panel = np.array([0, 2])
    neighbours = [
        min(([a, other] for other in range(8) if other not in panel), key=lambda rows: loss_of(problem, rows)) for a in panel
    ]
    spreads = [np.std([loss_of(draw, panel) - loss_of(draw, other) for draw in draws]) for other in neighbours]
    expected = np.median(spreads) / loss_of(problem, panel)
    assert loss_noise(problem, RowPenalty.plain(8), panel) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    ("options", "given", "words"),
    [
        ({}, {"X": slice(-1)}, "X, y, sample_weight or adjust_for differ from those of the fit"),
        ({"ridge": 0.0}, {}, "ridge=0 is too weak"),
        ({"loss": "l21"}, {}, "loss='l21' has no bounds"),
        ({}, {"tolerance": -0.1}, "tolerance=-0.1 is not valid"),
        ({}, {"tolerance": "much"}, "tolerance='much' is not valid"),
        ({}, {"max_panels": 0}, "max_panels=0 is not valid"),
        ({}, {"time_limit": -1.0}, "time_limit=-1.0 is not valid"),
    ],
)
def test_what_cannot_be_inspected_is_refused(planted, options, given, words):
    X, y = planted
    selector = L20Selector(2, **{"ridge": 1.0} | options).fit(X, y)
    rows = given.pop("X", slice(None))
    with pytest.raises(ValueError, match=words):
        near_optimal_panels(selector, X[rows], y[rows], **given)


def test_selectors_without_a_path_are_refused(planted):
    with pytest.raises(TypeError, match="StabilitySelector has no path"):
        certify(StabilitySelector(n_resamples=2, random_state=0).fit(*planted), *planted)
