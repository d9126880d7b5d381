"""Content and pages without a browser: the table for every k, and escapes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import zlib
from dataclasses import asdict, replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import (
    EVIL,
    comparison,
    evil_content,
    for_spreadsheets,
    make_content,
    make_lookup,
    make_regression,
    make_strips,
)

from l20fs.report import (
    Curve,
    Numbers,
    PathLines,
    Reliability,
    comparison_page,
    render,
    spreadsheets,
)
from l20fs.report.delimited import write_rows
from l20fs.report.html_page import embedded
from l20fs.report.page import PACKED_FIELDS, SCRIPT_FIELDS, heat_level, in_short
from l20fs.report.svg import Line, Scale, score_chart, score_scale, ticks

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def make_two(**changes):
    return make_content(n_classes=2, **changes)


# ---------------------------------------------------------------------------------------------------- the table for each k


def test_selection_tsv_is_the_table_of_the_panel():
    """Against a slow twin: a DataFrame that is filled cell by cell."""
    content = make_content(k_max=9, k=4)
    for k in range(10):
        lines = [line.split("\t") for line in content.selection_tsv(k).split("\n")]
        assert lines.pop() == [""]
        frame = pd.DataFrame(lines[1:], columns=lines[0])
        assert frame.columns.tolist() == [
            "feature", "rank", "score", "level", "norm", "entry_alpha", "rule", "could_replace", "failure_cost",
            "coef_class 1", "coef_class 2", "coef_class 3", "coef_class 4",
        ]  # fmt: skip
        assert frame.feature.tolist() == content.features[:k]
        for i in range(k):
            row = frame.iloc[i]
            assert [row[name] for name in content.columns] == [texts[i] for texts in content.columns.values()]
            expected = []
            for name, correlation, rank in content.substitutes[i]:
                if not 1 <= rank <= k and len(expected) < 3:
                    expected.append(f"{name} ({correlation:.2f})")
            assert row.could_replace == ", ".join(expected)
            assert row.failure_cost == content.failure_costs[k - 1][i]
            assert row.tolist()[-4:] == content.coef[k - 1][i]


def test_selection_tsv_without_weights_and_substitutes():
    content = make_content(k_max=2, k=1, coef=None, failure_costs=None, substitutes=[])
    assert content.selection_tsv(1).split("\n")[0].split("\t") == ["feature", *content.columns]


def cells_of(text):
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter="\t"))


def test_names_are_read_back_verbatim():
    content = evil_content()
    rows = cells_of(content.selection_tsv(content.k))
    assert {len(row) for row in rows} == {len(content.header())}
    assert [row[0] for row in rows[1:]] == EVIL
    assert rows[0] == content.header()


CONVERTED = [
    "SEPT2", "Sept-2", "MARCH1", "MARC1", "DEC1", "OCT4", "1-Mar", "2-Sep", "Sep-01", "3 Apr 2020", "AGO2", "MEI1", "00123",
    "1E5", "2310009E13", "44256", "-5", "1.5", "1/2", "12:30", "5 PM", "50%", "$5", "(5)", "1,000", "TRUE", "wahr", "#N/A",
    "=1+1", "+x", "-x", "@SUM(1)", " =1", "\t=1", "\r-1", "\uff1d1",
]  # fmt: skip
KEPT = ["TP53", "1007_s_at", "ENSG00000141510", "2310009E13Rik", "SETD2", "SET", "MAR", "MARCKS", "DECR1", "H2AFX", ""]


@pytest.mark.parametrize("name", CONVERTED + KEPT)
def test_a_spreadsheet_keeps_names_as_text(name):
    """What Excel is known to convert begins with an apostrophe, and nothing else does; a number that is no name stays."""
    [_, row] = cells_of(for_spreadsheets(write_rows([["feature", "score"], [name, "-5"]])))
    assert row == [f"{chr(39) * (name in CONVERTED)}{name}", "-5"]


def test_the_plain_table_is_read_back_equal_by_pandas():
    names = CONVERTED + KEPT
    content = make_content(k=3, k_max=len(names), names=names)
    frame = pd.read_csv(io.StringIO(content.selection_tsv(len(names))), sep="\t", dtype=str, keep_default_na=False)
    assert frame["feature"].tolist() == names


# -------------------------------------------------------------------------------------------------------------- the page


class Reader(HTMLParser):
    """What a browser would take for elements and attributes."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], {}
        self._inside = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("script", "style"):
            self._inside = (tag, dict(attrs).get("id"))

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.texts[self._inside] = self.texts.get(self._inside, "") + data


