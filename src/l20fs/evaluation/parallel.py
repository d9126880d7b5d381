"""Calls side by side: in processes by joblib, or in threads that share the products with X."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import config_context, get_config
from sklearn.utils.parallel import Parallel, delayed

from l20fs.design import Part, pays_to_share, share_samples


def results_of(
    function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> Generator[Any, None, None]:
    """Call a function with each of the arguments and yield the results in order.

    If the generator is closed early, for example by an interrupt, the remaining calls are cancelled without a warning.

    Examples
    --------
    >>> list(results_of(pow, [(2, 3), (3, 2)], n_jobs=1))
    [8, 9]
    """
    calls = (delayed(function)(*given) for given in arguments)
    results = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
    try:
        for result in results:  # noqa: UP028 - `yield from` would close the results before the warning is silenced
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # joblib warns of cancelled calls, which is intended here
            results.close()


def shared_if_faster(X: Any, n_jobs: int | None) -> Any:
    """Return all samples of X as fits share them, or X itself where fits one by one, or in processes, are faster."""
    in_processes = isinstance(X, np.ndarray) and effective_n_jobs(n_jobs) > 1
    return share_samples(X) if pays_to_share(X) and not in_processes else X


def results_together(
    function: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    samples: Part,
    *,
    silence: Callable[[], AbstractContextManager[Any]] = nullcontext,
    beside: Sequence[Callable[[], object]] = (),
) -> Generator[Any, None, None]:
    """Call a function that fits to parts of shared samples with each of the arguments, and yield the results in order.

    As many fits as memory allows walk side by side, and share their products with X; those inside such a fit
    run one after the other. Warnings are silenced for all of them at once, since filters belong to the process and not to a
    thread. Calls ``beside`` them, such as the fit to all samples, walk with the first ones, and their results are dropped.
    """
    if samples.shared.meeting.is_member:
        yield from (function(*given) for given in arguments)
        for other in beside:
            other()
        return
    config = get_config()

    calls: list[Callable[[], Any]] = [partial(_in_config, config, function, *given) for given in arguments]
    others = [partial(_in_config, config, other) for other in beside]
    n_at_once = min(samples.shared.n_at_once, len(calls) + len(others) or 1)
    n_first = max(1, n_at_once - len(others))
    for group in [calls[:n_first], *(calls[start : start + n_at_once] for start in range(n_first, len(calls), n_at_once))]:
        with silence():
            results = samples.shared.together([*group, *others])
        yield from results[: len(group)]
        others = []


def _in_config(config: dict[str, Any], function: Callable[..., Any], *given: Any) -> Any:
    """Call a function in a thread, which starts with scikit-learn's defaults, under the settings of its caller."""
    with config_context(**config):
        return function(*given)
