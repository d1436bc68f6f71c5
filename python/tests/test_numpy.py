# SPDX-License-Identifier: BSD-3-Clause
"""The rules of numpy.linalg.solve, scipy.linalg.solve and linear operators."""

import inspect
import unittest
import warnings

import hone
import numpy as np
from systems import hilbert, near, system

try:
    import scipy.linalg
    import scipy.sparse.linalg
except ImportError:
    scipy = None
needs_scipy = unittest.skipIf(scipy is None, "SciPy is not installed")


def random(shape, dtype=float, seed=3):
    rng = np.random.default_rng(seed)
    v = rng.uniform(-1.0, 1.0, shape)
    if dtype is complex:
        v = v + 1j * rng.uniform(-1.0, 1.0, shape)
    return v


def matrices(*shape, dtype=float, seed=5):
    """Returns well-conditioned matrices."""
    return random(shape, dtype, seed) + 2.0 * np.sqrt(shape[-1]) * np.eye(
        shape[-1]
    )


def by_numpy(a, b):
    """numpy.linalg.solve of NumPy 2, for which b is one vector or matrices."""
    return np.linalg.solve(a, b[(None,) * max(0, a.ndim - b.ndim)])


class Stacks(unittest.TestCase):
    def test_as_numpy(self):
        shapes = (
            ((3, 5, 5), (3, 5, 2)),
            ((2, 3, 5, 5), (5, 2)),
            ((2, 3, 5, 5), (3, 5, 2)),
            ((2, 1, 5, 5), (3, 5, 2)),
            ((1, 5, 5), (4, 5, 1)),
            ((5, 5), (2, 3, 5, 4)),
            ((0, 5, 5), (5, 2)),
            ((2, 5, 5), (2, 5, 0)),
            ((2, 0, 0), (2, 0, 3)),
        )
        for of_a, of_b in shapes:
            for dtype in (float, complex):
                a, b = matrices(*of_a, dtype=dtype), random(of_b)
                for order in "CF":
                    got = hone.solve(a, np.array(b, order=order))
                    want = by_numpy(a, b)
                    self.assertTrue(near(got, want), (of_a, of_b))
                    self.assertEqual(got.dtype, want.dtype)

    def test_one_vector_for_all(self):
        a, b = matrices(2, 3, 5, 5), random(5)
        got = hone.solve(a, b)
        self.assertEqual(got.shape, (2, 3, 5))
        self.assertTrue(near(a @ got[..., None], np.broadcast_to(
            b[:, None], (2, 3, 5, 1))))

    def test_transposes_and_kinds(self):
        a, b = matrices(3, 4, 4, dtype=complex), random((3, 4, 2), complex)
        want = np.linalg.solve(np.swapaxes(a.conj(), 1, 2), b)
        self.assertTrue(near(hone.solve(a, b, trans="C"), want))
        self.assertTrue(
            near(hone.solve(a.real, b), np.linalg.solve(a.real, b))
        )

    def test_reports(self):
        a, b = matrices(2, 3, 5, 5), random((3, 5, 2))
        x, reports = hone.solve(
            a, b, return_report=True, error_bounds=True
        )
        self.assertEqual(reports.shape, (2, 3))
        for report in reports.flat:
            self.assertEqual(report.status, hone.Status.OK)
            self.assertEqual(report.nrhs, 2)
            self.assertEqual(report.error_bounds.shape, (5, 2))
        _, reports = hone.solve(a[:, :1], b, return_report=True)
        self.assertEqual(reports.shape, (2, 1))
        self.assertEqual(reports[1, 0].nrhs, 6)
        _, report = hone.solve(a[0, 0], b, return_report=True)
        self.assertIsInstance(report, hone.Report)
        self.assertEqual(report.nrhs, 6)
        self.assertEqual(x.shape, (2, 3, 5, 2))

    def test_reports_have_the_axes_of_their_matrices(self):
        """Axes of length 1 among them, and bounds those of their x."""
        b = random((2, 5, 3))
        for lead in ((), (1,), (2,), (1, 1), (1, 2), (2, 1), (3, 1, 2)):
            a = matrices(*lead, 5, 5)
            for side, vector in ((b, False), (b[0, :, 0], True)):
                x, reports = hone.solve(
                    a, side, return_report=True, error_bounds=True
                )
                want = np.linalg.inv(a) @ (side[:, None] if vector else side)
                error = np.abs(x - (want[..., 0] if vector else want))
                of_all = error.shape[: error.ndim - (1 if vector else 2)]
                front = (slice(None),) * (len(of_all) - len(lead))
                if not lead:
                    self.assertIsInstance(reports, hone.Report)
                    reports = np.array(reports, object)
                self.assertEqual(reports.shape, lead)
                for place, report in np.ndenumerate(reports):
                    own = zip(place, lead, of_all[len(front) :])
                    at = (i if k == of_x else slice(None) for i, k, of_x in own)
                    part = error[(*front, *at)]
                    self.assertEqual(report.error_bounds.shape, part.shape)
                    self.assertLess(part.max(), 1e-10)

    def test_a_failing_matrix_is_named_as_it_is_indexed(self):
        a = matrices(1, 3, 4, 4)
        a[0, 2] = 0.0
        for report in (False, True):
            with self.assertRaisesRegex(hone.HoneSingularError, r"A\[0, 2\]"):
                hone.solve(a, np.ones(4), return_report=report)
        with self.assertRaisesRegex(hone.HoneSingularError, r"A\[0\]: "):
            hone.solve(np.zeros((1, 4, 4)), np.ones(4))

    def test_start_and_out(self):
        a, b = matrices(3, 5, 5), random((3, 5, 2))
        want = np.linalg.solve(a, b)
        out = np.full((3, 5, 2), np.nan)
        x, reports = hone.solve(a, b, x0=want, out=out, return_report=True)
        self.assertIs(x, out)
        self.assertTrue(near(out, want))
        self.assertTrue(all(r.iterations <= 1 for r in reports))
        start = by_numpy(a, b[0, :, :1])[..., 0]
        x = hone.solve(a, b[0, :, 0], x0=start)
        self.assertTrue(near(x, start))
        for bad in ((3, 5), (3, 2, 5)):
            with self.assertRaisesRegex(ValueError, "x0 has shape"):
                hone.solve(a, b, x0=np.zeros(bad))
            with self.assertRaisesRegex(ValueError, "out has shape"):
                hone.solve(a, b, out=np.zeros(bad))
        with self.assertRaisesRegex(ValueError, "out is float32"):
            hone.solve(a, b, out=np.zeros((3, 5, 2), "f4"))
        out.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "read-only"):
            hone.solve(a, b, out=out)

    def test_one_bad_matrix_is_named(self):
        a, b = matrices(2, 3, 4, 4), random((4, 1))
        a[1, 2] = 0.0
        with self.assertRaisesRegex(np.linalg.LinAlgError, r"^A\[1, 2\]: "):
            hone.solve(a, b)
        a[1, 2, 0, 3] = np.nan
        with self.assertRaisesRegex(ValueError, r"^A\[1, 2\]: .*A\(0, 3\)"):
            hone.solve(a, b)

    def test_weak_ones_are_counted(self):
        a = np.stack([hilbert(14), np.eye(14), hilbert(14)])
        b = np.ones((14, 1))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x, reports = hone.solve(a, b, return_report=True)
        self.assertEqual(len(caught), 1)
        text = str(caught[0].message)
        self.assertRegex(text, r"^A\[0\]: .*and 1 more of 3 matrices")
        self.assertEqual(caught[0].filename, __file__)
        self.assertIs(caught[0].message.x, x)
        self.assertEqual([int(r.status > 0) for r in reports], [1, 0, 1])
        with self.assertRaisesRegex(hone.HoneWeakError, r"^A\[0\]: "):
            hone.solve(a, b, weak="raise")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hone.solve(a, b, weak="ignore")

    def test_shapes_that_do_not_fit(self):
        a = matrices(3, 5, 5)
        cases = (
            ((4, 5, 2), "do not fit together"),
            ((3, 5), r"b\[\.\.\., None\] makes columns"),
            ((3, 4, 2), "b has shape"),
            ((), "b has shape"),
        )
        for shape, text in cases:
            with self.assertRaisesRegex(ValueError, text):
                hone.solve(a, np.ones(shape))
        with self.assertRaisesRegex(ValueError, "square"):
            hone.solve(np.ones((3, 5, 4)), np.ones((3, 5, 1)))
        with self.assertRaisesRegex(ValueError, "square"):
            hone.solve(np.ones(5), np.ones((3, 5, 1)))


