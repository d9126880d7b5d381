"""Content and pages without a browser: JSON, the table for every k, escapes, and what is refused."""

from __future__ import annotations

import base64
import codecs
import csv
import hashlib
import io
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import (
    EVIL,
    comparison,
    evil_content,
    make_content,
    make_lookup,
    make_panel,
    make_rate,
    make_regression,
    make_strips,
)

from l20fs.report import (
    ClassRate,
    Content,
    Curve,
    Lookup,
    Numbers,
    PathLines,
    Reliability,
    ReportError,
    Roc,
    Stability,
    Strips,
    comparison_page,
    render,
    spreadsheets,
)
from l20fs.report.delimited import write_tsv
from l20fs.report.html_page import embedded
from l20fs.report.page import PACKED_FIELDS, SCRIPT_FIELDS, heat_level, in_short
from l20fs.report.svg import Line, Scale, score_chart, score_scale, ticks

# ---------------------------------------------------------------------------------------------------------------- JSON

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def strips(draw, k_max, n_classes):
    """Any values of single samples."""
    rows = st.lists(st.floats(-1e100, 1e100), max_size=4).map(sorted)
    values = draw(st.lists(st.lists(rows, min_size=n_classes, max_size=n_classes), min_size=1, max_size=k_max))
    medians = [[row[0] if row else None for row in each] for each in values]
    return Strips(values, medians, [], draw(TEXTS))


@st.composite
def contents(draw):
    """Any report that holds together."""
    k_max, n_classes = draw(st.integers(0, 4)), draw(st.integers(1, 3))
    k = draw(st.integers(0, 6))

    def several(strategy, n):
        return draw(st.lists(strategy, min_size=n, max_size=n))

    weights = st.sampled_from(["0", "-0.25", "1.234e-05", "17"])
    panels = range(1, k_max + 1)
    has_coef = draw(st.booleans())
    n_lines, n_alphas = draw(st.integers(0, k_max)), draw(st.integers(0, 3))
    row = st.lists(NUMBERS, min_size=n_alphas, max_size=n_alphas)
    return Content(
        title=draw(TEXTS),
        answer=draw(TEXTS),
        sentences=draw(st.lists(TEXTS)),
        warnings=draw(st.lists(TEXTS)),
        k=k,
        k_rule=draw(TEXTS),
        k_max=k_max,
        n_samples=draw(st.integers(0)),
        n_features=draw(st.integers(0)),
        classes=several(TEXTS, n_classes),
        class_sizes=several(st.integers(0, 9), n_classes),
        chance=draw(NUMBERS),
        curves=[
            Curve(name, several(st.none() | NUMBERS, k_max), several(st.none() | NUMBERS, k_max))
            for name in draw(st.lists(TEXTS, max_size=2))
        ],
        features=several(TEXTS, k_max),
        columns={name: several(TEXTS, k_max) for name in draw(st.sets(st.sampled_from(["rank", "score", "=x"])))},
        substitutes=several(st.lists(st.tuples(TEXTS, NUMBERS, st.integers(0, k_max)), max_size=5), k_max),
        heat=several(st.lists(NUMBERS, min_size=n_classes, max_size=n_classes), k_max),
        coef=[[several(weights, n_classes) for _ in range(size)] for size in panels] if has_coef else None,
        lookup=draw(st.none() | st.builds(make_lookup, st.lists(TEXTS, min_size=1), st.just(0), st.just(min(k, k_max)))),
        confusion=draw(st.none() | st.just([[[1] * n_classes] * n_classes] * k_max)),
        strips=draw(st.none() | strips(k_max, n_classes)) if k_max else None,
        path=draw(
            st.none()
            | st.builds(
                PathLines,
                row,
                st.lists(row, min_size=n_lines, max_size=n_lines),
                st.lists(st.none() | NUMBERS, min_size=n_lines, max_size=n_lines),
            )
        ),
        stability=draw(
            st.none()
            | st.builds(
                Stability,
                st.lists(st.floats(0, 1), min_size=min(k, k_max), max_size=min(k, k_max)),
                st.none() | NUMBERS,
                st.none() | NUMBERS,
                st.none() | NUMBERS,
                st.integers(0),
            )
        ),
        provenance=draw(st.dictionaries(TEXTS, st.none() | TEXTS | st.integers() | st.lists(TEXTS))),
    )


def make_two(**changes):
    return make_content(n_classes=2, **changes)


@pytest.mark.parametrize("make", [make_content, make_two, make_regression])
def test_json_of_samples_is_read_back_equal(make):
    assert Content.from_json(make().to_json()) == make()


