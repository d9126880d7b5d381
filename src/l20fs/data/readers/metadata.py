"""Features that look like metadata of the samples, such as an age or the number of a batch, by name or by values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from l20fs.data.readers.table import Request
from l20fs.text import listed
from l20fs.typing import Array

#: Words that are metadata on their own, and words that may stand beside one of these.
METADATA = re.compile(
    r"age|sex|gender|bmi|weight|height|(?:batch|plate|lane|day|replicate)\d*|run|well|row|column|rin|site|center|centre|date|"
    r"days|year|years|month|months|time|survival|status|ids?|number|no|nr|index|barcode"
)
BESIDE = re.compile(
    r"sample|patient|subject|donor|case|person|participant|mouse|animal|cell|array|chip|slide|library|sequencing|scan|study|"
    r"hospital|clinic|collection|extraction|sampling|surgery|diagnosis|onset|birth|death|event|overall|disease|progression|"
    r"recurrence|free|follow|up|last|vital|body|mass|tissue|at|of|in|to|weeks|hours|h|y|yrs|kg|cm|os|pfs|dfs|code|group|"
    r"category|num|technical|biological"
)

#: Genes of the worm, such as age-1 and sex-1, and of the fly; nitric oxide; columns without a name.
EXCEPTIONS = re.compile(r"[a-z]{3,4}-\d+|run|NO|column \d+")
WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")

#: Fewest features and samples that show which values are unusual among them, and the largest share of unusual ones.
FEWEST, FEW_WHOLE = 10, 0.1
#: Samples whose values are looked at together.
SAMPLES_AT_ONCE = 16
#: Most different values of a code.
MOST_CODES = 10
#: Most names that are shown with the option, and letters of a name.
MOST_SHOWN, MOST_LETTERS = 20, 60


def note_on_metadata(X: Any, names: Sequence[str], request: Request) -> tuple[str, ...]:
    """Return a note for the user about features that look like metadata, unless the features were named."""
    if request.needed is not None or request.features is not None:
        return ()
    places = {place for place, name in enumerate(names) if named_like_metadata(name)}
    if len(places) > max(MOST_SHOWN, len(names) / 2):  # a series of days or of pixels
        return ()
    places |= set(coded_columns(X)) if isinstance(X, np.ndarray) else set()
    found = [names[place] for place in sorted(places)]
    if not found:
        return ()
    some, them = ("1 column looks", "it") if len(found) == 1 else (f"{len(found)} columns look", "them")
    option = shlex.quote(",".join(found[:MOST_SHOWN]))
    said = f"{some} like metadata, not features: {listed(found)}. If so, leave {them} out: --ignore {option}"
    return (f"{request.name}: {said}",)


def named_like_metadata(name: str) -> bool:
    """Return whether all words of a name are those of metadata.

    Examples
    --------
    >>> [named_like_metadata(name) for name in ("Age (years)", "patientID", "batch_2", "time.to.event", "SEX")]
    [True, True, True, True, True]
    >>> [named_like_metadata(name) for name in ("AGER", "ID1", "RIN2", "age-1", "RunLengthNonUniformity", "1007_s_at")]
    [False, False, False, False, False, False]
    """
    if len(name) > MOST_LETTERS or EXCEPTIONS.fullmatch(name):
        return False
    words = [word.lower() for word in WORD.findall(name) if not word.isdecimal()]
    are_metadata = [METADATA.fullmatch(word) is not None for word in words]
    return any(are_metadata) and all(
        is_one or BESIDE.fullmatch(word) for word, is_one in zip(words, are_metadata, strict=True)
    )


def coded_columns(X: Array) -> list[int]:
    """Return the first and last columns of few different whole numbers, where nearly all others are not whole.

    Such columns in the middle of a table may be features: logarithms of small counts are often whole.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((12, 20))
    >>> X[:, 19] = [1, 2] * 6
    >>> coded_columns(X)
    [19]
    """
    n_samples, n_features = X.shape
    if n_samples < FEWEST or n_features < FEWEST:
        return []
    possible = np.arange(n_features)
    for start in range(0, n_samples, SAMPLES_AT_ONCE):  # the first few leave few columns to look at
        some = X[start : start + SAMPLES_AT_ONCE, possible]
        possible = possible[np.all((some == np.rint(some)) | np.isnan(some), axis=0)]
    if len(possible) > FEW_WHOLE * n_features:
        return []
    whole = set(possible.tolist())
    n_first = next(place for place in range(n_features) if place not in whole)
    n_last = next(place for place in range(n_features) if n_features - 1 - place not in whole)
    at_the_ends = [*range(n_first), *range(n_features - n_last, n_features)]
    return [place for place in at_the_ends if 2 <= len(np.unique(X[~np.isnan(X[:, place]), place])) <= MOST_CODES]
