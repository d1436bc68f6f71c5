# SPDX-License-Identifier: BSD-3-Clause
"""Solves a system with NumPy, which must not change A, and writes the system
and x to $OUT.

usage: solve.py [complex] [scipy | lu | sym | her]
    scipy: by scipy.linalg.solve; lu: by scipy.linalg.lu_factor and lu_solve;
    sym, her: by scipy.linalg.solve with this assume_a, one triangle of A
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
if "sym" in sys.argv:
    a = a + a.T
if "her" in sys.argv:
    a = a + a.conj().T
before = a.copy()
x = np.linalg.solve(a, b)
if "scipy" in sys.argv:
    import scipy.linalg
    x = scipy.linalg.solve(a, b)
    # Other functions of SciPy that factor must be right too.
    spd = a @ a.conj().T + n * np.eye(n)
    y = scipy.linalg.solve(spd, b, assume_a="pos")
    assert np.abs(spd @ y - b).max() < 1e-10 * np.abs(b).max()
    y = scipy.linalg.solve(a, b, transposed=not np.iscomplexobj(a))
    many = scipy.linalg.solve(a, np.tile(b[:, None], 60))
    assert np.abs(many - x[:, None]).max() < 1e-9 * np.abs(x).max()
    assert np.abs(scipy.linalg.inv(a) @ a - np.eye(n)).max() < 1e-8
    lower = scipy.linalg.cholesky(spd, lower=True)
    wrong = np.abs(lower @ lower.conj().T - spd).max()
    assert wrong < 1e-10 * np.abs(spd).max()
    p, lower, upper = scipy.linalg.lu(a)
    assert np.abs(p @ lower @ upper - a).max() < 1e-11 * np.abs(a).max()
    assert np.isfinite(scipy.linalg.det(a / 10.0))
    singular = a.copy()
    singular[:, 7] = 0.0
    try:
        scipy.linalg.solve(singular, b, assume_a="gen")
        raise SystemExit("a singular matrix was solved")
    except np.linalg.LinAlgError:
        pass
for kind in {"sym", "her"} & set(sys.argv):
    import scipy.linalg
    lower = kind == "her"
    triangle = np.tril(a) if lower else np.triu(a)
    x = scipy.linalg.solve(triangle, b, assume_a=kind, lower=lower)
    singular = a.copy()
    singular[:, 7] = singular[7] = 0.0
    try:
        scipy.linalg.solve(singular, b, assume_a=kind)
        raise SystemExit("a singular matrix was solved")
    except np.linalg.LinAlgError:
        pass
    l, d, _ = scipy.linalg.ldl(a, hermitian=kind == "her")
    other = l.conj().T if kind == "her" else l.T
    assert np.abs(l @ d @ other - a).max() < 1e-11 * np.abs(a).max()
if "lu" in sys.argv:
    import scipy.linalg
    factors = scipy.linalg.lu_factor(a)
    x = scipy.linalg.lu_solve(factors, b)
    y = scipy.linalg.lu_solve(factors, b, trans=1)
    assert np.abs(a.T @ y - b).max() < 1e-8 * np.abs(b).max()
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
