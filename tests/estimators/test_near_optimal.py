"""All near-optimal panels against brute force, and the noise of losses against the bootstrap."""

from __future__ import annotations

import gc
import pickle
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from supports import loss_of, powers_of_ten, problems

from l20fs import Constraints, L20Classifier, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.data import make_planted
from l20fs.design import run
from l20fs.estimators.near_optimal import SearchLimits, find_panels, loss_noise
from l20fs.objective import make_problem
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.row_penalty import RowPenalty

NO_LIMIT = SearchLimits(0.0, 100_000, None)


def brute_force(problem, penalty, k, eps):
    """Return all panels of k units within eps, best first, and those of which rounding decides."""
    may_enter = set(penalty.unit_of[penalty.may_enter(problem.design.varies)].tolist())
    included = set(penalty.included.tolist())
    others = sorted(may_enter - included)
    panels = [tuple(sorted(included.union(more))) for more in combinations(others, min(k - len(included), len(others)))]
    losses = {
        panel: loss_of(problem, [row for unit in panel for row in penalty.members[unit]])
        for panel in panels
        if penalty.rules is None or penalty.rules.allows(panel)
    }
    assume(losses)
    best = min(losses.values())
    limit, rounding = (1.0 + eps) * best, 1e-6 * problem.null_loss
    listed = sorted((loss, panel) for panel, loss in losses.items() if loss <= limit + rounding)
    return listed, [panel for loss, panel in listed if loss >= limit - rounding]


def penalties(draw, problem):
    """Draw groups, included units, a quota and a budget."""
    n = problem.n_features
    labels = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n)) if draw(st.booleans()) else list(range(n))
    factors = np.array(draw(st.lists(st.sampled_from([1.0, 1.0, 1.0, 2.0, 0.0]), min_size=n, max_size=n)))
    penalty = RowPenalty.of_groups(labels, factors)
    if not draw(st.booleans()):
        return penalty
    costs = np.array(draw(st.lists(st.integers(0, 3), min_size=2 * penalty.n_units, max_size=2 * penalty.n_units)), float)
    upper = draw(st.sampled_from([2.0, 5.0, np.inf]))
    rules = PanelRules(
        sp.csr_array(costs.reshape(2, -1)), np.array([draw(st.integers(0, 2)), 0.0]), np.array([np.inf, upper])
    )
    return replace(penalty, rules=rules)


@st.composite
def instances(draw):
    """Draw a problem with a ridge, a penalty, a size and a share."""
    problem = draw(problems(ridge=powers_of_ten(-2, 2)))
    penalty = penalties(draw, problem) if draw(st.booleans()) else RowPenalty.plain(problem.n_features)
    n_selectable = penalty.n_selectable(problem.design.varies)
    k = draw(st.integers(max(1, len(penalty.included)), max(1, n_selectable)))
    return problem, penalty, k, draw(st.sampled_from([0.0, 0.001, 0.01, 0.1, 0.5, 3.0]))


@settings(max_examples=80)
@given(instances())
def test_the_atlas_is_that_of_brute_force(instance):
    """The list, the count, the core, the optional features, the rest, exchanges and the cheapest."""
    problem, penalty, k, eps = instance
    truth, doubtful = brute_force(problem, penalty, k, eps)
    start = np.union1d(truth[-1][1], penalty.included)
    atlas = find_panels(problem, penalty, start, NO_LIMIT._replace(eps=eps))
    heads = np.unique(penalty.unit_of, return_index=True)[1]
    units = [tuple(penalty.unit_of[panel].tolist()) for panel in atlas.panels]
    certain = [panel for _, panel in truth if panel not in doubtful]
    assert set(certain) <= set(units) <= {panel for _, panel in truth}
    assert len(set(units)) == len(units) == atlas.n_panels
    assert atlas.is_complete
    by_panel = {panel: loss for loss, panel in truth}
    slack = 1e-6 * problem.null_loss
    np.testing.assert_allclose(atlas.losses, [by_panel[panel] for panel in units], atol=slack)
    assert (np.diff(atlas.losses) >= -slack).all()

    panels = [set(panel) for panel in units]
    core, some = set.intersection(*panels), set.union(*panels)
    features = {name: set(penalty.unit_of[getattr(atlas, name)].tolist()) for name in ("core", "optional", "never")}
    assert features == {"core": core, "optional": some - core, "never": set(range(penalty.n_units)) - some}
    assert len(atlas.core) + len(atlas.optional) + len(atlas.never) == problem.n_features
    np.testing.assert_allclose(atlas.occurrence, [np.mean([unit in panel for panel in panels]) for unit in penalty.unit_of])

    pairs = {
        (i, j, heads[min(a - b)], heads[min(b - a)])
        for (i, a), (j, b) in combinations(enumerate(panels), 2)
        if len(a - b) == 1
    }
    assert set(zip(*atlas.exchanges, strict=True)) == pairs

    costs = np.arange(problem.n_features) % 3
    totals = [sum(costs[penalty.unit_of == unit].sum() for unit in panel) for panel in panels]
    assert atlas.totals(costs).tolist() == totals
    cheapest = atlas.cheapest(costs)
    assert cheapest.rank - 1 == totals.index(min(totals))
    assert set(penalty.unit_of[cheapest.features].tolist()) == panels[cheapest.rank - 1]