class Types(unittest.TestCase):
    def test_single_precision_as_numpy(self):
        types = [np.float32, np.complex64, np.float64, np.complex128, int]
        for of_a in types:
            for of_b in types:
                a = (10.0 * matrices(6, 6)).astype(of_a)
                b = (10.0 * random((6, 2))).astype(of_b)
                got = hone.solve(a, b, deterministic=True)
                want = np.linalg.solve(a, b)
                self.assertEqual(got.dtype, want.dtype, (of_a, of_b))
                self.assertTrue(np.allclose(got, want, rtol=1e-4, atol=1e-6))
                with hone.factor(a, deterministic=True) as solver:
                    same = solver.solve(b)
                self.assertEqual(same.dtype, want.dtype)
                self.assertTrue(np.array_equal(same, got))
        stack = matrices(3, 4, 4).astype("f4")
        self.assertEqual(hone.solve(stack, stack).dtype, np.float32)

    def test_single_precision_is_rounded_once(self):
        a, b, _ = system(30)
        a, b = a.astype("f4"), b.astype("f4")
        # With error bounds x is a solver's, and so it is if deterministic.
        exact = hone.solve(
            a.astype(float), b.astype(float), deterministic=True
        )
        got, report = hone.solve(
            a, b, return_report=True, error_bounds=True, deterministic=True
        )
        self.assertTrue(np.array_equal(got, exact.astype("f4")))
        self.assertTrue(np.all(np.abs(got - exact) <= report.error_bounds))
        self.assertTrue(np.all(report.error_bounds <= 1e-6 * np.abs(got)))
        out = np.empty(30)
        same = hone.solve(a, b, out=out, deterministic=True)
        self.assertIs(same, out)
        self.assertTrue(np.array_equal(out, exact))

    def test_too_large_for_single_precision(self):
        a, b = np.full((1, 1), 1e-30, "f4"), np.full(1, 1e30, "f4")
        with self.assertRaisesRegex(OverflowError, "too large for float32"):
            hone.solve(a, b)

    def test_answers_are_by_rows(self):
        a, b, _ = system(6, 4)
        for order in "CF":
            got = hone.solve(a, np.array(b, order=order))
            self.assertTrue(got.flags.c_contiguous)
            self.assertTrue(hone.factor(a).solve(b).flags.c_contiguous)


