"""
How many genes do I need?
=========================

Two answers: the best number in cross-validation, and the smallest number that is hardly worse. Selecting first and
validating afterwards, the common mistake, is shown at the end.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score

from l20fs import L20Selector, L20SelectorCV
from l20fs.data import load_srbct
from l20fs.plots import ScoreCurveDisplay

tumours = load_srbct()
X, y = tumours.data, tumours.target

# %%
# ``"best"`` has the lowest error, ``"auto"`` is the smallest number from ten on whose error is near it. Both come from the
# same folds: changing the rule fits nothing again.
search = L20SelectorCV("best", sizes=range(1, 61)).fit(X, y)
for rule in ("best", "auto"):
    search.set_params(n_features_to_select=rule)
    lower, upper = search.corrected_interval_
    print(f"{rule:>4}: {search.n_features_} genes, {search.corrected_score_:.3f} ({lower:.3f} to {upper:.3f})")
ScoreCurveDisplay.from_estimator(search)

# %%
# Why the selection must be inside the folds
# ------------------------------------------
# Sixty samples of pure noise, 5000 features, three classes. No feature means anything, so the truth is a third.
rng = np.random.default_rng(0)
noise, labels = rng.standard_normal((60, 5000)), np.repeat([0, 1, 2], 20)
chosen = L20Selector(30).fit_transform(noise, labels)
wrong = cross_val_score(LinearDiscriminantAnalysis(), chosen, labels).mean()
right = L20SelectorCV(30).fit(noise, labels).corrected_score_
fig, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
ax.barh(["select first, then validate", "select inside every fold"], [wrong, right], color=["#c44e52", "#4c72b0"])
ax.axvline(1 / 3, color="black", linestyle="--", linewidth=1)
ax.set(xlim=(0, 1), xlabel="accuracy on pure noise; the line is chance")
plt.show()
