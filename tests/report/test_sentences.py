from __future__ import annotations

import pytest

from l20fs.report import sentences

RIGHT = "98 % (92 to 100 %) of samples right"


def answer(k=13, aim="tell 4 classes apart", score=RIGHT, is_better=True, noun="feature", n_features=2308, **given):
    options = {"n_folds": 5, "is_corrected": False, "chance": "always the largest class: 37.0 %"} | given
    return sentences.answer(k, n_features, aim, score=score, is_better=is_better, noun=noun, **options)


def test_the_answer_is_one_sentence():
    assert answer() == (
        "13 of 2308 features tell 4 classes apart: 98 % (92 to 100 %) of samples right (5-fold cross-validation, 95 % "
        "interval)."
    )
    assert answer(is_corrected=True) == (
        "13 of 2308 features tell 4 classes apart: 98 % (92 to 100 %) of samples right, corrected for the choice of their "
        "number (5-fold cross-validation, 95 % interval)."
    )
    assert answer(k=1).startswith("1 of 2308 features tells 4 classes apart: ")
    assert answer(noun="feature group", n_features=20).startswith("13 of 20 feature groups tell")
    assert answer(aim="predict 'tell age'", score="R² 0.48 (0.41 to 0.55)").startswith(
        "13 of 2308 features predict 'tell age': R² 0.48 (0.41 to 0.55) ("
    )
    assert answer(k=1, aim="predict 'age'").startswith("1 of 2308 features predicts 'age': ")
    assert answer(reason=sentences.why_balanced("a", 0.9)).endswith(
        "interval). Balanced accuracy counts every class alike, since 'a' alone is 90.0 % of the samples."
    )


def test_the_answer_claims_nothing_that_is_not_measured():
    assert answer(score=None) == "13 of 2308 features were selected to tell 4 classes apart; how well is not known."
    assert answer(score=None, k=1).startswith("1 of 2308 features was selected")


def test_the_answer_admits_that_nothing_was_learned():
    assert "features do not tell 4 classes apart: " in answer(is_better=False)
    assert "features does not tell 4 classes apart: " in answer(is_better=False, k=1)
    assert "features may or may not tell 4 classes apart: " in answer(is_better=None)
    for verdict in (False, None):
        assert answer(is_better=verdict).endswith("; always the largest class: 37.0 %.")


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


def test_how_it_was_scored():
    text = sentences.how_it_was_scored(5, 63, groups=None)
    assert "63 samples were split into 5 parts with all classes" in text
    assert "divided by its deviation" in text
    assert "same part" not in text
    text = sentences.how_it_was_scored(5, 63, groups="donor", score_name="R²", is_regression=True)
    assert "split into 5 random parts" in text
    assert "Samples with the same 'donor' are always in the same part. The R² is that of all" in text
    assert "classes" not in text


def test_the_rest_of_what_is_said():
    assert f"{RIGHT} (it chose 30, 52)" in sentences.nested_estimate(RIGHT, [30, 52])
    assert "on 100 random halves" in sentences.how_stable(0.612, 0.5, 0.7, 100)
    assert "0.61 (95 % interval 0.50 to 0.70" in sentences.how_stable(0.612, 0.5, 0.7, 100)
    assert "chosen for being good" in sentences.how_it_was_corrected()
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
    assert sentences.few_folds(3, 5, None, None, 7).startswith("3 folds instead of 5: there are 7 samples only")
    assert sentences.few_folds(1, 5, None, None, 3).startswith("No cross-validation: there are 3 samples only. How good")


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
    assert "any of them may change the score" in sentences.few_samples(20, is_regression=True)


def test_a_dominant_class():
    assert sentences.dominant_class(None) is None
    assert "Class 'a' is 83.3 % of the samples" in sentences.dominant_class(("a", 50 / 60))


def test_a_feature_that_may_be_an_identifier():
    assert sentences.separating_feature(None) is None
    assert "'id' alone separates all classes" in sentences.separating_feature("id")
    assert sentences.copy_of_target(None) is None
    assert "follows exactly from the feature 'id'" in sentences.copy_of_target("id")


def test_a_page_that_is_cut():
    assert sentences.more_than_shown(100, 100, "feature") is None
    assert "the first 100 of the 150 features" in sentences.more_than_shown(150, 100, "feature")
