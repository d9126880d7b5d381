"""Choice of ``scale="auto"``: whether the targets contradict moderated deviations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from l20fs.design.standardised import Design
from l20fs.design.tolerances import equality_tolerance
from l20fs.inputs.devices import as_numpy

#: ``scale="auto"`` takes no moderated deviations if the features that vary more explain clearly less of the targets: if the
#: correlation of log deviation and explained share is below minus this, and below minus two standard errors.
#: benchmarks/results/defaults.md has the measurements.
CONTRARY_CORRELATION = 0.1


def tell_less(design: Design, explained: Any) -> bool:
    """Return whether features that vary more explain clearly less.

    ``explained`` are the squared norms of the products of each feature with the targets, where X is; six numbers come back.
    """
    xp, scale, energy = design.place.xp, design.scale_there, design.energy
    seen = energy > 0.0  # neither constant nor so small beside the others that its square underflows
    nothing, ones = xp.zeros_like(energy), xp.ones_like(energy)
    energy, n_seen = xp.where(seen, energy, ones), xp.sum(xp.where(seen, ones, nothing))
    share = xp.where(seen, explained / energy, nothing)
    top = xp.max(share)
    share = share / xp.where(top > 0.0, top, xp.ones_like(top))  # the units of the targets do not matter, nor their squares
    found, spreads, tie = [n_seen], [], equality_tolerance(design.dtype)
    for vector in (share, xp.where(seen, xp.log(xp.sqrt(energy) * scale), nothing)):
        highest = xp.max(xp.where(seen, vector, nothing - np.inf))
        found.append(xp.sum(xp.where(seen & (vector < highest - tie), ones, nothing)))
        spreads.append(xp.where(seen, vector - xp.sum(vector) / n_seen, nothing))
    share, log_deviation = spreads
    found += [xp.sum(share * log_deviation), xp.sum(share * share), xp.sum(log_deviation * log_deviation)]
    n_seen, n_shares, n_deviations, product, *squares = as_numpy(xp.stack(found)).tolist()
    if not n_shares or not n_deviations:  # they are all the same
        return False
    return bool(product / math.sqrt(squares[0] * squares[1]) < -max(CONTRARY_CORRELATION, 2.0 / math.sqrt(n_seen)))
