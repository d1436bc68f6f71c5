# SPDX-License-Identifier: BSD-3-Clause
"""Which arrays are accepted, which are copied, and which are refused."""

import decimal
import fractions
import unittest
import warnings

import hone
import numpy as np
from hone._arrays import as_columns, as_matrix, place_for
from hone._enums import Layout
from systems import near, system


class Taken(unittest.TestCase):
    """Arrays that are accepted; every answer is right."""

    def setUp(self):
        self.a, self.b, self.x = system(7)

    def same(self, a, b, x=None):
        self.assertTrue(near(hone.solve(a, b), self.x if x is None else x))

    def test_by_rows_and_by_columns(self):
        self.same(np.ascontiguousarray(self.a), self.b)
        self.same(np.asfortranarray(self.a), self.b)

    def test_transposed_view(self):
        self.same(self.a.T.copy().T, self.b)
        self.assertTrue(
            near(hone.solve(self.a.T, self.a.T @ self.x), self.x)
        )

    def test_lists_and_tuples(self):
        self.same(self.a.tolist(), self.b.tolist())
        self.same(tuple(map(tuple, self.a)), tuple(self.b))

    def test_integers_beyond_doubles_are_refused(self):
        for dtype in ("i8", "u8", ">i8"):
            a = np.diag(np.array([2**53, 2**53 + 2, 2**62, 3], dtype))
            b = np.diag(a).copy()
            got = hone.solve(a, b)
            self.assertTrue(near(got, np.ones(4)))
            for value in (2**53 + 1, 2**63 - 1):
                bad = a.copy()
                bad[2, 2] = value
                for call in (
                    lambda: hone.solve(bad, b),
                    lambda: hone.solve(a, np.diag(bad).copy()),
                    lambda: hone.factor(bad),
                ):
                    with self.assertRaisesRegex(ValueError, str(value)):
                        call()
        with self.assertRaisesRegex(ValueError, str(-(2**53) - 1)):
            hone.solve([[-(2**53) - 1]], [1])

    def test_integers_of_every_kind(self):
        a = np.array([[2, 1], [1, 3]])
        for kind in "bhilqBHILQ":
            x = hone.solve(a.astype(kind), np.array([3, 5], kind))
            self.assertTrue(near(x, np.array([0.8, 1.4])), kind)
        x = hone.solve([[True, False], [False, True]], [True, False])
        self.assertTrue(near(x, np.array([1.0, 0.0])))
        x = hone.solve([[2, 1], [1, 3]], [3, 5])
        self.assertTrue(near(x, np.array([0.8, 1.4])))

    def test_shorter_floats(self):
        for kind in (np.float32, np.float16):
            a = self.a.astype(kind)
            b = a.astype(float) @ self.x
            self.same(a, b)
        self.assertEqual(hone.solve(self.a.astype("f4"), self.b).dtype, float)

    def test_other_byte_order(self):
        self.same(self.a.astype(">f8"), self.b.astype(">f8"))

    def test_views_of_larger_arrays(self):
        for order in "CF":
            big = np.full((20, 30), np.nan, order=order)
            big[3:10, 5:12] = self.a
            self.same(big[3:10, 5:12], self.b)

    def test_gaps_everywhere(self):
        big = np.full((20, 30), np.nan)
        big[2:16:2, 1:22:3] = self.a
        self.same(big[2:16:2, 1:22:3], self.b)

    def test_backwards(self):
        self.same(self.a[::-1, ::-1].copy()[::-1, ::-1], self.b)
        self.same(self.a[::-1].copy()[::-1], self.b[::-1].copy()[::-1])
        self.same(self.a[:, ::-1].copy()[:, ::-1], self.b)

    def test_broadcast(self):
        """With stride 0 all rows are equal, and A is exactly singular."""
        with self.assertRaises(np.linalg.LinAlgError):
            hone.solve(np.broadcast_to(2.0 ** np.arange(7), (7, 7)), self.b)
        x = hone.solve(self.a, np.broadcast_to(self.b[:, None], (7, 3)))
        self.assertTrue(near(x, np.broadcast_to(self.x[:, None], (7, 3))))

    def test_read_only(self):
        a, b = self.a.copy(), self.b.copy()
        a.flags.writeable = b.flags.writeable = False
        self.same(a, b)

    def test_not_aligned(self):
        raw = np.zeros(8 * 49 + 1, np.uint8)
        a = raw[1:].view(float).reshape(7, 7)
        a[...] = self.a
        self.assertFalse(a.flags.aligned)
        self.same(a, self.b)
        raw = np.zeros(8 * 7 + 1, np.uint8)
        b = raw[1:].view(float)
        b[...] = self.b
        self.same(self.a, b)
        out = raw[1:].view(float)
        self.assertIs(hone.solve(self.a, self.b, out=out), out)
        self.assertTrue(near(out, self.x))

    def test_matrix_class(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            x = hone.solve(np.asmatrix(self.a), np.asmatrix(self.b).T)
        self.assertIs(type(x), np.ndarray)
        self.assertTrue(near(x, self.x[:, None]))

    def test_masked_array_without_masked_entries(self):
        self.same(np.ma.array(self.a), np.ma.array(self.b, mask=False))

    def test_memoryview_and_array_interface(self):
        class Given:
            def __array__(self, dtype=None, copy=None):
                return system(7)[0]

        self.same(memoryview(self.a), memoryview(self.b))
        self.same(Given(), self.b)

    def test_nothing_is_written(self):
        a, b = self.a.copy(), self.b.copy()
        hone.solve(a, b)
        self.assertTrue(np.array_equal(a, self.a))
        self.assertTrue(np.array_equal(b, self.b))


class Columns(unittest.TestCase):
    """Every shape of b and x."""

    def test_shapes(self):
        a, b, x = system(6, 4)
        for order in "CF":
            got = hone.solve(a, np.array(b, order=order))
            self.assertTrue(near(got, x))
            self.assertTrue(got.flags.c_contiguous)
        self.assertTrue(near(hone.solve(a, b[:, :1]), x[:, :1]))
        self.assertTrue(near(hone.solve(a, b[:, 2]), x[:, 2]))
        self.assertTrue(near(hone.solve(a, b[:, ::-1]), x[:, ::-1]))

    def test_of_order_one(self):
        self.assertTrue(near(hone.solve([[4.0]], [2.0]), np.array([0.5])))
        got = hone.solve([[4.0]], np.arange(10.0)[None, ::3])
        self.assertTrue(near(got, np.array([[0.0, 0.75, 1.5, 2.25]])))
        got = hone.solve([[4.0]], np.arange(10.0)[None, ::-1])
        self.assertTrue(near(got, np.arange(10.0)[None, ::-1] / 4))

    def test_nothing(self):
        self.assertEqual(hone.solve(np.zeros((0, 0)), np.zeros(0)).shape, (0,))
        got = hone.solve(np.zeros((0, 0)), np.zeros((0, 3)))
        self.assertEqual(got.shape, (0, 3))
        got = hone.solve(np.eye(3), np.zeros((3, 0)))
        self.assertEqual(got.shape, (3, 0))
        with hone.factor(np.zeros((0, 0))) as solver:
            self.assertEqual(solver.solve(np.zeros(0)).shape, (0,))

    def test_out(self):
        a, b, x = system(6, 4)
        for out in (
            np.empty((6, 4), order="F"),
            np.empty((6, 4)),
            np.empty((12, 8))[::2, ::2],
            np.empty((4, 9)).T[:6],
        ):
            self.assertIs(hone.solve(a, b, out=out), out)
            self.assertTrue(near(out, x))

    def test_out_may_be_b(self):
        a, b, x = system(6, 4)
        for order in "CF":
            bx = np.array(b, order=order)
            self.assertIs(hone.solve(a, bx, out=bx), bx)
            self.assertTrue(near(bx, x))
        bx = b[:, 0].copy()
        with hone.factor(a) as solver:
            solver.solve(bx, out=bx)
        self.assertTrue(near(bx, x[:, 0]))

    def test_out_is_left_alone_by_errors(self):
        for out in (np.full(2, 7.0), np.full(4, 7.0)[::2]):
            with self.assertRaises(hone.HoneSingularError):
                hone.solve([[1, 2], [2, 4]], [1, 1], out=out)
            self.assertTrue(np.array_equal(out, [7.0, 7.0]))

    def test_start(self):
        a, b, x = system(40, 3)
        for x0 in (x, np.asfortranarray(x), x.tolist()):
            got, report = hone.solve(
                a, b, x0=x0, factor_precision="single", return_report=True
            )
            self.assertTrue(near(got, x))
        _, cold = hone.solve(
            a, b, factor_precision="single", return_report=True
        )
        self.assertLess(report.iterations, cold.iterations)


class NotCopied(unittest.TestCase):
    """The library reads these arrays in place."""

    def check_matrix(self, a, layout, ld):
        self.assertEqual(as_matrix(a)[1:], (layout, ld))
        self.assertTrue(np.shares_memory(as_matrix(a)[0], a))

    def test_matrices(self):
        self.check_matrix(np.ones((5, 5)), Layout.ROW_MAJOR, 5)
        self.check_matrix(np.ones((5, 5)).T, Layout.COL_MAJOR, 5)
        big = np.ones((20, 30))
        self.check_matrix(big[3:8, 4:9], Layout.ROW_MAJOR, 30)
        self.check_matrix(big.T[3:8, 4:9], Layout.COL_MAJOR, 30)
        self.check_matrix(big[::4, 10:15], Layout.ROW_MAJOR, 120)
        self.check_matrix(big[:1, :1], Layout.COL_MAJOR, 1)

    def test_columns(self):
        for b, ld in (
            (np.ones(5), 5),
            (np.ones((5, 1)), 5),
            (np.ones((5, 3), order="F"), 5),
            (np.ones((3, 20)).T[4:9], 20),
            (np.ones((6, 20)).T[4:9, ::2], 40),
            (np.ones((20, 5))[7], 5),
        ):
            got, got_ld = as_columns(b, 5, "b")
            self.assertTrue(np.shares_memory(got, b))
            self.assertEqual(got_ld, ld)

    def test_these_are(self):
        for a in (np.ones((9, 10))[:, ::2][:5], np.ones((5, 5))[::-1]):
            self.assertFalse(np.shares_memory(as_matrix(a)[0], a))
        record = np.zeros((5, 5), [("x", "f8"), ("y", "f4")])["x"]
        self.assertFalse(np.shares_memory(as_matrix(record)[0], record))
        uneven = np.zeros(8 * 25 + 1, np.uint8)[1:].view(float)
        a = uneven.reshape(5, 5)
        self.assertFalse(np.shares_memory(as_matrix(a)[0], a))
        self.assertFalse(
            np.shares_memory(place_for(uneven[:5], (5,))[0], uneven)
        )
        for b in (np.ones(10)[::2], np.ones((5, 3)), np.ones(5)[::-1]):
            self.assertFalse(np.shares_memory(as_columns(b, 5, "b")[0], b))


class Refused(unittest.TestCase):
    """Arrays that are refused, with their name and the right exception."""

    def refused(self, kind, text, a, b, **options):
        with self.assertRaisesRegex(kind, text) as caught:
            hone.solve(a, b, **options)
        self.assertIsInstance(caught.exception, hone.HoneError)
        self.assertLess(caught.exception.status, 0)

    def test_more_than_double(self):
        if np.dtype(np.longdouble).itemsize > 8:
            a = np.eye(2, dtype=np.longdouble)
            self.refused(TypeError, "more than double", a, [1, 2])

    def test_objects_and_other_kinds(self):
        big = [[10**30, 1], [1, 2]]
        for a in (
            np.eye(2).astype(object),
            big,
            [[decimal.Decimal(1), 0], [0, 1]],
            [[fractions.Fraction(1, 3), 0], [0, 1]],
            [["1", "2"], ["3", "4"]],
            np.zeros((2, 2), "datetime64[s]"),
            np.zeros((2, 2), "timedelta64[s]"),
            np.zeros((2, 2), [("x", "f8")]),
            [[None, 1.0], [1.0, 2.0]],
        ):
            self.refused(TypeError, "A has dtype", a, [1, 2])
        for a in (None, "matrix", object(), {1: 2}):
            self.refused((TypeError, ValueError), "A ", a, [1, 2])
        self.refused(TypeError, "b has dtype", np.eye(2), ["a", "b"])

    def test_ragged(self):
        # NumPy up to 1.23 makes it an array of objects, with a warning.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ragged = [[1, 2], [3]]
            self.refused((ValueError, TypeError), "A ", ragged, [1, 2])

    def test_sparse(self):
        class Sparse:
            def tocsr(self):
                return self

        self.refused(TypeError, "A is sparse", Sparse(), [1, 2])

    def test_masked(self):
        a = np.ma.array(np.eye(2), mask=[[False, True], [False, False]])
        self.refused(ValueError, "A has masked", a, [1, 2])
        b = np.ma.array([1.0, 2.0], mask=[False, True])
        self.refused(ValueError, "b has masked", np.eye(2), b)

    def test_shapes_of_a(self):
        for shape in ((2, 3), (4,), (), (2, 2, 3), (0, 1), (1, 0), (0,)):
            self.refused(ValueError, "A has shape", np.ones(shape), [1, 2])
        self.refused(ValueError, "A has shape", 3.0, [1, 2])

    def test_shapes_of_b(self):
        for shape in ((3,), (1, 2), (), (2, 3, 2), (0,), (0, 2)):
            self.refused(ValueError, "b has shape", np.eye(2), np.ones(shape))

    def test_shapes_of_start(self):
        for shape in ((3,), (2, 1), (2, 2)):
            x0 = np.ones(shape)
            self.refused(ValueError, "x0 has shape", np.eye(2), [1, 2], x0=x0)

    def test_out(self):
        eye, b = np.eye(2), [1, 2]
        self.refused(ValueError, "out has shape", eye, b, out=np.ones(3))
        self.refused(ValueError, "out has shape", eye, b, out=np.ones((2, 1)))
        self.refused(TypeError, "out has dtype", eye, b, out=np.ones(2, "f4"))
        self.refused(TypeError, "out has dtype", eye, b, out=np.ones(2, ">f8"))
        self.refused(TypeError, "out is list", eye, b, out=[0.0, 0.0])
        masked = np.ma.array([0.0, 0.0])
        self.refused(TypeError, "out is Masked", eye, b, out=masked)
        out = np.ones(2)
        out.flags.writeable = False
        self.refused(ValueError, "read-only", eye, b, out=out)

    def test_overlap(self):
        a, b, _ = system(5)
        self.refused(ValueError, "overlaps", a, b, out=a[2])
        whole = np.zeros(9)
        whole[:5] = b
        out = whole[2:7]
        self.refused(ValueError, "overlaps", a, whole[:5], out=out)

    def test_not_finite(self):
        for bad in (np.nan, np.inf, -np.inf):
            for order in "CF":
                a = np.array(system(6)[0], order=order)
                a[1, 3] = bad
                self.refused(ValueError, "A .*row 1; column 3", a, np.ones(6))
            b = np.ones((6, 2))
            b[4, 1] = bad
            self.refused(ValueError, "row 4; column 1", np.eye(6), b)
            self.refused(
                ValueError, "x0", system(6)[0], np.ones((6, 2)), x0=b
            )


if __name__ == "__main__":
    unittest.main()
