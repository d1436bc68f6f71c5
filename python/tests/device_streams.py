# SPDX-License-Identifier: BSD-3-Clause
"""Streams, the arrays of other libraries, and hone.DeviceArray."""

import ctypes
import gc
import unittest

import device_arrays
import hone
import numpy as np
from device_arrays import (
    Array,
    Cupy,
    Dlpack,
    Host,
    Interface,
    Tensor,
    Versioned,
)
from device_arrays import finish, held, number, queue
from device_frame import N, Case, complex_of, modules, there
from hone import _dlpack
from systems import system


class Streams(Case):
    """Work that is under way when an array is given is waited for."""

    def test_the_stream_of_the_interface(self):
        a, b, want = system(N)
        for stream in (1, 2, 7, np.int64(7)):
            m = there(np.full((N, N), 3.0), stream=stream)
            v = there(np.full(N, 3.0), stream=stream)
            queue(int(stream), m, Array(a))
            queue(int(stream), v, Array(b))
            before = number("hone_fake_device_waits").value
            self.solved(hone.solve(m, v), want)
            after = number("hone_fake_device_waits").value
            self.assertEqual(after, before)

    def test_no_other_stream(self):
        """None means that nothing is under way: nothing is waited for."""
        a, b, want = system(N)
        m, other = there(a), there(np.ones(N))
        queue(8, other, Array(np.zeros(N)))
        self.solved(hone.solve(m, there(b, stream=7)), want)
        self.assertTrue(np.array_equal(other.get(), np.ones(N)))

    def test_an_interface_without_streams(self):
        a, b, want = system(N)
        m = there(np.full((N, N), 3.0), version=2)
        queue(7, m, Array(a))
        self.solved(hone.solve(m, there(b)), want)

    def test_streams_that_do_not_exist(self):
        a, b, _ = system(N)
        for stream in (0, -1, "legacy"):
            m = there(a, stream=stream)
            text = "A names the stream"
            self.refused(ValueError, text, hone.solve, m, b)

    def test_the_stream_of_dlpack(self):
        a, b, want = system(N)
        for kind in (Dlpack, Versioned, Tensor):
            m, v = kind(np.full((N, N), 3.0)), kind(np.full(N, 3.0))
            queue(9, m, Array(a))
            queue(9, v, Array(b))
            self.solved(hone.solve(m, v), want)
            self.assertEqual((m.streams, v.streams), ([1], [1]))

    def test_the_default_stream_is_waited_for(self):
        """A library may only make the default stream wait."""

        class Later(Dlpack):
            def __dlpack__(self, stream=None):
                queue(stream, self, self.later)
                return self.capsule()

        a, b, want = system(N)
        m = Later(np.full((N, N), 3.0))
        m.later = Array(a)
        self.solved(hone.solve(m, b), want, np.ndarray)

    def test_pinned_memory(self):
        """It has no stream, so that all work of the device is waited for."""

        class Pinned(Host):
            device = 3, 0

        a, b, want = system(N)
        before = number("hone_fake_device_waits").value
        self.solved(hone.solve(a, Pinned(b)), want, np.ndarray)
        self.assertEqual(number("hone_fake_device_waits").value, before + 1)

    def test_x_is_complete(self):
        """Also where the driver's copies to the device return before they are
        made."""
        a, b, _ = system(N, 3)
        lazy = number("hone_fake_lazy", ctypes.c_bool)
        for v in (b, np.asfortranarray(b), complex_of(b, 2), b[:, 0]):
            given, stack = there(v), there(np.stack([v, 2 * v]))
            vectors, want = v.ndim == 1, np.linalg.solve(a, v)
            lazy.value = True
            try:
                self.solved(hone.solve(a, given), want)
                x, _ = hone.solve_batch(a, stack, vectors=vectors)
                self.solved(x, np.stack([want, 2 * want]))
                solver = hone.factor(a)
                self.solved(
                    solver.solve(given, out=there(want)), want, Interface
                )
            finally:
                lazy.value = False


