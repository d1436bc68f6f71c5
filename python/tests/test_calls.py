# SPDX-License-Identifier: BSD-3-Clause
"""Statuses, options and reports."""

import json
import math
import pickle
import unittest
import warnings

import hone
import numpy as np
from hone import _enums
from systems import hilbert, near, system


class Statuses(unittest.TestCase):
    def raised(self, kind, status, *arguments, **options):
        with self.assertRaises(kind) as caught:
            hone.solve(*arguments, **options)
        error = caught.exception
        self.assertIsInstance(error, hone.HoneError)
        self.assertEqual(error.status, status)
        self.assertIn(error.status.text, str(error))
        return error

    def test_singular(self):
        error = self.raised(
            np.linalg.LinAlgError,
            hone.Status.SINGULAR,
            [[1, 2], [2, 4]],
            [1, 1],
        )
        self.assertIsInstance(error, hone.HoneSingularError)
        self.assertIn("pivot", str(error))
        self.assertEqual(error.report.status, hone.Status.SINGULAR)
        self.assertEqual(len(error.report.columns), 0)

    def test_overflow(self):
        self.raised(
            OverflowError,
            hone.Status.OVERFLOW,
            1e-300 * np.eye(3),
            1e300 * np.ones(3),
        )

    def test_memory(self):
        a, b, _ = system(300)
        self.raised(
            MemoryError,
            hone.Status.NO_MEMORY,
            a,
            b,
            memory_limit_bytes=1000,
        )

    def test_device(self):
        a, b, _ = system(5)
        try:
            hone.solve(a, b, device="cuda")
        except hone.HoneDeviceError as error:
            self.assertEqual(error.status, hone.Status.NO_DEVICE)
        else:
            self.skipTest("there is a GPU here")

    def test_deadline(self):
        a, b, _ = system(300)
        error = self.raised(
            hone.HoneCancelledError,
            hone.Status.CANCELLED,
            a,
            b,
            deadline_s=1e-9,
        )
        self.assertIsInstance(error, RuntimeError)

    def test_errors_can_be_pickled(self):
        for call in (
            lambda: hone.solve([[0.0]], [1.0]),
            lambda: hone.solve([[1.0]], [None]),
            lambda: hone.solve(hilbert(14), np.ones(14), weak="raise"),
        ):
            with self.assertRaises(hone.HoneError) as caught:
                call()
            again = pickle.loads(pickle.dumps(caught.exception))
            self.assertEqual(str(again), str(caught.exception))
            self.assertEqual(again.status, caught.exception.status)
            self.assertEqual(repr(again.report), repr(caught.exception.report))

    def test_every_status_has_a_text(self):
        for status in hone.Status:
            self.assertNotIn("not a status", status.text)
        for number in (4711, 2**31, 2**70, -(2**70)):
            self.assertIn("not a status", hone.status_text(number))


