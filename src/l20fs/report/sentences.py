"""Sentences of the report: the answer, what was done, and warnings. All numbers are given; nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence

from l20fs.text import abbreviated, counted, percent

#: With fewer samples than this an accuracy is uncertain.
FEW_SAMPLES = 30

#: The second half of a sentence about each solver.
SOLVERS = {
    "forward": "adds, again and again, the feature that lowers the error most",
    "swap": "adds the feature that lowers the error most, and exchanges features as long as that helps",
    "sbr": "adds or removes single features as the price of a feature falls",
    "ahiht": "follows the paper's accelerated thresholding steps as the price of a feature falls",
    "hiht": "follows the paper's thresholding steps as the price of a feature falls",
}

#: The rules for the number of features, in words.
RULES = {
    "best": "highest accuracy",
    "1se": "smallest within one standard error of the best",
    "asked": "asked for",
    "default": "default",
    "alpha": "what --alpha leaves",
}


def answer(
    k: int, n_features: int, n_classes: int, *, score: tuple[float, float] | None, n_folds: int, chance: float, noun: str
) -> str:
    """State the result in one sentence.

    Examples
    --------
    >>> answer(13, 2308, 4, score=(0.984, 0.016), n_folds=5, chance=0.37, noun="feature")
    '13 of 2308 features tell 4 classes apart: 98.4 % ± 1.6 % of samples right in 5-fold cross-validation.'
    """
    which = f"{k} of {counted(n_features, noun)}"
    classes = counted(n_classes, "class")
    verb = "tells" if k == 1 else "tell"
    if score is None:
        return f"{which} {'was' if k == 1 else 'were'} selected to tell {classes} apart; how well is not known."
    mean, error = score
    measured = f"{percent(mean)} ± {percent(error)} of samples right in {n_folds}-fold cross-validation"
    if mean - error <= chance:
        do_not = "does not" if k == 1 else "do not"
        return f"{which} {do_not} tell {classes} apart: {measured}; the largest class alone is {percent(chance)}."
    return f"{which} {verb} {classes} apart: {measured}."


def what_was_done(method: str, n_samples: int, n_features: int, *, reference: str, log: bool) -> str:
    """Name the method and the data."""
    data = f"{counted(n_samples, 'sample')} with {counted(n_features, 'feature')}" + (", taken as log(1 + x)" if log else "")
    if method in SOLVERS:
        return f"The method '{method}' {SOLVERS[method]}; it was run on {data}, and gives a ranking of all features."
    return f"The method {method} ranked the features of {data} ({reference})."


#: What every feature was divided by.
SCALINGS = {
    "moderated": "divided by its deviation plus the median deviation ('moderated')",
    "zscore": "divided by its deviation ('zscore')",
    "none": "taken as it is ('none')",
}

#: Why ``scale="auto"`` chose it.
SCALE_REASONS = {
    "moderated": "The features vary alike, as those that share a unit do, so that",
    "zscore": "The features vary very differently, as in different units, or tell less the more they vary, so that",
}


def how_it_was_scaled(scale: str, used: str) -> str:
    """Name the scaling, and the reason if it was chosen by the data.

    Examples
    --------
    >>> how_it_was_scaled("zscore", "zscore")
    "Each feature was divided by its deviation ('zscore'), as asked for."
    """
    if scale == "auto":
        return f"{SCALE_REASONS[used]} each was {SCALINGS[used]}."
    return f"Each feature was {SCALINGS[used]}, as asked for."


def how_strong_the_ridge_is(ridge: float | str, used: float, n_folds: int) -> str:
    """Name the strength of the ridge term, and where it comes from."""
    if ridge != "auto":
        return f"The ridge term has the strength {used:g}, as asked for."
    anew = " In cross-validation both are those of the training samples." if n_folds else ""
    return f"The ridge term has the strength {used:.3g}, by the number of features per sample ('auto').{anew}"


def how_k_was_chosen(k: int, rule: str, noun: str) -> str:
    """Give the reason for the number of features."""
    reasons = {
        "best": f"No other number of {noun}s up to the largest that was tried has a higher accuracy than {k}.",
        "1se": f"{k} is the smallest number of {noun}s whose accuracy is at most one standard error below the best.",
        "asked": f"You asked for {counted(k, noun)}.",
        "default": f"{counted(k, noun)} is the default; --auto 1se lets the data choose.",
        "alpha": f"{counted(k, noun)} {'is' if k == 1 else 'are'} worth the price --alpha.",
    }
    return reasons[rule]


def how_accuracy_was_estimated(n_folds: int, n_samples: int, *, groups: str | None) -> str:
    """Describe the cross-validation."""
    together = f" Samples with the same {groups!r} are always in the same part." if groups else ""
    return (
        f"Accuracy: the {n_samples} samples were split into {n_folds} parts with all classes in each. Each part was set "
        f"aside once, the features were selected anew on the others, and the part was then classified.{together} The mean "
        f"over the {n_folds} parts is given, ± one standard error of it. The judge 'linear' is a linear rule on the "
        "selected features; 'KNN-5' is a vote of the five most similar samples."
    )


def all_were_right(n_samples: int, largest_error_share: float) -> str:
    """Give the upper bound of the error rate if no error was seen."""
    return (
        f"No sample was wrong; with {n_samples} samples, up to {percent(largest_error_share)} of all such samples could "
        "still be (95 % confidence)."
    )


def what_it_does_not_mean() -> str:
    """State the limits of the result."""
    return (
        "This holds for new samples of the same kind, measured in the same way. A feature in the list need not be a cause, "
        "and one that is not in it may do as well: see the features that could replace it."
    )


def nested_estimate(mean: float, error: float, sizes: Sequence[int]) -> str:
    """State the accuracy of the nested cross-validation."""
    return (
        f"With the number of features chosen anew in each part: {percent(mean)} ± {percent(error)} "
        f"(it chose {', '.join(map(str, sizes))})."
    )


def how_stable(index: float, lower: float, upper: float, n_resamples: int) -> str:
    """Give the agreement of the selections on halves of the samples."""
    return (
        f"Stability: on {n_resamples} random halves of the samples the selections agree by {index:.2f} (95 % interval "
        f"{lower:.2f} to {upper:.2f}; 1 is always the same list, 0 is chance)."
    )


# Warnings: each returns one sentence or two, or None where there is nothing to say.


def rare_classes(rare: Sequence[tuple[str, int]], fewest: int) -> str | None:
    """Warn of classes with too few samples, given with their sizes, to learn from and to test on."""
    if not rare:
        return None
    noun, pronoun = ("classes", "them") if len(rare) > 1 else ("class", "it")
    shown = ", ".join(f"{name!r} ({size})" for name, size in rare[:5])
    return (
        f"Rare {noun} with fewer than {fewest} samples: {shown}. What is said about {pronoun} rests on very little. Add "
        f"samples, or leave {pronoun} out."
    )


def few_folds(n_folds: int, usual: int, smallest_class: tuple[str, int], n_groups: int | None) -> str | None:
    """Warn of fewer folds than usual, or of none."""
    if n_folds >= usual:
        return None
    if n_groups is not None and n_groups <= n_folds:
        cause = f"there {'is one group' if n_groups == 1 else f'are {n_groups} groups'} only"
    else:
        name, size = smallest_class
        cause = f"class {name!r} has {counted(size, 'sample')} only"
    if n_folds < 2:
        return f"No cross-validation: {cause}, so it cannot be in both parts of a split. The accuracy is not known."
    return f"{n_folds} folds instead of {usual}: {cause}. The accuracy is less certain."


def raw_counts(looks_like_counts: bool) -> str | None:
    """Warn of counts that were not normalised."""
    if not looks_like_counts:
        return None
    return "The table looks like raw counts: whole numbers with a few very large ones. Add --log."


def classes_in_one_group(classes: Sequence[str], group_name: str) -> str | None:
    """Warn of classes that come from a single batch or donor."""
    if not classes:
        return None
    noun, verb = ("Class", "is") if len(classes) == 1 else ("Classes", "are")
    return (
        f"{noun} {abbreviated(classes)} {verb} in one {group_name!r} only: differences between classes and between values "
        f"of {group_name!r} cannot be told apart."
    )


def few_samples(n_samples: int) -> str | None:
    """Warn of an accuracy that rests on few samples."""
    if n_samples >= FEW_SAMPLES:
        return None
    return (
        f"Only {n_samples} samples: one sample more or less that is right changes the accuracy by {percent(1 / n_samples)}. "
        "Check the list on other samples."
    )


def dominant_class(dominant: tuple[str, float] | None) -> str | None:
    """Warn of a class, given with its share, that is many times as large as another."""
    if dominant is None:
        return None
    name, share = dominant
    return (
        f"Class {name!r} is {percent(share)} of the samples: naming it always would be right as often. Look at the errors "
        "class by class."
    )


def optimistic_choice(rule: str, *, is_nested: bool) -> str | None:
    """Warn that the number was chosen by the accuracy that is shown."""
    if rule not in ("best", "1se"):
        return None
    hint = "The nested estimate below is not." if is_nested else "--nested gives an estimate without that."
    return (
        f"The number of features was chosen by the same accuracy that is shown, which makes it slightly optimistic. {hint}"
    )


def search_at_limit(limit: int | None, noun: str) -> str | None:
    """Warn that the search for the number of features ended at the largest that was tried."""
    if limit is None:
        return None
    return (
        f"The search for the number of {noun}s ended at its limit of {limit}, where the highest accuracy is: more may do "
        "better. Raise it with --max-features."
    )


def separating_feature(name: str | None) -> str | None:
    """Warn of a feature that separates all classes on its own: it may be a code of the class."""
    if name is None:
        return None
    return (
        f"The feature {name!r} alone separates all classes without an error. Check that it is a measurement, not an "
        "identifier or a code of the class."
    )


def more_than_shown(k: int, k_max: int, noun: str) -> str | None:
    """Warn that the page does not show all selected features."""
    if k <= k_max:
        return None
    return f"The page shows the first {k_max} of the {counted(k, noun)}; selection.tsv has all of them."
