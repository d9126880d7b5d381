"""What the report page shows, and the table that both the page and the command line write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

#: How many substitutes of a feature are named.
MOST_SUBSTITUTES = 3


class ReportError(ValueError):
    """A report file cannot be used; the message says why."""


@dataclass(frozen=True)
class Curve:
    """The mean score and its standard error for 1, 2, ... features; None where there is none."""

    name: str
    mean: list[float | None]
    error: list[float | None]


@dataclass(frozen=True)
class PathLines:
    """The norms of the weights along lambda, and the lambda at which each feature enters; None if it never does."""

    alphas: list[float]
    norms: list[list[float]]
    entry: list[float | None]


@dataclass(frozen=True)
class Stability:
    """How often the selected features were selected in resamples, and how much these agree."""

    frequencies: list[float]
    index: float | None
    lower: float | None
    upper: float | None
    n_resamples: int


@dataclass(frozen=True)
class Content:
    """Everything that the page shows."""

    title: str
    answer: str
    sentences: list[str]
    warnings: list[str]
    k: int
    k_rule: str
    k_max: int
    n_samples: int
    n_features: int
    classes: list[str]
    class_sizes: list[int]
    chance: float
    curves: list[Curve]
    features: list[str]
    columns: dict[str, list[str]]
    substitutes: list[list[tuple[str, float, int]]]
    heat: list[list[float]]
    coef: list[list[list[str]]] | None = None
    strongest: list[list[int]] | None = None
    confusion: list[list[list[int]]] | None = None
    path: PathLines | None = None
    stability: Stability | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    score_name: str = "accuracy"
    format: int = 1

    def to_json(self) -> str:
        """Return the content as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Content:
        """Read what :meth:`to_json` wrote."""
        try:
            values = json.loads(text)
            values["curves"] = [Curve(**curve) for curve in values["curves"]]
            values["substitutes"] = [[tuple(entry) for entry in entries] for entries in values["substitutes"]]
            values["path"] = values["path"] and PathLines(**values["path"])
            values["stability"] = values["stability"] and Stability(**values["stability"])
            return cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ReportError(f"This is not a report file of `l20fs select` ({error}).") from error

    def selection_tsv(self, k: int) -> str:
        """Return the table of the best ``k`` features."""
        header = ["feature", *self.columns]
        header += ["could_replace"] if self.substitutes else []
        header += ["strongest", *(f"coef_{name}" for name in self.classes)] if self.coef is not None else []
        return "".join(_line(cells) for cells in [header, *(self._row(k, i) for i in range(k))])

    def _row(self, k: int, i: int) -> list[str]:
        cells = [self.features[i], *(texts[i] for texts in self.columns.values())]
        if self.substitutes:
            others = [(name, value) for name, value, rank in self.substitutes[i] if rank == 0 or rank > k]
            cells.append(", ".join(f"{name} ({value:.2f})" for name, value in others[:MOST_SUBSTITUTES]))
        if self.coef is not None and self.strongest is not None:
            strongest = self.strongest[k - 1][i]
            cells += [self.classes[strongest] if strongest >= 0 else "", *self.coef[k - 1][i]]
        return cells


def _line(cells: Sequence[str]) -> str:
    return "\t".join(" ".join(cell.replace("\t", " ").splitlines()) for cell in cells) + "\n"