@given(contents())
def test_json_is_read_back_equal(content):
    assert Content.from_json(content.to_json()) == content
    assert Content.from_json(content.to_json().encode()) == content


def test_json_is_readable_by_any_reader():
    """One text per panel of weights, no NaN; the rest as it is."""
    content = make_content(k_max=3, k=2)
    stored = json.loads(content.to_json(), parse_constant=pytest.fail)
    assert stored["coef"][1] == ";".join(" ".join(row) for row in content.coef[1])
    assert stored["features"] == content.features
    assert stored["format"] == 3


def test_random_bytes_are_refused():
    rng = np.random.default_rng(7)
    for _ in range(10_000):
        with pytest.raises(ReportError, match=r"This is no report|no Content"):
            Content.from_json(rng.bytes(rng.integers(0, 40)))


@settings(max_examples=300)
@given(st.data())
def test_damaged_reports_are_refused_or_read(data):
    """A value anywhere in the file is replaced by another: a report or a ReportError, never anything else."""
    stored = json.loads(make_content(k=1, k_max=2, n_classes=2).to_json())
    place, key = stored, data.draw(st.sampled_from(sorted(stored)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    odd = [None, True, -1, 10**400, 0.5, "", "x", [], [[]], {}, {"a": 1}, "1 2;3", "\ud800"]
    place[key] = data.draw(st.sampled_from(odd))
    try:
        content = Content.from_json(json.dumps(stored))
    except ReportError:
        return
    assert render(content).encode()
    assert Content.from_json(content.to_json()) == content


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "9" * 5000, '{"format": NaN}', '"\\ud800"', "null", "[]", "{}", '{"format": 1}', "\ufeff{}"]
)
def test_other_json_is_refused(text):
    with pytest.raises(ReportError, match=r"no report|no Content") as caught:
        Content.from_json(text)
    assert "\n" not in str(caught.value)


def test_a_later_format_is_named():
    stored = json.loads(make_content().to_json()) | {"format": 4, "something": "new"}
    with pytest.raises(ReportError, match=r"format 4; this version of l20fs reads 3"):
        Content.from_json(json.dumps(stored))


def test_format_2_is_read_without_what_is_no_longer_used():
    reliability = [replace(each, intervals=None) for each in make_content().reliability]
    content = make_content(strips=None, heat_groups=[], reliability=reliability)
    stored = json.loads(content.to_json()) | {"format": 2, "strongest": [[0]]}
    del stored["strips"], stored["heat_groups"]
    for each in stored["reliability"]:
        del each["intervals"]
    assert Content.from_json(json.dumps(stored)) == content
    with pytest.raises(ReportError, match="strongest"):
        Content.from_json(json.dumps(stored | {"format": 3}))


def test_an_earlier_format_is_read():
    """Format 1 has none of the fields that came with format 2, and no intervals."""
    curves = [Curve("a", [0.5] * 40, [0.1] * 40)]
    content = make_content(rates=None, reliability=None, panel=None, strips=None, heat_groups=[], curves=curves)
    stored = json.loads(content.to_json()) | {"format": 1}
    for curve in stored["curves"]:
        del curve["lower"], curve["upper"]
    for name in ("task", "targets", "score_format", "score_is_loss", "chance_name", "further", "rates", "roc",
                 "reliability", "numbers", "strips", "panel", "heat_groups"):  # fmt: skip
        del stored[name]
    assert Content.from_json(json.dumps(stored)) == content


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k", True),
        ("k", 1.0),
        ("chance", True),
        ("chance", 10**400),
        ("chance", "1"),
        ("title", 1),
        ("classes", "ab"),
        ("odd", 1),
    ],
)
def test_values_of_another_kind_are_refused(name, value):
    stored = json.loads(make_content().to_json()) | {name: value}
    with pytest.raises(ReportError, match=rf"^{name} holds |^report is no Content: it does not know '{name}'"):
        Content.from_json(json.dumps(stored))


@pytest.mark.parametrize("name", ["title", "k", "features", "curves", "heat"])
def test_what_is_missing_is_refused(name):
    stored = json.loads(make_content().to_json())
    del stored[name]
    with pytest.raises(ReportError, match="no Content"):
        Content.from_json(json.dumps(stored))


