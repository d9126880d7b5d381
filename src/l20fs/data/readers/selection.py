"""Choice of features by names and patterns (``ignore`` and ``features``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate

from l20fs.data.readers.repeated import names_in_file
from l20fs.data.readers.table import Contents, DataError, Request, UnknownColumnError
from l20fs.text import did_you_mean


def matched(patterns: Iterable[str], names: Sequence[str]) -> set[str]:
    """Return the names that equal a pattern or, where none does, match it: ``*`` is any text, ``?`` any character.

    Examples
    --------
    >>> sorted(matched(["batch", "p?ate", "q*"], ["batch", "batch2", "plate", "q*", "q1"]))
    ['batch', 'plate', 'q*']
    """
    known, found = set(names), set()
    for pattern in patterns:
        if pattern in known:
            found.add(pattern)
        elif "*" in pattern or "?" in pattern:
            expression = re.compile(translate(pattern.replace("[", "[[]")))  # brackets are no sets here
            found |= {name for name in known if expression.match(name)}
    return found


def is_ignored(name: str, request: Request) -> bool:
    """Return whether a feature is to be left out, by its name."""
    return bool(matched(request.ignore, [name]))


def is_asked_for(name: str, request: Request) -> bool:
    """Return whether a feature is to be read, by its name."""
    if request.needed is not None:
        return request.needs(name)
    is_chosen = request.features is None or bool(matched(request.features, [name]))
    return is_chosen and not is_ignored(name, request)


def choose_features(contents: Contents, request: Request) -> Contents:
    """Return the contents without the features to ignore, and with the requested ones only.

    A name or pattern that fits nothing is refused; it may also name a column that is no feature.
    """
    if not request.ignore and request.features is None:
        return contents
    names, others = contents.feature_names, list(contents.others)
    if request.duplicates_rule != "number":  # one name stands for all features that have it in the file
        names = names_in_file(names, request)
    for item in request.ignore:
        if item in (request.table_target, *request.beside):
            what = "target" if item == request.table_target else "groups" if item == request.groups else "nuisances"
            raise DataError(f"{request.name}: --ignore {item!r} names the column of the {what}. Name others only.")
        if not matched([item], names + others):
            raise _unknown("--ignore", item, names + others, request)
    for item in request.features or ():
        if item in others and item not in names:
            raise DataError(
                f"{request.name}: --features {item!r} names a column that is left out: it holds text or is ignored."
            )
        if not matched([item], names):
            raise _unknown("--features", item, names, request)
    ignored = matched(request.ignore, names)
    wanted = set(names) if request.features is None else matched(request.features, names)
    kept = [place for place, name in enumerate(names) if name in wanted and name not in ignored]
    if not kept:
        raise DataError(f"{request.name}: --ignore and --features leave no feature. Leave fewer out.")
    return contents if len(kept) == len(names) else contents.with_features(kept)


def _unknown(option: str, item: str, names: Sequence[str], request: Request) -> UnknownColumnError:
    what = "no column matches" if "*" in item or "?" in item else "there is no column"
    return UnknownColumnError(f"{request.name}: {option}: {what} {item!r}. {did_you_mean(item, names)}")
