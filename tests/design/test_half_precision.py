"""Products in halves of numbers: on the host with a twin of the kernel, on a GPU with the kernel itself."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="halves of numbers are made by torch")

from l20fs.design import device, make_design  # noqa: E402


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
