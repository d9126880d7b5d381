"""Standard input, devices and folders in place of files."""

from __future__ import annotations

from pathlib import Path

from attacks import attack


def table(folder: Path) -> str:
    rows = [f"{'ab'[i % 2]},{i % 2}.{i},{i * 7 % 5},{i * 3 % 7}\n" for i in range(20)]
    (folder / "table.csv").write_text("type,g1,g2,g3\n" + "".join(rows))
    return str(folder / "table.csv")


@attack(r"error: /dev/zero: not a regular file")
def endless_device(folder: Path) -> list[str]:
    return ["select", "/dev/zero", "--target", "type"]


@attack(r"error: /dev/zero: not a regular file")
def labels_from_a_device(folder: Path) -> list[str]:
    return ["select", table(folder), "--labels", "/dev/zero"]


@attack(r"/dev/zero: larger than \d+ bytes", code=2)
def list_from_a_device(folder: Path) -> list[str]:
    return ["select", table(folder), "--target", "type", "--include", "@/dev/zero"]


@attack(r"error: '/dev/zero': The file has more than \d+ bytes")
def panel_is_a_device(folder: Path) -> list[str]:
    return ["predict", "/dev/zero", table(folder)]


@attack(r"Is a directory", code=2)
def list_is_a_folder(folder: Path) -> list[str]:
    return ["select", table(folder), "--target", "type", "--ignore", f"@{folder}"]


@attack(r"error: .*empty")
def standard_input_is_empty(folder: Path) -> list[str]:
    return ["select", "-", "--target", "type"]


@attack(r"error: ", code=2)
def standard_input_for_two(folder: Path) -> list[str]:
    return ["select", "-", "--labels", "-"]


@attack(r"cannot be read", code=2)
def list_from_standard_input(folder: Path) -> list[str]:
    return ["select", table(folder), "--target", "type", "--exclude", "@-"]
