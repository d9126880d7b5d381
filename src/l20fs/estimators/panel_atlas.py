"""PanelAtlas: all panels that are nearly as good as the best, and what they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from l20fs.inputs.names import Features
from l20fs.text import by_number, counted, joined, small_percent
from l20fs.typing import Array

if TYPE_CHECKING:
    import pandas as pd


class ListedPanel(NamedTuple):
    """One panel of an atlas.

    ``rank`` counts from 1, the best. ``features`` are all its features, ascending, and ``names`` what they are called.
    ``gap`` is how much its ``loss`` is above that of the best, as a share.
    """

    rank: int
    features: Array
    names: list[str]
    loss: float
    gap: float


class Exchanges(NamedTuple):
    """Pairs of panels that differ by one unit, arrays of shape (n_exchanges,).

    Panel ``first`` becomes panel ``second``, a later one, where the unit of feature ``leaves`` makes room for that of
    ``enters``.
    """

    first: Array
    second: Array
    leaves: Array
    enters: Array


@dataclass(frozen=True, eq=False, repr=False)
class PanelAtlas:
    """All panels whose loss is within a share of the best, and what they have in common.

    :meth:`L20Selector.near_optimal <l20fs.L20Selector.near_optimal>` makes it. Features are given by index, and by name
    where they have one. With groups a panel consists of groups, and features that stand alone; the lowest
    feature of a group stands for it.

    Attributes
    ----------
    panels : array of shape (n_listed, k)
        Features of each panel, ascending, the best panel first; of a group, its lowest feature. :meth:`panel` has all
        features of a panel.
    losses : array of shape (n_listed,)
        Loss of each panel, ascending.
    eps : float
        The share that was asked for: panels with a loss of at most ``1 + eps`` times the best are listed.
    n_panels : int
        Number of panels that were found, also where not all of them are listed; the number of all where ``is_complete``.
    is_complete : bool
        Whether it is proved that all panels within ``eps`` were found.
    lower_bound : float
        Proved: every panel that is not listed has at least this loss.
    n_nodes : int
        Number of nodes of the search.
    noise : float
        The difference of losses, as a share, that the samples cannot tell from zero; see docs/panels.md.
    selected_loss : float
        Loss of the features that the selector selects, which may be outside the list.
    counts : array of shape (n_features,)
        Number of found panels that contain each feature.
    is_possible : array of shape (n_features,)
        False for the features that are proved to be in no panel within ``eps``.
    unit_of : array of shape (n_features,)
        Number of the group, or of the single feature, that each feature belongs to.
    feature_names : array of shape (n_features,) or None
        Names of the features, if they have any.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> X = np.random.default_rng(0).standard_normal((60, 5))
    >>> X[:, 4] = X[:, 0] + 0.01 * X[:, 4]
    >>> selector = L20Selector(2, ridge=1.0).fit(X, X[:, 0] + X[:, 1] > 0)
    >>> atlas = selector.near_optimal(eps=0.01)
    >>> atlas
    PanelAtlas(2 panels of 2 features within 1 % of the best, all of them; 1 feature is in every one, 3 are in any)
    >>> atlas.core, atlas.optional, atlas.never
    (array([1]), array([0, 4]), array([2, 3]))
    >>> atlas.replacements()
    {0: {4: 1}, 4: {0: 1}}
    >>> atlas.without([0]).features
    array([1, 4])
    """

    panels: Array
    losses: Array
    eps: float
    n_panels: int
    is_complete: bool
    lower_bound: float
    n_nodes: int
    noise: float
    selected_loss: float
    counts: Array
    is_possible: Array
    unit_of: Array
    feature_names: Array | None = None

    @property
    def best_loss(self) -> float:
        """Loss of the best panel."""
        return float(self.losses[0])

    @property
    def gaps(self) -> Array:
        """Distance of the loss of each panel from that of the best, as a share."""
        return np.maximum(self.losses / self.best_loss - 1.0, 0.0) if self.best_loss else np.zeros_like(self.losses)

    @property
    def k(self) -> int:
        """Number of features, or groups, of a panel."""
        return int(self.panels.shape[1])

    @property
    def proved_eps(self) -> float:
        """The share within which all panels are listed; negative if a better panel than the best is not excluded."""
        return min(self.eps, self.lower_bound / self.best_loss - 1.0) if self.best_loss else self.eps

    @property
    def selected_gap(self) -> float:
        """Distance of the loss of the selector's own features from that of the best panel, as a share."""
        return self.selected_loss / self.best_loss - 1.0 if self.best_loss else 0.0

    @property
    def occurrence(self) -> Array:
        """Share of the found panels that contain each feature."""
        return self.counts / self.n_panels

    @property
    def core(self) -> Array:
        """Features in every found panel."""
        return np.flatnonzero(self.counts == self.n_panels)

    @property
    def optional(self) -> Array:
        """Features in some of the found panels, but not in all."""
        return np.flatnonzero((self.counts > 0) & (self.counts < self.n_panels))

    @property
    def never(self) -> Array:
        """Features that are proved to be in no panel within ``eps``."""
        return np.flatnonzero(~self.is_possible)

    @cached_property
    def exchanges(self) -> Exchanges:
        """Pairs of listed panels that differ by one unit."""
        sharing: dict[bytes, list[tuple[int, int]]] = {}
        for number, panel in enumerate(self.panels):
            for place, feature in enumerate(panel):
                rest = np.delete(panel, place).tobytes()
                sharing.setdefault(rest, []).append((number, int(feature)))
        pairs = sorted(
            (*first, *second)
            for panels in sharing.values()
            for place, first in enumerate(panels)
            for second in panels[place + 1 :]
        )
        columns = np.array(pairs, dtype=np.intp).reshape(-1, 4)
        return Exchanges(columns[:, 0], columns[:, 2], columns[:, 1], columns[:, 3])

    def replacements(self) -> dict[int, dict[int, int]]:
        """Return which features can take the place of each other, with everything else in the panel kept.

        Returns
        -------
        dict of dicts
            ``replacements()[i][j]`` is the number of listed panels with feature i that stay in the list if j takes its
            place. The most frequent replacement comes first.
        """
        pairs = self.exchanges
        both_ways = np.stack([np.append(pairs.leaves, pairs.enters), np.append(pairs.enters, pairs.leaves)], axis=1)
        kinds, numbers = np.unique(both_ways, axis=0, return_counts=True)
        found: dict[int, dict[int, int]] = {}
        for place in np.lexsort((kinds[:, 1], -numbers, kinds[:, 0])):
            leaves, enters = kinds[place].tolist()
            found.setdefault(leaves, {})[enters] = int(numbers[place])
        return found

    def panel(self, number: int) -> ListedPanel:
        """Return one listed panel with all its features.

        Parameters
        ----------
        number : int
            From 0, the best.

        Returns
        -------
        ListedPanel
            Rank, features, names, loss and gap.
        """
        features = self.panels[number]
        if self._has_groups:
            features = np.flatnonzero(np.isin(self.unit_of, self.unit_of[features]))
        return ListedPanel(
            number + 1, features, self.names_of(features), float(self.losses[number]), float(self.gaps[number])
        )

    def totals(self, values: Any, *, others: float = 1.0) -> Array:
        """Add up a value per feature over each listed panel.

        Parameters
        ----------
        values : array of shape (n_features,) or dict of name or index: value
            As the costs of features.
        others : float, default=1.0
            Value of the features that a dict does not name.

        Returns
        -------
        array of shape (n_listed,)
            The sum over all features of each panel.
        """
        by_unit = np.bincount(self.unit_of, weights=self._by_feature(values, others))
        return by_unit[self.unit_of[self.panels]].sum(axis=1)

    def cheapest(self, costs: Any) -> ListedPanel:
        """Return the listed panel with the lowest sum of costs; of equal ones the one with the lowest loss.

        Parameters
        ----------
        costs : array of shape (n_features,) or dict of name or index: cost
            In a dict, features that are not named cost 1.

        Returns
        -------
        ListedPanel
            The cheapest panel.
        """
        return self.panel(_first_smallest(self.totals(costs)))

    def most_stable(self, frequencies: Any) -> ListedPanel:
        """Return the listed panel whose features were selected most often in resamples, on average.

        Parameters
        ----------
        frequencies : StabilitySelector, array of shape (n_features,) or dict of name or index: frequency
            A fitted :class:`~l20fs.StabilitySelector`, or how often each feature was selected.

        Returns
        -------
        ListedPanel
            The panel with the highest mean frequency; of equal ones the one with the lowest loss.
        """
        frequencies = getattr(frequencies, "frequencies_", frequencies)
        ones = np.ones(len(self.counts))
        return self.panel(_first_smallest(-self.totals(frequencies, others=0.0) / self.totals(ones)))

    def without(self, features: Any) -> ListedPanel:
        """Return the best listed panel that contains none of some features.

        Parameters
        ----------
        features : sequence of names or indices, or mask of shape (n_features,)
            Features that must not be in it.

        Returns
        -------
        ListedPanel
            The best such panel.
        """
        return self._first_with(features, n_wanted=0, what="without")

    def containing(self, features: Any) -> ListedPanel:
        """Return the best listed panel that contains all of some features.

        Parameters
        ----------
        features : sequence of names or indices, or mask of shape (n_features,)
            Features that must be in it.

        Returns
        -------
        ListedPanel
            The best such panel.
        """
        return self._first_with(features, n_wanted=None, what="containing")

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the listed panels, best first.

        Returns
        -------
        DataFrame
            Columns ``rank``, ``loss``, ``gap`` and ``features``, a list of names or indices.
        """
        pd = _pandas("to_frame")
        return pd.DataFrame(
            {
                "rank": np.arange(1, len(self.panels) + 1),
                "loss": self.losses,
                "gap": self.gaps,
                "features": [self.panel(number).names for number in range(len(self.panels))],
            }
        )

    def feature_frame(self) -> pd.DataFrame:
        """Return a table of the features that are in any panel, the most frequent first.

        Returns
        -------
        DataFrame
            Columns ``feature``, ``occurrence`` (share of the found panels), ``role`` ("core" or "optional") and
            ``replaced_by`` (the features that can take its place with everything else kept, the most frequent first).
        """
        pd = _pandas("feature_frame")
        heads = self.heads_of(np.flatnonzero(self.counts))
        heads = heads[np.argsort(-self.counts[heads], kind="stable")]
        replacements = self.replacements()
        return pd.DataFrame(
            {
                "feature": self.names_of(heads),
                "occurrence": self.occurrence[heads],
                "role": np.where(self.counts[heads] == self.n_panels, "core", "optional"),
                "replaced_by": [self.names_of(replacements.get(int(head), ())) for head in heads],
            }
        )

    def heads_of(self, features: Array) -> Array:
        """Return one feature of each group, the lowest, and those that stand alone.

        Parameters
        ----------
        features : array of int
            Features, ascending, of groups as a whole.

        Returns
        -------
        array of int
            As many as there are groups and features that stand alone.
        """
        return features[np.sort(np.unique(self.unit_of[features], return_index=True)[1])]

    def names_of(self, features: Iterable[int]) -> list[str]:
        """Return the names of features; their indices where there are no names.

        Parameters
        ----------
        features : iterable of int
            Indices.

        Returns
        -------
        list of str
            One name each.
        """
        return [str(feature if self.feature_names is None else self.feature_names[feature]) for feature in features]

    def __repr__(self) -> str:
        n_core, n_any = len(self.heads_of(self.core)), len(self.heads_of(np.flatnonzero(self.counts)))
        return (
            f"PanelAtlas({counted(self.n_panels, 'panel')} of {counted(self.k, self._noun)} within "
            f"{small_percent(self.eps)} of the best, {self._proved}; {counted(n_core, self._noun)} "
            f"{by_number(n_core, 'is', 'are')} in every one, {n_any} are in any)"
        )

    @property
    def _proved(self) -> str:
        """Statement of the panels that are proved to be listed."""
        if self.is_complete and len(self.panels) == self.n_panels:
            return "all of them"
        which = "all counted" if self.is_complete else "the search was stopped"
        if self.proved_eps > 0.0:
            return f"{which}, all within {small_percent(self.proved_eps)} are listed"
        return f"{which}, no other is better by more than {small_percent(-self.proved_eps)}"

    @property
    def _noun(self) -> str:
        return "feature or group" if self._has_groups else "feature"

    @cached_property
    def _has_groups(self) -> bool:
        return int(self.unit_of.max()) + 1 < len(self.unit_of)

    @property
    def _features(self) -> Features:
        return Features(len(self.counts), self.feature_names)

    def _by_feature(self, values: Any, others: float) -> Array:
        """Return one number per feature."""
        features, found = self._features, np.full(len(self.counts), others)
        if isinstance(values, Mapping):
            found[features.find_all("values", list(values))] = list(values.values())
        else:
            found = np.asarray(features.one_each("values", values), dtype=np.float64)
        if found.shape != self.counts.shape:
            raise ValueError(
                f"{len(found)} values for {len(self.counts)} features. Give one per feature, or a dict of name or index: "
                "value."
            )
        if not np.isfinite(found).all():
            raise ValueError("The values are not all finite. Give a finite number for each feature.")
        return found

    def _first_with(self, features: Any, *, n_wanted: int | None, what: str) -> ListedPanel:
        """Return the first panel with so many of the features, by default with all of them."""
        wanted = self._features.find_all("features", features)
        units = np.unique(self.unit_of[wanted])
        numbers = np.isin(self.unit_of[self.panels], units).sum(axis=1)
        fitting = np.flatnonzero(numbers == (len(units) if n_wanted is None else n_wanted))
        if not len(fitting):
            called = joined([self._features.called(feature) for feature in wanted])
            way = "exclude" if what == "without" else "include"
            is_proved = f"within {small_percent(self.proved_eps)} of the best" if self.proved_eps >= 0.0 else "listed"
            raise ValueError(f"No panel {is_proved} is {what} {called}. Use a larger eps, or fit with {way}.")
        return self.panel(int(fitting[0]))


def _first_smallest(values: Array) -> int:
    """Return the place of the smallest value; of those that are equal up to rounding the first."""
    return int(np.argmax(values <= values.min() + 1e-12 * np.abs(values).max(initial=0.0)))


def _pandas(method: str) -> Any:
    """Import pandas, or raise an error that names the extra."""
    try:
        return import_module("pandas")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"{method}() needs pandas: pip install 'l20fs[pandas]'.") from None
