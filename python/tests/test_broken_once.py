# SPDX-License-Identifier: BSD-3-Clause
"""Promises that were broken once."""

import gc
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref
from unittest import mock

import hone
import numpy as np
from systems import near, system


class Box:
    """An object that hands out its own array, as xarray.DataArray does."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


class TimeIsUp(Exception):
    pass


def large(n=1500):
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, n)), rng.standard_normal(n)


class Signals(unittest.TestCase):
    def interrupted(self, call, error):
        """Calls with a timer whose handler raises, again and again, at other
        moments of the call."""

        def handler(number, frame):
            raise error

        before = signal.signal(signal.SIGALRM, handler)
        try:
            start = time.monotonic()
            call()
            took = time.monotonic() - start
            for part in (0.1, 0.3, 0.5, 0.7):
                with self.assertRaises(error):
                    signal.setitimer(signal.ITIMER_REAL, part * took)
                    call()
                    time.sleep(took)  # the call was faster this time
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            now = signal.signal(signal.SIGALRM, before)
        self.assertIs(now, handler)

    def test_the_exception_of_a_handler_is_raised(self):
        a, b = large()
        self.interrupted(lambda: hone.solve(a, b), TimeIsUp)
        self.interrupted(lambda: hone.factor(a).close(), KeyboardInterrupt)
        stack = np.stack([a, a])
        self.interrupted(lambda: hone.solve_batch(stack, b), TimeIsUp)
        with hone.factor_batch(np.ones((1, 1, 1))) as solver:
            self.interrupted(lambda: solver.factor(stack), TimeIsUp)

    def test_no_exception_of_a_handler_locks_a_solver(self):
        a, b, _ = system(5)

        def handler(number, frame):
            raise TimeIsUp

        def solve_for_long(solver):
            end = time.monotonic() + 10.0
            while time.monotonic() < end:
                solver.solve(b)

        before = signal.signal(signal.SIGALRM, handler)
        kept = []
        try:
            for make in (hone.factor, lambda v: hone.factor_batch(v[None])):
                with make(a) as solver:
                    for k in range(1000):
                        when = 1e-5 + 1e-6 * k
                        with self.assertRaises(TimeIsUp) as raised:
                            signal.setitimer(signal.ITIMER_REAL, when)
                            solve_for_long(solver)
                        kept.append(raised.exception)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_a_handler_that_uses_the_solver_returns(self):
        """In a process of its own, which a hang would not end."""
        code = """
import signal
import hone
import numpy as np
for make in (hone.factor, lambda v: hone.factor_batch(v[None])):
    solver, b, done = make(np.eye(5)), np.ones(5), []
    def handler(number, frame):
        try:
            solver.solve(b)
            done.append(True)
        except hone.HoneBusyError:
            done.append(False)
    signal.signal(signal.SIGALRM, handler)
    while len(done) < 300:
        signal.setitimer(signal.ITIMER_REAL, 1e-5 + 1e-6 * len(done))
        for _ in range(20):
            solver.solve(b)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(True in done and False in done)
