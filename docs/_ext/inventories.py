"""Inventories of other projects for intersphinx: the real ones, or, without a network, those of the names that we use.

With a network intersphinx fetches the inventories of the projects and finds every name in them. Without one it falls back to
the files written here, which know the names below and nothing else: the site is built without warnings either way, and the
links lead to the same addresses.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple


class Project(NamedTuple):
    """Address of the documentation of a project, the pattern of its pages ($ is the name), and the names that we use."""

    address: str
    page: str
    classes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    others: tuple[str, ...] = ()  # lines of the inventory as they are: labels and terms


PROJECTS = {
    "numpy": Project("https://numpy.org/doc/stable/", "reference/generated/$.html#$", classes=("numpy.ndarray",)),
    "pandas": Project(
        "https://pandas.pydata.org/docs/", "reference/api/$.html#$", classes=("pandas.DataFrame", "pandas.Series")
    ),
    "sklearn": Project(
        "https://scikit-learn.org/stable/",
        "modules/generated/$.html#$",
        classes=(
            "sklearn.calibration.CalibratedClassifierCV",
            "sklearn.compose.ColumnTransformer",
            "sklearn.compose.TransformedTargetRegressor",
            "sklearn.feature_selection.RFE",
            "sklearn.feature_selection.RFECV",
            "sklearn.feature_selection.SelectFromModel",
            "sklearn.feature_selection.SelectKBest",
            "sklearn.feature_selection.SequentialFeatureSelector",
            "sklearn.linear_model.Lasso",
            "sklearn.linear_model.LogisticRegression",
            "sklearn.linear_model.MultiTaskLasso",
            "sklearn.model_selection.GridSearchCV",
            "sklearn.pipeline.Pipeline",
        ),
        functions=(
            "sklearn.datasets.load_diabetes",
            "sklearn.datasets.load_linnerud",
            "sklearn.model_selection.cross_val_score",
        ),
        others=(
            "metadata_routing std:label -1 metadata_routing.html#metadata-routing Metadata Routing",
            "df_output_transform std:label -1 auto_examples/miscellaneous/plot_set_output.html DataFrame output",
            "sphx_glr_auto_examples_miscellaneous_plot_set_output.py std:label -1 "
            "auto_examples/miscellaneous/plot_set_output.html Introducing the set_output API",
            "meta-estimator std:term -1 glossary.html#term-meta-estimator -",
        ),
    ),
    "anndata": Project("https://anndata.readthedocs.io/en/stable/", "generated/$.html#$", classes=("anndata.AnnData",)),
    "scanpy": Project(
        "https://scanpy.readthedocs.io/en/stable/",
        "generated/$.html#$",
        functions=(
            "scanpy.datasets.pbmc68k_reduced",
            "scanpy.get.rank_genes_groups_df",
            "scanpy.pl.dotplot",
            "scanpy.pl.umap",
            "scanpy.tl.rank_genes_groups",
        ),
    ),
}


def mapping(folder: Path) -> dict[str, tuple[str, tuple[str | None, str]]]:
    """Write the inventories into a folder and return what ``intersphinx_mapping`` is to be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, project in PROJECTS.items():
        (folder / f"{name}.inv").write_bytes(inventory(name, project))
    return {name: (project.address, (None, str(folder / f"{name}.inv"))) for name, project in PROJECTS.items()}


def inventory(name: str, project: Project) -> bytes:
    """Return an inventory in version 2 of Sphinx's format."""
    lines = [f"{each} py:class 1 {project.page.replace('$', each)} -" for each in project.classes]
    lines += [f"{each} py:function 1 {project.page.replace('$', each)} -" for each in project.functions]
    lines += project.others
    head = f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    return head.encode() + zlib.compress("".join(f"{line}\n" for line in lines).encode())