CHANGES = [
    {"k": -1},
    {"k_max": 41},
    {"format": 2},
    {"class_sizes": [1]},
    {"curves": [Curve("a", [0.5], [0.1] * 40)]},
    {"curves": [Curve("a", [0.5] * 40, [0.1])]},
    {"columns": {"rank": ["1"]}},
    {"columns": {"feature": ["x"] * 40}},
    {"columns": {"coef_a": ["x"] * 40}},
    {"substitutes": [[]]},
    {"substitutes": [[("x", 0.5, 41)]] * 40},
    {"substitutes": [[("x", 0.5, -1)]] * 40},
    {"heat": [[0.0] * 4]},
    {"heat": [[0.0] * 3] * 40},
    {"coef": [[["1"] * 4]] * 40},
    {"coef": [[["1"] * 3] * size for size in range(1, 41)]},
    {"coef": [[["1"] * 3 + ["nan"]] * size for size in range(1, 41)]},
    {"confusion": [[[1] * 4] * 4]},
    {"confusion": [[[1] * 4] * 3] * 40},
    {"confusion": [[[1] * 3] * 4] * 40},
    {"confusion": [[[-1] * 4] * 4] * 40},
    {"confused": [[]] * 40},  # beside a matrix
    {"confusion": None, "confused": [[]]},
    {"confusion": None, "confused": [[(0, 4, 1, 2)]] * 40},
    {"confusion": None, "confused": [[(0, 1, 3, 2)]] * 40},
    {"confusion": None, "confused": [[(0, 1, 0, 2)]] * 40},
    {"lookup": Lookup(["a", "b"], 2, [1], None, 0, [], [])},
    {"lookup": Lookup(["a", "b"], 2, [1, 3], None, 0, [], [])},
    {"lookup": Lookup(["a"], 1, [], [1.0, 0.5], 0, [], [])},
    {"lookup": Lookup(["a"], 1, [], None, 0, [0], [])},
    {"lookup": Lookup(["a", "b"], 2, [], None, 0, [0], [0.5])},
    {"lookup": Lookup(["a"], 1, [], None, 0, [13], [0.5])},
    {"lookup": Lookup(["a"], 1, [], None, 0, [0], [1.5])},
    {"heat_groups": [("a", [*range(39)])]},
    {"heat_groups": [("a", [*range(40)]), ("b", [])]},
    {"heat_groups": [("a", [*range(40)]), ("b", [3])]},
    {"reliability": [Reliability([(0.5, 0.5, 1)], 0.1, 0.1, [])] * 40},
    {"reliability": [Reliability([(0.5, 0.5, 1)], 0.1, 0.1, [(0.5, 0.4)])] * 40},
    {"strips": Strips([], [], [])},
    {"strips": Strips([[[1.0]] * 4] * 41, [[1.0] * 4] * 41, [])},
    {"strips": Strips([[[1.0]] * 4], [], [])},
    {"strips": Strips([[[1.0]] * 3], [[1.0] * 4], [])},
    {"strips": Strips([[[1.0]] * 4], [[1.0] * 3], [])},
    {"strips": Strips([[[1.0]] * 4], [[1.0] * 4], [1.0])},
    {"strips": Strips([[[2.0, 1.0]] * 4], [[1.0] * 4], [])},
    {"strips": Strips([[[None]] * 4], [[1.0] * 4], [])},
    {"strips": Strips([[[None, 1.0]] * 4], [[1.0] * 4], [])},
    {"strips": Strips([[[2e100]] * 4], [[1.0] * 4], [])},
    {"strips": Strips([[[1.0] * 301] * 4] * 10, [[1.0] * 4] * 10, [])},
    {"path": PathLines([1.0], [[1.0]] * 31, [1.0] * 31)},
    {"path": PathLines([1.0], [[1.0]], [])},
    {"path": PathLines([1.0], [[1.0, 2.0]], [1.0])},
    {"stability": Stability([0.5], 0.5, 0.4, 0.6, 10)},
    {"stability": Stability([1.5] * 13, 0.5, 0.4, 0.6, 10)},
    {"curves": [Curve("a", [0.5] * 40, [0.1] * 40, [0.4] * 40)]},
    {"curves": [Curve("a", [0.5] * 40, [0.1] * 40, [0.4] * 40, [0.6] * 39)]},
    {"curves": [Curve("a", [0.5] * 40, [0.1] * 40, [0.4] * 40, [0.3] * 40)]},
    {"further": [Curve("a", [0.5] * 40, [0.1] * 40, [0.4] * 40, [None] * 40)]},
    {"task": "regression"},
    {"targets": ["age"]},
    {"numbers": Numbers([[1.0]], [[[1.0]]] * 40)},
    {"rates": [[make_rate(0.5, 3)] * 4] * 39},
    {"rates": [[make_rate(0.5, 3)] * 3] * 40},
    {"rates": [[make_rate(0.5, -1)] * 4] * 40},
    {"rates": [[ClassRate((0.5, 0.6, 0.7), None, 3)] * 4] * 40},
    {"rates": [[ClassRate(None, (0.5, -0.1, 0.7), 3)] * 4] * 40},
    {"roc": [Roc([(0.0, 0.0), (1.0, 1.0)], 0.5)] * 40},  # of four classes
    {"reliability": [Reliability([], 0.1, 0.1)] * 39},
    {"reliability": [Reliability([(0.5, 1.5, 3)], 0.1, 0.1)] * 40},
    {"reliability": [Reliability([(0.5, 0.5, 0)], 0.1, 0.1)] * 40},
    {"reliability": [Reliability([(0.5, 0.5, 1)] * 61, 0.1, 0.1)] * 40},
    {"reliability": [Reliability([], -0.1, 0.1)] * 40},
    {"panel": make_panel(41, 4)},
    {"panel": replace(make_panel(40, 4), intercept=[[1.0, None, None, None]] * 40)},
    {"panel": make_panel(40, 3)},
    {"panel": make_panel(40, 2)},
    {"panel": make_panel(40, 4, is_regression=True)},
    {"panel": replace(make_panel(40, 4), minimum=[99.0] * 40)},
    {"panel": replace(make_panel(40, 4), maximum=[99.0] * 39)},
    {"panel": replace(make_panel(40, 4), slope=[1.0])},
    {"panel": replace(make_panel(40, 4), doubt=[1.5] * 40)},
    {"features": ["same"] * 40},
]

