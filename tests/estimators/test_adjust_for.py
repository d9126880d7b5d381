"""adjust_for: the selection of a plain fit on residuals, and predictions that need no nuisance."""

from __future__ import annotations

from itertools import combinations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SOLVERS
from sklearn import config_context
from sklearn.model_selection import LeaveOneGroupOut, cross_validate
from sklearn.pipeline import make_pipeline

from l20fs import Constraints, L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.bounds.branch_and_bound import solve_exactly
from l20fs.design import finish
from l20fs.evaluation.engine import Samples, walk_fit
from l20fs.methods import FisherScore
from l20fs.objective import make_problem
from l20fs.prediction.substitution import NormalEquations

BATCH_GENE, GENE = 0, 1


def make_hospitals(seed=0, n_samples=90, n_features=20):
    """A gene that tells the classes, and one that tells the hospitals, which have different shares of the classes."""
    rng = np.random.default_rng(seed)
    hospital = np.arange(n_samples) % 3
    y = (rng.random(n_samples) < np.array([0.1, 0.5, 0.9])[hospital]).astype(int)
    X = rng.standard_normal((n_samples, n_features))
    X[:, BATCH_GENE] += 4.0 * hospital
    X[:, GENE] += 1.5 * y
    return X, y, np.array(["north", "south", "west"])[hospital]


def residuals(values, nuisances, root=1.0):
    columns = root * np.column_stack([np.ones(len(values)), nuisances])
    values = root * values.reshape(len(values), -1)
    return values - columns @ np.linalg.lstsq(columns, values, rcond=1e-10)[0]


def one_hot(labels):
    return (np.asarray(labels)[:, None] == np.unique(labels)).astype(float)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_gene_that_tells_the_classes_through_the_batch_alone_is_not_selected(solver):
    X, y, hospital = make_hospitals()
    selector = L20Selector(1, solver=solver)
    assert selector.fit(X, y).get_support(indices=True).tolist() == [BATCH_GENE]
    assert selector._n_nuisances == 0
    assert selector.fit(X, y, adjust_for=hospital).get_support(indices=True).tolist() == [GENE]
    assert selector._n_nuisances == 2


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_path_is_that_of_the_residuals(solver):
    X, _, hospital = make_hospitals()
    rng = np.random.default_rng(1)
    Y, age = rng.standard_normal((len(X), 2)) + X[:, 2:4], rng.normal(50, 9, len(X))
    nuisances = pd.DataFrame({"hospital": hospital, "age": age, "years": 1.0 + 2.0 * age})
    columns = np.column_stack([one_hot(hospital), age])
    options = {"ridge": 0.5, "scale": "zscore", "solver": solver, "max_features_to_select": 8}
    found = L20Regressor(5, **options).fit(X, Y, adjust_for=nuisances)
    plain = L20Regressor(5, **options).fit(residuals(X, columns), residuals(Y, columns))
    np.testing.assert_array_equal(found.ranking_, plain.ranking_)
    np.testing.assert_allclose(found.coef_, plain.coef_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.path_.losses, plain.path_.losses, rtol=1e-9)
    # The intercept predicts the mean of the samples as they are.
    np.testing.assert_allclose(found.predict(X).mean(axis=0), Y.mean(axis=0))


def make_matrices():
    return {
        "float32": lambda X: X.astype(np.float32),
        "sparse": sp.csr_array,
        "Dask": lambda X: da.from_array(X, chunks=(30, -1)),
        "Dask columns": lambda X: da.from_array(X, chunks=(-1, 50)),
    }


