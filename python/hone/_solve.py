# SPDX-License-Identifier: BSD-3-Clause
"""Solving in one call."""

from __future__ import annotations

import time
from ctypes import byref
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Optional, Union
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from . import _abi, _options
from ._arrays import COMPLEX, REAL, Dtype, Numbers, as_array, as_matrix
from ._arrays import as_numbers, overlap
from ._assumed import assumed
from ._batch import rounded, serves, solve_at_once, solve_there
from ._device import AnyArray, OnDevice
from ._enums import Status
from ._errors import bad_type, bad_value
from ._options import Way, hint
from ._report import Report
from ._results import Poor, Weak, check_weak, narrow_type, poor_among, tell
from ._stack import Stack, put_out, solve_stack, stack_of
from ._vectors import Vectors, address
from ._view import View
from ._watch import watch_for

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

lib = _abi.lib


class _Asked(NamedTuple):
    """What is asked of every system of a call."""

    way: int
    error_bounds: bool
    options: Any
    narrow: Optional[Dtype]  # the type of x, if it is not of doubles


def _solve_one(
    asked: _Asked,
    A: Numbers,
    b: AnyArray,
    x0: Any,
    out: Any = None,
    taken_over: bool = False,
) -> tuple[Numbers, Report]:
    a, layout, lda = as_matrix(A)
    n = a.shape[0]
    c = _options.make(asked.options)
    c.layout = layout
    v = Vectors(b, n, a.dtype, x0, out, asked.error_bounds, taken_over)
    v.refuse_matrix(A)
    v.put_in(c, asked.way)
    call = lib.hone_z_solve if a.dtype == COMPLEX else lib.hone_solve
    watch = watch_for(asked.options.get("progress"), n, v.nrhs)
    matrix = n, v.nrhs, address(a), lda
    vectors = address(v.b), v.ldb, address(v.x), v.ldx
    arguments = *matrix, *vectors, byref(c), byref(v.c_report)
    if watch is None:
        status: int = call(*arguments)
    else:
        c.progress = watch.callback
        status = watch.run(call, *arguments)
        watch.check()
    report = v.report(status)
    return v.answer(report, hint(status, asked.options), asked.narrow), report


def _solve_many(
    asked: _Asked, stack: Stack, x0: Any, weak: str, with_report: bool
) -> tuple[Numbers, Any, Optional[Poor]]:
    """Returns x, of the shape of stack.b, its reports if they are wanted or
    made, and the weak ones of them."""
    deadline = _options.number(
        "deadline_s", asked.options.get("deadline_s") or 0.0
    )
    end = time.monotonic() + deadline

    def one(*arguments: Any) -> tuple[Numbers, Report]:
        """Solves with one matrix, in the time that is left for all."""
        now = asked
        if deadline > 0.0:
            left = max(end - time.monotonic(), 1e-9)  # 0 would be no deadline
            now = asked._replace(options={**asked.options, "deadline_s": left})
        return _solve_one(now, *arguments)

    plain = x0 is None and not asked.error_bounds and not with_report
    if plain and serves(stack, asked.options):
        given = {k: v for k, v in asked.options.items() if k != "progress"}
        again = partial(_solve_one, asked._replace(options=given))
        x, poor = solve_at_once(stack, asked.options, asked.way, again, weak)
        if asked.narrow is not None:
            x = rounded(x, stack, again, asked.narrow)
        return x, None, poor
    first = None if x0 is None else as_numbers(x0, "x0")
    x, reports = solve_stack(stack, one, first, asked.narrow or stack.dtype)
    return x, reports, poor_among(reports)


