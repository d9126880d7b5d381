"""Pipes, devices and sockets in place of files."""

from __future__ import annotations

import os
from pathlib import Path

from attacks import attack


@attack(r"error: .*a device")
def endless_device(folder: Path) -> list[str]:
    return ["select", "/dev/zero", "--target", "type"]


@attack(r"error: .*pipe")
def pipe_without_a_writer(folder: Path) -> list[str]:
    os.mkfifo(folder / "table.csv")
    return ["select", str(folder / "table.csv"), "--target", "type"]
