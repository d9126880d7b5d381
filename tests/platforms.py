"""Marks of tests that need something that not every system has: they are skipped elsewhere, with the reason.

What a mark needs is asked for by its name in ``os``. A module that only such tests import loads ``resource`` and its like
inside of functions, so that all tests can be collected on every system.
"""

from __future__ import annotations

import os
import sys

import pytest

#: Whether this system has pipes with names, forks, limits of processes and signals that end them; Windows has not.
IS_POSIX = hasattr(os, "mkfifo") and hasattr(os, "fork")

needs_posix = pytest.mark.skipif(not IS_POSIX, reason="needs named pipes, forks, links and signals of POSIX")
needs_linux = pytest.mark.skipif(
    not (IS_POSIX and sys.platform == "linux"), reason="needs /dev/full, /proc, file names or limits of Linux"
)
needs_permissions = pytest.mark.skipif(
    not IS_POSIX or os.geteuid() == 0, reason="needs a user who may not write everywhere, as root may"
)
