"""Pipes for tests of what is read once."""

from __future__ import annotations

import os
from contextlib import contextmanager


@contextmanager
def open_pipe(content):
    """Yield the name that a shell gives for ``<( ... )``: of an unnamed pipe that holds something."""
    out, into = os.pipe()
    os.write(into, content)
    os.close(into)
    try:
        yield f"/dev/fd/{out}"
    finally:
        os.close(out)
