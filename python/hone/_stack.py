# SPDX-License-Identifier: BSD-3-Clause
"""Stacks of systems, by NumPy's rules: the last two axes are those of matrices,
and the others are broadcast."""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from ._arrays import COMPLEX, REAL, Dtype, Numbers
from ._errors import HoneError, bad_value
from ._report import Report
from ._view import View

Index = tuple[int, ...]
# Solves with one matrix for columns, from a first x or None.
One = Callable[[Numbers, Numbers, Optional[Numbers]], tuple[Numbers, Report]]


class Stack(NamedTuple):
    """Systems A x = b, with as many axes before the last two as x has."""

    a: Numbers
    b: Numbers
    shape: Index  # of the axes before the last two
    vector: bool  # b has vectors, and x no last axis
    axes: int  # how many of those axes the caller's A has

    @property
    def own(self) -> Index:
        """The axes along which A changes. Along the others the systems are more
        columns of the same matrix."""
        axes = range(len(self.shape))
        return tuple(i for i in axes if self.a.shape[i] != 1)

    @property
    def reports(self) -> Index:
        """How many matrices there are along those."""
        return tuple(self.shape[i] for i in self.own)

    @property
    def matrices(self) -> Index:
        """The shape of the caller's A before the last two axes."""
        return self.a.shape[len(self.shape) - self.axes : -2]

    def place(self, index: Index) -> Index:
        """Returns the place in the caller's A of a matrix of reports."""
        of_a = [0] * len(self.shape)
        for axis, at in zip(self.own, index):
            of_a[axis] = at
        return tuple(of_a[len(self.shape) - self.axes :])

    @property
    def dtype(self) -> Dtype:
        is_complex = COMPLEX in (self.a.dtype, self.b.dtype)
        return COMPLEX if is_complex else REAL

    def with_columns(self, v: Numbers, name: str) -> Numbers:
        """Returns x0 or out with the shape of x: v, with a last axis if x has
        none."""
        whole = v[..., None] if self.vector else v
        if whole.shape != self.b.shape:
            shape = self.b.shape[:-1] if self.vector else self.b.shape
            raise bad_value(f"{name} has shape {v.shape}, x has {shape}")
        return whole


def check_square(a: Numbers) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise bad_value(
            f"A has shape {a.shape}: its last two axes must be those of a "
            "square matrix"
        )


def stack_of(a: Numbers, b: Numbers, vectors: bool = False) -> Stack:
    """Returns the systems of a and b, of which one or both are stacks. b of one
    axis is a vector; with vectors its last axis is that of vectors."""
    check_square(a)
    n = a.shape[-1]
    vector = vectors or b.ndim == 1
    columns: Numbers = b
    if vector and b.ndim > 0:
        columns = b.as_column() if isinstance(b, View) else b[..., None]
    if b.ndim == 0 or columns.shape[-2] != n:
        wanted = (
            f"(..., {n})"
            if vectors
            else f"({n},), or its last two axes ({n}, columns); b[..., None] "
            "makes columns of a stack of vectors"
        )
        raise bad_value(f"b has shape {b.shape}: it must be {wanted}")
    try:
        shape = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    except ValueError as error:
        raise bad_value(
            f"A has shape {a.shape} and b {b.shape}: the axes before the last "
            "two do not fit together"
        ) from error
    missing = (1,) * (len(shape) + 2 - a.ndim)
    whole = broadcast_to(columns, shape + columns.shape[-2:])
    of_all = broadcast_to(a, missing + a.shape)
    return Stack(of_all, whole, shape, vector, a.ndim - 2)


def broadcast_to(v: Numbers, shape: Index) -> Numbers:
    """Returns v as numpy.broadcast_to does, wherever it lies."""
    whole: Numbers
    if isinstance(v, View):
        whole = v.broadcast_to(shape)
    else:
        whole = np.broadcast_to(v, shape)
    return whole


def _as_columns(v: Numbers) -> Numbers:
    """Returns (..., n, k) as n rows of columns."""
    count = math.prod(v.shape[:-2]) * v.shape[-1]
    return np.moveaxis(v, -2, 0).reshape(v.shape[-2], count)


def _as_part(rows: Any, shape: Index) -> Any:
    """Returns n rows of columns as (..., n, k), of that shape."""
    whole = rows.reshape((shape[-2],) + shape[:-2] + shape[-1:])
    return np.moveaxis(whole, 0, -2)


def solve_at(
    stack: Stack, index: Index, one: One, start: Optional[Numbers], x: Numbers
) -> Report:
    """Solves the systems of one matrix, from start if that is given, and puts
    their solutions into x. An error names the matrix."""
    of_a: list[Any] = [0] * len(stack.shape)
    at: list[Any] = [slice(None)] * len(stack.shape)
    for axis, place in zip(stack.own, index):
        of_a[axis] = at[axis] = place
    for axis in range(len(stack.shape) - stack.axes, len(stack.shape)):
        if stack.shape[axis] == 1:
            at[axis] = 0
    here = tuple(at)
    b = stack.b[here]
    first = None if start is None else _as_columns(start[here])
    try:
        found, report = one(stack.a[tuple(of_a)], _as_columns(b), first)
    except HoneError as error:
        error.args = (f"{name_of(stack.place(index))}: {error}",)
        raise
    x[here] = _as_part(found, b.shape)
    if report.error_bounds is not None:
        bounds = _as_part(report.error_bounds, b.shape)
        report.error_bounds = bounds[..., 0] if stack.vector else bounds
    return report


def solve_stack(
    stack: Stack, one: One, x0: Optional[Numbers], dtype: Dtype
) -> tuple[Numbers, Any]:
    """Returns x, of the shape of stack.b and that type, and its report, or an
    array of reports, one for each matrix."""
    start = None if x0 is None else stack.with_columns(x0, "x0")
    x = np.empty(stack.b.shape, dtype)
    reports = np.empty(stack.reports, object)
    for index in np.ndindex(*stack.reports):
        reports[index] = solve_at(stack, index, one, start, x)
    many = reports.reshape(stack.matrices)
    return x, many if stack.axes > 0 else many[()]


def name_of(index: Index) -> str:
    return f"A{list(index)}" if index else "A"


def put_out(x: Numbers, stack: Stack, out: Any) -> Numbers:
    """Writes x to out, but for columns for which nothing was found, which are
    NaN."""
    plain = type(out) in (np.ndarray, np.memmap)
    if not plain or out.dtype != stack.dtype:
        kind = out.dtype if plain else type(out).__name__
        raise bad_value(f"out is {kind}: it must be an array of {stack.dtype}")
    if not out.flags.writeable:
        raise bad_value("out is read-only")
    whole = x[..., None] if stack.vector else x
    found = ~np.isnan(whole).any(axis=-2, keepdims=True)
    np.copyto(stack.with_columns(out, "out"), whole, where=found)
    filled: Numbers = out
    return filled
