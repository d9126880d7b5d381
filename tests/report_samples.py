"""Made-up reports, and one from real data: what the tests of the page look at."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pandas as pd

from l20fs.report import (
    Atlas,
    ClassRate,
    Content,
    Curve,
    Lookup,
    Numbers,
    PanelNumbers,
    PathLines,
    Reliability,
    Roc,
    Stability,
    Strips,
    spreadsheets,
)
from l20fs.report.confusion import confused_pairs
from l20fs.report.delimited import write_rows

#: Names that are markup, script, formulas or hard to write in a line (fault R1 and C7).
EVIL = [
    "</script><img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "جين-ألف",
    "🧬 gene 👩‍🔬",
    "two\u2028lines\u2029here",
    "long" * 1250,
    "=cmd|'/c calc'!A1",
    "@SUM(1)",
    "-1+2",
    "tab\there\nand there",
    "{{ 7 * 7 }}",
    "<!-- <script>",
    "&lt;b&gt;",
    "' onmouseover='alert(1)",
]


def make_content(
    n_features=2308,
    n_classes=4,
    k=13,
    k_max=40,
    *,
    names=None,
    classes=None,
    seed=0,
    n_samples=83,
    **changes,
):
    """Return a report of noise that looks like one of a run; all of it depends on the arguments only."""
    rng = np.random.default_rng(seed)
    names = list(names or []) + [f"gene {rank + 1}" for rank in range(len(names or []), k_max)]
    classes = classes if classes is not None else [f"class {place + 1}" for place in range(n_classes)]
    sizes = [n_samples // n_classes + (place < n_samples % n_classes) for place in range(n_classes)]
    mean = 0.985 - 0.6 * np.exp(-np.arange(1, k_max + 1) / 4)
    coef = [[[f"{w:.4g}" for w in row] for row in rng.normal(0, 0.08, (size, n_classes))] for size in range(1, k_max + 1)]
    heat = rng.normal(0, 1.1, (k_max, n_classes)).round(2)
    confusion = [
        [
            [round(size * share) if i == j else int(i == (j + 1) % n_classes) for j in range(n_classes)]
            for i, size in enumerate(sizes)
        ]
        for share in mean
    ]
    n_lines = min(30, k_max)
    shares = np.linspace(0, 1, 40)
    lines = [np.clip(shares - rank / 45, 0, None) ** 0.7 * (1.2 - rank / 60) for rank in range(n_lines)]
    costs = [[f"{cost:.3g}" for cost in rng.uniform(0, 0.2, size)] for size in range(1, k_max + 1)]
    values = {
        "failure_costs": costs,
        "title": "tumours.tsv",
        "answer": f"{k} of {n_features} features tell {n_classes} classes apart: 98.4 % ± 1.6 % of samples right in 5-fold "
        "cross-validation.",
        "sentences": [
            "Features were selected on 83 samples with the l2,0 norm.",
            "The accuracy is that of new samples of the same study.",
        ],
        "warnings": ["Class 'class 4' has 4 samples only; what is said about it is uncertain."],
        "k": k,
        "k_rule": "smallest within one standard error of the best",
        "k_max": k_max,
        "n_samples": n_samples,
        "n_features": n_features,
        "classes": classes,
        "class_sizes": sizes,
        "chance": max(sizes) / n_samples,
        "curves": [
            Curve("linear", mean.round(4).tolist(), [0.016] * k_max, *interval(mean)),
            Curve("KNN-5", (mean - 0.03).round(4).tolist(), [0.02] * k_max),
        ],
        "features": names,
        "columns": {
            "rank": [str(rank + 1) for rank in range(k_max)],
            "score": [f"{5 / (rank + 1):.10g}" for rank in range(k_max)],
            "level": [f"high in {classes[int(np.argmax(row))]}" if classes else "" for row in heat],
            "norm": [f"{value:.10g}" for value in rng.uniform(0.1, 0.4, k_max)],
            "entry_alpha": [f"{2 / (rank + 1) ** 2:.10g}" for rank in range(k_max)],
            "rule": ["entry"] * k_max,
        },
        "substitutes": [
            [
                (names[other], round(0.95 - 0.02 * abs(other - rank), 2), other + 1)
                for other in range(max(0, rank - 1), min(k_max, rank + 3))
                if other != rank
            ]
            + [(f"other {rank}-{i}", (-1) ** i * (0.9 - 0.03 * i), 0) for i in range(3)]
            for rank in range(k_max)
        ],
        "heat": heat.tolist(),
        "heat_groups": make_groups(heat, classes),
        "coef": coef,
        "confusion": confusion if n_classes <= 30 else None,
        "confused": None if n_classes <= 30 else [confused_pairs(counts) for counts in confusion],
        "path": PathLines(
            (2.0 * 10.0 ** (-3 * shares)).tolist(),
            [line.round(4).tolist() for line in lines],
        ),
        "stability": Stability(np.linspace(1, 0.3, min(k, k_max)).round(2).tolist(), 0.71, 0.66, 0.76, 100),
        "provenance": {"arguments": {"data": "tumours.tsv", "target": "type"}, "input": {"sha256": "0" * 64}},
        "rates": [[make_rate(share, size) for size in sizes] for share in mean.round(4).tolist()],
        "roc": [make_roc(rng) for _ in range(k_max)] if n_classes == 2 else None,
        "reliability": [make_reliability(rng, n_samples, n_classes) for _ in range(k_max)],
        "lookup": make_lookup(names, n_features, min(k, k_max)),
        "atlas": make_atlas(names) if k_max else None,
        "panel": make_panel(k_max, n_classes, seed),
        "strips": make_strips(min(k_max, 30), sizes, seed) if k_max else None,
    }
    return Content(**values | changes)


def make_regression(k=6, k_max=20, *, targets=("age",), names=None, seed=0, n_samples=90, **changes):
    """Return the report of a regression of noise."""
    rng = np.random.default_rng(seed)
    n_targets = len(targets)
    r2 = 0.8 - 1.1 * np.exp(-np.arange(1, k_max + 1) / 4)
    measured = 50 + 15 * rng.normal(size=(n_targets, n_samples))
    predicted = [measured + 15 * np.sqrt(1 - share) * rng.normal(size=measured.shape) for share in r2]
    mae = 12 * np.sqrt(1 - r2)
    coef = [[[f"{w:.4g}" for w in row] for row in rng.normal(0, 3, (size, n_targets))] for size in range(1, k_max + 1)]
    values = {
        "task": "regression",
        "targets": list(targets),
        "answer": f"{k} of 2308 features predict {targets[0]}: R² 0.55 (0.38 to 0.68) in 5-fold cross-validation.",
        "k_rule": "asked for",
        "score_name": "R²",
        "chance": 0.0,
        "chance_name": "always the mean",
        "curves": [Curve("linear", r2.round(4).tolist(), [None] * k_max, *interval(r2, 0.12))],
        "further": [
            Curve("mean absolute error", mae.round(4).tolist(), [None] * k_max, (mae - 1).tolist(), (mae + 1).tolist())
        ],
        "heat": rng.normal(0, 1, (k_max, 3 * n_targets)).round(2).tolist(),
        "coef": coef,
        "numbers": Numbers(measured.round(2).tolist(), [each.round(2).tolist() for each in predicted]),
        "panel": make_panel(k_max, n_targets, seed, is_regression=True),
        "strips": make_scatter(k_max, measured[0].round(2).tolist(), seed) if k_max else None,
    }
    nothing = dict.fromkeys(("confusion", "confused", "rates", "roc", "reliability"))
    empty = {"classes": [], "class_sizes": [], "n_classes": 1, "n_samples": n_samples, "names": names}
    return make_content(k=k, k_max=k_max, seed=seed, **empty | values | nothing | changes)


def make_atlas(names):
    """Return near-optimal panels: every third feature is in all of them, each of the others can replace the next."""
    optional = [name for place, name in enumerate(names) if place % 3][:40]
    shares = np.linspace(0.99, 0.004, len(optional)).round(4).tolist()
    said = ["57 panels of 13 features are within 0.1 % of the lowest loss.", "It is proved that there are no others."]
    return Atlas(said, names[::3], optional, shares, [optional[:place][-3:] for place in range(len(optional))], n_more=7)


def make_groups(heat, classes):
    """Return the rows of the heatmap by the class with the highest mean."""
    highest = heat.argmax(axis=1)
    found = [(name, np.flatnonzero(highest == place).tolist()) for place, name in enumerate(classes or ["all"])]
    return [(f"high in {name}", places) for name, places in found if places]


def interval(mean, width=0.05):
    """Return the ends of made-up intervals."""
    return np.clip(mean - width, -1, 1).round(4).tolist(), np.clip(mean + width, -1, 1).round(4).tolist()


def make_rate(share, size):
    lower, upper = max(0.0, round(share - 0.1, 4)), min(1.0, round(share + 0.1, 4))
    return ClassRate((share, lower, upper) if size else None, (1.0, 0.9, 1.0), size)


def make_roc(rng):
    points = np.sort(rng.random((2, 12)), axis=1).round(4)
    points[1] = np.maximum(points[0], points[1])
    return Roc([(0.0, 0.0), *zip(*points.tolist(), strict=True), (1.0, 1.0)], 0.8125, 0.7, 0.9)


def make_reliability(rng, n_samples, n_classes):
    chances = np.sort(rng.uniform(1 / n_classes, 1, 5)).round(4)
    shares = np.clip(chances + rng.normal(0, 0.1, 5), 0, 1).round(4)
    sizes = 1 + rng.multinomial(n_samples - 5, [0.05, 0.1, 0.15, 0.2, 0.5])
    bins = list(zip(chances.tolist(), shares.tolist(), sizes.tolist(), strict=True))
    intervals = [(max(0.0, round(share - 0.2, 4)), min(1.0, round(share + 0.2, 4))) for _, share, _ in bins]
    return Reliability(bins, round(float(rng.uniform(0.02, 0.2)), 4), 0.25, intervals)


def make_strips(n, sizes, seed=0, most=12):
    """Return values of noise; some classes have none of some features."""
    rng = np.random.default_rng(seed)
    counts = [[0 if (i + c) % 9 == 8 else min(size, most) for c, size in enumerate(sizes)] for i in range(n)]
    values = [[np.sort(rng.normal(5, 2, count)).round(3).tolist() for count in row] for row in counts]
    return Strips(values, [[float(np.median(row)) if row else None for row in rows] for rows in values], [])


def make_scatter(n, truth, seed=0):
    """Return values of noise beside numbers, some of them missing."""
    rng = np.random.default_rng(seed)
    values = rng.normal(5, 2, (n, len(truth))).round(3)
    rows = [[[None if (i + j) % 7 == 6 else value for j, value in enumerate(row)]] for i, row in enumerate(values.tolist())]
    return Strips(rows, [[] for _ in rows], truth, "log(1 + value)")


def make_panel(k_max, n_outputs, seed=0, *, is_regression=False, transform="none"):
    """Return rules of noise for every k."""
    rng = np.random.default_rng(seed)
    n_values = 1 if n_outputs == 2 and not is_regression else n_outputs
    sizes = range(1, k_max + 1)
    return PanelNumbers(
        [rng.normal(0, 0.4, (size, n_values)).tolist() for size in sizes],
        rng.normal(0, 1, (k_max, n_values)).tolist(),
        [] if is_regression else rng.uniform(0.2, 3, k_max).tolist(),
        [] if is_regression else rng.uniform(0.0, 0.5, k_max).tolist(),
        rng.uniform(0, 2, k_max).round(3).tolist(),
        rng.uniform(8, 12, k_max).round(3).tolist(),
        transform,
    )


def make_lookup(names, n_features, n_selected):
    """Return all features, of which the last has no rank, and the others have made-up likeness."""
    names = [*names, *(f"other {place}" for place in range(len(names), n_features))]
    n = len(names)
    places = [place % n_selected if n_selected and place < n - 1 else -1 for place in range(n)]
    values = [0.0 if place < 0 else round((-1) ** i * (i % 101) / 100, 2) for i, place in enumerate(places)]
    entry = [float(f"{2 / (rank + 1) ** 2:.4g}") for rank in range(min(n - 1, 50))]
    return Lookup(names, n - 1, [*range(1, n), 0], entry, len(entry), places, values)


def evil_content():
    """Return a report whose every text is hostile (R1, C7)."""
    names = EVIL
    substitutes = [[(EVIL[(i + 1) % len(EVIL)], 0.125, 0), ("plain", -0.625, 3)] for i in range(20)]
    content = make_content(k=len(EVIL), k_max=20, n_classes=4, names=names, classes=EVIL[:4], substitutes=substitutes)
    return make_content(
        k=len(EVIL),
        k_max=20,
        names=names,
        classes=EVIL[:4],
        substitutes=substitutes,
        title=EVIL[0],
        answer=EVIL[1],
        sentences=EVIL,
        warnings=EVIL,
        k_rule=EVIL[0],
        score_name=EVIL[0],
        columns=content.columns | {"rule": (EVIL * 2)[:20]},
        chance_name=EVIL[0],
        curves=[Curve(EVIL[0], content.curves[0].mean, content.curves[0].error)],
        further=[Curve(EVIL[1], content.curves[0].mean, content.curves[0].error)],
        provenance={name: name for name in EVIL},
    )


def for_spreadsheets(text):
    """Return a table as the page writes it for spreadsheets: with a mark of its encoding, and names that stay names."""
    [header, *rows] = csv.reader(io.StringIO(text, newline=""), delimiter="\t")
    number, converted = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I), re.compile(spreadsheets.PATTERN, re.I)

    def safe(cell, column):
        is_number = column not in spreadsheets.NAMES and number.fullmatch(cell)
        return f"'{cell}" if converted.match(cell) and not is_number else cell

    lines = [header, *rows]
    return "\ufeff" + write_rows([[safe(*pair) for pair in zip(line, header, strict=True)] for line in lines])


def comparison():
    rows = pd.DataFrame(
        {
            "method": ["RFS", "<b>mRMR</b>", "RFS"],
            "classifier": ["knn", "knn", "softmax"],
            "accuracy": [90.04, np.nan, 95.26],
            "standard_error": [1.0, np.nan, np.nan],
            "n_features": [20, np.nan, 7.5],
            "p_value": [np.nan, 0.0421, np.nan],
            "stability": [0.512, np.nan, 0.4],
            "stability_lower": [0.4, np.nan, np.nan],
            "stability_upper": [0.6, np.nan, np.nan],
            "seconds": [0.01234, np.nan, 123.4],
        }
    )
    curves = pd.DataFrame(
        {
            "method": ["RFS", "RFS", "<b>mRMR</b>", "RFS"],
            "classifier": ["knn", "knn", "knn", "softmax"],
            "n_features": [5, 50, 5, 5],
            "accuracy": [80.0, 90.0, np.nan, 70.0],
            "standard_error": 1.0,
        }
    )
    return rows, curves
