# SPDX-License-Identifier: BSD-3-Clause
"""Arrays for the library. They are passed in place if the library can read
them, converted or copied if not, and refused if that would lose something. An
array on a CUDA device is a View, which has the shape, the strides and the dtype
of an array of NumPy, but no entries that the host could read."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from ._device import taken
from ._enums import Layout
from ._errors import bad_type, bad_value
from ._view import View, at_home

Doubles = NDArray[np.float64]
Numbers = NDArray[Any]  # of REAL or COMPLEX
Dtype = Any  # of NumPy, whose class has parameters only in later versions
REAL = np.dtype(np.float64)
COMPLEX = np.dtype(np.complex128)


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Returns value as an array of its own type, or a View of one on a
    device; value itself if it is one already."""
    if type(value) is np.ndarray or isinstance(value, View):
        return value  # type: ignore[return-value]
    array: NDArray[Any] = taken(value, name)
    return array if isinstance(array, View) else _as_array(array, name)


def is_own(a: Numbers, given: Any) -> bool:
    """Was a certainly made of the array that was given by a conversion, so that
    nobody else has it? An object may hand out its own array."""
    return type(given) is np.ndarray and a is not given and a.base is None


def overlap(a: Any, b: Any) -> bool:
    """Have the arrays memory in common, as far as the host can tell?"""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return False
    return np.may_share_memory(a, b) and np.shares_memory(a, b)


def as_numbers(value: Any, name: str) -> Numbers:
    """Returns value as an array of aligned native numbers, REAL or COMPLEX;
    value itself if it is one already, and a View of an array on a device."""
    array = as_array(value, name)
    if isinstance(array, View):
        return array
    dtype = array.dtype
    if (dtype == REAL or dtype == COMPLEX) and array.flags.aligned:
        return array
    kind = array.dtype.kind
    to = COMPLEX if kind == "c" else REAL
    if kind in "fc" and array.dtype.itemsize > to.itemsize:
        raise bad_type(
            f"{name} is {array.dtype}, more than double precision: convert it "
            f"with astype({'complex' if kind == 'c' else 'float'}) if doubles "
            "will do"
        )
    if kind not in "biufc":
        raise bad_type(
            f"{name} has dtype {array.dtype}: hone takes real and complex "
            "numbers; convert it with astype(float) or astype(complex) if that "
            "is what they are"
        )
    if kind in "iu" and array.dtype.itemsize > 4:
        _check_held(array, name)
    return array.astype(to, order="K")


def _check_held(array: NDArray[Any], name: str) -> None:
    """Refuses integers that a double, which has 53 bits, would round."""
    large = array[(array > 2**53) | (array < -(2**53))]
    for value in large.flat:
        if int(float(value)) != int(value):
            raise bad_value(
                f"{name} has the integer {value}, which a double cannot hold: "
                "convert it with astype(float) if its rounded value will do"
            )


def _has_masked(value: Any) -> bool:
    """Has a list, or one of the lists in it, an array with masked entries?
    Those that begin with a number are taken for lists of numbers."""
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (int, float, complex)):
            return False
        return any(_has_masked(each) for each in value)
    return isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value)


