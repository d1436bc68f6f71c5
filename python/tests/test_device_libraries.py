# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of CuPy and PyTorch on a GPU. Skipped where the library is not
installed or sees no device."""

import unittest
import warnings

import hone
import numpy as np
from systems import near, system


def devices_of(name):
    """The library, if it is installed and sees a device."""
    try:
        module = __import__(name)
        if name == "cupy":
            return module if module.cuda.runtime.getDeviceCount() else None
        return module if module.cuda.is_available() else None
    except Exception:  # how they fail without a driver differs by version
        return None


cupy = devices_of("cupy")
torch = devices_of("torch")


class Cases:
    """What holds for either library: there() copies a NumPy array to the
    device, and back() an array of the library to the host."""

    def solved(self, x, want):
        self.assertIsInstance(x, self.kind)
        self.assertTrue(near(self.back(x), want))

    def test_solve(self):
        for n in (5, 300, 1500):
            a, b, want = system(n, 3)
            for v, answer in ((b, want), (b[:, 0].copy(), want[:, 0])):
                self.solved(hone.solve(self.there(a), self.there(v)), answer)
                self.solved(hone.solve(a, self.there(v)), answer)
                x = hone.solve(self.there(a), v)
                self.assertIs(type(x), np.ndarray)
                self.assertTrue(near(x, answer))

    def test_complex(self):
        a, b, _ = system(400, 2)
        b = b + 1j * b[::-1]
        self.solved(
            hone.solve(self.there(a), self.there(b)), np.linalg.solve(a, b)
        )
        a = a + 0.5j * a.T
        self.solved(
            hone.solve(self.there(a), self.there(b)), np.linalg.solve(a, b)
        )

    def test_transposed(self):
        a, b, _ = system(300)
        want = np.linalg.solve(a.T, b)
        x = hone.solve(self.there(a), self.there(b), trans=True)
        self.solved(x, want)
        self.solved(hone.solve(self.turned(self.there(a)), self.there(b)), want)

    def test_report_out_and_start(self):
        a, b, want = system(1200)
        out = self.there(np.zeros(1200))
        x, report = hone.solve(
            self.there(a),
            self.there(b),
            x0=self.there(want),
            out=out,
            error_bounds=True,
            return_report=True,
        )
        self.assertIs(x, out)
        self.solved(out, want)
        self.assertEqual(report.status, hone.Status.OK)
        self.assertLess(report.error_bounds.max(), 1e-9)

    def test_solver(self):
        a, b, want = system(1100, 2)
        with hone.factor(self.there(a)) as solver:
            self.solved(solver.solve(self.there(b)), want)
            self.solved(solver.solve(self.there(2 * b)), 2 * want)

    def test_batch(self):
        rng = np.random.default_rng(3)
        a = rng.standard_normal((50, 20, 20))
        b = rng.standard_normal((50, 20))
        x, results = hone.solve_batch(
            self.there(a), self.there(b), vectors=True
        )
        self.assertTrue((results["status"] == hone.Status.OK).all())
        self.solved(x, np.linalg.solve(a, b[..., None])[..., 0])

    def test_work_under_way(self):
        """Long work is queued before A is given, and more with x after."""
        a, b, want = system(1024)
        given, scale = self.there(a), self.there(np.ones((1024, 1024)))
        for _ in range(50):
            scale = scale @ scale / 1024.0
        x = hone.solve(given * scale, self.there(b)) * 2.0
        self.assertTrue(near(self.back(x), 2.0 * want))

    def test_refused(self):
        a, b, _ = system(8)
        b[3] = np.nan
        with self.assertRaises(ValueError):
            hone.solve(self.there(a), self.there(b))
        with self.assertRaises(np.linalg.LinAlgError):
            hone.solve(self.there(np.zeros((8, 8))), self.there(np.ones(8)))
        with self.assertRaises(TypeError):
            hone.solve(self.there(a.astype(np.float32)), self.there(b))

    def test_numerically_singular(self):
        n = 40
        i = np.arange(n)
        a = 1.0 / (i[:, None] + i[None, :] + 1.0)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            x = hone.solve(self.there(a), self.there(np.ones(n)))
        self.assertTrue(any(w.category is hone.HoneWarning for w in seen))
        self.assertIsInstance(x, self.kind)


@unittest.skipUnless(cupy, "there is no CuPy with a device")
class Cupy(Cases, unittest.TestCase):
    def setUp(self):
        self.kind = cupy.ndarray

    def there(self, array):
        return cupy.asarray(array)

    def back(self, array):
        return cupy.asnumpy(array)

    def turned(self, array):
        return array.T

    def test_streams(self):
        a, b, want = system(1024)
        with cupy.cuda.Stream(non_blocking=True):
            given, scale = cupy.asarray(a), cupy.ones((1024, 1024))
            for _ in range(50):
                scale = scale @ scale / 1024.0
            x = hone.solve(given * scale, cupy.asarray(b))
            self.assertTrue(near(cupy.asnumpy(x), want))

    def test_device_array(self):
        a, b, want = system(64)

        class Other:
            array = cupy.asarray(b)
            __cuda_array_interface__ = array.__cuda_array_interface__

        x = hone.solve(cupy.asarray(a), Other())
        self.assertIs(type(x), hone.DeviceArray)
        self.assertTrue(near(x.get(), want))
        self.assertTrue(near(cupy.asnumpy(cupy.asarray(x)), want))
        self.assertTrue(near(cupy.asnumpy(cupy.from_dlpack(x)), want))
        if torch:
            self.assertTrue(near(torch.from_dlpack(x).cpu().numpy(), want))

    def test_pinned_and_managed(self):
        a, b, want = system(64)
        memory = cupy.cuda.alloc_pinned_memory(b.nbytes)
        pinned = np.frombuffer(memory, np.float64, b.size)
        pinned[:] = b
        self.assertTrue(near(hone.solve(a, pinned), want))
        managed = cupy.ndarray(
            b.shape, memptr=cupy.cuda.malloc_managed(b.nbytes)
        )
        managed[:] = cupy.asarray(b)
        self.solved(hone.solve(a, managed), want)


@unittest.skipUnless(torch, "there is no PyTorch with a device")
class Torch(Cases, unittest.TestCase):
    def setUp(self):
        self.kind = torch.Tensor

    def there(self, array):
        return torch.from_numpy(np.array(array)).cuda()

    def back(self, array):
        return array.cpu().numpy()

    def turned(self, array):
        return array.mT

    def test_lazy_views(self):
        a, b, _ = system(16)
        z = torch.from_numpy(b + 1j * b).cuda().conj()
        with self.assertRaisesRegex(TypeError, "resolve_conj"):
            hone.solve(self.there(a), z)
        self.solved(
            hone.solve(self.there(a), z.resolve_conj()),
            np.linalg.solve(a, b - 1j * b),
        )

    def test_a_tensor_on_the_host(self):
        a, b, want = system(16)
        x = hone.solve(a, torch.from_numpy(b))
        self.assertTrue(near(np.asarray(x), want))


if __name__ == "__main__":
    unittest.main()
