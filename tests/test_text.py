"""Pieces of sentences: lists, closest names, counts, percentages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from l20fs import text

NAMES = [f"gene{i}" for i in range(8)]


@pytest.mark.parametrize(
    ("n", "joined", "quoted", "listed", "abbreviated"),
    [
        (1, "gene0", "'gene0'", "'gene0'", "'gene0'"),
        (2, "gene0 and gene1", "'gene0' and 'gene1'", "'gene0', 'gene1'", "'gene0', 'gene1'"),
        (
            5,
            "gene0, gene1, gene2, gene3 and gene4",
            "'gene0', 'gene1', 'gene2', 'gene3' and 'gene4'",
            "'gene0', 'gene1', 'gene2', 'gene3', 'gene4'",
            "'gene0', 'gene1', 'gene2', 'gene3', 'gene4'",
        ),
        (
            6,
            "gene0, gene1, gene2, gene3, gene4 and gene5",
            "'gene0', 'gene1', 'gene2', 'gene3' and 'gene4'",
            "'gene0', 'gene1', 'gene2', 'gene3', 'gene4' and 1 more",
            "'gene0', 'gene1', 'gene2', 'gene3', 'gene4', ...",
        ),
    ],
)
def test_lists(n, joined, quoted, listed, abbreviated):
    names = NAMES[:n]
    assert text.joined(names) == joined
    assert text.quoted(names) == quoted
    assert text.listed(names) == text.listed(iter(names)) == listed
    assert text.abbreviated(names) == abbreviated


def test_lists_of_nothing_and_of_other_things():
    assert (text.listed([]), text.listed([], "none")) == ("nothing", "none")
    assert text.listed([1, 2.5]) == text.abbreviated([1, 2.5]) == "'1', '2.5'"
    assert text.joined(["a", "b", "c"], "or") == "a, b or c"


@given(st.text(), st.lists(st.text(), min_size=1))
def test_some_name_is_the_closest(name, known):
    assert text.closest(name, known) in known
    assert text.closest(name, iter([*known, name])) == name


def test_hints():
    known = {"lambda": 1, "rate": 2, "rates": 3}
    assert text.closest_hint("ratio", known) == "The closest name is 'rate'."
    assert text.did_you_mean("rat", known) == "Did you mean 'rate' or 'rates'?"
    assert text.did_you_mean("x", known) == "It has 'lambda', 'rate', 'rates'."
    assert text.did_you_mean("x", []) == "It has nothing."
    assert text.did_you_mean("x", [], empty="none") == "It has none."
    assert text.did_you_mean(11, [1, 111, 2]) == "Did you mean '111' or '1'?"


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [(0, "feature", "0 features"), (1, "class", "1 class"), (2, "class", "2 classes"), (3, "data set", "3 data sets")],
)
def test_counts(number, noun, expected):
    assert text.counted(number, noun) == expected


def test_numbers():
    assert [text.percent(share) for share in (0, 1, 0.98437, 0.0004)] == ["0.0 %", "100.0 %", "98.4 %", "0.0 %"]
    assert [text.p_text(value) for value in (0.0421, 0.001, 0.000999)] == ["p = 0.042", "p = 0.001", "p < 0.001"]
