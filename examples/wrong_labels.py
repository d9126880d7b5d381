"""
Wrong labels
============

Some samples carry the wrong label. Squares let them pull the selection towards themselves; ``loss="l21"`` counts the length
of each error instead of its square, and ``sample_weights_`` points at the samples that do not fit.
"""

import matplotlib.pyplot as plt
import numpy as np

from l20fs import L20Selector


def draw(seed):
    """Return 90 samples of three classes, which the first six of 80 features tell apart, with twelve wrong labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(90) % 3)
    X = rng.standard_normal((90, 80))
    X[:, :6] = 2.0 * np.repeat(np.eye(3)[y], 2, axis=1) + 0.6 * rng.standard_normal((90, 6))
    wrong = rng.choice(90, 12, replace=False)
    y[wrong] = (y[wrong] + 1) % 3
    return X, y, wrong


# %%
# How many of the six features does each loss find, in ten draws?
for loss in ("squared_error", "l21"):
    found = [
        (L20Selector(6, loss=loss, ridge=0.1).fit(*draw(seed)[:2]).get_support(indices=True) < 6).sum() for seed in range(10)
    ]
    print(f"{loss:>7}: {np.mean(found):.1f} of 6 features")

# %%
# The samples with the smallest weights are those to look at again.
X, y, wrong = draw(0)
weights = L20Selector(6, loss="l21", ridge=0.1).fit(X, y).sample_weights_
order = np.argsort(weights)
print(f"{np.isin(order[:12], wrong).sum()} of the 12 samples with the smallest weights have a wrong label")
fig, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
ax.bar(range(len(y)), weights[order], color=np.where(np.isin(order, wrong), "#c44e52", "#9aa5b1"), width=1.0)
ax.set(
    xlabel="samples, from the worst fit to the best (red: the label is wrong)",
    ylabel="weight",
    yscale="log",
    ylim=(0.3, 100),
)
plt.show()
