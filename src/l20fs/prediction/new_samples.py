"""Predictions of new samples, each by the features that it has, with what lies outside the training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from l20fs.prediction.panel import Panel
from l20fs.prediction.panel_file import PanelError
from l20fs.prediction.samples import in_patterns
from l20fs.text import MOST, listed
from l20fs.typing import Array


class NewSamples(NamedTuple):
    """Predictions of new samples.

    ``predicted`` are classes or numbers, of shape (n_samples,), or (n_samples, n_outputs) for several numbers;
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
    features, names = panel.features_for(k), panel.features + panel.substitutes
    read = {name: np.asarray(columns[name], dtype=np.float64) for name in names if name in columns}
    if not read:
        raise PanelError(
            f"None of the {len(features)} features of the panel is there: {listed(features)}. Give some of them."
        )
    n_samples = len(next(iter(read.values())))
    is_there = np.column_stack([~np.isnan(read[name]) if name in read else np.zeros(n_samples, bool) for name in names])
    anywhere = [name for place, name in enumerate(names) if is_there[:, place].any()]
    replaced = {} if set(features) <= set(anywhere) or not anywhere else panel.adapted(anywhere, k).replaced
    is_there[is_there[:, : len(features)].all(axis=1), len(features) :] = False  # which others there are does not matter

    shape = (n_samples,) if len(panel.targets) == 1 else (n_samples, len(panel.targets))
    predicted = np.full(shape, np.nan) if panel.classes is None else np.full(shape, "", dtype=object)
    probabilities = None if panel.classes is None else np.full((n_samples, len(panel.classes)), np.nan)
    far = "far from the training samples" if panel.classes is None else "far from all classes"
    remarks = ["not predicted: none of the features of the panel has a value"] * n_samples
    for samples, pattern in in_patterns(is_there):
        if not pattern.any():
            continue
        own = panel.adapted([name for name, is_known in zip(names, pattern, strict=True) if is_known], k)
        values = {name: read[name][samples] for name in own.features_for()}
        predicted[samples] = own.predict(values)
        if probabilities is not None:
            probabilities[samples] = own.predict_proba(values)
        missing = _on_missing({name: own.replaced[name] for name in features if name in own.replaced})
        for place, note in zip(samples, own.check(values).notes(far), strict=True):
            remarks[place] = "; ".join(filter(None, [note, missing]))
    return NewSamples(predicted, probabilities, remarks, replaced)


def _on_missing(replaced: dict[str, str | None]) -> str:
    """Say which features are missing, and what replaces them.

    Examples
    --------
    >>> _on_missing({"TP53": "CDKN1A", "MYC": None})
    'missing: TP53, predicted with CDKN1A instead, MYC, predicted without it'
    """
    named = [f"{name}, predicted {f'with {other} instead' if other else 'without it'}" for name, other in replaced.items()]
    more = f" and {len(named) - MOST} more" if len(named) > MOST else ""
    return f"missing: {', '.join(named[:MOST])}{more}" if named else ""
