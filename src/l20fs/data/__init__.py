"""Data: the built-in set, a generator with known answers, and readers for files."""

from l20fs.data.builtin import load_srbct
from l20fs.data.synthetic import make_planted

__all__ = ["load_srbct", "make_planted"]
