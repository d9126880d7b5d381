"""What is proved about panels: bounds, the best panel, all near-optimal ones, and constraints, against all panels.

The loss of every panel is computed here; in exact fractions where X and y hold small whole numbers, so that no bound may be
above it by rounding either.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from acceptance import doors

OPTIONS = {"scale": "none", "class_weight": None, "fit_intercept": True, "loss": "squared"}
AHIHT = {"alpha_start": None, "rate": 0.9, "line_search_factor": 2.0, "eta": None}


def all_losses(X, Y, ridge, batches=None, most=None):
    """The loss of every panel of up to ``most`` features: one after another is eliminated, which keeps fractions exact.

    X and Y lose their means, those within each batch if there are any; mu is ``ridge`` times the mean energy of a feature.
    """
    X, Y, batches = X.copy(), Y.copy(), np.zeros(len(X)) if batches is None else batches
    for own in (batches == batch for batch in np.unique(batches)):
        X[own], Y[own] = (part[own] - part[own].sum(axis=0) / int(own.sum()) for part in (X, Y))
    mu, losses = ridge * (X * X).sum() / X.shape[1], {}

    def add(panel, gram, moments, loss):
        losses[panel] = loss
        for i in range(len(gram) if len(panel) != most else 0):  # the features after the last one of the panel
            g, m, pivot = gram[i, i + 1 :], moments[i], gram[i, i] + mu
            left = gram[i + 1 :, i + 1 :] - np.outer(g, g / pivot), moments[i + 1 :] - np.outer(g, m / pivot)
            add((*panel, X.shape[1] - len(gram) + i), *left, loss - m @ m / pivot / 2)

    add((), X.T @ X, X.T @ Y, (Y * Y).sum() / 2)
    return losses


def of_size(losses, k):
    return {panel: loss for panel, loss in losses.items() if len(panel) == k}


def check(certificate, losses, chosen):
    """Check a certificate for the panel ``chosen`` against the losses of all that compete."""
    assert Fraction(certificate.lower_bound) <= min(losses.values())
    assert certificate.upper_bound == pytest.approx(float(losses[chosen]), rel=1e-8)
    assert certificate.gap == pytest.approx(1.0 - certificate.lower_bound / certificate.upper_bound, abs=1e-4)
    good = [set(panel) for panel, loss in losses.items() if loss <= losses[chosen]]
    assert set(certificate.proved_in) <= set.intersection(*good)
    assert set(certificate.proved_out).isdisjoint(set.union(*good))


@pytest.mark.parametrize("kind", ["plain", "float32", "weighted", "adjusted"])
def test_bounds_hold_in_exact_arithmetic(kind):
    random = np.random.default_rng(120 + ["plain", "float32", "weighted", "adjusted"].index(kind))  # bounds are close here
    for ridge in (Fraction(1, 2), Fraction(1), Fraction(3)):
        X, y = random.integers(-4, 5, (20, 8)), random.permutation(np.arange(20) % 3)
        X[:, 0] += 3 * y
        X[:, 3] = X[:, 2]  # panels that tie
        X *= [1, 4, 1, 1, 3, 1, 2, 1]  # the norms of AHIHT mislead about large features
        weights, batches = random.integers(1, 4, 20), random.integers(0, 3, 20)
        samples = {"weighted": {"sample_weight": weights}, "adjusted": {"adjust_for": batches}}.get(kind, {})
        repeats = weights if kind == "weighted" else 1  # a sample of weight 2 is there twice
        exact = (np.repeat(part, repeats, axis=0) * Fraction(1) for part in (X, np.eye(3, dtype=int)[y]))
        losses = all_losses(*exact, ridge, batches if kind == "adjusted" else None)
        X = X.astype(np.float32 if kind == "float32" else float)
        for solver, steps, ranking in (("forward", None, "entry"), ("ahiht", AHIHT, "norm")):
            options = OPTIONS | {"solver": solver, "steps": steps, "ranking": ranking, "ridge": float(ridge)}
            fitted = doors.fit(X, y, 8, **samples, **options)
            for k in range(1, 9):
                sized = of_size(losses, k)
                check(doors.certify(fitted, X, y, k, **samples), sized, tuple(fitted.support(k)))
                support, certificate = doors.solve_exactly(fitted, X, y, k, **samples)
                assert sized[tuple(support)] == min(sized.values())
                assert certificate.gap < 1e-6
                check(certificate, sized, tuple(support))


def test_an_easy_problem_is_proved():
    """Orthogonal features with a strong ridge, of which five matter: their bound is the optimum."""
    basis = np.ones((1, 1), dtype=int)
    for _ in range(4):
        basis = np.kron(basis, [[1, 1], [1, -1]])
    X, y = basis[:, 1:10] * np.array([1, 1, 1, 4, 1, 1, 2, 1, 1]), basis[:, 1:12] @ [9, 8, 0, 2, 0, 0, 3, 7, 0, 1, 1]
    losses = all_losses(X * Fraction(1), y[:, None] * Fraction(1), Fraction(3))
    options = OPTIONS | {"solver": "forward", "ranking": "entry", "ridge": 3.0, "task": "regression"}
    X, y = X.astype(float), y.astype(float)
    fitted = doors.fit(X, y, 9, **options)
    for k in range(1, 10):
        sized, found = of_size(losses, k), doors.certify(fitted, X, y, k)
        check(found, sized, tuple(fitted.support(k)))
        assert found.lower_bound > 0.99 * min(sized.values())
        if k == 5:
            assert found.gap < 1e-6
            assert (found.proved_in.tolist(), found.proved_out.tolist()) == ([0, 1, 3, 6, 7], [2, 4, 5, 8])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("k", "ridge", "n_near"), [(3, 0.3, 7), (5, 0.1, 40), (6, 1.0, 300), (6, 80.0, 10)])
def test_near_optimal_panels_are_those_of_a_list_of_all(k, ridge, n_near, seed):
    """The tolerance is just enough for the last one; with a strong ridge the bounds are hardly below the losses."""
    random = np.random.default_rng([seed, k])
    X = random.standard_normal((40, 12)) + random.standard_normal((40, 1))
    y = np.digitize(X[:, :4] @ random.standard_normal(4) + random.standard_normal(40), [-1.0, 1.0])
    losses = of_size(all_losses(X, np.eye(3)[y], ridge, most=k), k)
    panels = sorted(losses, key=losses.get)
    while losses[panels[n_near]] < (1.0 + 1e-6) * losses[panels[n_near - 1]]:
        n_near += 1
    expected, tolerance = panels[:n_near], losses[panels[n_near - 1]] / losses[panels[0]] - 1.0 + 1e-7
    fitted = doors.fit(X, y, k, ridge=ridge, ranking="entry", **OPTIONS)
    found = doors.near_optimal(fitted, X, y, k, tolerance=tolerance, max_panels=10_000, time_limit=None)
    assert found.is_complete
    assert [tuple(panel) for panel in found.panels] == expected
    assert found.losses == pytest.approx([losses[panel] for panel in expected], rel=1e-8)
    counts = np.bincount(np.ravel(expected), minlength=12)
    assert found.counts.tolist() == counts.tolist()
    assert found.in_all.tolist() == np.flatnonzero(counts == n_near).tolist()
    assert found.in_some.tolist() == np.flatnonzero((counts > 0) & (counts < n_near)).tolist()
    assert found.in_none.tolist() == np.flatnonzero(counts == 0).tolist()
    costs = random.integers(1, 4, 12)
    assert tuple(found.cheapest(costs)) == min(expected, key=lambda panel: costs[list(panel)].sum())
    short = doors.near_optimal(fitted, X, y, k, tolerance=tolerance, max_panels=5, time_limit=None)
    assert [tuple(panel) for panel in short.panels] == expected[:5]
    assert (short.n_panels, short.counts.tolist()) == (n_near, counts.tolist())
    support, certificate = doors.solve_exactly(fitted, X, y, k)
    assert tuple(support) == panels[0]
    assert certificate.gap < 1e-6


def draw_wishes(random, owner):
    """Constraints at random, and a function that says whether a panel of k units meets them, written out."""
    j = random.permutation(8).tolist()
    wishes = {
        "groups": [j[:2], j[2:5]],
        "include": [int(random.integers(8))],
        "exclude": [int(random.integers(8))],
        "budget": float(random.integers(6, 20)),
        "exclusive": [random.permutation(8)[:2].tolist() for _ in range(2)],
        "min_per_class": int(random.integers(0, 3)),
        "max_per_class": int(random.integers(1, 5)),
        "sets": {"one": random.permutation(8)[:4].tolist(), "other": random.permutation(8)[:4].tolist()},
    }
    wishes = {name: wish for name, wish in wishes.items() if random.random() < 0.5}
    if "budget" in wishes:
        wishes["costs"] = random.integers(1, 5, 8).astype(float)
    if not {"min_per_class", "max_per_class"} & set(wishes):
        wishes.pop("sets", None)
    unit_of = np.arange(8)
    for group in wishes.get("groups", []):
        unit_of[group] = min(group)
    pools = wishes["sets"].values() if "sets" in wishes else [np.flatnonzero(owner == label) for label in range(3)]

    def allows(panel, k):
        held = [len(set(panel) & set(pool)) for pool in pools]
        return (
            len(set(unit_of[list(panel)])) == k
            and np.isin(unit_of, unit_of[list(panel)]).sum() == len(panel)
            and set(wishes.get("include", [])) <= set(panel)
            and set(wishes.get("exclude", [])).isdisjoint(panel)
            and wishes.get("costs", np.zeros(8))[list(panel)].sum() <= wishes.get("budget", 0.0)
            and min(held) >= wishes.get("min_per_class", 0)
            and max(held) <= wishes.get("max_per_class", 8)
            and all(len(set(panel) & set(those)) < 2 for those in wishes.get("exclusive", []))
        )

    return wishes, unit_of, allows


def panel_of(fitted, size):
    """The best features of a path, or None if the constraints leave no panel of so few."""
    try:
        return tuple(fitted.support(size))
    except ValueError:
        return None


@pytest.mark.parametrize("number", range(16))
def test_constraints_are_met_by_all_panels(number):
    random = np.random.default_rng(number)
    X, y = random.standard_normal((30, 8)), random.permutation(np.arange(30) % 3)
    wishes, unit_of, allows = draw_wishes(random, np.argmax([X[y == label].mean(axis=0) for label in range(3)], axis=0))
    options = OPTIONS | wishes | {"solver": ("forward", "swap")[number % 2], "ranking": "entry", "ridge": 0.5}
    losses = all_losses(X, np.eye(3)[y], 0.5)
    for k in range(1, len(set(unit_of) - set(unit_of[wishes.get("exclude", [])])) + 1):
        allowed = {panel: loss for panel, loss in losses.items() if allows(panel, k)}
        if not allowed:
            with pytest.raises(ValueError, match=r"\w"):
                doors.fit(X, y, k, **options)
            continue
        fitted = doors.fit(X, y, k, **options)
        support, certificate = doors.solve_exactly(fitted, X, y, k)
        assert tuple(support) == min(allowed, key=allowed.get)
        assert certificate.gap < 1e-6
        near = sorted(panel for panel, loss in allowed.items() if loss <= 1.03 * allowed[tuple(support)])
        found = doors.near_optimal(fitted, X, y, k, tolerance=0.03, max_panels=10_000, time_limit=None).panels
        assert sorted(tuple(np.flatnonzero(np.isin(unit_of, unit_of[panel]))) for panel in found) == near
        if "groups" not in wishes:  # groups of different sizes have prices
            check(doors.certify(fitted, X, y, k), allowed, tuple(fitted.support(k)))
        refused = [size for size in range(1, k + 1) if panel_of(fitted, size) is None]
        assert refused == list(range(1, len(refused) + 1))  # too few for what the constraints ask for
        assert len(refused) < k
        assert all(allows(panel_of(fitted, size), size) for size in range(len(refused) + 1, k + 1))
