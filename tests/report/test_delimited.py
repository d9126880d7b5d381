"""Every delimited file is read back equal, whatever signs its names have."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from report_samples import make_content

from l20fs.report.delimited import join_names, write_frame, write_rows
from l20fs.tables import read_table

ODD = [
    *('"gene', 'a"b', '"', '""', "'q'", "a\tb", "a\nb", "a\rb", "a\r\nb", " a", "a ", "a, b", "a,b", ", ", "a;b", "#a"),
    *("=1+1", "+a", "-a", "@a", "NA", "nan", "None", "", " ", "1e5", "\ufeffa", "\u2028", "a\x85b", "\x0b", "\x1c", "\x7f"),
    *("🧬", "é", "e\u0301", "\u202ea", "a\\b", "\\", "\\t", "\x1b[31m"),
]
#: NUL ends a text of C, and pandas' parser with it: readers refuse such names.
names = st.lists(
    st.sampled_from(ODD) | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6), min_size=1, max_size=8
)


def by_csv(text, separator="\t"):
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))


def by_pandas(text, separator="\t"):
    frame = pd.read_csv(io.BytesIO(text.encode()), sep=separator, dtype=str, keep_default_na=False)
    return [frame.columns.tolist(), *frame.to_numpy().tolist()]


@given(names, st.sampled_from("\t,"))
@example(ODD, "\t")
@example(ODD, ",")
@settings(max_examples=100)
def test_rows_are_read_back_equal(texts, separator):
    rows = [["feature", "place"], *([text, "1"] for text in texts)]
    text = write_rows(rows, separator)
    assert by_csv(text, separator) == rows
    assert by_pandas(text, separator) == rows
    assert write_frame(pd.DataFrame(rows[1:], columns=rows[0]), separator) == text


@given(names)
@example(ODD)
@settings(max_examples=100)
def test_joined_names_can_be_parted(texts):
    assert next(csv.reader(io.StringIO(join_names(texts), newline=""), skipinitialspace=True)) == texts


def test_one_column_has_no_lost_line():
    assert by_csv(write_rows([["a"], [""], ["b"]])) == [["a"], [""], ["b"]]


@pytest.mark.parametrize("separator", ["\t", ","])
def test_names_are_read_back_equal_by_our_own_reader(tmp_path, separator):
    """A lone carriage return is refused with a word, and one before a line feed is the end of a line, as in all text."""
    texts = [text for text in ODD if text.strip() and "\r" not in text]
    numbers = np.random.default_rng(0).normal(size=(len(texts), len(texts))).round(3)
    rows = [["id", "type", *texts]]
    rows += [[text, "ab"[i % 2], *map(str, numbers[i])] for i, text in enumerate(texts)]
    (tmp_path / "table.txt").write_bytes(write_rows(rows, separator).encode())
    table = read_table(tmp_path / "table.txt", "type")
    assert table.feature_names == texts
    assert table.sample_names == texts
    np.testing.assert_array_equal(table.X, numbers)


def test_a_frame_is_written_as_pandas_would():
    frame = pd.DataFrame(
        {
            "name": ["a", None, "c, d"],
            "score": [0.1 + 0.2, np.nan, 1e-300],
            "single": np.array([0.1, 2.0, 3.0], dtype=np.float32),
            "count": [1, 2, 3],
            "is_best": [True, False, True],
            "mixed": ["x", 1, 0.5],
        }
    )
    assert write_frame(frame) == frame.to_csv(sep="\t", index=False, float_format="%.10g", lineterminator="\n")
    assert write_frame(frame.drop(columns="single"), ",", "") == frame.drop(columns="single").to_csv(
        index=False, lineterminator="\n"
    )
    empty = pd.DataFrame({"n_features": [], "metric": []})
    assert write_frame(empty) == "n_features\tmetric\n"


@given(names.map(lambda texts: list(dict.fromkeys(texts))))
@example(list(ODD))
@settings(max_examples=25, deadline=None)
def test_selection_is_read_back_equal(texts):
    content = make_content(k=1, k_max=len(texts), names=texts, classes=["=a", "b\tc", "c", "d"])
    substitutes = [[(texts[0], 0.9, 0), ("x, y", 0.8, 0)] for _ in texts]
    content = replace(content, substitutes=substitutes, panel=None)
    rows = by_pandas(content.selection_tsv(len(texts)))
    assert rows == by_csv(content.selection_tsv(len(texts)))
    assert rows[0] == content.header()
    assert [row[0] for row in rows[1:]] == texts
    place = rows[0].index("could_replace")
    parted = next(csv.reader(io.StringIO(rows[1][place], newline=""), skipinitialspace=True))
    assert parted == [f"{texts[0]} (0.90)", "x, y (0.80)"]
