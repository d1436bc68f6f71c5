# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of other libraries on a CUDA device: what they say of themselves, and
arrays for x beside them."""

from __future__ import annotations

import operator
import sys
from typing import Any, Optional, Protocol, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _dlpack, _driver
from ._driver import LEGACY_STREAM, Place
from ._enums import Status
from ._errors import HoneDeviceError, bad_type, bad_value
from ._view import Index, View, fetch


class OnDevice(Protocol):
    """What type checkers take for an array on a CUDA device, such as one of
    CuPy, PyTorch or Numba. (NumPy's arrays have DLPack too.)"""

    @property
    def __cuda_array_interface__(self) -> Any: ...


AnyArray = Union[ArrayLike, OnDevice]

_TYPES = {"<f8": np.dtype(np.float64), "<c16": np.dtype(np.complex128)}
_ON_HOST = (_dlpack.CPU, _dlpack.CUDA_HOST)
_ON_DEVICE = (_dlpack.CUDA, _dlpack.CUDA_MANAGED)
# A View is a tuple. Nothing is asked of these: whatever a signal's handler
# raises meanwhile would be taken for their answer.
_TAKEN = (np.ndarray, np.generic, list, tuple, int, float, complex, type(None))
# How arrays of others refuse.
_REFUSALS = (
    TypeError,
    ValueError,
    RuntimeError,
    BufferError,
    AttributeError,
    LookupError,
)


def taken(value: Any, name: str) -> Any:
    """Returns a View of an array on a CUDA device, whose entries are complete
    then, and any other value as it is. An array on the host that only DLPack
    can read becomes one of NumPy."""
    if type(value) is np.ndarray or isinstance(value, _TAKEN):
        return value
    interface = _told(value, name, "__cuda_array_interface__")
    device = _dlpack_device(value, name)
    if interface is not None or device is not None:
        _check_plain(value, name)
    if interface is not None:
        # Before version 3 the interface has no stream, and DLPack has one.
        if device is None or _has_stream(interface):
            return _from_interface(value, interface, name)
    if device is None or (interface is None and device[0] in _ON_HOST):
        if device is None or hasattr(value, "__array__"):
            return value
        return _from_host(value, name)
    if device[0] not in _ON_DEVICE:
        raise bad_type(
            f"{name} lies on a device that DLPack numbers {device[0]}: hone "
            "takes arrays in host memory (1, 3) and on CUDA devices (2, 13)"
        )
    return _from_dlpack(value, device[1], name)


def _has_stream(interface: Any) -> bool:
    version = interface.get("version") if isinstance(interface, dict) else 0
    return isinstance(version, int) and version >= 3


def _told(value: Any, name: str, attribute: str) -> Any:
    """Returns an attribute, or None if the array has none. One that has it, and
    refuses, says why."""
    try:
        return getattr(value, attribute, None)
    except _REFUSALS as error:
        raise bad_type(f"{name} does not give its memory: {error}") from error


def _dlpack_device(value: Any, name: str) -> Optional[tuple[int, int]]:
    ask = _told(value, name, "__dlpack_device__")
    if ask is None or _told(value, name, "__dlpack__") is None:
        return None
    try:
        kind, ordinal = ask()
        return int(kind), int(ordinal)
    except _REFUSALS as error:
        raise bad_type(f"{name} does not give its memory: {error}") from error


# ---- __cuda_array_interface__


def _from_interface(value: Any, interface: Any, name: str) -> View:
    try:
        version = int(interface["version"])
        address, read_only = interface["data"]
        shape = tuple(int(each) for each in interface["shape"])
        typestr = interface["typestr"]
        steps = interface.get("strides")
        stream, mask = interface.get("stream"), interface.get("mask")
        strides = None if steps is None else tuple(int(each) for each in steps)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise bad_type(
            f"{name} has a __cuda_array_interface__ that cannot be read: "
            f"{error!r}"
        ) from error
    if mask is not None:
        raise bad_type(f"{name} has a mask: fill what is masked")
    if strides is None:
        strides = _by_rows(shape, typestr)
    if len(strides) != len(shape) or min(shape, default=0) < 0:
        raise bad_value(
            f"{name} has shape {shape} and strides {strides}, which do not fit "
            "together"
        )
    view = _viewed(
        (value, interface), int(address or 0), shape, strides, typestr, name
    )
    if view.place is not None:
        _wait(view.place, version, stream, name)
    writeable = view.writeable and not read_only
    return view._replace(owner=value, writeable=writeable)


def _wait(place: Place, version: int, stream: Any, name: str) -> None:
    """Waits for the work that the array says it needs. An array of before
    version 3 does not say; then all work of the device is waited for."""
    if version < 3:
        _driver.wait_for_device(place)
    elif stream is not None:
        number = operator.index(stream) if hasattr(stream, "__index__") else 0
        if number <= 0:
            raise bad_value(
                f"{name} names the stream {stream!r}: it must be 1, 2, the "
                "address of a stream, or None"
            )
        _driver.wait_for_stream(place, number)


def _by_rows(shape: Index, typestr: Any) -> Index:
    """Returns the strides of an array without gaps. The type is checked by the
    caller."""
    step = _TYPES[typestr].itemsize if typestr in _TYPES else 1
    strides = []
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, extent)
    return tuple(reversed(strides))


