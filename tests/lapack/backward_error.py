#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Computes the componentwise backward error of a solution in exact arithmetic.

usage: backward_error.py [--limit] FILE

FILE has doubles in this machine's format: n, A by columns, b, x. The exit
status is 1 if x is not finite; with --limit also if the backward error is above
4 units of rounding, 2^-53 each.
"""
import array
import math
import sys
from fractions import Fraction


def backward_error(n, a, b, x):
    """Returns max_i |b - A x|_i / (|A| |x| + |b|)_i (Oettli & Prager)."""
    exact = [Fraction(v) for v in x]
    worst = Fraction(0)
    for i in range(n):
        r = size = Fraction(b[i])
        size = abs(size)
        for j in range(n):
            product = Fraction(a[i + j * n]) * exact[j]
            r -= product
            size += abs(product)
        if r != 0:
            worst = max(worst, abs(r) / size)
    return float(worst)


def main():
    values = array.array("d")
    with open(sys.argv[-1], "rb") as file:
        values.frombytes(file.read())
    n = int(values[0])
    assert len(values) == 1 + n * n + 2 * n, "the file is not n, A, b and x"
    a, rest = values[1:1 + n * n], values[1 + n * n:]
    if not all(map(math.isfinite, rest)):
        print("none: x is not finite")
        return 1
    omega = backward_error(n, a, rest[:n], rest[n:])
    print(f"{omega:.2e}")
    return 1 if "--limit" in sys.argv and not omega <= 4 * 2.0**-53 else 0


if __name__ == "__main__":
    sys.exit(main())
