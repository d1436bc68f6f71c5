# SPDX-License-Identifier: BSD-3-Clause
"""Many systems in one call of the library, hone_batch_solve."""

from __future__ import annotations

import math
from ctypes import byref
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _abi, _options
from ._arrays import COMPLEX, Dtype, Numbers, as_numbers, layout_of, line_ld
from ._device import AnyArray, OnDevice, x_beside
from ._driver import LEGACY_STREAM, wait_for_stream
from ._enums import Layout, Status, status_text
from ._errors import REFUSED, bad_value, error_of
from ._report import NO_COLUMNS, Report
from ._results import Poor
from ._stack import Index, One, Stack, broadcast_to, name_of, solve_at
from ._stack import stack_of
from ._vectors import address
from ._view import View, at_home, store
from ._watch import watch_for

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options as OptionsGiven

RESULT_DTYPE = np.dtype(
    [(field[0], np.dtype(field[1])) for field in _abi.BatchResult._fields_]
)
Results = NDArray[np.void]


class Solved(NamedTuple):
    """What the library returns for a batch."""

    status: int
    x: Numbers  # (..., nrhs, n), NaN where there is none
    results: Results
    report: Report


def serves(stack: Stack, options: Any) -> bool:
    """Is one call for all systems the same as one for each? With a deadline it
    is not, and it takes whole matrices."""
    alone = options.get("deadline_s") or options.get("triangle")
    return math.prod(stack.reports) >= 2 and not alone


# ---- Arrays


def without_copies(
    v: Numbers, axes: int, make: Callable[[Numbers], Numbers]
) -> Numbers:
    """Returns make(v), where entries that v repeats along its first axes are
    repeated without copies too."""
    once = tuple(
        slice(0, 1) if stride == 0 else slice(None)
        for stride in v.strides[:axes]
    )
    made = make(v[once])
    return np.broadcast_to(made, v.shape[:axes] + made.shape[axes:])


def _step(v: Numbers, axes: int) -> Optional[int]:
    """Returns how many numbers lie between the arrays of the first axes, or
    None if the distance is not the same everywhere, or negative."""
    step = reach = None
    for extent, stride in zip(
        reversed(v.shape[:axes]), reversed(v.strides[:axes])
    ):
        if extent == 1:
            continue
        if step is None:
            step = stride
        elif stride != reach:
            return None
        reach = stride * extent
    step = step or 0
    return step // v.itemsize if step >= 0 and step % v.itemsize == 0 else None


def _addresses(v: Numbers, axes: int) -> NDArray[np.int64]:
    """Returns where each array of the first axes begins."""
    at = np.array(address(v), np.int64)
    for extent, stride in zip(v.shape[:axes], v.strides[:axes]):
        at = at[..., None] + stride * np.arange(extent, dtype=np.int64)
    return np.ascontiguousarray(at)


def _parts_apart(z: Numbers) -> Numbers:
    """Returns (..., 2 nrhs, n): the real and the imaginary part of each
    column."""
    parts = np.stack((z.real, z.imag), axis=-2)
    return parts.reshape(z.shape[:-2] + (2 * z.shape[-2], z.shape[-1]))


