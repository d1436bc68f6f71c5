# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that are refused, each with an exception of its own."""

import ctypes
import unittest
from unittest import mock

import hone
import numpy as np
from device_arrays import Dlpack, Versioned, number
from device_frame import N, Case, there
from hone import _driver
from systems import system


class Refused(Case):
    """What each wrong array is told, and that none gives an answer."""

    def test_types(self):
        a, b, _ = system(N)
        for dtype, name in (
            (np.float32, "<f4"),
            (np.complex64, "<c8"),
            (np.int64, "<i8"),
            (np.dtype(">f8"), ">f8"),
        ):
            for arrays in ((a.astype(dtype), b), (a, b.astype(dtype))):
                m, v = map(there, arrays)
                text = f"entries of the type '{name}' on a device"
                self.refused(TypeError, text, hone.solve, m, v)
        half = Dlpack(b)
        half.code = 4  # bfloat
        self.refused(TypeError, "'<bfloat8'", hone.solve, a, half)

    def test_shapes(self):
        a, b, _ = system(N)
        solve = hone.solve
        wide = there(np.zeros((N, N + 1)))
        self.refused(ValueError, "A has shape", solve, wide, there(b))
        short = there(b[:-1].copy())
        self.refused(ValueError, "b has shape", solve, there(a), short)
        self.refused(ValueError, "b has shape", solve, a, there(np.array(1.0)))
        odd = there(b, strides=(8, 8))
        self.refused(ValueError, "do not fit together", solve, a, odd)
        self.refused(ValueError, "together", solve, a, there(b, shape=(-7,)))

    def test_interfaces(self):
        a, b, _ = system(N)
        for interface in (None, {}, {"version": 3}, 5, {"version": "x"}):

            class Odd:
                __cuda_array_interface__ = interface

            text = "not an array|cannot be read|dtype object"
            self.refused(TypeError, text, hone.solve, a, Odd())
        masked = there(b, mask=there(b))
        self.refused(TypeError, "b has a mask", hone.solve, a, masked)
        v = there(b)
        v.start += 4
        self.refused(ValueError, "not aligned", hone.solve, a, v)
        v = there(b, strides=(12,))
        self.refused(ValueError, "not aligned", hone.solve, a, v)

        class Grudging:
            @property
            def __cuda_array_interface__(self):
                raise RuntimeError("needs a gradient")

        text = "A does not give its memory: needs a gradient"
        self.refused(TypeError, text, hone.solve, Grudging(), b)

    def test_addresses(self):
        """An address that the driver does not know is never read."""
        a, b, _ = system(N)
        text = "the driver knows no memory of one"
        for data in ((a.ctypes.data, False), (0, False), (64, False)):
            wrong = there(a, data=data)
            status = self.refused(RuntimeError, text, hone.solve, wrong, b)
            self.assertEqual(status, hone.Status.DEVICE_FAILED)
        large = there(a, shape=(1000, 1000), strides=None)
        self.refused(RuntimeError, text, hone.solve, large, np.ones(1000))
        other = Dlpack(b)
        other.device = 2, 1
        text = "says that it lies on device 1, and lies on device 0"
        self.refused(ValueError, text, hone.solve, a, other)

    def test_devices(self):
        a, b, want = system(N)
        for device in (4, 7, 10, 14):
            wrong = Dlpack(b)
            wrong.device = device, 0
            text = f"b lies on a device that DLPack numbers {device}"
            self.refused(TypeError, text, hone.solve, a, wrong)
        managed = Dlpack(b)
        managed.device = 13, 0
        self.solved(hone.solve(a, managed), want)

    def test_capsules(self):
        a, b, _ = system(N)
        new = Versioned(b)
        new.major = 2
        self.refused(TypeError, "DLPack 2.0 is too new", hone.solve, a, new)

        class Odd(Dlpack):
            def capsule(self):
                return "no capsule"

        self.refused(TypeError, "no capsule", hone.solve, a, Odd(b))

        class Broken(Dlpack):
            def capsule(self):
                raise BufferError("in use")

        self.refused(TypeError, "memory: in use", hone.solve, a, Broken(b))

    def test_what_needs_the_host(self):
        a, b, want = system(N)
        for kind in ("pos", "upper triangular", "sym", "diagonal"):
            text = "assume_a=.* needs an A in host memory"
            solve = hone.solve
            self.refused(TypeError, text, solve, there(a), b, assume_a=kind)
        self.solved(hone.solve(there(a), there(b), assume_a="gen"), want)
        definite = a @ a.T
        x = hone.solve(there(definite), there(definite @ want), structure="spd")
        self.solved(x, want)

    def test_no_memory_on_the_device(self):
        a, b, _ = system(N)
        m, v = there(a), there(b)
        room = number("hone_fake_room", ctypes.c_size_t)
        before, room.value = room.value, 8
        try:
            text = "56 bytes for an array on the device"
            self.refused(MemoryError, text, hone.solve, m, v)
            text = "392 bytes"
            self.refused(MemoryError, text, hone.factor, m, copy=True)
        finally:
            room.value = before

    def test_no_device(self):
        a, b, _ = system(N)
        m = there(a)
        devices = number("hone_fake_devices")
        devices.value = 0
        try:
            for given in (m, Dlpack(a)):
                with mock.patch.object(_driver, "_loaded", None):
                    text = "no CUDA driver with a device here: cuInit"
                    status = self.refused(
                        RuntimeError, text, hone.solve, given, b
                    )
                    self.assertEqual(status, hone.Status.NO_DEVICE)
        finally:
            devices.value = 1


if __name__ == "__main__":
    unittest.main()
