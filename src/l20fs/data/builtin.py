"""Built-in data set: small round blue cell tumours (Khan et al. 2001)."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

import numpy as np
from sklearn.utils import Bunch

DESCRIPTION = """\
Small round blue cell tumours of childhood, cDNA microarrays (J. Khan et al., Nature Medicine 7, 2001): 2308 genes, 63
training and 20 test samples of four tumour types, Ewing's sarcoma (EWS), rhabdomyosarcoma (RMS), neuroblastoma (NB) and
Burkitt's lymphoma (BL).

Source: the files Khan_*.csv of the Python package ISLP 0.6.0 (BSD licence), natural logarithms of the expression ratios.
The source has no gene names; gene0001 is its first column.

scale="log" gives these logarithms. scale="paper" gives the values of Sun and Yu: the ratios themselves, each sample
standardised to mean 0 and deviation 1 over the genes (divisor n - 1). The paper's file holds the 63 training samples in
another order; before standardising, all but one of its 145 404 values agree.
"""


def load_srbct(
    *,
    subset: Literal["train", "test", "all"] = "train",
    scale: Literal["log", "paper"] = "log",
    as_frame: bool = False,
) -> Bunch:
    """Load the SRBCT data set: 2308 genes of four types of small round blue cell tumours.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The 63 samples of the original training set, the 20 samples of its test set, or both in this order.
    scale : {"log", "paper"}, default="log"
        Natural logarithms, or the scale of the paper (see ``DESCR``).
    as_frame : bool, default=False
        Whether ``data`` is a DataFrame and ``target`` a Series of pandas, and ``frame`` has both.

    Returns
    -------
    Bunch
        ``data`` (n_samples, 2308), ``target`` (labels such as ``"EWS"``), ``feature_names``, ``target_names``, ``DESCR``,
        ``frame`` (None without ``as_frame``).

    References
    ----------
    .. [1] J. Khan et al., "Classification and diagnostic prediction of cancers using gene expression profiling and
       artificial neural networks", Nature Medicine 7 (2001).

    Examples
    --------
    >>> tumours = load_srbct()
    >>> tumours.data.shape, sorted(set(tumours.target.tolist()))
    ((63, 2308), ['BL', 'EWS', 'NB', 'RMS'])
    """
    parts = {"train": ("train",), "test": ("test",), "all": ("train", "test")}
    if subset not in parts:
        raise ValueError(f"subset={subset!r} is unknown. Use 'train', 'test' or 'all'.")
    if scale not in ("log", "paper"):
        raise ValueError(f"scale={scale!r} is unknown. Use 'log' or 'paper'.")
    with files("l20fs.data").joinpath("srbct.npz").open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        X = np.concatenate([stored[f"X_{part}"] for part in parts[subset]]).astype(np.float64)
        y = np.concatenate([stored[f"y_{part}"] for part in parts[subset]])
        class_names = stored["class_names"]
    if scale == "paper":
        X = np.exp(X)
        X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, ddof=1, keepdims=True)
    feature_names, target, frame = [f"gene{j + 1:04d}" for j in range(X.shape[1])], class_names[y], None
    if as_frame:
        import pandas as pd

        X, target = pd.DataFrame(X, columns=feature_names), pd.Series(target, name="target")
        frame = X.assign(target=target)
    return Bunch(
        data=X,
        target=target,
        feature_names=feature_names,
        target_names=class_names.tolist(),
        frame=frame,
        DESCR=DESCRIPTION,
    )
