# SPDX-License-Identifier: BSD-3-Clause
"""Stacks of systems that are solved in one call of the library."""

import unittest
import warnings
from unittest import mock

import hone
import numpy as np
from hone import _abi, _batch
from systems import hilbert, near
from test_numpy import by_numpy, matrices, random

COUNT = 37  # no multiple of the lanes of a vector
LIBRARY = _abi.lib


class Calls:
    """The library, with a count of the calls of the functions for batches, and
    what the last one was given."""

    def __init__(self):
        self.batches = self.singles = 0
        self.batch = None

    def __getattr__(self, name):
        function = getattr(LIBRARY, name)
        if not name.endswith("solve"):
            return function

        def called(*arguments):
            if "batch" in name:
                self.batches += 1
                self.batch = arguments[0]._obj
            else:
                self.singles += 1
            return function(*arguments)

        return called


def counted():
    """Within this context all calls of the library are counted."""
    calls = Calls()
    context = mock.patch.multiple("hone._abi", lib=calls)
    with_one = mock.patch.multiple("hone._solve", lib=calls)
    return calls, context, with_one


class OneCall(unittest.TestCase):
    def solve(self, *arguments, **options):
        self.calls, first, second = counted()
        with first, second:
            return hone.solve(*arguments, **options)

    def check_calls(self, batches, singles=0):
        got = self.calls.batches, self.calls.singles
        self.assertEqual(got, (batches, singles))

    def test_what_a_batch_takes(self):
        a, b = matrices(COUNT, 4, 4), random((COUNT, 4, 2))
        want = by_numpy(a, b)
        self.assertTrue(near(self.solve(a, b), want))
        self.check_calls(1)
        for options in (
            {"trans": False, "threads": 1, "deterministic": True},
            {"structure": "general", "device": "cpu"},
            {"criterion": "normwise"},
            {"extra_precise": True},
            {"factor_precision": "single"},
            {"progress": lambda event: None},
            {"assume_a": "gen"},
        ):
            self.assertTrue(near(self.solve(a, b, **options), want), options)
            self.check_calls(1)
        for options in (
            {"x0": want},
            {"error_bounds": True},
            {"deadline_s": 100.0},
        ):
            self.assertTrue(near(self.solve(a, b, **options), want), options)
            self.check_calls(0, COUNT)
        _, reports = self.solve(a, b, return_report=True)
        self.assertEqual(reports.shape, (COUNT,))
        self.assertIn("LU", reports[5].path)
        self.check_calls(0, COUNT)
        self.assertTrue(near(self.solve(a[:1], b[:1]), want[:1]))
        self.check_calls(0, 1)
        self.assertEqual(self.solve(a[:0], b[:0]).shape, (0, 4, 2))
        self.check_calls(0, 0)

    def test_a_device_is_for_all_systems_of_a_call(self):
        a, b = matrices(3, 4, 4), random((3, 4, 1))
        try:
            hone.solve(a[0], b[0], device="cuda")
        except hone.HoneDeviceError:
            with self.assertRaisesRegex(hone.HoneDeviceError, r"^A\[0\]: "):
                self.solve(a, b, device="cuda")
        else:
            self.assertTrue(
                near(self.solve(a, b, device="cuda"), by_numpy(a, b))
            )
        self.assertEqual(self.calls.batches, 1)

    def test_arrays_are_read_in_place(self):
        a, b = matrices(6, 8, 5, 5), random((6, 8, 5, 1))
        fortran = np.asfortranarray(a[0, 0])[None] * np.ones((8, 1, 1))
        wide = np.full((6, 8, 7, 9), np.nan)
        wide[:, :, 1:6, 2:7] = a
        gaps = np.repeat(np.repeat(a, 2, axis=-1), 2, axis=-2)
        cases = (
            (a, b, True),
            (np.swapaxes(a, -1, -2), b, True),
            (fortran, b[0], True),
            (wide[:, :, 1:6, 2:7], b, True),
            (a[:, ::2], b[:, ::2], True),
            (a[::-1, 1:3], b[::-1, 1:3], True),
            (a[0, ::-1], b[0, ::-1], True),
            (gaps[..., ::2, ::2], b, False),
        )
        for given, columns, in_place in cases:
            got = self.solve(given, columns)
            self.assertTrue(near(got, by_numpy(given, columns)))
            self.check_calls(1)
            batch = self.calls.batch
            start = batch.a
            self.assertEqual(start == given.ctypes.data, in_place)
            self.assertEqual(batch.count, given.shape[0] * (
                given.shape[1] if given.ndim == 4 else 1))
        self.solve(a, b)
        self.assertEqual(self.calls.batch.stride_a, 25)
        self.assertEqual(self.calls.batch.b, b.ctypes.data)
        apart = np.swapaxes(random((6, 8, 3, 9))[..., 2:7], -1, -2)
        self.assertTrue(near(self.solve(a, apart), by_numpy(a, apart)))
        self.assertEqual(self.calls.batch.b, apart.ctypes.data)
        self.assertEqual(self.calls.batch.ldb, 9)

    def test_what_is_broadcast_is_not_copied(self):
        a, b = matrices(COUNT, 5, 5), random((5, 3))
        got = self.solve(a, b)
        self.assertTrue(near(got, by_numpy(a, b)))
        self.assertEqual(self.calls.batch.stride_b, 0)
        v = random(5)
        got = self.solve(a, v)
        self.assertTrue(near(got, by_numpy(a, v[:, None])[..., 0]))
        self.assertEqual(self.calls.batch.b, v.ctypes.data)
        self.assertEqual(self.calls.batch.stride_b, 0)
        got = self.solve(a, b + 1j)
        self.assertTrue(near(got, by_numpy(a, b + 1j)))
        self.assertEqual(self.calls.batch.stride_b, 0)
        self.assertEqual(self.calls.batch.nrhs, 6)
        same = np.broadcast_to(a[0], (COUNT, 5, 5))
        got = self.solve(same, np.broadcast_to(b, (COUNT, 5, 3)))
        self.assertTrue(near(got, by_numpy(same, b)))
        self.assertEqual(self.calls.batch.stride_a, 0)

    def test_axes_along_which_a_does_not_change(self):
        shapes = (
            ((2, 1, 5, 5), (3, 5, 2)),
            ((2, 1, 5, 5), (2, 3, 5, 2)),
            ((3, 1, 2, 5, 5), (4, 1, 5, 2)),
            ((3, 1, 2, 5, 5), (3, 4, 2, 5, 1)),
            ((4, 3, 5, 5), (4, 1, 5, 2)),
        )
        for of_a, of_b in shapes:
            for dtypes in ((float, float), (complex, float), (float, complex)):
                a = matrices(*of_a, dtype=dtypes[0])
                b = random(of_b, dtypes[1])
                for order in "CF":
                    got = self.solve(a, np.array(b, order=order))
                    self.check_calls(1)
                    self.assertTrue(near(got, by_numpy(a, b)), (of_a, of_b))
                    self.assertTrue(got.flags.c_contiguous)

    def test_transposes(self):
        a = matrices(COUNT, 4, 4, dtype=complex)
        b = random((COUNT, 4, 2), complex)
        t = np.swapaxes(a, 1, 2)
        for given in (a, np.array(t, order="C").swapaxes(1, 2)):
            for trans, matrix in (("T", t), ("C", t.conj()), ("N", a)):
                got = self.solve(given, b, trans=trans)
                self.check_calls(1)
                self.assertTrue(near(got, by_numpy(matrix, b)))

    def test_large_and_small_orders(self):
        for n in (1, 2, 3, 17, 64, 150):
            a, b = matrices(5, n, n), random((5, n, 1))
            self.assertTrue(near(self.solve(a, b), by_numpy(a, b)), n)
            self.check_calls(1)

    def test_single_precision_is_rounded_once(self):
        a = matrices(COUNT, 4, 4).astype("f4")
        b = random((COUNT, 4, 2)).astype("f4")
        got = self.solve(a, b)
        self.check_calls(1)
        self.assertEqual(got.dtype, np.float32)
        exact = hone.solve(a.astype(float), b.astype(float))
        self.assertTrue(np.array_equal(got, exact.astype("f4")))
        a[5] *= np.float32(1e-30)
        b[5] *= np.float32(1e30)
        with self.assertRaisesRegex(OverflowError, r"^A\[5\]: .*too large"):
            self.solve(a, b)

    def test_out(self):
        a, b = matrices(COUNT, 4, 4), random((COUNT, 4, 2))
        out = np.full((COUNT, 4, 2), np.nan)
        self.assertIs(self.solve(a, b, out=out), out)
        self.check_calls(1)
        self.assertTrue(near(out, by_numpy(a, b)))

    def test_an_error_is_that_of_the_single_system(self):
        a, b = matrices(2, 20, 4, 4), random((2, 20, 4, 1))
        a[1, 3] = 0.0
        b[1, 7, 2, 0] = np.inf
        with self.assertRaises(hone.HoneSingularError) as caught:
            self.solve(a, b)
        with self.assertRaises(hone.HoneSingularError) as alone:
            hone.solve(a[1, 3], b[1, 3])
        self.assertEqual(
            str(caught.exception), f"A[1, 3]: {alone.exception}"
        )
        self.assertEqual(caught.exception.status, hone.Status.SINGULAR)
        self.assertEqual(
            caught.exception.report.path, alone.exception.report.path
        )
        self.check_calls(1, 1)
        a[1, 3] = np.eye(4)
        with self.assertRaisesRegex(ValueError, r"^A\[1, 7\]: .*b\(2, 0\)"):
            self.solve(a, b)

    def test_weak_ones(self):
        a = np.stack([np.eye(14), hilbert(14), np.eye(14), hilbert(14)])
        b = np.ones((14, 1))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = self.solve(a, b)
        self.check_calls(1, 1)
        self.assertEqual(len(caught), 1)
        warning = caught[0].message
        self.assertRegex(str(warning), r"^A\[1\]: .*and 1 more of 4 matrices")
        self.assertEqual(warning.report.status, hone.Status.ILL_CONDITIONED)
        self.assertGreater(len(warning.report.reason), 0)
        self.assertIs(warning.x, x)
        self.assertTrue(np.all(np.isfinite(x)))
        with self.assertRaisesRegex(hone.HoneWeakError, r"^A\[1\]: "):
            self.solve(a, b, weak="raise")
        self.solve(a, b, weak="ignore")
        self.check_calls(1, 0)

    def test_no_memory(self):
        a, b = matrices(COUNT, 4, 4), random((COUNT, 4, 1))
        with self.assertRaisesRegex(MemoryError, r"^A\[0\]: "):
            self.solve(a, b, memory_limit_bytes=1)
        _, results = hone.solve_batch(a, b, memory_limit_bytes=1)
        missing = results["status"] == hone.Status.NO_MEMORY
        self.assertTrue(missing.all())

    def test_memory_for_single_systems_only(self):
        poor = np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])
        a, b = np.broadcast_to(poor, (1000, 2, 2)).copy(), np.ones((2, 1))
        with self.assertWarns(hone.HoneWarning):
            _, report = hone.solve(poor, b, return_report=True)
        with self.assertWarnsRegex(
            hone.HoneWarning, r"^A\[0\]: .*and 999 more of 1000 matrices"
        ):
            x = self.solve(a, b, memory_limit_bytes=report.host_bytes)
        self.check_calls(1, 1000)
        self.assertTrue(np.isfinite(x).all())

    def test_progress_is_that_of_the_batch(self):
        a, b = matrices(COUNT, 14, 14), np.ones((14, 1))
        a[3] = hilbert(14)
        events = []
        self.solve(a, b, progress=events.append, weak="ignore")
        with self.assertWarns(hone.HoneWarning):
            self.solve(a, b, progress=events.append)
        self.check_calls(1, 1)
        self.assertEqual({event.phase for event in events}, {"batch"})

    def test_progress_stops_it(self):
        a, b = matrices(COUNT, 4, 4), random((COUNT, 4, 1))
        events = []
        hone.solve(a, b, progress=events.append)
        self.assertEqual({event.phase for event in events}, {"batch"})
        with self.assertRaisesRegex(hone.HoneCancelledError, r"^A\[0\]: "):
            self.solve(a, b, progress=lambda event: True)
        self.check_calls(1, 0)

        def fail(event):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            self.solve(a, b, progress=fail)


