"""Build src/l20fs/data/srbct.npz from the PyPI package ISLP 0.6.0 (BSD licence).

Run ``pip download --no-deps ISLP==0.6.0`` and then ``python tools/build_srbct.py islp-0.6.0-py3-none-any.whl``.
"""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import numpy as np

# ISLP numbers the classes 1 to 4; which is which follows from the class sizes and was checked sample by sample against
# the labelled values of the paper.
CLASS_NAMES = np.array(["BL", "EWS", "NB", "RMS"])
TARGET = Path(__file__).parent.parent / "src" / "l20fs" / "data" / "srbct.npz"


def read(wheel: zipfile.ZipFile, name: str) -> np.ndarray:
    return np.genfromtxt(io.BytesIO(wheel.read(f"ISLP/data/{name}.csv")), delimiter=",", skip_header=1)


def main() -> None:
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        arrays: dict[str, np.ndarray] = {"class_names": CLASS_NAMES}
        for part in ("train", "test"):
            arrays[f"X_{part}"] = read(wheel, f"Khan_x{part}").astype(np.float32)  # printed with seven digits
            arrays[f"y_{part}"] = (read(wheel, f"Khan_y{part}") - 1).astype(np.int8)
    sizes = np.bincount(arrays["y_train"])
    if sizes.tolist() != [8, 23, 12, 20] or arrays["X_train"].shape != (63, 2308):
        raise SystemExit(f"unexpected contents: class sizes {sizes}, shape {arrays['X_train'].shape}")
    np.savez_compressed(TARGET, **arrays)
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
