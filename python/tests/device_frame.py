# SPDX-License-Identifier: BSD-3-Clause
"""The frame of the tests with arrays on a device. test_device.py runs them in a
process of its own, in which tests/unit/fake_libcuda.c is the CUDA driver."""

import gc
import unittest
from unittest import mock

import hone
import numpy as np
from device_arrays import Interface, finish, held, number
from systems import near

N = 7


def complex_of(array, seed):
    rng = np.random.default_rng(seed)
    return array + 0.3j * rng.standard_normal(array.shape)


def there(array, **changes):
    return Interface(array, **changes)


def modules(**stand_ins):
    return mock.patch.dict("sys.modules", stand_ins)


class Case(unittest.TestCase):
    """Checks that each test gives back all memory of the device, and leaves no
    context behind."""

    def setUp(self):
        gc.collect()
        self.live = number("hone_fake_live").value

    def tearDown(self):
        finish()
        gc.collect()
        self.assertEqual(number("hone_fake_live").value, self.live)

    def refused(self, kind, text, call, *arguments, **options):
        with self.assertRaisesRegex(kind, text) as caught:
            call(*arguments, **options)
        self.assertIsInstance(caught.exception, hone.HoneError)
        # A traceback would keep arrays alive.
        status = caught.exception.status
        caught.exception = None
        return status

    def solved(self, x, want, kind=hone.DeviceArray):
        self.assertIs(type(x), kind)
        values = x if kind is np.ndarray else held(x)
        self.assertTrue(near(values, want), (values, want))
