"""Output folders of the commands: what is in the way there is an error of usage."""

from __future__ import annotations

from pathlib import Path

import click

from l20fs.storage.files import check_writable, refuse_irregular
from l20fs.storage.results import RESULTS


def check_output(folder: Path, command: str, *, force: bool) -> None:
    """Raise an error before any work is done if the results of a command cannot be written, or must not."""
    check_writable(folder)
    present = [name for name in RESULTS[command] if (folder / name).exists()]
    if present and not force:
        raise click.UsageError(f"-o {folder}: holds results already ({', '.join(present)}). Use --force to replace them.")
    for name in RESULTS[command]:
        refuse_irregular(folder / name)