"""
        run = [sys.executable, "-c", code]
        said = subprocess.run(run, timeout=60, capture_output=True, text=True)
        self.assertEqual(said.stderr, "")
        self.assertEqual(said.stdout, "True\nTrue\n")

    def test_a_handler_may_set_another_one(self):
        a, b = large(1000)

        def second(number, frame):
            pass

        def first(number, frame):
            signal.signal(signal.SIGALRM, second)

        def progress(event):
            signal.raise_signal(signal.SIGALRM)

        before = signal.signal(signal.SIGALRM, first)
        try:
            hone.solve(a, b, progress=progress)
        finally:
            now = signal.signal(signal.SIGALRM, before)
        self.assertIs(now, second)

    def test_a_large_system_of_a_batch_is_stopped(self):
        a, b = large()
        events = []

        def progress(event):
            events.append(event)
            return len(events) > 3

        x, results = hone.solve_batch(a[None], b, progress=progress)
        self.assertEqual(len(events), 4)
        self.assertNotEqual(results["status"][0], hone.Status.OK)
        events.clear()
        with hone.factor_batch(a[None], progress=progress) as solver:
            self.assertNotEqual(solver.results["status"][0], hone.Status.OK)


class Copies(unittest.TestCase):
    def test_of_what_an_object_hands_out(self):
        a, b, x = system(30)
        stack = np.stack([np.pad(a, (0, 270)) + np.eye(300)] * 2)
        sides = np.pad(b, (0, 270))
        box, boxes = Box(a.copy()), Box(stack.copy())
        solver = hone.factor(box, copy=True)
        box.array[0, 0] += 1e3
        self.assertTrue(near(solver.solve(b), hone.solve(a, b)))
        box = Box(a.copy())
        solver.update(box, copy=True)
        box.array[0, 0] += 1e3
        self.assertTrue(near(solver.solve(b), hone.solve(a, b)))
        batch = hone.factor_batch(boxes, copy=True)
        want = batch.solve(sides).x
        boxes.array[:, 0, 0] += 1e3
        self.assertTrue(np.array_equal(batch.solve(sides).x, want))


class Threads(unittest.TestCase):
    def test_of_a_batch_solver_have_one_shape(self):
        rng = np.random.default_rng(3)
        shapes = (12,), (3, 4), (5,)
        stacks = [
            rng.standard_normal((*shape, 20, 20)) + 20 * np.eye(20)
            for shape in shapes
        ]
        solver = hone.factor_batch(stacks[0])
        wrong, end = [], time.monotonic() + 1.0

        def solve():
            while time.monotonic() < end and not wrong:
                try:
                    x, results = solver.solve(np.ones(20))
                    if x.shape[:-1] != results.shape:
                        wrong.append((x.shape, results.shape))
                except BaseException as error:
                    wrong.append(error)

        threads = [threading.Thread(target=solve) for _ in range(2)]
        for thread in threads:
            thread.start()
        k = 0
        while time.monotonic() < end:
            solver.factor(stacks[k % 3])
            k += 1
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


def interrupt(solver, name, after, *arguments):
    """Calls the solver's method as if a handler raised an exception just before
    the library's function, or just after."""
    calls = solver._calls
    function = getattr(calls, name)

    def raises(*given):
        if after:
            function(*given)
        raise TimeIsUp

    solver._calls = calls._replace(**{name: raises})
    try:
        getattr(solver, name)(*arguments)
    finally:
        solver._calls = calls


class Interrupted(unittest.TestCase):
    def fail_now(self, event):
        if self.fails:
            raise TimeIsUp

    def test_a_solver_has_the_matrix_that_the_library_has(self):
        for name in ("factor", "update"):
            for after in (False, True):
                matrices = [system(60)[0], system(60)[0].T + np.eye(60)]
                kept = [weakref.ref(a) for a in matrices]
                b = np.arange(60.0)
                want = hone.solve(matrices[after], b)
                solver = hone.factor(matrices[0])
                first = solver.report
                with self.assertRaises(TimeIsUp):
                    interrupt(solver, name, after, matrices[1])
                matrices.clear()
                gc.collect()
                self.assertIsNotNone(kept[after]())
                self.assertEqual(solver.report is first, not after)
                self.assertTrue(near(solver.solve(b), want))
                self.assertIsNotNone(kept[after]())
                self.assertIsNone(kept[not after]())

    def test_a_child_waits_for_no_thread_of_its_parent(self):
        """Even if its first call was interrupted as it made a lock."""
        a, b, want = system(5)
        solver = hone.factor(a)
        held, end, done = threading.Event(), threading.Event(), []
        make = threading.RLock

        def hold():
            with solver._alone():
                held.set()
                end.wait()

        def fails():
            make()
            raise TimeIsUp

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait()
        with mock.patch("os.getpid", lambda: -1):  # the child's
            with mock.patch("threading.RLock", fails):
                with self.assertRaises(TimeIsUp):
                    solver.solve(b)
            child = threading.Thread(
                target=lambda: done.append(solver.solve(b)), daemon=True
            )
            child.start()
            child.join(10.0)
            found = list(done)
        end.set()
        holder.join()
        self.assertTrue(found and near(found[0], want))

    def test_a_batch_solver_has_the_matrices_that_the_library_has(self):
        rng = np.random.default_rng(5)
        for after in (False, True):
            stacks = [rng.standard_normal((m, 9, 9)) for m in (4, 7)]
            kept = [weakref.ref(a) for a in stacks]
            solver = hone.factor_batch(stacks[0])
            want = hone.solve_batch(stacks[after], np.ones(9)).x
            with self.assertRaises(TimeIsUp):
                interrupt(solver, "factor", after, stacks[1])
            stacks.clear()
            gc.collect()
            count = 7 if after else 4
            self.assertIsNotNone(kept[after]())
            self.assertEqual(solver.shape, (count, 9, 9))
            self.assertEqual(solver.results.shape, (count,))
            self.assertTrue((solver.results["rcond"] > 0.0).all())
            self.assertTrue(near(solver.solve(np.ones(9)).x, want))
            self.assertIsNone(kept[not after]())

    def test_calls_have_their_report(self):
        self.fails = False
        a, b, _ = system(60)
        solver = hone.factor(a, progress=self.fail_now)
        first = solver.report
        self.fails = True
        with self.assertRaises(TimeIsUp):
            solver.factor(2 * a)
        self.assertIsNot(solver.report, first)
        self.assertEqual(solver.report.status, hone.Status.CANCELLED)

    def test_factors_of_a_batch_have_their_results(self):
        self.fails = False
        rng = np.random.default_rng(4)
        stack = rng.standard_normal((20, 200, 200))
        solver = hone.factor_batch(stack, progress=self.fail_now)
        self.fails = True
        with self.assertRaises(TimeIsUp):
            solver.factor(stack[:7])
        self.fails = False
        self.assertEqual(solver.shape, (7, 200, 200))
        self.assertEqual(solver.results.shape, (7,))
        self.assertIn(hone.Status.CANCELLED, solver.results["status"])
        self.assertEqual(solver.solve(np.ones(200)).x.shape, (7, 200))

    def test_arrays_are_freed_at_once(self):
        self.fails = True
        a, b, _ = system(60)
        gone = weakref.ref(a)
        gc.collect()
        gc.disable()
        try:
            try:
                hone.solve(a, b, progress=self.fail_now)
            except TimeIsUp:
                pass
            del a
            self.assertIsNone(gone())
        finally:
            gc.enable()


