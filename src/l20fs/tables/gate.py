"""The gate: binary files are parsed in one process of its own, which has limits and hands back plain arrays.

What is parsed may crash, hang, or ask for all memory: then that process ends, and the error is one line.
"""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

import numpy as np

from l20fs.tables import memory
from l20fs.tables.errors import MissingPackageError
from l20fs.tables.table import Reading
from l20fs.typing import Array

PROGRAM = Path(__file__).with_name("parsers.py")

#: A file may grow to so many bytes, or to so many times its size; bombs grow a thousand times.
FREE_BYTES, MOST_GROWTH = 2**31, 200

#: Seconds of processor time, and bytes of a file for one more; it may take so many times as long by the clock.
SECONDS, PER_SECOND, BY_CLOCK = 20, 2**20, 5

#: Extra that brings a package.
EXTRAS = {"pyarrow": "io", "python_calamine": "io", "h5py": "h5ad", "zarr": "zarr"}


def parse(kind: str, file: Path, reading: Reading, **asked: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what the parser of a kind of file returns: texts and numbers, and arrays by name."""
    size = sum(each.stat().st_size for each in memory.files_of(file))
    most, seconds = memory.limit(reading), SECONDS + size // PER_SECOND
    allowed = max(FREE_BYTES, MOST_GROWTH * size)
    asked |= {
        "kind": kind,
        "file": os.fspath(file),
        "memory": min(allowed, most or allowed),
        "seconds": seconds,
        "most": most,
    }
    command = [sys.executable, "-P", os.fspath(PROGRAM)]  # -P: the folder of the program is not searched for modules
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        clock = threading.Timer(BY_CLOCK * seconds, process.kill)
        clock.daemon = True
        clock.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(asked).encode())
            process.stdin.close()
            reply, arrays = _received(process.stdout, most)
        except (EOFError, ValueError, OSError):
            raise reading.error(
                f"the library that reads {kind} files crashed, hung, or took more than "
                f"{memory.format_bytes(asked['memory'])} of memory. The file is damaged, or larger than it looks; copy it "
                "again, or save it as CSV."
            ) from None
        finally:
            clock.cancel()
            process.kill()
    _refuse(reply, kind, asked["memory"], reading)
    return reply, arrays


def _received(stream: IO[bytes], most: int | None) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the reply of the process, whose sizes are not trusted."""
    (length,) = struct.unpack("<Q", _exactly(stream, 8))
    if most is not None and length > most:
        raise ValueError(length)
    reply = json.loads(_exactly(stream, length))
    arrays = {}
    for name, dtype, shape in reply.pop("arrays"):
        kind = np.dtype(dtype)
        if kind.kind not in "biuf" or (most is not None and math.prod(shape) * kind.itemsize > most):
            raise ValueError(name)
        arrays[name] = array = np.empty(shape, kind)
        view: Any = memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        while view:
            n_read = stream.readinto(view)  # type: ignore[attr-defined]
            if not n_read:
                raise EOFError
            view = view[n_read:]
    return reply, arrays


def _exactly(stream: IO[bytes], length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content


def _refuse(reply: dict[str, Any], kind: str, allowed: int, reading: Reading) -> None:
    """Raise the error that a reply tells of."""
    if "lacks" in reply:
        extra = EXTRAS.get(reply["lacks"], "all")
        raise MissingPackageError(
            f"{reading.name}: {kind} files are read with {reply['lacks']}, which is not installed. Install it: pip install "
            f"'l20fs[{extra}]'"
        )
    if "refused" in reply:
        raise reading.error(reply["refused"])
    if "unknown" in reply:
        what, name, names = reply["unknown"]
        reading.find(name, names, what)
    if "memory" in reply:
        raise reading.error(
            f"needs more than {memory.format_bytes(allowed)} of memory, which is what such a file may take here. Remove "
            "features that hardly vary, keep it sparse (h5ad, .mtx), or use a larger machine."
        )
    if "damaged" in reply:
        raise reading.error(f"not a whole {kind} file ({reply['damaged']}). Copy it again.")
