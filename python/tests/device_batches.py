# SPDX-License-Identifier: BSD-3-Clause
"""Stacks of systems with arrays on a device."""

import itertools
import unittest
import warnings

import hone
import numpy as np
from device_arrays import held
from device_frame import N, Case, complex_of, there
from systems import hilbert, near
from test_numpy import by_numpy


class Batches(Case):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(3)
        self.a = rng.standard_normal((5, N, N)) + 4.0 * np.eye(N)
        self.b = rng.standard_normal((5, N, 3))

    def check(self, a, b, want, kind, **options):
        x, results = hone.solve_batch(a, b, **options)
        self.solved(x, want, kind)
        self.assertEqual(results.shape, want.shape[:1])
        self.assertFalse(results["status"].any())

    def test_wherever_the_arrays_lie(self):
        for kinds, rows, by_columns, columns in itertools.product(
            ("rr", "rc", "cr", "cc"), (True, False), (True, False), (1, 3)
        ):
            a = complex_of(self.a, 1) if kinds[0] == "c" else self.a
            b = complex_of(self.b, 2) if kinds[1] == "c" else self.b
            b = np.array(b[..., :columns])
            if not rows:
                a = a.swapaxes(1, 2).copy().swapaxes(1, 2)
            if by_columns:
                b = b.swapaxes(1, 2).copy().swapaxes(1, 2)
            want = np.linalg.solve(a, b)
            with self.subTest((kinds, rows, by_columns, columns)):
                self.check(there(a), there(b), want, hone.DeviceArray)
                self.check(a, there(b), want, hone.DeviceArray)
                self.check(there(a), b, want, np.ndarray)
                v, y = np.array(b[..., 0]), want[..., 0]
                self.check(
                    there(a), there(v), y, hone.DeviceArray, vectors=True
                )

    def test_broadcast(self):
        a, b = self.a, self.b
        for m, v in ((a[0], b), (a, b[0]), (a[:1], b), (a[:, None], b)):
            want = by_numpy(m, v)
            for v_there in (there(v), there(np.asfortranarray(v))):
                x, results = hone.solve_batch(there(m), v_there)
                self.solved(x, want)
                self.assertEqual(results.shape, want.shape[:-2])
                self.solved(hone.solve(there(m), v_there), want)
        x = hone.solve_batch(there(a), there(b[0, :, 0])).x
        want = np.linalg.solve(a, np.array(b[:1, :, :1]))[..., 0]
        self.solved(x, want)

    def test_every_second(self):
        want = np.linalg.solve(self.a[::2], self.b[::2])
        x = hone.solve_batch(there(self.a[::2]), there(self.b[::2])).x
        self.solved(x, want)
        wide = np.zeros((5, N, 2 * N))
        wide[..., ::2] = self.a
        text = "A has strides .*: the rows or the columns of each matrix"
        self.refused(
            ValueError, text, hone.solve_batch, there(wide[..., ::2]), self.b
        )

    def test_without_entries(self):
        for count, n, columns in (0, N, 3), (5, 0, 3), (5, N, 0), (0, 0, 0):
            a = there(np.array(self.a[:count, :n, :n]))
            b = there(np.array(self.b[:count, :n, :columns]))
            x, results = hone.solve_batch(a, b)
            self.assertIs(type(x), hone.DeviceArray)
            self.assertEqual(x.shape, (count, n, columns))
            self.assertEqual(results.shape, (count,))
            self.assertFalse(results["status"].any())
            self.assertEqual(hone.solve(a, b).shape, (count, n, columns))

    def test_failures(self):
        self.a[1] = 0.0
        self.a[3, 2, 4] = np.nan
        for v in (
            self.b,
            self.b.swapaxes(1, 2).copy().swapaxes(1, 2),
            complex_of(self.b, 1),
        ):
            x, results = hone.solve_batch(there(self.a), there(v))
            status = results["status"]
            self.assertEqual(status.tolist(), [0, -30, 0, -20, 0])
            self.assertEqual((results["row"][3], results["col"][3]), (2, 4))
            good = status == 0
            want = np.linalg.solve(self.a[good], v[good])
            self.assertTrue(near(held(x)[good], want))
            self.assertTrue(np.isnan(held(x)[~good]).all())

    def test_determinants(self):
        for a in (self.a, complex_of(self.a, 1)):
            results = hone.solve_batch(
                there(a), there(self.b), determinants=True
            ).results
            sign, log = np.linalg.slogdet(a)
            self.assertTrue(np.allclose(results["log_abs_det"], log))
            got = results["det_re"] + 1j * results["det_im"]
            self.assertTrue(np.allclose(got, sign))

    def test_stacks_in_solve(self):
        a, b = self.a, self.b
        want = np.linalg.solve(a, b)
        self.solved(hone.solve(there(a), there(b)), want)
        self.solved(hone.solve(a, there(b)), want)
        self.solved(hone.solve(there(a), b), want, np.ndarray)
        for name, value in (
            ("x0", want),
            ("out", want),
            ("error_bounds", True),
            ("return_report", True),
        ):
            text = f"{name} is not available for stacks on a device"
            self.refused(
                TypeError, text, hone.solve, there(a), b, **{name: value}
            )
        a[3, 2, 4] = np.nan
        text = r"A\[3\]: A contains NaN or Inf.*; row 2, column 4"
        self.refused(ValueError, text, hone.solve, there(a), b)
        a[3] = 0.0
        text = r"A\[3\]: singular"
        linear = np.linalg.LinAlgError
        self.refused(linear, text, hone.solve, there(a), b)

    def test_weak_stacks(self):
        a = np.stack([np.eye(14), hilbert(14), hilbert(14)])
        b = a.sum(2)[..., None]
        text = r"A\[1\]: .*; and 1 more of 3 matrices"
        with self.assertWarnsRegex(hone.HoneWarning, text):
            x = hone.solve(there(a), there(b))
        self.assertTrue(np.allclose(held(x)[0], 1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hone.solve(there(a), there(b), weak="ignore")

    def test_kept_factors(self):
        text = "A lies on a device, and kept factors"
        self.refused(TypeError, text, hone.factor_batch, there(self.a))
        solver = hone.factor_batch(self.a)
        text = "b lies on a device, and kept factors"
        self.refused(TypeError, text, solver.solve, there(self.b))


if __name__ == "__main__":
    unittest.main()
