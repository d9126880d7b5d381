"""Parallel calls by joblib."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable
from typing import Any

from sklearn.utils.parallel import Parallel, delayed


def results_of(
    function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], n_jobs: int | None, *, in_order: bool = True
) -> Generator[Any, None, None]:
    """Call a function with each of the arguments and yield the results, in order or as completed.

    If the generator is closed early, for example by an interrupt, the remaining calls are cancelled without a warning.

    Examples
    --------
    >>> list(results_of(pow, [(2, 3), (3, 2)], n_jobs=1))
    [8, 9]
    """
    calls = (delayed(function)(*given) for given in arguments)
    results = Parallel(n_jobs=n_jobs, return_as="generator" if in_order else "generator_unordered")(calls)
    try:
        for result in results:  # noqa: UP028 - `yield from` would close the results before the warning is silenced
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # joblib warns of cancelled calls, which is intended here
            results.close()
