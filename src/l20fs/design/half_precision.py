r"""Products with a float32 matrix on the tensor cores of a GPU, as exact as those in float32.

A number of float32 is :math:`x = h + r + e`: h is x rounded to half precision, 11 digits, and r is what this takes away,
rounded likewise. Then :math:`|r| \le 2^{-11} |x|` and :math:`|e| \le 2^{-23} |x|`. Of the product of two such numbers
:math:`h h' + h r' + r h'` is computed: a product of halves has 22 digits and is exact in float32, and

.. math:: |x x' - (h h' + h r' + r h')| \le |r r'| + |e x'| + |x e'| + \ldots \le 2^{-21} |x x'|.

A sum of n products in float32 may be wrong by :math:`n 2^{-24} \sum |x x'|`, whatever its order; halves add to this what
eight samples would add. What remains is how sums are rounded. Tensor cores cut digits off where other units round, hence
only the sums of 64 samples are left to them, and these are added up in float32: on the whole the error is below that of
float32 products of CUDA (``benchmarks/gpu.py`` prints both).

Half precision has few exponents. A line is multiplied by a power of two that makes its largest number about 1000, and a
column by one that makes its root mean square about 1, which is exact; no number of a column is above the root of n then.
Numbers below :math:`2^{-14}` in these units lose digits: r, in units of 1/2048, is still exact to :math:`2^{-36}`, far below
the last digit of the length of the line or of the column.

Three products at ten times the speed: one with up to 32 vectors takes as long as a read of the matrix. This needs torch with
Triton, and a GPU on which it was measured; everywhere else :func:`half_product` is None.
"""

from __future__ import annotations

from typing import Any

try:
    import torch
    import triton
    import triton.language as tl
except ImportError:  # pragma: no cover - there is no GPU then, either
    triton = None

#: Compute capability from which this is faster than float32 by far; a benchmark tells (benchmarks/gpu.py).
LEAST_CAPABILITY = (9, 0)

#: What is left of a number is stored in these units.
REST = 2048.0

#: Largest power of two of the deviation of a column, or its inverse.
LARGEST_EXPONENT = 100

#: Samples whose products are added up on tensor cores.
DEPTH = 64

#: Features and lines of a block, warps and stages of loading, by the number of lines up to which they are best.
BLOCKS = {16: (128, 16, 4, 3), 32: (128, 32, 4, 3), 64: (128, 64, 4, 2), 1 << 30: (128, 128, 8, 3)}


