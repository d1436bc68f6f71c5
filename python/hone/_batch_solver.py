# SPDX-License-Identifier: BSD-3-Clause
"""Stacks of matrices whose factors are kept, hone_batch_solver."""

from __future__ import annotations

from ctypes import byref
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np
from numpy.typing import ArrayLike

from . import _abi, _options
from ._arrays import COMPLEX, Dtype, Numbers, as_numbers, is_own
from ._batch import BatchResult, Call, Results, turned, without_copies
from ._enums import Status
from ._errors import REFUSED, bad_type, error_of
from ._kept import Held, Kept
from ._stack import Index, check_square, stack_of
from ._view import View
from ._watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._options import Options, ProgressFunction


class _Calls(NamedTuple):
    """The library's functions for a solver of a batch."""

    create: Any
    factor: Any
    solve: Any
    destroy: Any


_REAL, _COMPLEX = (
    _Calls(*(getattr(_abi.lib, f"{prefix}_{name}") for name in _Calls._fields))
    for prefix in ("hone_batch_solver", "hone_z_batch_solver")
)


def _at_home(value: ArrayLike, name: str) -> Numbers:
    array = as_numbers(value, name)
    if isinstance(array, View):
        raise bad_type(
            f"{name} lies on a device, and kept factors of stacks are made for "
            "arrays in host memory: hone.solve_batch takes it where it is"
        )
    return array


class BatchSolver(Kept):
    """A stack of matrices with their factors, for many solves;
    hone.factor_batch makes it.

    Calls from several threads wait for one another.
    """

    def __init__(
        self,
        A: ArrayLike,
        *,
        trans: _options.Way = False,
        copy: bool = False,
        determinants: bool = False,
        **options: Unpack[Options],
    ) -> None:
        way = _options.way(trans)
        a = self._take(A, copy)
        self._dtype: Dtype = a.dtype
        self._calls = _COMPLEX if a.dtype == COMPLEX else _REAL
        super().__init__(self._calls.destroy)
        call = Call(a.shape[:-2], a.shape[-1], a.dtype)
        c = _options.make(options)  # type: ignore[arg-type]
        c.trans = way
        c.layout = self._layout = call.put_matrices(a)
        # Later matrices may be larger than these.
        self._watch = Watch(options.get("progress"))
        c.progress = self._watch.callback
        status = self._calls.create(byref(self._handle), byref(c))
        if status != Status.OK:
            raise error_of(status, None, _options.hint(status, options))
        self._determinants = determinants
        try:
            self._factor(call)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _take(
        A: ArrayLike, copy: bool, dtype: Optional[Dtype] = None
    ) -> Numbers:
        a = _at_home(A, "A")
        check_square(a)
        axes = a.ndim - 2
        if dtype is not None and a.dtype != dtype:
            return without_copies(a, axes, lambda v: v.astype(dtype))
        if copy and not is_own(a, A):
            return without_copies(a, axes, lambda v: np.array(v, order="K"))
        return a

    @property
    def shape(self) -> Index:
        """The shape of A: (..., n, n)."""
        return self._known[0]

    @property
    def n(self) -> int:
        """The order of the matrices."""
        return self.shape[-1]

    @property
    def dtype(self) -> Dtype:
        """The type of the matrices' entries: float64 or complex128."""
        return self._dtype

    @property
    def results(self) -> Results:
        """The results of the factorizations, one for each matrix: status,
        rcond, the place of a NaN or of the smallest pivot, and determinants if
        they were asked for; see hone.solve_batch. Those that were stopped stay
        CANCELLED here, and the next solve factors them."""
        return self._known[1]

    @property
    def _known(self) -> tuple[Index, Results]:
        assert self._held is not None  # there is none without matrices
        known: tuple[Index, Results] = self._held.known
        return known

    def factor(self, A: ArrayLike, *, copy: bool = False) -> Self:
        """Replaces the matrices by others, of any shape, and factors them. A
        solver of complex matrices takes real ones too."""
        a = self._take(A, copy, COMPLEX if self._dtype == COMPLEX else None)
        if a.dtype != self._dtype:
            raise bad_type(
                "A is complex, and the solver was made for real matrices: "
                "hone.factor_batch(A) makes one for complex matrices"
            )
        call = Call(a.shape[:-2], a.shape[-1], a.dtype)
        call.put_matrices(a, self._layout)
        self._factor(call)
        return self

    def _factor(self, call: Call) -> None:
        call.batch.determinants = 1 if self._determinants else 0
        n = call.batch.n
        shape = (*call.results.shape, n, n)
        new = Held(call.matrices, call.c_report, (shape, call.results))
        with self._alone():
            self._check_open()
            status = self._use(
                self._calls.factor, new, self._watch, *call.arguments()
            )
            report = self._tell(call.report())
            if self._watch is not None:
                self._watch.check()
        if status in REFUSED:
            raise error_of(status, report)

    def solve(
        self,
        b: ArrayLike,
        *,
        vectors: bool = False,
        deadline_s: Optional[float] = None,
        progress: Optional[ProgressFunction] = None,
    ) -> BatchResult:
        """Returns (x, results) as hone.solve_batch does, with the kept factors.

        b is (n,) or (..., n, columns), or (..., n) with vectors=True. Its first
        axes are broadcast with those of A. results has one entry for each
        matrix, in the shape of A's first axes: where b has more axes, or longer
        ones, the systems are more columns of the same matrix.

        The options, and trans, are those with which the solver was made, and so
        are deadline_s and progress where they are None. A matrix that cannot be
        factored gives its systems its status in every solve.
        """
        columns = _at_home(b, "b")
        c = _options.make({"deadline_s": deadline_s, "progress": progress})
        watch = self._watch if progress is None else Watch(progress)
        if watch is not None:
            c.progress = watch.callback
        with self._alone():
            self._check_open()
            shape = self.shape
            matrices = np.broadcast_to(np.zeros((), self._dtype), shape)
            stack = stack_of(matrices, columns, vectors)
            one_call = turned(stack)
            call = Call(one_call.a.shape[:-2], shape[-1], self._dtype)
            call.put_columns(one_call.b)
            status = self._use(
                self._calls.solve, None, watch, *call.arguments(c)
            )
            solved = call.solved(status)
            self._tell(solved.report)
            if watch is not None:
                watch.check()
        if status in REFUSED:
            raise error_of(status, solved.report)
        x = one_call.back(solved.x)
        x = np.ascontiguousarray(x[..., 0]) if stack.vector else x
        return BatchResult(x, solved.results.reshape(shape[:-2]))

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        kind = "complex, " if self._dtype == COMPLEX else ""
        return f"<hone.BatchSolver of shape {self.shape}, {kind}{state}>"


def factor_batch(
    A: ArrayLike,
    *,
    trans: _options.Way = False,
    copy: bool = False,
    determinants: bool = False,
    **options: Unpack[Options],
) -> BatchSolver:
    """Factors each matrix of a stack, (..., n, n), once, and returns a
    BatchSolver, with the methods solve, factor and close; a with statement
    closes it. The arguments are those of hone.solve_batch; they hold for every
    solve. No matrix raises an exception: solver.results says of each what
    became of it.

    The solver borrows A if it can be read in place, and then A must not change
    while the solver is used; copy=True takes a copy.
    """
    return BatchSolver(
        A, trans=trans, copy=copy, determinants=determinants, **options
    )
