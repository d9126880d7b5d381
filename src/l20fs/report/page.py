"""The report page of one selection: complete without scripts, with a slider for k where they run."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from l20fs.report import frames, points, spreadsheets, strips, svg
from l20fs.report.confusion import MANY_CLASSES, MOST_RATES
from l20fs.report.content import Content
from l20fs.report.frames import unbroken as unbroken
from l20fs.report.html_page import fill
from l20fs.report.lookup import for_search, packed
from l20fs.report.measures import MOST_STRIP_CLASSES, PanelNumbers
from l20fs.text import shorten

#: A plain number, as a text.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)

#: Fields of the content that the script needs to show another k; all else is drawn once.
SCRIPT_FIELDS = ("title", "task", "classes", "targets", "features")
#: Those of them that take much room, and are packed.
PACKED_FIELDS = ("columns", "substitutes", "failure_costs", "coef", "numbers", "confusion")
#: Most weights that the page predicts with: those of every panel up to about 60 features and 4 classes.
MOST_WEIGHTS = 6_000

#: Names and meanings of the columns on the page.
COLUMNS = {
    "feature": ("Feature", "The name of the column in your table."),
    "rank": ("Rank", "1 is the feature that was most useful first."),
    "score": ("Score", "What the features are ordered by; higher is better."),
    "norm": ("Size", "How large the weights of the feature are, all together."),
    "entry_alpha": ("Enters at λ", "The price per feature below which this one came in to stay; higher is earlier."),
    "rule": ("Ranked by", "What gave the feature its rank: by its entry into the model, by its weight, or asked for."),
    "level": (
        "Level",
        "Where the values of the feature are high or low, by its means in the classes (or by its correlation with the "
        "target). It does not depend on the other features, as the weights do.",
    ),
    "stability": ("Stability", "In what share of random halves of the samples the feature was selected again."),
    "could_replace": (
        "Could be replaced by",
        "Features outside the selection that rise and fall with this one; in brackets the correlation. A minus sign "
        "means that one falls as the other rises. Only correlations of 0.5 or more, or -0.5 or less, that are stronger than "
        "chance would give are listed.",
    ),
    "failure_cost": (
        "Without it",
        "By how much the loss of the linear rule rises if the feature fails to be measured and the others are fitted again. "
        "It is the loss in these samples, not the accuracy in new ones.",
    ),
}
#: Columns that are shown only if asked for: what they say is in the order of the rows.
TECHNICAL = ("score", "norm", "entry_alpha", "rule")
#: So are the weights for more classes than this, which no window is wide enough for.
MOST_WEIGHT_COLUMNS = 6
WEIGHT = (
    "How the linear rule uses the feature beside all others: a high value counts for a class with a positive weight, and "
    "against one with a negative weight. Weights correct each other, so that a sign may differ from the level."
)
SLOPE = "How much the prediction rises if the value rises by one unit and all others stay."
#: Columns of the heatmap of a regression.
THIRDS = ("lower third", "middle third", "upper third")

#: Texts of more signs have a wider column.
LONG_LEVEL = 40
#: Signs to which names are shortened: at least, and at most if fewer do not tell them apart.
SHORTENED = range(20, 61)

#: Colours on each side of the middle, and the z-score that has the last one.
N_LEVELS, FULL_COLOUR = 5, 2.0


class TableCell(NamedTuple):
    """Displayed text of a cell, and its full text."""

    shown: str
    text: str


def render(content: Content) -> str:
    """Return the report as one HTML file.

    It shows the run's own number of features without any script, loads nothing, and lets no text of the content become
    markup.

    Examples
    --------
    >>> content = Content(
    ...     title="toy", answer="1 of 2 features.", k=1, k_rule="asked for", k_max=2, n_samples=4, n_features=2,
    ...     classes=["a", "b"], class_sizes=[2, 2], chance=0.5, curves=[], features=["x", "<y>"],
    ...     columns={"rank": ["1", "2"]}, substitutes=[], heat=[],
    ... )
    >>> page = render(content)
    >>> page.startswith("<!doctype html>"), "<y>" in page
    (True, False)
    """
    swapped, plots = frames.make_frames(content), strips.strip_plots(content)
    search = for_search(content.lookup) if content.lookup is not None and content.k_max else None
    n_values, apart = strips.n_values(content), max(map(signs_apart, (content.classes, content.features)))
    k = content.shown
    return fill(
        "report.html",
        scripts=(
            "sort.js",
            *(("predict.js",) if content.panel else ()),
            *(("search.js",) if search else ()),
            "page.js",
        ),
        data=_for_script(content, swapped, plots) | {"search": search, "apart": apart},
        apart=apart,
        n_searched=search["n"] if search else 0,
        title=content.title,
        answer=unbroken(content.answer),
        content=content,
        is_regression=content.task == "regression",
        k=k,
        at_k=lambda name, key="text": swapped[name][key][k],
        score_chart=frames.score_chart(content),
        further_charts=frames.further_charts(content),
        path_chart=frames.path_chart(content),
        roc_chart=frames.roc_chart(content, swapped),
        reliability_chart=frames.reliability_chart(content, swapped),
        brier_of_shares=_brier_of_shares(content.class_sizes),
        target_pictures=points.target_pictures(content.numbers, content.targets, k) if content.numbers else [],
        swatch=svg.swatch,
        n_coloured=svg.N_COLOURS,
        header=[column(name) for name in content.header()],
        is_number=[_is_number(content, name) for name in content.header()],
        is_technical=[_is_technical(content, name) for name in content.header()],
        has_long_levels=max(map(len, content.columns.get("level", [])), default=0) > LONG_LEVEL,
        meanings=_meanings(content),
        rows=[_row(content, place) for place in range(content.k_max)],
        could_replace=content.could_replace,
        n_static=1 + len(content.columns),
        heat_names=_heat_names(content),
        heat_groups=content.heat_groups or [("", list(range(content.k_max)))],
        strips=plots,
        n_values=max(n_values, default=0),
        has_gaps=len(set(n_values)) > 1,
        most_strip_classes=MOST_STRIP_CLASSES,
        strip_height=strips.LINE_HEIGHT,
        plot_height=strips.PLOT_HEIGHT,
        target_ticks=strips.target_ticks(content) if plots and content.task == "regression" else [],
        is_crowded=len(content.classes) >= MANY_CLASSES,
        most_rates=MOST_RATES,
        heat_level=heat_level,
        signed=signed,
        count_level=count_level,
        provenance=json.dumps(content.provenance, indent=2, ensure_ascii=False),
    )


def _for_script(content: Content, swapped: frames.Frames, plots: dict[str, Any] | None) -> dict[str, Any]:
    """Return the data of the script; most of them are packed, which takes less than half the room."""
    large = {name: getattr(content, name) for name in PACKED_FIELDS}
    large |= {"frames": swapped, "strips": strips.for_script(plots)}
    if content.coef is not None:  # the weights of a panel as one text, which is half as long as a list of texts
        large["coef"] = [";".join(" ".join(row) for row in panel) for panel in content.coef]
    if content.numbers is not None:
        large["numbers"] = vars(content.numbers)
    text = json.dumps(large, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return {name: getattr(content, name) for name in SCRIPT_FIELDS} | {
        "k": content.shown,
        "guard": {"names": spreadsheets.NAMES, "pattern": spreadsheets.PATTERN},
        "packed": packed(text.encode()),
        "panel": None if content.panel is None else _for_prediction(content.panel, content.shown),
    }


def _for_prediction(panel: PanelNumbers, k: int) -> dict[str, Any]:
    """Return what the script predicts with; of very many weights those of the smaller panels, and of the selected one."""
    rules = [
        [*weights, [-math.inf if value is None else value for value in intercept]]
        for weights, intercept in zip(panel.weights, panel.intercept, strict=True)
    ]
    if panel.slope and len(rules[0][0]) > 2 and all(math.isfinite(rule[-1][-1]) for rule in rules):
        # Only differences between classes matter: three or more have one value less.
        rules = [[[value - row[-1] for value in row[:-1]] for row in rule] for rule in rules]
    n_values = len(rules[0][0]) if rules else 0
    left = MOST_WEIGHTS - (n_values * (k + 1) if k <= len(rules) else 0)
    sizes = {k} & set(range(1, len(rules) + 1))
    for size in range(1, len(rules) + 1):
        left -= n_values * (size + 1) if size != k else 0
        if left >= 0:
            sizes.add(size)
    numbers = [value for size in sorted(sizes) for row in rules[size - 1] for value in row]
    return {
        "sizes": sorted(sizes),
        "n_values": n_values,
        "rules": packed(struct.pack(f"<{len(numbers)}d", *numbers)),
    } | {name: getattr(panel, name) for name in ("slope", "doubt", "offset", "minimum", "maximum", "transform")}


def signs_apart(names: Sequence[str]) -> int:
    """Return the fewest signs, of those of a heading or more, by which shortened names differ; 0 if that takes too many.

    Examples
    --------
    >>> signs_apart(["T cell", "B cell"]), signs_apart([f"Cell type {i} of the fly atlas" for i in "12"])
    (20, 22)
    """
    n_names = len({shorten(name, 200) for name in names})
    return next((n for n in SHORTENED if len({shorten(name, n) for name in names}) == n_names), 0)


def _brier_of_shares(class_sizes: list[int]) -> float | None:
    """Return the Brier score of giving every sample the shares of the classes."""
    total = sum(class_sizes)
    if not total:
        return None
    score = 1.0 - sum((size / total) ** 2 for size in class_sizes)
    return score / 2.0 if len(class_sizes) == 2 else score


def _heat_names(content: Content) -> list[str]:
    if content.task == "classification":
        return content.classes
    names = content.targets
    return list(THIRDS) if len(names) == 1 else [f"{name}: {third}" for name in names for third in THIRDS]


def column(name: str) -> tuple[str, str]:
    """Return the name of a column of ``selection.tsv`` on the page, and the small text above it."""
    if name.startswith("coef_"):
        return name.removeprefix("coef_"), "weight for"
    return COLUMNS.get(name, (name.replace("_", " "), ""))[0], ""


def _meanings(content: Content) -> list[tuple[str, str, str]]:
    known = [(COLUMNS[name][0], name, COLUMNS[name][1]) for name in content.header() if name in COLUMNS]
    weight = WEIGHT if content.task == "classification" else SLOPE
    return known + ([("Weight for", "coef_…", weight)] if content.coef is not None else [])


def _row(content: Content, place: int) -> list[TableCell]:
    """Return the cells of a feature; the script adds those that depend on k if the feature is not selected."""
    if place < content.shown:
        texts = content.row(content.shown, place)
    else:
        texts = [content.features[place], *(texts[place] for texts in content.columns.values())]
    names = content.header()[: len(texts)]
    cells = zip(names, texts, strict=True)
    shown = {"stability": _share, "failure_cost": rise}
    return [TableCell(shown.get(name, in_short)(text), text) for name, text in cells]


def _is_number(content: Content, name: str) -> bool:
    """Return whether all texts of a column that does not depend on k are numbers."""
    return all(NUMBER.fullmatch(text) for text in content.columns.get(name, ["no"]))


def _is_technical(content: Content, name: str) -> bool:
    """Return whether a column is shown only if asked for."""
    return name in TECHNICAL or (name.startswith("coef_") and len(content.outputs) > MOST_WEIGHT_COLUMNS)


def _share(text: str) -> str:
    """Write a share, if it is one, in percent."""
    return f"{100 * float(text):.0f}\N{NO-BREAK SPACE}%" if NUMBER.fullmatch(text) else text


def rise(text: str) -> str:
    """Write a share by which a loss rises in percent, if it is known.

    Examples
    --------
    >>> rise("0.0312").replace("\\N{NO-BREAK SPACE}", " "), rise("")
    ('+3.1 % loss', '')
    """
    return f"+{100 * float(text):.1f}\N{NO-BREAK SPACE}% loss" if text else ""


def in_short(text: str) -> str:
    """Format a number with four significant digits, and any other text unchanged.

    Examples
    --------
    >>> in_short("0.1234567891"), in_short("13"), in_short("entry")
    ('0.1235', '13', 'entry')
    """
    return f"{float(text):.4g}" if NUMBER.fullmatch(text) and len(text) > 6 else text


def signed(z: float) -> str:
    """Format a z-score with one decimal and its sign.

    Examples
    --------
    >>> signed(-1.26), signed(-0.01)
    ('−1.3', '0.0')
    """
    return f"{z:z.1f}".replace("-", "\N{MINUS SIGN}")


def heat_level(z: float) -> int:
    """Return the colour level of a z-score, from -5 to 5."""
    return max(-N_LEVELS, min(N_LEVELS, round(z * N_LEVELS / FULL_COLOUR)))


def count_level(count: int, total: int, is_right: bool) -> int:
    """Return the colour level of a count: blue (negative) for correct predictions, red for wrong ones."""
    level = math.ceil(N_LEVELS * count / total) if count else 0
    return -level if is_right else level
