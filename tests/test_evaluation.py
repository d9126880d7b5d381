from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score

from l20fs import L20Selector
from l20fs.data import make_planted
from l20fs.evaluation import accuracy_by_k, default_classifiers

N_SETS = 4


def draw_noise(random):
    return random.standard_normal((60, 2000)), random.permutation(np.repeat(["a", "b", "c"], 20))


def leaky_accuracy(X, y, k, random_state):
    """The mistake that the evaluation must not make: select with all samples, then cross-validate."""
    chosen = L20Selector(k).fit_transform(X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=random_state)
    return [cross_val_score(classifier, chosen, y, cv=folds).mean() for classifier in default_classifiers(48).values()]


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_has_chance_accuracy(seed):
    random = np.random.default_rng(seed)
    honest, leaky = [], []
    for number in range(N_SETS):
        X, y = draw_noise(random)
        scores = accuracy_by_k(L20Selector(20), X, y, [20], random_state=number)
        honest.append([accuracy.mean() for accuracy in scores.values()])
        leaky.append(leaky_accuracy(X, y, 20, random_state=number))
    # Three classes of equal size: 1/3 is right by chance. On one such set the accuracy has deviation 0.08, somewhat more
    # than that of 60 coin tosses since the folds share samples, so the mean of four has 0.04; four times that is allowed.
    np.testing.assert_allclose(np.mean(honest, axis=0), 1 / 3, atol=0.16)
    # The leak gives 0.79 (neighbours) and 0.87 (logistic) with deviation 0.03: far above what chance allows.
    assert (np.mean(leaky, axis=0) > 0.6).all()


def nearest_neighbours(X_train, y_train, sample, n_neighbours):
    """Vote among the nearest; on a tie the first label in the alphabet wins, as in scikit-learn."""
    distances = [np.sqrt(((x - sample) ** 2).sum()) for x in X_train]
    votes = Counter(y_train[i] for i in np.argsort(distances)[:n_neighbours])
    return min(votes, key=lambda label: (-votes[label], label))


@pytest.mark.parametrize("n_splits", [2, 5])
def test_accuracy_is_that_of_a_plain_loop(n_splits):
    X, y, _ = make_planted(60, 40, 4, 3, noise=0.2, random_state=0)
    y = np.array(["a", "b", "c"])[y]
    ks = [2, 7, 4]
    expected = np.zeros((n_splits, len(ks)))
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=3).split(X, y)
    for number, (train, test) in enumerate(folds):
        order = L20Selector(max(ks)).fit(X[train], y[train]).path_.order
        for column, k in enumerate(ks):
            chosen = order[:k]
            right = [nearest_neighbours(X[train][:, chosen], y[train], X[i, chosen], n_neighbours=5) == y[i] for i in test]
            expected[number, column] = np.mean(right)
    scores = accuracy_by_k(L20Selector(1), X, y, ks, n_splits=n_splits, random_state=3)
    np.testing.assert_allclose(scores["KNN-5"], expected, rtol=1e-12)
    assert len(np.unique(expected)) > 3  # the k and the folds differ, so a mix-up would be seen


def test_selection_never_sees_the_test_samples():
    X, y, _ = make_planted(60, 40, 4, 3, random_state=1)
    seen = []

    class Recording(L20Selector):
        def fit(self, X, y):
            seen.append((X.copy(), y.copy()))
            return super().fit(X, y)

    accuracy_by_k(Recording(3), X, y, [3], n_splits=4, random_state=2)
    folds = StratifiedKFold(4, shuffle=True, random_state=2).split(X, y)
    for (X_seen, y_seen), (train, _) in zip(seen, folds, strict=True):
        np.testing.assert_array_equal(X_seen, X[train])
        np.testing.assert_array_equal(y_seen, y[train])


def test_planted_features_beat_chance():
    # The three features explain the classes but for a little noise, so half of the way from chance to 1 is modest.
    X, y, _ = make_planted(200, 60, 3, 3, noise=0.1, random_state=0)
    largest_class = np.bincount(y).max() / len(y)
    for accuracy in accuracy_by_k(L20Selector(3), X, y, [3]).values():
        assert accuracy.mean() > (1 + largest_class) / 2


def test_seed_decides_the_folds():
    X, y, _ = make_planted(60, 20, 3, 3, random_state=0)
    first, again, other = (accuracy_by_k(L20Selector(3), X, y, [3], random_state=seed) for seed in (0, 0, 1))
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
    assert any((first[name] != other[name]).any() for name in first)


def test_selector_and_data_stay_as_they_were_and_every_fold_is_reported():
    X, y, _ = make_planted(40, 20, 3, 3, random_state=0)
    X_before, y_before = X.copy(), y.copy()
    selector = L20Selector(5).fit(X, y)
    support = selector.support_.copy()
    calls = []
    scores = accuracy_by_k(selector, X, y, [2, 3], n_splits=3, on_fold=lambda: calls.append(1))
    assert len(calls) == 3
    assert {accuracy.shape for accuracy in scores.values()} == {(3, 2)}
    assert selector.n_features_to_select == 5
    np.testing.assert_array_equal(selector.support_, support)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)


def test_few_samples_have_fewer_neighbours():
    X, y, _ = make_planted(30, 5, 1, 2, noise=0.1, random_state=0)
    rows = np.concatenate([np.flatnonzero(y == label)[:2] for label in (0, 1)])
    scores = accuracy_by_k(L20Selector(1), X[rows], y[rows], [1], n_splits=2)
    assert all(np.isfinite(accuracy).all() for accuracy in scores.values())


def test_alpha_that_leaves_a_fold_without_features_is_no_error():
    X, y, _ = make_planted(60, 12, 3, 3, noise=0.1, random_state=0)
    alpha = 0.999 * L20Selector(3).fit(X, y).path_.alphas[0]  # just below where the first feature enters
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    fitted = [L20Selector(3, alpha=alpha).fit(X[train], y[train]) for train, _ in folds]
    assert not all(selector.support_.any() for selector in fitted)
    scores = accuracy_by_k(L20Selector(3, alpha=alpha), X, y, [3])
    for accuracy in scores.values():
        assert np.isfinite(accuracy).all()
