"""Near-optimal panels of ``l20fs select``: the tables, the sentences and the section of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from l20fs import PanelAtlas
from l20fs.cli.select_findings import Findings
from l20fs.estimators.panels import heads_of
from l20fs.report import sentences
from l20fs.report.delimited import join_names, write_frame
from l20fs.report.measures import Atlas
from l20fs.text import small_percent
from l20fs.typing import Array

#: Most optional features on the page, and most replacements of each.
MOST_OPTIONAL, MOST_REPLACEMENTS = 40, 5


def atlas_tables(atlas: PanelAtlas) -> dict[str, str]:
    """Return panels.tsv, one line per panel, and atlas.tsv, one line per feature."""
    panels, features = atlas.to_frame(), atlas.feature_frame()
    panels["features"] = [join_names(names) for names in panels["features"]]
    panels["gap"] *= 100.0
    features["replaced_by"] = [join_names(names) for names in features["replaced_by"]]
    return {
        "panels.tsv": write_frame(panels.rename(columns={"gap": "gap_percent"})),
        "atlas.tsv": write_frame(features),
    }


def tell_atlas(findings: Findings) -> list[str]:
    """Return the sentences about near-optimal panels; none if they were not asked for."""
    atlas = findings.atlas
    if atlas is None:
        return []
    found = sentences.near_optimal(
        atlas.n_panels,
        atlas.k,
        small_percent(atlas.eps),
        findings.noun,
        n_core=len(atlas.heads_of(atlas.core)),
        n_any=len(atlas.heads_of(np.flatnonzero(atlas.counts))),
        is_complete=atlas.is_complete,
    )
    proof = sentences.near_optimal_proof(
        atlas.proved_eps, is_complete=atlas.is_complete, n_listed=len(atlas.panels), n_panels=atlas.n_panels
    )
    best, selected = atlas.heads_of(atlas.panel(0).features), heads_of(findings.units[: findings.k])
    selection = sentences.loss_of_selection(atlas.selected_gap, *_differences(findings, best, selected))
    said = [f"{found} {proof}", selection, sentences.noise_of_losses(atlas.noise)]
    if findings.options.costs is None:
        return said
    known = set(findings.samples.feature_names)
    return [*said, _cheapest(findings, {name: cost for name, cost in findings.options.costs.items() if name in known})]


def _cheapest(findings: Findings, costs: Any) -> str:
    """Name the cheapest panel by its differences from the best."""
    atlas = findings.atlas
    assert atlas is not None
    totals, cheapest = atlas.totals(costs), atlas.cheapest(costs)
    heads = (atlas.heads_of(panel.features) for panel in (cheapest, atlas.panel(0)))
    cost = float(totals[cheapest.rank - 1])
    return sentences.cheapest_panel(cheapest.rank, cost, float(totals[0]), *_differences(findings, *heads))


def _differences(findings: Findings, one: Array, other: Array) -> Iterator[list[str]]:
    """Return the names of the features, or groups, that are in one panel only, and of those that are in the other only."""
    return (_names(findings, np.setdiff1d(*pair)) for pair in ((one, other), (other, one)))


def _names(findings: Findings, heads: Iterable[int]) -> list[str]:
    return findings.names_of([np.array([head]) for head in heads])


def atlas_record(findings: Findings) -> dict[str, Any] | None:
    """Return the result for programs."""
    atlas = findings.atlas
    if atlas is None:
        return None
    return {
        "eps": atlas.eps,
        "n_panels": atlas.n_panels,
        "is_complete": atlas.is_complete,
        "proved_eps": atlas.proved_eps,
        "noise": atlas.noise,
        "selected_gap": atlas.selected_gap,
        "core": atlas.names_of(atlas.core),
        "optional": atlas.names_of(atlas.optional),
        "panels": [
            {"features": each.names, "loss": each.loss, "gap": each.gap}
            for each in (atlas.panel(number) for number in range(len(atlas.panels)))
        ],
    }


def atlas_of(findings: Findings) -> Atlas | None:
    """Return the section of the page."""
    atlas = findings.atlas
    if atlas is None:
        return None
    heads = atlas.heads_of(atlas.optional)
    heads = heads[np.argsort(-atlas.counts[heads], kind="stable")]
    replacements = atlas.replacements()
    shown = heads[:MOST_OPTIONAL]

    return Atlas(
        sentences=tell_atlas(findings),
        core=_names(findings, atlas.heads_of(atlas.core)),
        optional=_names(findings, shown),
        shares=[round(float(share), 4) for share in atlas.occurrence[shown]],
        replaced_by=[_names(findings, list(replacements.get(int(head), {}))[:MOST_REPLACEMENTS]) for head in shown],
        n_more=len(heads) - len(shown),
    )
