"""Data sets: a built-in set of tumours, and a generator of data with known informative features."""

from l20fs.data.builtin import load_srbct
from l20fs.data.synthetic import make_planted

__all__ = ["load_srbct", "make_planted"]
