"""Jobs for a pass over blocks: several kernels, each with arguments and a combination of its own, on one read of a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from l20fs.blocks.passes import Blocks, Combine, Kernel, extents, in_place


def as_is(result: Any) -> Any:
    """Return a result."""
    return result


class Job(NamedTuple):
    """Kernel with arguments for every block.

    The results of all blocks are combined or, without ``combine``, are a list of those of ``which`` blocks, None for all.
    ``finish`` makes what is asked for of them.
    """

    kernel: Kernel
    own: Sequence[tuple[Any, ...]]
    combine: Combine | None = None
    which: Sequence[int] | None = None
    finish: Callable[[Any], Any] = as_is

    @property
    def places(self) -> Sequence[int]:
        """Numbers of the blocks that it runs on."""
        return range(len(self.own)) if self.which is None else self.which


def run(blocks: Blocks, jobs: Sequence[Job]) -> list[Any]:
    """Run jobs in one pass, and return their results.

    Examples
    --------
    >>> import numpy as np
    >>> from l20fs.blocks.passes import FileBlocks, add_up
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> blocks = FileBlocks(X.shape, X.dtype, 0, np.array([0, 1, 4]), False, X.__getitem__, 2**20, "an array")
    >>> sums, lengths = Job(lambda block: block.sum(axis=0), [(), ()], add_up), Job(len, [(), ()])
    >>> run(blocks, [sums, lengths]), blocks.traffic.n_passes
    ([array([12., 16.]), [1, 3]], 1)
    """
    if len(jobs) > 1:
        return [job.finish(result) for job, result in zip(jobs, _run_several(blocks, jobs), strict=True)]
    return [job.finish(_run_alone(blocks, job)) for job in jobs]


def _run_alone(blocks: Blocks, job: Job) -> Any:
    if job.combine is None:
        return blocks.each(job.kernel, job.own, job.which)
    return blocks.total(job.kernel, job.own, job.combine)


def _run_several(blocks: Blocks, jobs: Sequence[Job]) -> list[Any]:
    work: list[list[Any]] = [[None] * len(jobs) for _ in extents(blocks)]
    own: list[list[Any]] = [[] for _ in work]
    are_lists = all(job.combine is None for job in jobs)
    for number, job in enumerate(jobs):
        for place in job.places:
            work[place][number] = (job.kernel, len(job.own[place]), job.combine is None and not are_lists)
            own[place] += job.own[place]
    arguments = [(kernels, *given) for kernels, given in zip(work, own, strict=True)]
    if are_lists:
        which = [place for place, kernels in enumerate(work) if any(kernels)]
        by_place = dict(zip(which, blocks.each(several, arguments, which), strict=True))
        return [[by_place[place][number] for place in job.places] for number, job in enumerate(jobs)]
    found = blocks.total(several, arguments, Combined([job.combine or join for job in jobs]))
    return [list(result or ()) if job.combine is None else result for job, result in zip(jobs, found, strict=True)]


def several(block: Any, jobs: list[tuple[Kernel, int, bool] | None], *arguments: Any) -> tuple[Any, ...]:
    """Run several kernels, each with its number of arguments; None where there is none. Some become a list of one."""
    results: list[Any] = []
    start = 0
    for job in jobs:
        if job is None:
            results.append(None)
            continue
        kernel, n_arguments, in_list = job
        result = kernel(block, *arguments[start : start + n_arguments])
        results.append((result,) if in_list else result)
        start += n_arguments
    return tuple(results)


def join(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Join lists of results."""
    return left + right


class Combined:
    """Combination of the results of several kernels, each by a function of its own."""

    def __init__(self, combines: list[Combine]) -> None:
        self.combines = combines

    def __call__(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._combine(self.combines, left, right)

    def in_place(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the combination, where possible in the memory of ``left``."""
        return self._combine([in_place(combine) for combine in self.combines], left, right)

    @staticmethod
    def _combine(combines: list[Combine], left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        together = zip(combines, left, right, strict=True)
        return tuple(a if b is None else b if a is None else combine(a, b) for combine, a, b in together)