class Types(unittest.TestCase):
    def setUp(self):
        self.a, self.b, _ = system(8)

    def test_a_refused_matrix_leaves_the_type_of_x(self):
        single = self.b.astype(np.float32)
        solver = hone.factor(self.a)
        with self.assertRaises(ValueError):
            solver.update(np.eye(3, dtype=np.float32))
        self.assertEqual(solver.solve(single).dtype, np.float64)
        solver.update(self.a.astype(np.float32))
        self.assertEqual(solver.solve(single).dtype, np.float32)

    def test_a_complex_solver_stays_complex(self):
        a = (self.a + 1j * self.a.T).astype(np.complex64)
        solver = hone.factor(a).update(self.a.astype(np.float32))
        x = solver.solve(self.b.astype(np.float32))
        self.assertEqual(x.dtype, np.complex64)

    def test_objects_of_single_precision_give_single_precision(self):
        a, b = (Box(v.astype(np.float32)) for v in (self.a, self.b))
        self.assertEqual(hone.solve(a, b).dtype, np.float32)
        self.assertEqual(hone.factor(a).solve(b).dtype, np.float32)


class Overlaps(unittest.TestCase):
    def setUp(self):
        self.a = np.array(system(9)[0], order="C")
        self.b = system(9)[1]

    def test_out_may_not_be_a_part_of_the_matrix(self):
        for order in "CF":
            a = np.array(self.a, order=order)
            with self.assertRaisesRegex(ValueError, "overlaps A"):
                hone.solve(a, self.b, out=a[:, 0])
            with self.assertRaisesRegex(ValueError, "overlaps A"):
                hone.factor(a).solve(np.eye(9), out=a)
            stack = np.stack([a, a])
            with self.assertRaisesRegex(ValueError, "overlaps A"):
                hone.solve(stack, stack.copy(), out=stack)
            self.assertTrue(np.array_equal(a, self.a))
            self.assertTrue(np.array_equal(stack[0], self.a))

    def test_a_part_of_the_matrix_is_not_overwritten(self):
        for order in "CF":
            a = np.array(self.a, order=order)
            for b in (a[0], a[:, 0]):
                x = hone.solve(a, b, overwrite_b=True)
                self.assertTrue(near(x, hone.solve(a, b.copy())))
            self.assertTrue(np.array_equal(a, self.a))

    def test_columns_beside_the_matrix_may_be_written(self):
        whole = np.zeros((9, 10))
        whole[:, 1:] = self.a
        x = hone.solve(whole[:, 1:], self.b, out=whole[:, 0])
        self.assertTrue(near(x, hone.solve(self.a, self.b)))


