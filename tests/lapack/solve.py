# SPDX-License-Identifier: BSD-3-Clause
"""Solves a system with NumPy, which must not change A, and writes the system
and x to $OUT.

usage: solve.py [complex] [scipy]        scipy: by scipy.linalg.solve
"""
import os
import sys

import numpy as np

rng = np.random.default_rng(5)
n = 400
a = rng.standard_normal((n, n))
b = rng.standard_normal(n)
if "complex" in sys.argv:
    a = a + 1j * rng.standard_normal((n, n))
    b = b + 1j * rng.standard_normal(n)
before = a.copy()
x = np.linalg.solve(a, b)
if "scipy" in sys.argv:
    import scipy.linalg
    x = scipy.linalg.solve(a, b)
assert np.array_equal(a, before)
with open(os.environ["OUT"], "wb") as out:
    for part in (np.array([float(-n if np.iscomplexobj(a) else n)]), a.T, b, x):
        out.write(np.ascontiguousarray(part).tobytes())

# Other functions of NumPy that use LAPACK must still work.
try:
    np.linalg.solve(np.zeros((n, n)), b)
    raise SystemExit("a singular matrix was solved")
except np.linalg.LinAlgError:
    pass
inverse = np.linalg.inv(a)
assert np.abs(inverse @ a - np.eye(n)).max() < 1e-8
c = a @ a.conj().T + n * np.eye(n)
factor = np.linalg.cholesky(c)
assert np.abs(factor @ factor.conj().T - c).max() < 1e-10 * np.abs(c).max()
sign, log = np.linalg.slogdet(a)
assert abs(abs(sign) - 1.0) < 1e-12 and np.isfinite(log)
