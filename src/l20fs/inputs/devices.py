"""Arrays of other libraries by the array API standard.

All other modules use the standard only. An array stays on its device: :meth:`Place.fetch` copies values to the host, and
:meth:`Place.send` copies values to the device.
"""

from __future__ import annotations

import sys
from typing import Any

import array_api_compat as xpc
import numpy as np

from l20fs.typing import Array


def is_device_array(value: Any) -> bool:
    """Return whether a value is an array of torch, CuPy or array-api-strict, computed on its device.

    Examples
    --------
    >>> is_device_array(np.zeros(3))
    False
    """
    if xpc.is_torch_array(value) or xpc.is_cupy_array(value):
        return True
    return type(value).__module__.startswith("array_api_strict") and hasattr(value, "__array_namespace__")


def is_dask(value: Any) -> bool:
    """Return whether a value is a Dask array; a Dask data frame is not.

    Examples
    --------
    >>> is_dask(np.zeros(3))
    False
    """
    module = sys.modules.get("dask.array")  # a module that is not imported cannot have made it
    return module is not None and isinstance(value, module.Array)


#: Arrays and sparse matrices in a file, by module and class.
STORED = (("zarr", "Array"), ("h5py", "Dataset"), ("anndata.abc", "CSRDataset"), ("anndata.abc", "CSCDataset"))


def is_stored(value: Any) -> bool:
    """Return whether a value is an array of a zarr or HDF5 file, or the matrix of a backed AnnData object."""
    kinds = (getattr(sys.modules.get(module), name, None) for module, name in STORED)
    return any(kind is not None and isinstance(value, kind) for kind in kinds)


def working_dtype(array: Any) -> np.dtype[Any]:
    """Return the floating-point type for computations with an array or a matrix in blocks.

    Examples
    --------
    >>> working_dtype(np.zeros(3, dtype=np.float32)), working_dtype(np.zeros(3, dtype=bool))
    (dtype('float32'), dtype('float64'))
    """
    single = xpc.array_namespace(array).float32 if is_device_array(array) else np.float32
    return np.dtype(np.float32 if array.dtype == single else np.float64)


def namespace_of(array: Any) -> Any:
    """Return the namespace of an array by the array API standard: NumPy itself on the host.

    Examples
    --------
    >>> namespace_of(np.zeros(3)) is np
    True
    """
    return xpc.array_namespace(array) if is_device_array(array) else np


class Place:
    """Library and device of an array, or the host for an array of NumPy, from which nothing is copied.

    Examples
    --------
    >>> import array_api_strict
    >>> place = Place(array_api_strict.ones((2, 3)))
    >>> place.fetch(place.send(np.arange(3)))
    array([0, 1, 2])
    >>> place.fetch(place.replaced(place.send(np.zeros(3)), place.send(np.array([1])), 5.0))
    array([0., 5., 0.])
    >>> place.fetch(place.put(place.send(np.zeros(3)), np.array([2, 0]), np.array([1.0, 4.0])))
    array([4., 0., 1.])
    """

    def __init__(self, like: Any) -> None:
        self.xp = namespace_of(like)
        self.is_host = self.xp is np
        self.device: Any = None if self.is_host else xpc.device(like)
        self._is_torch, self._is_cupy = xpc.is_torch_array(like), xpc.is_cupy_array(like)

    def send(self, values: Array, dtype: Any = None) -> Any:
        """Return a copy of a NumPy array on the device."""
        if self.is_host:
            return np.asarray(values, dtype=dtype)
        values = np.ascontiguousarray(values)
        if self._is_torch:
            # The host need not wait: from memory that is not pinned, values are copied before the call returns.
            sent = self.xp.from_numpy(values if values.flags.writeable else values.copy())
            return sent.to(device=self.device, dtype=dtype or sent.dtype, non_blocking=True, copy=True)
        return self.xp.asarray(values, dtype=dtype, device=self.device, copy=True)

    def take(self, array: Any, indices: Any, axis: int = 0) -> Any:
        """Return elements of a vector, or rows or columns of a matrix, by an array of non-negative indices on the device."""
        if self._is_torch:  # the function of the standard looks for negative indices first, in four steps
            return self.xp.index_select(array, axis, indices)
        return self.xp.take(array, indices, axis=axis)

    def replaced(self, vector: Any, indices: Any, value: float) -> Any:
        """Return a copy of a vector with a value at the indices, an array on the device."""
        if self._is_torch:
            return vector.index_fill(0, indices, value)
        xp = self.xp
        numbers = xp.arange(vector.shape[0], device=self.device)
        is_among = xp.any(numbers[None, :] == indices[:, None], axis=0)
        return xp.where(is_among, xp.full_like(vector, value), vector)

    def put(self, vector: Any, indices: Array, values: Array) -> Any:
        """Return a copy of a vector with values of NumPy at some indices, which differ."""
        if self._is_torch:
            return vector.index_copy(0, self.send(indices), self.send(values, vector.dtype))
        here = self.fetch(vector).copy()
        here[indices] = values
        return self.send(here)

    def first(self, mask: Any) -> Any:
        """Return the first place at which a mask is true, where the mask is."""
        if self.is_host:
            return mask.argmax()
        numbers = self.xp.arange(mask.shape[0], device=self.device)
        return self.xp.min(self.xp.where(mask, numbers, self.xp.full_like(numbers, mask.shape[0])))

    def largest(self, vector: Any, n: int) -> Array:
        """Return the places of the ``n`` largest numbers, ascending, on the host."""
        n = min(n, vector.shape[0])
        if self.is_host:
            return np.sort(np.argpartition(-vector, n - 1)[:n])
        if self._is_torch:
            return np.sort(self.fetch(self.xp.topk(vector, n, sorted=False).indices))
        if self._is_cupy:
            return np.sort(self.fetch(self.xp.argpartition(-vector, n - 1)[:n]))
        return np.sort(self.fetch(self.xp.argsort(-vector)[:n]))

    def fetch(self, array: Any) -> Array:
        """Return a copy as a NumPy array."""
        return as_numpy(array)


def as_numpy(array: Any) -> Array:
    """Copy an array of any library to the host; NumPy arrays are returned unchanged.

    Examples
    --------
    >>> as_numpy([1, 2])
    [1, 2]
    """
    if not is_device_array(array):
        return array
    if xpc.is_torch_array(array):
        tensor = array.detach().cpu()
        host = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()  # NumPy has no such type
        return host.copy() if array.device.type == "cpu" else host  # torch would share its memory
    if xpc.is_cupy_array(array):
        return array.get()
    return np.array(array.to_device(xpc.array_namespace(array).Device("CPU_DEVICE")))
