"""Gene selection for AnnData objects."""

from l20fs.anndata.fields import get_df
from l20fs.anndata.selection import select_genes

__all__ = ["get_df", "select_genes"]
