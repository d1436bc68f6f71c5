# SPDX-License-Identifier: BSD-3-Clause
"""Errors and warnings. Each status has the kind of exception that Python users
expect, and all are HoneError."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from ._enums import Status, status_text
from ._report import Report


class HoneError(Exception):
    """A call failed. status is the library's, report its report up to the
    failure, or None if the call was refused before."""

    def __init__(
        self, message: str, status: Status, report: Optional[Report] = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.report = report

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.status, self.report)


class HoneValueError(HoneError, ValueError):
    """A size or an option is invalid, or an array has NaN or Inf."""


class HoneTypeError(HoneError, TypeError):
    """An argument is not an array of numbers, or has the wrong type."""


class HoneBusyError(HoneError, RuntimeError):
    """Another call uses this solver."""


class HoneSingularError(HoneError, np.linalg.LinAlgError):
    """The matrix is exactly singular; the report says where."""


class HoneOverflowError(HoneError, OverflowError):
    """The solution or the factors overflow double precision."""


class HoneMemoryError(HoneError, MemoryError):
    """Memory is missing, or more than memory_limit_bytes would be needed."""


class HoneDeviceError(HoneError, RuntimeError):
    """The chosen device cannot be used, or failed."""


class HoneCancelledError(HoneError, RuntimeError):
    """progress or deadline_s stopped the call before there was any x."""


class HoneInternalError(HoneError, RuntimeError):
    """The library has a bug; please report it."""


class HoneWeakError(HoneError, np.linalg.LinAlgError):
    """x, the best found, is not accepted, and weak="raise" was given."""

    def __init__(
        self,
        message: str,
        status: Status,
        report: Optional[Report] = None,
        x: Optional[NDArray[Any]] = None,
    ) -> None:
        super().__init__(message, status, report)
        self.x = x

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.status, self.report, self.x)


class HoneWarning(RuntimeWarning):
    """The x returned is the best found, but weaker than asked for: the status
    is positive. report has its errors, x is the same array."""

    def __init__(
        self,
        message: str,
        report: Optional[Report] = None,
        x: Optional[NDArray[Any]] = None,
    ) -> None:
        super().__init__(message)
        self.report = report
        self.x = x


_KINDS: dict[Status, type[HoneError]] = {
    Status.BUSY: HoneBusyError,
    Status.SINGULAR: HoneSingularError,
    Status.OVERFLOW: HoneOverflowError,
    Status.NO_MEMORY: HoneMemoryError,
    Status.NO_DEVICE: HoneDeviceError,
    Status.DEVICE_FAILED: HoneDeviceError,
    Status.CANCELLED: HoneCancelledError,
    Status.INTERNAL: HoneInternalError,
}
# Statuses of a call that was refused: it did nothing.
REFUSED = range(Status.BUSY, Status.NULL_POINTER + 1)


def describe(status: int, report: Optional[Report]) -> str:
    """Returns the status's text, then where and why."""
    parts = [status_text(status)]
    if report is not None:
        if report.bad_row >= 0:
            parts.append(f"row {report.bad_row}")
        if report.bad_col >= 0:
            parts.append(f"column {report.bad_col}")
        if report.reason:
            parts.append(report.reason)
        if status == Status.NOT_CONVERGED:
            parts.append(
                f"backward error {report.backward_error:.1e}, "
                f"tolerance {report.tolerance:.1e}"
            )
    return "; ".join(parts)


def error_of(
    status: int, report: Optional[Report], hint: str = ""
) -> HoneError:
    """Returns the exception for a status < 0."""
    known = Status(status)
    kind = _KINDS.get(known, HoneValueError)
    return kind(describe(status, report) + hint, known, report)


def bad_value(
    message: str, status: Status = Status.BAD_SIZE
) -> HoneValueError:
    return HoneValueError(message, status)


def bad_type(message: str) -> HoneTypeError:
    return HoneTypeError(message, Status.BAD_OPTION)
