"""Levels of a feature: in which classes it is high or low, or whether it rises or falls with a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: Share of the differences between class means that a split into two sets of classes has to explain.
ENOUGH = 0.85
#: Digits of the means that count: smaller differences are none.
DIGITS = 2
#: Class means that differ by less are alike: a small effect, in standard deviations.
SMALLEST = 0.2
#: Beyond this all means are equally far away.
LARGEST = 1e6
#: Fewest samples of a class whose mean tells something.
FEWEST = 3
#: Most classes that a text names.
MOST_NAMES = 3


class Level(NamedTuple):
    """Classes, by index, in which a feature is high, or else low; none if it is alike in all of them."""

    is_high: bool
    classes: tuple[int, ...]

    def text(self, names: Sequence[str]) -> str:
        """Write the level.

        Examples
        --------
        >>> Level(False, (1,)).text(["EWS", "NB"]), Level(True, (0, 1, 2, 3)).text("abcdefgh")
        ('low in NB', 'high in a, b, c and 1 more')
        """
        if not self.classes:
            return ""
        n_more = len(self.classes) - MOST_NAMES
        named = ", ".join(names[place] for place in self.classes[:MOST_NAMES])
        return f"{'high' if self.is_high else 'low'} in {named}{f' and {n_more} more' if n_more > 0 else ''}"


def class_level(means: Sequence[float], sizes: Sequence[int] | None = None) -> Level:
    """Return the classes whose means, of standardised values, set them apart from the others.

    These are the fewest classes, the highest or the lowest ones, that explain :data:`ENOUGH` of the sum of squares of the
    class means, as a split of the classes into two sets; where no split does, the one class that explains most. All classes
    count alike. At most half of the classes are named, and of equally good sets the high one: two classes always have one
    in which a feature is high, unless their means differ by less than :data:`SMALLEST`. What is named as high has the
    highest means, what is named as low the lowest.

    Parameters
    ----------
    means : sequence of float
        Mean of each class, of which two decimals count.
    sizes : sequence of int, optional
        Number of samples of each class. The mean of one or two samples is chance: classes with fewer than three are left
        out, if two others remain.

    Examples
    --------
    >>> class_level([-0.4, -1.7, -0.3, 0.1]), class_level([1.1, -0.9, 1.0, -1.2]), class_level([0.2, -1.9])
    (Level(is_high=False, classes=(1,)), Level(is_high=True, classes=(0, 2)), Level(is_high=True, classes=(0,)))
    """
    known = [place for place, size in enumerate(sizes or ()) if size >= FEWEST]
    if 2 <= len(known) < len(means):
        is_high, classes = class_level([means[place] for place in known])
        return Level(is_high, tuple(known[place] for place in classes))
    rounded = [round(min(max(mean, -LARGEST), LARGEST), DIGITS) for mean in means]
    n, centre = len(rounded), sum(rounded) / max(len(rounded), 1)
    total = sum((mean - centre) ** 2 for mean in rounded)
    if n < 2 or round(max(rounded) - min(rounded), DIGITS) < SMALLEST:
        return Level(True, ())
    falling = sorted(range(n), key=lambda place: -rounded[place])  # of equal means the first class comes first
    rising = sorted(range(n), key=lambda place: rounded[place])
    best, explained = Level(True, ()), 0.0
    for size in range(1, n // 2 + 1):
        for is_high, order in ((True, falling), (False, rising)):
            distance = sum(rounded[place] - centre for place in order[:size])
            share = distance**2 * n / (size * (n - size)) / total
            if (size == 1 or share >= ENOUGH) and share > explained * (1.0 + 1e-9):
                best, explained = Level(is_high, tuple(sorted(order[:size]))), share
        if explained >= ENOUGH:
            break
    return best


def trend(correlation: float, target: str) -> str:
    """Write whether a feature rises or falls with a target; nothing where two decimals of the correlation are zero.

    Examples
    --------
    >>> trend(0.41, "age"), trend(-0.2, "age"), trend(0.001, "age")
    ('rises with age', 'falls with age', '')
    """
    shown = round(correlation, DIGITS)
    return f"{'rises' if shown > 0.0 else 'falls'} with {target}" if shown else ""
