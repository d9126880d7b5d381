"""Pipes, devices and sockets in place of files. What waits for a writer is in ``tests/storage/test_streams.py``."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from attacks import attack

DEVICE = r"error: /dev/zero: a device, where a regular file is needed"
FOLDER = r"a folder, where a regular file is needed|is a directory"


def table(folder: Path) -> str:
    rows = [f"{'ab'[i % 2]},{i % 2}.{i},{i * 7 % 5},{i * 3 % 7}\n" for i in range(20)]
    (folder / "table.csv").write_text("type,g1,g2,g3\n" + "".join(rows))
    return str(folder / "table.csv")


def listen(folder: Path) -> str:
    """Make a socket; its path relative to the folder of the command, since paths of sockets are short."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
    finally:
        os.chdir(before)
    return "socket"


@attack(DEVICE)
def endless_device(folder: Path) -> list[str]:
    return ["select", "/dev/zero", "--target", "type"]


@attack(r"error: table.csv: a device")
def endless_device_by_a_link(folder: Path) -> list[str]:
    os.symlink("/dev/zero", folder / "table.csv")
    return ["select", "table.csv", "--target", "type"]


@attack(r"error: /dev/full: a device")
def full_device(folder: Path) -> list[str]:
    return ["select", "/dev/full", "--target", "type"]


@attack(r"error: socket: a socket")
def table_is_a_socket(folder: Path) -> list[str]:
    return ["compare", listen(folder), "--target", "type", "-o", "out"]


@attack(r"error: .*table\.fifo: a pipe that nobody writes to")
def pipe_without_a_writer(folder: Path) -> list[str]:
    os.mkfifo(folder / "table.fifo")
    return ["select", str(folder / "table.fifo"), "--target", "type"]


@attack(r"error: standard input: a device")
def standard_input_is_a_device(folder: Path) -> list[str]:
    return ["select", "-", "--target", "type"]


@attack(r"Standard input \(-\) is given twice", code=2)
def standard_input_for_two(folder: Path) -> list[str]:
    return ["select", "-", "--labels", "-"]


@attack(DEVICE)
def labels_from_a_device(folder: Path) -> list[str]:
    return ["select", table(folder), "--labels", "/dev/zero"]


@attack(r"error: socket: a socket")
def labels_from_a_socket(folder: Path) -> list[str]:
    return ["select", table(folder), "--labels", listen(folder)]


@attack(r"/dev/zero: a device", code=2)
def list_from_a_device(folder: Path) -> list[str]:
    return ["select", table(folder), "--target", "type", "--include", "@/dev/zero"]


@attack(r"standard input is for the table", code=2)
def list_from_standard_input(folder: Path) -> list[str]:
    return ["select", table(folder), "--target", "type", "--exclude", "@-"]


@attack(FOLDER, code=2)
def list_is_a_folder(folder: Path) -> list[str]:
    return ["select", table(folder), "--target", "type", "--ignore", f"@{folder}"]


@attack(r"larger than \d+ bytes", code=2)
def list_of_a_gigabyte(folder: Path) -> list[str]:
    with open(folder / "names.txt", "wb") as stream:
        stream.truncate(2**30)
    return ["select", table(folder), "--target", "type", "--features", "@names.txt"]


@attack(r"/dev/zero: a device", code=2)
def groups_from_a_device(folder: Path) -> list[str]:
    return ["select", table(folder), "--target", "type", "--feature-groups", "/dev/zero"]


@attack(DEVICE)
def panel_is_a_device(folder: Path) -> list[str]:
    return ["predict", "/dev/zero", table(folder)]


@attack(DEVICE)
def list_to_validate_is_a_device(folder: Path) -> list[str]:
    return ["validate", "/dev/zero", table(folder), "--target", "type"]


@attack(r"error: .*panel\.json: a pipe, where a regular file is needed")
def panel_in_a_folder_is_a_pipe(folder: Path) -> list[str]:
    os.mkfifo(folder / "panel.json")
    return ["predict", str(folder), table(folder)]


@attack(r"there is no matrix\.mtx")
def matrix_of_a_folder_is_a_pipe(folder: Path) -> list[str]:
    os.mkfifo(folder / "matrix.mtx")
    return ["select", str(folder), "--labels", table(folder)]
