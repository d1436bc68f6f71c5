# SPDX-License-Identifier: BSD-3-Clause
"""Progress functions, and Ctrl-C during a solve."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import unittest

import hone
import numpy as np
from hone import _watch
from systems import near, system


class Progress(unittest.TestCase):
    def setUp(self):
        self.a, self.b, self.x = system(60)

    def test_is_told(self):
        told = []
        got = hone.solve(self.a, self.b, progress=told.append)
        self.assertTrue(near(got, self.x))
        phases = [each.phase for each in told]
        self.assertEqual(phases[0], "inspect")
        self.assertIn("refine", phases)
        for each in told:
            self.assertIsInstance(each, hone.Progress)
            self.assertGreaterEqual(each.elapsed_s, 0.0)

    def test_stops(self):
        with self.assertRaises(hone.HoneCancelledError):
            hone.solve(self.a, self.b, progress=lambda told: True)

        def before_the_last(told):
            return told.phase == "refine" and told.iteration >= 1

        with self.assertWarnsRegex(hone.HoneWarning, "stopped"):
            got, report = hone.solve(
                self.a,
                self.b,
                progress=before_the_last,
                factor_precision="single",
                return_report=True,
            )
        self.assertEqual(report.status, hone.Status.INTERRUPTED)
        self.assertTrue(np.allclose(got, self.x, rtol=1e-3))

    def test_what_it_raises_stops_and_comes_out(self):
        class Enough(BaseException):
            pass

        for kind in (ZeroDivisionError, KeyboardInterrupt, Enough):
            calls = []

            def fail(told):
                calls.append(told)
                raise kind("here")

            with self.assertRaises(kind):
                hone.solve(self.a, self.b, progress=fail)
            self.assertEqual(len(calls), 1)
            with self.assertRaises(kind):
                hone.factor(self.a, progress=fail)

    def test_an_answer_that_is_no_truth_value(self):
        with self.assertRaisesRegex(ValueError, "truth value"):
            hone.solve(self.a, self.b, progress=lambda told: np.ones(2))

    def test_of_a_kept_solver(self):
        told = []
        solver = hone.factor(self.a, progress=told.append)
        told.clear()
        solver.solve(self.b)
        self.assertEqual({each.phase for each in told}, {"refine"})

    def test_of_one_solve_of_a_kept_solver(self):
        told, others = [], []
        solver = hone.factor(
            self.a, progress=others.append, factor_precision="single"
        )
        others.clear()
        got = solver.solve(self.b, progress=told.append)
        self.assertTrue(near(got, self.x))
        self.assertEqual({each.phase for each in told}, {"refine"})
        self.assertEqual(others, [])
        with self.assertWarnsRegex(hone.HoneWarning, "stopped"):
            solver.solve(self.b, progress=lambda told: True, deadline_s=60.0)
        with self.assertRaises(ZeroDivisionError):
            solver.solve(self.b, progress=lambda told: 1 // 0)
        with self.assertRaisesRegex(TypeError, "callable"):
            solver.solve(self.b, progress=3)
        self.assertTrue(near(solver.solve(self.b), self.x))
        self.assertGreater(len(others), 0)

    def test_deadline_of_one_solve_of_a_kept_solver(self):
        solver = hone.factor(self.a, factor_precision="single")
        with self.assertWarnsRegex(hone.HoneWarning, "stopped"):
            solver.solve(self.b, deadline_s=1e-9)
        with self.assertRaisesRegex(ValueError, "deadline_s"):
            solver.solve(self.b, deadline_s=-1.0)
        self.assertTrue(near(solver.solve(self.b, deadline_s=60.0), self.x))

    def test_may_solve_something_else(self):
        inner = []

        def other(told):
            inner.append(hone.solve(self.a, self.b))

        got = hone.solve(self.a, self.b, progress=other)
        self.assertTrue(near(got, self.x))
        self.assertTrue(all(near(each, self.x) for each in inner))

    def test_may_not_use_its_own_solver(self):
        errors = []

        def again(told):
            for call in (
                lambda: solver.solve(self.b),
                lambda: solver.update(self.a),
                lambda: solver.close(),
            ):
                try:
                    call()
                except hone.HoneBusyError as error:
                    errors.append(str(error))
                    self.assertEqual(error.status, hone.Status.BUSY)

        solver = None

        def quiet(told):
            if solver is not None:
                again(told)

        solver = hone.factor(self.a, progress=quiet)
        self.assertTrue(near(solver.solve(self.b), self.x))
        self.assertGreaterEqual(len(errors), 3)
        self.assertIn("own progress function", errors[0])

    def test_a_solver_works_on_after_an_exception(self):
        fail = [False]

        def perhaps(told):
            if fail[0]:
                raise ZeroDivisionError

        solver = hone.factor(self.a, progress=perhaps)
        fail[0] = True
        with self.assertRaises(ZeroDivisionError):
            solver.solve(self.b)
        fail[0] = False
        self.assertTrue(near(solver.solve(self.b), self.x))


# Calls that daemon threads have under way when the program ends.
ENDS = """
import threading, time
import hone, numpy as np
a = np.random.default_rng(1).random((1200, 1200))
b, some = a[0], {"progress": lambda told: False}
solver = hone.factor(a)
def for_ever(call):
    while True:
        call()
