"""The report page of one selection: complete without scripts, with a slider for k where they run."""

from __future__ import annotations

import base64
import json
import math
import zlib
from typing import NamedTuple

from l20fs.report import svg
from l20fs.report.content import NUMBER, Content, as_plain
from l20fs.report.html_page import fill
from l20fs.text import counted, percent

#: Fields of the content that the script needs to show another k; all else is drawn once.
SCRIPT_FIELDS = (
    "title", "score_name", "classes", "features", "columns", "curves", "substitutes", "strongest", "confusion",
)  # fmt: skip

#: Names and meanings of the columns on the page.
COLUMNS = {
    "feature": ("Feature", "The name of the column in your table."),
    "rank": ("Rank", "1 is the feature that was most useful first."),
    "score": ("Score", "What the features are ordered by; higher is better."),
    "norm": ("Size", "How large the weights of the feature are, over all classes together."),
    "entry_alpha": ("Enters at λ", "The price per feature below which this one came in to stay; higher is earlier."),
    "rule": ("Ranked by", "What gave the feature its rank: by its entry into the model, by its weight, or asked for."),
    "stability": ("Chosen again", "In what share of random halves of the samples the feature was selected again."),
    "could_replace": (
        "Could be replaced by",
        "Features outside the selection that rise and fall with this one; in brackets the correlation. A minus sign "
        "means that one falls as the other rises.",
    ),
    "strongest": ("Speaks for", "The class for which the feature has the largest weight."),
}
#: Columns that are shown only if asked for: what they say is in the order of the rows.
TECHNICAL = ("score", "norm", "entry_alpha", "rule")
WEIGHT = "For each class: a positive weight speaks for it if the value is high, a negative one speaks against it."

#: Number of classes from which cells show a colour only, and class names are turned.
MANY_CLASSES = 12
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
    stored = as_plain(content)
    # The weights are nine tenths of the data; packed they take less than half the room.
    packed = (
        None if stored["coef"] is None else base64.b64encode(zlib.compress("\n".join(stored["coef"]).encode(), 9)).decode()
    )
    return fill(
        "report.html",
        scripts=("sort.js", "page.js"),
        data={name: stored[name] for name in SCRIPT_FIELDS} | {"k": content.shown, "coef": packed},
        title=content.title,
        answer=unbroken(content.answer),
        content=content,
        k=content.shown,
        score=score_text(content, content.shown),
        value_text=value_text(content, content.shown),
        score_chart=_score_chart(content),
        path_chart=_path_chart(content),
        swatch=svg.swatch,
        n_coloured=svg.N_COLOURS,
        header=[column(name) for name in content.header()],
        is_number=[_is_number(content, name) for name in content.header()],
        is_technical=[name in TECHNICAL for name in content.header()],
        meanings=_meanings(content),
        rows=[_row(content, place) for place in range(content.k_max)],
        could_replace=content.could_replace,
        n_static=1 + len(content.columns),
        is_crowded=len(content.classes) >= MANY_CLASSES,
        heat_level=heat_level,
        signed=signed,
        count_level=count_level,
        totals=[sum(row) for row in content.confusion[content.shown - 1]] if content.confusion and content.shown else [],
        provenance=json.dumps(content.provenance, indent=2, ensure_ascii=False),
    )


def score_text(content: Content, k: int) -> str:
    """Write the score of k features by every curve.

    The script says the same at any k, digit for digit.
    """
    texts = []
    for curve in content.curves:
        mean, error = (curve.mean[k - 1], curve.error[k - 1]) if k else (None, None)
        if mean is not None:
            texts.append(f"{curve.name} {with_error(mean, error)}")
    return ", ".join(texts)


def with_error(mean: float, error: float | None) -> str:
    """Write a share and its standard error with non-breaking spaces."""
    return unbroken(percent(mean) if error is None else f"{percent(mean)} ± {percent(error)}")


def value_text(content: Content, k: int) -> str:
    """Write the value of the slider for screen readers."""
    mean = content.curves[0].mean[k - 1] if content.curves and k else None
    features = counted(k, "feature")
    return features if mean is None else f"{features}, {unbroken(percent(mean))} {content.score_name}"


def column(name: str) -> tuple[str, str]:
    """Return the name of a column of ``selection.tsv`` on the page, and the small text above it."""
    if name.startswith("coef_"):
        return name.removeprefix("coef_"), "weight for"
    return COLUMNS.get(name, (name.replace("_", " "), ""))[0], ""


def _meanings(content: Content) -> list[tuple[str, str, str]]:
    known = [(COLUMNS[name][0], name, COLUMNS[name][1]) for name in content.header() if name in COLUMNS]
    return known + ([("Weight for", "coef_…", WEIGHT)] if content.coef is not None else [])


def _row(content: Content, place: int) -> list[TableCell]:
    """Return the cells of a feature; the script adds those that depend on k if the feature is not selected."""
    if place < content.shown:
        texts = content.row(content.shown, place)
    else:
        texts = [content.features[place], *(texts[place] for texts in content.columns.values())]
    return [TableCell(in_short(text), text) for text in texts]


def _is_number(content: Content, name: str) -> bool:
    """Return whether all texts of a column that does not depend on k are numbers."""
    return all(NUMBER.fullmatch(text) for text in content.columns.get(name, ["no"]))


def in_short(text: str) -> str:
    """Format a number with four significant digits, and any other text unchanged.

    Examples
    --------
    >>> in_short("0.1234567891"), in_short("13"), in_short("entry")
    ('0.1235', '13', 'entry')
    """
    return f"{float(text):.4g}" if NUMBER.fullmatch(text) and len(text) > 6 else text


def unbroken(text: str) -> str:
    """Put non-breaking spaces between a number, its unit and its error."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%").replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


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


def _score_chart(content: Content) -> str | None:
    if not content.curves or not content.k_max:
        return None
    sizes = range(1, content.k_max + 1)
    lines = [svg.Line(curve.name, sizes, curve.mean, curve.error) for curve in content.curves]
    x, y = svg.score_axes(lines, content.chance)
    main, k = content.curves[0].mean, content.shown
    marks = ""
    if k and (mean := main[k - 1]) is not None:
        marks = f'<circle class="chosen" cx="{x(k):.1f}" cy="{y(mean):.1f}" r="9"/>'
    # The script moves the marker by these four numbers.
    step = x(2) - x(1) if content.k_max > 1 else 0.0
    places = f'data-first="{x(1):.3f}" data-step="{step:.5f}" data-zero="{y(0):.3f}" data-unit="{y(0) - y(1):.3f}"'
    at = (x(max(k, 1)), y(main[k - 1] or 0.0) if k else 0.0)
    hidden = "" if marks else ' visibility="hidden"'
    marks += (
        f'<g id="marker" {places}{hidden} transform="translate({at[0]:.1f} 0)">'
        f'<line y1="{svg.TOP}" y2="{svg.BOTTOM}"/><circle cy="{at[1]:.1f}" r="5"/></g>'
    )
    return svg.score_chart(
        lines,
        label=f"{content.score_name} against the number of features",
        score_name=content.score_name,
        chance=content.chance,
        marks=marks,
    )


def _path_chart(content: Content) -> str | None:
    path = content.path
    if path is None or len(path.alphas) < 2 or not path.norms:
        return None
    lines = [svg.Line(name, path.alphas, norms) for name, norms in zip(content.features, path.norms, strict=False)]
    return svg.path_chart(lines, label="size of the weights of each feature as the price falls", n_in=content.shown)