def _may_take(b: Any, a: Numbers, x0: Any) -> bool:
    """May x take the place of b? It is a permission: where b is a part of
    another array, it does not."""
    if isinstance(b, View):
        own = b.ndim <= 2 and b.writeable
    else:
        own = type(b) is np.ndarray and b.ndim <= 2 and b.flags.writeable
        own = own and not overlap(b, a) and (b is x0 or not overlap(b, x0))
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
    A: AnyArray,
    b: OnDevice,
    *,
    trans: Way = ...,
    assume_a: Optional[str] = ...,
    lower: bool = ...,
    overwrite_a: bool = ...,
    overwrite_b: bool = ...,
    x0: Optional[AnyArray] = ...,
    out: Optional[Union[Numbers, OnDevice]] = ...,
    weak: Weak = ...,
    error_bounds: bool = ...,
    return_report: Literal[False] = ...,
    **options: Unpack[Options],
) -> Any: ...
@overload
def solve(
    A: AnyArray,
    b: OnDevice,
    *,
    trans: Way = ...,
    assume_a: Optional[str] = ...,
    lower: bool = ...,
    overwrite_a: bool = ...,
    overwrite_b: bool = ...,
    x0: Optional[AnyArray] = ...,
    out: Optional[Union[Numbers, OnDevice]] = ...,
    weak: Weak = ...,
    error_bounds: bool = ...,
    return_report: Literal[True],
    **options: Unpack[Options],
) -> tuple[Any, Any]: ...
@overload
def solve(
    A: AnyArray,
    b: ArrayLike,
    *,
    trans: Way = ...,
    assume_a: Optional[str] = ...,
    lower: bool = ...,
    overwrite_a: bool = ...,
    overwrite_b: bool = ...,
    x0: Optional[AnyArray] = ...,
    out: Optional[Union[Numbers, OnDevice]] = ...,
    weak: Weak = ...,
    error_bounds: bool = ...,
    return_report: Literal[False] = ...,
    **options: Unpack[Options],
) -> Numbers: ...
@overload
def solve(
    A: AnyArray,
    b: ArrayLike,
    *,
    trans: Way = ...,
    assume_a: Optional[str] = ...,
    lower: bool = ...,
    overwrite_a: bool = ...,
    overwrite_b: bool = ...,
    x0: Optional[AnyArray] = ...,
    out: Optional[Union[Numbers, OnDevice]] = ...,
    weak: Weak = ...,
    error_bounds: bool = ...,
    return_report: Literal[True],
    **options: Unpack[Options],
) -> tuple[Numbers, Any]: ...
def solve(
    A: AnyArray,
    b: AnyArray,
    *,
    trans: Way = False,
    assume_a: Optional[str] = None,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    x0: Optional[AnyArray] = None,
    out: Optional[Union[Numbers, OnDevice]] = None,
    weak: Weak = "warn",
    error_bounds: bool = False,
    return_report: bool = False,
    **options: Unpack[Options],
) -> Any:
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
    the same matrix as columns of it; error_bounds, x0, triangle, deadline_s
    and return_report have them solved one after the other. The report is then
    an array of reports, one for each matrix, of the shape of A without its last
    two axes; error_bounds of each is like its part of x. No x comes back from a
    stack if deadline_s passes, or a matrix fails. hone.solve_batch returns the
    verdict on each system, and raises no exception for any.

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
    A, side = as_array(A, "A"), as_array(b, "b")
    narrow = narrow_type(A, side) if out is None else None
    if overlap(out, A):
        raise bad_value("out overlaps A", Status.BAD_OVERLAP)
    a = as_numbers(A, "A")
    given: Any = dict(options)
    stacked = a.ndim > 2 or side.ndim > 2
    if assume_a is not None:
        a, said = assumed(a, assume_a, lower, stacked)
        for name, value in said.items():
            own = given.get(name)
            ways = [value, "auto" if name == "structure" else value]
            if a.dtype == REAL:
                ways.append(value.replace("_symmetric", ""))
            agrees = (_options.same(name, own, each) for each in ways)
            if own is not None and not any(agrees):
                raise bad_value(f"{name} and assume_a say two things of A")
            given[name] = value
        if stacked or said["triangle"] == "both":
            del given["triangle"]  # a has all entries
    asked = _Asked(_options.way(trans), error_bounds, given, narrow)
    report: Any
    if stacked:
        stack = stack_of(a, as_numbers(side, "b"))
        if isinstance(stack.a, View) or isinstance(stack.b, View):
            _check_at_once(x0, out, error_bounds, return_report)
            x, poor = solve_there(stack, given, asked.way, weak)
            tell(x, poor, weak)
            return x
        x, report, poor = _solve_many(asked, stack, x0, weak, return_report)
        x = x[..., 0] if stack.vector else x
        x = x if out is None else put_out(x, stack, out)
    else:
        takes = out is None and overwrite_b and narrow is None
        takes = takes and not overlap(side, A) and _may_take(side, a, x0)
        to = side if takes else out
        x, report = _solve_one(asked, a, side, x0, to, takes)
        poor = poor_among(report)
    tell(x, poor, weak)
    return (x, report) if return_report else x
