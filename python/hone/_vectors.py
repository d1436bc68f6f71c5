# SPDX-License-Identifier: BSD-3-Clause
"""The vectors of one solve, and its report and answer."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _abi
from ._arrays import COMPLEX, Doubles, Dtype, Numbers, as_columns
from ._arrays import as_numbers, overlap, parts_apart, place_for
from ._device import AnyArray, taken, x_beside
from ._driver import LEGACY_STREAM, wait_for_stream
from ._enums import Status
from ._errors import bad_type, bad_value, error_of
from ._report import COLUMN_DTYPE, NO_COLUMNS, Report
from ._results import delivered
from ._view import View, at_home, store


def address(array: Any) -> int:
    if isinstance(array, View):
        return array.address
    start: int = array.ctypes.data
    return start


class Vectors:
    """The arrays b, x and x0 of one solve, as the library takes them, the
    report that it fills, and the answer or exception that follows.

    A complex b of a real A becomes two real columns for each complex one.
    Where b lies on a device, x is made there; what the library cannot read or
    write there in place is copied to the host and back.
    """

    def __init__(
        self,
        b: AnyArray,
        n: int,
        dtype: Dtype,
        x0: Any,
        out: Any,
        error_bounds: bool,
        taken_over: bool = False,
    ) -> None:
        is_complex = dtype == COMPLEX
        to = COMPLEX if is_complex else None
        given: Any = as_numbers(b, "b")
        self.b, self.ldb = as_columns(given, n, "b", to)
        self.split = not is_complex and self.b.dtype == COMPLEX
        self.shape = self.b.shape
        self.x0: Optional[Numbers] = None
        self.ldx0 = max(1, n)
        if x0 is not None:
            self._start_from(x0, n, COMPLEX if self.split else to)
        self.out = taken(out, "out")
        self.taken_over = taken_over  # out is b, which nobody wants any more
        if out is None and isinstance(given, View):
            columns = len(self.shape) == 2
            self.out = x_beside(given, self.shape, self.b.dtype, columns)
        self.x, self.ldx = place_for(self.out, self.shape, self.b.dtype)
        if self.split:
            self.b = parts_apart(at_home(self.b, "b"))
            self.ldb = max(1, n)
            if self.x0 is not None:
                self.x0 = parts_apart(at_home(self.x0, "x0"))
                self.ldx0 = max(1, n)
            self.x, self.ldx = place_for(None, self.b.shape)
        self.nrhs = 1 if self.b.ndim == 1 else self.b.shape[1]
        self.columns = np.zeros(self.nrhs, COLUMN_DTYPE)
        self.error_bounds: Optional[Doubles] = None
        if error_bounds:
            self.error_bounds = np.full(self.b.shape, np.inf, order="F")
        self.c_report = _abi.new_report()

    def _start_from(self, value: Any, n: int, to: Optional[Dtype]) -> None:
        x0 = as_numbers(value, "x0")
        if to is None and x0.dtype == COMPLEX:
            raise bad_type("x0 is complex, but A and b are real")
        self.x0, self.ldx0 = as_columns(x0, n, "x0", to)
        if self.x0.shape != self.b.shape:
            raise bad_value(
                f"x0 has shape {self.x0.shape}, b has {self.b.shape}"
            )

    def put_in(self, options: _abi.Options, way: int) -> None:
        """Sets the options that belong to one solve."""
        options.trans = way
        options.x0 = None if self.x0 is None else address(self.x0)
        options.ldx0 = self.ldx0
        options.columns = address(self.columns)
        if self.error_bounds is not None:
            options.error_bounds = address(self.error_bounds)
            options.ld_error_bounds = max(1, self.b.shape[0])

    def refuse_matrix(self, a: Any) -> None:
        """Refuses an A on which x would be written; the library sees only what
        it writes itself."""
        if self.x is not self.out and overlap(self.out, a):
            raise bad_value("out overlaps A", Status.BAD_OVERLAP)

    def report(self, status: int) -> Report:
        if status < 0:
            if self.split and status == Status.NOT_FINITE_B:
                self._name_the_part()
            return Report(self.c_report, NO_COLUMNS)
        bounds = self.error_bounds
        if self.split and bounds is not None:
            # A little more, since hypot rounds.
            bounds = np.hypot(bounds[:, 0::2], bounds[:, 1::2]) * (1 + 2**-50)
            bounds = bounds.reshape(self.shape, order="F")
        return Report(self.c_report, self.columns, bounds)

    def _name_the_part(self) -> None:
        """Says in the report where the caller's complex array has NaN or Inf,
        whose parts are two columns here."""
        c = self.c_report
        place, column = c.reason.decode(), int(c.bad_col)
        place = place.replace(f", {column})", f", {column // 2})")
        c.bad_col = column // 2
        c.reason = place.encode()
        if column % 2 == 1:
            c.reason += b" in its imaginary part"

    def answer(
        self, report: Report, hint: str, narrow: Optional[Dtype]
    ) -> Numbers:
        """Returns x, also where it is weak; raises errors. Without an array of
        the caller's, x is by rows and of the type 'narrow', if that is given.
        """
        status = int(report.status)
        if status < 0:
            raise error_of(status, report, hint)
        x = self._whole(status)
        if isinstance(x, View):
            if x.place is not None:  # its last copy may be under way
                wait_for_stream(x.place, LEGACY_STREAM)
            owner: Numbers = x.owner
            return owner
        return delivered(x, report, narrow) if self.out is None else x

    def _whole(self, status: int) -> Numbers:
        """Returns x in the caller's form. A column for which nothing was found
        is left alone in out, and is NaN in an array of our own, or in b that
        was taken over."""
        x = self.x
        in_place = self.out is None or x is self.out
        if status == 0 and in_place and not self.split:
            return x
        found = self.columns["status"] >= 0
        if self.split:
            found = found[0::2] & found[1::2]
            x = np.empty(self.shape, COMPLEX, order="F")
            _wide(x).real = self.x[:, 0::2]
            _wide(x).imag = self.x[:, 1::2]
        if self.out is None:
            if not found.all():
                _wide(x)[:, ~found] = np.nan
            return x
        out: Any = self.out
        if x is not out:
            place: Any = out if found.all() else at_home(out, "out")
            if isinstance(place, View):
                store(place, x, "out")
            else:
                _wide(place)[:, found] = _wide(x)[:, found]
                if isinstance(out, View):
                    store(out, place, "out")
        if self.taken_over and not found.all():
            place = at_home(out, "out")
            _wide(place)[:, ~found] = np.nan
            if isinstance(out, View):
                store(out, place, "out")
        given: Numbers = out
        return given


def _wide(x: Numbers) -> Numbers:
    return x if x.ndim == 2 else x[:, None]
