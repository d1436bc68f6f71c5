# SPDX-License-Identifier: BSD-3-Clause
"""Memory that solving needs, and what the library keeps."""

from __future__ import annotations

import ctypes
from ctypes import byref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from . import _abi, _options
from ._enums import Status
from ._errors import error_of
from ._options import hint

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

lib = _abi.lib


class HostMemory(NamedTuple):
    single_bytes: int  # if single-precision factors suffice
    double_bytes: int  # if A is factored in double, too


class DeviceMemory(NamedTuple):
    with_residuals: int  # with a copy of A in double on the device
    without: int


def memory_needed(
    n: int,
    nrhs: int = 1,
    *,
    dtype: DTypeLike = float,
    **options: Unpack[Options],
) -> HostMemory:
    """Returns the most host memory that solve allocates, in bytes; the
    caller's arrays are not counted. dtype is that of A."""
    call = lib.hone_memory_needed
    if np.dtype(dtype).kind == "c":
        call = lib.hone_z_memory_needed
    return HostMemory(*_needed(call, (n, nrhs), options))


def device_memory_needed(
    n: int, *, dtype: DTypeLike = float, **options: Unpack[Options]
) -> DeviceMemory:
    """Returns the memory on a GPU that solving takes, in bytes; 0 if the
    library was built without CUDA. dtype is that of A."""
    call = lib.hone_device_memory_needed
    if np.dtype(dtype).kind == "c":
        call = lib.hone_z_device_memory_needed
    return DeviceMemory(*_needed(call, (n,), options))


def release_kept() -> int:
    """Frees what the library keeps for the next solve (threads, memory of the
    host and of devices), and returns how many bytes were of device memory."""
    return int(lib.hone_release_kept())


def _needed(call: Any, sizes: tuple[int, ...], options: Any) -> tuple[int, int]:
    first, second = ctypes.c_int64(), ctypes.c_int64()
    checked = [
        _options.whole(name, each, 64)
        for name, each in zip(("n", "nrhs"), sizes)
    ]
    c = _options.make(options)
    status = call(*checked, byref(c), byref(first), byref(second))
    if status != Status.OK:
        raise error_of(status, None, hint(status, options))
    return first.value, second.value


def version() -> str:
    """Returns the library's version."""
    text: bytes = lib.hone_version()
    return text.decode()