@pytest.mark.parametrize("make", make_matrices().values(), ids=make_matrices())
@pytest.mark.parametrize("has_weights", [False, True])
def test_every_container_gives_the_same(make, has_weights):
    X, y, hospital = make_hospitals(n_features=150 if has_weights else 40)
    weights = np.arange(len(X)) % 3 + 0.5 if has_weights else None
    dense = L20Classifier(4).fit(X, y, weights, hospital)
    other = L20Classifier(4).fit(make(X), y, weights, hospital)
    np.testing.assert_array_equal(other.ranking_[other.support_], dense.ranking_[dense.support_])
    np.testing.assert_array_equal(other.support_, dense.support_)
    rtol = 1e-3 if make(X).dtype == np.float32 else 1e-6
    np.testing.assert_allclose(other.coef_, dense.coef_, rtol=rtol)
    np.testing.assert_allclose(other.predict_proba(X.astype(make(X).dtype)), dense.predict_proba(X), atol=rtol)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_the_best_panel_is_that_of_the_residuals(seed):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(8, 16)), int(rng.integers(4, 10)), int(rng.integers(1, 4))
    nuisances = np.column_stack([one_hot(np.arange(n) % rng.integers(2, 4)), rng.standard_normal(n)])
    X = rng.standard_normal((n, d)) + 3.0 * nuisances @ rng.standard_normal((nuisances.shape[1], d))
    Y = rng.standard_normal((n, 2)) + X[:, :1]
    weights = rng.integers(1, 4, n).astype(float) if seed % 2 else None
    root = 1.0 if weights is None else np.sqrt(weights)[:, None]
    left, targets = residuals(X, nuisances, root), residuals(Y, nuisances, root)
    problem = make_problem(X, Y, ridge=1.0, sample_weight=weights, nuisances=nuisances)
    mu = np.square(left).sum(axis=0).mean()

    def loss(rows):
        part = left[:, rows]
        W = np.linalg.solve(part.T @ part + mu * np.eye(len(rows)), part.T @ targets)
        return 0.5 * np.square(part @ W - targets).sum() + 0.5 * mu * np.square(W).sum()

    losses = {rows: loss(list(rows)) for rows in combinations(range(d), k)}
    best = min(losses, key=losses.__getitem__)
    found = solve_exactly(problem, k)
    assert found.certificate.upper_bound == pytest.approx(losses[best])
    assert losses[tuple(found.support.tolist())] == pytest.approx(losses[best])
    assert set(found.certificate.proved_in) <= set(best)
    assert not set(found.certificate.proved_out) & set(best)
    _, in_basis = problem.factor(np.array(best))
    assert problem.null_loss - 0.5 * np.vdot(in_basis, in_basis) == pytest.approx(losses[best])


def test_the_robust_loss_fits_the_nuisances_too():
    X, y, hospital = make_hospitals(n_features=8)
    found = L20Selector(2, loss="l21").fit(X, y, adjust_for=hospital)
    assert GENE in found.get_support(indices=True)
    assert BATCH_GENE not in found.get_support(indices=True)
    # Least squares with the weights of the end, and the nuisances, has the same coefficients.
    rows, weights = found.get_support(indices=True), found.sample_weights_
    root = np.sqrt(weights)[:, None]
    Y = one_hot(y) / np.sqrt(one_hot(y).mean(axis=0) * 2)
    left, targets = residuals(X / found.path_.x_scale, one_hot(hospital), root), residuals(Y, one_hot(hospital), root)
    part = left[:, rows]
    W = np.linalg.solve(part.T @ part + float(found.path_.ridge) * np.eye(2), part.T @ targets)
    W = W * np.sqrt(one_hot(y).mean(axis=0) * 2) / found.path_.x_scale[rows, None]
    np.testing.assert_allclose(found.coef_[:, rows].T, W, rtol=1e-5, atol=1e-9)
    # These weights are inverse to the lengths of the errors, of the fit with the nuisances.
    W = W / np.sqrt(one_hot(y).mean(axis=0) * 2) * found.path_.x_scale[rows, None]
    lengths = np.linalg.norm(targets - part @ W, axis=1) / root[:, 0]
    products = (weights * lengths)[lengths > 1e-2 * lengths.max()]
    assert len(products) > 10
    np.testing.assert_allclose(products, products.mean(), rtol=1e-3)


def test_groups_of_features_and_included_ones():
    X, y, hospital = make_hospitals()
    fitted = L20Selector(2, constraints=Constraints(include=[BATCH_GENE])).fit(X, y, adjust_for=hospital)
    assert fitted.get_support(indices=True).tolist() == [BATCH_GENE, GENE]
    fitted = L20Selector(1, constraints=Constraints(groups=[[BATCH_GENE, 2], [GENE, 3]])).fit(X, y, adjust_for=hospital)
    assert fitted.get_support(indices=True).tolist() == [GENE, 3]


