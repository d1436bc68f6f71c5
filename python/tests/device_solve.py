# SPDX-License-Identifier: BSD-3-Clause
"""Single systems with arrays on a device, and solvers."""

import gc
import itertools
import unittest
import warnings
import weakref

import hone
import numpy as np
from device_arrays import Array, Dlpack, Versioned, finish, held, queue
from device_frame import N, Case, complex_of, there
from hone import _driver
from hone import _view as view
from systems import hilbert, near, system


class Solving(Case):
    def test_wherever_the_arrays_lie(self):
        """Each of A and b on the host and the device, by rows and by columns,
        real and complex: x lies where b does."""
        a, b, _ = system(N, 3)
        for order_a, order_b, kinds, way, columns in itertools.product(
            "CF", "CF", ("rr", "rc", "cr", "cc"), "NTC", (0, 1, 3)
        ):
            m = complex_of(a, 1) if kinds[0] == "c" else a
            v = complex_of(b, 2) if kinds[1] == "c" else b
            v = v[:, :columns] if columns else v[:, 0]
            m, v = np.array(m, order=order_a), np.array(v, order=order_b)
            op = {"N": m, "T": m.T, "C": m.conj().T}[way]
            want = np.linalg.solve(op, v)
            place = order_a, order_b, kinds, way, columns
            with self.subTest(place):
                self.solved(hone.solve(there(m), there(v), trans=way), want)
                self.solved(hone.solve(m, there(v), trans=way), want)
                x = hone.solve(there(m), v, trans=way)
                self.solved(x, want, np.ndarray)
                solver = hone.factor(there(m))
                if kinds != "rc" or columns != 0:
                    self.solved(solver.solve(there(v), trans=way), want)
                x = solver.solve(v, trans=way)
                self.solved(x, want, np.ndarray)

    def test_x_is_by_columns_and_b_is_not_changed(self):
        a, b, want = system(N, 3)
        for v in (b, np.asfortranarray(b)):
            given = there(v)
            x = hone.solve(there(a), given)
            self.assertEqual((x.shape, x.strides), ((N, 3), (8, 8 * N)))
            self.assertTrue(np.array_equal(given.get(), v))
            self.assertTrue(near(x.get(), want))

    def test_the_older_interface_of_dlpack(self):
        a, b, want = system(N, 2)
        for kind in (Dlpack, Versioned):
            self.solved(hone.solve(kind(a), kind(b)), want)
            self.solved(
                hone.solve(kind(a.T.copy().T), kind(b[:, 0].copy())), want[:, 0]
            )

    def test_strides_and_offsets_of_dlpack(self):
        a, b, want = system(N, 2)
        for kind, early, strides in itertools.product(
            (Dlpack, Versioned), (0, 24), (True, False)
        ):
            m, v = kind(a), kind(complex_of(b, 1))
            for each in (m, v):
                each.early, each.has_strides = early, strides
            self.solved(hone.solve(m, v), np.linalg.solve(a, complex_of(b, 1)))

    def test_interfaces_that_hold_the_memory(self):
        """An array may make a copy for whoever asks."""

        class Copied:
            @property
            def __cuda_array_interface__(self):
                made = there(a)
                return {**made.__cuda_array_interface__, "copy": made}

        a, b, want = system(N)
        self.solved(hone.solve(Copied(), there(b)), want)
        with hone.factor(Copied()) as solver:
            gc.collect()
            self.assertIsNotNone(_driver.place_of(solver._a.address))

    def test_parts_of_larger_arrays(self):
        a, b, want = system(N, 2)
        for order in "CF":
            wide = np.full((N + 3, N + 4), 55.0, order=order)
            wide[2 : N + 2, 1 : N + 1] = a
            tall = np.full((N + 5, 4), 55.0, order=order)
            tall[3 : N + 3, 1:3] = b
            m, v = wide[2 : N + 2, 1 : N + 1], tall[3 : N + 3, 1:3]
            self.solved(hone.solve(there(m), there(v)), want)
            self.solved(hone.solve(there(m), there(v[:, 1])), want[:, 1])

    def test_a_larger_system(self):
        a, b, want = system(300, 2)
        for m in (a, np.asfortranarray(a), a + 0j):
            x, report = hone.solve(there(m), there(b), return_report=True)
            self.solved(x, want.astype(m.dtype))
            self.assertGreaterEqual(report.from_device_bytes, m.nbytes)

    def test_gaps(self):
        a, b, want = system(N, 2)
        wide = np.full((2 * N, 2 * N), 55.0)
        wide[::2, ::2] = a
        text = "A has strides .* on a device: .* copy it there"
        self.refused(ValueError, text, hone.solve, there(wide[::2, ::2]), b)
        self.refused(ValueError, text, hone.factor, there(wide[::2, ::2]))
        self.refused(ValueError, text, hone.solve, there(a[::-1, ::-1]), b)
        spread = np.full((2 * N, 4), 55.0)
        spread[::2, :2] = b
        self.solved(hone.solve(a, there(spread[::2, :2])), want)
        self.solved(hone.solve(a, there(spread[::2, 1])), want[:, 1])
        text = "b has shape .* which cannot be copied .*: make it contiguous"
        self.refused(ValueError, text, hone.solve, a, there(b[::-1]))
        spread = np.full((2 * N, 4), 55.0)
        spread[::2, ::2] = b
        self.refused(ValueError, text, hone.solve, a, there(spread[::2, ::2]))

    def test_without_entries(self):
        for shape in ((0,), (0, 2)):
            none = there(np.zeros((0, 0)))
            x = hone.solve(none, there(np.zeros(shape)))
            self.assertIs(type(x), hone.DeviceArray)
            self.assertEqual((x.shape, x.get().shape), (shape, shape))
        x = hone.solve(there(np.eye(2)), there(np.zeros((2, 0))))
        self.assertEqual(x.shape, (2, 0))
        self.assertEqual(np.asarray(x.get()).size, 0)

    def test_out(self):
        a, b, want = system(N, 3)
        for order in "CF":
            for kind in (float, complex):
                m, v = a.astype(kind), np.array(b, order=order)
                out = there(np.array(np.zeros((N, 3), kind), order=order))
                for given in (v, there(v)):
                    x = hone.solve(there(m), given, out=out)
                    self.assertIs(x, out)
                    self.assertTrue(near(out.get(), want.astype(kind)))
            out = np.zeros((N, 3), order=order)
            self.assertIs(hone.solve(a, there(b), out=out), out)
            self.assertTrue(near(out, want))
        z = complex_of(b, 3)
        out = there(np.zeros((N, 3), complex))
        self.assertIs(hone.solve(there(a), there(z), out=out), out)
        self.assertTrue(near(out.get(), np.linalg.solve(a, z)))

    def test_x_in_the_place_of_b(self):
        a, b, want = system(N, 3)
        for order in "CF":
            for options in ({"overwrite_b": True}, {"out": None}):
                given = there(np.array(b, order=order))
                if "out" in options:
                    options = {"out": given}
                self.assertIs(hone.solve(a, given, **options), given)
                self.assertTrue(near(given.get(), want))
        given = there(b)
        given.changes = {"data": (given.start, True)}
        self.solved(hone.solve(a, given, overwrite_b=True), want)
        self.assertTrue(np.array_equal(given.get(), b))

    def test_out_is_refused(self):
        a, b, _ = system(N, 2)
        solve = hone.solve
        out = there(np.zeros((N, 2)))
        out.changes = {"data": (out.start, True)}
        self.refused(ValueError, "out is read-only", solve, a, b, out=out)
        repeated = there(np.zeros((N, 2)), strides=(0, 8))
        self.refused(ValueError, "read-only", solve, a, b, out=repeated)
        for flags in (1, 2):  # read-only, a copy
            out = Versioned(np.zeros((N, 2)))
            out.flags = flags
            self.refused(ValueError, "read-only", solve, a, b, out=out)
        out = there(np.zeros((N, 2), complex))
        self.refused(TypeError, "out has dtype", solve, a, b, out=out)
        out = there(np.zeros((N, 3)))
        self.refused(ValueError, "out has shape", solve, a, b, out=out)
        whole = there(a)
        over = there(np.zeros(N))
        over.start = whole.start
        self.refused(ValueError, "overlaps", solve, whole, b[:, 0], out=over)

    def test_x0_and_error_bounds(self):
        a, b, want = system(N, 2)
        for start in (want, want.T.copy().T, complex_of(want, 1)):
            v = b.astype(start.dtype)
            x, report = hone.solve(
                there(a.astype(v.dtype)),
                there(v),
                x0=there(start),
                error_bounds=True,
                return_report=True,
            )
            self.solved(x, want.astype(v.dtype))
            self.assertEqual(report.error_bounds.shape, (N, 2))
            self.assertTrue((abs(held(x) - want) <= 1e-12).all())
        z = complex_of(b, 5)
        x = hone.solve(a, there(z), x0=there(np.linalg.solve(a, z)))
        self.solved(x, np.linalg.solve(a, z))
        x0 = there(complex_of(want, 1))
        self.refused(TypeError, "x0 is complex", hone.solve, a, b, x0=x0)
        bad = there(np.full((N, 2), np.inf))
        self.refused(ValueError, "x0", hone.solve, a, there(b), x0=bad)

    def test_weak(self):
        h = hilbert(14)
        b = h.sum(1)
        with self.assertWarns(hone.HoneWarning) as caught:
            x = hone.solve(there(h), there(b))
        self.assertIs(caught.warning.x, x)
        self.assertTrue(np.isfinite(held(x)).all())
        del caught
        with self.assertRaises(hone.HoneWeakError) as caught:
            hone.solve(there(h), there(b), weak="raise")
        self.assertTrue(np.isfinite(held(caught.exception.x)).all())

    def test_a_column_without_x(self):
        a = 1e-300 * np.eye(2)
        for kind in (float, complex):
            for large in (1e300, 1e300 + 0j):
                b = np.array([[1.0, large], [1.0, 1.0]])
                dtype = np.result_type(kind, b)
                for v in (b, np.asfortranarray(b)):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        x = hone.solve(there(a.astype(kind)), there(v))
                        out = there(np.full((2, 2), 7, dtype))
                        hone.solve(a.astype(kind), there(v), out=out)
                    self.assertTrue(np.allclose(held(x)[:, 0], 1e300))
                    self.assertTrue(np.isnan(held(x)[:, 1]).all())
                    self.assertTrue(np.allclose(out.get()[:, 0], 1e300))
                    self.assertTrue(np.array_equal(out.get()[:, 1], [7, 7]))

    def test_errors_of_the_library(self):
        a, b, _ = system(N)
        a[2, 4] = np.nan
        for m in (a, np.asfortranarray(a)):
            self.refused(
                ValueError, "row 2; column 4", hone.solve, there(m), there(b)
            )
        zeros = there(np.zeros((N, N)))
        solve = hone.solve
        self.refused(np.linalg.LinAlgError, "singular", solve, zeros, there(b))
        b[3] = np.inf
        self.refused(ValueError, "row 3", solve, there(np.eye(N)), there(b))


