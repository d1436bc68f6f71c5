# SPDX-License-Identifier: BSD-3-Clause
"""What the caller receives: the type and the order of x, and warnings."""

from __future__ import annotations

import warnings
from typing import Any, Optional

import numpy as np

from ._arrays import Dtype, Numbers
from ._enums import Status
from ._errors import HoneOverflowError, HoneWarning, HoneWeakError, bad_value
from ._errors import describe
from ._report import Report
from ._stack import name_of

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


def tell(x: Numbers, reports: Any, weak: str) -> None:
    """Warns, or raises, where x is weaker than asked. reports is one report or
    an array of them."""
    if weak == "ignore":
        return
    listed = np.empty((), object)
    listed[()] = reports
    if isinstance(reports, np.ndarray):
        listed = reports
    poor = [(i, r) for i, r in np.ndenumerate(listed) if r.status > 0]
    if not poor:
        return
    index, report = poor[0]
    text = describe(report.status, report)
    if index:
        text = f"{name_of(index)}: {text}"
    if len(poor) > 1:
        text += f"; and {len(poor) - 1} more of {listed.size} matrices"
    if weak == "raise":
        raise HoneWeakError(text, Status(report.status), report, x)
    warnings.warn(HoneWarning(text, report, x), stacklevel=3)