# ---- DLPack


def _capsule_of(value: Any, stream: Optional[int], name: str) -> Any:
    try:
        try:
            return value.__dlpack__(stream=stream, max_version=_dlpack.VERSION)
        except TypeError:  # before version 1 there was no max_version
            return value.__dlpack__(stream=stream)
    except _REFUSALS as error:
        raise bad_type(f"{name} does not give its memory: {error}") from error


def _read(capsule: Any, name: str) -> _dlpack.Given:
    try:
        return _dlpack.read(capsule)
    except ValueError as error:
        raise bad_type(f"{name}: {error}") from error


def _from_dlpack(value: Any, ordinal: int, name: str) -> View:
    """The array's library has the default stream wait for its work, and here
    the host waits for the default stream."""
    _driver.driver()  # says so where there is none
    capsule = _capsule_of(value, LEGACY_STREAM, name)
    given = _read(capsule, name)
    view = _viewed(
        (capsule, value),
        given.address,
        given.shape,
        given.strides,
        given.typestr,
        name,
    )
    if view.place is not None:
        if given.device == _dlpack.CUDA and view.place.ordinal != ordinal:
            raise bad_value(
                f"{name} says that it lies on device {ordinal}, and lies on "
                f"device {view.place.ordinal}"
            )
        _driver.wait_for_stream(view.place, LEGACY_STREAM)
    writeable = view.writeable and not given.read_only
    return view._replace(owner=value, writeable=writeable)


def _check_plain(value: Any, name: str) -> None:
    """Refuses tensors of PyTorch whose entries are the conjugates or negatives
    of what lies in their memory."""
    for bit, way in ("is_conj", "resolve_conj"), ("is_neg", "resolve_neg"):
        ask = getattr(value, bit, None)
        if callable(ask) and ask():
            raise bad_type(f"{name} is a lazy view: use its {way}()")


class _Seen:
    """An array interface for memory on the host, kept by a capsule."""

    def __init__(self, capsule: Any, given: _dlpack.Given) -> None:
        self.capsule = capsule
        self.__array_interface__ = {
            "version": 3,
            "data": (given.address, given.read_only),
            "shape": given.shape,
            "strides": given.strides,
            "typestr": given.typestr,
        }


def _from_host(value: Any, name: str) -> NDArray[Any]:
    capsule = _capsule_of(value, None, name)
    given = _read(capsule, name)
    if given.device == _dlpack.CUDA_HOST:
        # Copies into pinned memory may be under way.
        _driver.wait_for_device(Place(given.ordinal, None))
    try:
        return np.asarray(_Seen(capsule, given))
    except (TypeError, ValueError) as error:
        raise bad_type(
            f"{name} has entries of the type {given.typestr}, which NumPy does "
            "not know"
        ) from error


# ---- Both


def _viewed(
    keep: Any,
    address: int,
    shape: Index,
    strides: Index,
    typestr: Any,
    name: str,
) -> View:
    """Returns a view, once the type is right and the driver finds the first and
    the last entry in the memory of one device."""
    if typestr not in _TYPES:
        raise bad_type(
            f"{name} has entries of the type {typestr!r} on a device, where "
            "hone takes float64 and complex128: convert it there"
        )
    dtype = _TYPES[typestr]
    view = View(None, keep, None, address, shape, strides, dtype, True)
    if view.size == 0:  # whatever its strides are
        return view._replace(strides=_by_rows(shape, typestr))
    steps = [step for extent, step in zip(shape, strides) if extent > 1]
    if any(each % dtype.itemsize for each in (address, *steps)):
        raise bad_value(f"{name} has entries that are not aligned: copy it")
    reach = [(extent - 1) * step for extent, step in zip(shape, strides)]
    first = address + sum(each for each in reach if each < 0)
    last = address + sum(each for each in reach if each > 0)
    place = _driver.place_of(first) if first > 0 else None
    ends = _driver.place_of(last + dtype.itemsize - 1)
    if place is None or ends is None or ends.ordinal != place.ordinal:
        raise HoneDeviceError(
            f"{name} says that it lies on a CUDA device, and the driver knows "
            f"no memory of one from {first:#x} to {last + dtype.itemsize:#x}",
            Status.DEVICE_FAILED,
        )
    return view._replace(place=place, writeable=0 not in steps)


