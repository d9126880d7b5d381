"""All panels that are nearly as good as the best: how many there are, what they share, and what the samples can tell apart.

Run ``python benchmarks/panels.py`` for the figures of docs/panels.md on the built-in set: the gap, the panels within a share
of the lowest loss, the noise of losses, the stability and the accuracy of twenty genes.

Run ``python benchmarks/panels.py DATA_DIR``, where DATA_DIR holds ``brain.npz`` and the others (X, y), for a line per set,
number of features and ridge with the proof of the best panel: the gap that is left, nodes and seconds; and then one per
share: the panels within it, "all" or the share within which all of them are proved to be listed, features in all and in any
of them, nodes and seconds. After a search that did not end in time larger shares are not tried. ``--sizes``, ``--ridges``,
``--eps`` and ``--seconds`` set what is tried; ``--noise`` adds the noise of losses, by its closed form and by the bootstrap.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from schedule import SETS, load

from l20fs import L20Classifier, L20Selector, L20SelectorCV, PanelAtlas, StabilitySelector
from l20fs.bounds.branch_and_bound import solve_exactly
from l20fs.bounds.certificate import support_loss
from l20fs.data import load_srbct
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import swap
from l20fs.text import percent, small_percent

N_DRAWS = 400


def proof(atlas: PanelAtlas) -> str:
    if atlas.is_complete and len(atlas.panels) == atlas.n_panels:
        return "all"
    return f"to {small_percent(atlas.proved_eps)}"


def line(atlas: PanelAtlas) -> str:
    n_any = np.count_nonzero(atlas.counts)
    return f"{atlas.n_panels:8d}{proof(atlas):>12}{len(atlas.core):6d}{n_any:6d}{atlas.n_nodes:9d}"


def neighbours(atlas: PanelAtlas, problem: LeastSquares) -> list[np.ndarray]:
    """Return, for each feature of the best panel, the best panel with another one in its place."""
    best, others = atlas.panels[0], np.setdiff1d(np.flatnonzero(problem.design.varies), atlas.panels[0])
    found = []
    for feature in best:
        rest = best[best != feature]
        losses = [support_loss(problem, np.append(rest, other)) for other in others]
        found.append(np.append(rest, others[int(np.argmin(losses))]))
    return found


def bootstrap_noise(problem: LeastSquares, atlas: PanelAtlas) -> float:
    """Return the median over neighbours of the deviation of the difference of losses, as a share of the loss."""
    rng, n = np.random.default_rng(0), problem.design.n_samples
    best, others, draws = atlas.panels[0], neighbours(atlas, problem), []
    for _ in range(N_DRAWS):
        draw = problem.reweighted(np.bincount(rng.integers(n, size=n), minlength=n).astype(float))
        loss = support_loss(draw, best)
        draws.append([loss - support_loss(draw, other) for other in others])
    return float(np.median(np.std(draws, axis=0))) / support_loss(problem, best)


def one_set() -> None:
    """Print what docs/panels.md says of twenty genes of the built-in set."""
    tumours, new = load_srbct(), load_srbct(subset="test")
    X, y = tumours.data, tumours.target
    settings = {"n_features_to_select": 20, "ridge": 10.0}
    selector = L20Selector(**settings, certify=True).fit(X, y)
    print(f"gap {small_percent(selector.path_.gap(20))}")
    for eps in ("0.05%", "0.1%", None):
        atlas = selector.near_optimal(eps=eps)
        print(atlas)
    print(f"selection above the best {small_percent(atlas.selected_gap)}, noise {small_percent(atlas.noise)}")
    atlas = selector.near_optimal(eps="0.1%")
    stable = StabilitySelector(L20Selector(**settings), random_state=0).fit(X, y)
    print("stability index {:.2f} ({:.2f} to {:.2f})".format(stable.stability_, *stable.stability_interval_))
    frequencies = {
        "core": stable.frequencies_[atlas.core],
        "optional": stable.frequencies_[atlas.optional],
        "best panel": stable.frequencies_[atlas.panels[0]],
        "most stable panel": stable.frequencies_[atlas.most_stable(stable).features],
    }
    print("mean frequency:", {name: percent(values.mean()) for name, values in frequencies.items()})
    search = L20SelectorCV(20, selector=L20Selector(ridge=10.0), cv=5).fit(X, y)
    print("accuracy {:.3f} ({:.3f} to {:.3f})".format(search.corrected_score_, *search.corrected_interval_))
    rights = [
        np.mean(L20Classifier(20, include=panel, ridge=10.0).fit(X, y).predict(new.data) == new.target)
        for panel in atlas.panels.tolist()
    ]
    print(f"right in 20 new samples, of the {len(rights)} panels: {min(rights):.0%} to {max(rights):.0%}")


def prove(name: str, problem: LeastSquares, k: int, seconds: float) -> bool:
    """Print the proof of the best panel, and return whether it ended in time."""
    begin = time.perf_counter()
    start = swap(problem, k, sizes=[k]).rows_at(k)
    best = solve_exactly(problem, k, support=start, time_limit=seconds)
    spent, gap = time.perf_counter() - begin, best.certificate.gap
    above = support_loss(problem, start) / best.certificate.upper_bound - 1.0
    print(
        f"{name:10}{k:4d}{problem.relative_ridge:6g}{'best':>7}{'gap %':>8}{100 * gap:12.4f}{'':6}{'':6}{best.n_nodes:9d}"
        f"{spent:7.1f}  swap {100 * above:.4f} % above it",
        flush=True,
    )
    return gap < 2e-6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[20])
    parser.add_argument("--ridges", type=float, nargs="+", default=[10.0])
    parser.add_argument("--eps", nargs="+", default=["0.05%", "0.1%", "0.5%"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--processor-time", action="store_true", help="count it instead: the machine may be shared")
    arguments = parser.parse_args()
    if arguments.processor_time:
        time.monotonic = time.perf_counter = time.process_time
    if arguments.data is None:
        one_set()
        return
    print(f"{'set':10}{'k':>4}{'ridge':>6}{'eps':>7}{'panels':>8}{'proved':>12}{'core':>6}{'any':>6}{'nodes':>9}{'s':>7}")
    for name in arguments.sets:
        X, y = load(arguments.data, name)
        for k in arguments.sizes:
            for ridge in arguments.ridges:
                selector = L20Selector(k, ridge=ridge, scale="zscore").fit(X, y)
                problem = LeastSquares(X, balanced(y), ridge=ridge, scale="zscore")
                if not prove(name, problem, k, arguments.seconds):
                    continue
                for eps in arguments.eps:
                    begin = time.perf_counter()
                    atlas = selector.near_optimal(eps=eps, time_limit=arguments.seconds)
                    spent = time.perf_counter() - begin
                    print(f"{name:10}{k:4d}{ridge:6g}{eps:>7}{line(atlas)}{spent:7.1f}", flush=True)
                    if not atlas.is_complete:
                        break
                if arguments.noise:
                    texts = [small_percent(value) for value in (atlas.noise, bootstrap_noise(problem, atlas))]
                    print(f"{'':10}noise {texts[0]}, by the bootstrap {texts[1]}", flush=True)


def balanced(y: np.ndarray) -> np.ndarray:
    """Return one-hot labels with a weight that is inverse to the size of the class, as L20Selector has them."""
    targets = np.eye(y.max() + 1)[y]
    sizes = targets.sum(axis=0)
    return targets / np.sqrt(sizes / sizes.mean())


if __name__ == "__main__":
    main()
