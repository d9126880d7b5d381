"""Sentences about the findings of ``l20fs select``, for the terminal and the page: answer, description, warnings."""

from __future__ import annotations

import math

import numpy as np

from l20fs import L20Selector
from l20fs.cli.select_findings import Findings
from l20fs.data.readers import Samples
from l20fs.evaluation import data_checks
from l20fs.evaluation.data_checks import Classes
from l20fs.evaluation.engine import dense_columns
from l20fs.evaluation.folds import N_FOLDS, number_of_folds
from l20fs.report import sentences


def answer(findings: Findings) -> str:
    """Return the result in one sentence."""
    return sentences.answer(
        findings.k,
        findings.n_units,
        len(findings.classes),
        score=findings.score(),
        n_folds=len(findings.predictions.folds) if findings.predictions else 0,
        chance=findings.classes.largest_share,
        noun=findings.noun,
    )


def nested_answer(findings: Findings) -> str | None:
    """Return the accuracy with the number of features chosen inside the folds, if it was measured."""
    score = findings.nested_score()
    return None if score is None or findings.nested is None else sentences.nested_estimate(*score, findings.nested.sizes)


def settings(findings: Findings) -> str | None:
    """Return the scaling and the ridge that were used, of methods that have them."""
    selector = findings.selector
    if not isinstance(selector, L20Selector):
        return None
    n_folds = len(findings.predictions.folds) if findings.predictions else 0
    scaling = sentences.how_it_was_scaled(selector.scale, selector.scale_)
    return f"{scaling} {sentences.how_strong_the_ridge_is(selector.ridge, selector.ridge_, n_folds)}"


def describe(findings: Findings) -> list[str]:
    """Return a description of the method, the choice of k, the accuracy, the stability, and their limits."""
    options, (n_samples, n_features) = findings.options, findings.samples.X.shape
    reference = findings.selector.about.reference
    said = [
        sentences.what_was_done(options.method, n_samples, n_features, reference=reference, log=options.is_log),
        *filter(None, [settings(findings)]),
        sentences.how_k_was_chosen(findings.k, findings.k_rule, findings.noun),
    ]
    if findings.predictions is not None:
        groups = None if findings.samples.groups is None else options.groups
        said.append(sentences.how_accuracy_was_estimated(len(findings.predictions.folds), n_samples, groups=groups))
        if findings.score() == (1.0, 0.0):
            said.append(sentences.all_were_right(n_samples, data_checks.largest_error_share(n_samples)))
    if nested := nested_answer(findings):
        said.append(nested)
    stable = findings.stability
    if stable is not None and math.isfinite(stable.stability_):
        said.append(sentences.how_stable(stable.stability_, *stable.stability_interval_, len(stable.orders_)))
    return [*said, sentences.what_it_does_not_mean()]


def data_warnings(findings: Findings) -> list[str]:
    """Return warnings about the samples, the choice of k and the page."""
    samples, classes, options = findings.samples, findings.classes, findings.options
    confined = data_checks.classes_in_one_group(samples.y, samples.groups)
    is_raw = not options.is_log and data_checks.looks_like_counts(samples.X)
    said = [
        warn_of_few_folds(samples, classes),
        sentences.rare_classes(classes.rare(), data_checks.FEWEST_OF_A_CLASS),
        sentences.few_samples(len(samples.y)),
        sentences.dominant_class(classes.dominant()),
        sentences.classes_in_one_group(confined, options.groups or ""),
        sentences.raw_counts(is_raw),
        sentences.separating_feature(_separating_feature(findings)),
        sentences.optimistic_choice(findings.k_rule, is_nested=findings.nested is not None),
        sentences.search_at_limit(findings.search_limit, findings.noun),
        sentences.more_than_shown(findings.k, findings.k_max, findings.noun),
    ]
    return [text for text in said if text]


def warn_of_few_folds(samples: Samples, classes: Classes) -> str | None:
    """Give the reason for fewer folds than usual, or for none; None if there are as many as usual."""
    n_groups = None if samples.groups is None else len(np.unique(samples.groups))
    return sentences.few_folds(number_of_folds(samples.y, samples.groups), N_FOLDS, classes.smallest, n_groups)


def _separating_feature(findings: Findings) -> str | None:
    """Return the best feature if it separates all classes in a table of more features than samples."""
    samples = findings.samples
    best = int(np.argmin(findings.selector.ranking_))
    if len(samples.feature_names) <= len(samples.y):
        return None
    values = dense_columns(samples.X, np.array([best]))[:, 0]
    return samples.feature_names[best] if data_checks.separates_classes(values, findings.classes.codes) else None
