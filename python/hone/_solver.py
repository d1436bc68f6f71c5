# SPDX-License-Identifier: BSD-3-Clause
"""Solving many times with one matrix."""

from __future__ import annotations

from ctypes import byref
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Optional, Union
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from . import _abi, _options
from ._arrays import COMPLEX, Dtype, Numbers, as_array, as_matrix
from ._arrays import in_layout, is_own, layout_of
from ._device import AnyArray, OnDevice
from ._enums import Layout, Status
from ._errors import bad_type, bad_value, error_of
from ._kept import Held, Kept
from ._options import Way, hint
from ._report import NO_COLUMNS, Report
from ._results import Weak, check_weak, narrow_type, poor_among, tell
from ._vectors import Vectors, address
from ._view import View, copied
from ._watch import SOLVER_COLUMNS, Watch, watch_for

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._options import Options, ProgressFunction

lib = _abi.lib


class _Calls(NamedTuple):
    """The library's functions for a solver."""

    create: Any
    factor: Any
    update: Any
    solve: Any
    destroy: Any


_REAL, _COMPLEX = (
    _Calls(*(getattr(lib, f"{prefix}_{name}") for name in _Calls._fields))
    for prefix in ("hone_solver", "hone_z_solver")
)


class Solver(Kept):
    """A matrix with its factors, for many solves; hone.factor makes it.

    Calls from several threads wait for one another.
    """

    def __init__(
        self, A: AnyArray, *, copy: bool = False, **options: Unpack[Options]
    ) -> None:
        A = as_array(A, "A")
        a, self._layout, lda = self._take(A, copy)
        self._n: int = a.shape[0]
        self._dtype: Dtype = a.dtype
        self._calls = _COMPLEX if a.dtype == COMPLEX else _REAL
        super().__init__(self._calls.destroy)
        c = _options.make(options)  # type: ignore[arg-type]
        c.layout = self._layout
        progress = options.get("progress")
        self._watch = watch_for(progress, self._n, SOLVER_COLUMNS)
        if self._watch is not None:
            c.progress = self._watch.callback
        status = self._calls.create(byref(self._handle), self._n, byref(c))
        if status != Status.OK:
            raise error_of(status, None, hint(status, options))
        try:
            self._factor(self._calls.factor, a, lda, narrow_type(A))
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _take(
        A: AnyArray, copy: bool, dtype: Optional[Dtype] = None
    ) -> tuple[Numbers, Layout, int]:
        a, layout, lda = as_matrix(A, dtype=dtype)
        if isinstance(a, View):
            a = copied(a, "A") if copy else a
            layout, ld = layout_of(a)
            return a, layout, ld
        if copy and not is_own(a, A):
            return as_matrix(np.array(a, order="K", copy=True))
        return a, layout, lda

    @property
    def n(self) -> int:
        """The order of the matrix."""
        return self._n

    @property
    def dtype(self) -> Dtype:
        """The type of the matrix's entries: float64 or complex128."""
        return self._dtype

    def factor(self, A: AnyArray, *, copy: bool = False) -> Self:
        """Replaces the matrix by another of the same order and factors it. A
        solver of a complex matrix takes real ones too. An A that is not stored
        as the first one was, by rows or by columns, is copied.

        A call that is stopped, or fails while it factors, as where A has a NaN
        or is singular, leaves the solver without a matrix; one that is refused
        for A's shape or type leaves it as it was."""
        return self._replace(self._calls.factor, A, copy)

    def update(self, A: AnyArray, *, copy: bool = False) -> Self:
        """Replaces the matrix by a nearby one but keeps the factors. Solves
        refine with the new matrix, and factor it only if this does not
        converge. What is refused is as for factor."""
        return self._replace(self._calls.update, A, copy)

    def _replace(self, call: Any, A: AnyArray, copy: bool) -> Self:
        to = COMPLEX if self._dtype == COMPLEX else None
        A = as_array(A, "A")
        a, layout, lda = self._take(A, copy, to)
        if a.dtype != self._dtype and self._dtype == COMPLEX:
            raise bad_type(
                "A is real on a device, and the solver was made for complex "
                "matrices: convert it there"
            )
        if a.dtype != self._dtype:
            raise bad_type(
                "A is complex, and the solver was made for real matrices: "
                "hone.factor(A) makes one for complex matrices"
            )
        if a.shape[0] != self._n:
            raise bad_value(f"A has order {a.shape[0]}, the solver {self._n}")
        a, lda = in_layout(a, layout, lda, self._layout)
        narrow = narrow_type(A)
        if narrow is not None and to is not None:
            narrow = np.result_type(narrow, np.complex64)
        self._factor(call, a, lda, narrow)
        return self

    def _factor(
        self, call: Any, a: Numbers, lda: int, narrow: Optional[Dtype]
    ) -> None:
        c_report = _abi.new_report()
        matrix = address(a), lda, byref(c_report)
        new = Held(a, c_report, narrow)
        with self._alone():
            self._check_open()
            status = self._use(call, new, self._watch, *matrix)
            report = self._tell(Report(c_report, NO_COLUMNS))
            if self._watch is not None:
                self._watch.check()
        if status < 0:
            raise error_of(status, report)

    @overload
    def solve(
        self,
        b: OnDevice,
        *,
        trans: Way = ...,
        x0: Optional[AnyArray] = ...,
        out: Optional[Union[Numbers, OnDevice]] = ...,
        weak: Weak = ...,
        error_bounds: bool = ...,
        deadline_s: Optional[float] = ...,
        progress: Optional[ProgressFunction] = ...,
        return_report: Literal[False] = ...,
    ) -> Any: ...
    @overload
    def solve(
        self,
        b: OnDevice,
        *,
        trans: Way = ...,
        x0: Optional[AnyArray] = ...,
        out: Optional[Union[Numbers, OnDevice]] = ...,
        weak: Weak = ...,
        error_bounds: bool = ...,
        deadline_s: Optional[float] = ...,
        progress: Optional[ProgressFunction] = ...,
        return_report: Literal[True],
    ) -> tuple[Any, Report]: ...
    @overload
    def solve(
        self,
        b: ArrayLike,
        *,
        trans: Way = ...,
        x0: Optional[AnyArray] = ...,
        out: Optional[Union[Numbers, OnDevice]] = ...,
        weak: Weak = ...,
        error_bounds: bool = ...,
        deadline_s: Optional[float] = ...,
        progress: Optional[ProgressFunction] = ...,
        return_report: Literal[False] = ...,
    ) -> Numbers: ...
    @overload
    def solve(
        self,
        b: ArrayLike,
        *,
        trans: Way = ...,
        x0: Optional[AnyArray] = ...,
        out: Optional[Union[Numbers, OnDevice]] = ...,
        weak: Weak = ...,
        error_bounds: bool = ...,
        deadline_s: Optional[float] = ...,
        progress: Optional[ProgressFunction] = ...,
        return_report: Literal[True],
    ) -> tuple[Numbers, Report]: ...
    def solve(
        self,
        b: AnyArray,
        *,
        trans: Way = False,
        x0: Optional[AnyArray] = None,
        out: Optional[Union[Numbers, OnDevice]] = None,
        weak: Weak = "warn",
        error_bounds: bool = False,
        deadline_s: Optional[float] = None,
        progress: Optional[ProgressFunction] = None,
        return_report: bool = False,
    ) -> Any:
        """Returns x with A x = b; each of these arguments is that of
        hone.solve. The other options are those with which the solver was made,
        and so are deadline_s and progress where they are None."""
        check_weak(weak)
        way = _options.way(trans)
        b = as_array(b, "b")
        v = Vectors(b, self._n, self._dtype, x0, out, error_bounds)
        c = _options.make({"deadline_s": deadline_s, "progress": progress})
        v.put_in(c, way)
        watch = self._watch if progress is None else Watch(progress)
        if watch is not None:
            c.progress = watch.callback
        vectors = address(v.b), v.ldb, address(v.x), v.ldx
        arguments = v.nrhs, *vectors, byref(c), byref(v.c_report)
        with self._alone():
            self._check_open()
            v.refuse_matrix(self._a)
            status = self._use(self._calls.solve, None, watch, *arguments)
            report = self._tell(v.report(status))
            held = self._held
            narrow = held and held.known and narrow_type(b)
            if held and narrow:
                narrow = np.result_type(held.known, narrow)
            if watch is not None:
                watch.check()
        x = v.answer(report, "", narrow)
        tell(x, poor_among(report), weak)
        return (x, report) if return_report else x

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of A, and of its inverse, for which a solver stands where
        SciPy takes linear operators: aslinearoperator(solver), M=solver."""
        return self._n, self._n

    def matvec(self, b: AnyArray) -> Numbers:
        """Returns inv(A) b."""
        return self.solve(b)

    def rmatvec(self, b: AnyArray) -> Numbers:
        """Returns inv(A^H) b."""
        return self.solve(b, trans="C")

    matmat = matvec
    rmatmat = rmatvec

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        kind = "complex, " if self._dtype == COMPLEX else ""
        return f"<hone.Solver of order {self._n}, {kind}{state}>"


def factor(
    A: AnyArray, *, copy: bool = False, **options: Unpack[Options]
) -> Solver:
    """Factors A once and returns a Solver, with the methods solve, update and
    close; a with statement closes it. The options are those of hone.solve.

    The solver borrows A if it can be read in place, and then A must not change
    while the solver is used; copy=True takes a copy.
    """
    return Solver(A, copy=copy, **options)
