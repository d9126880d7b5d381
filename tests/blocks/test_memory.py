"""Amounts of memory: parsed, limited and written."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("said", ["much", "-1G", "B", "0", "inf", "nan", "G8", "1 2", None, False, b"4G", 10**400, "1\n2G"])
def test_what_is_no_size(said):
    assert parse_bytes(said) is None


@pytest.mark.parametrize(
    ("groups", "folder", "limit", "usage", "cache"),
    [
        ("0::/a/b\n", "a/b", "memory.max", "memory.current", "inactive_file"),
        ("4:memory:/a/b\n3:cpu:/\n", "memory/a/b", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
)
def test_a_control_group_limits_what_is_free(tmp_path, groups, folder, limit, usage, cache):
    (tmp_path / "groups").write_text(groups)
    (tmp_path / folder).mkdir(parents=True)

    def write(place, most):
        (place / limit).write_text(f"{most}\n")
        (place / usage).write_text("600\n")
        (place / "memory.stat").write_text(f"anon 5\n{cache} 100\n")

    left = lambda: memory._free_in_group(tmp_path, tmp_path / "groups")  # noqa: E731
    assert left() is None
    write(tmp_path / folder, "max" if limit == "memory.max" else 2**63 - 4096)
    assert left() is None
    write(tmp_path / folder, 1000)
    assert left() == 500
    write((tmp_path / folder).parent, 900)  # a group within a smaller one
    assert left() == 400


def test_a_limit_of_addresses_limits_what_is_free(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**50, 2**50))
    assert 2**49 < memory._free_addresses() < 2**50
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, 10))
    assert memory.available_memory() == 0
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, 0))
    assert memory._free_addresses() is None