class Libraries(Case):
    """x is an array of the library to which b belongs."""

    def test_cupy(self):
        a, b, want = system(N, 2)
        with modules(cupy=device_arrays.cupy()):
            for v, answer in ((b, want), (b[:, 0].copy(), want[:, 0])):
                x = hone.solve(Cupy(a), Cupy(v))
                self.assertEqual(x.strides[0], 8)
                finish()  # work on the memory that x was given is done
                self.solved(x, answer, Cupy)
            x = hone.solve(Cupy(a), Cupy(complex_of(b, 1)))
            finish()
            self.solved(x, np.linalg.solve(a, complex_of(b, 1)), Cupy)
            stack = np.stack([b, b])
            x, results = hone.solve_batch(Cupy(np.stack([a, a])), Cupy(stack))
            finish()
            self.solved(x, np.stack([want, want]), Cupy)
            x = hone.solve(Cupy(np.zeros((0, 0))), Cupy(np.zeros(0)))
            self.assertIs(type(x), Cupy)
            x = hone.solve(Cupy(a), b)
            self.solved(x, want, np.ndarray)

    def test_torch(self):
        a, b, want = system(N, 2)
        with modules(torch=device_arrays.torch()):
            for v, answer in ((b, want), (b[:, 0].copy(), want[:, 0])):
                x = hone.solve(Tensor(a), Tensor(v))
                self.solved(x, answer, Tensor)
            z = complex_of(b, 1)
            x = hone.solve(Tensor(a), Tensor(z))
            self.solved(x, np.linalg.solve(a, z), Tensor)

    def test_lazy_conjugates(self):
        a, b, _ = system(N)
        z = Tensor(complex_of(b, 1))
        z.conjugated = True
        text = r"b is a lazy view: use its resolve_conj\(\)"
        self.refused(TypeError, text, hone.solve, a, z)
        z.conjugated, z.negated = False, True
        self.refused(TypeError, "resolve_neg", hone.solve, a, z)

    def test_none_of_them(self):
        """Modules that are there, and arrays that are not theirs."""
        a, b, want = system(N)
        with modules(cupy=device_arrays.cupy(), torch=device_arrays.torch()):
            self.solved(hone.solve(there(a), there(b)), want)


class Arrays(Case):
    """hone.DeviceArray."""

    def setUp(self):
        super().setUp()
        a, b, self.want = system(N, 2)
        self.x = hone.solve(a, there(b))

    def tearDown(self):
        del self.x
        super().tearDown()

    def test_is_taken_as_it_is(self):
        x = self.x
        self.assertEqual(
            x.__cuda_array_interface__["data"], (x._view.address, False)
        )
        again = hone.solve(np.eye(N), x)
        self.solved(again, self.want)
        self.assertIs(hone.solve(2.0 * np.eye(N), x, out=x), x)
        self.solved(x, self.want / 2.0)

    def test_capsules_are_read_by_others(self):
        """NumPy reads the capsule, once its memory is the host's."""
        for array in (self.want, self.want.T, self.want[:, 0] + 2j):
            made = _dlpack.capsule_of(
                0,
                array.ctypes.data,
                array.shape,
                array.strides,
                array.dtype == complex,
                array,
            )
            tensor = _dlpack._Managed.from_address(
                _dlpack._pointer(made, b"dltensor")
            ).tensor
            self.assertEqual((tensor.device, tensor.ordinal), (2, 0))
            tensor.device = 1

            class Given:
                def __dlpack__(self, **_):
                    return made

                def __dlpack_device__(self):
                    return 1, 0

            if hasattr(np, "from_dlpack"):
                seen = np.from_dlpack(Given())
                self.assertEqual(seen.ctypes.data, array.ctypes.data)
                self.assertTrue(np.array_equal(seen, array))
                before = len(_dlpack._living)
                del seen, made
                gc.collect()
                self.assertEqual(len(_dlpack._living), before - 1)

    def test_capsules_keep_the_memory(self):
        want, capsule = held(self.x), self.x.__dlpack__(stream=1)
        address = self.x._view.address
        self.x = None
        gc.collect()
        view = Interface(want)
        view.changes = {"data": (address, False)}
        self.solved(hone.solve(np.eye(N), view), want)
        del capsule, view
        gc.collect()

    def test_other_devices_are_refused(self):
        self.assertEqual(self.x.__dlpack_device__(), (2, 0))
        with self.assertRaises(BufferError):
            self.x.__dlpack__(dl_device=(1, 0))
        with self.assertRaises(BufferError):
            self.x.__dlpack__(copy=True)

    def test_looks(self):
        x = self.x
        text = f"<hone.DeviceArray of shape ({N}, 2), float64, device 0>"
        self.assertEqual(repr(x), text)
        self.assertEqual((x.ndim, x.size, x.dtype), (2, 2 * N, float))
        self.assertTrue(np.array_equal(x.swapaxes(0, 1).get(), x.get().T))


if __name__ == "__main__":
    unittest.main()