#: Of a report of two classes, and of a regression of 90 samples.
OTHER_CHANGES = [
    (make_two, {"roc": [Roc([(0.0, 0.0), (1.0, 1.0)], 0.5)] * 39}),
    (make_two, {"roc": [Roc([], 0.5)] * 40}),
    (make_two, {"roc": [Roc([(0.0, 0.0)] * 60 + [(1.0, 1.0)], 0.5)] * 40}),
    (make_two, {"roc": [Roc([(0.0, 0.1), (1.0, 1.0)], 0.5)] * 40}),
    (make_two, {"roc": [Roc([(0.0, 0.0), (0.5, 0.5), (0.4, 0.6), (1.0, 1.0)], 0.5)] * 40}),
    (make_two, {"roc": [Roc([(0.0, 0.0), (1.0, 1.0)], 1.5)] * 40}),
    (make_two, {"roc": [Roc([(0.0, 0.0), (1.0, 1.0)], 0.5, 0.6, 0.4)] * 40}),
    (make_two, {"panel": make_panel(40, 2, is_regression=True)}),
    (make_regression, {"targets": []}),
    (make_regression, {"classes": ["a"]}),
    (make_regression, {"confusion": []}),
    (make_regression, {"heat": [[0.0] * 2] * 20}),
    (make_regression, {"coef": [[["1", "2"]] * size for size in range(1, 21)]}),
    (make_regression, {"numbers": Numbers([], [[]] * 20)}),
    (make_regression, {"numbers": Numbers([[1.0] * 301], [None] * 20)}),
    (make_regression, {"numbers": Numbers([[1.0]], [None] * 19)}),
    (make_regression, {"numbers": Numbers([[1.0]], [[[1.0, 2.0]]] * 20)}),
    (make_regression, {"panel": make_panel(20, 1)}),
    (make_regression, {"strips": Strips([[[1.0]]], [[]], [])}),
    (make_regression, {"strips": Strips([[[1.0]]], [[1.0]], [1.0])}),
    (make_regression, {"strips": Strips([[[1.0]]], [[]], [1.0, 2.0])}),
    (make_regression, {"strips": Strips([[[1.0]] * 2], [[]], [1.0])}),
]


@pytest.mark.parametrize(
    ("make", "change"), OTHER_CHANGES, ids=lambda value: next(iter(value)) if type(value) is dict else ""
)
def test_what_does_not_belong_to_two_classes_or_numbers_is_refused(make, change):
    content = make()
    with pytest.raises(ReportError, match=r"not complete: .*\. Make it again"):
        replace(content, **change)


@pytest.mark.parametrize("transform", ["sqrt", 1, None])
def test_a_panel_of_another_kind_is_refused(transform):
    stored = json.loads(make_content().to_json())
    stored["panel"]["transform"] = transform
    with pytest.raises(ReportError, match="transform holds"):
        Content.from_json(json.dumps(stored))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{next(iter(change))}")
