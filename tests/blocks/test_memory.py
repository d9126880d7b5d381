"""Amounts of memory: parsed, limited and written."""

from __future__ import annotations

import subprocess
import sys

import pytest
from platforms import needs_linux

from l20fs.blocks import memory_limit


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("4G", 2**32),
        ("512M", 2**29),
        ("0.5 gb", 2**29),
        ("1TiB", 2**40),
        (3e9, 3_000_000_000),
        (2**28, 2**28),
        ("200000K", 204_800_000),
    ],
)
def test_memory_as_people_say_it(said, size):
    assert memory_limit(said) == size


@pytest.mark.parametrize(
    "said", ["4X", "", "G", ".", "1..2G", -1, 0, 1000, True, "10M", float("nan"), float("inf"), [4], "-4G"]
)
def test_memory_that_makes_no_sense_is_refused(said):
    with pytest.raises(ValueError, match=r"max_memory=.*'4G', at least 128\.0 MiB"):
        memory_limit(said)


@needs_linux
def test_a_real_limit_of_addresses():
    import resource

    code = "from l20fs.blocks import memory_limit; print(memory_limit(None))"
    said = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(said.stdout) <= 2**30
