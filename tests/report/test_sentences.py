from __future__ import annotations

import pytest

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
    assert "up to 4.8 %" in sentences.all_were_right(63, 3 / 63)
    assert "need not be a cause" in sentences.what_it_does_not_mean()


def test_rare_classes():
    assert sentences.rare_classes([], 5) is None
    assert "Rare class with fewer than 5 samples: 'a' (4)" in sentences.rare_classes([("a", 4)], 5)
    text = sentences.rare_classes(list(zip("abcdef", [4, 1, 2, 3, 4, 4], strict=True)), 5)
    assert "Rare classes" in text
    assert "'e' (4). What" in text  # five of them, no more


def test_few_folds():
    assert sentences.few_folds(5, 5, ("a", 5), None) is None
    assert sentences.few_folds(3, 5, ("a", 3), None).startswith("3 folds instead of 5: class 'a' has 3 samples only")
    assert sentences.few_folds(1, 5, ("a", 1), None).startswith("No cross-validation: class 'a' has 1 sample only")
    assert sentences.few_folds(4, 5, ("a", 30), 4).startswith("4 folds instead of 5: there are 4 groups only")
    assert sentences.few_folds(1, 5, ("a", 30), 1).startswith("No cross-validation: there is one group only")
    assert "class 'a'" in sentences.few_folds(3, 5, ("a", 3), 10)


def test_raw_counts():
    assert sentences.raw_counts(False) is None
    assert "looks like raw counts" in sentences.raw_counts(True)


def test_classes_in_one_group():
    assert sentences.classes_in_one_group([], "batch") is None
    assert sentences.classes_in_one_group(["a"], "batch").startswith("Class 'a' is in one 'batch' only")
    assert sentences.classes_in_one_group(["a", "b"], "batch").startswith("Classes 'a', 'b' are in one 'batch' only")


def test_few_samples():
    assert sentences.few_samples(30) is None
    said = sentences.few_samples(20)
    assert "Only 20 samples: one sample more or less that is right changes the accuracy by 5.0 %" in said


def test_a_dominant_class():
    assert sentences.dominant_class(None) is None
    assert "Class 'a' is 83.3 % of the samples" in sentences.dominant_class(("a", 50 / 60))


def test_an_optimistic_choice():
    assert sentences.optimistic_choice("asked", is_nested=False) is None
    assert sentences.optimistic_choice("default", is_nested=False) is None
    for rule in ("best", "1se"):
        assert "--nested" in sentences.optimistic_choice(rule, is_nested=False)
        assert "--nested" not in sentences.optimistic_choice(rule, is_nested=True)
        assert "slightly optimistic" in sentences.optimistic_choice(rule, is_nested=True)


def test_a_feature_that_may_be_an_identifier():
    assert sentences.separating_feature(None) is None
    assert "'id' alone separates all classes" in sentences.separating_feature("id")


def test_a_page_that_is_cut():
    assert sentences.more_than_shown(100, 100, "feature") is None
    assert "the first 100 of the 150 features" in sentences.more_than_shown(150, 100, "feature")
