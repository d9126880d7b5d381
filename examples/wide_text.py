"""
Words that tell topics apart
============================

Texts make wide sparse tables: a column for every word. The texts here are drawn, since no corpus comes with the package: a
Zipf-like vocabulary of 20 000 words, four topics, and eight words in each that are more frequent there. X stays sparse
throughout.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectKBest, chi2

from l20fs import L20Classifier, L20Selector

TOPICS, PLANTED, WORDS, TEXTS = ("sport", "law", "music", "health"), 8, 20_000, 1200
rng = np.random.default_rng(0)
frequency = 1.0 / np.arange(3, WORDS + 3)
own = rng.choice(np.arange(50, 2000), (len(TOPICS), PLANTED), replace=False)
y = rng.integers(0, len(TOPICS), TEXTS)
rows = []
for topic in y:
    weights = frequency.copy()
    weights[own[topic]] *= 12.0
    drawn = rng.choice(WORDS, rng.integers(60, 200), p=weights / weights.sum())
    rows.append(sp.csr_array(np.bincount(drawn, minlength=WORDS)[None]))
X = TfidfTransformer().fit_transform(sp.vstack(rows))
print(f"{X.shape[0]} texts, {X.shape[1]} words, {X.nnz / np.prod(X.shape):.2%} of the table is not zero")

# %%
# Thirty-two words of twenty thousand:
start = time.perf_counter()
selector = L20Selector(32).fit(X, np.array(TOPICS)[y])
print(f"{time.perf_counter() - start:.2f} s, {np.isin(selector.get_support(indices=True), own).sum()} of 32 planted words")

# %%
# Against a filter, on texts that were not seen:
train, test = slice(0, 800), slice(800, None)
sizes = [2, 4, 8, 16, 32, 64]
model = L20Classifier(32, max_features_to_select=64).fit(X[train], y[train])
ours = [model.set_params(n_features_to_select=k).score(X[test], y[test]) for k in sizes]
theirs = []
for k in sizes:
    words = SelectKBest(chi2, k=k).fit(X[train], y[train]).get_support(indices=True)
    theirs.append(L20Classifier(k).fit(X[train][:, words], y[train]).score(X[test][:, words], y[test]))
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(sizes, ours, marker="o", label="L20Classifier")
ax.plot(sizes, theirs, marker="s", label="SelectKBest(chi2), the same classifier")
ax.set(xlabel="number of words", ylabel="texts right", xscale="log")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend()
plt.show()
