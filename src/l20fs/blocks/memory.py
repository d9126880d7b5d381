"""Parsing, limits and formatting of amounts of memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

#: Minimum of the limit: with less, blocks would be tiny, and Python with its libraries takes more.
LEAST_LIMIT = 2**27


def memory_limit(max_memory: Any) -> int:
    """Return ``max_memory`` in bytes, see :func:`parse_bytes`; None is half of what this process may have.

    This is the memory of the machine (8 GB are assumed on Windows) or, if it is less, the limit of a control group (Docker,
    Slurm, systemd) or of ``ulimit``. It does not depend on what is free at the moment: the same fit is cut into the same
    blocks.

    Examples
    --------
    >>> memory_limit("4G")
    4294967296
    """
    if max_memory is None:
        return max(LEAST_LIMIT, allowed_memory() // 2)
    size = parse_bytes(max_memory)
    if size is None or size < LEAST_LIMIT:
        raise ValueError(
            f"max_memory={max_memory!r} is not valid. Use a number of bytes or a text such as '4G', at least "
            f"{format_bytes(LEAST_LIMIT)}."
        )
    return size


def parse_bytes(size: Any) -> int | None:
    """Return a size in bytes, given as a number or as a text with a binary unit; None if it is not valid.

    Examples
    --------
    >>> parse_bytes("4G"), parse_bytes("512 MiB"), parse_bytes(2e9), parse_bytes("much")
    (4294967296, 536870912, 2000000000, None)
    """
    unit = 1
    if isinstance(size, str):
        found = re.fullmatch(r"(.*?)\s*(?:([KMGT])I?)?B?", size.strip().upper())
        if found is None:
            return None
        size, unit = found[1], _UNITS[found[2] or ""]
    elif not isinstance(size, int | float) or isinstance(size, bool):
        return None
    try:
        n_bytes = float(size) * unit
    except (ValueError, OverflowError):
        return None
    return int(n_bytes) if 0.0 < n_bytes < float(2**63) else None


def format_bytes(size: float) -> str:
    """Format a number of bytes with a binary unit.

    Examples
    --------
    >>> format_bytes(3_000_000_000), format_bytes(10)
    ('2.8 GiB', '10 bytes')
    >>> format_bytes(10**400)  # as damaged files state
    'more than 8 EiB'
    """
    if size >= 2**63:
        return "more than 8 EiB"
    for unit, letter in ((2**40, "T"), (2**30, "G"), (2**20, "M"), (2**10, "K")):
        if size >= unit:
            return f"{size / unit:.1f} {letter}iB"
    return f"{size:.0f} bytes"


def _installed() -> int:
    """Return the memory of this machine; 8 GB if it is unknown, as on Windows."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**33


def allowed_memory() -> int:
    """Return the memory in bytes that this process may have, by this machine and by its limits."""
    limits = [most for most, _ in (*_groups(), *_own_limits())]
    return min([_installed(), *limits])


def available_memory() -> int | None:
    """Return the available memory in bytes, by this machine and by the limits of this process, or None if it is unknown."""
    left = [most - used for most, used in (*_groups(), *_own_limits())]
    found = [size for size in (_free(), *left) if size is not None]
    return min((max(0, size) for size in found), default=None)


def _free() -> int | None:
    """Return the free memory of this machine; None if it is unknown, as on Windows and macOS."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _groups(root: Path = Path("/sys/fs/cgroup"), groups: Path = Path("/proc/self/cgroup")) -> Iterator[tuple[int, int]]:
    """Yield limit and usage of the control groups of this process, as in a container or a job of a cluster."""
    try:
        lines = [line.split(":", 2) for line in groups.read_text().splitlines()]
    except OSError:
        return
    for _, kinds, name in (line for line in lines if len(line) == 3):
        if kinds and "memory" not in kinds.split(","):
            continue
        top = root / kinds
        place = top / name.lstrip("/")
        # In a container the name may be the one outside of it, where only the top is there.
        for folder in (place, *(parent for parent in place.parents if parent.is_relative_to(top))):
            yield from _of_group(folder, OF_FIRST if kinds else OF_SECOND)


#: Files of a control group with its limits and its usage, and what of the usage are files that were read.
OF_FIRST = (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file")
OF_SECOND = (("memory.max", "memory.high"), "memory.current", "inactive_file")


def _of_group(folder: Path, files: tuple[tuple[str, ...], str, str]) -> Iterator[tuple[int, int]]:
    """Yield limit and usage of one group; nothing if it has no limit."""
    limits, usage, forgettable = files
    for limit in limits:
        try:
            most = (folder / limit).read_text().strip()
            if not most.isdigit() or int(most) >= 2**60:  # "max", or no limit in the first version
                continue
            used = int((folder / usage).read_text())
            # Files that were read count as used, but are forgotten where memory is needed.
            stat = dict(line.split()[:2] for line in (folder / "memory.stat").read_text().splitlines())
            yield int(most), used - int(stat.get(forgettable, 0))
        except (OSError, ValueError):
            continue


def _own_limits() -> Iterator[tuple[int, int]]:
    """Yield limit and usage of the addresses (``ulimit -v``) and of the data (``ulimit -d``) of this process."""
    try:
        import resource

        pages = [int(count) * os.sysconf("SC_PAGE_SIZE") for count in Path("/proc/self/statm").read_text().split()]
        for limit, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
            most = resource.getrlimit(limit)[0]
            if most != resource.RLIM_INFINITY:
                yield most, used
    except (ImportError, OSError, ValueError, IndexError):  # not on every system
        return
