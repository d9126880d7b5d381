"""Reader of Parquet files, based on pyarrow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from l20fs.data.readers import trials
from l20fs.data.readers.columns import frame_of_columns
from l20fs.data.readers.frames import check_header, contents_of_frame
from l20fs.data.readers.hdf5_layout import LayoutError
from l20fs.data.readers.limits import check_memory
from l20fs.data.readers.repeated import names_in_file, number_features
from l20fs.data.readers.table import Contents, DataError, Request, UnknownColumnError, first_line, refuse_repeated, require
from l20fs.data.readers.turned import are_samples_in_columns, contents_of_rows

#: Memory of a cell in bytes, and what stands for each cell of a column of lists or structs, which is left out.
MEMORY_PER_CELL, NESTED = 24, "..."

#: Memory per byte of numbers, and of texts: these are decompressed, gathered in a dictionary, and become Python's.
COPIES, COPIES_OF_TEXTS = 2, 8


def read_parquet(request: Request) -> Contents:
    """Read columns of numbers, and of text for labels and names; an index of pandas holds the names.

    If samples are in columns, the labels come from a separate file.
    """
    table, index = _stored(request)
    try:
        frame, texts = _columns(table, index, request)
    except (DataError, UnknownColumnError, MemoryError):
        raise
    except Exception as error:  # of Arrow, whose errors are of many kinds
        raise _damaged(error, request) from error
    if are_samples_in_columns(frame.columns.tolist(), texts[frame.columns[0]] if len(frame.columns) else [], request):
        return _turned(frame, texts, request)
    return contents_of_frame(frame, texts, request, has_names=bool(index))


def parquet_rows(request: Request) -> list[list[str]]:
    """Return all columns as text, with their names in the first row and the index of pandas first."""
    table, index = _stored(request)
    order = [*index, *(name for name in table.column_names if name not in index)]
    refuse_repeated(table.column_names, "column", request)
    try:
        texts = [_texts(table[name], require("pyarrow", "io", request)) for name in order]
    except (DataError, MemoryError):
        raise
    except Exception as error:  # of Arrow, whose errors are of many kinds
        raise _damaged(error, request) from error
    return [order, *(list(row) for row in zip(*texts, strict=True))]


def _stored(request: Request) -> tuple[Any, list[str]]:
    """Return the table, and the name of the column that was the index in pandas."""
    trial = trials.start_trial(request.file)
    try:
        pa, parquet = require("pyarrow", "io", request), require("pyarrow.parquet", "io", request)  # meanwhile
    except BaseException:
        trials.stop_trial(trial)
        raise
    try:
        trials.finish_trial(trial, request.file)
        with parquet.ParquetFile(request.file) as stored:
            about, fields = stored.metadata, list(stored.schema_arrow)
        _check_size(about, fields, pa, request)
        nested = {field.name for field in fields if pa.types.is_nested(field.type)}
        texts = [field.name for field in fields if _is_text(field.type, pa)]
        # The values of a dictionary are stored once, however often they occur; unpacked they would be as many texts.
        with parquet.ParquetFile(request.file, metadata=about, read_dictionary=texts) as stored:
            table = stored.read([field.name for field in fields if field.name not in nested] if nested else None)
        for place, field in enumerate(fields):
            if field.name in nested:  # its values are no features, and may be any number of them
                table = table.add_column(place, field.name, pa.array([NESTED] * table.num_rows, pa.string()))
        return table, _index_names(table.schema.metadata)
    except (DataError, MemoryError):
        raise
    except LayoutError as error:
        raise DataError(f"{request.name}: {error}") from error
    except Exception as error:  # of Arrow, whose errors are of many kinds
        raise _damaged(error, request) from error


def _is_text(kind: Any, pa: Any) -> bool:
    return any(is_one(kind) for is_one in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary))


def _check_size(about: Any, fields: Sequence[Any], pa: Any, request: Request) -> None:
    """Raise an error if the columns need more memory than is allowed, by the sizes that the file states."""
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    n_rows = max(about.num_rows, sum(group.num_rows for group in groups))
    widths = sum(field.type.byte_width for field in fields if pa.types.is_fixed_size_binary(field.type))
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    unpacked = sum(
        (COPIES_OF_TEXTS if column.physical_type == "BYTE_ARRAY" else COPIES) * max(0, column.total_uncompressed_size)
        for column in columns
    )
    check_memory(max(unpacked, (MEMORY_PER_CELL * len(fields) + widths) * n_rows), request)


def _damaged(error: Exception, request: Request) -> DataError:
    return DataError(f"{request.name}: not a whole Parquet file ({first_line(error)}). Write it again.")


def _index_names(metadata: dict[bytes, bytes] | None) -> list[str]:
    """Return the name of the column that was the index in pandas, if there is one."""
    described = json.loads((metadata or {}).get(b"pandas", b"{}"))
    return [name for name in described.get("index_columns", []) if isinstance(name, str)][:1]


def _columns(table: Any, index: list[str], request: Request) -> tuple[Any, dict[str, list[str]]]:
    """Return the columns with the index first, and those that may hold names or labels as text."""
    pa = require("pyarrow", "io", request)
    names = check_header(table.column_names, request)
    places = sorted(range(len(names)), key=lambda place: names[place] not in index)
    order = [names[place] for place in places]
    table = table.select(places)
    kept = [name for name in order if name in (order[0], request.target, *request.beside)]
    texts = {name: _texts(table.column(order.index(name)), pa) for name in kept}
    return frame_of_columns([_numbers(column, pa) for column in table.columns], order, texts, request)


def _numbers(column: Any, pa: Any) -> Any:
    """Return a column as numbers, or as objects if it is not numeric."""
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(kind if pa.types.is_float32(kind) else pa.float64()).to_numpy()
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        whole = column.to_numpy()
        return whole if whole.dtype.kind in "biu" else column.cast(pa.float64()).to_numpy()
    return _objects(column, pa)


def _objects(column: Any, pa: Any) -> Any:
    """Return a column as objects; equal texts of a dictionary are one object."""
    if not pa.types.is_dictionary(column.type):
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    parts = [np.zeros(0, dtype=object)]
    for chunk in column.chunks:
        values = np.array([*chunk.dictionary.to_pylist(), None], dtype=object)
        parts.append(values[chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)])
    return np.concatenate(parts)


def _texts(column: Any, pa: Any) -> list[str]:
    """Return a column as text; missing values are empty."""
    return ["" if value is None or value != value else str(value) for value in _objects(column, pa).tolist()]


def _turned(frame: Any, texts: dict[str, list[str]], request: Request) -> Contents:
    """Return the contents of a table with features in rows and their names in the first column."""
    if request.expects_labels:
        raise UnknownColumnError(f"{request.name}: where are the labels? Give a file with them (--labels FILE).")
    values = frame.iloc[:, 1:].set_axis(names_in_file(frame.columns[1:], request), axis=1)
    request.numbered.clear()  # they are samples, not features
    genes = number_features(texts[frame.columns[0]], request)
    return contents_of_rows(values, genes, {}, range(1, len(genes) + 1), request)
