#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares NumPy's or SciPy's linalg.solve with and without the drop-in.

Two processes of the same interpreter, one of them with LD_PRELOAD, take turns,
so that other load on the machine slows down both alike. The program prints
medians and the componentwise backward error of each x, measured in NumPy's
long double.

usage: bench/lapack/numpy_solve.py [--lib build/libhone_lapack.so] [--n 4000]
                            [--reps 9] [--complex] [--scipy]
They must be linked to a shared LAPACK, as Debian's and the wheels of PyPI are.
Another interpreter than Debian's is named before the script.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time


def system(n, is_complex):
    import numpy as np
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((n, n)), rng.standard_normal(n)
    if is_complex:
        a = a + 1j * rng.standard_normal((n, n))
        b = b + 1j * rng.standard_normal(n)
    return a, b


def backward_error(a, x, b):
    """max_i |b - A x|_i / (|A| |x| + |b|)_i, row by row in long double."""
    import numpy as np
    wide = np.clongdouble if np.iscomplexobj(a) else np.longdouble
    xl = x.astype(wide)
    worst = 0.0
    for i in range(a.shape[0]):
        row = a[i].astype(wide)
        r = abs(wide(b[i]) - np.dot(row, xl))
        worst = max(worst, float(r / (np.dot(abs(row), abs(xl)) + abs(b[i]))))
    return worst


def serve(n, is_complex, is_scipy):
    if is_scipy:
        import scipy.linalg as linalg
    else:
        import numpy.linalg as linalg
    a, b = system(n, is_complex)
    x = linalg.solve(a, b)  # the first call loads libraries
    print("ready", backward_error(a, x, b), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        linalg.solve(a, b)
        print(time.perf_counter() - start, flush=True)


def child(args, preload):
    env = dict(os.environ, HONE_LAPACK="on")
    if preload:
        env["LD_PRELOAD"] = os.path.abspath(args.lib)
    return subprocess.Popen(
        [sys.executable, __file__, "--serve", "--n", str(args.n)]
        + ["--complex"] * args.complex + ["--scipy"] * args.scipy, env=env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", default="build/libhone_lapack.so")
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--reps", type=int, default=9)
    parser.add_argument("--complex", action="store_true")
    parser.add_argument("--scipy", action="store_true")
    parser.add_argument("--serve", action="store_true")
    args = parser.parse_args()
    if args.serve:
        return serve(args.n, args.complex, args.scipy)
    names = ["OpenBLAS alone", "drop-in"]
    both = [child(args, False), child(args, True)]
    errors = [float(p.stdout.readline().split()[1]) for p in both]
    times = [[], []]
    for _ in range(args.reps):
        for k, p in enumerate(both):
            p.stdin.write("go\n")
            p.stdin.flush()
            times[k].append(float(p.stdout.readline()))
    for p in both:
        p.stdin.close()
        p.wait()
    for k, name in enumerate(names):
        print(f"{name:15} median {1e3 * statistics.median(times[k]):8.1f} ms, "
              f"least {1e3 * min(times[k]):8.1f} ms, "
              f"backward error {errors[k]:.1e}")
    ratio = statistics.median(times[0]) / statistics.median(times[1])
    print(f"{'n':15} {args.n}; {ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
