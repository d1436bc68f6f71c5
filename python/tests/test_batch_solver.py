# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of stacks, which hone.factor_batch(A) makes."""

import copy
import gc
import pickle
import unittest
import warnings
import weakref
from unittest import mock

import hone
import numpy as np
from hone import _abi, _batch_solver
from systems import hilbert, near
from test_numpy import by_numpy, matrices, random

COUNT = 37  # no multiple of the lanes of a vector


def solved(solver, b, **options):
    """Returns x, if every system is accepted."""
    x, results = solver.solve(b, **options)
    assert (results["status"] == hone.Status.OK).all(), results["status"]
    return x


class Kept(unittest.TestCase):
    def setUp(self):
        self.a, self.b = matrices(COUNT, 5, 5), random((COUNT, 5, 2))
        self.x = by_numpy(self.a, self.b)

    def test_solves_again_and_again(self):
        solver = hone.factor_batch(self.a)
        for columns in (slice(0, 1), slice(1, 2), slice(0, 2), slice(0, 0)):
            answer = solver.solve(self.b[..., columns])
            x, results = answer
            self.assertIs(answer.results, results)
            self.assertTrue(near(x, self.x[..., columns]))
            self.assertTrue(x.flags.c_contiguous)
            self.assertEqual(results.shape, (COUNT,))
            self.assertTrue((results["status"] == hone.Status.OK).all())
            self.assertTrue((results["backward_error"] <= 4.5e-16).all())
            self.assertTrue((results["forward_error"] <= 1e-12).all())

    def test_the_bits_of_one_call(self):
        for n in (1, 2, 17, 64, 150):
            for dtype in (float, complex):
                a, b = matrices(9, n, n, dtype=dtype), random((9, n, 2), dtype)
                want = hone.solve_batch(a, b, deterministic=True).x
                solver = hone.factor_batch(a, deterministic=True)
                self.assertTrue(np.array_equal(solved(solver, b), want), n)

    def test_factors_are_kept(self):
        calls = []
        keep = _batch_solver._REAL

        def counted(name):
            def call(*arguments):
                calls.append(name)
                return getattr(keep, name)(*arguments)

            return call

        named = keep._make(counted(name) for name in keep._fields)
        with mock.patch.object(_batch_solver, "_REAL", named):
            with hone.factor_batch(self.a) as solver:
                solved(solver, self.b)
                solved(solver, self.b)
        self.assertEqual(
            calls, ["create", "factor", "solve", "solve", "destroy"]
        )

    def test_what_is_known_of_the_matrices(self):
        solver = hone.factor_batch(self.a[:36].reshape(4, 9, 5, 5))
        self.assertEqual((solver.n, solver.shape), (5, (4, 9, 5, 5)))
        self.assertEqual(solver.dtype, np.float64)
        self.assertEqual(solver.results.shape, (4, 9))
        self.assertEqual(solver.report.nrhs, 0)
        self.assertTrue((solver.results["rcond"] > 1e-3).all())
        self.assertIn("shape (4, 9, 5, 5), open", repr(solver))
        solver.solve(self.b[:9])
        self.assertEqual(solver.report.nrhs, 2)
        self.assertIn("batch of 36", solver.report.path)
        z = hone.factor_batch(self.a + 0j)
        self.assertIn("(37, 5, 5), complex, open", repr(z))

    def test_axes_of_b(self):
        cases = (
            ((4, 9), (5,)),
            ((4, 9), (5, 3)),
            ((4, 9), (9, 5, 3)),
            ((4, 9), (4, 1, 5, 3)),
            ((4, 1), (9, 5, 3)),
            ((9,), (4, 9, 5, 3)),
            ((9,), (4, 1, 5, 3)),
            ((3, 1, 2), (4, 3, 6, 1, 5, 2)),
            ((), (4, 9, 5, 3)),
            ((), (5, 3)),
            ((), (5,)),
            ((1, 1), (5, 2)),
            ((0,), (5, 2)),
            ((4, 1), (0, 5, 2)),
        )
        for of_a, of_b in cases:
            for dtypes in ((float, float), (complex, float), (float, complex)):
                a = matrices(*of_a, 5, 5, dtype=dtypes[0])
                b = random(of_b, dtypes[1])
                x, results = hone.factor_batch(a).solve(b)
                want = by_numpy(a, b if b.ndim > 1 else b[:, None])
                want = want if b.ndim > 1 else want[..., 0]
                self.assertTrue(near(x, want), (of_a, of_b))
                self.assertEqual(results.shape, of_a)
                self.assertTrue((results["status"] == hone.Status.OK).all())

    def test_vectors(self):
        a, v = self.a[:5], random((5, 5))
        want = by_numpy(a, v[..., None])[..., 0]
        solver = hone.factor_batch(a)
        self.assertTrue(near(solved(solver, v, vectors=True), want))
        self.assertTrue(near(solved(solver, v), by_numpy(a, v)))
        one = solved(solver, v[0], vectors=True)
        self.assertTrue(near(one, solved(solver, v[0])))
        self.assertTrue(near(hone.solve_batch(a, v, vectors=True).x, want))
        with self.assertRaisesRegex(ValueError, r"must be \(\.\.\., 5\)"):
            solver.solve(self.b[:5], vectors=True)

    def test_right_hand_sides_are_read_in_place(self):
        solver = hone.factor_batch(self.a)
        seen = []
        keep = solver._calls

        def solve(handle, batch, *arguments):
            seen.append(batch._obj)
            return keep.solve(handle, batch, *arguments)

        solver._calls = keep._replace(solve=solve)
        b = np.swapaxes(random((COUNT, 3, 9))[..., 2:7], -1, -2)
        self.assertTrue(near(solved(solver, b), by_numpy(self.a, b)))
        self.assertEqual((seen[-1].b, seen[-1].ldb), (b.ctypes.data, 9))
        v = random(5)
        solved(solver, v)
        self.assertEqual((seen[-1].b, seen[-1].stride_b), (v.ctypes.data, 0))
        self.assertFalse(seen[-1].a or seen[-1].a_list)

    def test_transposes(self):
        a = matrices(COUNT, 4, 4, dtype=complex)
        b = random((COUNT, 4, 2), complex)
        t = np.swapaxes(a, 1, 2)
        for given in (a, np.array(t, order="C").swapaxes(1, 2)):
            for trans, matrix in (("T", t), ("C", t.conj()), (False, a)):
                solver = hone.factor_batch(given, trans=trans)
                self.assertTrue(near(solved(solver, b), by_numpy(matrix, b)))

    def test_determinants(self):
        a = random((COUNT, 6, 6), complex)
        sign, log = np.linalg.slogdet(a)
        for trans, want in ((False, sign), ("C", sign.conj())):
            solver = hone.factor_batch(a, determinants=True, trans=trans)
            r = solver.results
            self.assertTrue(np.allclose(r["det_re"] + 1j * r["det_im"], want))
            self.assertTrue(np.allclose(r["log_abs_det"], log))
            solver.factor(a[::2])
            r = solver.results
            self.assertTrue(np.allclose(r["log_abs_det"], log[::2]))
        r = hone.factor_batch(a).results
        self.assertTrue(np.isnan(r["log_abs_det"]).all())

    def test_complex_columns_of_real_matrices(self):
        b = random((COUNT, 5, 2), complex)
        b[11, 3, 1] = complex(1.0, np.nan)
        x, results = hone.factor_batch(self.a).solve(b)
        self.assertEqual(results["status"][11], hone.Status.NOT_FINITE_B)
        self.assertEqual(results[["row", "col"]][11].tolist(), (3, 1))
        self.assertTrue(np.isnan(x[11]).all())
        left = np.arange(COUNT) != 11
        self.assertTrue(near(x[left], by_numpy(self.a[left], b[left])))

    def test_empty_ones(self):
        for of_a, of_b in (
            ((0, 5, 5), (0, 5, 2)),
            ((3, 0, 0), (3, 0, 2)),
            ((3, 5, 5), (3, 5, 0)),
        ):
            solver = hone.factor_batch(np.zeros(of_a) + np.eye(of_a[-1]))
            self.assertEqual(solved(solver, np.ones(of_b)).shape, of_b)


