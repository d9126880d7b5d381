"""All near-optimal panels, and the best one under constraints, against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from constrained import all_panels, draw_penalty, draw_problem
from supports import dense

from l20fs.bounds import search
from l20fs.bounds.branch_and_bound import solve_exactly
from l20fs.bounds.enumeration import enumerate_panels
from l20fs.data import load_srbct
from l20fs.objective import make_problem
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.row_penalty import RowPenalty


@pytest.fixture(params=["by bounds", "by enumeration"])
def way(request, monkeypatch):
    """Leave everything to the bounds of nodes, or enumerate small nodes as usual."""
    if request.param == "by bounds":
        monkeypatch.setattr(search, "MOST_PANELS", 1)


def draw(seed):
    random = np.random.default_rng(seed)
    n_features = int(random.integers(12, 15) if seed % 10 == 0 else random.integers(3, 9))
    problem = draw_problem(random, n_features)
    penalty = None if random.random() < 0.3 else draw_penalty(random, n_features, with_rules=random.random() < 0.7)
    return random, problem, penalty


def panels_of(problem, penalty, k, price=0.0):
    """Objectives of the panels of k units, or of all that can be selected if these are fewer."""
    penalty = RowPenalty.plain(problem.n_features) if penalty is None else penalty
    may = penalty.may_enter(problem.design.varies)
    return all_panels(problem, penalty, price, [min(k, len(np.union1d(penalty.unit_of[may], penalty.included)))])


def draw_size(random, penalty, n_features):
    n_units, n_included = (n_features, 0) if penalty is None else (penalty.n_units, len(penalty.included))
    return int(random.integers(max(1, n_included), min(n_units, max(n_included + 1, 6)) + 1))


@pytest.mark.parametrize("seed", range(20))
def test_the_list_and_the_count_are_those_of_the_brute_force(seed, way):
    random, problem, penalty = draw(seed)
    k, eps = draw_size(random, penalty, problem.n_features), float(random.choice([0.0, 1e-3, 0.02, 0.2]))
    values = panels_of(problem, penalty, k)
    if not values:
        with pytest.raises(ValueError, match=r"no panel of \d+ meets all rules"):
            enumerate_panels(problem, k, eps=eps, penalty=penalty)
        return
    found = enumerate_panels(problem, k, eps=eps, penalty=penalty)
    margin = 3e-9 * problem.null_loss if problem.dtype == np.float64 else 3e-6 * problem.null_loss
    best = min(values.values())
    assert found.is_complete
    assert found.best_loss == pytest.approx(best, abs=margin)
    listed = {tuple(panel): loss for panel, loss in zip(found.panels.tolist(), found.losses.tolist(), strict=True)}
    assert len(listed) == len(found.panels) == found.n_panels
    assert listed.keys() >= {panel for panel, value in values.items() if value <= (1.0 + eps) * best}
    assert listed.keys() <= {panel for panel, value in values.items() if value <= (1.0 + eps) * best + margin}
    for panel, loss in listed.items():
        assert loss == pytest.approx(values[panel], abs=margin)
        assert set(panel) <= set(found.candidates.tolist())
    assert (np.diff(found.losses) >= -margin).all()
    counts = np.zeros_like(found.counts)
    for panel in listed:
        counts[list(panel)] += 1
    assert found.counts.tolist() == counts.tolist()
    others = [value for panel, value in values.items() if panel not in listed]
    assert best <= found.lower_bound <= min(others, default=np.inf) + margin


@pytest.mark.parametrize("price", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_panel_is_that_of_the_brute_force(seed, price, way):
    random, problem, penalty = draw(1000 + seed)
    price *= problem.null_loss
    k = draw_size(random, penalty, problem.n_features)
    values = panels_of(problem, penalty, k, price)
    if not values:
        with pytest.raises(ValueError, match="meets all rules"):
            solve_exactly(problem, k, penalty=penalty, price=price)
        return
    found = solve_exactly(problem, k, penalty=penalty, price=price)
    margin = 3e-9 * problem.null_loss if problem.dtype == np.float64 else 1e-5 * problem.null_loss
    best = min(values.values())
    assert values[tuple(found.units.tolist())] == pytest.approx(best, rel=1e-6, abs=margin)
    assert found.certificate.lower_bound <= best + 1e-10 * problem.null_loss
    assert found.certificate.gap <= 1e-6 + 2.0 * margin / best


def test_panels_beyond_the_limit_are_counted(way):
    random = np.random.default_rng(0)
    problem = make_problem(random.standard_normal((30, 9)), random.standard_normal((30, 2)), ridge=1.0)
    whole = enumerate_panels(problem, 3, eps=0.5)
    part = enumerate_panels(problem, 3, eps=0.5, max_panels=7)
    assert part.is_complete
    assert part.n_panels == whole.n_panels == len(whole.panels) > 40
    assert part.panels.tolist() == whole.panels[:7].tolist()
    assert part.counts.tolist() == whole.counts.tolist()
    assert part.lower_bound == pytest.approx(whole.losses[7])


@pytest.mark.parametrize("max_nodes", [0, 1, 5, 40])
def test_a_search_that_stops_early_says_what_is_proved(max_nodes, monkeypatch):
    monkeypatch.setattr(search, "MOST_PANELS", 1)
    monkeypatch.setattr(search, "BATCH", 4)
    random = np.random.default_rng(0)
    problem = make_problem(random.standard_normal((30, 12)), random.standard_normal((30, 2)), ridge=1.0)
    whole = enumerate_panels(problem, 4, eps=0.3)
    part = enumerate_panels(problem, 4, eps=0.3, max_nodes=max_nodes, support=whole.panels[0])
    assert part.is_complete == (part.n_panels == whole.n_panels)
    listed = {tuple(panel) for panel in part.panels.tolist()}
    assert not part.is_complete
    for panel, loss in zip(whole.panels.tolist(), whole.losses.tolist(), strict=True):
        assert tuple(panel) in listed or loss >= part.lower_bound - 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_nodes_whose_rules_cannot_be_met_are_closed(seed, monkeypatch):
    """The best feature is in none of three sets of which a panel of three needs one each: a node with it has no panel."""
    monkeypatch.setattr(search, "MOST_PANELS", 1)
    random = np.random.default_rng(seed)
    X = random.standard_normal((12, 8))
    problem = make_problem(X, random.standard_normal((12, 1)) + 3 * X[:, [7]], ridge=10.0 ** random.uniform(-4, 1))
    rules = PanelRules(sp.csr_array(np.repeat(np.eye(4), 2, axis=1)[:3]), np.ones(3), np.full(3, np.inf))
    penalty = RowPenalty(np.arange(8), np.ones(8), rules)
    values = panels_of(problem, penalty, 3)
    found = enumerate_panels(problem, 3, eps=10.0, penalty=penalty)
    assert len(values) == 8
    assert {tuple(panel) for panel in found.panels.tolist()} == {
        panel for panel, value in values.items() if value <= 11.0 * min(values.values())
    }


def test_copies_of_features_are_all_listed():
    random = np.random.default_rng(0)
    X = random.standard_normal((20, 4))
    problem = make_problem(np.hstack([X, X]), X @ random.standard_normal((4, 2)), ridge=0.5)
    found = enumerate_panels(problem, 2, eps=0.0)
    assert found.n_panels == 4
    assert len({tuple(sorted(panel % 4)) for panel in found.panels}) == 1


def test_the_panels_of_srbct_that_are_as_good():
    """Of 20 genes of 2308 within 0.1 %: all exchanges of a gene of the best panel that are as good are among them."""
    tumours = load_srbct()
    targets = np.array([tumours.target == label for label in np.unique(tumours.target)]).T.astype(float)
    problem = make_problem(tumours.data, targets / np.sqrt(targets.sum(axis=0)), ridge=10.0, scale="zscore")
    found = enumerate_panels(problem, 20, eps=0.001)
    assert found.is_complete
    listed = {tuple(panel) for panel in found.panels.tolist()}
    assert len(listed) == found.n_panels > 20
    best, columns = found.panels[0], dense(problem)
    gram, moments = columns.T @ columns + problem.ridge * np.eye(2308), columns.T @ problem.targets.T
    near = {tuple(best.tolist())}
    for position in range(20):
        others = np.setdiff1d(np.arange(2308), best)
        rows = np.hstack([np.tile(np.delete(best, position), (len(others), 1)), others[:, None]])
        explained = np.linalg.solve(gram[rows[:, :, None], rows[:, None, :]], moments[rows])
        losses = problem.null_loss - 0.5 * np.einsum("nrt,nrt->n", moments[rows], explained)
        near |= {tuple(row) for row in np.sort(rows[losses <= 1.001 * found.best_loss], axis=1).tolist()}
    assert near == {panel for panel in listed if len(set(panel) & set(best.tolist())) >= 19}
    assert len(near) > 10
