# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on the device of the driver in tests/unit/fake_libcuda.c, which ends
the process when the host touches them, and stand-ins for other libraries."""

import ctypes
import types

import numpy as np
from hone import _dlpack, _driver, _view

CONTEXT = _driver.Place(0, None)


def fake():
    """Returns the driver, with the functions and variables of the fake one."""
    return ctypes.CDLL(_driver.NAME)


def number(name, kind=ctypes.c_int):
    """Returns a variable of the fake driver."""
    return kind.in_dll(fake(), name)


def queue(stream, to, source):
    """Queues a copy of all of one array to another on a stream."""
    call = fake().hone_fake_queue
    call.argtypes = [
        ctypes.c_size_t,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_size_t,
    ]
    size = source.memory_size
    assert size == to.memory_size
    result = call(stream, to.memory.start, source.memory.start, size)
    assert result == 0, result


def finish():
    """All work that was queued is done."""
    _driver.wait_for_device(CONTEXT)


class Array:
    """A copy of an array of NumPy on the device, and of the array of which it
    is a part. It has no interface."""

    def __init__(self, array):
        whole = array
        while whole.base is not None:
            whole = whole.base
        self.memory_size = whole.nbytes
        self.offset = array.ctypes.data - whole.ctypes.data
        self.shape, self.strides = array.shape, array.strides
        self.dtype, self.ndim, self.size = array.dtype, array.ndim, array.size
        self.memory = None
        self.start = 0
        if whole.nbytes > 0:
            self.memory = _driver.Memory(0, whole.nbytes)
            self.start = self.memory.start + self.offset
            _driver.store(
                self.memory.place,
                1,
                whole.nbytes,
                self.memory.start,
                whole.nbytes,
                whole.ctypes.data,
            )

    def get(self):
        """Returns what it holds now, without waiting for anything."""
        if self.memory is None:
            return np.empty(self.shape, self.dtype)
        room = np.empty(self.memory_size, np.uint8)
        copy = _driver._Copy(
            from_type=2,
            from_device=self.memory.start,
            from_pitch=room.nbytes,
            to_type=1,
            to_host=room.ctypes.data,
            to_pitch=room.nbytes,
            bytes=room.nbytes,
            rows=1,
        )
        result = fake().cuMemcpy2DAsync_v2(ctypes.byref(copy), None)
        assert result == 0, result
        return np.ndarray(
            self.shape, self.dtype, room, self.offset, self.strides
        )


class Interface(Array):
    """It has __cuda_array_interface__ alone, changed as tests ask."""

    def __init__(self, array, **changes):
        super().__init__(np.asarray(array))
        self.changes = changes

    @property
    def __cuda_array_interface__(self):
        whole = {
            "version": 3,
            "data": (self.start, False),
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "stream": None,
        }
        return {**whole, **self.changes}


class Dlpack(Array):
    """It has __dlpack__ alone. Its work is queued on the stream 9, which the
    stream of the consumer is made to wait for, as libraries do."""

    device = _dlpack.CUDA, 0
    code = None
    early = 0  # the data begins so many bytes behind the address
    has_strides = True

    def __init__(self, array):
        super().__init__(np.asarray(array))
        self.streams = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        if stream is not None:
            _driver.wait_for_stream(CONTEXT, 9)
        return self.capsule()

    def capsule(self):
        is_complex = self.dtype == complex
        made = _dlpack.capsule_of(
            self.device[1],
            self.start,
            self.shape,
            self.strides,
            is_complex,
            self.memory,
        )
        tensor = _dlpack._Managed.from_address(
            _dlpack._pointer(made, b"dltensor")
        ).tensor
        tensor.device = self.device[0]
        if self.code is not None:
            tensor.code = self.code
        tensor.data -= self.early
        tensor.byte_offset = self.early
        if not self.has_strides:
            tensor.strides = None
        return made


class Versioned(Dlpack):
    """It gives a capsule of DLPack 1, with flags."""

    flags = 0
    major = 1

    def __dlpack__(self, *, stream=None, max_version=None):
        assert max_version == (1, 0), max_version
        plain = super().__dlpack__(stream)
        tensor = _dlpack._Managed.from_address(
            _dlpack._pointer(plain, b"dltensor")
        ).tensor
        self.kept = _dlpack._Versioned(
            major=self.major, flags=self.flags, tensor=tensor
        )
        self.plain = plain
        return _dlpack._new(
            ctypes.addressof(self.kept), b"dltensor_versioned", None
        )


class Host:
    """An array on the host with __dlpack__ alone."""

    device = _dlpack.CPU, 0

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        assert stream is None
        a = self.array
        made = _dlpack.capsule_of(
            0, a.ctypes.data, a.shape, a.strides, a.dtype == complex, a
        )
        tensor = _dlpack._Managed.from_address(
            _dlpack._pointer(made, b"dltensor")
        ).tensor
        tensor.device = self.device[0]
        return made


class Device:
    """cupy.cuda.Device"""

    current = None

    def __init__(self, number):
        self.number = number

    def __enter__(self):
        Device.current = self.number

    def __exit__(self, *_):
        Device.current = None


class Cupy(Interface):
    """cupy.ndarray, whose stream is 5. Its pool gives memory on which work of
    that stream may still be under way."""

    made = 0

    def __init__(self, array):
        super().__init__(array, stream=5)
        self.device = Device(0)

    def swapaxes(self, first, second):
        turned = type(self).__new__(type(self))
        turned.__dict__.update(self.__dict__)
        axes = list(range(self.ndim))
        axes[first], axes[second] = axes[second], axes[first]
        turned.shape = tuple(self.shape[i] for i in axes)
        turned.strides = tuple(self.strides[i] for i in axes)
        return turned

    @staticmethod
    def empty(shape, dtype):
        assert Device.current == 0
        Cupy.made += 1
        found = Cupy(np.full(shape, 7.0, dtype))
        if found.size:
            queue(5, found, Array(np.full(shape, 8.0, dtype)))
        return found


def cupy():
    """Returns a stand-in for the module."""
    module = types.ModuleType("cupy")
    module.ndarray = Cupy
    module.empty = Cupy.empty
    module.cuda = types.SimpleNamespace(Device=Device)
    return module


class Tensor(Dlpack):
    """torch.Tensor, which has both interfaces, the older one without a stream;
    and bits that say that its entries are not what its memory holds."""

    conjugated = negated = False

    @property
    def __cuda_array_interface__(self):
        return {
            "version": 2,
            "data": (self.start, False),
            "shape": self.shape,
            "strides": None,
            "typestr": self.dtype.str,
        }

    def is_conj(self):
        return self.conjugated

    def is_neg(self):
        return self.negated

    swapaxes = Cupy.swapaxes


def tensor_of(array):
    return Tensor(np.array(array))


def torch():
    """Returns a stand-in for the module."""
    module = types.ModuleType("torch")

    def empty(shape, dtype, device):
        assert device == (_dlpack.CUDA, 0), device
        return Tensor(np.full(shape, 7.0, dtype))

    module.Tensor = Tensor
    module.float64, module.complex128 = np.float64, np.complex128
    module.empty = empty
    return module


def held(x):
    """Returns what an array on the device holds, whatever made it, without
    waiting for anything."""
    if isinstance(x, Array):
        return x.get()
    v = x._view
    assert isinstance(v, _view.View)
    copy = Array.__new__(Array)
    copy.memory, copy.memory_size = v.keep, v.size * v.itemsize
    copy.shape, copy.strides, copy.dtype = v.shape, v.strides, v.dtype
    copy.offset = 0
    return copy.get()