def test_what_does_not_belong_together_is_refused(change):
    with pytest.raises(ReportError, match=r"not complete: .*\. Make it again"):
        replace(make_content(), **change)


def test_numbers_that_json_has_not_are_refused_when_written():
    with pytest.raises(ReportError, match="finite numbers"):
        replace(make_content(), chance=float("nan")).to_json()
    with pytest.raises(ReportError, match="finite numbers"):
        replace(make_content(), provenance={"a": {1}}).to_json()


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


@pytest.mark.parametrize("k", [-1, 41])
def test_selection_tsv_refuses_what_is_not_there(k):
    with pytest.raises(ValueError, match=rf"k={k} is not valid\. The report holds 0 to 40"):
        make_content().selection_tsv(k)


def cells_of(text):
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter="\t"))


def test_names_are_read_back_verbatim():
    content = evil_content()
    rows = cells_of(content.selection_tsv(content.k))
    assert {len(row) for row in rows} == {len(content.header())}
    assert [row[0] for row in rows[1:]] == EVIL
    assert rows[0] == content.header()


def test_spreadsheets_get_no_formula_and_keep_their_numbers():
    """C7, with the csv module of Python as the reader."""
    content = evil_content()
    text = content.selection_tsv(content.k, for_spreadsheets=True)
    assert text.encode().startswith(codecs.BOM_UTF8)
    found, plain = cells_of(text), cells_of(content.selection_tsv(content.k))
    cells = [(a, b) for one, two in zip(plain, found, strict=True) for a, b in zip(one, two, strict=True)]
    assert {a[0] for a, b in cells if a != b} == {"=", "@", "-"}
    for a, b in cells:
        is_number = re.fullmatch(r"-?[\d.]+(e[+-]\d+)?", a)
        assert b == (f"'{a}" if a[:1] in set("=+-@") and not is_number else a)
    assert any(a.startswith("-0.") for a, b in cells if a == b)


CONVERTED = [
    "SEPT2", "Sept-2", "MARCH1", "MARC1", "DEC1", "OCT4", "1-Mar", "2-Sep", "Sep-01", "3 Apr 2020", "AGO2", "MEI1", "00123",
    "1E5", "2310009E13", "44256", "-5", "1.5", "1/2", "12:30", "5 PM", "50%", "$5", "(5)", "1,000", "TRUE", "wahr", "#N/A",
    "=1+1", "+x", "-x", "@SUM(1)", " =1", "\t=1", "\r-1", "\uff1d1",
]  # fmt: skip
KEPT = ["TP53", "1007_s_at", "ENSG00000141510", "2310009E13Rik", "SETD2", "SET", "MAR", "MARCKS", "DECR1", "H2AFX", ""]


@pytest.mark.parametrize("name", CONVERTED + KEPT)
def test_a_spreadsheet_keeps_names_as_text(name):
    """What Excel is known to convert begins with an apostrophe, and nothing else does; a number that is no name stays."""
    [_, row] = cells_of(write_tsv([["feature", "score"], [name, "-5"]], for_spreadsheets=True))
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
    found, expected = json.loads(text), json.loads(content.to_json())
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
    "flat path": make_content(path=PathLines([1.0, 0.0], [[0.0, 0.0]], [None])),
    "one lambda": make_content(path=PathLines([1.0], [[1.0]], [None])),
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
    page = comparison_page(*comparison(), title="toy", answer="<s>", warnings=["<i>"], sentences=["<u>"])
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
    page = comparison_page(rows, curves.assign(accuracy=80.0).iloc[2:3], title="toy", answer="")
    assert page.count('class="line c1 d0"') == 2
    assert 'class="line c0' not in page


def test_comparison_names_the_column_that_is_missing():
    rows, curves = comparison()
    with pytest.raises(ValueError, match="no column 'seconds'"):
        comparison_page(rows.drop(columns="seconds"), curves, title="toy", answer="")


def test_comparison_without_results():
    rows, curves = comparison()
    assert "Nothing yet" in comparison_page(rows.iloc[1:2], curves.iloc[:0], title="toy", answer="Nothing yet")


def test_an_atlas_has_a_share_and_replacements_for_each_feature():
    atlas = make_content().atlas
    with pytest.raises(ReportError, match="the atlas has not a share and replacements for each optional feature"):
        make_content(atlas=replace(atlas, shares=atlas.shares[1:]))
    with pytest.raises(ReportError, match="a share of the atlas is not between 0 and 1"):
        make_content(atlas=replace(atlas, shares=[1.5, *atlas.shares[1:]]))