def tall(n=300, strength=1.0, weights=None):
    """Return a problem with two informative features; the first has a near copy."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, 8))
    X[:, 1] = X[:, 0] + 0.4 * X[:, 1]
    Y = X[:, :1] + strength * X[:, 2:3] + random.standard_normal((n, 1))
    return make_problem(X, Y, ridge=0.5, sample_weight=weights)


@pytest.mark.parametrize("strength", [0.5, 5.0])
def test_the_noise_is_that_of_bootstrap_samples(strength):
    """The standard error of the difference of two losses, with mu and the panels fixed."""
    problem, random = tall(strength=strength), np.random.default_rng(1)
    plain = RowPenalty.plain(problem.n_features)
    draws = run(problem.reweighted(np.bincount(random.integers(300, size=300), minlength=300)) for _ in range(300))
    panel = np.array([0, 2])
    neighbours = [
        min(([a, other] for other in range(8) if other not in panel), key=lambda rows: loss_of(problem, rows)) for a in panel
    ]
    spreads = [np.std([loss_of(draw, panel) - loss_of(draw, other) for draw in draws]) for other in neighbours]
    expected = np.median(spreads) / loss_of(problem, panel)
    assert loss_noise(problem, plain, panel) == pytest.approx(expected, rel=0.15)


@pytest.fixture(scope="module")
def planted():
    X, y, _ = make_planted(n_samples=60, n_features=12, n_informative=3, random_state=0)
    X[:, 11] = X[:, 0] + 1e-3 * X[:, 11]
    return X, y


@pytest.mark.parametrize("kind", [L20Selector, L20Classifier])
def test_near_optimal_right_after_fit(planted, kind):
    X, y = planted
    selector = kind(3, ridge=1.0, constraints=Constraints(include=[2], exclude=[5])).fit(X, y)
    before = dict(vars(selector))
    atlas = selector.near_optimal(eps=0.1)
    assert vars(selector) == before
    assert 2 in atlas.core
    assert 5 in atlas.never
    assert atlas.panels.shape == (atlas.n_panels, 3)
    assert atlas.losses[0] <= selector.path_.losses[-1] * (1 + 1e-9)
    np.testing.assert_array_equal(atlas.panels, selector.near_optimal(eps="10%", time_limit=None).panels)
    assert selector.near_optimal(k=2, eps=0.1).k == 2


def test_the_samples_are_no_part_of_a_file_and_are_not_kept_in_memory(planted):
    X, y = planted
    selector = L20Selector(2, ridge=1.0).fit(X, y)
    loaded = pickle.loads(pickle.dumps(selector))
    with pytest.raises(ValueError, match=r"needs the samples of the fit.*near_optimal\(X=X, y=y\)"):
        loaded.near_optimal(eps=0.1)
    np.testing.assert_array_equal(loaded.near_optimal(X=X, y=y, eps=0.1).panels, selector.near_optimal(eps=0.1).panels)
    gone = L20Selector(2, ridge=1.0).fit(X.copy(), y)
    gc.collect()
    with pytest.raises(ValueError, match="no longer in memory"):
        gone.near_optimal(eps=0.1)
    assert L20Selector(2, ridge=1.0).fit(X.tolist(), y).near_optimal(eps=0.1).n_panels


def test_what_cannot_be_listed_is_refused(planted):
    X, y = planted
    selector = L20Selector(2, ridge=1.0).fit(X, y)
    with pytest.raises(ValueError, match="X, y, sample_weight or adjust_for differ"):
        selector.near_optimal(X=X[:-1], y=y[:-1])
    with pytest.raises(ValueError, match="X, y, sample_weight or adjust_for differ"):
        selector.near_optimal(X=X[:, :-1], y=y)
    with pytest.raises(ValueError, match="adjust_for without X"):
        selector.near_optimal(y=y)
    with pytest.raises(ValueError, match=r"eps=-0.1 is not valid. Use a number at least 0"):
        selector.near_optimal(eps=-0.1)
    with pytest.raises(ValueError, match="ridge=0 is too weak"):
        L20Selector(2, ridge=0.0).fit(X, y).near_optimal()
    with pytest.raises(ValueError, match="loss='l21' is not available"):
        L20Selector(2, loss="l21").fit(X, y).near_optimal()
    with pytest.raises(ValueError, match="no feature is selected"):
        L20Selector(2, ridge=1.0, alpha=1e9).fit(X, y).near_optimal()
    for wrong in ({"eps": "much"}, {"eps": -0.1}, {"max_panels": 0}, {"time_limit": -1.0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.* is not valid"):
            selector.near_optimal(**wrong)


def test_blocks_are_refused(planted):
    array = pytest.importorskip("dask.array")
    X, y = planted
    blocks = array.from_array(X, chunks=(60, 4))
    with pytest.raises(ValueError, match="not available for X in blocks"):
        L20Selector(2, ridge=1.0).fit(blocks, y).near_optimal()


def test_without_eps_as_many_as_the_limits_allow(planted):
    X, y = planted
    selector = L20Selector(3, ridge=1.0).fit(X, y)
    whole = selector.near_optimal(time_limit=None)
    assert whole.eps == whole.noise > 0.0
    some = selector.near_optimal(time_limit=None, max_panels=whole.n_panels - 1)
    assert some.is_complete
    assert some.eps < whole.eps
    assert some.n_panels < whole.n_panels
    assert np.isin(some.losses, whole.losses).all()


def test_counts_are_of_all_where_not_all_are_listed(planted):
    X, y = planted
    selector = L20Selector(3, ridge=1.0).fit(X, y)
    whole, some = (selector.near_optimal(eps=0.5, max_panels=most) for most in (10_000, 4))
    assert len(some.panels) == 4 < some.n_panels == whole.n_panels
    np.testing.assert_array_equal(some.panels, whole.panels[:4])
    np.testing.assert_array_equal(some.counts, whole.counts)
    assert some.proved_eps == pytest.approx(whole.gaps[4])
    assert "all counted, all within" in repr(some)


def test_a_search_that_was_stopped_says_what_is_proved(planted):
    X, y = planted
    stopped = L20Selector(3, ridge=1.0).fit(X, y).near_optimal(eps=0.5, time_limit=0.0)
    assert not stopped.is_complete
    assert stopped.proved_eps < 0.5
    assert "the search was stopped" in repr(stopped)
    assert not set(stopped.never) & set(L20Selector(3, ridge=1.0).fit(X, y).near_optimal(eps=0.5, X=X, y=y).optional)


def test_choices_among_the_panels(planted):
    X, y = planted
    names = [f"g{i}" for i in range(12)]
    frame = pytest.importorskip("pandas").DataFrame(X, columns=names)
    selector = L20Selector(3, ridge=1.0).fit(frame, y)
    atlas = selector.near_optimal(eps=0.5)
    assert atlas.panel(0).names == [names[i] for i in atlas.panels[0]]
    assert atlas.panel(0).gap == 0.0
    first = atlas.panels[0][0]
    assert first not in atlas.without([names[first]]).features
    other = int(atlas.optional[-1])
    holding = atlas.containing([other])
    assert holding.rank == 1 + next(i for i, panel in enumerate(atlas.panels) if other in panel)
    dear = {names[first]: 5.0}
    assert atlas.cheapest(dear).rank == atlas.without([first]).rank
    stability = StabilitySelector(L20Selector(3, ridge=1.0), n_resamples=10, random_state=0).fit(frame, y)
    means = [stability.frequencies_[panel].mean() for panel in atlas.panels]
    assert means[atlas.most_stable(stability).rank - 1] == pytest.approx(max(means))
    with pytest.raises(ValueError, match=r"No panel within .* is without"):
        atlas.without(list(range(12)))
    with pytest.raises(ValueError, match="3 values for 12 features"):
        atlas.cheapest([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="not all finite"):
        atlas.cheapest({"g1": np.nan})


def test_tables(planted):
    X, y = planted
    atlas = L20Selector(3, ridge=1.0).fit(X, y).near_optimal(eps=0.05)
    panels, features = atlas.to_frame(), atlas.feature_frame()
    assert panels["rank"].tolist() == list(range(1, atlas.n_panels + 1))
    assert panels["features"][0] == [str(i) for i in atlas.panels[0]]
    assert set(features["feature"][features["role"] == "core"]) == {str(i) for i in atlas.core}
    assert features["occurrence"].is_monotonic_decreasing
    replaced = features.set_index("feature")["replaced_by"]
    assert "11" in replaced["0"]
    assert "0" in replaced["11"]


def test_the_model_of_a_search_takes_the_samples_again(planted):
    X, y = planted
    search = L20SelectorCV(3, selector=L20Selector(ridge=1.0), cv=3).fit(X, y)
    found = search.model_.near_optimal(3, eps=0.1, X=X, y=y)
    np.testing.assert_array_equal(found.panels, L20Selector(3, ridge=1.0).fit(X, y).near_optimal(eps=0.1).panels)
