"""Rules that the fields of a report keep: what belongs together, and limits of size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from l20fs.report.measures import Curve, Lookup, Numbers, PanelNumbers, Strips

if TYPE_CHECKING:
    from l20fs.report.content import Content

Entry = TypeVar("Entry")

FORMAT = 3
#: Largest number of lines in the picture of the path, of points of a ROC curve, and of points in pictures of numbers.
MOST_LINES, MOST_ROC_POINTS, MOST_POINTS = 30, 60, 300
#: Largest number of values of single samples, which keeps the page small: of all features, and of a class.
MOST_STRIP_VALUES, MOST_OF_A_CLASS, MOST_STRIP_CLASSES = 12_000, 60, 100

#: Largest number that pictures show.
LARGEST = 1e100

#: A plain number, as a text.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)

#: A condition that must hold, and the fault if it does not.
Rules = Iterator[tuple[bool, str]]


def rules_of(content: Content) -> Rules:
    """Yield conditions that must hold, each with the fault if it does not."""
    n, n_classes = content.k_max, len(content.classes)
    yield content.format == FORMAT, f"format is {content.format}, not {FORMAT}"
    yield content.k >= 0 and n >= 0, "k and k_max must not be negative"
    yield content.k_min >= 1, "k_min must be positive"
    yield len(content.features) == n, f"{len(content.features)} features for k_max {n}"
    yield len(content.class_sizes) == n_classes, f"{len(content.class_sizes)} class sizes for {n_classes} classes"
    yield from _rules_of_task(content)
    for curve in (*content.curves, *content.further):
        yield from _rules_of_curve(curve, n)
    for name, texts in content.columns.items():
        yield len(texts) == n, f"column {name!r} has {len(texts)} texts for {n} features"
        taken = name in ("feature", "could_replace", "failure_cost") or name.startswith("coef_")
        yield not taken, f"{name!r} cannot be the name of a further column"
    for what, table in (("substitutes", content.substitutes), ("heat", content.heat)):
        yield len(table) in (0, n), f"{what} has {len(table)} entries for {n} features"
    ranks = (rank for entries in content.substitutes for _, _, rank in entries)
    yield all(0 <= rank <= n for rank in ranks), f"a substitute has a rank outside 0 to {n}"
    width = 3 * len(content.targets) if content.task == "regression" else n_classes
    yield all(len(row) == width for row in content.heat), f"a row of heat has not {width} means"
    places = sorted(place for _, group in content.heat_groups for place in group)
    yield places in ([], list(range(len(content.heat)))), "heat_groups has not every row of heat once"
    yield all(group for _, group in content.heat_groups), "a group of heat_groups is empty"
    yield from _rules_of_panels(content)
    yield from _rules_of_pictures(content)
    yield from _rules_of_probabilities(content)
    if content.numbers is not None:
        yield from _rules_of_numbers(content.numbers, n, len(content.targets))
    if content.strips is not None:
        yield from _rules_of_strips(content.strips, content)
    if content.lookup is not None:
        yield from _rules_of_lookup(content.lookup, content.shown)
    if (atlas := content.atlas) is not None:
        is_whole = len(atlas.optional) == len(atlas.shares) == len(atlas.replaced_by)
        yield is_whole, "the atlas has not a share and replacements for each optional feature"
        yield all(0.0 <= share <= 1.0 for share in atlas.shares), "a share of the atlas is not between 0 and 1"
    if content.panel is not None:
        yield from _rules_of_prediction(content.panel, content)


def _rules_of_task(content: Content) -> Rules:
    if content.task == "classification":
        yield not content.targets, "targets are those of a regression; classes are in classes"
        yield content.numbers is None, "numbers are those of a regression"
    else:
        yield bool(content.targets), "a regression needs targets"
        yield not content.classes, "a regression has no classes"
        of_classes = ("confusion", "confused", "rates", "roc", "reliability")
        given = [name for name in of_classes if getattr(content, name) is not None]
        yield not given, f"a regression has no {', '.join(given)}"


def _rules_of_curve(curve: Curve, n: int) -> Rules:
    yield len(curve.mean) == len(curve.error) == n, f"curve {curve.name!r} has not {n} means and errors"
    yield (curve.lower is None) == (curve.upper is None), f"curve {curve.name!r} has one end of its intervals only"
    if curve.lower is not None and curve.upper is not None:
        yield len(curve.lower) == len(curve.upper) == n, f"curve {curve.name!r} has not {n} intervals"
        ends = zip(curve.lower, curve.upper, strict=False)
        yield all(_is_interval(*pair) for pair in ends), f"an interval of curve {curve.name!r} ends before it starts"


def _rules_of_panels(content: Content) -> Rules:
    n, n_classes = content.k_max, len(content.classes)
    sizes = list(range(1, n + 1))
    if content.coef is not None:
        n_outputs = len(content.outputs)
        yield n_outputs > 0, "weights need classes"
        yield [len(panel) for panel in content.coef] == sizes, "coef has not k rows for each k"
        rows = [row for panel in content.coef for row in panel]
        yield all(len(row) == n_outputs for row in rows), f"a row of coef has not {n_outputs} weights"
        yield all(NUMBER.fullmatch(text) for row in rows for text in row), "a weight is no number"
    if content.failure_costs is not None:
        yield [len(panel) for panel in content.failure_costs] == sizes, "failure_costs has not k entries for each k"
        costs = [text for panel in content.failure_costs for text in panel]
        yield all(not text or NUMBER.fullmatch(text) for text in costs), "a failure cost is no number"
    if content.confusion is not None:
        yield len(content.confusion) == n, f"{len(content.confusion)} confusion matrices for {n} panels"
        is_square = all(
            len(matrix) == n_classes and all(len(row) == n_classes for row in matrix) for matrix in content.confusion
        )
        yield is_square, f"a confusion matrix is not {n_classes} x {n_classes}"
        counts = (count for matrix in content.confusion for row in matrix for count in row)
        yield all(count >= 0 for count in counts), "a count is negative"
    if content.confused is not None:
        yield content.confusion is None, "confused is for classes without a confusion matrix"
        yield len(content.confused) == n, f"{len(content.confused)} lists of confusions for {n} panels"
        pairs = [pair for pairs in _known(content.confused) for pair in pairs]
        is_known = all(0 <= place < n_classes for pair in pairs for place in pair[:2])
        yield is_known, f"a confusion names a class outside 0 to {n_classes - 1}"
        yield all(0 < count <= total for _, _, count, total in pairs), "a confusion has more samples than its class, or none"


def _rules_of_pictures(content: Content) -> Rules:
    if content.path is not None:
        n_lines, n_alphas = len(content.path.norms), len(content.path.alphas)
        yield n_lines <= min(MOST_LINES, content.k_max), f"the path has {n_lines} lines"
        yield len(content.path.entry) == n_lines, "the path has not one entry for each line"
        yield all(len(line) == n_alphas for line in content.path.norms), f"a line of the path has not {n_alphas} norms"
    if content.stability is not None:
        frequencies = content.stability.frequencies
        yield len(frequencies) == content.shown, f"{len(frequencies)} frequencies for {content.shown} features"
        yield all(0.0 <= share <= 1.0 for share in frequencies), "a frequency is not between 0 and 1"


def _rules_of_probabilities(content: Content) -> Rules:
    n, n_classes = content.k_max, len(content.classes)
    for name in ("rates", "roc", "reliability"):
        entries = getattr(content, name)
        yield entries is None or len(entries) == n, f"{name} has not one entry for each of {n} panels"
    yield content.roc is None or n_classes == 2, "a ROC curve is that of two classes"
    for rates in _known(content.rates):
        yield len(rates) == n_classes, f"an entry of rates has not {n_classes} classes"
        yield all(rate.n_samples >= 0 for rate in rates), "a number of samples in rates is negative"
        shares = [part for rate in rates for part in (rate.sensitivity, rate.specificity) if part is not None]
        yield all(0.0 <= lower <= share <= upper <= 1.0 for share, lower, upper in shares), "a rate is not in its interval"
    for roc in _known(content.roc):
        yield 2 <= len(roc.points) <= MOST_ROC_POINTS, f"a ROC curve has {len(roc.points)} points"
        yield (*roc.points[0], *roc.points[-1]) == (0, 0, 1, 1), "a ROC curve does not lead from (0, 0) to (1, 1)"
        yield all(a <= c and b <= d for (a, b), (c, d) in pairwise(roc.points)), "a ROC curve falls"
        yield 0.0 <= roc.auc <= 1.0 and _is_interval(roc.lower, roc.upper), "an area is not between 0 and 1, or its interval"
    for reliability in _known(content.reliability):
        yield len(reliability.bins) <= MOST_ROC_POINTS, f"a reliability curve has {len(reliability.bins)} bins"
        in_range = all(0.0 <= mean <= 1.0 and 0.0 <= share <= 1.0 and size > 0 for mean, share, size in reliability.bins)
        yield in_range, "a bin of probabilities is empty or not between 0 and 1"
        if (intervals := reliability.intervals) is not None:
            yield len(intervals) == len(reliability.bins), "there is not one interval for each bin of probabilities"
            yield (
                all(0.0 <= lower <= upper <= 1.0 for lower, upper in intervals),
                "an interval of a bin is not between 0 and 1",
            )
        yield reliability.brier >= 0.0 and reliability.log_loss >= 0.0, "a Brier score or log loss is negative"


def _rules_of_numbers(numbers: Numbers, n: int, n_targets: int) -> Rules:
    lengths = [len(values) for values in numbers.measured]
    yield len(lengths) == n_targets and len(set(lengths)) == 1, f"measured has not the same samples for {n_targets} targets"
    yield sum(lengths) <= MOST_POINTS, f"{sum(lengths)} measured numbers are more than {MOST_POINTS}"
    yield len(numbers.predicted) == n, f"{len(numbers.predicted)} predictions for {n} panels"
    known = [numbers.measured, *_known(numbers.predicted)]
    in_range = all(abs(value) <= LARGEST for panel in known for values in panel for value in values)
    yield in_range, f"a number is beyond {LARGEST:g}"
    for predicted in _known(numbers.predicted):
        yield [len(values) for values in predicted] == lengths, "there is not one predicted number for each measured one"


def _rules_of_strips(strips: Strips, content: Content) -> Rules:
    is_regression = content.task == "regression"
    n_rows = 1 if is_regression else len(content.classes)
    n_medians = 0 if is_regression else n_rows
    yield 0 < len(strips.values) <= content.k_max, f"strips has {len(strips.values)} features, the report {content.k_max}"
    yield len(strips.medians) == len(strips.values), "strips has not medians for each feature"
    yield all(len(rows) == n_rows for rows in strips.values), f"an entry of strips has not {n_rows} rows of values"
    yield all(len(row) == n_medians for row in strips.medians), f"an entry of strips has not {n_medians} medians"
    rows = [row for rows in strips.values for row in rows]
    yield sum(map(len, rows)) <= MOST_STRIP_VALUES, f"strips has more than {MOST_STRIP_VALUES} values"
    numbers = [*strips.targets, *(value for row in (*rows, *strips.medians) for value in row if value is not None)]
    yield all(abs(value) <= LARGEST for value in numbers), f"a value of strips is beyond {LARGEST:g}"
    if is_regression:
        n = len(strips.targets)
        yield n > 0 and all(len(row) == n for row in rows), f"an entry of strips has not {n} values beside the targets"
    else:
        yield not strips.targets, "the targets of strips are those of a regression"
        is_rising = all(a is not None and b is not None and a <= b for row in rows for a, b in pairwise(row))
        yield is_rising and [None] not in rows, "values of strips are not in ascending order"


def _rules_of_lookup(lookup: Lookup, n_selected: int) -> Rules:
    n = len(lookup.names)
    yield len(lookup.ranks) in (0, n), f"{len(lookup.ranks)} ranks for {n} features that can be searched for"
    yield all(0 <= rank <= lookup.n_ranked for rank in lookup.ranks), f"a rank is outside 0 to {lookup.n_ranked}"
    yield len(lookup.entry or ()) <= n, "more entries than features that can be searched for"
    yield len(lookup.nearest) == len(lookup.correlations), "nearest and correlations come together"
    yield len(lookup.nearest) in (0, n), f"{len(lookup.nearest)} nearest features for {n} that can be searched for"
    in_range = all(-1 <= place < n_selected for place in lookup.nearest) and n_selected < 255
    yield not lookup.nearest or in_range, f"a nearest feature is outside 0 to {n_selected - 1}"
    yield all(-1.0 <= value <= 1.0 for value in lookup.correlations), "a correlation is outside -1 to 1"


def _rules_of_prediction(panel: PanelNumbers, content: Content) -> Rules:
    """Yield the rules of what the page predicts with."""
    n, is_regression = len(panel.weights), content.task == "regression"
    n_outputs = len(content.outputs)
    yield n <= content.k_max, f"the panel has rules up to {n} features, the report up to {content.k_max}"
    n_values = 1 if n_outputs == 2 and not is_regression else n_outputs
    yield n_outputs > (0 if is_regression else 1), "a panel predicts two classes or more, or a number"
    yield [len(rows) for rows in panel.weights] == list(range(1, n + 1)), "the panel has not k rows of weights for each k"
    widths = {len(row) for weights in panel.weights for row in weights} | {len(row) for row in panel.intercept}
    yield widths <= {n_values}, f"a row of the panel has not {n_values} values"
    is_whole = all(sum(value is not None for value in row) > (n_values > 2) for row in panel.intercept)
    yield is_whole, "a rule of the panel lacks intercepts"
    n_calibrated = 0 if is_regression else n
    yield len(panel.intercept) == n, f"the panel has not {n} intercepts"
    yield len(panel.slope) == len(panel.doubt) == n_calibrated, f"the panel has not {n_calibrated} calibrations"
    yield all(0.0 <= share <= 1.0 for share in panel.doubt), "a doubt of the panel is outside 0 to 1"
    yield len(panel.minimum) == len(panel.maximum) == n, f"the panel has not {n} training ranges"
    ranges = zip(panel.minimum, panel.maximum, strict=False)
    yield all(low <= high for low, high in ranges), "a training range of the panel ends before it starts"
    yield len(set(content.features[:n])) == n, "two features of the panel have the same name"


def _known(entries: Iterable[Entry | None] | None) -> Iterator[Entry]:
    return (entry for entry in entries or () if entry is not None)


def _is_interval(lower: float | None, upper: float | None) -> bool:
    return lower is upper is None if lower is None or upper is None else lower <= upper
