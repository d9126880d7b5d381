"""Meeting of threads whose requests are answered together."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class computed_once(Generic[Value]):
    """Attribute that is computed when it is first read.

    That of functools has a lock in Python 3.11, which all instances of a class share: two threads of a meeting whose
    attributes ask for something would wait for each other.

    Examples
    --------
    >>> class Square:
    ...     @computed_once
    ...     def area(self) -> int:
    ...         print("once")
    ...         return 4
    >>> square = Square()
    >>> square.area + square.area
    once
    8
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]  # the attribute of the class, for documentation
        value: Value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value


class CancelledError(Exception):
    """Raised in the threads that wait for an answer when another one has failed."""


class Meeting:
    """Threads that wait for one another, so that what they ask for is computed at once.

    A request is answered as soon as all members have asked, or left; those of one round are answered in the order of the
    members, so that the result does not depend on their speed. Who is no member is answered alone and at once.

    Parameters
    ----------
    answer : callable
        Called with a list of requests, returns a list of answers.
    at_once : int, optional
        How many members run at a time between their requests. None: all of them. With many short steps in Python they would
        only wait for the interpreter.
    n_groups : int, default=1
        Into how many groups the members are split, in turn. Each is answered when its own members have asked: while an
        answer is computed for one, the members of another run.

    Examples
    --------
    >>> meeting = Meeting(lambda numbers: [sum(numbers)] * len(numbers))
    >>> meeting.ask(3)
    3
    >>> meeting.together([lambda: meeting.ask(1), lambda: meeting.ask(2)])
    [3, 3]
    """

    def __init__(self, answer: Callable[[list[Any]], list[Any]], at_once: int | None = None, *, n_groups: int = 1) -> None:
        self._answer = answer
        self._n_groups = n_groups
        self._turns = threading.Semaphore(sys.maxsize if at_once is None else at_once)
        self._changed = threading.Condition()
        self._present: set[int] = set()
        self._n_members = 0
        self._requests: dict[int, Any] = {}
        self._answers: dict[int, Any] = {}
        self._last = float("inf")  # members with a higher number are cancelled
        self._here = threading.local()

    @property
    def is_member(self) -> bool:
        """Whether this thread is a member."""
        return getattr(self._here, "number", None) is not None

    @property
    def n_members(self) -> int:
        """Number of members that came, also after some have left: what depends on it must not depend on their speed."""
        return self._n_members

    def ask(self, request: Any) -> Any:
        """Return the answer to a request, which may take until all other members have asked something, too."""
        if not self.is_member:
            return self._answer([request])[0]
        number = self._here.number
        self._turns.release()
        try:
            with self._changed:
                if number <= self._last:
                    self._requests[number] = request
                    self._answer_group_of(number)
                    self._changed.wait_for(lambda: number in self._answers or number > self._last)
                if number > self._last:
                    raise CancelledError
                found = self._answers.pop(number)
        finally:
            self._turns.acquire()
        if isinstance(found, BaseException):
            raise found
        return found

    def _answer_group_of(self, number: int) -> None:
        """Answer the requests of the group of a member if none of its members is missing; others ask meanwhile."""
        group = number % self._n_groups
        numbers = sorted(each for each in self._requests if each % self._n_groups == group)
        if not numbers or len(numbers) < sum(each % self._n_groups == group for each in self._present):
            return
        requests = [self._requests.pop(each) for each in numbers]
        self._changed.release()
        try:
            answers = dict(zip(numbers, self._answer(requests), strict=True))
        except BaseException as error:  # each member has to hear of it
            answers = dict.fromkeys(numbers, error)
        finally:
            self._changed.acquire()
        self._answers.update(answers)
        self._changed.notify_all()

    @contextmanager
    def _membership(self, number: int) -> Iterator[None]:
        self._here.number = number
        self._turns.acquire()
        try:
            yield
        finally:
            self._turns.release()
            with self._changed:
                self._present.discard(number)
                self._answer_group_of(number)

    def _cancel(self, after: int) -> None:
        """Let the members with a higher number fail when they ask next."""
        with self._changed:
            self._last = min(self._last, after)
            for number in [number for number in self._requests if number > after]:
                del self._requests[number]  # nobody waits for its answer
            self._changed.notify_all()

    def together(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run calls in a thread each, as members of the meeting, and return their results.

        If calls fail, the error of the first one is raised, as if they had been run one after the other. So are those of a
        member: its own requests are one of the others' round.
        """
        if self.is_member:
            return [call() for call in calls]
        results: list[Any] = [None] * len(calls)
        errors: dict[int, BaseException] = {}

        def run(number: int) -> None:
            with self._membership(number):
                try:
                    results[number] = calls[number]()
                except BaseException as error:
                    errors[number] = error
                    self._cancel(after=number)

        self._present, self._n_members, self._last = set(range(len(calls))), len(calls), float("inf")
        self._requests, self._answers = {}, {}
        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(calls))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            self._cancel(after=-1)
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise
        finally:
            self._n_members = 0
        if errors:
            raise errors[min(errors)]
        return results
