"""
Panels as laboratories order them
=================================

Three markers for every tumour, at most eighteen euros, never both probes of a pair, and the gene that is measured anyway is
in: every answer meets the constraints, and what cannot be met is told with the reason.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from l20fs import Constraints, L20Selector, L20SelectorCV
from l20fs.data import load_srbct
from l20fs.plots import SelectionHeatmapDisplay

tumours = load_srbct()
X, y = pd.DataFrame(tumours.data, columns=tumours.feature_names), tumours.target

#: Invented prices: every fifth probe costs five euros, the others one.
price = np.where(np.arange(X.shape[1]) % 5 == 0, 5.0, 1.0)

free = L20Selector(14).fit(X, y)
limits = {"min_per_class": 3, "budget": 18, "costs": price, "exclusive": [["gene1389", "gene0246"]]}
designed = L20Selector(14, constraints=Constraints(include=["gene0742"], **limits)).fit(X, y)
for name, panel in (("free", free), ("designed", designed)):
    classes = np.array([X[gene].groupby(y).mean().idxmax() for gene in panel.get_feature_names_out()])
    counts = {str(label): int((classes == label).sum()) for label in np.unique(y)}
    loss, cost = panel.path_.losses[-1], price[panel.support_].sum()
    print(f"{name:>8}: {cost:.0f} euros, genes of each tumour {counts}, loss {loss:.2f}")

# %%
# What cannot be met is refused with the rule that forbids it.
try:
    L20Selector(5, constraints=Constraints(min_per_class=2)).fit(X, y)
except ValueError as error:
    print(error)

# %%
# The designed panel, by tumour:
SelectionHeatmapDisplay.from_estimator(designed, X, y)

# %%
# What a budget costs in accuracy is a question for cross-validation, with the constraints met in every fold.
budgets = [8, 12, 18, 30]
scores = [
    L20SelectorCV(8, selector=L20Selector(constraints=Constraints(budget=budget, costs=price))).fit(X, y).corrected_score_
    for budget in budgets
]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(budgets, scores, marker="o")
ax.set(xlabel="budget of eight genes, euros", ylabel="accuracy in cross-validation", ylim=(0.5, 1.02))
plt.show()
