# SPDX-License-Identifier: BSD-3-Clause
"""Solving in one call and with a solver."""

from __future__ import annotations

from ctypes import byref
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Optional, Union
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from . import _abi, _options
from ._arrays import COMPLEX, REAL, Dtype, Numbers, as_matrix, as_numbers
from ._arrays import in_layout, layout_of
from ._assumed import assumed
from ._batch import rounded, serves, solve_at_once, solve_there
from ._device import taken
from ._enums import Layout, Status
from ._errors import bad_type, bad_value, error_of
from ._kept import Kept
from ._options import Way, hint
from ._report import NO_COLUMNS, Report
from ._results import Poor, check_weak, narrow_type, poor_among, tell
from ._stack import Stack, put_out, solve_stack, stack_of
from ._vectors import Vectors, address
from ._view import View, copied
from ._watch import Watch, watch_for

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._options import Options, ProgressFunction

Weak = Literal["warn", "raise", "ignore"]
lib = _abi.lib


class _Asked(NamedTuple):
    """What is asked of every system of a call."""

    way: int
    error_bounds: bool
    options: Any
    narrow: Optional[Dtype]  # the type of x, if it is not of doubles


def _solve_one(
    asked: _Asked, A: Numbers, b: ArrayLike, x0: Any, out: Any = None
) -> tuple[Numbers, Report]:
    a, layout, lda = as_matrix(A)
    n = a.shape[0]
    c = _options.make(asked.options)
    c.layout = layout
    v = Vectors(b, n, a.dtype, x0, out, asked.error_bounds)
    v.put_in(c, asked.way)
    call = lib.hone_z_solve if a.dtype == COMPLEX else lib.hone_solve
    watch = watch_for(asked.options.get("progress"), n)
    matrix = n, v.nrhs, address(a), lda
    vectors = address(v.b), v.ldb, address(v.x), v.ldx
    arguments = *matrix, *vectors, byref(c), byref(v.c_report)
    if watch is None:
        status: int = call(*arguments)
    else:
        c.progress = watch.callback
        status = watch.run(call, *arguments)
    report = v.report(status)
    return v.answer(report, hint(status, asked.options), asked.narrow), report


def _solve_many(
    asked: _Asked, stack: Stack, x0: Any, weak: str, with_report: bool
) -> tuple[Numbers, Any, Optional[Poor]]:
    """Returns x, of the shape of stack.b, its reports if they are wanted or
    made, and the weak ones of them."""
    one = partial(_solve_one, asked)
    plain = x0 is None and not asked.error_bounds and not with_report
    if plain and serves(stack, asked.options):
        given = {k: v for k, v in asked.options.items() if k != "progress"}
        one = partial(_solve_one, asked._replace(options=given))
        x, poor = solve_at_once(stack, asked.options, asked.way, one, weak)
        if asked.narrow is not None:
            x = rounded(x, stack, one, asked.narrow)
        return x, None, poor
    first = None if x0 is None else as_numbers(x0, "x0")
    x, reports = solve_stack(stack, one, first, asked.narrow or stack.dtype)
    return x, reports, poor_among(reports)


def _may_take(b: Any, a: Numbers) -> bool:
    """May x take the place of b?"""
    if isinstance(b, View):
        own = b.ndim <= 2 and b.writeable
    else:
        own = type(b) is np.ndarray and b.ndim <= 2 and b.flags.writeable
    return own and b.dtype == (COMPLEX if a.dtype == COMPLEX else REAL)


def _check_at_once(x0: Any, out: Any, bounds: bool, report: bool) -> None:
    """Refuses what a stack on a device cannot have, which one call solves."""
    for name, given in (
        ("x0", x0 is not None),
        ("out", out is not None),
        ("error_bounds", bounds),
        ("return_report", report),
    ):
        if given:
            raise bad_type(
                f"{name} is not available for stacks on a device: solve their "
                "systems one by one, or use hone.solve_batch"
            )