class Arguments(unittest.TestCase):
    def test_the_deadline_of_a_stack_is_that_of_the_call(self):
        a, b = large(700)
        count = 40
        stack = np.broadcast_to(a, (count, *a.shape))
        took = []
        for _ in range(5):
            start = time.monotonic()
            hone.solve(a, b)
            took.append(time.monotonic() - start)
        deadline = 3 * min(took)
        start = time.monotonic()
        with self.assertRaises(hone.HoneCancelledError):
            hone.solve(stack, b, deadline_s=deadline, weak="ignore")
        # Each system with a deadline of its own would be solved.
        self.assertLess(time.monotonic() - start, 0.5 * count * min(took))

    def test_a_deadline_must_be_a_number(self):
        a, b, _ = system(8)
        for one in (a, np.stack([a, a])):
            for error, deadline in ((TypeError, "soon"), (ValueError, -1.0)):
                with self.assertRaises(error):
                    hone.solve(one, b, deadline_s=deadline)

    def test_structure_may_agree_in_any_spelling(self):
        a, b, _ = system(8)
        a = a @ a.T + 8 * np.eye(8)
        for spelling in ("spd", "SPD", hone.Structure.SPD, 1, None):
            x = hone.solve(a, b, assume_a="pos", structure=spelling)
            self.assertTrue(near(x, hone.solve(a, b)))

    def test_what_agrees_with_assume_a_may_be_said(self):
        a, b, _ = system(8)
        a = a @ a.T + 8 * np.eye(8)
        want = hone.solve(a, b)
        for said in (
            {"assume_a": "pos", "structure": "auto"},
            {"assume_a": "gen", "structure": "auto"},
            {"assume_a": "sym", "lower": True, "triangle": "lower"},
            {"assume_a": "sym", "lower": True, "triangle": "lower_symmetric"},
        ):
            self.assertTrue(near(hone.solve(a, b, **said), want))
        for said in (
            {"assume_a": "pos", "structure": "general"},
            {"assume_a": "sym", "triangle": "lower"},
            {"assume_a": "sym", "triangle": "both"},
        ):
            with self.assertRaisesRegex(ValueError, "two things of A"):
                hone.solve(a, b, **said)
        for said in (
            {"assume_a": "sym", "lower": True, "triangle": "lower"},
            {"assume_a": "her", "triangle": "upper_symmetric"},
            {"assume_a": "lower triangular", "triangle": "lower"},
            {"assume_a": "tridiagonal", "triangle": "upper"},
            {"assume_a": "gen", "triangle": "lower"},
        ):
            for side in (b, np.stack((b, b))[..., None]):
                with self.assertRaisesRegex(ValueError, "two things of A"):
                    hone.solve(a + 0j, side, **said)
        x = hone.solve(a, b, assume_a="lower triangular", triangle="both")
        self.assertTrue(near(x, hone.solve(np.tril(a), b)))

    def test_switches_are_true_or_false(self):
        a, b, want = system(8)
        for value in (True, np.bool_(1), 1, np.int64(1)):
            self.assertTrue(near(hone.solve(a, b, deterministic=value), want))
        for value in ("no", 2, 1.0, [True], np.int64(2)):
            with self.assertRaisesRegex(TypeError, "True or False"):
                hone.solve(a, b, deterministic=value)
        with self.assertRaisesRegex(TypeError, "a number"):
            hone.solve(a, b, deadline_s="1")

    def test_out_may_be_a_memmap(self):
        a, b, _ = system(8)
        with tempfile.TemporaryFile() as file:
            out = np.memmap(file, np.float64, shape=(8,), mode="w+")
            self.assertIs(hone.solve(a, b, out=out), out)
            self.assertTrue(near(np.asarray(out), hone.solve(a, b)))

    def test_masked_entries_in_a_list_are_refused(self):
        row = np.ma.array([1.0, 2.0], mask=[False, True])
        with self.assertRaisesRegex(ValueError, "masked"):
            hone.solve([row, [3.0, 4.0]], [1.0, 2.0])

    def test_ragged_sides_are_refused_by_name(self):
        with self.assertRaisesRegex(hone.HoneValueError, "b is not an array"):
            hone.solve(np.eye(2), [[1.0], [2.0, 3.0]])


if __name__ == "__main__":
    unittest.main()
