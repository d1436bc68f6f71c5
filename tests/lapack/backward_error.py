#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Computes the componentwise backward error of a solution in exact arithmetic.

usage: backward_error.py [--limit] FILE

FILE has doubles in this machine's format: n, A by columns, b, x; or -n where
they are complex, each number its real and its imaginary part. The exit status
is 1 if x is not finite; with --limit also if the backward error is above 4
units of rounding, 2^-53 each.
"""
import array
import decimal
import math
import sys
from fractions import Fraction

decimal.getcontext().prec = 50


def real_error(n, a, b, x):
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


def pairs(v):
    return list(zip(map(Fraction, v[::2]), map(Fraction, v[1::2])))


def modulus(re, im):
    square = re * re + im * im
    return (decimal.Decimal(square.numerator) /
            decimal.Decimal(square.denominator)).sqrt()


def complex_error(n, a, b, x):
    """Does so for complex numbers: r is exact, moduli have 50 digits."""
    a, b, x = pairs(a), pairs(b), pairs(x)
    sizes = [modulus(*v) for v in x]
    worst = decimal.Decimal(0)
    for i in range(n):
        re, im = b[i]
        size = modulus(re, im)
        for j in range(n):
            (p, q), (u, v) = a[i + j * n], x[j]
            re -= p * u - q * v
            im -= p * v + q * u
            size += modulus(p, q) * sizes[j]
        if size > 0:
            worst = max(worst, modulus(re, im) / size)
    return float(worst)


def main():
    values = array.array("d")
    with open(sys.argv[-1], "rb") as file:
        values.frombytes(file.read())
    parts, n = (1 if values[0] > 0 else 2), abs(int(values[0]))
    assert len(values) == 1 + parts * (n * n + 2 * n), "not n, A, b and x"
    a, rest = values[1:1 + parts * n * n], values[1 + parts * n * n:]
    if not all(map(math.isfinite, rest)):
        print("none: x is not finite")
        return 1
    backward_error = real_error if parts == 1 else complex_error
    omega = backward_error(n, a, rest[:parts * n], rest[parts * n:])
    print(f"{omega:.2e}")
    return 1 if "--limit" in sys.argv and not omega <= 4 * 2.0**-53 else 0


if __name__ == "__main__":
    sys.exit(main())
