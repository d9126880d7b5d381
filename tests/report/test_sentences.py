from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from l20fs.report import sentences


def answer(k=13, score=(0.984, 0.016), chance=0.37, noun="feature", n_features=2308):
    return sentences.answer(k, n_features, 4, score=score, n_folds=5, chance=chance, noun=noun)


def test_the_answer_is_one_sentence():
    assert answer() == (
        "13 of 2308 features tell 4 classes apart: 98.4 % ± 1.6 % of samples right in 5-fold cross-validation."
    )
    assert answer(k=1).startswith("1 of 2308 features tells 4 classes apart: ")
    assert answer(noun="feature group", n_features=20).startswith("13 of 20 feature groups tell")


def test_the_answer_claims_nothing_that_is_not_measured():
    assert answer(score=None) == "13 of 2308 features were selected to tell 4 classes apart; how well is not known."
    assert answer(score=None, k=1).startswith("1 of 2308 features was selected")


@pytest.mark.parametrize(("mean", "is_better"), [(0.30, False), (0.38, False), (0.39, True)])
def test_the_answer_admits_that_nothing_was_learned(mean, is_better):
    text = answer(score=(mean, 0.015), chance=0.37)
    assert ("do not tell" in text) != is_better
    assert is_better or "the largest class alone is 37.0 %" in text
    assert "does not tell" in answer(k=1, score=(0.2, 0.1))


@pytest.mark.parametrize("method", list(sentences.SOLVERS))
def test_every_solver_has_a_word(method):
    text = sentences.what_was_done(method, 63, 2308, reference="x", log=False)
    assert text.startswith(f"The method '{method}' ")
    assert "63 samples with 2308 features" in text
    assert "log" not in text


def test_other_methods_and_logarithms_are_named():
    text = sentences.what_was_done("MRMR", 63, 1, reference="Peng (2005)", log=True)
    assert text == "The method MRMR ranked the features of 63 samples with 1 feature, taken as log(1 + x) (Peng (2005))."


def test_every_rule_has_a_reason():
    for rule in sentences.RULES:
        assert "7" in sentences.how_k_was_chosen(7, rule, "feature")


def test_how_the_accuracy_was_estimated():
    text = sentences.how_accuracy_was_estimated(5, 63, groups=None)
    assert "63 samples were split into 5 parts" in text
    assert "same part" not in text
    assert "Samples with the same 'donor' are always in the same part." in sentences.how_accuracy_was_estimated(
        5, 63, groups="donor"
    )


def test_the_rest_of_what_is_said():
    assert "97.5 % ± 2.5 % (it chose 30, 52)" in sentences.nested_estimate(0.975, 0.025, [30, 52])
    assert "on 100 random halves" in sentences.how_stable(0.612, 0.5, 0.7, 100)
    assert "0.61 (95 % interval 0.50 to 0.70" in sentences.how_stable(0.612, 0.5, 0.7, 100)
    assert "up to 4.8 %" in sentences.all_were_right(63)  # the rule of three: 3 / 63
    assert "need not be a cause" in sentences.what_it_does_not_mean()


def test_rare_classes():
    assert sentences.rare_classes(["a", "b"], [5, 60]) is None
    assert "Rare class with fewer than 5 samples: 'a' (4)" in sentences.rare_classes(["a", "b"], [4, 60])
    text = sentences.rare_classes(list("abcdefg"), [4, 1, 2, 3, 4, 4, 9])
    assert "Rare classes" in text
    assert "'e' (4). What" in text  # five of them, no more


def test_few_folds():
    classes, sizes = ["a", "b"], [3, 60]
    assert sentences.few_folds(5, 5, classes, [5, 60], None) is None
    assert sentences.few_folds(3, 5, classes, sizes, None).startswith("3 folds instead of 5: class 'a' has 3 samples only")
    assert sentences.few_folds(1, 5, classes, [1, 60], None).startswith("No cross-validation: class 'a' has 1 sample only")
    assert sentences.few_folds(4, 5, classes, [30, 60], 4).startswith("4 folds instead of 5: there are 4 groups only")
    assert sentences.few_folds(1, 5, classes, [30, 60], 1).startswith("No cross-validation: there is one group only")
    assert "class 'a'" in sentences.few_folds(3, 5, classes, sizes, 10)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_raw_counts(make):
    rng = np.random.default_rng(0)
    counts = rng.negative_binomial(0.3, 0.01, size=(30, 50)).astype(float)
    assert "looks like raw counts" in sentences.raw_counts(make(counts), log=False)
    assert sentences.raw_counts(make(counts), log=True) is None
    assert sentences.raw_counts(make(counts + 0.5), log=False) is None
    assert sentences.raw_counts(make(np.log1p(counts)), log=False) is None
    assert sentences.raw_counts(make(counts - 1), log=False) is None
    pixels = rng.integers(0, 256, size=(30, 50)).astype(float)
    assert sentences.raw_counts(make(pixels), log=False) is None
    assert sentences.raw_counts(make((counts > 5).astype(float)), log=False) is None
    assert sentences.raw_counts(make(np.zeros((3, 4))), log=False) is None


def test_lonely_classes():
    y = np.array(["a", "a", "b", "b"])
    assert sentences.lonely_classes(y, None, "") is None
    assert sentences.lonely_classes(y, np.array(["u", "v", "u", "v"]), "batch") is None
    text = sentences.lonely_classes(y, np.array(["u", "u", "u", "v"]), "batch")
    assert text.startswith("Class 'a' is in one 'batch' only")
    assert sentences.lonely_classes(y, np.array(["u", "u", "v", "v"]), "batch").startswith("Classes 'a', 'b' are in one")


def test_few_samples():
    assert sentences.few_samples(30) is None
    said = sentences.few_samples(20)
    assert "Only 20 samples: one sample more or less that is right changes the accuracy by 5.0 %" in said


def test_imbalance():
    assert sentences.imbalance(["a", "b"], [49, 10]) is None
    assert "Class 'a' is 83.3 % of the samples" in sentences.imbalance(["a", "b"], [50, 10])


def test_an_optimistic_choice():
    assert sentences.optimistic_choice("asked", is_nested=False) is None
    assert sentences.optimistic_choice("default", is_nested=False) is None
    for rule in ("best", "1se"):
        assert "--nested" in sentences.optimistic_choice(rule, is_nested=False)
        assert "--nested" not in sentences.optimistic_choice(rule, is_nested=True)
        assert "slightly optimistic" in sentences.optimistic_choice(rule, is_nested=True)


def test_a_feature_that_may_be_an_identifier():
    codes = np.array([0, 0, 1, 1, 2, 2])
    perfect = np.array([5.0, 6.0, 1.0, 2.0, 8.0, 9.0])
    assert "'id' alone separates all classes" in sentences.identifier("id", perfect, codes, 100)
    assert sentences.identifier("id", perfect, codes, 6) is None  # the table is not wide
    for place, value in ((0, 2.0), (5, 5.5), (2, 8.5)):
        overlapping = perfect.copy()
        overlapping[place] = value
        assert sentences.identifier("id", overlapping, codes, 100) is None


def test_a_page_that_is_cut():
    assert sentences.more_than_shown(100, 100, "feature") is None
    assert "the first 100 of the 150 features" in sentences.more_than_shown(150, 100, "feature")
