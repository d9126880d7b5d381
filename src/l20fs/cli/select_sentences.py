"""Sentences about the findings of ``l20fs select``, for the terminal and the page: answer, description, warnings."""

from __future__ import annotations

import math

import numpy as np

from l20fs import L20Selector
from l20fs.cli.select_findings import Findings
from l20fs.data.readers import Samples
from l20fs.evaluation import data_checks
from l20fs.evaluation.corrected_score import Estimate
from l20fs.evaluation.engine import dense_columns
from l20fs.evaluation.folds import N_FOLDS
from l20fs.evaluation.metrics import Metric
from l20fs.evaluation.predictions import JUDGES
from l20fs.evaluation.target_summary import FEWEST_OF_A_CLASS, Classes, TargetSummary
from l20fs.report import sentences
from l20fs.text import counted, percent
from l20fs.typing import Array


def answer(findings: Findings) -> str:
    """Return the result in one sentence."""
    score, metric = findings.score, findings.metric
    aim = (
        f"predict {findings.target_name!r}"
        if findings.is_regression
        else f"tell {counted(len(findings.classes), 'class')} apart"
    )
    return sentences.answer(
        findings.k,
        findings.n_units,
        aim,
        score=None if score is None else score_text(metric, score),
        n_folds=len(findings.predictions.folds) if findings.predictions else 0,
        is_corrected=findings.is_corrected,
        is_better=None if score is None else is_better(metric, score, findings.targets.chance(metric)),
        chance=chance_text(findings),
        noun=findings.noun,
        reason=why_this_metric(findings),
    )


def score_text(metric: Metric, score: Estimate) -> str:
    """Return a score with its interval as text."""
    return sentences.score_text(metric.title, *score, is_share=metric.is_share)


def is_better(metric: Metric, score: Estimate, chance: float) -> bool | None:
    """Return whether a score is better than chance; None if its interval does not say."""
    sure = score.lower > chance if metric.sign > 0 else score.upper < chance
    likely = metric.sign * (score.value - chance) > 0.0
    return True if sure else None if likely else False


def chance_name(findings: Findings) -> str:
    """Return what needs no features and has the score that is called chance."""
    if findings.is_regression:
        return "always the mean"
    by_need = {"labels": "always the largest class", "probabilities": "the shares of the classes as probabilities"}
    return by_need[findings.metric.needs]


def chance_text(findings: Findings) -> str:
    """Return the score that needs no features."""
    value = findings.targets.chance(findings.metric)
    return f"{chance_name(findings)}: {percent(value) if findings.metric.is_share else f'{value:.3g}'}"


def why_this_metric(findings: Findings) -> str | None:
    """Return the reason for a metric that was not asked for, if it needs one."""
    is_default = findings.options.scoring == "auto" and findings.metric.name == "balanced_accuracy"
    dominant = findings.classes.dominant() if is_default else None
    return None if dominant is None else sentences.why_balanced(*dominant)


def nested_answer(findings: Findings) -> str | None:
    """Return the score with the number of features chosen inside the folds, if it was measured."""
    score = findings.nested_score
    if score is None or findings.nested is None:
        return None
    return sentences.nested_estimate(score_text(findings.metric, score), findings.nested.sizes)


def settings(findings: Findings) -> str | None:
    """Return the scaling, the ridge and the constraints that were used, of methods that have them."""
    selector = findings.selector
    if not isinstance(selector, L20Selector):
        return None
    n_folds = len(findings.predictions.folds) if findings.predictions else 0
    scaling = sentences.how_it_was_scaled(selector.scale, selector.scale_)
    if findings.samples.adjust_for:
        scaling = f"{sentences.adjusted_for(list(findings.samples.adjust_for))} {scaling}"
    said = [scaling, sentences.how_strong_the_ridge_is(selector.ridge, selector.ridge_, n_folds)]
    if selector.constraints is not None and selector.constraints.limit_panels:
        said.append(f"Every panel meets the constraints: {selector.constraints.sentence()}.")
    return " ".join(said)


