# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on a CUDA device, without one: the tests in device_*.py run in a
process of their own beside the driver of tests/unit/fake_libcuda.c, which is
compiled for it. Arrays on the host that only DLPack can read need no driver."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import hone
import numpy as np
from device_arrays import Host
from hone import _dlpack
from systems import near, system

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent.parent / "tests" / "unit" / "fake_libcuda.c"
COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
MODULES = [
    "device_solve",
    "device_refused",
    "device_streams",
    "device_batches",
]
RUN = """
import ctypes, sys, unittest
driver = ctypes.CDLL(sys.argv[1])
sys.path.insert(0, sys.argv[2])
unittest.main(None, argv=["device", "-q", *sys.argv[3:]])
"""


def driver_of_this_machine():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


class Device(unittest.TestCase):
    @unittest.skipUnless(COMPILER, "there is no C compiler")
    @unittest.skipUnless(SOURCE.is_file(), "the tests are not in a checkout")
    def test_cases(self):
        with tempfile.TemporaryDirectory() as folder:
            driver = Path(folder) / "libcuda.so.1"
            name = "-Wl,-soname,libcuda.so.1"
            subprocess.run(
                [
                    *COMPILER.split(),
                    "-shared",
                    "-fPIC",
                    "-O1",
                    name,
                    "-o",
                    str(driver),
                    str(SOURCE),
                ],
                check=True,
            )
            paths = [str(Path(hone.__file__).parent.parent)]
            paths += filter(None, [os.environ.get("PYTHONPATH")])
            done = subprocess.run(
                [
                    sys.executable,
                    "-B",
                    "-X",
                    "faulthandler",
                    "-c",
                    RUN,
                    str(driver),
                    str(TESTS),
                    *MODULES,
                ],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                capture_output=True,
                text=True,
            )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"Ran [1-9]\d+ tests")


class WithoutDriver(unittest.TestCase):
    def test_arrays_on_the_host(self):
        a, b, want = system(6, 2)
        for v in (b, np.asfortranarray(b), b + 1j):
            x = hone.solve(Host(a), Host(v))
            self.assertIs(type(x), np.ndarray)
            self.assertTrue(near(x, np.linalg.solve(a, v)))
        out = np.zeros((6, 2))
        hone.solve(a, Host(b), out=Host(out))
        self.assertTrue(near(out, want))

    @unittest.skipUnless(hasattr(np.ndarray, "__dlpack__"), "NumPy is older")
    def test_capsules_of_numpy(self):
        class Wrapped(Host):
            def __dlpack__(self, **options):
                return self.array.__dlpack__()

        a, b, want = system(6, 2)
        self.assertTrue(
            near(hone.solve(Wrapped(a.T.copy().T), Wrapped(b)), want)
        )
        whole = hone.solve(np.eye(6), Wrapped(np.ones(6, np.int8)))
        self.assertEqual(whole.tolist(), [1.0] * 6)
        single = hone.solve(np.eye(6), Wrapped(np.ones(6, np.float32)))
        self.assertEqual(single.tolist(), [1.0] * 6)

    @unittest.skipIf(driver_of_this_machine(), "there is a CUDA driver")
    def test_arrays_on_a_device(self):
        class There:
            __cuda_array_interface__ = {
                "version": 3,
                "data": (4096, False),
                "shape": (6,),
                "typestr": "<f8",
            }

        class Pinned(Host):
            device = _dlpack.CUDA_HOST, 0

        class Managed(Host):
            device = _dlpack.CUDA_MANAGED, 0

        a, b, _ = system(6)
        for v in (There(), Pinned(b), Managed(b)):
            with self.assertRaisesRegex(
                hone.HoneDeviceError, "no CUDA driver with a device here"
            ) as caught:
                hone.solve(a, v)
            self.assertEqual(caught.exception.status, hone.Status.NO_DEVICE)
            self.assertIsInstance(caught.exception, RuntimeError)


if __name__ == "__main__":
    unittest.main()
