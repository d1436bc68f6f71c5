# SPDX-License-Identifier: BSD-3-Clause
"""What the caller receives: the type and the order of x, and warnings."""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple, Optional

import numpy as np

from ._arrays import Dtype, Numbers
from ._enums import Status
from ._errors import HoneOverflowError, HoneWarning, HoneWeakError, bad_value
from ._errors import describe
from ._report import Report
from ._stack import Index, name_of

Weak = Literal["warn", "raise", "ignore"]
_SINGLE = {np.dtype(np.float32), np.dtype(np.complex64)}


def narrow_type(*arrays: Any) -> Optional[Dtype]:
    """Returns float32 or complex64, the type of x where all arrays are of these
    types; otherwise None."""
    types = []
    for each in arrays:
        dtype = getattr(each, "dtype", None)
        if not isinstance(dtype, np.dtype):
            return None
        types.append(dtype.newbyteorder("="))
    return np.result_type(*types) if set(types) <= _SINGLE else None


def delivered(x: Numbers, report: Report, to: Optional[Dtype]) -> Numbers:
    """Returns x by rows, rounded to the type 'to'. Its error bounds become
    those of the rounded x."""
    if to is None:
        return np.ascontiguousarray(x)
    with np.errstate(over="ignore", under="ignore"):
        rounded: Numbers = x.astype(to, order="C")
    if np.any(np.isinf(rounded)):
        raise HoneOverflowError(
            f"x is too large for {to}: convert A or b with astype(float)",
            Status.OVERFLOW,
            report,
        )
    if report.error_bounds is not None:
        # A little more, since the difference and the sum round.
        away = np.abs(x - rounded) * (1 + 2**-50)
        report.error_bounds = (report.error_bounds + away) * (1 + 2**-52)
    return rounded


def check_weak(weak: Any) -> None:
    if weak not in ("warn", "raise", "ignore"):
        raise bad_value(
            f"weak={weak!r}: it must be 'warn', 'raise' or 'ignore'"
        )


class Poor(NamedTuple):
    """Answers weaker than asked: the first of them, and how many there are."""

    place: Index  # of its matrix
    report: Report
    weak: int
    matrices: int


def poor_among(reports: Any) -> Optional[Poor]:
    """Returns the weak ones of one report or of an array of them, if any."""
    listed = np.empty((), object)
    listed[()] = reports
    if isinstance(reports, np.ndarray):
        listed = reports
    poor = [(i, r) for i, r in np.ndenumerate(listed) if r.status > 0]
    return Poor(*poor[0], len(poor), listed.size) if poor else None


def tell(x: Numbers, poor: Optional[Poor], weak: str) -> None:
    """Warns, or raises, where x is weaker than asked."""
    if weak == "ignore" or poor is None:
        return
    text = describe(poor.report.status, poor.report)
    if poor.place:
        text = f"{name_of(poor.place)}: {text}"
    if poor.weak > 1:
        text += f"; and {poor.weak - 1} more of {poor.matrices} matrices"
    if weak == "raise":
        raise HoneWeakError(text, Status(poor.report.status), poor.report, x)
    warnings.warn(HoneWarning(text, poor.report, x), stacklevel=3)
