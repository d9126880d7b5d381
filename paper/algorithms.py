"""The paper's algorithms, step by step: ``python -m paper.algorithms`` prints times and shows two figures.

HIHT and AHIHT of Z. Sun and Y. Yu [1]_ follow the gradient while lambda falls; a feature enters when its gradient is long.
``forward`` and ``swap`` compare exact minima instead. All minimise the same objective with the exact l2,0 norm.

.. [1] Sun and Yu, *Robust Multi-class Feature Selection via l2,0-Norm Regularization Minimization*.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from l20fs import AHIHT, L20Selector
from l20fs.data import load_srbct
from l20fs.plots import PathDisplay
from paper.settings import paper_settings

tumours = load_srbct()
X, y = tumours.data, tumours.target

# %%
# The paper's method with its authors' constants, sixty genes:
paper = L20Selector(60, **paper_settings("ahiht")).fit(X, y)
print(f"{paper.support_.sum()} genes, {len(paper.path_.alphas)} values of lambda")

# %%
# Norms of the rows against lambda. With the l2,0 norm a row enters with its full weight, not at zero.
PathDisplay.from_estimator(L20Selector(12, solver="ahiht").fit(X, y))

# %%
# The same problem with a weak ridge term, four solvers: the loss with k rows. HIHT and AHIHT have no solution for every k;
# of them it is the loss of least squares on the first k rows of their ranking, which is lower than their own.
fig, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
sizes = np.arange(1, 31)
for solver in ("hiht", "ahiht", "forward", "swap"):
    start = time.perf_counter()
    path = L20Selector(30, solver=solver, ridge=0.1).fit(X, y).path_
    print(f"{solver:>8}: {time.perf_counter() - start:.3f} s")
    losses = path.losses[1:] if solver in ("forward", "swap") else [path.refit(int(k)).loss for k in sizes]
    ax.plot(sizes, losses, label=solver)
ax.set(xlabel="number of rows", ylabel="loss", yscale="log")
ax.legend()
plt.show()

# %%
# Options belong to the solver, and can be searched: ``solver__rate`` in a grid search.
L20Selector(20, solver=AHIHT(rate=0.5)).fit(X, y)
