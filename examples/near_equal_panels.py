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
from l20fs.inspection import near_optimal_panels

tumours = load_srbct()
X, y = pd.DataFrame(tumours.data, columns=tumours.feature_names), tumours.target
selector = L20Selector(12, ridge=10).fit(X, y)
found = near_optimal_panels(selector, X, y, tolerance="0.2%")
print(f"{found.n_panels} panels, complete: {found.is_complete}")
print(f"{len(found.in_all)} genes are in all of them, {len(found.in_some)} in some")
print(f"other samples would change a difference of losses by about {found.noise:.1%}: smaller ones may be chance")

# %%
# Each column is a panel, the best on the left. A row that is dark throughout is a gene in every panel.
features = [*found.in_all, *found.in_some]
member = np.array([[j in set(panel) for panel in found.panels] for j in features])
order = np.argsort(-member.sum(axis=1), kind="stable")
fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.imshow(member[order], aspect="auto", cmap="Blues", interpolation="nearest")
ax.set_yticks(range(len(features)), [tumours.feature_names[features[i]] for i in order], fontsize=8)
ax.set_xticks(range(0, found.n_panels, 5), range(1, found.n_panels + 1, 5))
ax.set(xlabel="panel, from the lowest loss to 0.2 % above it")
plt.show()

# %%
# One probe fails in the laboratory: the best panel without it.
probe = tumours.feature_names[found.in_some[0]]
print("without", probe, "->", sorted(set(found.without([probe]).names) - set(X.columns[list(found.panels[0])])), "comes in")
found.to_frame().head(12)

# %%
# The report page has a section with the same.
folder = Path(tempfile.mkdtemp()) / "results"
command = ["select", "demo", "-k", "12", "--alternatives", "--config", "model.ridge=10", "-o", str(folder)]
subprocess.run([sys.executable, "-m", "l20fs", *command], check=True, capture_output=True)
report = folder / "report.html"
