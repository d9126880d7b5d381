"""
Marker genes with scanpy
========================

A few genes that tell the cell types of scanpy's own ``pbmc68k_reduced`` apart, written into the AnnData object in the layout
of :func:`scanpy.tl.rank_genes_groups`, so that scanpy's tables and plots show them. Needs scanpy: ``pip install scanpy``.
"""

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import scanpy as sc

from l20fs import Constraints, L20Selector
from l20fs.anndata import get_df, select_genes

warnings.filterwarnings("ignore", category=FutureWarning)
warnings.filterwarnings("ignore", category=PendingDeprecationWarning)
plt.rcParams["savefig.bbox"] = "tight"  # scanpy's plots write beyond the figure
pbmc = sc.datasets.pbmc68k_reduced()
pbmc.layers["log"] = pbmc.raw[:, pbmc.var_names].X  # .X itself is scaled; fold changes need the logarithms
print(pbmc)

# %%
# Two markers for every type, twenty genes in all; they are selected jointly.
select_genes(pbmc, "bulk_labels", layer="log", n_genes=20, selector=L20Selector(constraints=Constraints(min_per_class=2)))
get_df(pbmc).round(2).head(8)

# %%
# Each gene once, under the type in which its mean is highest:
markers = get_df(pbmc).groupby("class")["gene"].agg(list).to_dict()
sc.pl.dotplot(pbmc, markers, "bulk_labels", layer="log", show=True)

# %%
# The first genes on the map of the cells:
sc.pl.umap(pbmc, color=["bulk_labels", *get_df(pbmc)["gene"].head(3)], ncols=2, layer="log", show=True)

# %%
# An h5ad file is read by the command line as well:
folder = Path(tempfile.mkdtemp())
small = sc.AnnData(pbmc.layers["log"], obs=pbmc.obs[["bulk_labels"]], var=pbmc.var[[]])
small.write_h5ad(folder / "pbmc.h5ad")
command = [
    "select",
    str(folder / "pbmc.h5ad"),
    "--target",
    "bulk_labels",
    "-k",
    "20",
    "--config",
    "constraints.min_per_class=2",
]
subprocess.run([sys.executable, "-m", "l20fs", *command, "-o", str(folder / "out")], check=True, capture_output=True)
report = folder / "out" / "report.html"
