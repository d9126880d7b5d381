"""
Files and Dask arrays, larger than memory
=========================================

X may be a Dask array, and ``open_large`` makes one of a file: it is read in blocks, and the selection is the same. The file
here is small, so that the example runs in seconds; nothing in the code depends on that. An array of torch or CuPy on a GPU
is given in the same way and stays there.
"""

import tempfile
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from l20fs import L20Selector, open_large
from l20fs.data import make_planted

X, y, truth = make_planted(n_samples=4000, n_features=1500, n_informative=12, n_classes=4, random_state=0)
file = Path(tempfile.mkdtemp()) / "X.npy"
np.save(file, X)

# %%
# In memory, from a file, and as a Dask array in blocks of samples:
fits = {
    "NumPy": L20Selector(12).fit(X, y),
    "file": L20Selector(12).fit(open_large(file), y),
    "Dask": L20Selector(12).fit(da.from_array(X, chunks=(500, -1)), y),
}
for name, fitted in fits.items():
    chosen = fitted.get_support(indices=True)
    print(f"{name:>5}: {np.isin(chosen, truth).sum()} of 12 planted features, the same as in memory:", end=" ")
    print(np.array_equal(chosen, fits["NumPy"].get_support(indices=True)))

# %%
# The losses along the path agree to rounding error.
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for (name, fitted), marker in zip(fits.items(), "osx", strict=True):
    ax.plot(fitted.path_.n_nonzero, fitted.path_.losses, marker=marker, label=name, fillstyle="none")
ax.set(xlabel="number of features", ylabel="loss")
ax.legend()
plt.show()
