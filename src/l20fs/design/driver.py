"""Driver of walks: generators that ask containers for products, and are sent the answers.

A walk reads as the code of one problem. It *yields* a request and is *sent* the answer:

    images = yield GramRequest(design, rows, combos)

:func:`run` advances many walks, and answers what they wait for at the same time with one product. Requests for little, which
need no pass over X, are answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from l20fs.design.matrix import Matrix
from l20fs.inputs.devices import Place, as_numpy
from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.design.standardised import Design

T = TypeVar("T")

#: Generator that yields requests and is sent their answers.
Walk: TypeAlias = Generator[Any, Any, T]


@dataclass(frozen=True, slots=True)
class MomentsRequest:
    """Ask for the weighted sums, and sums of squares, of all columns of V."""

    matrix: Matrix
    weights: Any

    is_small: ClassVar[bool] = False

    @staticmethod
    def answer(matrix: Matrix, requests: Sequence[MomentsRequest]) -> list[Any]:
        with np.errstate(over="ignore", invalid="ignore"):  # refused when all is known
            return matrix.moments([request.weights for request in requests])


@dataclass(frozen=True, slots=True)
class ProductsRequest:
    """Ask for the products of all columns of V with lines over the samples, which are where V is."""

    matrix: Matrix
    lines: Any
    exactly: bool = False

    is_small: ClassVar[bool] = False

    @staticmethod
    def answer(matrix: Matrix, requests: Sequence[ProductsRequest]) -> list[Any]:
        exactly = any(request.exactly for request in requests)
        if len(requests) == 1:
            return [matrix.products(requests[0].lines, exactly=exactly)]
        found = matrix.products(matrix.place.xp.concat([request.lines for request in requests]), exactly=exactly)
        ends = np.cumsum([request.lines.shape[0] for request in requests])
        return [found[start:end, :] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


@dataclass(frozen=True, slots=True)
class GramRequest:
    """Ask for the products of all features of X~ with combinations of the features ``rows``, or with each (None)."""

    design: Design
    rows: Array
    combos: Array | None = None

    is_small: ClassVar[bool] = False

    @property
    def matrix(self) -> Matrix:
        return self.design.matrix

    @staticmethod
    def answer(matrix: Matrix, requests: Sequence[GramRequest]) -> list[Any]:
        if any(request.design.shares is not None for request in requests):
            # What nuisances explain may be many times what they leave: it is taken out of the lines, in float64.
            matrix.hold([request.rows for request in requests])
            lines = [request.design.adjusted_lines(request.rows, request.combos) for request in requests]
            found = ProductsRequest.answer(matrix, [ProductsRequest(matrix, each, exactly=True) for each in lines])
        else:
            found = matrix.gram([request.design.lines(request.rows, request.combos) for request in requests])
        return [request.design.scaled(products) for request, products in zip(requests, found, strict=True)]


@dataclass(frozen=True, slots=True)
class AmongRequest:
    """Ask for the products of the features ``rows`` of X~ with combinations of themselves, or with each, on the host."""

    design: Design
    rows: Array
    combos: Array | None = None
    exactly: bool = False

    is_small: ClassVar[bool] = True

    @property
    def matrix(self) -> Matrix:
        return self.design.matrix

    @staticmethod
    def answer(matrix: Matrix, requests: Sequence[AmongRequest]) -> list[Any]:
        matrix.hold([request.rows for request in requests])
        return [request.design.among(request.rows, request.combos, exactly=request.exactly) for request in requests]


@dataclass(frozen=True, slots=True)
class ColumnsRequest:
    """Ask a container for columns that are read next, which X in blocks holds until others are asked for."""

    matrix: Matrix
    rows: Array

    is_small: ClassVar[bool] = False

    @staticmethod
    def answer(matrix: Matrix, requests: Sequence[ColumnsRequest]) -> list[None]:
        matrix.hold([request.rows for request in requests])
        return [None] * len(requests)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Ask for arrays on the host."""

    place: Place
    arrays: tuple[Any, ...]

    is_small: ClassVar[bool] = True
    matrix: ClassVar[Any] = None

    @staticmethod
    def answer(matrix: Any, requests: Sequence[Fetch]) -> list[Any]:
        return [tuple(as_numpy(array) for array in request.arrays) for request in requests]


def run(walks: Iterable[Walk[Any]]) -> list[Any]:
    """Advance walks to their ends and return their results; what they ask for at the same time is answered together.

    Examples
    --------
    >>> from l20fs.design.matrix import ArrayMatrix
    >>> X = ArrayMatrix(np.eye(2), has_intercept=False)
    >>> def walk(line):
    ...     products = yield ProductsRequest(X, line)
    ...     return products.tolist()
    >>> run([walk(np.array([[1.0, 2.0]])), walk(np.array([[3.0, 4.0]]))])
    [[[1.0, 2.0]], [[3.0, 4.0]]]
    """
    walking = dict(enumerate(walks))
    results: list[Any] = [None] * len(walking)
    answers: dict[int, Any] = dict.fromkeys(walking)
    asked: dict[int, Any] = {}
    try:
        while walking:
            for number, answer in answers.items():
                try:
                    asked[number] = walking[number].send(answer)
                except StopIteration as end:
                    results[number] = end.value
                    del walking[number]
            small = [number for number, request in asked.items() if request.is_small]
            answers = _answered({number: asked.pop(number) for number in small or list(asked)})
    finally:
        for walk in walking.values():
            walk.close()
    return results


def _answered(requests: dict[int, Any]) -> dict[int, Any]:
    """Answer requests, those of one kind to one container together."""
    kinds: dict[Any, list[int]] = {}
    for number, request in requests.items():
        kinds.setdefault((type(request), id(request.matrix)), []).append(number)
    found: dict[int, Any] = {}
    for (kind, _), numbers in kinds.items():
        own = [requests[number] for number in numbers]
        found.update(zip(numbers, kind.answer(own[0].matrix, own), strict=True))
    return found


def finish(walk: Walk[T]) -> T:
    """Advance one walk to its end and return its result."""
    result: T = run([walk])[0]
    return result


def in_groups(starts: Sequence[Callable[[], Walk[T]]], n_at_once: int) -> Iterable[T]:
    """Yield the results of walks that are started ``n_at_once`` at a time, in order."""
    for first in range(0, len(starts), n_at_once):
        yield from run(start() for start in starts[first : first + n_at_once])
