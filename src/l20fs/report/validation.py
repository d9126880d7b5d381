"""The page of ``l20fs validate``, and its table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from l20fs.evaluation.metrics import METRICS, Metric
from l20fs.evaluation.quoted_score import Estimate
from l20fs.evaluation.validation import Validation, difference
from l20fs.report import figures
from l20fs.report.page import estimate_text, fill

if TYPE_CHECKING:
    import pandas as pd

#: Samples that the figure of numbers shows.
MOST_DOTS = 400


@dataclass(frozen=True, eq=False)
class ValidationReport:
    """Scores of a panel on labelled samples, and what is known about these.

    ``promised`` is the score of the selection: its metric, value, lower and upper end.
    """

    result: Validation
    title: str
    n_features: int
    n_without: int = 0
    n_outside: int = 0
    numbers: tuple[Sequence[float], Sequence[float]] | None = None
    promised: dict[str, Any] | None = None
    is_training: bool = False
    notes: Sequence[str] = ()

    @property
    def measure(self) -> Metric:
        """The main score."""
        return METRICS[self.result.main[0]]

    @property
    def score(self) -> Estimate | None:
        """Value of the main score."""
        return self.result.main[1]

    @property
    def expected(self) -> tuple[Metric, Estimate, Estimate, Estimate] | None:
        """The score that the selection promised, the one here, and new less promised; None if they cannot be compared."""
        known = self.promised or {}
        new = self.result.scores.get(known.get("metric", ""))
        parts = [known.get(name) for name in ("value", "lower", "upper")]
        if new is None or not all(isinstance(part, float | int) and math.isfinite(part) for part in parts):
            return None
        promised = Estimate(*parts)  # type: ignore[arg-type]
        return METRICS[known["metric"]], promised, new, difference(new, promised)

    @property
    def scores(self) -> list[tuple[str, str]]:
        """All scores with their intervals."""
        found = self.result
        rows = [
            (METRICS[name].title, estimate_text(score, is_share=METRICS[name].is_share))
            for name, score in found.scores.items()
        ]
        if found.bias is not None:
            rows.append(("bias: predicted minus measured", estimate_text(found.bias, is_share=False)))
        if found.confusion is not None:
            rows.append(("calibration slope", estimate_text(found.calibration_slope, is_share=False)))
        return rows

    @property
    def shares(self) -> list[list[float]]:
        """Share of each true class that was predicted as each class."""
        assert self.result.confusion is not None
        return [[count / max(sum(row), 1) for count in row] for row in self.result.confusion.tolist()]

    @property
    def truth(self) -> tuple[list[str], list[int]]:
        """True classes, those that the panel does not know last, and their numbers of samples."""
        assert self.result.confusion is not None
        names = [*self.result.classes, *(f"{name} (unknown to the panel)" for name in self.result.unknown or {})]
        return names, self.result.confusion.sum(axis=1).tolist()

    @property
    def rates(self) -> list[tuple[str, ...]]:
        """Sensitivity and specificity of each class."""
        return [
            (each.name, str(each.n_samples), estimate_text(each.sensitivity), estimate_text(each.specificity))
            for each in self.result.rates
        ]

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The main score in each group of samples."""
        is_share = self.measure.is_share
        return [
            (each.name, str(each.n_samples), estimate_text(each.score, is_share=is_share)) for each in self.result.batches
        ]

    @property
    def reliability(self) -> figures.Chart:
        """Share of correct predictions against their probability."""
        bins = self.result.bins
        return figures.square_chart(
            "Share of correct predictions against the probability of the predicted class",
            ("probability of the predicted class", "correct"),
            [(each.probability, each.right.value) for each in bins],
            bars=[(each.probability, each.right.lower, each.right.upper) for each in bins],
            is_share=True,
        )

    @property
    def predicted(self) -> figures.Chart:
        """Predicted against measured numbers."""
        assert self.numbers is not None
        step = max(1, math.ceil(len(self.numbers[0]) / MOST_DOTS))
        dots = [(float(a), float(b)) for a, b in zip(*(part[::step] for part in self.numbers), strict=True)]
        return figures.square_chart("Predicted against measured numbers", ("measured", "predicted"), dots)

    def frame(self) -> pd.DataFrame:
        """Return all numbers with intervals as one long table."""
        import pandas as pd

        found, n = self.result, self.result.n_samples
        rows: list[tuple[Any, ...]] = [("score", name, each, n) for name, each in found.scores.items()]
        rows += [("bias", "", found.bias, n)] if found.bias is not None else []
        rows += [("calibration slope", "", found.calibration_slope, n)] if found.confusion is not None else []
        rows += [("sensitivity", each.name, each.sensitivity, each.n_samples) for each in found.rates]
        rows += [("specificity", each.name, each.specificity, n - each.n_samples) for each in found.rates]
        rows += [("reliability", f"{each.probability:.4g}", each.right, each.n_samples) for each in found.bins]
        rows += [("group", each.name, each.score, each.n_samples) for each in found.batches]
        columns = ["what", "name", "value", "lower", "upper", "n_samples"]
        return pd.DataFrame(
            [(what, name, *(each or (math.nan,) * 3), size) for what, name, each, size in rows], columns=columns
        )

    def page(self) -> str:
        """Return validation.html."""
        return fill("validation.html", scripts=("table.js", "figures.js"), title=self.title, v=self, notes=self.notes)
