# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA driver, by ctypes: where an address lies, waiting for streams,
copies between the host and a device, and memory for x. It is loaded when the
first array on a device is given, and not before."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import POINTER, byref, c_int, c_size_t, c_ubyte, c_uint, c_uint64
from ctypes import c_void_p
from typing import Any, NamedTuple, Optional

from ._enums import Status
from ._errors import HoneDeviceError, HoneMemoryError

NAME = "libcuda.so.1"
LEGACY_STREAM = 1  # the default stream, CU_STREAM_LEGACY
_OUT_OF_MEMORY = 2
_HOST, _DEVICE = 1, 2  # types of memory
_CONTEXT, _TYPE, _ORDINAL = 1, 2, 9  # attributes of a pointer


class _Copy(ctypes.Structure):
    """CUDA_MEMCPY2D"""

    _fields_ = [
        ("from_x", c_size_t),
        ("from_y", c_size_t),
        ("from_type", c_uint),
        ("from_host", c_void_p),
        ("from_device", c_uint64),
        ("from_array", c_void_p),
        ("from_pitch", c_size_t),
        ("to_x", c_size_t),
        ("to_y", c_size_t),
        ("to_type", c_uint),
        ("to_host", c_void_p),
        ("to_device", c_uint64),
        ("to_array", c_void_p),
        ("to_pitch", c_size_t),
        ("bytes", c_size_t),
        ("rows", c_size_t),
    ]