@overload
def solve(
    A: ArrayLike,
    b: ArrayLike,
    *,
    trans: Way = ...,
    assume_a: Optional[str] = ...,
    lower: bool = ...,
    overwrite_a: bool = ...,
    overwrite_b: bool = ...,
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
    assume_a: Optional[str] = ...,
    lower: bool = ...,
    overwrite_a: bool = ...,
    overwrite_b: bool = ...,
    x0: Optional[ArrayLike] = ...,
    out: Optional[Numbers] = ...,
    weak: Weak = ...,
    error_bounds: bool = ...,
    return_report: Literal[True],
    **options: Unpack[Options],
) -> tuple[Numbers, Any]: ...
def solve(
    A: ArrayLike,
    b: ArrayLike,
    *,
    trans: Way = False,
    assume_a: Optional[str] = None,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    x0: Optional[ArrayLike] = None,
    out: Optional[Numbers] = None,
    weak: Weak = "warn",
    error_bounds: bool = False,
    return_report: bool = False,
    **options: Unpack[Options],
) -> Union[Numbers, tuple[Numbers, Any]]:
    """Returns a verified x with A x = b, or A^T x = b if trans is "T" or true,
    or A^H x = b if it is "C". b is (n,) or (n, columns).

    A is read in place, by rows or by columns, also as a part of a larger array.
    It is converted first if it is neither float64 nor complex128 or has gaps
    inside both its rows and its columns. x is by rows, complex if A or b is,
    and of single precision if both are (then it is solved in double, and x is
    rounded). A real A with a complex b is factored as a real matrix, and solves
    two real columns, real and imaginary parts in turn, for each of b; the
    report is of those. out receives x and may be b. x0 is a warm start. With
    error_bounds=True the report has a bound on the error |x_i - true x_i| of
    every entry of x, report.error_bounds.

    A of (..., n, n) is a stack of matrices, and b of (..., n, columns) one of
    right-hand sides; they are broadcast as by numpy.linalg.solve of NumPy 2.
    Small systems are solved several at once (hone_batch_solve), and those with
    the same matrix as columns of it; error_bounds, x0, deadline_s and
    return_report have them solved one after the other. The report is then an
    array of reports, one for each matrix. hone.solve_batch returns the verdict
    on each system, and raises no exception for any.

    assume_a, lower and overwrite_b are those of scipy.linalg.solve: of a
    symmetric, Hermitian or positive definite matrix one triangle counts, and of
    a triangular, diagonal or tridiagonal one what is not zero. overwrite_a is
    accepted, but A is never changed. Without assume_a all of A counts, and its
    structure is found.

    A status > 0 means that x is the best found, but weaker than asked. It gives
    a HoneWarning; weak="raise" raises a HoneWeakError instead, and
    weak="ignore" does neither. Errors are subclasses of HoneError, which are
    also ValueError, LinAlgError, ...

    A, b, x0 and out may also lie on a CUDA device, each where it likes, and x
    is made where b lies: see python/README.md.
    """
    del overwrite_a
    check_weak(weak)
    narrow = narrow_type(A, b) if out is None else None
    a, b = as_numbers(A, "A"), taken(b, "b")
    given: Any = dict(options)
    if assume_a is not None:
        a, structure = assumed(a, assume_a, lower)
        if structure is not None and given.setdefault(
            "structure", structure
        ) not in (structure, None):
            raise bad_value("structure and assume_a say two things of A")
    asked = _Asked(_options.way(trans), error_bounds, given, narrow)
    report: Any
    dimensions = b.ndim if isinstance(b, View) else np.ndim(b)
    if a.ndim > 2 or dimensions > 2:
        stack = stack_of(a, as_numbers(b, "b"))
        if isinstance(stack.a, View) or isinstance(stack.b, View):
            _check_at_once(x0, out, error_bounds, return_report)
            x, poor = solve_there(stack, given, asked.way, weak)
            tell(x, poor, weak)
            return x
        x, report, poor = _solve_many(asked, stack, x0, weak, return_report)
        x = x[..., 0] if stack.vector else x
        x = x if out is None else put_out(x, stack, out)
    else:
        if out is None and overwrite_b and narrow is None and _may_take(b, a):
            out = b  # type: ignore[assignment]
        x, report = _solve_one(asked, a, b, x0, out)
        poor = poor_among(report)
    tell(x, poor, weak)
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


