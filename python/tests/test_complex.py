# SPDX-License-Identifier: BSD-3-Clause
"""Complex systems: which numbers A, b, x0 and out may have together."""

import unittest
import warnings

import hone
import numpy as np
from systems import near

KINDS = (float, complex)


def complex_system(n, columns=None, seed=1):
    """Returns a well-conditioned A, b = A x and x, all complex."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)

    a = draw(n, n) + 2.0 * np.sqrt(max(n, 1)) * np.eye(n)
    x = draw(n) if columns is None else draw(n, columns)
    return a, a @ x, x


def systems(n, columns=None):
    """Yields every A, b and x of which one is complex at least."""
    a, _, x = complex_system(n, columns)
    for to_a in KINDS:
        for to_x in KINDS:
            if complex in (to_a, to_x):
                one = a if to_a is complex else a.real.copy()
                y = x if to_x is complex else x.real.copy()
                yield one, one @ y, y


class Solved(unittest.TestCase):
    def same(self, got, x, dtype=complex):
        self.assertEqual(got.dtype, dtype)
        self.assertTrue(near(got, x))

    def test_of_every_kind(self):
        for columns in (None, 1, 4):
            for a, b, x in systems(7, columns):
                self.same(hone.solve(a, b), x)
                got, report = hone.solve(a, b, return_report=True)
                self.assertTrue(got.flags.c_contiguous)
                self.assertEqual(report.status, hone.Status.OK)
                self.assertLessEqual(report.backward_error, 4.5e-16)
                with hone.factor(a) as solver:
                    self.assertEqual(solver.dtype, a.dtype)
                    self.same(solver.solve(b), x)

    def test_a_complex_matrix_with_a_real_b(self):
        a, _, _ = complex_system(9)
        b = np.arange(9.0)
        self.same(hone.solve(a, b), np.linalg.solve(a, b))
        self.same(hone.solve(a, b.astype("i4")), np.linalg.solve(a, b))

    def test_shorter_numbers(self):
        a, _, x = complex_system(7)
        for to in ("c8", "f4"):
            short = a.astype("c8") if to == "c8" else a.real.astype("f4")
            b = short.astype(complex) @ x
            self.same(hone.solve(short, b), x)
        b = (a @ x).astype("c8")
        self.same(hone.solve(a, b), np.linalg.solve(a, b.astype(complex)))
        self.same(hone.solve(a.astype(">c16"), (a @ x).astype(">c16")), x)
        self.same(hone.solve(a.tolist(), (a @ x).tolist()), x)
        self.same(hone.solve([[2, 1j], [1, 3]], [2 + 1j, 4]), np.ones(2))

    def test_views_and_layouts(self):
        a, b, x = complex_system(7)
        for order in "CF":
            self.same(hone.solve(np.array(a, order=order), b), x)
            big = np.full((20, 30), np.nan + 0j, order=order)
            big[3:10, 5:12] = a
            self.same(hone.solve(big[3:10, 5:12], b), x)
            big[2:16:2, 1:22:3] = a
            self.same(hone.solve(big[2:16:2, 1:22:3], b), x)
        self.same(hone.solve(a.T, a.T @ x), x)
        self.same(hone.solve(a.conj().T, a.conj().T @ x), x)
        # The parts of a complex array are real arrays with gaps.
        self.same(hone.solve(a.real, a.real @ x.imag), x.imag, float)
        raw = np.zeros(16 * 49 + 1, np.uint8)
        uneven = raw[1:].view(complex).reshape(7, 7)
        uneven[...] = a
        self.same(hone.solve(uneven, b), x)

    def test_matrices_are_not_copied(self):
        whole = np.ones((20, 31), complex)
        for a in (np.ones((5, 5), complex), whole[3:8, 4:9], whole.T[:5, :5]):
            got = hone._arrays.as_matrix(a)[0]
            self.assertTrue(np.shares_memory(got, a))
        # 8 bytes beside a row of complex numbers: no leading dimension.
        odd = np.zeros(5 * 11)[: 5 * 11].view(np.uint8).reshape(5, 88)
        a = np.ndarray((5, 5), complex, odd, strides=(88, 16))
        self.assertFalse(np.shares_memory(hone._arrays.as_matrix(a)[0], a))

    def test_every_way(self):
        for a, _, x in systems(20, 2):
            ways = {
                "N": a,
                "T": a.T,
                "C": a.conj().T,
                "c": a.conj().T,
                0: a,
                1: a.T,
                2: a.conj().T,
                True: a.T,
                hone.Trans.CONJ_TRANS: a.conj().T,
            }
            for order in "CF":
                solver = hone.factor(np.array(a, order=order))
                for way, m in ways.items():
                    self.same(solver.solve(m @ x, trans=way), m @ x * 0 + x)
                    self.same(
                        hone.solve(a, m @ x, trans=way), m @ x * 0 + x
                    )

    def test_nothing(self):
        for a, b, _ in systems(0):
            self.assertEqual(hone.solve(a, b).shape, (0,))
        got = hone.solve(np.eye(3), np.zeros((3, 0), complex))
        self.assertEqual(got.shape, (3, 0))
        self.assertEqual(got.dtype, complex)

    def test_through_single_precision(self):
        a, b, x = complex_system(300)
        got, report = hone.solve(
            a, b, factor_precision="single", return_report=True
        )
        self.same(got, x)
        self.assertEqual(report.precision, 32)
        self.assertGreater(report.iterations, 0)


class Places(unittest.TestCase):
    """out, x0, error bounds and the report."""

    def test_out(self):
        for a, b, x in systems(6, 4):
            for out in (
                np.empty((6, 4), complex, order="F"),
                np.empty((6, 4), complex),
                np.empty((12, 8), complex)[::2, ::2],
            ):
                self.assertIs(hone.solve(a, b, out=out), out)
                self.assertTrue(near(out, x))
            bx = b.astype(complex)
            self.assertIs(hone.solve(a, bx, out=bx), bx)
            self.assertTrue(near(bx, x))
            with self.assertRaisesRegex(TypeError, "must be complex128"):
                hone.solve(a, b, out=np.empty((6, 4)))
        out = np.empty(2, complex)
        with self.assertRaisesRegex(TypeError, "must be float64"):
            hone.solve(np.eye(2), np.ones(2), out=out)

    def test_out_is_left_alone_by_errors(self):
        for a in ([[1, 2], [2, 4]], [[1j, 2], [2j, 4]]):
            out = np.full(2, 7j)
            with self.assertRaises(hone.HoneSingularError):
                hone.solve(a, [1, 1j], out=out)
            self.assertTrue(np.array_equal(out, [7j, 7j]))

    def test_start(self):
        for a, b, x in systems(40, 3):
            cold = hone.solve(
                a, b, factor_precision="single", return_report=True
            )[1]
            for x0 in (x, x.tolist(), np.asfortranarray(x)):
                got, report = hone.solve(
                    a, b, x0=x0, factor_precision="single", return_report=True
                )
                self.assertTrue(near(got, x))
                self.assertLess(report.iterations, cold.iterations)
        a, b, x = complex_system(5)
        self.assertTrue(near(hone.solve(a, b, x0=np.ones(5)), x))
        self.assertTrue(near(hone.solve(a.real, b, x0=np.ones(5)),
                             np.linalg.solve(a.real, b)))

    def test_bounds(self):
        for columns in (None, 3):
            for a, _, x in systems(30, columns):
                # b is exact, so that the bounds are on the error against x.
                a = np.round(a * 2**10) / 2**10
                x = np.round(x * 2**10) / 2**10
                b = a @ x
                got, report = hone.solve(
                    a, b, error_bounds=True, return_report=True
                )
                bounds = report.error_bounds
                self.assertEqual(bounds.shape, x.shape)
                self.assertEqual(bounds.dtype, float)
                self.assertTrue((np.abs(got - x) <= bounds).all())
                self.assertTrue((bounds < 1e-11).all())

    def test_report(self):
        a, b, _ = complex_system(6, 3)
        report = hone.solve(a, b, return_report=True)[1]
        self.assertEqual((report.n, report.nrhs), (6, 3))
        self.assertEqual(len(report.columns), 3)
        # Two real columns for each complex one.
        report = hone.solve(a.real, b, return_report=True)[1]
        self.assertEqual((report.n, report.nrhs), (6, 6))
        self.assertEqual(len(report.columns), 6)

    def test_memory(self):
        real = hone.memory_needed(2000)
        both = hone.memory_needed(2000, dtype=complex)
        self.assertGreater(both.single_bytes, real.single_bytes)
        self.assertEqual(both, hone.memory_needed(2000, dtype="c8"))
        real = hone.device_memory_needed(20000)
        both = hone.device_memory_needed(20000, dtype=complex)
        for one, two in zip(real, both):  # 0: built without CUDA
            self.assertTrue(1.9 * one <= two <= 2.0 * one)


class Kept(unittest.TestCase):
    def test_update(self):
        for a, b, x in systems(30):
            with hone.factor(a) as solver:
                m = a * (1.0 + 1e-9)
                self.assertTrue(near(solver.update(m).solve(m @ x), x))
                self.assertTrue(near(solver.factor(a).solve(b), x))
                m = np.asfortranarray(m)
                self.assertTrue(near(solver.update(m).solve(m @ x), x))

    def test_a_complex_solver_takes_real_matrices(self):
        a, _, x = complex_system(30)
        solver = hone.factor(a)
        for m in (a.real, np.asfortranarray(a.real)):
            self.assertTrue(near(solver.factor(m).solve(m @ x), x))
            self.assertTrue(near(solver.update(m).solve(m @ x), x))

    def test_a_real_solver_takes_no_complex_matrices(self):
        a, b, x = complex_system(30)
        solver = hone.factor(a.real)
        for call in (solver.factor, solver.update):
            with self.assertRaisesRegex(TypeError, "made for real matrices"):
                call(a)
        self.assertTrue(near(solver.solve(a.real @ x), x))

    def test_copy(self):
        a, b, x = complex_system(30)
        given = a.copy()
        with hone.factor(given, copy=True) as solver:
            given[...] = 0
            self.assertTrue(near(solver.solve(b), x))
            self.assertIn("complex", repr(solver))


class Refused(unittest.TestCase):
    def refused(self, kind, text, a, b, **options):
        with self.assertRaisesRegex(kind, text) as caught:
            hone.solve(a, b, **options)
        self.assertIsInstance(caught.exception, hone.HoneError)
        return caught.exception

    def test_more_than_double(self):
        if np.dtype(np.clongdouble).itemsize > 16:
            a = np.eye(2, dtype=np.clongdouble)
            self.refused(TypeError, r"astype\(complex\)", a, [1, 2])

    def test_a_complex_start_of_a_real_system(self):
        self.refused(
            TypeError, "x0 is complex", np.eye(2), [1, 2], x0=[1j, 2]
        )

    def test_devices(self):
        try:
            hone.solve(np.eye(2), [1, 2], device="cuda")
        except RuntimeError:
            pass
        else:
            self.skipTest("there is a device")
        error = self.refused(
            RuntimeError, "", np.eye(2) * 1j, [1, 2], device="cuda"
        )
        self.assertEqual(error.status, hone.Status.NO_DEVICE)

    def test_not_finite(self):
        a, b, _ = complex_system(6, 2)
        for part, bad in (
            ("NaN$", complex(np.nan, 0)),
            ("Inf in its imaginary part$", complex(0, -np.inf)),
        ):
            worse = a.copy()
            worse[1, 3] = bad
            self.refused(ValueError, f"row 1; column 3; .*{part}", worse, b)
            worse = b.copy()
            worse[4, 1] = bad
            for m in (a, a.real):
                text = rf"row 4; column 1; b\(4, 1\) is .*{part}"
                error = self.refused(ValueError, text, m, worse)
                self.assertEqual(error.report.bad_col, 1)
                text = rf"row 4; column 1; .*x0\(4, 1\) is .*{part}"
                self.refused(ValueError, text, m, b, x0=worse)
                text = rf"row 4; column 0; b\(4, 0\) is .*{part}"
                self.refused(ValueError, text, m, worse[:, 1])


    def test_a_modulus_beyond_double(self):
        a, b, _ = complex_system(6, 2)
        text = r"row 1; column 1; the modulus of %s\(1, 1\) is beyond double"
        for name in ("A", "b", "options.x0"):
            arrays = {"A": a.copy(), "b": b.copy(), "options.x0": b.copy()}
            arrays[name][1, 1] = 1.5e308 * (1 + 1j)
            self.refused(ValueError, text % name, *list(arrays.values())[:2],
                         x0=arrays["options.x0"])


class Missing(unittest.TestCase):
    """Columns for which there is no x, beside others."""

    def test_a_column_without_x(self):
        for kind in KINDS:
            for large in (1e300, 1e300 + 0j, 1e300j):
                a = (1e-300 * np.eye(2)).astype(kind)
                b = np.array([[1.0, large], [1.0, 1.0]])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    x = hone.solve(a, b)
                    out = np.full((2, 2), 7, x.dtype)
                    hone.solve(a, b, out=out)
                self.assertTrue(np.allclose(x[:, 0], 1e300))
                self.assertTrue(np.isnan(x[:, 1]).all())
                self.assertTrue(np.allclose(out[:, 0], 1e300))
                self.assertTrue(np.array_equal(out[:, 1], [7, 7]))


if __name__ == "__main__":
    unittest.main()