_FUNCTIONS: dict[str, list[Any]] = {
    "cuInit": [c_uint],
    "cuPointerGetAttributes": [c_uint, c_void_p, c_void_p, c_uint64],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuDevicePrimaryCtxRelease_v2": [c_int],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [POINTER(c_void_p)],
    "cuCtxSynchronize": [],
    "cuStreamSynchronize": [c_void_p],
    "cuMemcpy2DUnaligned_v2": [POINTER(_Copy)],
    "cuMemAlloc_v2": [POINTER(c_uint64), c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemsetD8_v2": [c_uint64, c_ubyte, c_size_t],
}


class Place(NamedTuple):
    """Where an allocation lies. Memory of a pool of the driver has no context
    of its own, and is reached in the primary one."""

    ordinal: int
    context: Optional[int]


_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def _load() -> ctypes.CDLL:
    driver = ctypes.CDLL(NAME)
    for name, arguments in _FUNCTIONS.items():
        function = getattr(driver, name)
        function.restype = c_int
        function.argtypes = arguments
    result = driver.cuInit(0)
    if result != 0:
        raise OSError(f"cuInit returns {result}")
    return driver


def driver() -> ctypes.CDLL:
    """Returns the driver. Without one, or without a device, this is a
    HoneDeviceError."""
    global _loaded
    with _lock:
        if _loaded is None:
            try:
                _loaded = _load()
            except (OSError, AttributeError) as error:
                raise HoneDeviceError(
                    "an array says that it lies on a CUDA device, and there is "
                    f"no CUDA driver with a device here: {error}",
                    Status.NO_DEVICE,
                ) from error
        return _loaded


def check(result: int, what: str) -> None:
    if result == _OUT_OF_MEMORY:
        raise HoneMemoryError(
            f"{what}: the device has no memory left", Status.NO_MEMORY
        )
    if result != 0:
        raise HoneDeviceError(
            f"{what}: the CUDA driver returns error {result}",
            Status.DEVICE_FAILED,
        )


def place_of(address: int) -> Optional[Place]:
    """Returns where the driver says that an address lies, or None if it knows
    no memory of a device there."""
    context, kind, ordinal = c_void_p(), c_uint(), c_int()
    which = (c_int * 3)(_CONTEXT, _TYPE, _ORDINAL)
    values = (c_void_p * 3)(
        *(ctypes.addressof(each) for each in (context, kind, ordinal))
    )
    result = driver().cuPointerGetAttributes(3, which, values, address)
    if result != 0 or kind.value != _DEVICE:
        return None
    return Place(ordinal.value, context.value)


@contextmanager
def entered(place: Place) -> Iterator[ctypes.CDLL]:
    """Within this the calling thread's context is that of the place."""
    cuda, device = driver(), c_int()
    check(cuda.cuDeviceGet(byref(device), place.ordinal), "cuDeviceGet")
    context, before = c_void_p(place.context), c_void_p()
    own = place.context is None
    if own:
        check(
            cuda.cuDevicePrimaryCtxRetain(byref(context), device),
            "cuDevicePrimaryCtxRetain",
        )
    try:
        check(cuda.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent")
        try:
            yield cuda
        finally:
            cuda.cuCtxPopCurrent_v2(byref(before))
    finally:
        if own:
            cuda.cuDevicePrimaryCtxRelease_v2(device)


def wait_for_stream(place: Place, stream: int) -> None:
    """Waits until all work that was given to a stream is done."""
    with entered(place) as cuda:
        check(cuda.cuStreamSynchronize(stream), "waiting for a stream")


def wait_for_device(place: Place) -> None:
    """Waits until all work that was given to the device is done."""
    with entered(place) as cuda:
        check(cuda.cuCtxSynchronize(), "waiting for the device")


def _copy(place: Place, copy: _Copy) -> None:
    """Copies, and waits: the driver may return while a copy to the device, or
    within it, is still under way on the default stream."""
    with entered(place) as cuda:
        check(cuda.cuMemcpy2DUnaligned_v2(byref(copy)), "copying an array")
        check(cuda.cuStreamSynchronize(LEGACY_STREAM), "copying an array")


def fetch(
    place: Place, rows: int, size: int, start: int, pitch: int, to: int
) -> None:
    """Copies rows of so many bytes, a pitch apart on the device, to the host,
    where they have no gaps."""
    _copy(
        place,
        _Copy(
            from_type=_DEVICE,
            from_device=start,
            from_pitch=pitch,
            to_type=_HOST,
            to_host=to,
            to_pitch=size,
            bytes=size,
            rows=rows,
        ),
    )


def store(
    place: Place, rows: int, size: int, start: int, pitch: int, source: int
) -> None:
    """Copies them to the device."""
    _copy(
        place,
        _Copy(
            from_type=_HOST,
            from_host=source,
            from_pitch=size,
            to_type=_DEVICE,
            to_device=start,
            to_pitch=pitch,
            bytes=size,
            rows=rows,
        ),
    )


def move(
    place: Place, rows: int, size: int, start: int, pitch: int, to: int
) -> None:
    """Copies them to another place of the device, where they have no gaps."""
    _copy(
        place,
        _Copy(
            from_type=_DEVICE,
            from_device=start,
            from_pitch=pitch,
            to_type=_DEVICE,
            to_device=to,
            to_pitch=size,
            bytes=size,
            rows=rows,
        ),
    )


def fill(place: Place, start: int, size: int) -> None:
    """Sets all bits of so many bytes, which makes every double NaN, and waits
    for that."""
    with entered(place) as cuda:
        check(cuda.cuMemsetD8_v2(start, 0xFF, size), "writing to the device")
        check(cuda.cuStreamSynchronize(LEGACY_STREAM), "writing to the device")


class Memory:
    """Memory of its own on a device, in the primary context, which lives as
    long. Only the process that made it frees it."""

    def __init__(self, ordinal: int, size: int) -> None:
        self._process = os.getpid()
        self.place = Place(ordinal, None)
        self.start = 0
        cuda, device, context = driver(), c_int(), c_void_p()
        check(cuda.cuDeviceGet(byref(device), ordinal), "cuDeviceGet")
        check(
            cuda.cuDevicePrimaryCtxRetain(byref(context), device),
            "cuDevicePrimaryCtxRetain",
        )
        self._device = device
        self.place = Place(ordinal, context.value)
        start = c_uint64()
        try:
            with entered(self.place):
                result = cuda.cuMemAlloc_v2(byref(start), size)
            check(result, f"{size} bytes for an array on the device")
        except BaseException:
            cuda.cuDevicePrimaryCtxRelease_v2(device)
            raise
        self.start = start.value

    def __del__(self) -> None:
        if not self.start or self._process != os.getpid():
            return
        # At the end of the program the driver may be gone, and the memory too.
        with suppress(HoneDeviceError), entered(self.place) as cuda:
            cuda.cuMemFree_v2(self.start)
            cuda.cuDevicePrimaryCtxRelease_v2(self._device)
