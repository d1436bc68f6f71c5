# SPDX-License-Identifier: BSD-3-Clause
"""The structures of DLPack, read from a capsule and put into one."""

from __future__ import annotations

import ctypes
import math
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16
from ctypes import c_uint32, c_uint64, c_void_p, py_object
from typing import Any, NamedTuple, Optional

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # kinds of devices
VERSION = (1, 0)  # the newest that is read here
_NAME, _VERSIONED = b"dltensor", b"dltensor_versioned"
_READ_ONLY, _COPIED = 1, 2  # flags
_FLOAT, _COMPLEX = 2, 5
# The letters of array interfaces for these codes.
_LETTERS = {0: "i", 1: "u", _FLOAT: "f", 4: "bfloat", _COMPLEX: "c", 6: "b"}


class _Tensor(ctypes.Structure):
    """DLTensor"""

    _fields_ = [
        ("data", c_void_p),
        ("device", c_int32),
        ("ordinal", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Managed(ctypes.Structure):
    """DLManagedTensor"""

    _fields_ = [
        ("tensor", _Tensor),
        ("context", c_void_p),
        ("deleter", c_void_p),
    ]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned"""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


def _of_python(name: str, result: Any, *arguments: Any) -> Any:
    function = ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))
    return function


_is_valid = _of_python("PyCapsule_IsValid", ctypes.c_int, py_object, c_char_p)
_pointer = _of_python("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
_new = _of_python("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
# Their argument is a capsule that is being destroyed, which must not be
# referred to any more.
_is_valid_at = _of_python("PyCapsule_IsValid", ctypes.c_int, c_void_p, c_char_p)
_pointer_at = _of_python("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)


class Given(NamedTuple):
    """What a capsule says."""

    device: int
    ordinal: int
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    typestr: str  # as in array interfaces
    read_only: bool  # or a copy, so that what is written there is lost


def read(capsule: Any) -> Given:
    """Returns what the capsule says. It is not consumed: it frees the memory
    when it is no longer referred to."""
    if _is_valid(capsule, _VERSIONED):
        versioned = _Versioned.from_address(_pointer(capsule, _VERSIONED))
        if versioned.major > VERSION[0]:
            raise ValueError(
                f"DLPack {versioned.major}.{versioned.minor} is too new"
            )
        read_only = bool(versioned.flags & (_READ_ONLY | _COPIED))
        tensor = versioned.tensor
    elif _is_valid(capsule, _NAME):
        tensor = _Managed.from_address(_pointer(capsule, _NAME)).tensor
        read_only = False
    else:
        raise ValueError("__dlpack__ returns no capsule of DLPack")
    item = tensor.bits // 8
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        steps = tuple(tensor.strides[i] * item for i in range(tensor.ndim))
    else:
        steps = tuple(
            item * math.prod(shape[i + 1 :]) for i in range(tensor.ndim)
        )
    letter = _LETTERS.get(tensor.code, f"?{tensor.code}:")
    lanes = f"x{tensor.lanes}" if tensor.lanes != 1 else ""
    return Given(
        tensor.device,
        tensor.ordinal,
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        steps,
        f"<{letter}{item}{lanes}",
        read_only,
    )


# ---- Capsules of our own

# What capsules and their consumers still use, by the address of its structure.
_living: dict[int, Any] = {}


def _delete(managed: Optional[int]) -> None:
    _living.pop(managed or 0, None)


def _destroy(capsule: int) -> None:
    """Deletes what nobody has taken out of the capsule: who takes it gives the
    capsule another name."""
    if _is_valid_at(capsule, _NAME):
        _delete(_pointer_at(capsule, _NAME))


# A consumer may delete an array on any thread, with the interpreter's lock or
# without; a capsule is destroyed with it.
_DELETER = ctypes.CFUNCTYPE(None, c_void_p)(_delete)
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, c_void_p)(_destroy)


def capsule_of(
    ordinal: int,
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    is_complex: bool,
    keep: Any,
) -> Any:
    """Returns a capsule for an array of double precision on a CUDA device,
    which keeps an object alive as long as the array is used."""
    item = 16 if is_complex else 8
    count = len(shape)
    extents = (c_int64 * max(1, count))(*shape)
    steps = (c_int64 * max(1, count))(*(each // item for each in strides))
    managed = _Managed(
        tensor=_Tensor(
            data=address,
            device=CUDA,
            ordinal=ordinal,
            ndim=count,
            code=_COMPLEX if is_complex else _FLOAT,
            bits=8 * item,
            lanes=1,
            shape=extents,
            strides=steps,
        ),
        deleter=ctypes.cast(_DELETER, c_void_p),
    )
    place = ctypes.addressof(managed)
    _living[place] = managed, extents, steps, keep
    return _new(place, _NAME, ctypes.cast(_DESTRUCTOR, c_void_p))
