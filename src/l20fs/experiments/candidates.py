"""Methods that ``l20fs compare`` can run, by name: for labels, and for numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from l20fs.experiments.plan import Plan, PlanError, Variant, load_plan, selector_class
from l20fs.methods import discover
from l20fs.text import closest_hint, joined

#: Default methods: fast ones of different kinds, which take minutes for 100 samples with 5000 features.
DEFAULT_METHODS = ("Baseline", "L20Selector", "RFS", "mRMR", "ReliefF", "FisherScore")

#: The same for numbers.
DEFAULT_FOR_NUMBERS = ("Baseline", "L20Selector", "RFS", "L21")


def choose_variants(names: Sequence[str] | None = None, *, for_labels: bool = True) -> tuple[Variant, ...]:
    """Return methods by name, each with its grid: those of ``plans/compare.toml``, any other with its defaults.

    Parameters
    ----------
    names : sequence of str, optional
        Names, case-insensitive; ``["all"]`` stands for every method that uses labels, or numbers; None: a few.
    for_labels : bool, default=True
        Whether y holds labels; for numbers, methods that need labels are refused.

    Examples
    --------
    >>> [(variant.label, dict(variant.choice)) for variant in choose_variants(["mrmr", "L20Selector"])][:2]
    [('mRMR', {}), ('L20Selector', {'ridge': 'auto'})]
    """
    known = _known()
    if names is None:
        names = DEFAULT_METHODS if for_labels else DEFAULT_FOR_NUMBERS
    if [name.lower() for name in names] == ["all"]:
        return tuple(variant for entry in known.values() if _uses(entry[0], for_labels) for variant in entry)
    chosen: dict[str, tuple[Variant, ...]] = {}
    for name in names:
        if name.lower() not in known:
            labels = [entry[0].label for entry in known.values()]
            raise PlanError(f"the method {name!r} is unknown. {closest_hint(name, labels)}")
        first = known[name.lower()][0]
        if not for_labels and _needs_labels(first):
            able = joined([entry[0].label for entry in known.values() if _uses(entry[0], for_labels)])
            raise PlanError(f"the method {first.label} needs class labels, and the target holds numbers. Use {able}.")
        chosen[name.lower()] = known[name.lower()]
    return tuple(variant for entry in chosen.values() for variant in entry)


def _known() -> dict[str, tuple[Variant, ...]]:
    """Return the variants of every method by lower-case label; those with grids first."""
    plan = load_plan("compare")
    found = {label.lower(): tuple(each for each in plan.variants if each.label == label) for label in plan.labels}
    return found | {name.lower(): (Variant(name, name, {}, {}),) for name in discover() if name.lower() not in found}


def _needs_labels(variant: Variant) -> bool:
    kind = selector_class(variant.method)
    return kind.about.supervised and kind.needs_labels and not kind().takes_numbers


def _uses(variant: Variant, for_labels: bool) -> bool:
    """Return whether a method uses labels, or numbers, to select."""
    return selector_class(variant.method).about.supervised and (for_labels or not _needs_labels(variant))


def split_names(text: str) -> list[str]:
    """Split names at commas, except for the one that is part of a name.

    Examples
    --------
    >>> split_names("RFS, l2,0-FS,mRMR")
    ['RFS', 'l2,0-FS', 'mRMR']
    """
    with_comma = [re.escape(name) for name in _known() if "," in name]
    found = re.findall(rf"\s*({'|'.join([*with_comma, '[^,]+'])})", text, re.IGNORECASE)
    return [name.strip() for name in found if name.strip()]


def left_out(plan: Plan) -> Iterator[str]:
    """Yield the methods that use such targets and are not in a plan."""
    for entry in _known().values():
        if _uses(entry[0], plan.metric.is_for_labels) and entry[0].label not in plan.labels:
            yield entry[0].label