class HalfProduct:
    """Product of lines with a matrix whose columns are divided by their scale.

    Parameters
    ----------
    base : tensor of shape (n_samples, n_features)
        In float32, with its rows next to each other.
    deviations : tensor of shape (n_features,)
        Root mean squares of the columns, up to a factor of about 2; 0 for those that are left out.
    inverse : tensor of shape (n_features,)
        Factors of the columns.
    """

    def __init__(self, base: Any, deviations: Any, inverse: Any) -> None:
        exponents = torch.frexp(deviations)[1]
        self._base = base
        self._units = power_of_two(-exponents) * (deviations > 0.0)
        self._factors = inverse * power_of_two(exponents)

    def __call__(self, lines: Any, *, squared: bool = False) -> Any:
        """Return ``lines @ base * inverse``, (n_lines, n_features), or with the squares of ``base * inverse``."""
        (n_samples, n_features), n_lines = self._base.shape, lines.shape[0]
        # In units of the root mean square a number is at most the root of n; half precision ends at 2**16.
        smaller = 2.0 ** -max(0, n_samples.bit_length() - 15) if squared else 1.0
        factors = torch.square(self._factors) / smaller if squared else self._factors
        lines = lines.to(torch.float32)
        exponents = torch.frexp(torch.amax(torch.abs(lines), dim=1))[1].clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT) - 10
        high, rest = split(lines * power_of_two(-exponents)[:, None])
        found = torch.empty((n_lines, n_features), dtype=torch.float32, device=lines.device)
        width, height, n_warps, n_stages = next(block for most, block in BLOCKS.items() if n_lines <= most)
        grid = (-(-n_lines // height), -(-n_features // width))
        with torch.cuda.device_of(lines):
            _multiply[grid](
                *(self._base, high, rest, self._units, factors, power_of_two(exponents), found, 1.0, smaller),
                *(n_samples, n_features, n_lines, self._base.stride(0), width, height, DEPTH, squared),
                num_warps=n_warps,
                num_stages=n_stages,
            )
        return found


def half_product(base: Any, deviations: Any, inverse: Any) -> HalfProduct | None:
    """Return the product with a matrix on the tensor cores; None where they would not be faster, or less exact."""
    if triton is None or base.device.type != "cuda" or base.dtype != torch.float32 or base.stride(1) != 1:
        return None
    if torch.cuda.get_device_capability(base.device) < LEAST_CAPABILITY:
        return None
    exponents = torch.frexp(torch.where(deviations > 0.0, deviations, 1.0))[1]
    if int(torch.amax(torch.abs(exponents))) > LARGEST_EXPONENT:
        return None
    n_few = 16 + base.shape[1] % 16  # as many as the kernel for all features is compiled for
    try:  # it is compiled here: without a compiler, or a place for what it writes, torch multiplies
        HalfProduct(base[:, :n_few], deviations[:n_few], inverse[:n_few])(base.new_ones((1, base.shape[0])))
    except Exception:  # whatever Triton raises
        return None
    return HalfProduct(base, deviations, inverse)


def power_of_two(exponents: Any) -> Any:
    """Return powers of two in float32, exact for exponents from -126 to 127."""
    return ((exponents.to(torch.int32) + 127) << 23).view(torch.float32)


def split(values: Any) -> tuple[Any, Any]:
    """Return values in half precision, and what is left of them in units of 1/2048."""
    high = values.to(torch.float16)
    return high, ((values - high) * REST).to(torch.float16)


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _multiply(  # type: ignore[no-untyped-def]
        base, high, rest, units, factors, sizes, found, one, smaller,
        n_samples, n_features, n_lines, stride,
        WIDTH: tl.constexpr, HEIGHT: tl.constexpr, DEPTH: tl.constexpr, SQUARED: tl.constexpr,
    ):  # fmt: skip
        lines = tl.program_id(0) * HEIGHT + tl.arange(0, HEIGHT)
        features = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
        is_line, is_feature = lines < n_lines, features < n_features
        unit = tl.load(units + features, mask=is_feature, other=0.0)
        total = tl.zeros((HEIGHT, WIDTH), tl.float32)
        small = tl.zeros((HEIGHT, WIDTH), tl.float32)
        for start in range(0, n_samples, DEPTH):
            samples = start + tl.arange(0, DEPTH)
            is_sample = samples < n_samples
            there = samples[:, None].to(tl.int64) * stride + features[None, :]
            x = tl.load(base + there, mask=is_sample[:, None] & is_feature[None, :], other=0.0) * unit[None, :]
            if SQUARED:
                x = x * x * smaller
            x_high = x.to(tl.float16)
            x_rest = ((x - x_high.to(tl.float32)) * 2048.0).to(tl.float16)  # as split does it
            place = lines[:, None].to(tl.int64) * n_samples + samples[None, :]
            is_there = is_line[:, None] & is_sample[None, :]
            r_high = tl.load(high + place, mask=is_there, other=0.0)
            r_rest = tl.load(rest + place, mask=is_there, other=0.0)
            small = tl.dot(r_high, x_rest, small)
            small = tl.dot(r_rest, x_high, small)
            total += tl.dot(r_high, x_high) * one  # a factor that is not known to be 1: else this is added up inside
        total = (total + small * (1.0 / 2048.0)) * tl.load(sizes + lines, mask=is_line, other=0.0)[:, None]
        total = total * tl.load(factors + features, mask=is_feature, other=0.0)[None, :]
        there = lines[:, None].to(tl.int64) * n_features + features[None, :]
        tl.store(found + there, total, mask=is_line[:, None] & is_feature[None, :])
