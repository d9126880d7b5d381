"""Predictions of new samples, each by the features that it has, with what lies outside the training data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from l20fs.prediction.panel import Panel
from l20fs.prediction.panel_records import PanelError
from l20fs.text import counted, listed
from l20fs.typing import Array

#: Values out of range and missing features that a remark names.
MOST_NAMED = 5


class NewSamples(NamedTuple):
    """Predictions of new samples.

    ``predicted`` are names of classes or numbers, of shape (n_samples,), or (n_samples, n_outputs) for several numbers;
    "" or NaN for a sample with none of the features. ``probabilities`` (n_samples, n_classes) is None for numbers.
    ``remarks`` has a text per sample, empty if nothing lies outside the training data; ``replaced`` the substitute, or
    None, of each feature that all samples lack.
    """

    predicted: Array
    probabilities: Array | None
    remarks: list[str]
    replaced: dict[str, str | None]

    @property
    def n_outside(self) -> int:
        """Number of samples with a remark."""
        return sum(map(bool, self.remarks))


def predict_samples(panel: Panel, columns: Mapping[str, Any], k: int | None = None) -> NewSamples:
    """Predict samples from named columns; a feature may be missing in all samples, or be NaN in some.

    Samples that lack the same features are predicted together, by the panel that is adapted to those which they have
    (:meth:`Panel.adapted <l20fs.Panel.adapted>`).

    Parameters
    ----------
    panel : Panel
    columns : mapping of str to arrays of shape (n_samples,)
        Values of features of the panel and of substitutes, as they were measured; other columns are ignored.
    k : int, optional
        Number of features; that of the selection by default.

    Returns
    -------
    NewSamples

    Examples
    --------
    >>> from l20fs import L20Classifier
    >>> from l20fs.data import load_srbct
    >>> tumours = load_srbct()
    >>> panel = L20Classifier(20).fit(tumours.data, tumours.target).to_panel(tumours.data, tumours.target)
    >>> columns = {name: tumours.data[2:4, int(name[1:])].copy() for name in panel.features}
    >>> columns[panel.features[0]][1] = np.nan
    >>> found = predict_samples(panel, columns)
    >>> found.predicted.tolist(), found.remarks[0], found.remarks[1][:8]
    (['EWS', 'EWS'], '', 'missing:')
    """
    features = panel.features_for(k)
    names = [*features, *(name for name in (*panel.features, *panel.substitutes) if name not in set(features))]
    read = {name: np.asarray(columns[name], dtype=np.float64) for name in names if name in columns}
    if not read:
        raise PanelError(
            f"None of the {len(features)} features of the panel is there: {listed(features)}. Give some of them."
        )
    n_samples = len(next(iter(read.values())))
    is_there = np.column_stack([~np.isnan(read[name]) if name in read else np.zeros(n_samples, bool) for name in names])
    found = _Empty(panel, n_samples)
    for chosen, own in _adapted(panel, k, names, is_there):
        found.fill(chosen, own, {name: read[name][chosen] for name in own.features_for(own.k)}, features)
    anywhere = [name for place, name in enumerate(names) if is_there[:, place].any()]
    is_complete = set(features) <= set(anywhere)
    replaced = {} if is_complete or not anywhere else panel.adapted(anywhere, k).replaced
    return NewSamples(found.predicted, found.probabilities, found.remarks, replaced)


def _adapted(panel: Panel, k: int | None, names: list[str], is_there: Array) -> Iterator[tuple[Array, Panel]]:
    """Yield the samples that lack the same features, and the panel for them; those that have nothing are left out."""
    n_features = len(panel.features_for(k))
    patterns = is_there.copy()
    patterns[is_there[:, :n_features].all(axis=1), n_features:] = False  # which others there are does not matter
    for pattern in np.unique(patterns, axis=0):
        if pattern.any():
            available = [name for name, is_known in zip(names, pattern, strict=True) if is_known]
            yield np.flatnonzero((patterns == pattern).all(axis=1)), panel.adapted(available, k)


class _Empty:
    """Predictions that are filled in, some samples at a time."""

    def __init__(self, panel: Panel, n_samples: int) -> None:
        self.remarks = ["not predicted: none of the features of the panel has a value"] * n_samples
        n_outputs = len(panel.targets)
        shape = (n_samples,) if n_outputs == 1 else (n_samples, n_outputs)
        is_labelled = panel.classes is not None
        self.predicted = np.full(shape, "", dtype=object) if is_labelled else np.full(shape, np.nan)
        self.probabilities = np.full((n_samples, len(panel.classes)), np.nan) if panel.classes is not None else None

    def fill(self, chosen: Array, panel: Panel, columns: dict[str, Array], features: list[str]) -> None:
        """Predict some samples by the panel for them; ``features`` are those of the panel that was not adapted."""
        self.predicted[chosen] = panel.predict(columns, panel.k)
        if self.probabilities is not None:
            self.probabilities[chosen] = panel.predict_proba(columns, panel.k)
        replaced = {name: panel.replaced[name] for name in features if name in panel.replaced}
        for place, remark in zip(chosen, _remarks(panel, columns, replaced), strict=True):
            self.remarks[place] = remark


def _remarks(panel: Panel, columns: dict[str, Array], replaced: dict[str, str | None]) -> list[str]:
    """Say of each sample what lies outside the training data."""
    check = panel.check(columns, panel.k)
    missing = _missing(replaced)
    far = "far from all classes" if panel.classes is not None else "far from the training samples"
    texts = []
    for outside, is_far in zip(check.outside, check.is_far, strict=True):
        parts = [_out_of_range(panel, outside)] if outside else []
        texts.append("; ".join([*parts, *([far] if is_far else []), *missing]))
    return texts


def _out_of_range(panel: Panel, outside: list[tuple[str, float]]) -> str:
    named = []
    for name, value in outside[:MOST_NAMED]:
        place = panel.features.index(name)
        ends = (panel.columns.minimum[place], panel.columns.maximum[place])
        low, high = np.expm1(ends) if panel.transform == "log1p" else ends
        named.append(f"{name} {value:.4g} (training {low:.4g} to {high:.4g})")
    more = f" and {len(outside) - MOST_NAMED} more" if len(outside) > MOST_NAMED else ""
    return f"{counted(len(outside), 'value')} outside the training range: {', '.join(named)}{more}"


def _missing(replaced: dict[str, str | None]) -> list[str]:
    """Return the text on missing features, if there are any.

    Examples
    --------
    >>> _missing({"TP53": "CDKN1A", "MYC": None})
    ['missing: TP53, predicted with CDKN1A instead, MYC, predicted without it']
    """
    named = [f"{name}, predicted {f'with {other} instead' if other else 'without it'}" for name, other in replaced.items()]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return [f"missing: {', '.join(named[:MOST_NAMED])}{more}"] if named else []
