"""
Numbers instead of classes, and many of them at once
====================================================

A row of W is shared by all targets: with several numbers to predict, the features are those that serve all of them. Forty
drawn targets from four hundred features, and one from scikit-learn's diabetes table.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, make_regression
from sklearn.model_selection import train_test_split

from l20fs import L20Regressor, L20Selector, L20SelectorCV
from l20fs.plots import ScoreCurveDisplay

X, Y, coef = make_regression(
    n_samples=200, n_features=400, n_informative=8, n_targets=40, noise=20.0, coef=True, random_state=0
)
X_train, X_test, Y_train, Y_test = train_test_split(X, Y, random_state=0)
model = L20Regressor(8).fit(X_train, Y_train)
found = model.get_support(indices=True)
n_found = np.isin(found, np.flatnonzero(coef.any(axis=1))).sum()
print(f"{n_found} of 8 planted features; R² of 40 outputs {model.score(X_test, Y_test):.3f}")

# %%
# Any other number of features, without a second fit:
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
longer = L20Regressor(8, max_features_to_select=20).fit(X_train, Y_train)
scores = [longer.set_params(n_features_to_select=k).score(X_test, Y_test) for k in range(1, 21)]
ax.plot(range(1, 21), scores, marker="o")
ax.set_xticks(range(2, 21, 2))
ax.axvline(8, color="grey", linestyle="--", linewidth=1)
ax.set(xlabel="number of features; the line is the truth", ylabel="R² of 40 outputs, new samples")
plt.show()

# %%
# One number, ten features: a few of them predict the progression of diabetes as well as all ten do.
diabetes = load_diabetes(as_frame=True)
search = L20SelectorCV("auto", selector=L20Selector(task="regression")).fit(diabetes.data, diabetes.target)
print(list(search.get_feature_names_out()), f"R² {search.corrected_score_:.2f}")
ScoreCurveDisplay.from_estimator(search)

# %%
# The page for numbers has predicted against measured values.
folder = Path(tempfile.mkdtemp())
diabetes.frame.to_csv(folder / "diabetes.csv", index=False)
command = ["select", str(folder / "diabetes.csv"), "--target", "target", "--task", "regression"]
subprocess.run([sys.executable, "-m", "l20fs", *command, "-o", str(folder / "out")], check=True, capture_output=True)
report = folder / "out" / "report.html"
