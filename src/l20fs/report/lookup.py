"""The search of the page in all features: names and numbers, packed into a limited part of the page."""

from __future__ import annotations

import base64
import json
import zlib
from itertools import pairwise
from typing import Any

from l20fs.report.measures import Lookup

#: Signs of the page that the search may take; of more features than fit the best can be found.
ROOM = 100_000
#: Place of a feature to which no selected one is alike, and the weakest correlation of those that are.
NOBODY, ALIKE = 255, 0.5


def packed(data: bytes) -> str:
    """Return bytes as a text that the script unpacks."""
    return base64.b64encode(zlib.compress(data, 9)).decode()


def for_search(lookup: Lookup, room: int = ROOM) -> dict[str, Any] | None:
    """Return what the script searches in, as many of the best features as fit into the room; None for none.

    ``names`` has one line per name, ``steps`` by how much the rank of each is above that of the one before, if not by 1 for
    all. ``near`` has one byte per feature for the place of the selected feature that is most like it, and then one per
    feature for the correlation in hundredths, 100 more than it is; weak ones are left out.
    """
    n = len(lookup.names)
    lines = [" ".join(name.split()) for name in lookup.names]
    steps = [rank - before for before, rank in pairwise([0, *lookup.ranks])]
    pairs = list(zip(lookup.nearest, lookup.correlations, strict=True))
    places = [place if place >= 0 and abs(value) >= ALIKE else NOBODY for place, value in pairs]
    values = [100 + round(100 * value) if place != NOBODY else 0 for place, (_, value) in zip(places, pairs, strict=True)]
    while n:
        names = packed("\n".join(lines[:n]).encode())
        near = packed(bytes(places[:n] + values[:n]))
        size = len(names) + len(near)
        if size <= room:
            return {
                "names": names,
                "steps": packed(json.dumps(steps[:n], separators=(",", ":")).encode()),
                "near": near,
                "n": n,
                "n_ranked": lookup.n_ranked,
                "entry": None if lookup.entry is None else lookup.entry[:n],
                "n_followed": lookup.n_followed,
            }
        n = int(n * min(0.98, 0.99 * room / size))
    return None
