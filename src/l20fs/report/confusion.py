"""Confusions of classes in words and rows: the most frequent ones, and how often each class is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from l20fs.report.measures import ClassRate
from l20fs.text import counted, percent, with_interval

#: Confusions that are kept for a number of features, and of these told in words.
MOST_PAIRS, MOST_TOLD = 15, 3
#: Classes up to which a matrix is shown.
MOST_CLASSES = 30
#: From this number of classes on the rates are sorted, and most that are shown.
MANY_CLASSES, MOST_RATES = 12, 200

#: A text in parts: those at odd places are names.
Parts = list[str]

#: A true class, the class it is taken for, the number of such samples, and that of all samples of the true class.
Pair = tuple[int, int, int, int]


def confused_pairs(counts: Sequence[Sequence[int]]) -> list[Pair]:
    """Return the most frequent confusions of a matrix with true classes in rows; of equally many the larger share first.

    Rows beyond the columns are those of classes that cannot be predicted.

    Examples
    --------
    >>> confused_pairs([[8, 2, 0], [0, 4, 2], [1, 0, 9]])
    [(1, 2, 2, 6), (0, 1, 2, 10), (2, 0, 1, 10)]
    """
    pairs = [
        (truth, predicted, int(count), int(sum(row)))
        for truth, row in enumerate(counts)
        for predicted, count in enumerate(row)
        if count and truth != predicted
    ]
    return sorted(pairs, key=lambda pair: (-pair[2], pair[3], pair[0], pair[1]))[:MOST_PAIRS]


def in_words(pairs: Sequence[Pair], truth: Sequence[str], predicted: Sequence[str]) -> list[Parts]:
    """Tell the most frequent confusions.

    Examples
    --------
    >>> "".join(in_words([(0, 1, 2, 11)], ["RMS", "EWS"], ["RMS", "EWS"])[0])
    'Of 11 RMS samples 2 are taken for EWS (18.2 %).'
    """
    if not pairs:
        return [["No sample is taken for one of another class."]]
    return [
        [
            f"Of {total} ",
            truth[row],
            f" sample{'s' * (total != 1)} {count} {'is' if count == 1 else 'are'} taken for ",
            predicted[column],
            f" ({percent(count / total)}).",
        ]
        for row, column, count, total in pairs[:MOST_TOLD]
    ]


def pair_rows(pairs: Sequence[Pair], classes: Sequence[str]) -> list[list[Any]]:
    """Return the rows of the table of confusions: true class, what it was taken for, how many of how many, and the share."""
    return [
        [classes[truth], {"name": classes[predicted]}, f"{count} of {total}", percent(count / total)]
        for truth, predicted, count, total in pairs
    ]


def least_recognised(rates: Sequence[ClassRate], classes: Sequence[str]) -> list[Parts]:
    """Tell which class is recognised least, if any is recognised less than the others.

    Examples
    --------
    >>> rates = [ClassRate((1.0, 0.7, 1.0), None, 8), ClassRate((0.818, 0.523, 0.949), None, 11)]
    >>> "".join(least_recognised(rates, ["BL", "RMS"])[0])
    'RMS is recognised least: 82 % (52 to 95 %) of its 11 samples.'
    """
    known = [(rate.sensitivity, place) for place, rate in enumerate(rates) if rate.sensitivity is not None]
    if not known or min(known)[0][0] >= 1.0:
        return []
    recall, place = min(known)
    n_alike = sum(share[0] == recall[0] for share, _ in known)
    if n_alike == len(known) > 1:
        return []
    if n_alike > 1:
        others = f" and {n_alike - 1} other class{'es' * (n_alike > 2)} are recognised least: {percent(recall[0])}."
        return [["", classes[place], others]]
    share = with_interval(*recall, is_share=True)
    return [["", classes[place], f" is recognised least: {share} of its {counted(rates[place].n_samples, 'sample')}."]]


def rate_rows(rates: Sequence[ClassRate], classes: Sequence[str]) -> list[list[Any]]:
    """Return the rows of the rates: name, samples, recall as a bar and as a text, specificity.

    Many classes are sorted, that with the lowest recall first and those without samples last; few are in their own order.
    """
    places = list(range(len(rates)))
    if len(rates) >= MANY_CLASSES:
        places.sort(key=lambda place: (rates[place].sensitivity or (2.0,))[0])
    return [
        [
            classes[place],
            str(rate.n_samples),
            {"bar": rate.sensitivity},
            *("" if part is None else with_interval(*part, is_share=True) for part in (rate.sensitivity, rate.specificity)),
        ]
        for place in places[:MOST_RATES]
        for rate in [rates[place]]
    ]
