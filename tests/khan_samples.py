"""Khan's tumours as tables on disk, and the panel that ``l20fs select`` makes of the 63 training samples."""

from __future__ import annotations

import pandas as pd

from l20fs.data import load_srbct


def tumours(subset):
    """Return a DataFrame with names of samples, the type in the first column, and all genes."""
    found = load_srbct(subset=subset)
    frame = pd.DataFrame(found.data, columns=found.feature_names, index=[f"{subset}{i}" for i in range(len(found.target))])
    frame.insert(0, "type", found.target)
    return frame


def n_errors(predicted, truth):
    return sum(a != b for a, b in zip(predicted, truth, strict=True))
