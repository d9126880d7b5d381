"""Tables in Markdown, as docs/defaults.md has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"\n{title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def number(value: float, digits: int = 2) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def numbers(values: Iterable[float], digits: int = 2) -> list[str]:
    return [number(value, digits) for value in values]


def bold_best(values: np.ndarray, digits: int = 1, tolerance: float = 0.0) -> list[str]:
    """Return the numbers of a row, the largest in bold."""
    best = np.nanmax(values) - tolerance - 1e-9
    return [f"**{number(value, digits)}**" if value >= best else number(value, digits) for value in values]


def mean(values: np.ndarray) -> float:
    """Return the mean of the values that are there, NaN if none is."""
    return float(np.nanmean(values)) if np.isfinite(values).any() else np.nan
