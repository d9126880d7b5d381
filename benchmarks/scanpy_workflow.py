"""Select the marker genes of scanpy's pbmc68k_reduced and draw them with scanpy's plots.

Run ``python benchmarks/scanpy_workflow.py FOLDER`` where scanpy is installed. It prints the table of docs/anndata.md and the
number of genes by cross-validation, and writes the pictures into the folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import scanpy as sc

from l20fs.anndata import get_df, select_genes
from l20fs.text import with_interval


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    plt.switch_backend("Agg")

    pbmc = sc.datasets.pbmc68k_reduced()
    pbmc.layers["log"] = pbmc.raw[:, pbmc.var_names].X  # .X is scaled
    select_genes(pbmc, groupby="bulk_labels", layer="log", n_genes=20)
    table = get_df(pbmc)
    print(table.round(2).to_string(index=False))
    print(sc.get.rank_genes_groups_df(pbmc, None, key="l20fs").head(8).to_string(index=False))

    options = {"key": "l20fs", "show": False}
    sc.pl.rank_genes_groups_dotplot(pbmc, min_logfoldchange=1, **options)
    plt.savefig(folder / "dotplot.png", bbox_inches="tight")
    sc.pl.rank_genes_groups_heatmap(pbmc, n_genes=2, show_gene_labels=True, **options)
    plt.savefig(folder / "heatmap.png", bbox_inches="tight")
    sc.pl.rank_genes_groups_matrixplot(pbmc, n_genes=2, **options)
    plt.savefig(folder / "matrixplot.png", bbox_inches="tight")
    sc.pl.dotplot(pbmc, table.groupby("class")["gene"].agg(list).to_dict(), "bulk_labels", dendrogram=True, show=False)
    plt.savefig(folder / "pbmc68k_dotplot.png", bbox_inches="tight", dpi=90)

    select_genes(pbmc, groupby="bulk_labels", layer="log", n_genes="1se", key_added="l20fs_1se")
    scores = pbmc.uns["l20fs_1se"]["cross_validation"]
    accuracy = with_interval(scores["corrected_score"], *scores["corrected_interval"], is_share=True)
    print(f"1se: {pbmc.var['l20fs_1se'].sum()} genes, accuracy {accuracy}")


if __name__ == "__main__":
    main()
