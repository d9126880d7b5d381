"""Matrices that stay in their files, with errors that name the file."""

from __future__ import annotations

from typing import Any

from l20fs.data.readers.table import DataError, Request
from l20fs.design.large import LargeFileError, open_large


def left_in_file(key: str, request: Request) -> Any:
    """Return a stored matrix as a Dask array."""
    try:
        return open_large(request.file, key=key)
    except LargeFileError as error:
        raise DataError(str(error)) from error
