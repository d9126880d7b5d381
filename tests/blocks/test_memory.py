"""Amounts of memory: parsed, limited and written."""

from __future__ import annotations

import subprocess
import sys

import pytest
from platforms import needs_linux

from l20fs.blocks import format_bytes, memory, memory_limit, parse_bytes


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


def test_memory_of_this_machine():
    assert 2**27 < memory_limit(None) < 2**50
    assert format_bytes(2**20) == "1.0 MiB"


@pytest.mark.parametrize(
    ("said", "size"),
    [("8g", 2**33), ("100K", 102_400), ("1", 1), ("1e9", 10**9), ("2 GiB ", 2**31), ("4Gi", 2**32), (7, 7), ("1.5kb", 1536)],
)
def test_sizes_have_no_least(said, size):
    assert parse_bytes(said) == size


@pytest.mark.parametrize(
    "said", ["much", "-1G", "B", "0", "inf", "nan", "G8", "1 2", "4I", None, False, b"4G", 10**400, "1\n2G"]
)
def test_what_is_no_size(said):
    assert parse_bytes(said) is None


REAL_GROUPS, REAL_LIMITS = memory._groups, memory._own_limits


@pytest.fixture
def machine(monkeypatch):
    """A machine of 64 GB, half of it free, without limits."""
    monkeypatch.setattr(memory, "_installed", lambda: 2**36)
    monkeypatch.setattr(memory, "_free", lambda: 2**35)
    monkeypatch.setattr(memory, "_groups", lambda: iter(()))
    monkeypatch.setattr(memory, "_own_limits", lambda: iter(()))
    return monkeypatch


def amounts():
    return memory_limit(None), memory.available_memory()


def test_without_sysconf_a_machine_is_taken_for_one_of_8_gb(monkeypatch):
    """As on Windows."""
    monkeypatch.delattr("os.sysconf", raising=False)
    assert memory._installed() == 2**33


FIRST = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
SECOND = ("memory.max", "memory.current", "inactive_file")


@pytest.mark.parametrize(
    ("groups", "folder", "names"),
    [
        ("0::/a/b\n", "a/b", SECOND),
        ("4:memory:/a/b\n3:cpu:/\n", "memory/a/b", FIRST),
        ("4:cpuset,memory:/a/b\n", "cpuset,memory/a/b", FIRST),
        ("0::/system.slice/docker-1.scope/a/b\n", "x/..", SECOND),  # seen from a container: only the top is there
        ("4:memory:/docker/1\n0::/\n", "memory/x/..", FIRST),
    ],
    ids=["v2", "v1", "v1 mounted together", "v2 container", "v1 container"],
)
def test_a_control_group_limits_what_is_allowed_and_free(tmp_path, machine, groups, folder, names):
    limit, usage, cache = names
    (tmp_path / "groups").write_text(groups)
    (tmp_path / folder.replace("..", "")).mkdir(parents=True)
    machine.setattr(memory, "_groups", lambda: REAL_GROUPS(tmp_path, tmp_path / "groups"))

    def write(place, most):
        (place / limit).write_text(f"{most}\n")
        (place / usage).write_text(f"{6 * 2**28}\n")
        (place / "memory.stat").write_text(f"anon 5\n{cache} {2**28}\n")

    assert amounts() == (2**35, 2**35)
    write(tmp_path / folder, "max" if limit == "memory.max" else 2**63 - 4096)
    assert amounts() == (2**35, 2**35)
    write(tmp_path / folder, 2**31)
    assert amounts() == (2**30, 3 * 2**28)
    if folder.endswith("b"):
        write((tmp_path / folder).parent, 2**30)  # a group within a smaller one, which is full
        assert amounts() == (2**29, 0)


def test_a_soft_limit_of_a_control_group_counts(tmp_path, machine):
    (tmp_path / "groups").write_text("0::/\n")
    for name, text in {"max": 2**32, "high": 2**30, "current": 2**29, "stat": "anon 5"}.items():
        (tmp_path / f"memory.{name}").write_text(f"{text}\n")
    machine.setattr(memory, "_groups", lambda: REAL_GROUPS(tmp_path, tmp_path / "groups"))
    assert amounts() == (2**29, 2**29)
    (tmp_path / "memory.high").write_text("max\n")
    assert amounts() == (2**31, 2**32 - 2**29)


@needs_linux
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_the_limits_of_the_process_limit_what_is_allowed_and_free(machine, kind):
    import resource

    limits = {}
    machine.setattr(memory, "_own_limits", REAL_LIMITS)
    machine.setattr(resource, "getrlimit", lambda which: (limits.get(which, resource.RLIM_INFINITY), 0))
    assert amounts() == (2**35, 2**35)
    limits[getattr(resource, kind)] = 2**34
    allowed, free = amounts()
    assert allowed == 2**33
    assert 2**33 < free < 2**34
    limits[getattr(resource, kind)] = 10
    assert amounts() == (memory.LEAST_LIMIT, 0)


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
