#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Calls drivers of LAPACK that call dgetrf_, dgetrs_, dpotrf_ and dpotrs_ for
themselves, and prints their results with all bits.

usage: nested.py [LAPACK]      LAPACK: its file name (liblapack.so.3)
"""
import ctypes
import random
import sys

N = 400
lapack = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "liblapack.so.3")
doubles = ctypes.c_double * (N * N)
vector = ctypes.c_double * N
integers = ctypes.c_int * N


def number(value=0):
    return ctypes.byref(ctypes.c_int(value))


def letter(text):
    return ctypes.c_char_p(text)


def show(name, info, *values):
    print(name, info.value, *(v.hex() for v in values))


def expert(spd, a, b):
    """Calls dgesvx_ or dposvx_, then dgerfs_ or dporfs_ with its factors."""
    n, one, info = number(N), number(1), ctypes.c_int()
    a, b = doubles(*a), vector(*b)
    af, x, ipiv, eq = doubles(), vector(), integers(), letter(b"N")
    rcond, ferr, berr = (ctypes.c_double() for _ in range(3))
    work, iwork, scale = (ctypes.c_double * (4 * N))(), integers(), vector()
    bounds = tuple(map(ctypes.byref, (ferr, berr)))
    last = bounds + (work, iwork, ctypes.byref(info))
    pivots = () if spd else (ipiv,)
    scales = (scale,) if spd else (scale, vector())
    name = "dpo" if spd else "dge"
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
    expert(False, a, b)
    for j in range(N):
        for i in range(j):
            a[i + j * N] = a[j + i * N]
        a[j + j * N] = 30.0
    expert(True, a, b)


if __name__ == "__main__":
    main()
