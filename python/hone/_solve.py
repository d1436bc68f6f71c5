# SPDX-License-Identifier: BSD-3-Clause
"""Solving in one call and with a solver, and the memory that both need."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import byref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Optional, Union
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _abi, _options
from ._arrays import COMPLEX, REAL, Dtype, Numbers, as_matrix, in_layout
from ._enums import Layout, Status, Trans
from ._errors import HoneBusyError, HoneValueError
from ._errors import bad_type, bad_value, error_of
from ._report import NO_COLUMNS, Report
from ._vectors import Vectors, address
from ._watch import Watch, watch_for

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._options import Options

Weak = Literal["warn", "raise", "ignore"]
Way = Union[bool, Literal["N", "T", "C"], Trans]
lib = _abi.lib


def _hint(status: int, options: Any) -> str:
    if status != Status.BAD_OPTION:
        return ""
    given = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f" (given: {given})"


@overload
def solve(
    A: ArrayLike,
    b: ArrayLike,
    *,
    trans: Way = ...,
    x0: Optional[ArrayLike] = ...,
    out: Optional[Numbers] = ...,
    weak: Weak = ...,
    error_bounds: bool = ...,
    return_report: Literal[False] = ...,
    **options: Unpack[Options],
) -> Numbers: ...
@overload
def solve(
    A: ArrayLike,
    b: ArrayLike,
    *,
    trans: Way = ...,
    x0: Optional[ArrayLike] = ...,
    out: Optional[Numbers] = ...,
    weak: Weak = ...,
    error_bounds: bool = ...,
    return_report: Literal[True],
    **options: Unpack[Options],
) -> tuple[Numbers, Report]: ...
def solve(
    A: ArrayLike,
    b: ArrayLike,
    *,
    trans: Way = False,
    x0: Optional[ArrayLike] = None,
    out: Optional[Numbers] = None,
    weak: Weak = "warn",
    error_bounds: bool = False,
    return_report: bool = False,
    **options: Unpack[Options],
) -> Union[Numbers, tuple[Numbers, Report]]:
    """Returns a verified x with A x = b, or A^T x = b if trans is "T" or true,
    or A^H x = b if it is "C". b is (n,) or (n, columns).

    A is read in place, by rows or by columns, also as a part of a larger array.
    It is converted first if it is neither float64 nor complex128 or has gaps
    inside both its rows and its columns. b and x are stored column by column.
    x is complex if A or b is. A real A with a complex b is factored as a real
    matrix, and solves two real columns, real and imaginary parts in turn, for
    each of b; the report is of those. out receives x and may be b. x0 is a warm
    start. With error_bounds=True the report has a bound on the error |x_i -
    true x_i| of every entry of x, report.error_bounds.

    A status > 0 means that x is the best found, but weaker than asked. It gives
    a HoneWarning; weak="raise" raises a HoneWeakError instead, and
    weak="ignore" does neither. Errors are subclasses of HoneError, which are
    also ValueError, LinAlgError, ...
    """
    a, layout, lda = as_matrix(A)
    n = a.shape[0]
    c = _options.make(options)  # type: ignore[arg-type]
    c.layout = layout
    way = _options.way(trans)
    v = Vectors(b, n, a.dtype, x0, out, weak, error_bounds)
    v.put_in(c, way)
    call = lib.hone_z_solve if a.dtype == COMPLEX else lib.hone_solve
    watch = watch_for(options.get("progress"), n)
    matrix = n, v.nrhs, address(a), lda
    vectors = address(v.b), v.ldb, address(v.x), v.ldx
    arguments = *matrix, *vectors, byref(c), byref(v.c_report)
    if watch is None:
        status: int = call(*arguments)
    else:
        c.progress = watch.callback
        status = watch.run(call, *arguments)
    report = v.report(status)
    x = v.answer(status, report, _hint(status, options))
    return (x, report) if return_report else x


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


class Solver:
    """A matrix with its factors, for many solves; hone.factor makes it.

    Calls from several threads wait for one another.
    """

    def __init__(
        self, A: ArrayLike, *, copy: bool = False, **options: Unpack[Options]
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._owner = 0
        self._report: Optional[Report] = None
        self._a: Any = None  # the matrix that the library borrows
        a, self._layout, lda = self._take(A, copy)
        self._n: int = a.shape[0]
        self._dtype: Dtype = a.dtype
        self._calls = _COMPLEX if a.dtype == COMPLEX else _REAL
        c = _options.make(options)  # type: ignore[arg-type]
        c.layout = self._layout
        self._watch: Optional[Watch]
        self._watch = watch_for(options.get("progress"), self._n)
        if self._watch is not None:
            c.progress = self._watch.callback
        status = self._calls.create(byref(self._handle), self._n, byref(c))
        if status != Status.OK:
            raise error_of(status, None, _hint(status, options))
        try:
            self._factor(self._calls.factor, a, lda)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _take(
        A: ArrayLike, copy: bool, dtype: Optional[Dtype] = None
    ) -> tuple[Numbers, Layout, int]:
        a, layout, lda = as_matrix(A, dtype=dtype)
        if copy and (a is A or a.base is not None):
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

    @property
    def report(self) -> Optional[Report]:
        """The report of the last call of factor, update or solve."""
        return self._report

    @property
    def closed(self) -> bool:
        return not self._handle

    def factor(self, A: ArrayLike, *, copy: bool = False) -> Self:
        """Replaces the matrix by another of the same order and factors it. A
        solver of a complex matrix takes real ones too."""
        return self._replace(self._calls.factor, A, copy)

    def update(self, A: ArrayLike, *, copy: bool = False) -> Self:
        """Replaces the matrix by a nearby one but keeps the factors. Solves
        refine with the new matrix, and factor it only if this does not
        converge."""
        return self._replace(self._calls.update, A, copy)

    def _replace(self, call: Any, A: ArrayLike, copy: bool) -> Self:
        to = COMPLEX if self._dtype == COMPLEX else None
        a, layout, lda = self._take(A, copy, to)
        if a.dtype != self._dtype:
            raise bad_type(
                "A is complex, and the solver was made for real matrices: "
                "hone.factor(A) makes one for complex matrices"
            )
        if a.shape[0] != self._n:
            raise bad_value(f"A has order {a.shape[0]}, the solver {self._n}")
        a, lda = in_layout(a, layout, lda, self._layout)
        self._factor(call, a, lda)
        return self

    def _factor(self, call: Any, a: Numbers, lda: int) -> None:
        c_report = _abi.new_report()
        status = self._use(call, a, address(a), lda, byref(c_report))
        report = self._report = Report(c_report, NO_COLUMNS)
        if status < 0:
            raise error_of(status, report)

    @overload
    def solve(
        self,
        b: ArrayLike,
        *,
        trans: Way = ...,
        x0: Optional[ArrayLike] = ...,
        out: Optional[Numbers] = ...,
        weak: Weak = ...,
        error_bounds: bool = ...,
        return_report: Literal[False] = ...,
    ) -> Numbers: ...
    @overload
    def solve(
        self,
        b: ArrayLike,
        *,
        trans: Way = ...,
        x0: Optional[ArrayLike] = ...,
        out: Optional[Numbers] = ...,
        weak: Weak = ...,
        error_bounds: bool = ...,
        return_report: Literal[True],
    ) -> tuple[Numbers, Report]: ...
    def solve(
        self,
        b: ArrayLike,
        *,
        trans: Way = False,
        x0: Optional[ArrayLike] = None,
        out: Optional[Numbers] = None,
        weak: Weak = "warn",
        error_bounds: bool = False,
        return_report: bool = False,
    ) -> Union[Numbers, tuple[Numbers, Report]]:
        """Returns x with A x = b; the arguments are those of hone.solve."""
        way = _options.way(trans)
        v = Vectors(b, self._n, self._dtype, x0, out, weak, error_bounds)
        c = _abi.new_options()
        v.put_in(c, way)
        status = self._use(
            self._calls.solve,
            None,
            v.nrhs,
            address(v.b),
            v.ldb,
            address(v.x),
            v.ldx,
            byref(c),
            byref(v.c_report),
        )
        report = self._report = v.report(status)
        x = v.answer(status, report)
        return (x, report) if return_report else x

    def _use(self, call: Any, a: Optional[Numbers], *arguments: Any) -> int:
        """Calls call(handle, *arguments) while no other call runs. a is the
        matrix that it borrows, if any."""
        self._not_from_within()
        with self._lock_here():
            if not self._handle:
                raise HoneValueError(
                    "the solver is closed", Status.NOT_FACTORED
                )
            self._owner = threading.get_ident()
            try:
                if a is not None:
                    self._a = a, self._a  # keeps both during the call
                if self._watch is not None:
                    return self._watch.run(call, self._handle, *arguments)
                status: int = call(self._handle, *arguments)
                return status
            finally:
                if a is not None:
                    self._a = a
                self._owner = 0

    def _lock_here(self) -> threading.Lock:
        """Returns the lock, a new one in the child of a fork, where the thread
        that had it may not exist."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = threading.Lock()
            self._owner = 0
        return self._lock

    def _not_from_within(self) -> None:
        if self._owner == threading.get_ident():
            raise HoneBusyError(
                "a solver cannot be used by its own progress function",
                Status.BUSY,
            )

    def close(self) -> None:
        """Frees the factors and no longer refers to A. May be called again."""
        self._not_from_within()
        with self._lock_here():
            self._calls.destroy(byref(self._handle))
            self._a = None
            self._watch = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            self._calls.destroy(byref(handle))

    def __reduce_ex__(self, _protocol: Any) -> Any:
        raise TypeError("a hone.Solver can be neither copied nor pickled")

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        kind = "complex, " if self._dtype == COMPLEX else ""
        return f"<hone.Solver of order {self._n}, {kind}{state}>"