def _together(x: Numbers) -> Numbers:
    """Returns the complex columns with these parts."""
    z = np.empty(x.shape[:-2] + (x.shape[-2] // 2, x.shape[-1]), COMPLEX)
    z.real = x[..., 0::2, :]
    z.imag = x[..., 1::2, :]
    return z


# ---- The call


class Call:
    """The arguments of one call for matrices of so many axes, and the answer.
    Arrays repeat themselves where their stride is 0."""

    def __init__(self, shape: Index, n: int, dtype: Dtype) -> None:
        self.axes = len(shape)
        self.dtype = dtype  # of the matrices
        self.batch = _abi.new_batch()
        self.batch.count, self.batch.n = math.prod(shape), n
        self.results: Results = np.zeros(shape, RESULT_DTYPE)
        self.c_report = _abi.new_report()
        self.matrices: Any = None  # what must live as long as they are used
        self._split = False  # complex columns are two real ones each

    @property
    def size(self) -> int:
        """The order of one matrix that is as much work as all of them."""
        return int((self.batch.count * self.batch.n**3) ** (1 / 3))

    def put_matrices(
        self, a: Numbers, wanted: Optional[Layout] = None
    ) -> Layout:
        """Says where the matrices lie. Returns their layout: the one wanted, if
        it matters."""
        layout, ld = layout_of(a)
        other = wanted is not None and layout != wanted and self.batch.n > 1
        if not ld and isinstance(a, View):
            raise bad_value(
                f"A has strides {a.strides} on a device: the rows or the "
                "columns of each matrix must be contiguous; copy it there"
            )
        if other or not ld:
            by_columns = wanted == Layout.COL_MAJOR
            make: Callable[[Numbers], Numbers]
            make = _by_columns if by_columns else np.ascontiguousarray
            a = without_copies(a, self.axes, make)
            layout, ld = layout_of(a)
        self.batch.lda = ld
        self.batch.a = address(a)
        step = _step(a, self.axes)
        self.matrices = a
        if step is not None:
            self.batch.stride_a = step
            return layout
        places = _addresses(a, self.axes)
        self.batch.a_list = places.ctypes.data
        self.matrices = a, places
        return layout

    def put_columns(self, b: Numbers, there: Optional[View] = None) -> None:
        """Says where the right-hand sides lie, the rows of (..., nrhs, n), and
        where x shall be: there, if that is given, an array on a device without
        gaps, of the type of x and full of NaN."""
        batch = self.batch
        self._split = self.dtype != COMPLEX and b.dtype == COMPLEX
        self._there = there
        if isinstance(b, View):
            ready = b.dtype == self.dtype and line_ld(b)
            if not ready or _step(b, self.axes) is None:
                b = at_home(b, "b")
        if self._split:
            b = without_copies(b, self.axes, _parts_apart)
        elif b.dtype != self.dtype:
            b = without_copies(b, self.axes, lambda v: v.astype(COMPLEX))
        batch.nrhs = b.shape[-2]
        if not line_ld(b):
            b = without_copies(b, self.axes, np.ascontiguousarray)
        step = _step(b, self.axes)
        if step is None:
            b, step = np.ascontiguousarray(b), b.shape[-2] * b.shape[-1]
        self._b = b  # lives as long as the call
        batch.b, batch.ldb, batch.stride_b = address(b), line_ld(b), step
        self._x: Numbers
        if there is not None and not self._split:
            self._x = there  # type: ignore[assignment]
        else:
            self._x = np.full(b.shape, np.nan, b.dtype)
        batch.x, batch.ldx = address(self._x), max(1, batch.n)
        batch.stride_x = batch.nrhs * batch.n

    def arguments(
        self, options: Optional[_abi.Options] = None
    ) -> tuple[Any, ...]:
        """Returns the arguments of the library's function, of which those that
        factor have no options."""
        given = () if options is None else (byref(options),)
        places = self.results.ctypes.data, byref(self.c_report)
        return (byref(self.batch), *given, *places)

    def report(self) -> Report:
        return Report(self.c_report, NO_COLUMNS)

    def solved(self, status: int) -> Solved:
        """Returns the answer of a call that solves, and has this status."""
        x = _together(self._x) if self._split else self._x
        there = self._there
        if there is not None and there.place is not None:
            if self._split:
                store(there, x, "x")
            else:  # its last copy may be under way
                wait_for_stream(there.place, LEGACY_STREAM)
        if self._split:
            in_b = self.results["status"] == Status.NOT_FINITE_B
            self.results["col"][in_b] //= 2
        return Solved(status, x, self.results, self.report())


def _by_columns(v: Numbers) -> Numbers:
    turned = np.ascontiguousarray(np.swapaxes(v, -1, -2))
    return np.swapaxes(turned, -1, -2)


def run(
    a: Numbers,
    b: Numbers,
    options: Any,
    way: int,
    determinants: bool = False,
    there: Optional[View] = None,
) -> Solved:
    """Solves the systems of a, (..., n, n), with the rows of b, (..., nrhs, n),
    as right-hand sides. Their first axes are equal. x is put there, if that is
    given."""
    call = Call(a.shape[:-2], a.shape[-1], a.dtype)
    call.batch.determinants = 1 if determinants else 0
    c = _options.make(options)
    c.trans = way
    c.layout = call.put_matrices(a)
    call.put_columns(b, there)
    lib, is_complex = _abi.lib, a.dtype == COMPLEX
    function = lib.hone_z_batch_solve if is_complex else lib.hone_batch_solve
    watch = watch_for(options.get("progress"), call.size)
    if watch is None:
        return call.solved(function(*call.arguments(c)))
    c.progress = watch.callback
    status = watch.run(function, *call.arguments(c))
    watch.check()
    return call.solved(status)


def run_stack(
    stack: Stack, options: Any, way: int, determinants: bool = False
) -> Solved:
    """Solves every system of a stack by itself, and returns x in its shape,
    where b lies. Raises an exception only if the call is refused."""
    a = broadcast_to(stack.a, stack.shape + stack.a.shape[-2:])
    b: Any = stack.b
    made: Optional[View] = None
    there: Optional[View] = None
    if isinstance(b, View):
        shape = b.shape[:-1] if stack.vector else b.shape
        made = x_beside(b, shape, stack.dtype, not stack.vector)
        there = (made.as_column() if stack.vector else made).swapped()
        columns: Any = b.swapped()
    else:
        columns = np.swapaxes(b, -1, -2)
    solved = run(a, columns, options, way, determinants, there)
    if solved.status in REFUSED:
        raise error_of(
            solved.status, solved.report, _options.hint(solved.status, options)
        )
    if made is not None:
        return solved._replace(x=made.owner)
    x = np.swapaxes(solved.x, -1, -2)
    x = np.ascontiguousarray(x[..., 0] if stack.vector else x)
    return solved._replace(x=x)


# ---- Stacks for hone.solve


class Turned(NamedTuple):
    """A stack as one call takes it: the axes along which A does not change are
    more columns."""

    a: Numbers  # (own, n, n)
    b: Numbers  # (own, nrhs, n)
    shape: Index  # (own, others, columns, n)
    order: Index  # of the axes of stack.b in shape

    def back(self, x: Numbers) -> Numbers:
        """Returns x, of the shape of b, in the shape of stack.b."""
        whole = x.reshape(self.shape).transpose(np.argsort(self.order))
        return np.ascontiguousarray(whole)


def turned(stack: Stack) -> Turned:
    count = len(stack.shape)
    at = tuple(slice(None) if i in stack.own else 0 for i in range(count))
    others = tuple(i for i in range(count) if i not in stack.own)
    order = (*stack.own, *others, count + 1, count)
    whole = stack.b.transpose(order)
    own, n = len(stack.own), stack.b.shape[-2]
    nrhs = math.prod(whole.shape[own:-1])
    b = without_copies(
        whole, own, lambda v: v.reshape(v.shape[:own] + (nrhs, n))
    )
    return Turned(stack.a[at], b, whole.shape, order)


def solve_at_once(
    stack: Stack, options: Any, way: int, one: One, weak: str
) -> tuple[Numbers, Optional[Poor]]:
    """Returns x, of the shape of stack.b, and what is to be said of weak ones.
    A system that fails, and the first weak one, are solved again by one: their
    exceptions and reports are those of single systems."""
    one_call = turned(stack)
    solved = run(one_call.a, one_call.b, options, way)
    x = one_call.back(solved.x)
    if solved.status == Status.OK:
        return x, None
    status = solved.results["status"]
    first = None
    for index in map(tuple, np.argwhere(status != Status.OK).tolist()):
        if status[index] == Status.CANCELLED:
            error = error_of(Status.CANCELLED, solved.report)
            error.args = (f"{name_of(stack.place(index))}: {error}",)
            raise error
        if status[index] < 0 or (first is None and weak != "ignore"):
            report = solve_at(stack, index, one, None, x)
            status[index] = report.status
            if report.status > 0 and first is None:
                first = stack.place(index), report
    if first is None:
        return x, None
    return x, Poor(*first, int(np.sum(status > 0)), status.size)


def rounded(x: Numbers, stack: Stack, one: One, to: Dtype) -> Numbers:
    """Returns x in single precision. The first system whose x is too large for
    that is solved again by one, which says so."""
    with np.errstate(over="ignore", under="ignore"):
        narrow: Numbers = x.astype(to)
    for place in np.argwhere(np.isinf(narrow))[:1].tolist():
        solve_at(stack, tuple(place[i] for i in stack.own), one, None, x)
    return narrow


def solve_there(
    stack: Stack, options: Any, way: int, weak: str
) -> tuple[Numbers, Optional[Poor]]:
    """Returns x, in the caller's shape, and what is to be said of weak ones,
    where A or b lies on a device. The first system without x is an exception,
    and the reports are those of all systems together."""
    solved = run_stack(stack, options, way)
    status = solved.results["status"]
    for index in map(tuple, np.argwhere(status < 0).tolist()):
        place = solved.results[index]
        error = error_of(int(status[index]), solved.report)
        error.args = (
            f"{name_of(index)}: {status_text(int(status[index]))}; row "
            f"{place['row']}, column {place['col']}",
        )
        raise error
    poor = np.argwhere(status > 0).tolist()
    if not poor or weak == "ignore":
        return solved.x, None
    first = tuple(poor[0])
    return solved.x, Poor(first, solved.report, len(poor), status.size)


class BatchResult(NamedTuple):
    """The answer of hone.solve_batch."""

    x: Numbers
    results: Results


@overload
def solve_batch(
    A: AnyArray,
    b: OnDevice,
    *,
    trans: _options.Way = ...,
    vectors: bool = ...,
    determinants: bool = ...,
    **options: Unpack[OptionsGiven],
) -> Any: ...
@overload
def solve_batch(
    A: AnyArray,
    b: ArrayLike,
    *,
    trans: _options.Way = ...,
    vectors: bool = ...,
    determinants: bool = ...,
    **options: Unpack[OptionsGiven],
) -> BatchResult: ...
def solve_batch(
    A: AnyArray,
    b: AnyArray,
    *,
    trans: _options.Way = False,
    vectors: bool = False,
    determinants: bool = False,
    **options: Unpack[OptionsGiven],
) -> Any:
    """Solves a stack of systems, each by itself, and returns (x, results): no
    system raises an exception or gives a warning, whatever becomes of it.

    A is (..., n, n) and b is (n,) or (..., n, columns), or (..., n) with
    vectors=True; the first axes are broadcast as by hone.solve, and results has
    their shape. It is a structured array with the fields of hone_batch_result
    in hone_batch.h:

        status          0: accepted; > 0: x is the best found, weaker than
                        asked; < 0: there is no x. x is NaN where there is
                        none, also in one column of a weak one
        backward_error, normwise_error, residual_error, forward_error, digits,
        iterations      the worst of the system's columns
        precision       of the factors, 32 or 64
        rcond           1 / condition, estimated, in the 1-norm or, with trans
                        or an A by rows (C order), also the infinity norm
        row, col        0-based: the first NaN or Inf, or the smallest pivot
        log_abs_det, det_re, det_im
                        with determinants=True: log |det|, and the sign of the
                        determinant, a complex number of modulus 1

    Numbers that are not known are NaN or inf, places -1. hone.Status(status)
    gives a status its name, hone.status_text its text. Determinants are those
    of LU in double of scaled matrices; where the status is 0 the sign of a real
    matrix is right, or they are NaN, but otherwise they are not verified. With
    trans they are those of A^T or A^H.

    x is float64 or complex128, and lies where b does: A and b may be arrays on
    a CUDA device. The options are those of hone.solve; x0 and error_bounds are
    not available, and deadline_s is for all systems together: when it is over,
    or progress says so, the systems that are left have the status CANCELLED.
    Two systems with the same matrix are two systems here: give their right-hand
    sides as columns of one. A real A with a complex b has two real columns for
    each of b in the results.

    Shapes that do not fit and options that are refused raise an exception.
    """
    way = _options.way(trans)
    stack = stack_of(as_numbers(A, "A"), as_numbers(b, "b"), vectors)
    solved = run_stack(stack, options, way, determinants)
    return BatchResult(solved.x, solved.results)
