"""Driver of walks: generators that ask containers for products, and are sent the answers.

A walk reads as the code of one problem. It *yields* a request and is *sent* the answer:

    images = yield GramRequest(design, rows, combos)

It may yield a list of requests, and is sent a list of answers.

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
class Request:
    """Ask a container for one of its operations: ``"moments"``, ``"exact_products"``, or ``"hold"``."""

    matrix: Matrix
    operation: str
    what: Any

    def asked(self) -> Any:
        return self.what

    def answered(self, found: Any) -> Any:
        return found


@dataclass(frozen=True, slots=True)
class GramRequest:
    """Ask for the products of all features of X~ with combinations of the features ``rows``, or with each (None)."""

    design: Design
    rows: Array
    combos: Array | None = None

    @property
    def matrix(self) -> Matrix:
        return self.design.matrix

    @property
    def operation(self) -> str:
        # What nuisances explain may be many times what they leave: it is taken out of the lines, in float64.
        return "gram" if self.design.shares is None else "exact_products"

    def asked(self) -> Any:
        design = self.design
        return (design.lines if design.shares is None else design.adjusted_lines)(self.rows, self.combos)

    def answered(self, found: Any) -> Any:
        return self.design.scaled(found)


@dataclass(frozen=True, slots=True)
class AmongRequest:
    """Ask for the products of the features ``rows`` of X~ with combinations of themselves, or with each, on the host.

    In float64 if they are wanted ``exactly``, whatever the dtype of X.
    """

    design: Design
    rows: Array
    combos: Array | None = None
    exactly: bool = False

    @property
    def matrix(self) -> Matrix:
        return self.design.matrix

    @property
    def operation(self) -> str:
        if self.design.shares is not None:
            return "hold"  # what nuisances explain is taken out of the columns
        return "exact_among" if self.exactly else "among"

    def asked(self) -> Any:
        return self.rows if self.design.shares is not None else self.design.lines(self.rows, self.combos)

    def answered(self, found: Any) -> Any:
        return self.design.adjusted_among(self.rows, self.combos) if self.design.shares is not None else found


@dataclass(frozen=True, slots=True)
class Fetch:
    """Ask for arrays on the host."""

    place: Place
    arrays: tuple[Any, ...]

    matrix: ClassVar[Any] = None


def run(walks: Iterable[Walk[Any]]) -> list[Any]:
    """Advance walks to their ends and return their results; what they ask for at the same time is answered together.

    Examples
    --------
    >>> from l20fs.design.matrix import ArrayMatrix
    >>> X = ArrayMatrix(np.eye(2), has_intercept=False)
    >>> def walk(line):
    ...     products = yield Request(X, "exact_products", line)
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
            small = [number for number, request in asked.items() if _is_small(request)]
            answers = _answered({number: asked.pop(number) for number in small or list(asked)})
    finally:
        for walk in walking.values():
            walk.close()
    return results


def _is_small(request: Any) -> bool:
    """Return whether a request takes no pass over X, and is answered before those that do."""
    return isinstance(request, Fetch) or (isinstance(request, AmongRequest) and not request.matrix.is_in_blocks)


def _answered(asked: dict[int, Any]) -> dict[int, Any]:
    """Answer requests, those to one container together."""
    lists = {number: request if isinstance(request, list) else [request] for number, request in asked.items()}
    containers: dict[int, list[tuple[int, Any]]] = {}
    for number, requests in lists.items():
        for request in requests:
            containers.setdefault(id(request.matrix), []).append((number, request))
    found: dict[int, list[Any]] = {number: [] for number in asked}
    for each in containers.values():
        for (number, _), answered in zip(each, answer([request for _, request in each]), strict=True):
            found[number].append(answered)
    return {number: own if isinstance(asked[number], list) else own[0] for number, own in found.items()}


def answer(requests: Sequence[Any]) -> list[Any]:
    """Answer requests to one container, those for one operation together."""
    if isinstance(requests[0], Fetch):
        return [tuple(as_numpy(array) for array in request.arrays) for request in requests]
    matrix, operations = requests[0].matrix, dict[str, list[Any]]()
    matrix.hold([each.rows for each in requests if isinstance(each, GramRequest) and each.design.shares is not None])
    for request in requests:
        operations.setdefault(request.operation, []).append(request.asked())
    with np.errstate(over="ignore", invalid="ignore"):  # of moments, and refused when all is known
        answers = {operation: iter(found) for operation, found in matrix.answer(operations).items()}
    return [request.answered(next(answers[request.operation])) for request in requests]


def finish(walk: Walk[T]) -> T:
    """Advance one walk to its end and return its result."""
    result: T = run([walk])[0]
    return result


def in_groups(starts: Sequence[Callable[[], Walk[T]]], n_at_once: int) -> Iterable[T]:
    """Yield the results of walks that are started ``n_at_once`` at a time, in order."""
    for first in range(0, len(starts), n_at_once):
        yield from run(start() for start in starts[first : first + n_at_once])