def _as_array(value: Any, name: str) -> NDArray[Any]:
    """Returns a plain array of whatever NumPy can make one of."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise bad_value(
                f"{name} has masked entries: fill them, or leave out the rows "
                "and columns they are in"
            )
        return np.asarray(value.data)
    if isinstance(value, (list, tuple)) and _has_masked(value):
        raise bad_value(f"{name} has masked entries in it: fill them")
    if hasattr(value, "tocsr") or hasattr(value, "todense"):
        raise bad_type(
            f"{name} is sparse: hone solves dense systems; use toarray() if "
            "there is room for it"
        )
    try:
        return np.asarray(value)
    except ValueError as error:
        raise bad_value(f"{name} is not an array: {error}") from error
    except (TypeError, RuntimeError) as error:
        raise bad_type(f"{name} is not an array: {error}") from error


def _ld(stride: int, n: int, size: int) -> int:
    """Returns the leading dimension of lines of n contiguous numbers of so many
    bytes that are a stride apart, or 0 if they have none."""
    return stride // size if stride >= size * n and stride % size == 0 else 0


def layout_of(a: Numbers) -> tuple[Layout, int]:
    """Returns the layout of square matrices, in the last two axes, and their
    leading dimension; 0 if they must be copied."""
    n: int = a.shape[-1]
    size = a.itemsize
    if n <= 1:
        return Layout.COL_MAJOR, 1
    down, across = a.strides[-2:]
    if down == size and _ld(across, n, size):
        return Layout.COL_MAJOR, _ld(across, n, size)
    return Layout.ROW_MAJOR, _ld(down, n, size) if across == size else 0


def line_ld(b: Numbers) -> int:
    """Returns the leading dimension of columns that are the rows of the last
    two axes, or 0 if they must be copied."""
    k, n = int(b.shape[-2]), int(b.shape[-1])
    if b.size == 0:
        return max(1, n)
    if n > 1 and b.strides[-1] != b.itemsize:
        return 0
    return n if k <= 1 else _ld(b.strides[-2], n, b.itemsize)


def as_matrix(
    value: Any, name: str = "A", dtype: Optional[Dtype] = None
) -> tuple[Numbers, Layout, int]:
    """Returns a square matrix, its layout and its leading dimension. With dtype
    COMPLEX it is complex."""
    a = as_numbers(value, name)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise bad_value(
            f"{name} has shape {a.shape}: it must be a square matrix"
        )
    if dtype is not None and not isinstance(a, View):
        a = a.astype(dtype, order="K", copy=False)
    layout, ld = layout_of(a)
    if ld:
        return a, layout, ld
    if isinstance(a, View):
        raise bad_value(
            f"{name} has strides {a.strides} on a device: its rows or its "
            "columns must be contiguous; copy it there"
        )
    return np.ascontiguousarray(a), Layout.ROW_MAJOR, a.shape[0]


def in_layout(a: Numbers, layout: Layout, ld: int, wanted: Layout) -> Any:
    """Returns the matrix and its leading dimension in the wanted layout; a copy
    if it has another."""
    if layout == wanted or a.shape[0] <= 1:
        return a, ld
    if isinstance(a, View):
        have, need = (
            "by columns" if each == Layout.COL_MAJOR else "by rows"
            for each in (layout, wanted)
        )
        raise bad_value(
            f"A is stored {have} on a device, and the solver was made for a "
            f"matrix stored {need}: copy it there in that order"
        )
    order: Any = "F" if wanted == Layout.COL_MAJOR else "C"
    return np.array(a, order=order, copy=True), a.shape[0]


def column_ld(b: Numbers) -> int:
    """Returns the leading dimension of columns of numbers, or 0 if they must be
    copied."""
    n: int = b.shape[0]
    if n > 1 and b.strides[0] != b.itemsize:
        return 0
    if b.ndim == 1 or b.shape[1] <= 1:
        return max(1, n)
    return _ld(b.strides[1], max(1, n), b.itemsize)


def as_columns(
    value: Any, n: int, name: str, dtype: Optional[Dtype] = None
) -> tuple[Numbers, int]:
    """Returns right-hand sides, n or n x nrhs, and their leading dimension.
    With dtype COMPLEX they are complex. What would have to be converted or
    copied is fetched from the device, as the library does with all of them."""
    b = as_numbers(value, name)
    if b.ndim not in (1, 2) or b.shape[0] != n:
        raise bad_value(
            f"{name} has shape {b.shape}: it must be ({n},) or ({n}, columns)"
        )
    if isinstance(b, View):
        ld = column_ld(b) if dtype is None or dtype == b.dtype else 0
        if ld:
            return b, ld
        b = at_home(b, name)
    if dtype is not None:
        b = b.astype(dtype, order="K", copy=False)
    ld = column_ld(b)
    if ld:
        return b, ld
    return np.array(b, order="F", copy=True), max(1, n)


def check_out(out: Any, shape: tuple[int, ...], dtype: Dtype) -> None:
    """Refuses an array to which x of this shape and type cannot be written."""
    if type(out) not in (np.ndarray, np.memmap) and not isinstance(out, View):
        raise bad_type(
            f"out is {type(out).__name__}: it must be a plain NumPy array, a "
            "memmap, or an array on a CUDA device"
        )
    if out.dtype != dtype:
        raise bad_type(f"out has dtype {out.dtype}: it must be {dtype}")
    if out.shape != shape:
        raise bad_value(f"out has shape {out.shape}, x has {shape}")
    writeable = out.writeable if isinstance(out, View) else out.flags.writeable
    if not writeable:
        raise bad_value("out is read-only")


def place_for(
    out: Any, shape: tuple[int, ...], dtype: Dtype = REAL
) -> tuple[Numbers, int]:
    """Returns the array to which the library writes x: out itself, or a new one
    if the library cannot write to out or there is none."""
    if out is not None:
        check_out(out, shape, dtype)
        aligned = isinstance(out, View) or out.flags.aligned
        ld = column_ld(out) if aligned else 0
        if ld:
            return out, ld
    return np.empty(shape, dtype, order="F"), max(1, shape[0])


def parts_apart(z: Numbers) -> Doubles:
    """Returns two real columns, the real and the imaginary parts, for each
    complex column."""
    columns = z if z.ndim == 2 else z[:, None]
    parts: Doubles
    parts = np.empty((z.shape[0], 2 * columns.shape[1]), order="F")
    parts[:, 0::2] = columns.real
    parts[:, 1::2] = columns.imag
    return parts
