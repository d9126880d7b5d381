"""
Coming from SelectKBest, RFE or the lasso
=========================================

The same call, ``fit`` and ``transform``, with another idea of what a good feature is:

* :class:`~sklearn.feature_selection.SelectKBest` judges every feature alone, and takes ten copies of the best one if there
  are.
* :class:`~sklearn.feature_selection.RFE` fits a model again and again and drops what weighs least.
* The lasso (:class:`~sklearn.linear_model.MultiTaskLasso`) shrinks what it keeps, and the number of features is steered by a
  penalty.
* :class:`~l20fs.L20Selector` asks of every feature what it brings *beside those that are there*, and counts features, not
  norms.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest
from sklearn.linear_model import LogisticRegression, MultiTaskLasso
from sklearn.model_selection import StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelBinarizer, StandardScaler

from l20fs import L20Selector
from l20fs.data import load_srbct

tumours = load_srbct()
X, y = tumours.data, tumours.target


class OneHotLasso(MultiTaskLasso):
    """The lasso for several targets, on one-hot labels."""

    def fit(self, X, y):
        """Fit to labels."""
        return super().fit(X, LabelBinarizer().fit_transform(y).astype(float))


def selectors(k):
    """Return the four selectors of k features."""
    return {
        "SelectKBest": SelectKBest(k=k),
        "RFE": RFE(LogisticRegression(max_iter=1000), n_features_to_select=k, step=0.2),
        "lasso": SelectFromModel(OneHotLasso(alpha=0.03, max_iter=5000, tol=1e-2), max_features=k, threshold=-np.inf),
        "L20Selector": L20Selector(k),
    }


# %%
# The same model on the features of each, in the same five splits with the selection inside:
splits = StratifiedShuffleSplit(5, test_size=0.3, random_state=0)
rows = []
for k in (3, 6, 10):
    for name, selector in selectors(k).items():
        start = time.perf_counter()
        model = make_pipeline(StandardScaler(), selector, LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"))
        score = cross_val_score(model, X, y, cv=splits).mean()
        rows.append({"genes": k, "selector": name, "accuracy": score, "seconds": time.perf_counter() - start})
table = pd.DataFrame(rows).pivot(index="selector", columns="genes", values=["accuracy", "seconds"]).round(2)
table

# %%
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
table["accuracy"].loc[list(selectors(1))].T.plot.bar(ax=ax, rot=0, ylim=(0.4, 1.02), width=0.8)
ax.set(xlabel="number of genes", ylabel="accuracy on samples left out")
ax.legend(title=None, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
plt.show()

# %%
# One set and five splits decide nothing about methods: ``l20fs compare your_table.csv --target type`` does this on
# your own samples, with intervals and tests. What changes in your code:
#
# ==========================================  ==========================================================================
# scikit-learn                                l20fs
# ==========================================  ==========================================================================
# ``SelectKBest(k=20)``                       ``L20Selector(20)``
# ``RFE(model, n_features_to_select=20)``     ``L20Selector(20)``; any other k afterwards by ``at(k)``
# ``RFECV(model)``                            ``L20SelectorCV("best")``, one path in each fold
# ``SelectFromModel(Lasso(alpha=a))``         ``L20Selector(k)``, or ``path_.size_at(a)`` features
# ``SequentialFeatureSelector(model)``        ``L20Selector(20, solver="forward")`` or ``"swap"``
# ``GridSearchCV`` over k                     ``L20SelectorCV(sizes=[5, 10, 20])``
# ==========================================  ==========================================================================
