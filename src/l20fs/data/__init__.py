"""Data sets: a built-in set, the catalogue of the paper's sets, a generator, and readers for files."""

from l20fs.data.builtin import load_srbct
from l20fs.data.catalogue import CatalogueEntry, paper_sets
from l20fs.data.store import LabelledSet, MissingDataError, find_data_dir, import_dataset, load_dataset
from l20fs.data.synthetic import make_planted

__all__ = [
    "CatalogueEntry",
    "LabelledSet",
    "MissingDataError",
    "find_data_dir",
    "import_dataset",
    "load_dataset",
    "load_srbct",
    "make_planted",
    "paper_sets",
]