for call in (
    lambda: hone.solve(a, b),
    lambda: solver.solve(b),
    lambda: hone.solve(a[:300, :300], b[:300], **some),
):
    threading.Thread(target=for_ever, args=(call,), daemon=True).start()
time.sleep(0.3)
"""


class Ends(unittest.TestCase):
    def test_of_the_program_wait_for_calls_of_daemon_threads(self):
        path = os.pathsep.join(filter(None, sys.path))
        for _ in range(3):
            done = subprocess.run(
                [sys.executable, "-B", "-c", ENDS],
                env={**os.environ, "PYTHONPATH": path},
                capture_output=True,
                timeout=100,
            )
            self.assertEqual(done.returncode, 0)

    def test_stop_calls_that_are_made_and_refuse_others(self):
        calls = _watch._Calls()
        watch = _watch.Watch(None)
        self.assertTrue(calls.begin(watch))
        stop = threading.Thread(target=calls.stop)
        stop.start()
        while watch.callback(None, None) == 0:
            pass
        calls.end(watch)
        stop.join()
        self.assertFalse(calls.begin(watch))

    def test_refuse_calls_by_an_exception_that_workers_catch(self):
        caught = []

        def work():
            try:
                hone.solve(*system(60)[:2], progress=lambda told: False)
            except Exception as error:
                caught.append(error)

        calls = _watch._calls
        calls.ending = True
        try:
            worker = threading.Thread(target=work)
            worker.start()
            worker.join()
        finally:
            calls.ending = False
        self.assertIsInstance(caught[0], hone.HoneCancelledError)


class Interrupts(unittest.TestCase):
    """Ctrl-C stops a solve and raises KeyboardInterrupt."""

    def setUp(self):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def test_during_a_solve(self):
        a, b, _ = system(60)
        calls = []

        def press(told):
            calls.append(told)
            os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            hone.solve(a, b, progress=press)
        self.assertLessEqual(len(calls), 2)
        handler = signal.getsignal(signal.SIGINT)
        self.assertIs(handler, signal.default_int_handler)

    def test_large_systems_listen_without_being_asked(self):
        n = _watch.INTERRUPTIBLE_FROM
        self.assertIsNone(_watch.watch_for(None, n - 1))
        self.assertIsNotNone(_watch.watch_for(None, n))
        self.assertIsNotNone(_watch.watch_for(None, n - 1, 200))

    def test_before_the_first_line_of_a_callback(self):
        class Pressed(_watch.Watch):
            """Ctrl-C comes as the callback looks at interrupted."""

            stop, press = False, False

            @property
            def interrupted(self):
                if self.press:
                    self.press = False
                    os.kill(os.getpid(), signal.SIGINT)
                return self.stop

            @interrupted.setter
            def interrupted(self, value):
                self.stop = value

        before = sys.unraisablehook
        watch = Pressed(None)
        stops = []

        def library():
            stops.append(watch.callback(None, None))
            watch.press = True
            watch.callback(None, None)  # returns any number
            stops.append(watch.callback(None, None))
            return 0

        self.assertEqual(watch.run(library), 0)
        self.assertEqual(stops, [0, 1])
        self.assertIs(sys.unraisablehook, before)
        with self.assertRaises(KeyboardInterrupt):
            watch.check()
        watch.check()  # raises it once

    def test_other_exceptions_nobody_catches_go_their_way(self):
        told = []
        before = sys.unraisablehook
        sys.unraisablehook = told.append
        other = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1 // 0)
        watch = _watch.Watch(None)
        try:
            self.assertEqual(watch.run(lambda: other() * 0), 0)
        finally:
            sys.unraisablehook = before
        watch.check()
        self.assertEqual(len(told), 1)
        self.assertIs(told[0].exc_type, ZeroDivisionError)

    def test_large_systems_are_solved(self):
        a, b, x = system(_watch.INTERRUPTIBLE_FROM)
        self.assertTrue(near(hone.solve(a, b), x))
        self.assertTrue(near(hone.factor(a).solve(b), x))

    def test_another_handler_is_left_alone(self):
        caught = []
        signal.signal(signal.SIGINT, lambda *_: caught.append(1))
        a, b, x = system(60)
        once = []

        def press(told):
            if not once:
                once.append(1)
                os.kill(os.getpid(), signal.SIGINT)

        self.assertTrue(near(hone.solve(a, b, progress=press), x))
        self.assertEqual(caught, [1])


if __name__ == "__main__":
    unittest.main()