# ---- Arrays for x


class DeviceArray:
    """x on a CUDA device, where b belongs to none of the libraries that hone
    knows. It has the interfaces by which they take it without a copy, and
    frees its memory when nobody uses it any more."""

    def __init__(
        self, shape: Index, dtype: Any, ordinal: Optional[int]
    ) -> None:
        view = View(None, None, None, 0, shape, (), np.dtype(dtype), True)
        strides = _by_rows(shape, view.dtype.str)
        view = view._replace(strides=strides)
        if view.size > 0 and ordinal is not None:
            memory = _driver.Memory(ordinal, view.size * view.itemsize)
            view = view._replace(
                keep=memory, place=memory.place, address=memory.start
            )
        self._view = view

    @property
    def shape(self) -> Index:
        return self._view.shape

    @property
    def strides(self) -> Index:
        """Distances in bytes, as in NumPy."""
        return self._view.strides

    @property
    def dtype(self) -> Any:
        return self._view.dtype

    @property
    def ndim(self) -> int:
        return self._view.ndim

    @property
    def size(self) -> int:
        return self._view.size

    @property
    def device(self) -> int:
        """The number of the CUDA device."""
        return self._view.place.ordinal if self._view.place else 0

    def swapaxes(self, first: int, second: int) -> DeviceArray:
        """Returns the same memory with two axes exchanged, as numpy.swapaxes
        does."""
        axes = list(range(self.ndim))
        axes[first], axes[second] = axes[second], axes[first]
        turned = DeviceArray.__new__(DeviceArray)
        turned._view = self._view._replace(
            shape=tuple(self.shape[i] for i in axes),
            strides=tuple(self.strides[i] for i in axes),
        )
        return turned

    def get(self) -> NDArray[Any]:
        """Returns a copy on the host."""
        return np.array(fetch(self._view, "x"))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "data": (self._view.address, False),
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "stream": None,  # nothing is under way
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.CUDA, self.device

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        """Returns a capsule. Nothing is under way, so that no stream has to
        wait."""
        del stream, max_version
        if dl_device not in (None, self.__dlpack_device__()) or copy:
            raise BufferError("hone.DeviceArray gives its own memory only")
        v = self._view
        return _dlpack.capsule_of(
            self.device, v.address, v.shape, v.strides, v.itemsize == 16, v.keep
        )

    def __repr__(self) -> str:
        return (
            f"<hone.DeviceArray of shape {self.shape}, {self.dtype}, "
            f"device {self.device}>"
        )


def _empty(like: View, shape: Index, dtype: Any) -> Any:
    """Returns an array by rows, of the kind of the owner of like, and on its
    device."""
    owner = like.owner
    ordinal = like.place.ordinal if like.place else None
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy is not None and isinstance(owner, cupy.ndarray):
        device = owner.device if ordinal is None else cupy.cuda.Device(ordinal)
        with device:
            return cupy.empty(shape, dtype)
    if torch is not None and isinstance(owner, torch.Tensor):
        kind = getattr(torch, np.dtype(dtype).name)
        return torch.empty(shape, dtype=kind, device=owner.device)
    return DeviceArray(shape, dtype, ordinal)


def x_beside(like: View, shape: Index, dtype: Any, columns: bool) -> View:
    """Returns an array for x on the device of like, of which every entry is
    NaN; by columns if its last two axes are those of columns. Its memory may
    have been that of another array, for whose last work taken() waits."""
    if columns:
        *head, n, k = shape
        made = _empty(like, (*head, k, n), dtype).swapaxes(-2, -1)
    else:
        made = _empty(like, shape, dtype)
    view: View = taken(made, "x")
    if view.place is not None:
        _driver.fill(view.place, view.address, view.size * view.itemsize)
    return view
