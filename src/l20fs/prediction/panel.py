"""Panel: the selected features with everything that predicts from them, as one JSON file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from l20fs.files import write_atomically
from l20fs.prediction import panel_file
from l20fs.prediction.calibration import Calibration
from l20fs.prediction.linear_rule import LinearRule, decide
from l20fs.prediction.panel_file import Columns, CrossProducts, PanelError, SizeRule
from l20fs.prediction.panel_texts import formula, r_function
from l20fs.prediction.samples import column_names, in_patterns, read_columns, transformed
from l20fs.prediction.substitution import NormalEquations
from l20fs.prediction.training_check import TrainingCheck, check_samples
from l20fs.text import listed
from l20fs.typing import Array


@dataclass(frozen=True)
class Panel:
    """Selected features with the rules that predict from them, for every number of features k up to ``k_max``.

    ``l20fs select`` writes one as ``panel.json``, and ``to_panel`` of a fitted :class:`L20Classifier`,
    :class:`L20Regressor` or :class:`L20SelectorCV` makes one. It predicts with NumPy alone, and holds sums over the training
    samples but none of them.

    Parameters
    ----------
    task : {"classification", "regression"}
        What is predicted.
    targets : list of str
        Name of the label, or of each number that is predicted.
    classes : list of labels or None
        Classes in the order of the probabilities, all of them texts, or all numbers; None for a regression.
    transform : {"none", "log1p"}
        What is done to given values before anything else.
    k : int
        The selected number of features (of groups, where features are selected in groups).
    features : list of str
        Features of the largest k, best first.
    substitutes : list of str
        Features that can replace others.
    columns : Columns
        Mean, deviation, divisor, minimum and maximum in training of the features, then of the substitutes.
    rules : list of SizeRule
        Rule and calibration of each k, in ascending order.
    cross_products : CrossProducts or None
        Sums from which the weights are solved again where features are missing; None for a panel of very many features, and
        where a class has one sample, which its mean would be.
    versions : dict
        Versions of the packages that made the panel.
    data_sha256 : str or None
        SHA-256 of the training data, where known.
    provenance : dict
        Anything else about the origin that JSON can hold.
    replaced : dict
        Of a panel that :meth:`adapted` returned: the substitute of each missing feature, None where there is none.
    format : int
        Version of the file format.
    schema : str
        Mark of a panel file.

    Examples
    --------
    >>> from l20fs import L20Classifier
    >>> from l20fs.data import load_srbct
    >>> train, test = load_srbct(), load_srbct(subset="test")
    >>> panel = L20Classifier(10).fit(train.data, train.target).to_panel(train.data, train.target)
    >>> same = Panel.from_json(panel.to_json())
    >>> same.predict(test.data[:2, [int(name[1:]) for name in same.features]]).tolist()
    ['NB', 'EWS']
    """

    task: Literal["classification", "regression"]
    targets: list[str]
    classes: list[Any] | None
    transform: Literal["none", "log1p"]
    k: int
    features: list[str]
    substitutes: list[str]
    columns: Columns
    rules: list[SizeRule]
    cross_products: CrossProducts | None
    versions: dict[str, str]
    data_sha256: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    replaced: dict[str, str | None] = field(default_factory=dict)
    format: int = panel_file.FORMAT
    schema: str = panel_file.SCHEMA

    def __post_init__(self) -> None:
        panel_file.check_panel(self)

    def __repr__(self) -> str:
        names = self.features_for()
        return f"Panel({self.task} of {listed(self.targets)} by {len(names)} features: {listed(names)})"

    # -------------------------------------------------------------------------------------------------------------- file

    def _stored(self) -> dict[str, Any]:
        """Return what the file holds; records are written as their fields."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the canonical JSON of all fields: names sorted, no spaces, ASCII only."""
        return panel_file.content_hash(self._stored())

    def to_json(self) -> str:
        """Return the text of the file: one line per field; the same panel gives the same text.

        Returns
        -------
        str
            JSON.
        """
        return panel_file.write_text(self._stored())

    @classmethod
    def from_json(cls, text: str | bytes) -> Panel:
        """Read the output of :meth:`to_json`; anything else is a :class:`PanelError`.

        Parameters
        ----------
        text : str or bytes
            JSON.

        Returns
        -------
        Panel
            The panel, after a check of its hash and of every value.
        """
        return panel_file.read_text(text, cls)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the panel to a file, atomically.

        Parameters
        ----------
        file : path
            Name of the file, which is replaced if it exists.
        """
        write_atomically(file, self.to_json())

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Panel:
        """Read a panel from a file that :meth:`save` or ``l20fs select`` wrote; it is JSON, and nothing in it is run.

        Parameters
        ----------
        file : path
            Name of the file.

        Returns
        -------
        Panel
            The panel, after a check of its hash and of every value.
        """
        with open(file, "rb") as stream:
            text = stream.read(panel_file.MOST_BYTES + 1)
        try:
            return cls.from_json(text)
        except PanelError as error:
            raise PanelError(f"{os.fspath(file)!r}: {error}") from None

    # ------------------------------------------------------------------------------------------------------------- sizes

    @property
    def sizes(self) -> list[int]:
        """Numbers of features k for which there is a rule, ascending."""
        return [rule.k for rule in self.rules]

    @property
    def k_max(self) -> int:
        """Largest number of features k."""
        return self.rules[-1].k

    @property
    def ends(self) -> list[int]:
        """Number of features of each of ``sizes``, which differs from k where features are selected in groups."""
        return [len(rule.weights) for rule in self.rules]

    def _rule(self, k: int | None) -> SizeRule:
        k = self.k if k is None else k
        if k in self.sizes and not isinstance(k, bool):
            return self.rules[self.sizes.index(k)]
        first, last = self.sizes[0], self.sizes[-1]
        known = f"{first} to {last}" if len(self.sizes) == last - first + 1 else ", ".join(map(str, self.sizes))
        raise PanelError(f"k={k!r} is not valid: the panel has rules for {known} features.")

    def features_for(self, k: int | None = None) -> list[str]:
        """Return the features of a size, best first: the columns of an X without names.

        Parameters
        ----------
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        list of str
            Names.
        """
        return self.features[: len(self._rule(k).weights)]

    def rule_for(self, k: int | None = None) -> LinearRule:
        """Return the linear rule of a size.

        Parameters
        ----------
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        LinearRule
            Its ``rows`` are places in ``features``; weights and intercepts are in units of the transformed values.
        """
        rule = self._rule(k)
        intercept = [-np.inf if value is None else value for value in rule.intercept]
        return LinearRule(
            np.arange(len(rule.weights)), *(np.array(each, dtype=np.float64) for each in (rule.weights, intercept))
        )

    def calibration_for(self, k: int | None = None) -> Calibration:
        """Return the calibration of the probabilities of a size.

        Parameters
        ----------
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        Calibration
            Slope, doubt and offset.
        """
        self._refuse_numbers("calibration_for")
        rule = self._rule(k)
        return Calibration(float(rule.slope), float(rule.doubt), tuple(map(float, rule.offset)))

    # -------------------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any, k: int | None = None) -> Array:
        """Predict the class, or the numbers, of each sample.

        A value that is NaN is missing: the sample is predicted by the rule on the features that it has, whose weights are
        solved again for them (see :meth:`adapted`). At least one has to be there. Values so large that the sums overflow
        are refused.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), mapping of names to columns, or table such as a DataFrame
            An array has the columns ``features_for(k)`` in this order; of anything with names these are picked.
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_outputs) for several outputs
            Classes, of the type that they had in training, or numbers.
        """
        values = self._values(X, k)
        return _one_if_one(values) if self.classes is None else np.array(self.classes)[decide(values)]

    def decision_function(self, X: Any, k: int | None = None) -> Array:
        """Score the classes.

        Parameters
        ----------
        X : array, mapping or table
            Samples, as for :meth:`predict`.
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes
            The larger, the likelier; of two classes, positive for the second.
        """
        self._refuse_numbers("decision_function")
        return _one_if_one(self._values(X, k))

    def predict_proba(self, X: Any, k: int | None = None) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X : array, mapping or table
            Samples, as for :meth:`predict`.
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes``.
        """
        self._refuse_numbers("predict_proba")
        with np.errstate(over="ignore", invalid="ignore"):
            probabilities = self.calibration_for(k).probabilities(self._values(X, k))
        _refuse_overflow(probabilities)
        return probabilities

    def _refuse_numbers(self, method: str) -> None:
        if self.classes is None:
            raise PanelError(f"{method} is for classes, and this panel predicts numbers. Use predict.")

    def _values(self, X: Any, k: int | None) -> Array:
        """Return the values of the rule, each sample by the rule on the features that it has."""
        features, rule = self.features_for(k), self.rule_for(k)
        columns = transformed(read_columns(X, features), features, self.transform)
        values = np.empty((len(columns), len(rule.intercept)))
        with np.errstate(over="ignore", invalid="ignore"):
            for samples, is_there in in_patterns(~np.isnan(columns)):
                places = np.flatnonzero(is_there)
                if not len(places):
                    raise PanelError(
                        f"Sample {samples[0]} has none of the {len(features)} features of the panel. Leave it out."
                    )
                own = rule if is_there.all() else self._equations.rule_on(places)
                values[samples] = own.apply(columns[np.ix_(samples, places)])
        _refuse_overflow(values[:, np.isfinite(rule.intercept)])
        return values

    # -------------------------------------------------------------------------------------------------- missing features

    @cached_property
    def _equations(self) -> NormalEquations:
        if self.cross_products is None:
            raise PanelError(
                "The panel stores no cross-products of its features, so that no rule without some of them can be solved. "
                "Give all features."
            )
        return NormalEquations(self.cross_products, self.columns)

    def adapted(self, available: Any, k: int | None = None) -> Panel:
        """Return the panel for samples in which some of its features were not measured.

        The features that are there stay; as many substitutes as features are missing are added, as far as they are
        available, each the one that lowers the loss of least squares in training most. Features of rank above k count as
        substitutes, too. The weights are those of a fit to the same training samples with these features, solved from the
        stored cross-products. The calibration and the limit of the distance are those of the same k with all its features:
        with fewer or weaker features the probabilities may be somewhat overconfident.

        Parameters
        ----------
        available : iterable of str, mapping or table
            Names of the features that are there, or samples with named columns.
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        Panel
            A panel of this one size; ``replaced`` has the substitute of each missing feature, or None. With all features
            there, it predicts the same to the last digit.
        """
        rule, features = self._rule(k), self.features_for(k)
        columns = column_names(available)
        if columns is None and (isinstance(available, str) or not isinstance(available, Iterable)):
            raise PanelError(f"available={available!r} holds no names of features. Give a list of them, or a table.")
        names, everything = set(map(str, available if columns is None else columns)), self.features + self.substitutes
        there = [place for place, name in enumerate(everything) if name in names]
        missing = [place for place in range(len(features)) if place not in there]
        if not missing:
            return replace(self, k=rule.k)
        places, substitute_of = self._equations.replace(there, len(features), missing)
        if not places:
            raise PanelError(
                f"None of the {len(features)} features of the panel is there, and none of their substitutes "
                f"({listed(self.substitutes)}). The panel needs at least one."
            )
        solved = self._equations.rule_on(places)
        rest = [place for place in range(len(everything)) if place not in {*places, *missing}]
        order = places + rest
        replaced = {everything[a]: None if b is None else everything[b] for a, b in substitute_of.items()}
        assert self.cross_products is not None
        return replace(
            self,
            k=rule.k,
            features=[everything[place] for place in places],
            substitutes=[everything[place] for place in rest],
            columns=self.columns.take(order),
            rules=[replace(rule, weights=solved.weights.tolist(), intercept=finite_or_none(solved.intercept))],
            cross_products=self.cross_products.take(order),
            replaced=self.replaced | replaced,
        )

    # ------------------------------------------------------------------------------------------------------ new samples

    def check(self, X: Any, k: int | None = None) -> TrainingCheck:
        """Say for each sample what lies outside the training data.

        Three things are looked at: features without a value; values beyond the smallest or largest one in training by more
        than a tenth of their difference; and the mean squared distance to the nearest class mean, in deviations within the
        classes (for a regression, to the mean in whole deviations), against the 99 % quantile of that distance of training
        samples to their own class, each left out of its class mean. So one of a hundred samples like those in training is
        called far. The distance takes features one by one, without their correlation. A sample without any remark may still
        be of a class that was not in training, and one with a remark may be predicted correctly.

        Parameters
        ----------
        X : array, mapping or table
            Samples, as for :meth:`predict`, but any features may be missing as long as one column is there.
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        TrainingCheck
            Lists and arrays with one entry per sample.
        """
        features = self.features_for(k)
        given = read_columns(X, features, keep_missing=True)
        scatter = None if self.cross_products is None else self._equations.scatter
        # The limit is that of distances to the classes, which are known by the cross-products alone.
        limit = None if scatter is None and self.classes is not None else self._rule(k).farthest
        return check_samples(given, features, self.transform, self.columns, scatter, limit)

    # ------------------------------------------------------------------------------------------------------------- texts

    def to_r(self, k: int | None = None) -> str:
        """Return a function in R, ``predict_panel(X)``, that predicts what :meth:`predict` and :meth:`predict_proba` do.

        It needs base R alone, and all features of every sample.

        Parameters
        ----------
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        str
            R code, in ASCII; names are quoted, so that none of them can become code.
        """
        return r_function(self, k)

    def formula(self, k: int | None = None) -> str:
        """Return the rule as a formula in plain text, with all digits.

        Parameters
        ----------
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        str
            One equation per line.
        """
        return formula(self, k)

    def to_onnx(self, k: int | None = None) -> Any:
        """Return the rule of a size as an ONNX model, which any ONNX runtime predicts with, in double precision.

        Its input ``X`` (n_samples, n_features) has the columns ``features_for(k)`` in this order, in the units of
        :meth:`predict`. The outputs are ``label`` and ``probabilities``, or ``variable`` (n_samples, n_outputs) for numbers.
        Nothing is solved again for missing values: a sample with a NaN has NaN everywhere and an empty label (the
        first one, where labels are numbers). The metadata have the hash of this panel, and the names of features, classes
        and targets as JSON.

        Parameters
        ----------
        k : int, optional
            Number of features; that of the selection by default.

        Returns
        -------
        onnx.ModelProto
            The model, for ``onnx.save``.

        Raises
        ------
        ModuleNotFoundError
            If the package onnx is not installed, which the extra ``onnx`` brings.
        """
        from l20fs.prediction.onnx import to_onnx

        return to_onnx(self, k)


def _one_if_one(values: Array) -> Array:
    """Return a vector of values where there is one per sample."""
    return values[:, 0] if values.shape[1] == 1 else values


def finite_or_none(values: Array) -> list[float | None]:
    """Return numbers for JSON: the intercept of a class that is never predicted, minus infinity, is None."""
    return [None if value == -np.inf else value for value in values.tolist()]


def _refuse_overflow(values: Array) -> None:
    is_over = ~np.isfinite(values).all(axis=1)
    if is_over.any():
        raise PanelError(
            f"Sample {is_over.argmax()} has values that are too large to predict with. Give the units of the training data."
        )
