"""How much memory there is, and how it is said."""

from __future__ import annotations

import os
import re
from typing import Any

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

#: Less makes no sense as a limit: the blocks would be tiny, and Python with its libraries takes more by itself.
LEAST = 2**27


def bytes_of(max_memory: Any) -> int:
    """Return a limit in bytes: a number, a text such as ``"4G"``, or None for half of the memory of this machine.

    Examples
    --------
    >>> bytes_of("4G"), bytes_of("512 MB"), bytes_of(2e9)
    (4294967296, 536870912, 2000000000)
    """
    if max_memory is None:
        return _installed() // 2
    size = 0.0
    if isinstance(max_memory, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)i?B?\s*", max_memory, re.IGNORECASE)
        if found and found[1].count(".") < 2 and found[1] != ".":
            size = float(found[1]) * _UNITS[found[2].upper()]
    elif isinstance(max_memory, int | float) and not isinstance(max_memory, bool):
        size = float(max_memory)
    if not LEAST <= size < float(2**63):
        raise ValueError(
            f"max_memory={max_memory!r} is not valid. Use a number of bytes or a text such as '4G', at least {shown(LEAST)}."
        )
    return int(size)


def shown(size: float) -> str:
    """Return a number of bytes as people read it.

    Examples
    --------
    >>> shown(3_000_000_000), shown(10)
    ('2.8 GiB', '10 bytes')
    """
    for unit, letter in ((2**40, "T"), (2**30, "G"), (2**20, "M"), (2**10, "K")):
        if size >= unit:
            return f"{size / unit:.1f} {letter}iB"
    return f"{size:.0f} bytes"


def _installed() -> int:
    """Return the memory of this machine; 8 GB where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**33
