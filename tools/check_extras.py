"""Install a wheel with each extra alone, in a clean environment, and run what the extra is for.

python tools/check_extras.py dist/l20fs-0.2.0-py3-none-any.whl [EXTRA...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: What works with the package alone: no statement here may need an optional package.
CORE = """
from l20fs import L20Selector, L20SelectorCV, Panel
from l20fs.data import load_srbct
tumours = load_srbct()
selector = L20Selector(3).fit(tumours.data, tumours.target)
assert selector.transform(tumours.data).shape == (63, 3)
search = L20SelectorCV(3, cv=3).fit(tumours.data, tumours.target)
panel = search.to_panel(tumours.data, tumours.target)
panel.save("panel.json")
assert Panel.load("panel.json").predict(tumours.data[:, search.order_for(3)]).shape == (63,)
"""

#: What each extra adds.
EXTRAS = {
    "": "",
    "pandas": "print(len(selector.selection_frame()), 'rows in the table')",
    "plots": """
import matplotlib
matplotlib.use("Agg")
from l20fs.plots import PathDisplay
PathDisplay.from_estimator(selector).figure_.savefig("path.png")
""",
    "cli": """
import subprocess, sys
few = ["--methods=FisherScore", "--sizes=5", "--config=search.splits=2"]
for given, page in ((["select", "demo", "-k", "5"], "report"), (["compare", "demo", *few], "comparison")):
    subprocess.run([sys.executable, "-m", "l20fs", *given, "-o", given[0]], check=True, capture_output=True)
    assert "<html" in open(f"{given[0]}/{page}.html", encoding="utf-8").read()
""",
    "h5ad": """
import anndata
from l20fs.anndata import select_genes
adata = anndata.AnnData(tumours.data)
adata.obs["type"] = tumours.target
adata.obs_names, adata.var_names = adata.obs_names.astype(str), tumours.feature_names
select_genes(adata, "type", n_genes=8)
assert adata.var["l20fs"].sum() == 8
adata.write_h5ad("cells.h5ad")
select_genes(anndata.read_h5ad("cells.h5ad", backed="r"), "type", n_genes=8)
""",
    "zarr": """
import zarr
zarr.save_array("x.zarr", tumours.data)
assert L20Selector(3).fit(zarr.load("x.zarr"), tumours.target).support_.sum() == 3
""",
    "io": "import pyarrow, python_calamine",
    "dask": """
import dask.array as da
import numpy
from l20fs import open_large
numpy.save("x.npy", tumours.data)
assert (L20Selector(3).fit(open_large("x.npy"), tumours.target).support_ == selector.support_).all()
lazy = L20Selector(3).fit(da.from_array(tumours.data, chunks=(20, -1)), tumours.target)
assert (lazy.support_ == selector.support_).all()
""",
    "onnx": "assert len(panel.to_onnx().SerializeToString()) > 100",
    "all": "import anndata, click, dask, h5py, matplotlib, onnx, pandas, zarr",
}


def main(wheel: str, *wanted: str) -> None:
    """Check the extras, all of them or those that are named."""
    for extra in wanted or EXTRAS:
        with tempfile.TemporaryDirectory() as folder:
            python = Path(folder, "venv", "Scripts" if os.name == "nt" else "bin", "python")
            uv = [sys.executable, "-m", "uv"]
            subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(Path(folder, "venv"))], check=True)
            name = f"l20fs[{extra}] @ {Path(wheel).resolve().as_uri()}" if extra else str(Path(wheel).resolve())
            subprocess.run([*uv, "pip", "install", "--quiet", "--python", str(python), name], check=True)
            program = CORE + EXTRAS[extra]
            found = subprocess.run([str(python), "-W", "error::ImportWarning", "-c", program], cwd=folder, check=False)
            print(f"{extra or 'no extra':10} {'ok' if found.returncode == 0 else 'FAILED'}", flush=True)
            if found.returncode:
                sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
