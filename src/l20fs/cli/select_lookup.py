"""All features of a run of ``l20fs select``, for the search of the page: ranks, entries, and the selected one most alike."""

from __future__ import annotations

import numpy as np

from l20fs.cli.select_findings import Findings
from l20fs.estimators.selection_table import NearestMembers
from l20fs.report.measures import Lookup

#: Features that can be searched for at most, the best ones; the page may have room for fewer.
MOST_FEATURES = 50_000


def make_lookup(findings: Findings, nearest: NearestMembers) -> Lookup:
    """Return all features, best first, and those that have no rank last."""
    selector, path = findings.selector, findings.path
    is_ranked = np.isfinite(selector.scores_)
    ranks = np.where(is_ranked, selector.ranking_, 0)
    order = np.argsort(np.where(is_ranked, ranks, ranks.max(initial=0) + 1), kind="stable")[:MOST_FEATURES]
    entry = None
    if path is not None:
        alphas = path.entry_alphas[order]
        n_known = int(np.flatnonzero(np.isfinite(alphas)).max(initial=-1)) + 1
        entry = [float(f"{alpha:.4g}") if np.isfinite(alpha) else None for alpha in alphas[:n_known].tolist()]
    is_known = bool((nearest.place >= 0).any())
    return Lookup(
        names=[str(findings.samples.feature_names[j]) for j in order],
        n_ranked=int(ranks.max(initial=0)),
        ranks=ranks[order].tolist() if findings.has_groups or not is_ranked.all() else [],
        entry=entry,
        n_followed=0 if path is None else int(path.sizes.max(initial=0)),
        nearest=nearest.place[order].tolist() if is_known else [],
        correlations=(nearest.correlation[order].round(2) + 0.0).tolist() if is_known else [],
    )