class Weak(unittest.TestCase):
    """Answers with a status > 0, whose x is the best found."""

    def setUp(self):
        self.a, self.b, self.x = system(30)
        self.ask = {"tolerance": 1e-300}

    def test_warns_and_returns_x(self):
        with self.assertWarns(hone.HoneWarning) as caught:
            got = hone.solve(self.a, self.b, **self.ask)
        self.assertTrue(near(got, self.x))
        self.assertIs(caught.warning.x, got)
        self.assertEqual(caught.warning.report.status, 1)
        self.assertIn("not converged", str(caught.warning))
        self.assertEqual(caught.filename, __file__)

    def test_a_kept_solver_warns_too(self):
        solver = hone.factor(self.a, **self.ask)
        with self.assertWarns(hone.HoneWarning) as caught:
            got = solver.solve(self.b)
        self.assertTrue(near(got, self.x))
        self.assertEqual(caught.filename, __file__)

    def test_numerically_singular(self):
        with self.assertWarnsRegex(hone.HoneWarning, "numerically singular"):
            got, report = hone.solve(
                hilbert(25), np.ones(25), return_report=True
            )
        self.assertEqual(report.status, hone.Status.ILL_CONDITIONED)
        self.assertEqual(report.digits, 0)
        self.assertEqual(got.shape, (25,))

    def test_raises_if_asked(self):
        with self.assertRaises(hone.HoneWeakError) as caught:
            hone.solve(self.a, self.b, weak="raise", **self.ask)
        self.assertTrue(near(caught.exception.x, self.x))
        self.assertIsInstance(caught.exception, np.linalg.LinAlgError)
        self.assertEqual(caught.exception.status, hone.Status.NOT_CONVERGED)

    def test_raises_by_the_filter(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", hone.HoneWarning)
            with self.assertRaises(hone.HoneWarning) as caught:
                hone.solve(self.a, self.b, **self.ask)
        self.assertTrue(near(caught.exception.x, self.x))

    def test_ignored_if_asked(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got, report = hone.solve(
                self.a, self.b, weak="ignore", return_report=True, **self.ask
            )
        self.assertTrue(near(got, self.x))
        self.assertEqual(report.status, hone.Status.NOT_CONVERGED)

    def test_no_other_word(self):
        with self.assertRaisesRegex(ValueError, "weak='no'"):
            hone.solve(self.a, self.b, weak="no")

    def test_out_gets_the_best_found(self):
        out = np.zeros(60)[::2]
        got = hone.solve(self.a, self.b, out=out, weak="ignore", **self.ask)
        self.assertIs(got, out)
        self.assertTrue(near(out, self.x))


class Options(unittest.TestCase):
    def setUp(self):
        self.a, self.b, self.x = system(30)

    def report(self, **options):
        return hone.solve(self.a, self.b, return_report=True, **options)[1]

    def test_choices_in_every_spelling(self):
        for start in ("double", "DOUBLE", hone.Factor.DOUBLE, 2):
            self.assertEqual(self.report(factor_precision=start).precision, 64)
        for start in ("single", hone.Factor.SINGLE, 1):
            self.assertEqual(self.report(factor_precision=start).precision, 32)
        self.report(factor_precision=None, device="cpu", criterion="normwise")

    def test_they_reach_the_library(self):
        self.assertEqual(self.report(threads=1).threads, 1)
        self.assertEqual(self.report(tolerance=1e-3).tolerance, 1e-3)
        residual = self.report(criterion="residual")
        self.assertEqual(residual.tolerance, 1e-12)
        self.assertNotEqual(
            self.report(max_iterations=1, factor_precision="single").path,
            self.report(factor_precision="single").path,
        )
        spd = self.a @ self.a.T
        _, report = hone.solve(
            spd, self.b, structure="spd", return_report=True
        )
        self.assertIn("Cholesky", report.path)
        loose = {"tolerance": 1e-3, "factor_precision": "single"}
        extra = self.report(extra_precise=True, **loose)
        self.assertLess(
            extra.forward_error, self.report(**loose).forward_error
        )
        for each in (
            {"deterministic": True},
            {"deadline_s": 60},
            {"memory_limit_bytes": 10**9},
            {"device_memory_limit_bytes": 10**9},
            {"arithmetic": "fp16x3", "pivoting": "block"},
            {"residuals": "host", "diagonal": "cpu", "block_rows": "crout"},
        ):
            self.assertEqual(self.report(**each).status, hone.Status.OK)

    def test_values_that_do_not_exist(self):
        for options in (
            {"device": "tpu"},
            {"device": 99},
            {"device": -1},
            {"device": ""},
            {"factor_precision": 1.5},
            {"threads": -1},
            {"threads": 2**31},
            {"threads": 2**32 + 1},
            {"max_iterations": -1},
            {"memory_limit_bytes": -1},
            {"memory_limit_bytes": 2**63},
            {"tolerance": -1.0},
            {"tolerance": math.nan},
            {"tolerance": 2.0},
            {"deadline_s": -1},
            {"deadline_s": math.nan},
        ):
            name = next(iter(options))
            with self.assertRaisesRegex(ValueError, name) as caught:
                hone.solve(self.a, self.b, **options)
            self.assertIsInstance(caught.exception, hone.HoneError)
            with self.assertRaisesRegex(ValueError, name):
                hone.factor(self.a, **options)

    def test_types_that_do_not_fit(self):
        for options in (
            {"device": hone.Factor.DOUBLE},
            {"threads": 1.5},
            {"threads": "two"},
            {"tolerance": "small"},
            {"tolerance": 1j},
            {"progress": "yes"},
        ):
            name = next(iter(options))
            with self.assertRaisesRegex(TypeError, name):
                hone.solve(self.a, self.b, **options)

    def test_options_that_are_integers_of_numpy(self):
        a, b, x = system(6)
        for way in (np.int64(1), np.uint8(1)):
            got = hone.solve(a.T, b, trans=way, device=np.int32(1), threads=way)
            self.assertTrue(near(got, x))
        with self.assertRaises(hone.HoneValueError):
            hone.solve(a, b, trans=np.int64(3))
        with self.assertRaises(hone.HoneValueError):
            hone.solve(a, b, device=np.int64(77))

    def test_unknown_options(self):
        for name in ("layout", "columns", "alloc", "struct_size", "speed"):
            with self.assertRaisesRegex(TypeError, name):
                hone.solve(self.a, self.b, **{name: 1})

    def test_memory_needed(self):
        host = hone.memory_needed(1000)
        self.assertGreater(host.single_bytes, 4_000_000)
        self.assertGreater(host.double_bytes, host.single_bytes)
        wide = hone.memory_needed(1000, 50, extra_precise=True)
        self.assertGreater(wide.single_bytes, host.single_bytes)
        device = hone.device_memory_needed(1000)
        self.assertGreaterEqual(device.with_residuals, device.without)
        for n in (-1, 2**63, 2**40):
            with self.assertRaises(ValueError):
                hone.memory_needed(n)
        with self.assertRaises(TypeError):
            hone.memory_needed(1.5)


class Reports(unittest.TestCase):
    def setUp(self):
        self.a, self.b, self.x = system(30, 3)
        _, self.report = hone.solve(self.a, self.b, return_report=True)

    def test_fields(self):
        r = self.report
        self.assertIs(r.status, hone.Status.OK)
        self.assertIs(r.structure, hone.Found.GENERAL)
        self.assertEqual((r.n, r.nrhs, r.accepted), (30, 3, 3))
        self.assertLessEqual(r.backward_error, r.tolerance)
        self.assertIn("LU", r.path)
        self.assertEqual(r.reason, "")
        self.assertEqual((r.bad_row, r.bad_col), (-1, -1))
        self.assertEqual(r.null_index, ())
        with self.assertRaises(AttributeError):
            r.reserved

    def test_every_field_is_hinted(self):
        hinted = set(hone.Report.__annotations__)
        hinted -= {"columns", "error_bounds"}
        self.assertEqual(hinted, set(self.report.as_dict()))
        self.assertLessEqual(hinted, set(dir(self.report)))

    def test_error_bounds(self):
        self.assertIsNone(self.report.error_bounds)
        self.assertEqual(self.report.bound_failure, 1e-9)
        for b in (self.b, self.b[:, 0]):
            x, report = hone.solve(
                self.a, b, error_bounds=True, return_report=True
            )
            bounds = report.error_bounds
            self.assertEqual(bounds.shape, x.shape)
            self.assertTrue((bounds <= 1e-9).all())
            whole = report.forward_error * np.abs(x).max()
            self.assertLessEqual(bounds.max(), whole * (1 + 1e-9))
            with hone.factor(self.a) as solver:
                solver.solve(b, error_bounds=True)
                self.assertTrue((solver.report.error_bounds == bounds).all())
                solver.solve(b)
                self.assertIsNone(solver.report.error_bounds)

    def test_text(self):
        text = repr(self.report)
        for line in ("solved", "backward error", "n 30, 3 right-hand sides"):
            self.assertIn(line, text)
        self.assertEqual(str(self.report), text)

    def test_json(self):
        told = json.loads(self.report.json())
        self.assertEqual(told["n"], 30)
        self.assertEqual(told["path"], self.report.path)

    def test_columns(self):
        columns = self.report.columns
        self.assertEqual(columns.shape, (3,))
        self.assertTrue((columns["status"] == 0).all())
        self.assertEqual(
            columns["backward_error"].max(), self.report.backward_error
        )

    def test_the_unknowns_that_could_move(self):
        a = np.diag(np.arange(1.0, 8.0))
        a[2] = a[4] = np.ones(7)
        with self.assertRaises(hone.HoneSingularError) as caught:
            hone.solve(a, np.ones(7))
        report = caught.exception.report
        self.assertEqual(sorted(report.dependent_index), [2, 4])
        self.assertEqual(len(report.dependent_weight), 2)
        self.assertEqual(len(report.null_index), min(8, report.null_count))


class Names(unittest.TestCase):
    def test_all_that_is_promised_is_there(self):
        for name in hone.__all__:
            self.assertTrue(hasattr(hone, name), name)

    def test_versions(self):
        self.assertEqual(hone.version(), hone.__version__)

    def test_constants_are_complete(self):
        self.assertEqual(_enums.c_names()["HONE_ARITHMETIC_FP16X3"], 3)
        self.assertEqual(_enums.c_names()["HONE_ARITHMETIC_AUTO"], 0)


if __name__ == "__main__":
    unittest.main()
