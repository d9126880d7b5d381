"""Sentences of the report: the answer, what was done, and warnings. All numbers are given; nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from l20fs.text import MOST, abbreviated, by_number, counted, listed, percent, quoted, small_percent, with_interval

#: With fewer samples than this a score is uncertain.
FEW_SAMPLES = 30
#: Relative difference of losses that may be rounding.
EQUAL = 1e-7

#: The second half of a sentence about each solver.
SOLVERS = {
    "forward": "adds, again and again, the feature that lowers the error most",
    "swap": "adds the feature that lowers the error most, and exchanges features as long as that helps",
    "ahiht": "follows the paper's accelerated thresholding steps as the price of a feature falls",
    "hiht": "follows the paper's thresholding steps as the price of a feature falls",
}

#: The rules for the number of features, in words.
RULES = {
    "best": "best score",
    "1se": "smallest within one standard error of the best",
    "asked": "asked for",
    "default": "default",
}


def score_text(name: str, value: float, lower: float, upper: float, *, is_share: bool) -> str:
    """Write a score with its interval.

    Examples
    --------
    >>> score_text("accuracy", 0.984, 0.915, 0.997, is_share=True), score_text("R²", 0.482, 0.41, 0.55, is_share=False)
    ('98 % (92 to 100 %) of samples right', 'R² 0.48 (0.41 to 0.55)')
    """
    text = with_interval(value, lower, upper, is_share=is_share)
    return f"{text} of samples right" if name == "accuracy" else f"{name} {text}"


def answer(
    k: int,
    n_features: int,
    aim: str,
    *,
    score: str | None,
    n_folds: int,
    is_corrected: bool,
    is_better: bool | None,
    chance: str,
    noun: str,
    reason: str | None = None,
) -> str:
    """State the result in one sentence.

    ``aim`` is what the features are for, such as "tell 4 classes apart"; ``is_better`` whether the score is better than
    ``chance``, None where its interval does not say. ``reason`` explains the metric.

    Examples
    --------
    >>> answer(
    ...     13, 2308, "tell 4 classes apart", score="98 % (91 to 100 %) of samples right", n_folds=5, is_corrected=False,
    ...     is_better=True, chance="always the largest class: 37 %", noun="feature",
    ... )
    '13 of 2308 features tell 4 classes apart: 98 % (91 to 100 %) of samples right (5-fold cross-validation, 95 % interval).'
    """
    which = f"{k} of {counted(n_features, noun)}"
    if score is None:
        return f"{which} {'was' if k == 1 else 'were'} selected to {aim}; how well is not known."
    first, rest = aim.split(" ", 1)
    does = {True: f"{first}{'s' * (k == 1)} {rest}", None: f"may or may not {aim}", False: f"do{'es' * (k == 1)} not {aim}"}
    correction = f", corrected for the choice of {'its' if k == 1 else 'their'} number" if is_corrected else ""
    beside = "" if is_better else f"; {chance}"
    because = f" {reason}" if reason else ""
    return (
        f"{which} {does[is_better]}: {score}{correction} ({n_folds}-fold cross-validation, 95 % interval){beside}.{because}"
    )


def why_balanced(name: str, share: float) -> str:
    """Explain the balanced accuracy that was chosen since a class dominates."""
    return f"Balanced accuracy counts every class alike, since {name!r} alone is {percent(share)} of the samples."


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


def adjusted_for(names: Sequence[str]) -> str:
    """Say which nuisances were taken out.

    Examples
    --------
    >>> adjusted_for(["batch", "age"])
    "Differences by 'batch' and 'age' were taken out of the features and of the target before the selection."
    """
    return f"Differences by {quoted(names)} were taken out of the features and of the target before the selection."


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


def how_k_was_chosen(k: int, rule: str, noun: str, score_name: str = "accuracy") -> str:
    """Give the reason for the number of features."""
    reasons = {
        "best": f"No other number of {noun}s up to the largest that was tried has a better {score_name} than {k}.",
        "1se": f"{k} is the smallest number of {noun}s whose {score_name} is at most one standard error from the best.",
        "asked": f"You asked for {counted(k, noun)}.",
        "default": f"{counted(k, noun)} is the default; --auto 1se lets the data choose.",
    }
    return reasons[rule]


def how_it_was_scored(
    n_folds: int,
    n_samples: int,
    *,
    groups: str | None,
    score_name: str = "accuracy",
    is_regression: bool = False,
    has_neighbours: bool = True,
) -> str:
    """Describe the cross-validation; ``has_neighbours`` says whether the nearest neighbours are shown."""
    together = f" Samples with the same {groups!r} are always in the same part." if groups else ""
    parts, done, mean = (
        ("random parts", "predicted", "mean") if is_regression else ("parts with all classes in each", "classified", "vote")
    )
    neighbours = (
        f"; 'KNN-5' is the {mean} of the five most similar samples, with each feature divided by its deviation."
        if has_neighbours
        else "."
    )
    return (
        f"The {n_samples} samples were split into {n_folds} {parts}. Each part was set aside once, the features were "
        f"selected anew on the others, and the part was then {done}.{together} The {score_name} is that of all these "
        "predictions together, with a 95 % interval. The judge 'linear' is a linear rule on the selected features"
        f"{neighbours}"
    )


def how_it_was_corrected() -> str:
    """Describe the correction for the choice of the number of features."""
    return (
        "The best of many scores is too good, since it was chosen for being good. Therefore the choice was repeated on "
        "random draws of the predictions, and judged by the samples that were not drawn; the mean of that is the corrected "
        "score (Tsamardinos, Greasidou and Borboudakis 2018). Scores beside other numbers of features are not corrected."
    )


def what_it_does_not_mean() -> str:
    """State the limits of the result."""
    return (
        "This holds for new samples of the same kind, measured in the same way. A feature in the list need not be a cause, "
        "and one that is not in it may do as well: see the features that could replace it."
    )


def nested_estimate(score: str, sizes: Sequence[int]) -> str:
    """State the score of the nested cross-validation."""
    return f"With the number of features chosen anew in each part: {score} (it chose {', '.join(map(str, sizes))})."


def how_stable(index: float, lower: float, upper: float, n_resamples: int) -> str:
    """Give the stability index: the agreement of the selections on halves of the samples."""
    return (
        f"Stability index: on {n_resamples} random halves of the samples the selections agree by {index:.2f} (95 % interval "
        f"{lower:.2f} to {upper:.2f}; 1 is always the same list, 0 is chance). The stability of a feature is the share of "
        "these halves on which it was selected."
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


def few_folds(
    n_folds: int, usual: int, smallest_class: tuple[str, int] | None, n_groups: int | None, n_samples: int = 0
) -> str | None:
    """Warn of fewer folds than usual, or of none; numbers have no ``smallest_class``."""
    if n_folds >= usual:
        return None
    effect = "The score is less certain."
    if n_groups is not None and n_groups <= n_folds:
        cause = f"there {'is one group' if n_groups == 1 else f'are {n_groups} groups'} only"
        effect = f"The score rests on {n_groups} groups; samples of another group may be predicted less well."
    elif smallest_class is None:
        cause = f"there are {counted(n_samples, 'sample')} only"
    else:
        name, size = smallest_class
        cause = f"class {name!r} has {counted(size, 'sample')} only"
    if n_folds < 2:
        beyond = "" if smallest_class is None else ", so it cannot be in both parts of a split"
        return f"No cross-validation: {cause}{beyond}. How good the selection is, is not known."
    return f"{n_folds} folds instead of {usual}: {cause}. {effect}"


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


def few_samples(n_samples: int, *, is_regression: bool = False) -> str | None:
    """Warn of a score that rests on few samples."""
    if n_samples >= FEW_SAMPLES:
        return None
    effect = (
        "any of them may change the score"
        if is_regression
        else f"one sample more or less that is right changes the accuracy by {percent(1 / n_samples)}"
    )
    return f"Only {n_samples} samples: {effect}. Check the list on other samples."


def dominant_class(dominant: tuple[str, float] | None) -> str | None:
    """Warn of a class, given with its share, that is many times as large as another."""
    if dominant is None:
        return None
    name, share = dominant
    return (
        f"Class {name!r} is {percent(share)} of the samples: naming it always would be right as often. Look at the errors "
        "class by class."
    )


def search_at_limit(limit: int | None, noun: str) -> str | None:
    """Warn that the search for the number of features ended at the largest that was tried."""
    if limit is None:
        return None
    return (
        f"The search for the number of {noun}s ended at its limit of {limit}, where the best score is: more may do "
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


def copy_of_target(name: str | None) -> str | None:
    """Warn of a feature from which the target follows exactly."""
    if name is None:
        return None
    return f"The target follows exactly from the feature {name!r}. Check that it is a measurement, not the target itself."


def gaps_in_panel(shares: Mapping[str, float], k: int, noun: str) -> str | None:
    """Warn of selected features that had missing values, with the share of the samples without one.

    Examples
    --------
    >>> gaps_in_panel({"CRP": 0.12, "IL6": 0.031}, 20, "feature")
    "2 of the 20 selected features had missing values: 'CRP' (12.0 %), 'IL6' (3.1 %). The gaps were filled in."
    """
    if not shares:
        return None
    named = [f"{name!r} ({percent(share)})" for name, share in list(shares.items())[:MOST]]
    more = f" and {len(shares) - MOST} more" if len(shares) > MOST else ""
    return (
        f"{len(shares)} of the {counted(k, f'selected {noun}')} had missing values: {', '.join(named)}{more}. The "
        "gaps were filled in."
    )


def near_optimal(n_panels: int, k: int, eps: str, noun: str, *, n_core: int, n_any: int, is_complete: bool) -> str:
    """Say how many panels are nearly as good as the best, and what they share.

    Examples
    --------
    >>> near_optimal(57, 20, "0.1 %", "feature", n_core=12, n_any=30, is_complete=True)
    '57 panels of 20 features are within 0.1 % of the lowest loss. 12 features are in all of them, 30 in any.'
    >>> near_optimal(9, 2, "1 %", "feature", n_core=0, n_any=6, is_complete=True)
    '9 panels of 2 features are within 1 % of the lowest loss. No feature is in all of them, 6 in any.'
    >>> near_optimal(1, 20, "0.1 %", "feature", n_core=20, n_any=20, is_complete=True)
    'No other panel of 20 features is within 0.1 % of the lowest loss.'
    >>> near_optimal(1, 20, "0.1 %", "feature", n_core=20, n_any=20, is_complete=False)
    'No other panel of 20 features was found within 0.1 % of the lowest loss.'
    """
    if n_panels == 1:
        return (
            f"No other panel of {counted(k, noun)} {'is' if is_complete else 'was found'} within {eps} of the lowest loss."
        )
    number = "" if is_complete else "At least "
    core = f"{counted(n_core, noun)} {by_number(n_core, 'is', 'are')}" if n_core else f"No {noun} is"
    return (
        f"{number}{n_panels} panels of {counted(k, noun)} are within {eps} of the lowest loss. {core} in all of them, "
        f"{n_any} in any."
    )


def near_optimal_proof(proved: float, *, is_complete: bool, n_listed: int, n_panels: int) -> str:
    """Say what is proved about panels that are not listed; ``proved`` is the share within which all are.

    Examples
    --------
    >>> near_optimal_proof(0.001, is_complete=True, n_listed=1, n_panels=1)
    'This is proved.'
    >>> near_optimal_proof(0.00031, is_complete=False, n_listed=9, n_panels=9)
    'The search was stopped: all panels within 0.031 % are listed, of others some may be missing.'
    """
    if is_complete and n_listed == n_panels:
        return by_number(n_panels, "This is proved.", "It is proved that there are no others.")
    reason = f"The best {n_listed} are listed" if is_complete else "The search was stopped"
    if proved > 0.0:
        return f"{reason}: all panels within {small_percent(proved)} are listed, of others some may be missing."
    if is_complete:
        return f"{reason}, and all were counted."
    return (
        f"{reason}: a panel that was not found has a loss that is lower by {small_percent(-proved)} at most. With a "
        "stronger ridge term (--ridge) more can be proved."
    )


def noise_of_losses(noise: float) -> str:
    """Say which differences of losses the samples cannot tell from zero.

    Examples
    --------
    >>> noise_of_losses(0.0062)
    'Other samples of the same kind would change a difference of losses by about 0.62 %: smaller ones may be chance.'
    """
    return (
        f"Other samples of the same kind would change a difference of losses by about {small_percent(noise)}: smaller ones "
        "may be chance."
    )


def loss_of_selection(gap: float, gained: Sequence[str], lost: Sequence[str]) -> str:
    """Say how far the loss of the selection is from the lowest, and by which features the best panel differs from it.

    Examples
    --------
    >>> loss_of_selection(0.0021, ["CD2"], ["CD3E"])
    "The loss of the selection itself is 0.21 % above the lowest: the best panel is with 'CD2', without 'CD3E' (panel 1)."
    """
    if gap <= EQUAL:
        return "The selection itself has the lowest loss."
    return (
        f"The loss of the selection itself is {small_percent(gap)} above the lowest: the best panel is with "
        f"{listed(gained)}, without {listed(lost)} (panel 1)."
    )


def cheapest_panel(rank: int, cost: float, best_cost: float, gained: Sequence[str], lost: Sequence[str]) -> str:
    """Name the cheapest of the panels that are nearly as good, by its differences from the best.

    Examples
    --------
    >>> cheapest_panel(3, 14.0, 22.0, ["CD2"], ["CD3E"])
    "The cheapest of them costs 14 instead of 22: with 'CD2', without 'CD3E' (panel 3)."
    """
    if rank == 1:
        return f"The best of them is also the cheapest: it costs {best_cost:g}."
    return (
        f"The cheapest of them costs {cost:g} instead of {best_cost:g}: with {listed(gained)}, without {listed(lost)} "
        f"(panel {rank})."
    )


def more_than_shown(k: int, k_max: int, noun: str) -> str | None:
    """Warn that the page does not show all selected features."""
    if k <= k_max:
        return None
    return f"The page shows the first {k_max} of the {counted(k, noun)}; selection.tsv has all of them."