class Solvers(Case):
    def test_matrices_are_borrowed(self):
        a, b, want = system(N)
        given = there(a)
        alive = weakref.ref(given)
        solver = hone.factor(given)
        del given
        gc.collect()
        self.assertIsNotNone(alive())
        self.solved(solver.solve(there(b)), want)
        solver.factor(there(np.eye(N)))
        gc.collect()
        self.assertIsNone(alive())
        self.solved(solver.solve(there(b)), b)

    def test_copies(self):
        a, b, want = system(N)
        wide = np.zeros((N, N + 2))
        wide[:, 1:-1] = a
        for m in (a, np.asfortranarray(a), wide[:, 1:-1]):
            given = there(m)
            alive = weakref.ref(given)
            solver = hone.factor(given, copy=True)
            queue(5, given, Array(np.zeros(given.memory_size // 8)))
            finish()
            self.assertFalse(given.get().any())
            del given
            gc.collect()
            self.assertIsNone(alive())
            self.assertTrue(np.array_equal(view.fetch(solver._a, "A"), m))
            self.solved(solver.solve(there(b)), want)

    def test_other_matrices(self):
        a, b, want = system(N)
        solver = hone.factor(there(2.0 * a))
        self.solved(solver.update(there(a)).solve(there(b)), want)
        self.solved(solver.factor(a).solve(there(b)), want)
        text = "A is stored by columns on a device, .* stored by rows"
        other = there(np.asfortranarray(a))
        self.refused(ValueError, text, solver.factor, other)
        self.solved(solver.solve(there(b)), want)
        text = "A is complex, and the solver was made for real"
        self.refused(TypeError, text, solver.factor, there(a + 0j))
        solver = hone.factor(there(a + 0j))
        self.solved(solver.solve(there(b)), want + 0j)
        text = "A is real on a device, and the solver .* complex"
        self.refused(TypeError, text, solver.factor, there(a))

    def test_x_in_the_place_of_b(self):
        a, b, want = system(N, 2)
        given = there(np.asfortranarray(b))
        with hone.factor(there(a)) as solver:
            self.assertIs(solver.solve(given, out=given), given)
        self.assertTrue(near(given.get(), want))


if __name__ == "__main__":
    unittest.main()