def factor(
    A: ArrayLike, *, copy: bool = False, **options: Unpack[Options]
) -> Solver:
    """Factors A once and returns a Solver, with the methods solve, update and
    close; a with statement closes it. The options are those of hone.solve.

    The solver borrows A if it can be read in place, and then A must not change
    while the solver is used; copy=True takes a copy.
    """
    return Solver(A, copy=copy, **options)


class HostMemory(NamedTuple):
    single_bytes: int  # if single-precision factors suffice
    double_bytes: int  # if A is factored in double, too


class DeviceMemory(NamedTuple):
    with_residuals: int  # with a copy of A in double on the device
    without: int


def memory_needed(
    n: int,
    nrhs: int = 1,
    *,
    dtype: DTypeLike = float,
    **options: Unpack[Options],
) -> HostMemory:
    """Returns the most host memory that solve allocates, in bytes; the
    caller's arrays are not counted. dtype is that of A."""
    call = lib.hone_memory_needed
    if np.dtype(dtype).kind == "c":
        call = lib.hone_z_memory_needed
    return HostMemory(*_needed(call, (n, nrhs), options))


def device_memory_needed(n: int, **options: Unpack[Options]) -> DeviceMemory:
    """Returns the memory on a GPU that solving takes, in bytes; 0 if the
    library was built without CUDA."""
    return DeviceMemory(*_needed(lib.hone_device_memory_needed, (n,), options))


def release_kept() -> int:
    """Frees the device memory that the library keeps for the next solve of the
    same order, and returns how many bytes that was."""
    return int(lib.hone_release_kept())


def _needed(call: Any, sizes: tuple[int, ...], options: Any) -> tuple[int, int]:
    first, second = ctypes.c_int64(), ctypes.c_int64()
    checked = [_options.whole("size", each, 64) for each in sizes]
    c = _options.make(options)
    status = call(*checked, byref(c), byref(first), byref(second))
    if status != Status.OK:
        raise error_of(status, None, _hint(status, options))
    return first.value, second.value


def version() -> str:
    """Returns the library's version."""
    text: bytes = lib.hone_version()
    return text.decode()
