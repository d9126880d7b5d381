"""Output folders of the commands: what is in the way there is an error of usage."""

from __future__ import annotations

from importlib.util import find_spec

import click

from l20fs.storage.result_folder import ResultFolder, TakenFolderError


class OutputFolder(ResultFolder):
    """Folder that the option ``-o`` of a command names."""

    def check(self, *, force: bool = False, resume: bool = False, data: str | None = None) -> None:
        """Raise an error before any work is done if the command must not or cannot write into the folder."""
        try:
            super().check(force=force, resume=resume, data=data)
        except TakenFolderError as error:
            raise click.UsageError(str(error)) from error


def require_plots() -> None:
    """Raise an error before any work is done if the figures of a command cannot be drawn."""
    if find_spec("matplotlib") is None:
        raise click.UsageError("The figures need matplotlib, which is not installed: pip install 'l20fs[cli,plots]'")