def test_folds_adjust_for_the_batches_of_their_training_samples():
    X, y, hospital = make_hospitals()
    searched = L20SelectorCV("best", sizes=range(1, 5), cv=LeaveOneGroupOut())
    searched.fit(X, y, groups=hospital, adjust_for=hospital)
    scores = searched.cv_results_
    for number, (train, test) in enumerate(LeaveOneGroupOut().split(X, y, hospital)):
        model = L20Classifier(4, calibration=None).fit(X[train], y[train], adjust_for=hospital[train])
        for k in range(1, 5):
            assert scores[f"split{number}_test_score"][k - 1] == model.at(k).score(X[test], y[test])
    assert searched.model_._n_nuisances == 2
    assert searched.support_[GENE]


def test_other_estimators_hand_it_on():
    X, y, hospital = make_hospitals()
    stable = StabilitySelector(L20Selector(1), n_resamples=10, random_state=0).fit(X, y, adjust_for=hospital)
    assert np.argmax(stable.frequencies_) == GENE
    assert np.argmax(StabilitySelector(L20Selector(1), n_resamples=10, random_state=0).fit(X, y).frequencies_) == BATCH_GENE
    with pytest.raises(TypeError, match=r"FisherScore takes no adjust_for\. Leave it out"):
        StabilitySelector(FisherScore(1)).fit(X, y, adjust_for=hospital)
    selector = L20Selector(1)
    finish(walk_fit(selector, Samples(X, y, nuisances=one_hot(hospital)).part(np.arange(60))))
    assert selector.get_support(indices=True).tolist() == [GENE]
    folded = L20Classifier(1, calibration=3).fit(X, y, adjust_for=hospital)
    assert folded.get_support(indices=True).tolist() == [GENE]


def test_scikit_learn_slices_and_routes_it():
    X, y, hospital = make_hospitals()
    pipeline = make_pipeline(L20Classifier(1))
    pipeline.fit(X, y, l20classifier__adjust_for=hospital)
    assert pipeline[-1].get_support(indices=True).tolist() == [GENE]
    with config_context(enable_metadata_routing=True):
        model = L20Classifier(1).set_fit_request(adjust_for=True)
        given = pd.DataFrame({"hospital": hospital})
        found = cross_validate(model, X, y, cv=3, params={"adjust_for": given}, return_estimator=True)
    assert [each.get_support(indices=True).tolist() for each in found["estimator"]] == [[GENE]] * 3


def test_a_panel_says_that_it_was_adjusted_and_predicts_as_the_model():
    X, y, hospital = make_hospitals()
    model = L20Classifier(3).fit(X, y, adjust_for=hospital)
    panel = model.to_panel(X, y, adjust_for=hospital)
    assert panel.provenance["n_nuisances"] == 2
    rows = [int(name[1:]) for name in panel.features[:3]]
    assert panel.predict(X[:, rows]).tolist() == model.predict(X).tolist()
    with pytest.raises(ValueError, match="The fit adjusted for 2 columns"):
        model.to_panel(X, y)
    # Another rule from its sums is that of a fit with these features alone.
    rule = NormalEquations(panel.cross_products, panel.columns).rule_on(range(len(rows)))
    np.testing.assert_allclose(rule.weights, panel.rules[2].weights, rtol=1e-6)


def test_nothing_left_to_explain_is_an_error_and_one_class_a_warning():
    X, y, hospital = make_hospitals()
    with pytest.raises(ValueError, match="adjust_for explains y altogether, so no feature can explain more"):
        L20Selector(1).fit(X, y, adjust_for=y)
    three = np.where(hospital == "west", 2, y)
    with pytest.warns(UserWarning, match="adjust_for explains class '2' altogether: no feature is selected for it"):
        L20Selector(1).fit(X, three, adjust_for=hospital)
    X[:, 5] = 3.0 * (hospital == "north") + 1.0
    assert np.isneginf(L20Selector(1).fit(X, y, adjust_for=hospital).scores_[5])
