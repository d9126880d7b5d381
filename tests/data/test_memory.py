"""Amounts of memory: parsed."""

from __future__ import annotations

import pytest

from l20fs.text import parse_bytes


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("4G", 2**32),
        ("512M", 2**29),
        ("0.5 gb", 2**29),
        ("1TiB", 2**40),
        (3e9, 3_000_000_000),
        ("200000K", 204_800_000),
        *((said, None) for said in ("4X", "", "G", ".", "1..2G", -1, 0, True, float("nan"), float("inf"), [4], "-4G")),
    ],
)
def test_memory_as_people_say_it(said, size):
    assert parse_bytes(said) == size
