"""Products in halves of numbers: on the host with a twin of the kernel, on a GPU with the kernel itself."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="halves of numbers are made by torch")

from l20fs.design import device, half_precision, make_design  # noqa: E402
from l20fs.design.half_precision import LARGEST_EXPONENT, REST, HalfProduct, half_product, power_of_two, split  # noqa: E402


def test_the_halves_of_a_number_leave_less_than_its_last_digit():
    random = np.random.default_rng(0)
    values = (random.uniform(1.0, 2.0, 20_000) * 2.0 ** random.integers(-13, 15, 20_000)).astype(np.float32)
    high, rest = (half.numpy().astype(np.float64) for half in split(torch.from_numpy(values)))
    assert np.abs(high - values).max() > 0.0
    assert (np.abs(high - values) <= 2.0**-11 * values).all()
    assert (np.abs(high + rest / REST - values) <= 2.0**-23 * values).all()


def test_the_halves_of_a_small_number_are_exact_in_units_of_the_column():
    values = torch.from_numpy(np.random.default_rng(0).uniform(-(2.0**-14), 2.0**-14, 20_000).astype(np.float32))
    high, rest = (half.double() for half in split(values))
    assert float(torch.abs(high + rest / REST - values.double()).max()) <= 2.0**-36


def test_powers_of_two_are_exact():
    exponents = np.arange(-126, 128)
    assert np.array_equal(power_of_two(torch.from_numpy(exponents)).double().numpy(), np.ldexp(1.0, exponents))


class Twin:
    """The kernel in float64, from the same arguments."""

    def __getitem__(self, grid):
        self.grid = grid
        return self

    def __call__(
        self, base, high, rest, units, factors, sizes, found, one, smaller, n_samples, n_features, n_lines, *shape, **_
    ):
        x = base * units
        x_high, x_rest = (half.double() for half in split(x * x * smaller if shape[-1] else x))
        assert torch.isfinite(x_high).all()
        high, rest = high.double(), rest.double()
        sums = high @ x_high + (high @ x_rest + rest @ x_high) / REST
        found[:] = sums * sizes[:, None] * factors
        _, width, height, _, _ = shape
        assert self.grid[0] * height >= n_lines > (self.grid[0] - 1) * height
        assert self.grid[1] * width >= n_features > (self.grid[1] - 1) * width


def make_lines_and_columns(n_samples, n_lines, n_features):
    random = np.random.default_rng(0)
    base = random.standard_normal((n_samples, n_features)) * 2.0 ** random.integers(-60, 60, n_features)
    base[:, 1] = 0.0
    base[:, 2] = 0.0
    base[0, 2] = 3.0  # one sample alone
    lines = random.standard_normal((n_lines, n_samples)) * 10.0 ** random.uniform(-20, 20, (n_lines, 1))
    lines[0] = 0.0
    return torch.from_numpy(lines), torch.from_numpy(base.astype(np.float32))


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    ("n_samples", "n_lines"), [(300, 1), (300, 16), (300, 17), (300, 64), (300, 65), (300, 130), (90_000, 2)]
)
def test_products_are_as_exact_as_float32_whatever_the_units_of_lines_and_columns(n_samples, n_lines, squared, monkeypatch):
    monkeypatch.setattr(half_precision, "_multiply", Twin(), raising=False)
    lines, base = make_lines_and_columns(n_samples, n_lines, 200 if n_samples == 300 else 5)
    deviations = torch.linalg.vector_norm(base.double(), dim=0) / np.sqrt(n_samples)
    inverse = torch.where(deviations > 0.0, 1.0 / deviations, 0.0)
    found = HalfProduct(base, deviations, inverse.float())(lines, squared=squared)
    columns = base.double() * inverse
    columns = columns * columns if squared else columns
    sums = torch.abs(lines) @ torch.abs(columns)
    assert (torch.abs(found - lines @ columns) <= (2.0**-21 + 2.0**-22 + 2.0**-22 * squared) * sums).all()


def test_no_halves_where_columns_are_beyond_the_exponents_or_there_is_no_gpu():
    base = torch.ones((4, 3))
    assert half_product(base, torch.ones(3), torch.ones(3)) is None
    assert LARGEST_EXPONENT <= 126 - 10  # of a line, with its largest number about 2**10


def test_a_design_on_a_gpu_multiplies_like_float64():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    random = np.random.default_rng(0)
    X = random.standard_normal((777, 4099)).astype(np.float32)
    X[:, 2050:] = X[:, :2049]
    before, device.LEAST_ELEMENTS = device.LEAST_ELEMENTS, 0
    try:
        design = make_design(torch.asarray(X, device="cuda"), "zscore")
    finally:
        device.LEAST_ELEMENTS = before
    exact = make_design(X.astype(np.float64), "zscore")
    for n_lines in (1, 20, 40, 100, 200):
        lines = random.standard_normal((n_lines, 777))
        lines -= lines.mean(axis=1, keepdims=True)
        found = design.pull(lines)
        assert np.array_equal(found[:, 2050:], found[:, :2049])
        assert np.abs(found - exact.pull(lines)).max() <= 1e-6 * 777