def test_embedded_data_parse_back_equal():
    """R2."""
    content = evil_content()
    text = Reader(render(content)).texts["script", "content"]
    assert not set(text) & set("<>&\u2028\u2029")
    found, expected = json.loads(text), json.loads(json.dumps(asdict(content)))
    expected["coef"] = [";".join(" ".join(row) for row in panel) for panel in content.coef]
    packed = json.loads(zlib.decompress(base64.b64decode(found.pop("packed"))))
    assert {name: packed[name] for name in PACKED_FIELDS} == {name: expected[name] for name in PACKED_FIELDS}
    names = zlib.decompress(base64.b64decode(found.pop("search")["names"])).decode().split("\n")
    assert names == [" ".join(name.split()) for name in expected["lookup"]["names"]]
    assert found.pop("k") == content.k
    assert found.pop("apart") == 20
    assert found.pop("guard") == {"names": list(spreadsheets.NAMES), "pattern": spreadsheets.PATTERN}
    panel = found.pop("panel")
    for name in ("slope", "doubt", "minimum", "maximum", "transform"):
        assert panel[name] == expected["panel"][name]
    assert found == {name: expected[name] for name in SCRIPT_FIELDS}


@given(
    st.recursive(
        st.none() | TEXTS | NUMBERS | st.sampled_from(EVIL), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)
    )
)
def test_any_data_parse_back_equal(data):
    text = embedded(data)
    assert json.loads(text) == data
    assert not set(text) & set("<>&\u2028\u2029")


def test_texts_add_no_element_and_no_attribute():
    """R1, seen by a parser: hostile names make the same elements as tame ones."""
    evil, tame = evil_content(), evil_content()
    words = {name: f"name{place}".ljust(len(" ".join(name.split())), "x") for place, name in enumerate(EVIL)}

    def tamed(value):
        if isinstance(value, str):
            return words.get(value, value)
        if isinstance(value, list | tuple):
            return type(value)(tamed(item) for item in value)
        return value

    tame = replace(
        evil,
        **{
            name: tamed(getattr(evil, name))
            for name in (
                "title",
                "answer",
                "sentences",
                "warnings",
                "k_rule",
                "score_name",
                "features",
                "classes",
                "substitutes",
            )
        },
    )
    found, expected = Reader(render(evil)), Reader(render(tame))
    assert found.tags == expected.tags
    assert {name for name, _ in found.attributes} - {"title"} == {name for name, _ in expected.attributes} - {"title"}
    assert not any(name.startswith("on") or name == "style" for name, _ in found.attributes)