class Assumed(unittest.TestCase):
    def setUp(self):
        self.a, self.b = matrices(7, 7, dtype=complex), random(7, complex)

    def want(self, a):
        return np.linalg.solve(a, self.b)

    def test_one_triangle_counts(self):
        a = self.a
        for lower in (False, True):
            half = np.tril(a, -1) if lower else np.triu(a, 1)
            whole = half + half.T + np.diag(np.diag(a))
            got = hone.solve(a, self.b, assume_a="sym", lower=lower)
            self.assertTrue(near(got, self.want(whole)))
            whole = half + half.conj().T + np.diag(np.diag(a).real)
            for name in ("her", "hermitian"):
                got = hone.solve(a, self.b, assume_a=name, lower=lower)
                self.assertTrue(near(got, self.want(whole)))
            got, report = hone.solve(
                a, self.b, assume_a="pos", lower=lower, return_report=True
            )
            self.assertTrue(near(got, self.want(whole)))
            self.assertIn("Cholesky", report.path)
            stack = np.stack([a, 2 * a])
            got = hone.solve(stack, self.b, assume_a="her", lower=lower)
            self.assertTrue(near(got[1], self.want(2 * whole)))

    def test_the_option_for_one_triangle(self):
        a = self.a
        a[np.triu_indices(7, 1)] = np.nan
        half = np.tril(a, -1)
        whole = half + half.conj().T + np.diag(np.diag(a).real)
        for form in (a, np.asfortranarray(a)):
            got = hone.solve(form, self.b, triangle="lower")
            self.assertTrue(near(got, self.want(whole)))
            got = hone.factor(form, triangle=hone.Triangle.LOWER).solve(self.b)
            self.assertTrue(near(got, self.want(whole)))
        got = hone.solve(np.stack([a, 2 * a]), self.b, triangle="lower")
        self.assertTrue(near(got[1], self.want(2 * whole)))
        sides = np.stack([self.b[:, None], 3 * self.b[:, None]])
        got = hone.solve(a, sides, assume_a="her", lower=True)
        self.assertTrue(near(got[1, :, 0], 3 * self.want(whole)))
        with self.assertRaisesRegex(ValueError, "column 3"):
            a[5, 3] = np.nan
            hone.solve(a, self.b, triangle="lower")

    def test_parts_that_count(self):
        a = self.a
        parts = {
            "gen": a,
            "upper triangular": np.triu(a),
            "lower triangular": np.tril(a),
            "diagonal": np.diag(np.diag(a)),
            "tridiagonal": np.triu(np.tril(a, 1), -1),
            "banded": a,
        }
        for name, part in parts.items():
            got = hone.solve(a, self.b, assume_a=name)
            self.assertTrue(near(got, self.want(part)), name)

    def test_the_matrix_is_left_alone(self):
        for name in ("pos", "sym", "diagonal", "gen"):
            a = self.a.copy()
            hone.solve(a, self.b, assume_a=name, overwrite_a=True)
            self.assertTrue(np.array_equal(a, self.a))

    def test_bad_names(self):
        for bad in ("posdef", "", 3, b"pos"):
            with self.assertRaisesRegex(ValueError, "assume_a"):
                hone.solve(self.a, self.b, assume_a=bad)
        with self.assertRaisesRegex(ValueError, "two things"):
            hone.solve(
                self.a, self.b, assume_a="pos", structure="general"
            )

    @needs_scipy
    def test_as_scipy(self):
        for name in ("gen", "sym", "her", "pos"):
            for lower in (False, True):
                got = hone.solve(self.a, self.b, assume_a=name, lower=lower)
                want = scipy.linalg.solve(
                    self.a, self.b, assume_a=name, lower=lower
                )
                self.assertTrue(near(got, want), (name, lower))

    def test_overwrite_b(self):
        a, b, x = system(8, 3)
        for order in "CF":
            given = np.array(b, order=order)
            got = hone.solve(a, given, overwrite_b=True)
            self.assertIs(got, given)
            self.assertTrue(near(given, x))
        for given in (b.astype("f4"), b.tolist(), (3 * b).astype(int)):
            hone.solve(a, given, overwrite_b=True)
        b.flags.writeable = False
        self.assertTrue(near(hone.solve(a, b, overwrite_b=True), x))
        z = random(8, complex)
        same = z.copy()
        self.assertIs(hone.solve(a + 0j, z, overwrite_b=True), z)
        self.assertTrue(near(a @ z, same))

    def test_overwrite_b_leaves_no_b_where_there_is_no_x(self):
        a = np.diag([1e-300, 1.0])
        for order in "CF":
            b = np.array([[1.0, 1e200], [1.0, 1.0]], order=order)
            got = hone.solve(a, b, overwrite_b=True, weak="ignore")
            self.assertIs(got, b)
            self.assertTrue(np.isnan(got[:, 1]).all())
            self.assertTrue(near(got[:, 0], np.array([1e300, 1.0])))

    def test_no_x_is_written_to_a_matrix_that_is_copied(self):
        a = np.triu(matrices(4, 4))
        a[2, 0] = 9.0  # does not count, so that a is copied
        ways = {"assume_a": "upper triangular"}, {"assume_a": "tridiagonal"}
        for way in ways:
            before = a.copy()
            with self.assertRaises(hone.HoneValueError):
                hone.solve(a, np.ones(4), out=a[0], **way)
            hone.solve(a, a[1], overwrite_b=True, **way)
            self.assertTrue(np.array_equal(a, before))
        stack = np.array([np.eye(4), 2.0 * np.eye(4)])
        with self.assertRaises(hone.HoneValueError):
            hone.solve(stack, np.ones(4), out=stack[:, 0], assume_a="sym")


