"""Small pieces of sentences that the summaries share."""

from __future__ import annotations

from collections.abc import Sequence


def joined(names: Sequence[str]) -> str:
    """Return names as one says them.

    Examples
    --------
    >>> joined(["RFS", "mRMR", "ReliefF"])
    'RFS, mRMR and ReliefF'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def p_text(value: float) -> str:
    """Return a p-value with as many digits as mean something.

    Examples
    --------
    >>> p_text(0.0421), p_text(1e-7)
    ('p = 0.042', 'p < 0.001')
    """
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
