"""
All panels that are as good
===========================

A selection is one list of many. Here *all* panels of twelve genes whose loss is within 0.2 % of the lowest are listed, with
a proof that there are no others: some genes are in every panel, others can be exchanged.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from l20fs import L20Selector
from l20fs.data import load_srbct

tumours = load_srbct()
X, y = pd.DataFrame(tumours.data, columns=tumours.feature_names), tumours.target
selector = L20Selector(12, ridge=10).fit(X, y)
atlas = selector.near_optimal(eps="0.2%")
print(f"{atlas.n_panels} panels, complete: {atlas.is_complete}")
print(f"{len(atlas.core)} genes are in all of them, {len(atlas.optional)} in some")
print(f"other samples would change a difference of losses by about {atlas.noise:.1%}: smaller ones may be chance")

# %%
# Each column is a panel, the best on the left. A row that is dark throughout is a gene on which the data insist.
features = [*atlas.core, *atlas.optional]
member = np.array([[j in set(panel) for panel in atlas.panels] for j in features])
order = np.argsort(-member.sum(axis=1), kind="stable")
fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.imshow(member[order], aspect="auto", cmap="Blues", interpolation="nearest")
ax.set_yticks(range(len(features)), [tumours.feature_names[features[i]] for i in order], fontsize=8)
ax.set_xticks(range(0, atlas.n_panels, 5), range(1, atlas.n_panels + 1, 5))
ax.set(xlabel="panel, from the lowest loss to 0.2 % above it")
plt.show()

# %%
# One probe is dear, or fails in the laboratory: the atlas has the best panel without it, and the cheapest of all.
dear = tumours.feature_names[atlas.optional[0]]
print("without", dear, "->", sorted(set(atlas.without([dear]).names) - set(X.columns[list(atlas.panels[0])])), "comes in")
atlas.feature_frame().head(12)

# %%
# The report page has a section with the same.
folder = Path(tempfile.mkdtemp()) / "results"
command = ["select", "demo", "-k", "12", "--alternatives", "--config", "model.ridge=10", "-o", str(folder)]
subprocess.run([sys.executable, "-m", "l20fs", *command], check=True, capture_output=True)
report = folder / "report.html"
