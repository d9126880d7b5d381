"""Parsing, limits and formatting of amounts of memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

#: Minimum of the limit: with less, blocks would be tiny, and Python with its libraries takes more.
LEAST_LIMIT = 2**27


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
