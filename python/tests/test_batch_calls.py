# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of stacks: progress, deadlines, threads and processes."""

import multiprocessing
import sys
import threading
import unittest

import hone
import numpy as np
from systems import near
from test_batch_solver import COUNT, solved
from test_numpy import by_numpy, matrices, random


class Calls(unittest.TestCase):
    def setUp(self):
        self.a, self.b = matrices(COUNT, 14, 14), random((COUNT, 14, 2))
        self.x = by_numpy(self.a, self.b)

    def test_threads(self):
        a, b = matrices(3000, 16, 16), random((3000, 16, 1))
        x = by_numpy(a, b)
        for threads in (1, 2, 3):
            solver = hone.factor_batch(a, threads=threads)
            self.assertLessEqual(solver.report.threads, threads)
            self.assertTrue(near(solved(solver, b), x))

    def test_progress(self):
        mine, others = [], []
        solver = hone.factor_batch(self.a, progress=others.append)
        self.assertEqual({event.phase for event in others}, {"batch"})
        others.clear()
        self.assertTrue(
            near(solved(solver, self.b, progress=mine.append), self.x)
        )
        self.assertEqual({event.phase for event in mine}, {"batch"})
        self.assertEqual(others, [])
        self.assertTrue(near(solved(solver, self.b), self.x))
        self.assertGreater(len(others), 0)

    def test_those_that_were_not_reached(self):
        cancelled = hone.Status.CANCELLED
        solver = hone.factor_batch(self.a)
        for options in ({"progress": lambda event: True}, {"deadline_s": 1e-9}):
            x, results = solver.solve(self.b, **options)
            self.assertTrue((results["status"] == cancelled).all())
            self.assertTrue(np.isnan(x).all())
            stopped = hone.factor_batch(self.a, **options)
            self.assertTrue((stopped.results["status"] == cancelled).all())
        again = {"progress": lambda event: False, "deadline_s": 60.0}
        self.assertTrue(near(solved(stopped, self.b, **again), self.x))
        self.assertTrue(near(solved(solver, self.b), self.x))

    def test_what_progress_raises(self):
        def fail(event):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            hone.factor_batch(self.a, progress=fail)
        solver = hone.factor_batch(self.a)
        with self.assertRaises(KeyError):
            solver.solve(self.b, progress=fail)
        self.assertTrue(near(solved(solver, self.b), self.x))

    def test_progress_may_not_use_its_own_solver(self):
        solver = hone.factor_batch(self.a)
        errors = []

        def again(event):
            for call in (
                lambda: solver.solve(self.b),
                lambda: solver.factor(self.a),
                solver.close,
            ):
                with self.assertRaises(hone.HoneBusyError) as caught:
                    call()
                errors.append(caught.exception.status)

        x = solved(solver, self.b, progress=again)
        self.assertTrue(near(x, self.x))
        self.assertGreaterEqual(len(errors), 3)
        self.assertEqual(set(errors), {hone.Status.BUSY})

    def test_threads_wait_for_one_another(self):
        solver = hone.factor_batch(self.a)
        wrong = []

        def work(k):
            for _ in range(50):
                x, results = solver.solve(self.b[..., k:])
                if not near(x, self.x[..., k:]) or results["status"].any():
                    wrong.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def in_child(self, work):
        """Returns the exit status of work in the child of a fork."""
        context = multiprocessing.get_context("fork")
        child = context.Process(target=work)
        child.start()
        child.join(30)
        code = child.exitcode
        child.kill()
        return code

    def test_a_child_of_a_fork_uses_it(self):
        solver = hone.factor_batch(self.a)

        def work():
            x, _ = solver.solve(self.b)
            solver.close()
            sys.exit(0 if near(x, self.x) else 3)

        self.assertEqual(self.in_child(work), 0)
        self.assertTrue(near(solved(solver, self.b), self.x))

    def test_a_fork_during_a_call(self):
        codes = []

        def told(event):
            if not codes:
                codes.append(self.in_child(work))

        def use(busy):
            for call in (
                lambda: solver.solve(self.b),
                lambda: solver.factor(self.a.copy()),
            ):
                try:
                    call()
                except hone.HoneBusyError:
                    busy.append(solver._a is self.a)

        def work():
            busy = []
            other = threading.Thread(target=use, args=(busy,))
            other.start()  # a number that is not the caller's
            other.join()
            sys.exit(0 if busy == [True, True] else 3)

        solver = hone.factor_batch(self.a)
        caller = threading.Thread(
            target=solver.solve, args=(self.b,), kwargs={"progress": told}
        )
        caller.start()
        caller.join()
        self.assertEqual(codes, [0])
        self.assertTrue(near(solved(solver, self.b), self.x))


if __name__ == "__main__":
    unittest.main()
