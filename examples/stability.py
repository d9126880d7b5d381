"""
Would other samples give the same genes?
========================================

The samples are split into halves again and again, and the selection is repeated on each. A gene that most halves select is
one to rely on; a gene that few select has others which do as well.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from l20fs import L20Selector, StabilitySelector
from l20fs.data import load_srbct
from l20fs.plots import StabilityDisplay

tumours = load_srbct()
X, y = pd.DataFrame(tumours.data, columns=tumours.feature_names), tumours.target
stable = StabilitySelector(L20Selector(20), n_resamples=50, random_state=0).fit(X, y)

lower, upper = stable.stability_interval_
print(f"stability index {stable.stability_:.2f} ({lower:.2f} to {upper:.2f}); 1 is always the same genes, 0 is chance")
print(f"{stable.support_.sum()} genes are in at least {stable.threshold:.0%} of the halves;", end=" ")
print(f"at most {stable.error_bound_:.1f} of them are expected there by chance")
StabilityDisplay.from_estimator(stable)

# %%
# Another threshold, or another number, is read from the same halves.
stable.set_params(threshold=0.8)
stable.to_frame().head()

# %%
# The index of every other number of genes, from the same halves. Here it grows: the good genes come in sooner or later, in
# whatever order.
sizes = np.arange(1, 21)
index = [stable.stability_at(int(k)) for k in sizes]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.fill_between(sizes, [each.lower for each in index], [each.upper for each in index], alpha=0.25, label="95 % interval")
ax.plot(sizes, [each.index for each in index], marker="o")
ax.set(xlabel="number of genes", ylabel="stability index", ylim=(0, 1))
ax.set_xticks(sizes[4::5])
ax.legend()
plt.show()
