# SPDX-License-Identifier: BSD-3-Clause
"""Solvers, which hone.factor(A) makes."""

import copy
import gc
import multiprocessing
import pickle
import sys
import threading
import time
import unittest
import weakref

import hone
import numpy as np
from systems import near, system


class Kept(unittest.TestCase):
    def setUp(self):
        self.a, self.b, self.x = system(50, 3)

    def test_solves_again_and_again(self):
        for order in "CF":
            solver = hone.factor(np.array(self.a, order=order))
            for k in range(3):
                got = solver.solve(self.b[:, k])
                self.assertTrue(near(got, self.x[:, k]))
            self.assertTrue(near(solver.solve(self.b), self.x))

    def test_transposed(self):
        solver = hone.factor(self.a)
        b = self.a.T @ self.x
        for way in (True, "T", "t", 1, np.True_, "C", "c", 2):
            self.assertTrue(near(solver.solve(b, trans=way), self.x))
            self.assertTrue(near(hone.solve(self.a, b, trans=way), self.x))
        for way in (False, "N", 0):
            self.assertTrue(near(solver.solve(self.b, trans=way), self.x))
        for way in ("H", 3, None, "yes", 1.0):
            with self.assertRaises(hone.HoneValueError):
                solver.solve(self.b, trans=way)

    def test_start_and_out(self):
        solver = hone.factor(self.a)
        out = np.empty_like(self.b)
        got, report = solver.solve(
            self.b, x0=self.x, out=out, return_report=True
        )
        self.assertIs(got, out)
        self.assertTrue(near(out, self.x))
        self.assertLessEqual(report.iterations, 1)

    def test_update(self):
        solver = hone.factor(self.a)
        near_a = self.a * (1.0 + 1e-9)
        self.assertIs(solver.update(near_a), solver)
        self.assertTrue(near(solver.solve(near_a @ self.x), self.x))

    def test_update_takes_either_layout(self):
        for first in "CF":
            for then in "CF":
                solver = hone.factor(np.array(self.a, order=first))
                other = self.a + 0.01 * np.triu(self.a)
                solver.update(np.array(other, order=then))
                self.assertTrue(near(solver.solve(other @ self.x), self.x))
                solver.factor(np.array(self.a, order=then))
                self.assertTrue(near(solver.solve(self.b), self.x))

    def test_another_order_is_refused(self):
        solver = hone.factor(self.a)
        for call in (solver.factor, solver.update):
            with self.assertRaisesRegex(ValueError, "order 3, the solver 50"):
                call(np.eye(3))
        self.assertTrue(near(solver.solve(self.b), self.x))

    def test_the_matrix_is_kept_alive(self):
        gone = weakref.ref(a := self.a.copy())
        solver = hone.factor(a)
        del a
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertTrue(near(solver.solve(self.b), self.x))
        solver.update(self.a)
        self.assertIsNone(gone())

    def test_a_conversion_is_kept_alive(self):
        solver = hone.factor(self.a.astype("f4").tolist())
        gc.collect()
        junk = [np.full((50, 50), 7.0) for _ in range(50)]
        b = self.a.astype("f4").astype(float) @ self.x
        self.assertTrue(near(solver.solve(b), self.x))
        del junk

    def test_a_copy_does_not_change(self):
        for view in (self.a.copy(), self.a.copy().T.copy().T):
            solver = hone.factor(view, copy=True)
            view[...] = 0.0
            self.assertTrue(near(solver.solve(self.b), self.x))
            again = self.a.copy()
            solver.update(again, copy=True)
            again[...] = np.nan
            self.assertTrue(near(solver.solve(self.b), self.x))

    def test_borrowed_unless_asked(self):
        a = self.a.copy()
        self.assertTrue(np.shares_memory(hone.factor(a)._a, a))
        for given in (a, a.T, memoryview(a)):
            solver = hone.factor(given, copy=True)
            self.assertFalse(np.shares_memory(solver._a, a))

    def test_with_closes(self):
        with hone.factor(self.a) as solver:
            self.assertFalse(solver.closed)
            self.assertIn("order 50", repr(solver))
        self.assertTrue(solver.closed)
        self.assertIn("closed", repr(solver))
        for call in (solver.solve, lambda b: solver.update(self.a)):
            with self.assertRaisesRegex(ValueError, "closed"):
                call(self.b)
        solver.close()

    def test_singular(self):
        with self.assertRaises(np.linalg.LinAlgError) as caught:
            hone.factor(np.zeros((3, 3)))
        self.assertEqual(caught.exception.status, hone.Status.SINGULAR)

    def test_after_a_failed_update(self):
        solver = hone.factor(self.a)
        bad = self.a.copy()
        bad[2, 3] = np.nan
        with self.assertRaisesRegex(ValueError, "row 2; column 3"):
            solver.update(bad)
        self.assertEqual(solver.report.status, hone.Status.NOT_FINITE_A)
        with self.assertRaises(hone.HoneValueError) as caught:
            solver.solve(self.b)
        self.assertEqual(caught.exception.status, hone.Status.NOT_FACTORED)
        solver.factor(self.a)
        self.assertTrue(near(solver.solve(self.b), self.x))

    def test_report(self):
        solver = hone.factor(self.a)
        self.assertEqual(solver.n, 50)
        self.assertEqual(solver.report.n, 50)
        self.assertGreater(solver.report.rcond, 0.0)
        solver.solve(self.b)
        self.assertEqual(solver.report.nrhs, 3)
        self.assertEqual(solver.report.columns.shape, (3,))

    def test_neither_copied_nor_pickled(self):
        solver = hone.factor(self.a)
        for call in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaises(TypeError):
                call(solver)

    def test_one_call_at_a_time(self):
        first = threading.get_ident()
        order = []
        threads = []

        def work():
            order.append("tries")
            self.assertTrue(near(solver.solve(self.b), self.x))

        def told(progress):
            order.append(threading.get_ident() == first)
            if solving and not threads:
                threads.append(threading.Thread(target=work))
                threads[0].start()
                while "tries" not in order:
                    time.sleep(0.001)
                time.sleep(0.05)  # time for the other thread to enter
                order.append(True)

        solving = []
        solver = hone.factor(self.a, progress=told)
        order.clear()
        solving.append(True)
        self.assertTrue(near(solver.solve(self.b), self.x))
        threads[0].join()
        order.remove("tries")
        self.assertIn(False, order)
        self.assertEqual(order, sorted(order, reverse=True))

    def test_threads_wait_for_one_another(self):
        solver = hone.factor(self.a)
        wrong = []

        def work(k):
            for _ in range(200):
                if not near(solver.solve(self.b[:, k]), self.x[:, k]):
                    wrong.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_child_of_a_fork_uses_it(self):
        a, b, x = system(600)
        solver = hone.factor(a, threads=2)
        self.assertTrue(near(solver.solve(b), x))

        def work(how):
            if how != "nothing" and not near(solver.solve(b), x):
                sys.exit(3)
            if how == "close":
                solver.close()
            sys.exit(0)

        context = multiprocessing.get_context("fork")
        for how in ("nothing", "solve", "close"):
            child = context.Process(target=work, args=(how,))
            child.start()
            child.join(30)
            code = child.exitcode
            child.kill()
            self.assertEqual(code, 0, how)
        self.assertTrue(near(solver.solve(b), x))

    def test_a_fork_during_a_call(self):
        a, b, x = system(60)
        forks = []

        def told(progress):
            if not forks:
                return
            forks.pop()
            child = context.Process(target=work)
            child.start()
            child.join(30)
            codes.append(child.exitcode)
            child.kill()

        def work():
            try:
                solver.solve(b)
            except hone.HoneBusyError:
                sys.exit(0)
            sys.exit(1)

        codes = []
        context = multiprocessing.get_context("fork")
        solver = hone.factor(a, progress=told)
        forks.append(True)
        caller = threading.Thread(target=solver.solve, args=(b,))
        caller.start()
        caller.join()
        self.assertEqual(codes, [0])
        self.assertTrue(near(solver.solve(b), x))


if __name__ == "__main__":
    unittest.main()