class Errors(unittest.TestCase):
    def setUp(self):
        self.a, self.b = matrices(COUNT, 4, 4), random((COUNT, 4, 2))
        self.x = by_numpy(self.a, self.b)

    def test_no_exception_for_one_matrix(self):
        self.a[3] = 0.0
        self.a[8, 1, 2] = np.nan
        bad = {3: hone.Status.SINGULAR, 8: hone.Status.NOT_FINITE_A}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            solver = hone.factor_batch(self.a)
            for _ in range(2):
                x, results = solver.solve(self.b)
                for r in (results, solver.results):
                    for k in range(COUNT):
                        self.assertEqual(r["status"][k], bad.get(k, 0))
                    place = r[["row", "col"]][8].tolist()
                    self.assertEqual(place, (1, 2))
                for k in range(COUNT):
                    if k in bad:
                        self.assertTrue(np.isnan(x[k]).all())
                    else:
                        self.assertTrue(near(x[k], self.x[k]))

    def test_no_exception_for_one_right_hand_side(self):
        solver = hone.factor_batch(self.a)
        given = self.b.copy()
        given[11, 3, 1] = np.inf
        x, results = solver.solve(given)
        self.assertEqual(results["status"][11], hone.Status.NOT_FINITE_B)
        self.assertEqual(results[["row", "col"]][11].tolist(), (3, 1))
        self.assertTrue(np.isnan(x[11]).all())
        self.assertTrue(near(solved(solver, self.b), self.x))

    def test_weak_ones_have_an_x(self):
        solver = hone.factor_batch(np.stack([hilbert(14), np.eye(14)]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x, results = solver.solve(np.ones(14))
        self.assertEqual(results["status"].tolist(), [2, 0])
        self.assertTrue(np.isfinite(x).all())

    def test_the_call_itself_may_fail(self):
        with self.assertRaisesRegex(ValueError, "given: device='cuda'"):
            hone.factor_batch(self.a, device="cuda")
        with self.assertRaisesRegex(ValueError, "square"):
            hone.factor_batch(self.a[:, :3])
        with self.assertRaisesRegex(ValueError, "trans"):
            hone.factor_batch(self.a, trans="X")
        with self.assertRaisesRegex(TypeError, "no option 'x0'"):
            hone.factor_batch(self.a, x0=self.b)
        with self.assertRaisesRegex(TypeError, "sparse|object|dtype"):
            hone.factor_batch(self.a.astype(object))
        with self.assertRaises(hone.HoneMemoryError):
            hone.factor_batch(self.a, memory_limit_bytes=1)

    def test_calls_that_are_refused_change_nothing(self):
        solver = hone.factor_batch(self.a)
        for given, message in (
            (self.b[:5], "do not fit"),
            (self.b[:, :3], "must be"),
            (1.0, "must be"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                solver.solve(given)
        with self.assertRaisesRegex(TypeError, "callable"):
            solver.solve(self.b, progress=3)
        with self.assertRaisesRegex(ValueError, "deadline_s"):
            solver.solve(self.b, deadline_s=-1.0)
        with self.assertRaisesRegex(ValueError, "square"):
            solver.factor(self.b)
        with self.assertRaisesRegex(TypeError, "made for real matrices"):
            solver.factor(self.a + 1j)
        self.assertEqual(solver.shape, self.a.shape)
        self.assertTrue(near(solved(solver, self.b), self.x))

    def test_no_memory_for_the_factors(self):
        solver = hone.factor_batch(self.a, memory_limit_bytes=3000)
        missing = solver.results["status"] == hone.Status.NO_MEMORY
        self.assertTrue(missing.all())
        _, results = solver.solve(self.b)
        self.assertTrue((results["status"] == hone.Status.NO_MEMORY).all())

    def test_with_closes(self):
        with hone.factor_batch(self.a) as solver:
            self.assertFalse(solver.closed)
        self.assertTrue(solver.closed)
        self.assertIn("closed", repr(solver))
        for call in (solver.solve, lambda b: solver.factor(self.a)):
            with self.assertRaisesRegex(ValueError, "closed"):
                call(self.b)
        solver.close()

    def test_neither_copied_nor_pickled(self):
        solver = hone.factor_batch(self.a)
        for call in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaisesRegex(TypeError, "hone.BatchSolver can"):
                call(solver)


class Matrices(unittest.TestCase):
    """The solver borrows its matrices, or has copies."""

    def setUp(self):
        self.a, self.b = matrices(COUNT, 5, 5), random((COUNT, 5, 2))
        self.x = by_numpy(self.a, self.b)

    def test_kept_alive(self):
        gone = weakref.ref(a := self.a.copy())
        solver = hone.factor_batch(a)
        del a
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertTrue(near(solved(solver, self.b), self.x))
        solver.factor(self.a)
        self.assertIsNone(gone())

    def test_conversions_and_lists_are_kept_alive(self):
        wide = np.repeat(np.repeat(self.a, 2, axis=-1), 2, axis=-2)
        single = self.a.astype("f4")
        for given in (
            self.a[::-1],
            self.a[:36].reshape(4, 9, 5, 5)[:, ::2],
            wide[:, ::2, ::2],
            single,
            single.tolist(),
        ):
            b = self.b[:1]
            want = by_numpy(np.array(given, float), b)
            solver = hone.factor_batch(given)
            gc.collect()
            junk = [np.full((COUNT, 5, 5), 7.0) for _ in range(50)]
            junk += [np.zeros(k // 4, np.int64) for k in range(4 * COUNT + 4)]
            self.assertTrue(near(solved(solver, b), want))
            del junk

    def test_borrowed_unless_asked(self):
        a = self.a.copy()
        for given in (a, np.swapaxes(a, 1, 2), a[:, 1:, :4], memoryview(a)):
            solver = hone.factor_batch(given)
            self.assertTrue(np.shares_memory(solver._a, a))
            solver = hone.factor_batch(given, copy=True)
            self.assertFalse(np.shares_memory(solver._a, a))
        same = np.broadcast_to(a[0], (1000, 5, 5))
        for flag in (False, True):
            solver = hone.factor_batch(same, copy=flag)
            self.assertEqual(solver._a.strides[0], 0)
            self.assertTrue(
                near(solved(solver, self.b[0]), by_numpy(same, self.b[0]))
            )

    def test_a_copy_does_not_change(self):
        a = self.a.copy()
        solver = hone.factor_batch(a, copy=True)
        a[...] = np.nan
        self.assertTrue(near(solved(solver, self.b), self.x))
        a[...] = self.a
        solver.factor(a, copy=True)
        a[...] = np.nan
        self.assertTrue(near(solved(solver, self.b), self.x))

    def test_others_of_any_shape_and_layout(self):
        for first in (self.a, np.swapaxes(self.a, 1, 2)):
            solver = hone.factor_batch(first)
            for n in (5, 1, 20, 0):
                other = matrices(2, 3, n, n)
                b = random((2, 3, n, 2))
                by_columns = other.swapaxes(-1, -2).copy().swapaxes(-1, -2)
                for given in (other, np.array(other, order="F"), by_columns):
                    self.assertIs(solver.factor(given), solver)
                    self.assertEqual(solver.shape, (2, 3, n, n))
                    self.assertEqual(solver.results.shape, (2, 3))
                    self.assertTrue(
                        near(solved(solver, b), by_numpy(other, b))
                    )
            same = np.broadcast_to(np.asfortranarray(self.a[0]), (9, 5, 5))
            solver.factor(same)
            self.assertEqual(solver._a.strides[0], 0)
            self.assertTrue(
                near(solved(solver, self.b[:9]), by_numpy(same, self.b[:9]))
            )

    def test_a_complex_solver_takes_real_ones(self):
        solver = hone.factor_batch(self.a * 1j)
        self.assertTrue(near(solved(solver, self.b), self.x * -1j))
        solver.factor(self.a)
        self.assertEqual(solver.dtype, np.complex128)
        self.assertTrue(near(solved(solver, self.b), self.x + 0j))

    def test_a_refused_factor_keeps_what_is_borrowed(self):
        solver = hone.factor_batch(self.a)
        busy = mock.Mock(return_value=int(hone.Status.BUSY))
        keep, solver._calls = solver._calls, solver._calls._replace(factor=busy)
        with self.assertRaises(hone.HoneBusyError):
            solver.factor(self.a[:3].copy())
        solver._calls = keep
        self.assertIs(solver._a, self.a)
        self.assertEqual(solver.shape, self.a.shape)


class Places(unittest.TestCase):
    def test_every_function_for_solvers_of_batches_is_used(self):
        names = [name for name in _abi.FUNCTIONS if "batch_solver" in name]
        self.assertEqual(len(names), 2 * len(_batch_solver._Calls._fields))


if __name__ == "__main__":
    unittest.main()
