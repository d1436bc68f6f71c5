# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in the memory of a device: where they lie, and copies of them. Their
shapes and strides are NumPy's; their entries the host cannot read."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

import numpy as np
from numpy.typing import NDArray

from . import _driver
from ._driver import Place
from ._errors import bad_value

Index = tuple[int, ...]


class View(NamedTuple):
    """An array of float64 or complex128 on a device. As far as addresses are
    concerned it can stand where an array of NumPy does."""

    owner: Any  # the caller's array, or ours: what x is returned as
    keep: Any  # what must live as long as the memory is used
    place: Optional[Place]  # None: the array has no entries
    address: int
    shape: Index
    strides: Index  # in bytes
    dtype: Any  # of NumPy
    writeable: bool

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def as_column(self) -> View:
        """Returns v[..., None]."""
        return self._replace(
            shape=(*self.shape, 1), strides=(*self.strides, self.itemsize)
        )

    def swapped(self) -> View:
        """Returns the array with its last two axes exchanged."""
        (*head, m, n), (*steps, down, across) = self.shape, self.strides
        return self._replace(
            shape=(*head, n, m), strides=(*steps, across, down)
        )

    def broadcast_to(self, shape: Index) -> View:
        """Returns the array as numpy.broadcast_to does."""
        missing = (1,) * (len(shape) - self.ndim)
        steps = (*missing, *self.strides)
        strides = tuple(
            0 if have != want else step
            for have, want, step in zip((*missing, *self.shape), shape, steps)
        )
        return self._replace(shape=shape, strides=strides)


class _Rows(NamedTuple):
    """The entries as rows without gaps, one distance apart on the device, and
    the strides of a copy that has no gaps between rows."""

    rows: int
    size: int  # of a row, in bytes
    pitch: int
    strides: Index


def _rows_of(v: View, name: str) -> _Rows:
    """Returns the rows of an array with entries. Axes that the array repeats
    are those of one row."""
    item = v.itemsize
    used = [i for i in range(v.ndim) if v.shape[i] > 1 and v.strides[i] != 0]
    used.sort(key=lambda i: v.strides[i])
    strides = [0] * v.ndim
    size, rows, pitch = item, 1, 0
    for i in used:
        step, extent = v.strides[i], v.shape[i]
        if rows == 1 and step == size:
            strides[i] = size
            size *= extent
        elif (step >= size and rows == 1) or step == pitch * rows:
            pitch = pitch if rows > 1 else step
            strides[i] = rows * size
            rows *= extent
        else:
            raise bad_value(
                f"{name} has shape {v.shape} and strides {v.strides} on a "
                "device, which cannot be copied from or to there at once: "
                "make it contiguous"
            )
    return _Rows(rows, size, pitch or size, tuple(strides))


def fetch(v: View, name: str) -> NDArray[Any]:
    """Returns a copy on the host. Axes that v repeats are repeated without
    copies, and such a copy must not be written to."""
    if v.size == 0 or v.place is None:
        return np.empty(v.shape, v.dtype)
    r = _rows_of(v, name)
    room = np.empty(r.rows * r.size, np.uint8)
    _driver.fetch(v.place, r.rows, r.size, v.address, r.pitch, _start(room))
    return np.ndarray(v.shape, v.dtype, room, 0, r.strides)


def store(v: View, array: NDArray[Any], name: str) -> None:
    """Copies array, of the same shape, to the device."""
    if v.size == 0 or v.place is None:
        return
    r = _rows_of(v, name)
    room = np.empty(r.rows * r.size, np.uint8)
    np.ndarray(v.shape, v.dtype, room, 0, r.strides)[...] = array
    _driver.store(v.place, r.rows, r.size, v.address, r.pitch, _start(room))


def copied(v: View, name: str) -> View:
    """Returns a copy on the same device, with the same order of axes."""
    if v.size == 0 or v.place is None:
        return v
    r = _rows_of(v, name)
    memory = _driver.Memory(v.place.ordinal, r.rows * r.size)
    _driver.move(v.place, r.rows, r.size, v.address, r.pitch, memory.start)
    return v._replace(
        owner=None,
        keep=memory,
        place=memory.place,
        address=memory.start,
        strides=r.strides,
        writeable=True,
    )


def at_home(v: Any, name: str) -> Any:
    """Returns v in host memory: a copy if it lies on a device."""
    return fetch(v, name) if isinstance(v, View) else v


def _start(array: NDArray[Any]) -> int:
    address: int = array.ctypes.data
    return address