def describe(findings: Findings) -> list[str]:
    """Return a description of the method, the choice of k, the accuracy, the stability, and their limits."""
    options, (n_samples, n_features) = findings.options, findings.samples.X.shape
    reference = findings.selector.about.reference
    said = [
        sentences.what_was_done(options.method, n_samples, n_features, reference=reference, log=options.is_log),
        *filter(None, [settings(findings)]),
        sentences.how_k_was_chosen(findings.k, findings.k_rule, findings.noun, findings.metric.title),
    ]
    if findings.predictions is not None:
        groups = None if findings.samples.groups is None else options.groups
        n_folds, title = len(findings.predictions.folds), findings.metric.title
        said.append(
            sentences.how_it_was_scored(
                n_folds,
                n_samples,
                groups=groups,
                score_name=title,
                is_regression=findings.is_regression,
                has_neighbours=JUDGES[1] in findings.predictions.judges_for(findings.metric),
            )
        )
        if findings.is_corrected:
            said.append(sentences.how_it_was_corrected())
    if nested := nested_answer(findings):
        said.append(nested)
    stable = findings.stability
    if stable is not None and math.isfinite(stable.stability_):
        said.append(sentences.how_stable(stable.stability_, *stable.stability_interval_, len(stable.orders_)))
    return [*said, sentences.what_it_does_not_mean()]


def data_warnings(findings: Findings) -> list[str]:
    """Return warnings about the samples, the choice of k and the page, but for those on folds."""
    samples, options = findings.samples, findings.options
    is_raw = not options.is_log and data_checks.looks_like_counts(samples.X)
    said = [
        sentences.few_samples(len(samples.y), is_regression=findings.is_regression),
        *(_about_numbers(findings) if findings.is_regression else _about_classes(findings)),
        sentences.raw_counts(is_raw),
        sentences.gaps_in_panel(_gaps(findings), findings.k, findings.noun),
        sentences.search_at_limit(findings.search_limit, findings.noun),
        sentences.more_than_shown(findings.k, findings.k_max, findings.noun),
    ]
    return [text for text in said if text]


def _gaps(findings: Findings) -> dict[str, float]:
    """Return the share of missing values of the selected features, or groups, that had some; of a group the largest."""
    missing, names = findings.samples.missing, findings.samples.feature_names
    if not missing:
        return {}
    units = findings.units[: findings.k]
    shares = [max(missing.get(names[member], 0.0) for member in members) for members in units]
    return {name: share for name, share in zip(findings.names_of(units), shares, strict=True) if share}


def _about_classes(findings: Findings) -> list[str | None]:
    samples, classes = findings.samples, findings.classes
    confined = data_checks.classes_in_one_group(samples.y, samples.groups)
    best, values = _best_feature(findings)
    is_wide = len(samples.feature_names) > len(samples.y)
    separates = is_wide and data_checks.separates_classes(values, classes.codes)
    return [
        sentences.rare_classes(classes.rare(), FEWEST_OF_A_CLASS),
        sentences.dominant_class(classes.dominant()) if findings.metric.name == "accuracy" else None,
        sentences.classes_in_one_group(confined, findings.options.groups or ""),
        sentences.separating_feature(best if separates else None),
    ]


def _about_numbers(findings: Findings) -> list[str | None]:
    best, values = _best_feature(findings)
    return [sentences.copy_of_target(best if data_checks.follows_from(values, findings.targets.truth) else None)]


def warn_of_few_folds(samples: Samples, targets: TargetSummary) -> str | None:
    """Give the reason for fewer folds than usual, or for none; None if there are as many as usual."""
    n_groups = None if samples.groups is None else len(np.unique(samples.groups))
    smallest = targets.smallest if isinstance(targets, Classes) else None
    return sentences.few_folds(targets.n_folds(samples.groups), N_FOLDS, smallest, n_groups, len(samples.y))


def _best_feature(findings: Findings) -> tuple[str, Array]:
    """Return the name and the values of the best feature."""
    best = int(np.argmin(findings.selector.ranking_))
    return findings.samples.feature_names[best], dense_columns(findings.samples.X, np.array([best]))[:, 0]
