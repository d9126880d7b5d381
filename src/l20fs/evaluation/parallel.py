"""Fits side by side: walks that share the products with X, or calls in processes by joblib."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from l20fs.design import Part, Walk, in_groups, problems_at_once, share_samples


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


def shared_unless_in_processes(X: Any, n_jobs: int | None) -> Any:
    """Return all samples of X as fits share them, or an X in memory itself for fits in processes."""
    in_processes = effective_n_jobs(n_jobs) > 1 and (isinstance(X, np.ndarray) or sp.issparse(X))
    return X if in_processes else share_samples(X)


def walks_of(
    starts: Sequence[Callable[[], Walk[Any]]], samples: Part, n_targets: int, n_rows: int, *, n_dropped: int = 0
) -> Generator[Any, None, None]:
    """Yield the results of fits to parts of shared samples but those of the first ``n_dropped``, in order.

    As many as memory allows walk side by side, with weights of ``n_targets`` times ``n_rows``.
    """
    results = in_groups(starts, problems_at_once(samples.shape[1], n_targets, n_rows))
    yield from islice(results, n_dropped, None)
