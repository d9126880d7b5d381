"""Meeting: requests of several threads are answered together, whatever their speed, and nobody waits for ever."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from l20fs.design.meeting import CancelledError, Meeting, computed_once

#: Seconds after which a thread counts as stuck; no test waits so long unless it fails.
STUCK = 60.0


def within_time(function):
    """Return the result of a function that must not wait for ever, or raise its error."""
    found = []

    def run():
        try:
            found.append((function(), None))
        except BaseException as error:
            found.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(STUCK)
    assert not thread.is_alive(), "threads wait for one another"
    [(result, error)] = found
    if error is not None:
        raise error
    return result


class Rounds:
    """Answer that adds up the requests of a round, and remembers them."""

    def __init__(self):
        self.asked = []

    def __call__(self, requests):
        self.asked.append(requests)
        return [sum(requests)] * len(requests)


def test_who_is_no_member_is_answered_alone():
    rounds = Rounds()
    meeting = Meeting(rounds)
    assert (meeting.ask(3), meeting.ask(4), meeting.is_member, meeting.n_members) == (3, 4, False, 0)
    assert rounds.asked == [[3], [4]]


@pytest.mark.parametrize("at_once", [None, 1, 2])
def test_answers_do_not_depend_on_speed(at_once):
    rounds = Rounds()
    meeting = Meeting(rounds, at_once)
    is_next = [threading.Event() for _ in range(5)]
    is_next[-1].set()

    def call(number):
        if at_once is None:  # the last member asks first
            is_next[number].wait(STUCK)
            is_next[number - 1].set()
        return [meeting.ask(10**number), meeting.ask(2 * 10**number), meeting.is_member, meeting.n_members]

    calls = [partial(call, number) for number in range(5)]
    assert within_time(lambda: meeting.together(calls)) == [[11111, 22222, True, 5]] * 5
    assert rounds.asked == [[1, 10, 100, 1000, 10000], [2, 20, 200, 2000, 20000]]
    assert (meeting.is_member, meeting.n_members) == (False, 0)


def test_groups_are_answered_each_for_itself_while_the_other_runs():
    asked, other_runs = [], threading.Event()

    def answer(requests):
        asked.append(requests)
        if requests[0] == 1:  # the first group waits for a step of the second
            assert other_runs.wait(STUCK), "nobody runs while an answer is computed"
        return [sum(requests)] * len(requests)

    meeting = Meeting(answer, 1, n_groups=2)

    def call(number):
        first = meeting.ask(10**number)
        if number == 3:
            other_runs.set()
        return [first, meeting.ask(2 * 10**number)]

    found = within_time(lambda: meeting.together([partial(call, number) for number in range(5)]))
    assert found == [[10101, 20202], [1010, 2020]] * 2 + [[10101, 20202]]
    assert sorted(asked) == [[1, 100, 10000], [2, 200, 20000], [10, 1000], [20, 2000]]


def test_members_that_leave_are_not_waited_for():
    rounds = Rounds()
    meeting = Meeting(rounds)

    def call(number):
        answers = [meeting.ask(1) for _ in range(number)]
        return [*answers, meeting.n_members]

    found = within_time(lambda: meeting.together([partial(call, number) for number in (0, 1, 3)]))
    assert found == [[3], [2, 3], [2, 1, 1, 3]]
    assert [len(asked) for asked in rounds.asked] == [2, 1, 1]
    assert within_time(lambda: meeting.together([])) == []


def test_the_error_of_the_first_call_is_raised_and_those_behind_it_are_cancelled():
    rounds, ended = Rounds(), {}
    meeting = Meeting(rounds)
    has_failed = threading.Event()

    def fine():
        has_failed.wait(STUCK)
        return [meeting.ask(1) for _ in range(3)]

    def fail(message, *, first):
        if not first:
            has_failed.wait(STUCK)
        has_failed.set()
        raise ValueError(message)

    def endless(number):
        try:
            while True:
                meeting.ask(100)
        except CancelledError:
            ended[number] = True
            raise

    calls = [fine, partial(fail, "early", first=False), partial(fail, "late", first=True)]
    calls += [partial(endless, 3), partial(endless, 4)]
    with pytest.raises(ValueError, match="early"):
        within_time(lambda: meeting.together(calls))
    assert ended == {3: True, 4: True}
    assert rounds.asked[-1] == [1], "a call before the one that failed goes on to its end"
    assert all(100 not in asked for asked in rounds.asked), "the requests of cancelled calls are not computed"
    assert within_time(lambda: meeting.together([lambda: meeting.ask(1)] * 2)) == [2, 2]


def test_a_failed_answer_is_heard_by_all():
    def answer(requests):
        raise OSError(f"{len(requests)} requests")

    meeting = Meeting(answer)
    with pytest.raises(OSError, match="3 requests"):
        within_time(lambda: meeting.together([lambda: meeting.ask(0)] * 3))
    with pytest.raises(ValueError, match="zip"):  # too few answers
        within_time(lambda: (short := Meeting(lambda requests: requests[1:])).together([lambda: short.ask(0)] * 2))


def test_a_call_may_go_on_after_an_error_that_it_catches():
    meeting = Meeting(Rounds())

    def call():
        try:
            meeting.ask("no number")
        except TypeError:
            return meeting.ask(2)

    assert within_time(lambda: meeting.together([call, call])) == [4, 4]


def test_calls_inside_a_call_run_one_after_the_other():
    rounds = Rounds()
    meeting = Meeting(rounds)

    def nested():
        return meeting.together([lambda: meeting.ask(1), lambda: meeting.ask(2)])

    assert within_time(lambda: meeting.together([nested, nested])) == [[2, 4], [2, 4]]
    assert rounds.asked == [[1, 1], [2, 2]]


@pytest.mark.parametrize("n_members", [1, 3])
def test_an_interrupt_ends_all_calls(n_members, monkeypatch):
    """A signal is raised where the main thread waits, and each call ends at its next request."""
    meeting = Meeting(Rounds())
    has_begun, join = threading.Event(), threading.Thread.join
    ended = []

    def endless():
        try:
            while True:
                meeting.ask(1)
                has_begun.set()
        except CancelledError:
            ended.append(1)
            raise

    def interrupted(thread, timeout=None):
        if timeout is None:
            monkeypatch.setattr(threading.Thread, "join", join)
            assert has_begun.wait(STUCK)
            raise KeyboardInterrupt
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        within_time(lambda: meeting.together([endless] * n_members))
    assert ended == [1] * n_members
    assert within_time(lambda: meeting.together([lambda: meeting.ask(1)] * 2)) == [2, 2]


def test_a_thread_that_cannot_start_ends_the_others(monkeypatch):
    meeting, start = Meeting(Rounds()), threading.Thread.start
    started = []

    def refuse_the_third(thread):
        started.append(thread)
        if len(started) == 4:  # the first one keeps the time
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_the_third)
    with pytest.raises(RuntimeError, match="can't start"):
        within_time(lambda: meeting.together([lambda: meeting.ask(1)] * 3))


def test_an_attribute_is_computed_once_per_object():
    class Doubled:
        def __init__(self, number):
            self.number, self.n_calls = number, 0

        @computed_once
        def value(self):
            """Twice the number."""
            self.n_calls += 1
            return 2 * self.number

    one, other = Doubled(1), Doubled(2)
    assert (one.value, one.value, other.value, one.n_calls, other.n_calls) == (2, 2, 4, 1, 1)
    assert Doubled.value.__doc__ == "Twice the number."
    del one.value
    one.number = 5
    assert one.value == 10


def test_attributes_that_ask_do_not_wait_for_one_another():
    meeting = Meeting(Rounds())

    class Asking:
        @computed_once
        def value(self):
            return meeting.ask(1)

    assert within_time(lambda: meeting.together([lambda: Asking().value] * 3)) == [3, 3, 3]
