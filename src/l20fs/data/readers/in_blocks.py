"""Blocks of matrices that stay in their files, with errors that name the file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from l20fs.blocks import FileBlocks, memory_limit
from l20fs.blocks.file_guard import ChangedFileError
from l20fs.blocks.hdf5_layout import LayoutError
from l20fs.blocks.sources import DamagedFileError, stored_blocks
from l20fs.data.readers.limits import memory_for_blocks
from l20fs.data.readers.table import DataError, Request, first_line


def left_in_file(stored: Any, request: Request) -> FileBlocks:
    """Split a stored matrix into blocks; an unreadable block raises an error that names the file."""
    try:
        blocks = stored_blocks(stored, memory_limit(memory_for_blocks(request)))
    except LayoutError as error:
        raise DataError(f"{request.name}: {error}") from error

    def load(span: slice) -> Any:
        try:
            return blocks.load(span)
        except (ChangedFileError, DamagedFileError, MemoryError):
            raise
        except Exception as error:  # of HDF5, zarr and its codecs, whose errors are of many kinds
            lines = f"{'rows' if blocks.axis == 0 else 'columns'} {span.start + 1} to {span.stop}"
            raise DataError(
                f"{request.name}: {lines} of the matrix cannot be read ({first_line(error)}). Copy the file again."
            ) from error

    return replace(blocks, load=load)
