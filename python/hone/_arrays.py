# SPDX-License-Identifier: BSD-3-Clause
"""Arrays for the library. They are passed in place if the library can read
them, converted or copied if not, and refused if that would lose something."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._enums import Layout
from ._errors import bad_type, bad_value

Doubles = NDArray[np.float64]
DOUBLE = np.dtype(np.float64)


def as_doubles(value: Any, name: str) -> Doubles:
    """Returns value as an array of aligned native doubles; value itself if it
    is one already."""
    array: NDArray[Any]
    array = value if type(value) is np.ndarray else _as_array(value, name)
    if array.dtype == DOUBLE and array.flags.aligned:
        return array
    kind = array.dtype.kind
    if kind == "c":
        raise bad_type(
            f"{name} is complex ({array.dtype}): hone solves real systems"
        )
    if kind == "f" and array.dtype.itemsize > 8:
        raise bad_type(
            f"{name} is {array.dtype}, more than double precision: convert it "
            "with astype(float) if doubles will do"
        )
    if kind not in "biuf":
        raise bad_type(
            f"{name} has dtype {array.dtype}: hone takes real numbers; "
            "convert it with astype(float) if that is what they are"
        )
    if kind in "iu" and array.dtype.itemsize > 4:
        _check_held(array, name)
    return array.astype(DOUBLE, order="K")


def _check_held(array: NDArray[Any], name: str) -> None:
    """Refuses integers that a double, which has 53 bits, would round."""
    large = array[(array > 2**53) | (array < -(2**53))]
    for value in large.flat:
        if int(float(value)) != int(value):
            raise bad_value(
                f"{name} has the integer {value}, which a double cannot hold: "
                "convert it with astype(float) if its rounded value will do"
            )


def _as_array(value: Any, name: str) -> NDArray[Any]:
    """Returns a plain array of whatever NumPy can make one of."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise bad_value(
                f"{name} has masked entries: fill them, or leave out the rows "
                "and columns they are in"
            )
        return np.asarray(value.data)
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


def _apart(stride: int, n: int) -> bool:
    """Tells whether a stride between lines of n contiguous doubles is a leading
    dimension."""
    return stride >= 8 * n and stride % 8 == 0


def as_matrix(value: Any, name: str = "A") -> tuple[Doubles, Layout, int]:
    """Returns a square matrix, its layout and its leading dimension."""
    a = as_doubles(value, name)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise bad_value(
            f"{name} has shape {a.shape}: it must be a square matrix"
            + ("; solve a stack one by one" if a.ndim > 2 else "")
        )
    n = a.shape[0]
    if n <= 1:
        return a, Layout.COL_MAJOR, 1
    down, across = a.strides
    if down == 8 and _apart(across, n):
        return a, Layout.COL_MAJOR, across // 8
    if across == 8 and _apart(down, n):
        return a, Layout.ROW_MAJOR, down // 8
    return np.ascontiguousarray(a), Layout.ROW_MAJOR, n


def in_layout(a: Doubles, layout: Layout, ld: int, wanted: Layout) -> Any:
    """Returns the matrix and its leading dimension in the wanted layout; a copy
    if it has another."""
    if layout == wanted or a.shape[0] <= 1:
        return a, ld
    order: Any = "F" if wanted == Layout.COL_MAJOR else "C"
    return np.array(a, order=order, copy=True), a.shape[0]


def column_ld(b: Doubles) -> int:
    """Returns the leading dimension of columns of doubles, or 0 if they must be
    copied."""
    n: int = b.shape[0]
    if n > 1 and b.strides[0] != 8:
        return 0
    if b.ndim == 1 or b.shape[1] <= 1:
        return max(1, n)
    apart: int = b.strides[1]
    return apart // 8 if _apart(apart, max(1, n)) else 0


def as_columns(value: Any, n: int, name: str) -> tuple[Doubles, int]:
    """Returns right-hand sides, n or n x nrhs, and their leading dimension."""
    b = as_doubles(value, name)
    if b.ndim not in (1, 2) or b.shape[0] != n:
        raise bad_value(
            f"{name} has shape {b.shape}: it must be ({n},) or ({n}, columns)"
        )
    ld = column_ld(b)
    if ld:
        return b, ld
    return np.array(b, order="F", copy=True), max(1, n)


def place_for(out: Any, shape: tuple[int, ...]) -> tuple[Doubles, int]:
    """Returns the array to which the library writes x: out itself, or a new one
    if the library cannot write to out or there is none."""
    if out is not None:
        if type(out) is not np.ndarray:
            raise bad_type(f"out is {type(out).__name__}, not a NumPy array")
        if out.dtype != DOUBLE:
            raise bad_type(f"out has dtype {out.dtype}: it must be float64")
        if out.shape != shape:
            raise bad_value(f"out has shape {out.shape}, x has {shape}")
        if not out.flags.writeable:
            raise bad_value("out is read-only")
        ld = column_ld(out) if out.flags.aligned else 0
        if ld:
            return out, ld
    return np.empty(shape, order="F"), max(1, shape[0])
