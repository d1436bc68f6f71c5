# SPDX-License-Identifier: BSD-3-Clause
"""What type checkers say of calls; mypy reads this file, nobody runs it. A line
that it must refuse is marked, and to accept it is an error too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import hone


class Tensor:
    """An array on a device, as other libraries have them."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {}


def host(a: NDArray[np.float64], b: NDArray[np.complex128]) -> None:
    x: NDArray[Any] = hone.solve(a, b)
    y, report = hone.solve(a, b, x0=x, out=x, return_report=True)
    z: NDArray[Any] = y
    w: NDArray[Any] = hone.solve([[2.0]], [1.0], trans="C")
    with hone.factor(a, device="cpu") as solver:
        z = solver.update(a).solve(b)
        w, told = solver.solve(b, return_report=True)
        digits: int = told.digits
    z = hone.solve_batch(a, b, determinants=True).x
    wrong: str = hone.solve(a, b)  # type: ignore[assignment]
    hone.solve(a, object())  # type: ignore[call-overload]
    hone.solve(a, b, trans=7)  # type: ignore[call-overload]
    del w, z, wrong, report, digits


def device(a: Tensor, b: Tensor, at_home: NDArray[np.float64]) -> None:
    x: Tensor = hone.solve(a, b, out=b)
    y, report = hone.solve(a, b, return_report=True)
    z: NDArray[Any] = hone.solve(a, at_home)  # x is where b is
    with hone.factor(a) as solver:
        x = solver.solve(b)
        z = solver.solve(at_home)
    x = hone.solve_batch(a, b).x
    x, results = hone.solve_batch(at_home, b)
    made = hone.DeviceArray((3, 3), np.dtype(np.float64), 0)
    x = hone.solve(made, made)
    del x, y, z, report, results