class Operators(unittest.TestCase):
    def test_products_with_the_inverse(self):
        a, b = matrices(9, 9, dtype=complex), random((9, 2), complex)
        with hone.factor(a) as solver:
            self.assertEqual(solver.shape, (9, 9))
            self.assertTrue(near(a @ solver.matvec(b[:, 0]), b[:, 0]))
            self.assertTrue(near(a.conj().T @ solver.rmatvec(b), b))
            self.assertTrue(near(a @ solver.matmat(b), b))
            self.assertTrue(near(a.conj().T @ solver.rmatmat(b), b))

    @needs_scipy
    def test_as_scipy_takes_them(self):
        for dtype in (float, complex):
            a, b = matrices(40, 40, dtype=dtype), random(40, dtype)
            with hone.factor(a) as solver:
                inverse = scipy.sparse.linalg.aslinearoperator(solver)
                self.assertEqual(inverse.dtype, a.dtype)
                self.assertTrue(near(inverse @ b, np.linalg.solve(a, b)))
                got = inverse.H @ b
                self.assertTrue(near(a.conj().T @ got, b))
                near_a = a + 1e-3 * random((40, 40))
                known = inspect.signature(scipy.sparse.linalg.gmres).parameters
                rtol = "rtol" if "rtol" in known else "tol"  # before 1.12
                x, code = scipy.sparse.linalg.gmres(
                    near_a, b, M=solver, **{rtol: 1e-12}
                )
                self.assertEqual(code, 0)
                self.assertTrue(np.allclose(near_a @ x, b, atol=1e-10))


if __name__ == "__main__":
    unittest.main()
