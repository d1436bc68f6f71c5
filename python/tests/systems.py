# SPDX-License-Identifier: BSD-3-Clause
"""Systems for tests, and the comparison of answers."""

import numpy as np


def system(n, columns=None, seed=1):
    """Returns a well-conditioned A, b = A x and x = 1, 2, ..."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1.0, 1.0, (n, n)) + 2.0 * np.sqrt(max(n, 1)) * np.eye(n)
    if columns is None:
        x = np.arange(1.0, n + 1.0)
    else:
        x = np.arange(1.0, n * columns + 1.0).reshape(n, columns)
    return a, a @ x, x


def near(x, y):
    return x.shape == y.shape and np.allclose(x, y, rtol=1e-10, atol=1e-12)


def hilbert(n):
    i = np.arange(n)
    return 1.0 / (i[:, None] + i[None, :] + 1.0)