@pytest.mark.parametrize("make", [make_content, evil_content])
def test_policy_allows_exactly_the_style_and_the_script(make):
    page = render(make())
    reader = Reader(page)
    policy = next(value for name, value in reader.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(reader.texts[kind, None].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert not re.search(r"""(src|href)=["'](?!#|data:,)""", page)


def test_the_page_is_small_for_20_000_features():
    rng = np.random.default_rng(0)
    names = [f"ENSG{place:011d}" for place in rng.permutation(60_000)[:20_000]]
    substitutes = [[(f"ENSG9{place:010d}", 0.8765, 0)] * 8 for place in range(100)]
    correlations = np.clip(rng.normal(0, 0.35, 20_000), -1, 1).round(2).tolist()
    nearest = rng.integers(0, 100, 20_000).tolist()
    lookup = replace(make_lookup(names, 0, 100), nearest=nearest, correlations=correlations)
    for n_classes, most in ((4, 530_000), (8, 650_000)):
        content = make_content(
            n_features=20_000,
            n_classes=n_classes,
            k=100,
            k_max=100,
            names=names[:100],
            substitutes=substitutes,
            lookup=lookup,
            strips=make_strips(100, [83] * n_classes, most=120 // n_classes),
        )
        assert len(render(content).encode()) < most


def test_of_very_many_weights_the_page_holds_some():
    """All for 100 features and 2 classes; for more classes those of smaller panels, and of the selected one."""
    sizes = {}
    for n_classes in (2, 4, 8):
        content = make_content(n_classes=n_classes, k=99, k_max=100)
        text = Reader(render(content)).texts["script", "content"]
        panel = json.loads(text)["panel"]
        sizes[n_classes] = panel["sizes"]
        n_values = max(1, n_classes - 1)
        numbers = zlib.decompress(base64.b64decode(panel["rules"]))
        assert len(numbers) == 8 * sum((size + 1) * n_values for size in panel["sizes"])
    assert sizes[2] == list(range(1, 101))
    for n_classes, fewest in ((4, 55), (8, 30)):
        assert fewest < len(sizes[n_classes]) < 100
        assert sizes[n_classes] == [*range(1, len(sizes[n_classes])), 99]


def test_the_same_content_gives_the_same_page():
    assert render(make_content()) == render(make_content())


def test_numbers_are_short_and_colours_meet_at_zero():
    assert [in_short(text) for text in ("-0.00001234567", "1234567", "12", "1e5x", "")] == [
        "-1.235e-05",
        "1.235e+06",
        "12",
        "1e5x",
        "",
    ]
    assert [heat_level(z) for z in (-9, -2, -0.75, -0.25, -0.1, 0, 0.1, 0.25, 2, 9)] == [-5, -5, -2, -1, 0, 0, 0, 1, 5, 5]


# -------------------------------------------------------------------------------------------------------------- pictures


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.booleans())
def test_ticks_are_few_round_and_inside(low, span, whole):
    found = ticks(low, low + span, whole=whole)
    assert len(found) <= 6
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in found)
    if whole:
        assert all(tick == int(tick) for tick in found)
    else:
        assert len(found) >= 2
    steps = np.diff(found)
    assert np.allclose(steps, steps[0] if len(steps) else 0)


def test_scales_are_linear_or_by_ratio():
    assert [Scale(1, 3, 10, 20)(value) for value in (1, 2, 3)] == [10, 15, 20]
    assert Scale(5, 5, 10, 20)(5) == 15
    assert np.allclose([Scale(1, 16, 0, 4, is_log=True)(value) for value in (1, 2, 4, 8, 16)], [0, 1, 2, 3, 4])


def test_a_gap_breaks_the_line_and_the_band():
    line = Line("a<b", [1, 2, 3, 4, 5], [0.5, 0.6, None, 0.7, 0.8], [0.4, 0.5, None, None, 0.7], [0.6, 0.7, None, 0.8, 0.9])
    chart = score_chart([line], label="x", score_name="accuracy", chance=0.5)
    assert chart.count("<polyline") == 2
    assert chart.count("<polygon") == 2
    places = re.search(r'<polygon class="band" points="([^"]*)"', chart)[1].split()
    heights = [float(place.split(",")[1]) for place in places]  # there above the line, and back below it
    scale = score_scale([0.4])
    assert np.allclose(heights, [scale(value) for value in (0.6, 0.7, 0.5, 0.4)], atol=0.06)
    assert "a&lt;b" in chart


REPORTS = {
    "one": make_content(n_features=1, k=1, k_max=1),
    "none": make_content(k=0),
    "no features": make_content(k=0, k_max=0),
    "5000": make_content(k=5000, k_max=100, n_features=20_000),
    "100 classes": make_content(n_classes=100, k=12, k_max=28, n_samples=400),
    "no curves": make_content(curves=[]),
    "no scores": make_content(curves=[Curve("a", [None] * 40, [None] * 40)]),
    "bare": make_content(coef=None, substitutes=[], heat=[], heat_groups=[], confusion=None, path=None, stability=None),
    "flat path": make_content(path=PathLines([1.0, 0.0], [[0.0, 0.0]])),
    "one lambda": make_content(path=PathLines([1.0], [[1.0]])),
    "two": make_two(),
    "two without features": make_two(k=0, k_max=0),
    "not measured": make_two(roc=[None] * 40, reliability=[None] * 40, rates=[None] * 40),
    "no bins": make_content(reliability=[Reliability([], 0.0, 0.0)] * 40, class_sizes=[0] * 4),
    "loss": make_content(chance=None, score_format="number", score_is_loss=True, score_name="log loss"),
    "regression": make_regression(),
    "regression without features": make_regression(k=0, k_max=0),
    "no numbers": make_regression(numbers=Numbers([[]], [None] * 20)),
    "one number": make_regression(numbers=Numbers([[1.0]], [[[1.0]]] * 20)),
    "large numbers": make_regression(numbers=Numbers([[1e100, -1e100]], [[[-1e100, 1e-300]]] * 20)),
}


@pytest.mark.parametrize("content", REPORTS.values(), ids=list(REPORTS))
def test_any_report_is_rendered(content):
    """R4."""
    page = render(content)
    assert content.answer.replace(" ", "") in page.replace("\N{NO-BREAK SPACE}", "").replace(" ", "")
    assert not re.search(r"\b(nan|None|inf)\b", page.split("<main")[1].split("</main>")[0])


# ----------------------------------------------------------------------------------------------------------- comparison


def test_comparison_shows_every_row_and_escapes_names():
    page = comparison_page(*comparison(), title="toy", answer="<s>", n_splits=10, warnings=["<i>"], sentences=["<u>"])
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    for text in ("&lt;s&gt;", "90.0 % ± 1.0 %", "0.51 <small>0.40 to 0.60", "0.0123", ">123<"):
        assert text in page
    assert not re.search(r"\b(nan|None)\b", page.split("<main")[1].split("</main>")[0])
    assert "<b>" not in page
    assert "<i>" not in page
    assert page.count("chart score-chart") == 2


def test_a_method_looks_the_same_in_every_chart():
    """In the legend and in a chart that does not hold the methods before it."""
    rows, curves = comparison()
    page = comparison_page(rows, curves.assign(accuracy=80.0).iloc[2:3], title="toy", answer="", n_splits=10)
    assert page.count('class="line c1 d0"') == 2
    assert 'class="line c0' not in page


def test_comparison_names_the_column_that_is_missing():
    rows, curves = comparison()
    with pytest.raises(ValueError, match="no column 'seconds'"):
        comparison_page(rows.drop(columns="seconds"), curves, title="toy", answer="", n_splits=10)


def test_comparison_without_results():
    rows, curves = comparison()
    assert "Nothing yet" in comparison_page(rows.iloc[1:2], curves.iloc[:0], title="toy", answer="Nothing yet", n_splits=10)