class Solver(Kept):
    """A matrix with its factors, for many solves; hone.factor makes it.

    Calls from several threads wait for one another.
    """

    def __init__(
        self, A: ArrayLike, *, copy: bool = False, **options: Unpack[Options]
    ) -> None:
        self._narrow = narrow_type(A)
        a, self._layout, lda = self._take(A, copy)
        self._n: int = a.shape[0]
        self._dtype: Dtype = a.dtype
        self._calls = _COMPLEX if a.dtype == COMPLEX else _REAL
        super().__init__(self._calls.destroy)
        c = _options.make(options)  # type: ignore[arg-type]
        c.layout = self._layout
        self._watch = watch_for(options.get("progress"), self._n)
        if self._watch is not None:
            c.progress = self._watch.callback
        status = self._calls.create(byref(self._handle), self._n, byref(c))
        if status != Status.OK:
            raise error_of(status, None, hint(status, options))
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
        if isinstance(a, View):
            a = copied(a, "A") if copy else a
            layout, ld = layout_of(a)
            return a, layout, ld
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
        self._narrow = narrow_type(A)
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
        self._factor(call, a, lda)
        return self

    def _factor(self, call: Any, a: Numbers, lda: int) -> None:
        c_report = _abi.new_report()
        matrix = address(a), lda, byref(c_report)
        status = self._use(call, a, self._watch, *matrix)
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
        x0: Optional[ArrayLike] = ...,
        out: Optional[Numbers] = ...,
        weak: Weak = ...,
        error_bounds: bool = ...,
        deadline_s: Optional[float] = ...,
        progress: Optional[ProgressFunction] = ...,
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
        deadline_s: Optional[float] = None,
        progress: Optional[ProgressFunction] = None,
        return_report: bool = False,
    ) -> Union[Numbers, tuple[Numbers, Report]]:
        """Returns x with A x = b; each of these arguments is that of
        hone.solve. The other options are those with which the solver was made,
        and so are deadline_s and progress where they are None."""
        check_weak(weak)
        way = _options.way(trans)
        v = Vectors(b, self._n, self._dtype, x0, out, error_bounds)
        c = _options.make({"deadline_s": deadline_s, "progress": progress})
        v.put_in(c, way)
        watch = self._watch if progress is None else Watch(progress)
        if watch is not None:
            c.progress = watch.callback
        status = self._use(
            self._calls.solve,
            None,
            watch,
            v.nrhs,
            address(v.b),
            v.ldb,
            address(v.x),
            v.ldx,
            byref(c),
            byref(v.c_report),
        )
        report = self._report = v.report(status)
        narrow = self._narrow and narrow_type(b)
        if narrow:
            narrow = np.result_type(self._narrow, narrow)
        x = v.answer(report, "", narrow)
        tell(x, poor_among(report), weak)
        return (x, report) if return_report else x

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of A, and of its inverse, for which a solver stands where
        SciPy takes linear operators: aslinearoperator(solver), M=solver."""
        return self._n, self._n

    def matvec(self, b: ArrayLike) -> Numbers:
        """Returns inv(A) b."""
        return self.solve(b)

    def rmatvec(self, b: ArrayLike) -> Numbers:
        """Returns inv(A^H) b."""
        return self.solve(b, trans="C")

    matmat = matvec
    rmatmat = rmatvec

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