class Verdicts(unittest.TestCase):
    def test_fields_and_shapes(self):
        a, b = matrices(3, 1, 5, 5), random((2, 5, 4))
        answer = hone.solve_batch(a, b)
        x, results = answer
        self.assertIs(answer.x, x)
        self.assertIs(answer.results, results)
        self.assertTrue(near(x, by_numpy(a, b)))
        self.assertTrue(x.flags.c_contiguous)
        self.assertEqual(results.shape, (3, 2))
        names = [name for name, *_ in _abi.BatchResult._fields_]
        self.assertEqual(list(results.dtype.names), names)
        self.assertTrue((results["status"] == hone.Status.OK).all())
        self.assertTrue((results["backward_error"] <= 4.5e-16).all())
        self.assertTrue((results["forward_error"] <= 1e-13).all())
        self.assertTrue((results["rcond"] > 1e-3).all())
        self.assertTrue(np.isnan(results["log_abs_det"]).all())
        x, results = hone.solve_batch(a[0, 0], b[0, :, 0])
        self.assertEqual((x.shape, results.shape), ((5,), ()))
        self.assertEqual(results["status"], 0)
        x, results = hone.solve_batch(a[:0], b)
        self.assertEqual((x.shape, results.shape), ((0, 2, 5, 4), (0, 2)))
        x, results = hone.solve_batch(a[0, 0], b)
        self.assertEqual(results.shape, (2,))
        self.assertTrue(near(x, by_numpy(a[0, 0], b)))

    def test_no_exception_for_one_system(self):
        a, b = matrices(COUNT, 4, 4), random((COUNT, 4, 2))
        want = by_numpy(a, b)
        a[3] = 0.0
        a[8, 1, 2] = np.nan
        b[11, 3, 1] = np.inf
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x, results = hone.solve_batch(a, b)
        bad = {
            3: hone.Status.SINGULAR,
            8: hone.Status.NOT_FINITE_A,
            11: hone.Status.NOT_FINITE_B,
        }
        for k in range(COUNT):
            self.assertEqual(results["status"][k], bad.get(k, 0))
            if k in bad:
                self.assertTrue(np.isnan(x[k]).all())
            else:
                self.assertTrue(near(x[k], want[k]))
        places = results[["row", "col"]][[8, 11]].tolist()
        self.assertEqual(places, [(1, 2), (3, 1)])
        z = b + 0j
        z[11, 3, 1] = complex(1.0, np.nan)
        _, results = hone.solve_batch(a, z)
        self.assertEqual(results[["row", "col"]][11].tolist(), (3, 1))

    def test_nothing_to_solve(self):
        for of_a, of_b, of_x in (
            ((3, 5, 5), (3, 5, 0), (3, 5, 0)),
            ((3, 0, 0), (3, 0, 2), (3, 0, 2)),
            ((0, 5, 5), (5, 2), (0, 5, 2)),
        ):
            a, b = np.ones(of_a) + np.eye(of_a[-1]), np.ones(of_b)
            x, results = hone.solve_batch(a, b)
            self.assertEqual(x.shape, of_x)
            self.assertTrue((results["status"] == hone.Status.OK).all())

    def test_weak_ones_have_an_x(self):
        a = np.stack([hilbert(14), np.eye(14)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x, results = hone.solve_batch(a, np.ones(14))
        self.assertEqual(results["status"].tolist(), [2, 0])
        self.assertEqual(results["digits"][0], 0)
        self.assertTrue(np.isfinite(x).all())

    def test_determinants(self):
        for dtype in (float, complex):
            a = random((COUNT, 6, 6), dtype)
            _, results = hone.solve_batch(a, np.ones(6), determinants=True)
            sign, log = np.linalg.slogdet(a)
            got = results["det_re"] + 1j * results["det_im"]
            self.assertTrue(np.allclose(got, sign, atol=1e-12))
            self.assertTrue(np.allclose(results["log_abs_det"], log))
            _, results = hone.solve_batch(
                a, np.ones(6), determinants=True, trans="C"
            )
            got = results["det_re"] + 1j * results["det_im"]
            self.assertTrue(np.allclose(got, np.conj(sign), atol=1e-12))

    def test_a_device_is_used_or_is_not_there(self):
        a, b = matrices(3, 4, 4), random((3, 4, 1))
        x, results = hone.solve_batch(a, b, device="cuda")
        if results["status"][0] == 0:
            self.assertTrue(near(x, by_numpy(a, b)))
        else:
            self.assertEqual(results["status"].tolist(), [-50] * 3)
            self.assertTrue(np.isnan(x).all())

    def test_the_call_itself_may_fail(self):
        a, b = matrices(3, 4, 4), random((3, 4, 1))
        with self.assertRaisesRegex(ValueError, "square"):
            hone.solve_batch(a[:, :3], b)
        with self.assertRaisesRegex(ValueError, "do not fit"):
            hone.solve_batch(a[:2], b)
        with self.assertRaisesRegex(ValueError, "trans"):
            hone.solve_batch(a, b, trans="X")
        with self.assertRaisesRegex(TypeError, "no option 'x0'"):
            hone.solve_batch(a, b, x0=b)

    def test_those_that_were_not_reached(self):
        a, b = matrices(3, 4, 4), random((3, 4, 1))
        x, results = hone.solve_batch(a, b, progress=lambda event: True)
        cancelled = results["status"] == hone.Status.CANCELLED
        self.assertTrue(cancelled.all())
        self.assertTrue(np.isnan(x).all())


class Places(unittest.TestCase):
    def test_results_are_those_of_the_library(self):
        size = _batch.RESULT_DTYPE.itemsize
        self.assertEqual(size, _abi.new_batch().result_size)


if __name__ == "__main__":
    unittest.main()
