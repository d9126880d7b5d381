"""The results of ``l20fs select``: the page, the table of features and the workbook, from the attributes of a search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.evaluation.data_checks import looks_like_counts
from l20fs.evaluation.metrics import METRICS, Metric, Outputs
from l20fs.evaluation.out_of_fold import OutOfFold
from l20fs.evaluation.quoted_score import Estimate, quoted_score
from l20fs.inputs.names import NamedColumns
from l20fs.report import figures
from l20fs.report.page import estimate_text, fill
from l20fs.typing import Array

if TYPE_CHECKING:
    import pandas as pd

    from l20fs import L20SelectorCV, NearOptimalPanels, Panel, StabilitySelector

#: Features that a page shows besides the selected ones, at least and at most; numbers of weights of all its sizes.
MORE_FEATURES, LEAST_FEATURES, MOST_FEATURES, MOST_WEIGHTS = 25, 50, 200, 8000

#: Dots of all features together, and of a class at least and at most; classes that dots and a table of confusions can show.
MOST_DOTS, FEWEST_OF_CLASS, MOST_OF_CLASS, MOST_STRIPS, MOST_CONFUSED = 12_000, 8, 60, 12, 25

#: Features that can replace one of a near-optimal panel.
MOST_REPLACEMENTS = 5

#: Predictions of which all scores get an interval.
MOST_RESAMPLED = 10**6

#: Names of the columns of :attr:`Selection.features`; others are left out.
COLUMNS = ("feature", "rank", "score", "direction", "stability", "correlated_features", "loss_increase")

#: Parts of a regression in place of classes.
THIRDS = ("lower third", "middle third", "upper third")


@dataclass(frozen=True, eq=False)
class Selection:
    """A fitted search with its samples, and what else was asked for.

    Parameters
    ----------
    search : L20SelectorCV
        Fitted.
    X : array or sparse matrix of shape (n_samples, n_features)
        The samples as the selector saw them, without gaps.
    y : array of shape (n_samples,)
        Labels as text, or numbers.
    title, target : str
        Names of the file and of the target.
    metric : str
        What scores are.
    groups : array of shape (n_samples,), optional
        Groups that the folds kept together, with the ``name_of_groups``.
    stability, alternatives, panel
        What was computed besides.
    notes : sequence of str
        What was decided on the way, and warnings.
    run : dict
        Options, settings, versions and the digest of the input, by section.
    missing : dict of str: float
        Shares of the samples that lack a feature.
    """

    search: L20SelectorCV
    X: Any
    y: Array
    title: str = "table"
    target: str = "class"
    metric: str = "accuracy"
    groups: Array | None = None
    name_of_groups: str = ""
    stability: StabilitySelector | None = None
    alternatives: NearOptimalPanels | None = None
    panel: Panel | None = None
    notes: Sequence[str] = ()
    run: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, float] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------------------ the samples

    @property
    def is_regression(self) -> bool:
        """Whether numbers are predicted."""
        return not hasattr(self.search, "classes_")

    @cached_property
    def classes(self) -> list[str]:
        """Names of the classes; of a regression those of its thirds."""
        return list(THIRDS) if self.is_regression else [str(label) for label in self.search.classes_]

    @cached_property
    def codes(self) -> Array:
        """Index of the class, or third, of each sample."""
        if self.is_regression:
            return np.searchsorted(np.quantile(self.y, [1 / 3, 2 / 3]), self.y)
        return np.searchsorted(np.asarray(self.classes), self.y)

    @cached_property
    def class_sizes(self) -> list[int]:
        """Number of samples of each class."""
        return np.bincount(self.codes, minlength=len(self.classes)).tolist()

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """Number of features that there were."""
        return int(self.X.shape[1])

    # ---------------------------------------------------------------------------------------------------- the selection

    @cached_property
    def k(self) -> int:
        """Selected number of features, or of groups of them."""
        return len(np.unique(self.search.path_.unit_of[self.search.support_]))

    @cached_property
    def names(self) -> Array:
        """Names of all features."""
        return np.asarray(self.search.model_.feature_names_in_)

    @cached_property
    def has_groups(self) -> bool:
        """Whether features are selected in groups."""
        return int(self.search.ranking_.max()) < self.n_features

    @property
    def noun(self) -> str:
        """Noun for the units that the number counts."""
        return "group" if self.has_groups else "feature"

    @cached_property
    def k_least(self) -> int:
        """Smallest number that the constraints allow."""
        return max(1, int(self.search.path_.least_size))

    @cached_property
    def k_shown(self) -> int:
        """Largest number that the page shows."""
        path = self.search.path_
        wanted = max(self.k + MORE_FEATURES, LEAST_FEATURES)
        return max(self.k_least, min(wanted, MOST_FEATURES, path.largest_refit, path.n_selectable))

    def table(self, k: int) -> pd.DataFrame:
        """Return the best features of a number, best first."""
        found = self.search.model_.at(k).to_frame(NamedColumns(self.X, self.names), self.y, stability=self.stability)
        kept = [name for name in found.columns if name in COLUMNS or name.startswith("coef_")]
        return found[kept]

    @cached_property
    def features(self) -> pd.DataFrame:
        """The selected features: features.tsv."""
        return self.table(self.k)

    @cached_property
    def shown(self) -> pd.DataFrame:
        """The features of the page: the selected ones, then the next best, without what holds for one number only."""
        further = self.table(self.k_shown).drop(columns="loss_increase")
        further = further[[name for name in further.columns if not name.startswith("coef_")]]
        own = self.features.set_index("feature")
        for name in ("correlated_features", "direction"):
            if name in further:
                further[name] = further["feature"].map(own[name]).fillna(further[name])
        return further

    @property
    def weights(self) -> list[str]:
        """Names of the columns with weights."""
        return [name for name in self.features if name.startswith("coef_")]

    @property
    def first_names(self) -> list[str]:
        """Names for the headline."""
        return self.features["feature"].tolist()[:5]

    @cached_property
    def places(self) -> Array:
        """Columns of X of the features of the page."""
        order = {name: place for place, name in enumerate(self.names.tolist())}
        return np.array([order[name] for name in self.shown["feature"]])

    @cached_property
    def values(self) -> Array:
        """Values of the features of the page, (n_samples, n_shown)."""
        columns = self.X[:, self.places]
        columns = columns.compute() if hasattr(columns, "compute") else columns
        return np.asarray(columns.toarray() if hasattr(columns, "toarray") else columns, dtype=np.float64)

    # ------------------------------------------------------------------------------------------------------- the scores

    @property
    def measure(self) -> Metric:
        """Metric of all scores."""
        return METRICS[self.metric]

    @cached_property
    def score(self) -> Estimate:
        """Score of the selection, as it is quoted, with its interval."""
        search, sign = self.search, self.measure.sign
        return Estimate(search.corrected_score_, *search.corrected_interval_).times(sign)

    @cached_property
    def predicts(self) -> bool:
        """Whether the selection predicts better than guessing."""
        return not self.search.skill_ <= 0.0  # NaN where the error of guessing is not known

    @cached_property
    def settings(self) -> Array:
        """Places in the search of all sizes, with the ridge that was chosen."""
        n_sizes = len(self.sizes)
        return self.search.best_index_ // n_sizes * n_sizes + np.arange(n_sizes)

    @property
    def out_of_fold(self) -> OutOfFold:
        """Predictions of the test samples of all folds, by all settings of the search."""
        found = self.search.out_of_fold_
        assert found is not None, "scores are metrics of this package"
        return found

    @cached_property
    def predictions(self) -> Outputs:
        """Labels or numbers that were predicted out of fold, by every size."""
        return self.out_of_fold.labels_or_numbers.outputs.of(self.settings)

    @cached_property
    def sizes(self) -> list[int]:
        """Numbers of features that were tried."""
        return [int(size) for size in dict.fromkeys(self.search.cv_results_["n_features_to_select"].tolist())]

    @cached_property
    def scores(self) -> list[Estimate]:
        """Score of every number, with its interval unless that would take long."""
        tested = self.out_of_fold.tested(self.measure)
        if len(tested.samples) * len(self.sizes) <= MOST_RESAMPLED:
            return quoted_score(tested, self.measure, self.settings, self.groups)
        values = self.measure.formula(tested.outputs.of(self.settings), tested.weights[None])[0]
        scores = [Estimate(float(value), math.nan, math.nan) for value in values]
        if self.k in self.sizes:
            scores[self.sizes.index(self.k)] = self.score
        return scores

    @property
    def balanced_accuracy(self) -> Estimate | None:
        """Balanced accuracy of the selection, where classes are of very different sizes; None elsewhere."""
        found = self.search.quoted_scores_.get("balanced_accuracy")
        is_uneven = not self.is_regression and max(self.class_sizes) > 2 * min(self.class_sizes)
        return Estimate(*found) if found and is_uneven and self.metric != "balanced_accuracy" else None

    @cached_property
    def chance(self) -> float:
        """Score without features: the largest class, the shares of the classes, or the mean."""
        n = self.n_samples
        if self.is_regression:
            outputs = Outputs(self.y, 0, numbers=np.full((n, 1, 1), self.y.mean()))
        else:
            shares = np.array(self.class_sizes) / n
            labels = np.full((n, 1), int(shares.argmax()))
            outputs = Outputs(self.codes, len(shares), labels, np.broadcast_to(shares, (n, 1, len(shares))))
        return float(self.measure.formula(outputs, np.ones((1, n)))[0, 0])

    @property
    def chance_name(self) -> str:
        """Name of the guess that has this score."""
        if self.is_regression:
            return "the mean"
        return "the class shares" if self.measure.needs == "probabilities" else "the largest class"

    def confusion(self, size: int) -> Array:
        """Return what share of each class was taken for which, (n_classes, n_classes)."""
        outputs = self.predictions
        assert outputs.labels is not None
        counts = np.zeros((len(self.classes),) * 2)
        np.add.at(counts, (outputs.truth, outputs.labels[:, self.sizes.index(size)]), 1.0)
        return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)

    @cached_property
    def confused(self) -> list[tuple[str, str, str]]:
        """The most frequent confusions at the selected number: the class, what it was predicted as, and its share."""
        shares = self.confusion(self.k)
        np.fill_diagonal(shares, 0.0)
        order = np.argsort(-shares, axis=None, kind="stable")[:MOST_CONFUSED]
        found = zip(*np.unravel_index(order, shares.shape), strict=True)
        return [(self.classes[a], self.classes[b], f"{100.0 * shares[a, b]:.0f} %") for a, b in found if shares[a, b] > 0.0]

    @cached_property
    def core(self) -> list[str]:
        """Features, or the first ones of groups, in all near-optimal panels."""
        found = self.alternatives
        assert found is not None
        return [str(self.names[head]) for head in self._heads(found.counts == found.n_panels)]

    @cached_property
    def optional(self) -> list[tuple[str, str, str]]:
        """Features in some of the near-optimal panels: the name, the share of the panels, and what can replace it."""
        found = self.alternatives
        assert found is not None
        heads = self._heads((found.counts > 0) & (found.counts < found.n_panels))
        replacements = found.replacements()
        rows = []
        for head in heads[np.argsort(-found.counts[heads], kind="stable")].tolist():
            others = [str(self.names[other]) for other in list(replacements.get(head, {}))[:MOST_REPLACEMENTS]]
            rows.append((str(self.names[head]), f"{100.0 * found.counts[head] / found.n_panels:.1f} %", ", ".join(others)))
        return rows

    def _heads(self, mask: Array) -> Array:
        """Return the features of a mask, of groups the first ones."""
        chosen = np.flatnonzero(mask)
        return chosen[np.sort(np.unique(self.search.path_.unit_of[chosen], return_index=True)[1])]

    @property
    def n_repeats(self) -> int:
        """Number of times that every sample was tested."""
        n_tested = sum([len(fold.test) for fold in self.out_of_fold.folds])
        return max(1, round(n_tested / self.n_samples))

    # ------------------------------------------------------------------------------------------------------ the figures

    @cached_property
    def curve(self) -> figures.Chart:
        """Score of each number."""
        scores, is_share = self.scores, self.measure.is_share
        line = figures.Line("", self.sizes, *zip(*scores, strict=True))
        x = figures.Axis(min(self.sizes), max(self.sizes), 62.0, 700.0, f"number of {self.noun}s", n_ticks=10)
        values = [value for score in scores for value in score] + [self.chance]
        y = figures.score_axis(values, is_share=is_share, name=self.measure.title)
        guide = (self.chance, self.chance_name) if y.low <= self.chance <= y.high else None
        return figures.Chart(f"{self.measure.heading} of each number of {self.noun}s", x, y, [line], guide=guide)

    @cached_property
    def heat(self) -> list[tuple[int, list[float]]]:
        """Rows of the heatmap: the place of a feature, and its mean z-score per class; alike ones stand together."""
        values = self.values
        deviation = values.std(axis=0)
        z = (values - values.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
        counts = np.maximum(self.class_sizes, 1)
        means = np.array([z[self.codes == code].sum(axis=0) for code in range(len(counts))]).T / counts
        strongest = np.abs(means).argmax(axis=1)
        is_low = means[np.arange(len(means)), strongest] < 0.0
        order = np.lexsort((np.arange(len(means)), is_low, strongest))
        return [(int(place), means[place].round(2).tolist()) for place in order]

    @cached_property
    def strips(self) -> list[figures.Strip]:
        """Values of each feature of the page by class."""
        if self.is_regression or len(self.classes) > MOST_STRIPS:
            return []
        n_classes = len(self.classes)
        most = max(FEWEST_OF_CLASS, min(MOST_DOTS // (len(self.places) * n_classes), MOST_OF_CLASS))
        return [figures.strip(column, self.codes, n_classes, most) for column in self.values.T]

    @cached_property
    def scatters(self) -> list[figures.Chart]:
        """Of a regression, the target against each feature of the page."""
        if not self.is_regression:
            return []
        most = max(50, min(MOST_DOTS // len(self.places), 300))
        chosen = figures.evenly(np.argsort(self.y, kind="stable"), most)
        y = figures.Axis(float(self.y.min()), float(self.y.max()), 130.0, 24.0, self.target, n_ticks=4)
        return [
            figures.Chart(
                str(name),
                figures.Axis(float(column.min()), float(column.max()), 56.0, 286.0, n_ticks=4),
                y,
                dots=list(zip(column[chosen].tolist(), self.y[chosen].tolist(), strict=True)),
            )
            for name, column in zip(self.shown["feature"], self.values.T, strict=True)
        ]

    @cached_property
    def predicted(self) -> figures.Chart | None:
        """Of a regression, predictions out of fold against measured numbers."""
        outputs = self.predictions
        if not self.is_regression or outputs.numbers is None:
            return None
        chosen = figures.evenly(np.arange(len(outputs.truth) // self.n_repeats), 400)
        numbers = outputs.numbers[chosen, self.sizes.index(self.k), 0]
        dots = list(zip(np.ravel(outputs.truth)[chosen].tolist(), numbers.tolist(), strict=True))
        return figures.square_chart("Predicted against measured", (f"measured {self.target}", "predicted"), dots)

    # ------------------------------------------------------------------------------------------------------- the advice

    def option(self, name: str) -> Any:
        """Return an option of the run, None if it was not given."""
        return self.run.get("options", {}).get(name)

    @property
    def has_few_samples(self) -> bool:
        """Whether scores are hardly more than a guess."""
        return self.n_samples < 30 or (not self.is_regression and min(self.class_sizes) < 5)

    @property
    def has_counts(self) -> bool:
        """Whether the values look like counts, which logarithms would suit."""
        return not self.option("log1p") and looks_like_counts(self.X)

    @property
    def gaps(self) -> list[tuple[str, float]]:
        """Selected features that samples lack, with the share of these samples."""
        return [(name, self.missing[name]) for name in self.features["feature"] if self.missing.get(name)]

    # -------------------------------------------------------------------------------------------------------- the files

    def data(self) -> dict[str, Any]:
        """Return what the script of the page works with."""
        known = {size: score for size, score in zip(self.sizes, self.scores, strict=True) if size <= self.k_shown}
        is_confused = not self.is_regression and len(self.classes) <= MOST_CONFUSED
        x = self.curve.x
        quoted = estimate_text(self.score, is_share=self.measure.is_share)
        return {
            "k": self.k,
            "noun": self.noun,
            "axis": {"low": x.low, "high": x.high, "left": x.start, "right": x.end},
            "score": {
                "name": self.measure.title,
                "quoted": f"{self.measure.title} {quoted}",
                "isShare": self.measure.is_share,
                "of": {size: score.value for size, score in known.items() if math.isfinite(score.value)},
            },
            "confusion": {size: self.confusion(size).round(3).tolist() for size in known} if is_confused else {},
            "panel": None if self.panel is None else self._rules(self.panel),
        }

    def _rules(self, panel: Panel) -> dict[str, Any]:
        """Return the numbers that predict: for the selected size, and others as long as they are few."""
        left, rules = MOST_WEIGHTS, {}
        for rule in sorted(panel.rules, key=lambda each: (each.k != self.k, each.k)):
            left -= len(rule.weights) * len(rule.intercept)
            if rule.k == self.k or (left >= 0 and rule.k <= self.k_shown):
                rules[rule.k] = {name: getattr(rule, name) for name in ("weights", "intercept", "slope", "doubt", "offset")}
        n = max(len(rule["weights"]) for rule in rules.values())
        return {
            "features": panel.features[:n],
            "outputs": panel.targets if panel.classes is None else [str(label) for label in panel.classes],
            "isRegression": panel.classes is None,
            "transform": panel.transform,
            "minimum": panel.columns.minimum[:n],
            "maximum": panel.columns.maximum[:n],
            "rules": rules,
        }

    def sheets(self) -> dict[str, pd.DataFrame]:
        """Return the tables of results.xlsx."""
        import pandas as pd

        model = self.search.model_
        ranked = np.flatnonzero(np.isfinite(model.scores_))
        ranked = ranked[np.argsort(model.ranking_[ranked], kind="stable")]
        columns = {"feature": self.names[ranked], "rank": model.ranking_[ranked], "score": model.scores_[ranked]}
        sheets = {
            "features": self.features,
            "scores": pd.DataFrame({self.noun + "s": self.sizes, **_columns_of(self.scores, self.metric)}),
            "ranking": pd.DataFrame(columns),
        }
        if not self.is_regression:
            shares = pd.DataFrame(self.confusion(self.k), columns=[f"predicted {name}" for name in self.classes])
            shares.insert(0, "class", self.classes)
            sheets["confusion"] = shares
        if self.alternatives is not None:
            panels = self.alternatives.to_frame()
            sheets["alternatives"] = panels.assign(features=[", ".join(map(str, names)) for names in panels["features"]])
        rows = [(section, key, str(value)) for section, values in self.run.items() for key, value in values.items()]
        sheets["run"] = pd.DataFrame(rows, columns=["section", "key", "value"])
        return sheets

    def page(self) -> str:
        """Return report.html."""
        scripts = ("table.js", "figures.js", "predict.js", "slider.js")
        return fill("selection.html", scripts=scripts, data=self.data(), title=self.title, s=self, notes=self.notes)


def _columns_of(scores: Sequence[Estimate], name: str) -> dict[str, list[float]]:
    values, lower, upper = (list(part) for part in zip(*scores, strict=True))
    return {name: values, "lower": lower, "upper": upper}
