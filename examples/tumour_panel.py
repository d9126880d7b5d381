"""
A panel for four tumours
========================

How many genes are needed to tell the tumours apart, which are they, and how sure are we? Four childhood tumours that look
alike under the microscope [1]_ are told apart by a handful of the 2308 genes that were measured.

``python examples/tumour_panel.py FILE.npz`` does the same for a file with X, y and, if there are any, class_names and
feature_names.

.. [1] Javed Khan et al., Nature Medicine 7 (2001).
"""

# sphinx_gallery_thumbnail_number = 2
from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, cross_validate

from l20fs import L20SelectorCV
from l20fs.data import load_srbct
from l20fs.plots import ScoreCurveDisplay, SelectionHeatmapDisplay

#: Genes by which Golub et al. (Science 286, 1999) tell the two acute leukaemias apart, by accession number.
KNOWN_MARKERS = {
    "X95735": "zyxin",
    "M23197": "CD33",
    "M27891": "cystatin C",
    "M16038": "LYN",
    "U46499": "microsomal glutathione S-transferase",
    "M84526": "complement factor D",
    "M63138": "cathepsin D",
    "M55150": "fumarylacetoacetase",
    "U50136": "leukotriene C4 synthase",
    "Y12670": "leptin receptor",
    "M80254": "cyclophilin 3",
    "M92287": "cyclin D3",
    "M31523": "E2A",
    "U05259": "MB-1 (CD79a)",
    "X74262": "RbAp48",
    "X59417": "proteasome iota",
    "M31211": "myosin light chain",
    "L13278": "zeta-crystallin",
}


def load(file: str | None) -> tuple[pd.DataFrame, np.ndarray]:
    """Return genes in named columns and the label of each sample."""
    if file is None:
        tumours = load_srbct()
        return pd.DataFrame(tumours.data, columns=tumours.feature_names), tumours.target
    with np.load(file, allow_pickle=False) as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
        names = stored["feature_names"] if "feature_names" in stored else [f"gene{j + 1:04d}" for j in range(X.shape[1])]
        labels = stored["class_names"][y] if "class_names" in stored else y
    return pd.DataFrame(X, columns=names), labels


def known(gene: str) -> str:
    """Return what is known about a gene, by the accession number in its name."""
    return next((meaning for accession, meaning in KNOWN_MARKERS.items() if accession in gene), "")


X, y = load(sys.argv[1] if len(sys.argv) > 1 else None)
print(f"{X.shape[0]} samples, {X.shape[1]} genes, {len(set(y))} classes")

# %%
# How many genes?
# ---------------
# The genes are selected anew in every fold, and the smallest number is taken, from ten on, whose error is within 5 % of the
# lowest. The score is that of the samples that each fold left out.
selector = L20SelectorCV("auto").fit(X, y)
lower, upper = selector.corrected_interval_
print(f"{selector.n_features_} genes are enough: {100 * selector.corrected_score_:.0f} %", end=" ")
print(f"({100 * lower:.0f} to {100 * upper:.0f} %) are right.")
ScoreCurveDisplay.from_estimator(selector)

# %%
# The slow way to the same answer is nested cross-validation: everything is chosen anew in each of five outer folds.
folds = StratifiedKFold(5, shuffle=True, random_state=0)
nested = cross_validate(L20SelectorCV("auto"), X, y, cv=folds, return_estimator=True)
sizes = [fitted.n_features_ for fitted in nested["estimator"]]
n_wrong = sum(
    round((1.0 - score) * len(test)) for score, (_, test) in zip(nested["test_score"], folds.split(X, y), strict=True)
)
print(f"Genes and their number chosen anew in each fold ({min(sizes)} to {max(sizes)} genes):", end=" ")
print(f"{n_wrong} of {len(y)} samples are wrong.")

# %%
# Which genes?
# ------------
table = selector.selection_frame()
coef = table[[f"coef_{label}" for label in selector.classes_]].to_numpy()
genes = pd.DataFrame(
    {
        "rank": table["rank"],
        "gene": table["feature"],
        "high in": selector.classes_[coef.argmax(axis=1)],
        "low in": selector.classes_[coef.argmin(axis=1)],
    }
)
markers = [known(gene) for gene in table["feature"]]
if any(markers):
    genes["known as"] = markers
print(genes.to_string(index=False))
SelectionHeatmapDisplay.from_estimator(selector, X, y)
plt.show()

# %%
# The page for a colleague
# ------------------------
# On the command line the same is one line, and ends with a page that needs no network. Its folds are drawn at random, so
# that the number of genes differs a little: where the curve is flat, several numbers are as good.
if len(sys.argv) == 1:
    folder = Path(tempfile.mkdtemp()) / "results"
    command = ["select", "demo", "--stability", "50", "-o", str(folder)]
    subprocess.run([sys.executable, "-m", "l20fs", *command], check=True, capture_output=True)
    report = folder / "report.html"
