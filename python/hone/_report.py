# SPDX-License-Identifier: BSD-3-Clause
"""The report of a call as a Python object."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._enums import Found, Status

COLUMN_DTYPE = np.dtype(
    [(field[0], np.dtype(field[1])) for field in _abi.Column._fields_]
)
NO_COLUMNS = np.zeros(0, COLUMN_DTYPE)
_FIELDS = [
    field[0] for field in _abi.Report._fields_ if field[0] != "struct_size"
]
_LISTS = {
    "null_index": "null_count",
    "null_weight": "null_count",
    "dependent_index": "dependent_count",
    "dependent_weight": "dependent_count",
}


def _written(write: Any, report: _abi.Report) -> str:
    at = ctypes.byref(report)
    buffer = ctypes.create_string_buffer(write(at, None, 0) + 1)
    write(at, buffer, len(buffer))
    return buffer.value.decode()


class Report:
    """What a call did and how accurate its result is; hone_report in hone.h.

    Printing it shows the most important fields; json() and as_dict() have all.
    """

    status: Status
    accepted: int  # right-hand sides accepted
    n: int
    nrhs: int
    # The largest of each of these over the columns:
    backward_error: float  # componentwise backward error
    normwise_error: float  # LAPACK's normwise backward error
    residual_error: float  # ||b - A x|| / ||b||
    forward_error: float  # bound on the error of x
    tolerance: float  # limit of the error that the criterion measures
    iterations: int  # the largest over the columns
    precision: int  # of the last factorization used: 32 or 64
    fallback_columns: int  # solved with other factors than the first
    threads: int
    bad_row: int  # 0-based place of NaN, Inf or zeros; -1: none
    bad_col: int
    norm1: float
    rcond: float
    growth: float
    max_abs: float
    min_abs: float
    scale_exponent_min: int
    scale_exponent_max: int
    underflows: int
    inspect_ms: float
    factor_ms: float
    refine_ms: float
    certify_ms: float
    fallback_ms: float
    total_ms: float
    host_passes: int
    device_passes: int
    host_bytes: int
    device_bytes: int
    to_device_bytes: int
    from_device_bytes: int
    device: str
    path: str
    reason: str  # why this call fell back or failed; empty: it did not
    diagonal_ms: float
    diagonal_wait_ms: float
    block_rows: int
    block_row_sweeps: int
    block_row_sweeps_max: int
    block_row_fallbacks: int
    bound_failure: float  # the bounds hold but for this probability
    sparse_columns: int  # accepted by the measure for sparse rows
    digits: int  # decimal digits of x that are certain
    gmres_steps: int
    certificate_steps: int
    structure: Found
    null_count: int
    null_index: tuple[int, ...]
    null_weight: tuple[float, ...]
    min_pivot_row: int
    min_pivot_col: int
    dependent_count: int
    dependent_index: tuple[int, ...]
    dependent_weight: tuple[float, ...]
    #: One entry for each right-hand side, with the fields of hone_column, after
    #: a solve with status >= 0; otherwise empty.
    columns: NDArray[np.void]
    #: Bounds on |x - x_true| for every entry of x, inf where there is none,
    #: after a solve with error_bounds=True and status >= 0; otherwise None.
    error_bounds: Optional[NDArray[np.float64]]

    __slots__ = ("_c", "columns", "error_bounds")

    def __init__(
        self,
        c: _abi.Report,
        columns: NDArray[np.void],
        error_bounds: Optional[NDArray[np.float64]] = None,
    ) -> None:
        self._c = c
        self.columns = columns
        self.error_bounds = error_bounds

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS:
            raise AttributeError(f"a report has no {name!r}")
        value = getattr(self._c, name)
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        if name in _LISTS:
            return tuple(value[: max(0, getattr(self._c, _LISTS[name]))])
        if name == "status":
            return Status(value)
        if name == "structure":
            return Found(value)
        return value

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *_FIELDS])

    def __repr__(self) -> str:
        return _written(_abi.lib.hone_report_text, self._c).rstrip("\n")

    def json(self) -> str:
        """Returns one JSON object, in which NaN and infinity are null."""
        return _written(_abi.lib.hone_report_json, self._c)

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}
