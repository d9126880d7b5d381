"""Near-optimal panels of ``l20fs select``: the tables, the sentences and the section of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from l20fs.cli.select_findings import Findings
from l20fs.estimators.panels import heads_of
from l20fs.inspection import NearOptimalPanels
from l20fs.report import sentences
from l20fs.report.delimited import join_names, write_frame
from l20fs.report.measures import Atlas
from l20fs.text import small_percent
from l20fs.typing import Array

#: Most optional features on the page, and most replacements of each.
MOST_OPTIONAL, MOST_REPLACEMENTS = 40, 5


def atlas_tables(findings: Findings) -> dict[str, str]:
    """Return panels.tsv, one line per panel, and atlas.tsv, one line per feature."""
    atlas = findings.atlas
    assert atlas is not None
    panels, features = atlas.to_frame(), _feature_frame(findings, atlas)
    panels["features"] = [join_names(names) for names in panels["features"]]
    panels["gap"] *= 100.0
    features["replaced_by"] = [join_names(names) for names in features["replaced_by"]]
    return {
        "panels.tsv": write_frame(panels.rename(columns={"gap": "gap_percent"})),
        "atlas.tsv": write_frame(features),
    }


def _feature_frame(findings: Findings, atlas: NearOptimalPanels) -> pd.DataFrame:
    """Return a table of the features that are in any panel, the most frequent first."""
    heads = _heads(findings, np.flatnonzero(atlas.counts))
    heads = heads[np.argsort(-atlas.counts[heads], kind="stable")]
    names, replacements = findings.samples.feature_names, atlas.replacements()
    return pd.DataFrame(
        {
            "feature": [names[head] for head in heads],
            "occurrence": atlas.counts[heads] / atlas.n_panels,
            "role": np.where(atlas.counts[heads] == atlas.n_panels, "core", "optional"),
            "replaced_by": [[names[other] for other in replacements.get(int(head), ())] for head in heads],
        }
    )


def _heads(findings: Findings, features: Array) -> Array:
    """Return the lowest feature of each group, and those that stand alone."""
    assert findings.path is not None
    return features[np.sort(np.unique(findings.path.unit_of[features], return_index=True)[1])]


def _proved(atlas: NearOptimalPanels) -> float:
    """Return the share within which all panels are listed; negative if a better one is not excluded."""
    best = float(atlas.losses[0])
    return min(atlas.tolerance, atlas.lower_bound / best - 1.0) if best else atlas.tolerance


def _selected_gap(atlas: NearOptimalPanels) -> float:
    best = float(atlas.losses[0])
    return atlas.selected_loss / best - 1.0 if best else 0.0


def tell_atlas(findings: Findings) -> list[str]:
    """Return the sentences about near-optimal panels; none if they were not asked for."""
    atlas = findings.atlas
    if atlas is None:
        return []
    found = sentences.near_optimal(
        atlas.n_panels,
        atlas.panels.shape[1],
        small_percent(atlas.tolerance),
        findings.noun,
        n_core=len(_heads(findings, atlas.in_all)),
        n_any=len(_heads(findings, np.flatnonzero(atlas.counts))),
        is_complete=atlas.is_complete,
    )
    proof = sentences.near_optimal_proof(
        _proved(atlas), is_complete=atlas.is_complete, n_listed=len(atlas.panels), n_panels=atlas.n_panels
    )
    best, selected = _heads(findings, atlas[0].features), heads_of(findings.units[: findings.k])
    selection = sentences.loss_of_selection(_selected_gap(atlas), *_differences(findings, best, selected))
    said = [f"{found} {proof}", selection, sentences.noise_of_losses(atlas.noise)]
    if findings.options.costs is None:
        return said
    known = set(findings.samples.feature_names)
    return [*said, _cheapest(findings, {name: cost for name, cost in findings.options.costs.items() if name in known})]


def _cheapest(findings: Findings, costs: Any) -> str:
    """Name the cheapest panel by its differences from the best."""
    atlas = findings.atlas
    assert atlas is not None
    cheapest, best = atlas.cheapest(costs), atlas[0]
    totals = [float(sum(costs.get(name, 1.0) for name in panel.names)) for panel in (cheapest, best)]
    heads = (_heads(findings, panel.features) for panel in (cheapest, best))
    return sentences.cheapest_panel(cheapest.rank, totals[0], totals[1], *_differences(findings, *heads))


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
        "eps": atlas.tolerance,
        "n_panels": atlas.n_panels,
        "is_complete": atlas.is_complete,
        "proved_eps": _proved(atlas),
        "noise": atlas.noise,
        "selected_gap": _selected_gap(atlas),
        "core": [findings.samples.feature_names[feature] for feature in atlas.in_all],
        "optional": [findings.samples.feature_names[feature] for feature in atlas.in_some],
        "panels": [
            {"features": each.names, "loss": each.loss, "gap": each.gap}
            for each in (atlas[number] for number in range(len(atlas)))
        ],
    }


def atlas_of(findings: Findings) -> Atlas | None:
    """Return the section of the page."""
    atlas = findings.atlas
    if atlas is None:
        return None
    heads = _heads(findings, atlas.in_some)
    heads = heads[np.argsort(-atlas.counts[heads], kind="stable")]
    replacements = atlas.replacements()
    shown = heads[:MOST_OPTIONAL]

    return Atlas(
        sentences=tell_atlas(findings),
        core=_names(findings, _heads(findings, atlas.in_all)),
        optional=_names(findings, shown),
        shares=[round(float(share), 4) for share in atlas.counts[shown] / atlas.n_panels],
        replaced_by=[_names(findings, list(replacements.get(int(head), {}))[:MOST_REPLACEMENTS]) for head in shown],
        n_more=len(heads) - len(shown),
    )
