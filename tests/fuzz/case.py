"""One case: files of a target are damaged and read, and the outcome is judged."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.corpus import CAP, Target
from fuzz.mutations import damage
from l20fs.tables import Samples

#: Memory above 1.5 times the cap that is no fault: what libraries keep when they are first used.
SLACK = 2**27


@dataclass(frozen=True)
class Outcome:
    """Fault of a case, empty if there is none; whether a table came out; and the number of flipped bytes."""

    fault: str
    is_read: bool
    n_flips: int


class Cases:
    """Cases of a target, which depend on the seed, the target and their number only.

    Parameters
    ----------
    target : Target
    source : path
        Folder with the whole files.
    folder : path
        Folder of the damaged copy, which is made.
    seed : int
    only_flips : bool
        Whether bytes are flipped, and nothing else.
    """

    def __init__(self, target: Target, source: Path, folder: Path, seed: int, *, only_flips: bool = False) -> None:
        self.target, self.folder, self.seed, self.only_flips = target, folder, seed, only_flips
        members = sorted(file for file in source.rglob("*") if file.is_file())
        self.contents = {file.relative_to(source): file.read_bytes() for file in members}
        for file, content in self.contents.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        # Large files are damaged most often, but small ones as well.
        self.weights = [len(content) ** 0.5 for content in self.contents.values()]

    def damaged(self, number: int) -> tuple[Path, bytes, int]:
        """Return the file that a case damages, its content, and the number of flipped bytes."""
        chance = Random(f"{self.seed} {self.target.name} {number} {self.only_flips}")
        [file] = chance.choices(list(self.contents), self.weights)
        content, n_flips = damage(self.contents[file], chance, only_flips=self.only_flips)
        return file, self.target.seal(content) if chance.random() < 0.8 else content, n_flips

    def run(self, number: int) -> Outcome:
        """Read the damaged files, and make them whole again."""
        file, content, n_flips = self.damaged(number)
        (self.folder / file).write_bytes(content)
        try:
            fault, is_read = judge(self.target, self.folder)
        finally:
            (self.folder / file).write_bytes(self.contents[file])
        return Outcome(fault, is_read, n_flips)


def judge(target: Target, folder: Path) -> tuple[str, bool]:
    """Read the files of a target; return what is wrong, and whether there is a result."""
    before = _memory("VmRSS")
    _forget_peak()
    fault, result = "", None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = target.read(folder)
        except target.allowed as error:
            fault = f"{type(error).__name__} of several lines: {error}" if "\n" in str(error) else ""
        except BaseException as error:  # also what is no Exception, such as the panic of a library
            fault = _described(error)
            if isinstance(error, KeyboardInterrupt):
                raise
    fault = fault or (wrong_table(result) if isinstance(result, Samples) else "")
    peak = _memory("VmHWM")
    if not fault and peak > before + 1.5 * CAP + SLACK:
        fault = f"{(peak - before) / 2**20:.0f} MiB at a cap of {CAP / 2**20:.0f} MiB"
    return fault, result is not None


def _described(error: BaseException) -> str:
    """Return the lines of this package in a traceback, the last line of all, and the message."""
    frames = traceback.extract_tb(error.__traceback__)
    shown = [frame for frame in frames[:-1] if "src/l20fs" in frame.filename] + frames[-1:]
    return "".join([*traceback.format_list(shown), *traceback.format_exception_only(error)])


def wrong_table(table: Samples) -> str:
    """Say what is wrong with a table that was read."""
    if table.X.shape != (len(table.y), len(table.feature_names)):
        return f"X has the shape {table.X.shape}, for {len(table.y)} labels and {len(table.feature_names)} features"
    if len(set(table.feature_names)) < len(table.feature_names):
        return "features of the same name"
    if sp.issparse(table.X):
        table.X.check_format(full_check=True)
    values: Any = table.X.data if sp.issparse(table.X) else table.X
    return "" if np.isfinite(values).all() else "values that are not finite"


def _memory(field: str) -> int:
    """Return a number of bytes that the system tells about this process; 0 if it tells none."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as stream:
            return next(int(line.split()[1]) * 1024 for line in stream if line.startswith(field))
    except (OSError, StopIteration):
        return 0


def _forget_peak() -> None:
    if sys.platform == "linux":
        try:
            descriptor = os.open("/proc/self/clear_refs", os.O_WRONLY)
        except OSError:
            return
        os.write(descriptor, b"5")
        os.close(descriptor)
