#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Calls drivers of LAPACK that call dgetrf_, dgetrs_, dpotrf_ and dpotrs_ for
themselves, and those for complex numbers, and prints their results with all
bits.

usage: nested.py [LAPACK]      LAPACK: its file name (liblapack.so.3)
"""
import ctypes
import random
import sys

N = 400
lapack = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "liblapack.so.3")
integers = ctypes.c_int * N


def aligned(kind, values=()):
    """An array at a multiple of 4096: OpenBLAS's rounding errors may depend on
    addresses."""
    room = (ctypes.c_char * (ctypes.sizeof(kind) + 4096))()
    to = kind.from_buffer(room, -ctypes.addressof(room) % 4096)
    for i, value in enumerate(values):
        to[i] = value
    return to


def number(value=0):
    return ctypes.byref(ctypes.c_int(value))


def letter(text):
    return ctypes.c_char_p(text)


def show(name, info, *values):
    print(name, info.value, *(v.hex() for v in values))


def expert(letter_of, spd, a, b):
    """Calls dgesvx_ or dposvx_, then dgerfs_ or dporfs_ with its factors; for
    the letter z the entries are pairs."""
    parts = 2 if letter_of == "z" else 1
    doubles, vector = (ctypes.c_double * (parts * k) for k in (N * N, N))
    n, one, info = number(N), number(1), ctypes.c_int()
    a, b = aligned(doubles, a), aligned(vector, b)
    af, x, ipiv = aligned(doubles), aligned(vector), aligned(integers)
    eq = letter(b"N")
    rcond, ferr, berr = (ctypes.c_double() for _ in range(3))
    work, work2 = (aligned(ctypes.c_double * (4 * N)) for _ in range(2))
    scale, columns = (aligned(ctypes.c_double * N) for _ in range(2))
    bounds = tuple(map(ctypes.byref, (ferr, berr)))
    last = bounds + (work, work2, ctypes.byref(info))
    pivots = () if spd else (ipiv,)
    scales = (scale,) if spd else (scale, columns)
    name = letter_of + ("po" if spd else "ge")
    getattr(lapack, name + "svx_")(
        letter(b"N"), letter(b"L" if spd else b"N"), n, one, a, n, af, n,
        *pivots, eq, *scales, b, n, x, n, ctypes.byref(rcond), *last)
    show(name + "svx", info, rcond.value, ferr.value, berr.value, *x[:9])
    getattr(lapack, name + "rfs_")(
        letter(b"L" if spd else b"N"), n, one, a, n, af, n, *pivots, b, n, x, n,
        *last)
    show(name + "rfs", info, ferr.value, berr.value, *x[:9])


def main():
    random.seed(1)
    a = [random.uniform(-1, 1) for _ in range(N * N)]
    b = [random.uniform(-1, 1) for _ in range(N)]
    expert("d", False, a, b)
    imaginary = [random.uniform(-1, 1) for _ in range(N * N)]
    expert("z", False, [v for pair in zip(a, imaginary) for v in pair], b + b)
    for j in range(N):
        for i in range(j):
            a[i + j * N] = a[j + i * N]
        a[j + j * N] = 30.0
    expert("d", True, a, b)
    expert("z", True, [v for re in a for v in (re, 0.0)], b + b)


if __name__ == "__main__":
    main()
