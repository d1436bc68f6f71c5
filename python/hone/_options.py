# SPDX-License-Identifier: BSD-3-Clause
"""Options, with the names of hone_options. Each is checked here, because ctypes
would truncate numbers that do not fit."""

from __future__ import annotations

import operator
from enum import IntEnum
from typing import Any, Callable, Literal, NamedTuple, Optional, TypedDict
from typing import Union

import numpy as np

from . import _abi
from ._enums import Arithmetic, BlockRows, Criterion, Device, Diagonal
from ._enums import Factor, Pivoting, Residuals, Status, Structure, Trans
from ._enums import Triangle
from ._errors import bad_type, bad_value


class Progress(NamedTuple):
    """The argument of a progress function."""

    phase: str  # "inspect", "factor", "refine", "factor in double", "batch"
    fraction: float  # of this phase's work, 0 to 1; in refine 0
    elapsed_s: float  # since the call began
    # While refining:
    iteration: int  # corrections so far with these factors
    precision: int  # of the factors, 32 or 64; otherwise 0
    backward_error: float  # of the present x, the largest; otherwise NaN
    gmres: bool  # whether GMRES makes the corrections


ProgressFunction = Callable[[Progress], Optional[bool]]
Way = Union[bool, Literal["N", "T", "C"], Trans]


class Options(TypedDict, total=False):
    """The keyword arguments of every solve. None and 0 stand for the default. A
    choice is a member of its enumeration, or the member's name in upper or
    lower case: device="cpu"."""

    device: Union[Device, str, None]
    factor_precision: Union[Factor, str, None]
    criterion: Union[Criterion, str, None]
    structure: Union[Structure, str, None]
    triangle: Union[Triangle, str, None]
    arithmetic: Union[Arithmetic, str, None]
    pivoting: Union[Pivoting, str, None]
    residuals: Union[Residuals, str, None]
    diagonal: Union[Diagonal, str, None]
    block_rows: Union[BlockRows, str, None]
    threads: Optional[int]
    devices: Optional[int]
    max_iterations: Optional[int]
    memory_limit_bytes: Optional[int]
    device_memory_limit_bytes: Optional[int]
    tolerance: Optional[float]
    deadline_s: Optional[float]
    deterministic: Optional[bool]
    extra_precise: Optional[bool]
    progress: Optional[ProgressFunction]


_CHOICES: dict[str, type[IntEnum]] = {
    "device": Device,
    "factor_precision": Factor,
    "criterion": Criterion,
    "structure": Structure,
    "triangle": Triangle,
    "arithmetic": Arithmetic,
    "pivoting": Pivoting,
    "residuals": Residuals,
    "diagonal": Diagonal,
    "block_rows": BlockRows,
}
_TUNING = frozenset(
    ["arithmetic", "pivoting", "diagonal", "block_rows", "residuals"]
)
_BITS = {
    "threads": 32,
    "max_iterations": 32,
    "memory_limit_bytes": 64,
    "device_memory_limit_bytes": 64,
}
_SIGNED = ("devices",)
_NUMBERS = ("tolerance", "deadline_s")
_SWITCHES = ("deterministic", "extra_precise")
KNOWN = frozenset(
    [*_CHOICES, *_BITS, *_SIGNED, *_NUMBERS, *_SWITCHES, "progress"]
)


def _choice(name: str, value: Any) -> int:
    kind = _CHOICES[name]
    members = kind.__members__
    if isinstance(value, str):
        if value.upper() in members:
            return members[value.upper()].value
    elif isinstance(value, kind):
        return value.value
    elif isinstance(value, IntEnum):
        raise bad_type(f"{name}={value!r}: it takes a hone.{kind.__name__}")
    elif isinstance(value, (int, np.integer)):
        if int(value) in kind.__members__.values():
            return int(value)
    choices = ", ".join(repr(each.lower()) for each in members)
    raise bad_value(f"{name}={value!r}: it must be one of {choices}")


def same(name: str, given: Any, value: str) -> bool:
    """Do both mean the same choice?"""
    return _choice(name, given) == _choice(name, value)


def whole(name: str, value: Any, bits: int) -> int:
    """Returns value as an integer >= 0 that fits in so many bits."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise bad_type(f"{name}={value!r}: it must be an integer") from error
    if not 0 <= number < 1 << (bits - 1):
        raise bad_value(
            f"{name}={value!r}: it must be >= 0 and fit in {bits} bits"
        )
    return number


def _or_all(name: str, value: Any) -> int:
    """Returns value as an integer >= 0 that fits in 32 bits, or -1: all."""
    return -1 if value == -1 else whole(name, value, 32)


def number(name: str, value: Any) -> float:
    try:
        if isinstance(value, (str, bytes, bytearray)):  # float would read one
            raise TypeError
        number = float(value)
    except (TypeError, ValueError) as error:
        raise bad_type(f"{name}={value!r}: it must be a number") from error
    if not number >= 0.0:
        raise bad_value(f"{name}={value!r}: it must be >= 0")
    return number


def _switch(name: str, value: Any) -> int:
    if isinstance(value, (int, np.integer, np.bool_)) and value in (0, 1):
        return int(value)
    raise bad_type(f"{name}={value!r}: it must be True or False")


def make(given: dict[str, Any]) -> _abi.Options:
    """Returns the given options as the library takes them, except for progress,
    which the caller sets."""
    options = _abi.new_options()
    tuning = _abi.new_tuning()
    options.tuning = _abi.TUNING_POINTER(tuning)
    for name, value in given.items():
        if name not in KNOWN:
            raise TypeError(f"hone has no option {name!r}")
        if value is None:
            continue
        if name in _CHOICES:
            holder = tuning if name in _TUNING else options
            setattr(holder, name, _choice(name, value))
        elif name in _BITS:
            setattr(options, name, whole(name, value, _BITS[name]))
        elif name in _SIGNED:
            setattr(options, name, _or_all(name, value))
        elif name in _NUMBERS:
            setattr(options, name, number(name, value))
        elif name in _SWITCHES:
            setattr(options, name, _switch(name, value))
        elif not callable(value):
            raise bad_type(f"progress={value!r}: it must be callable")
    return options


def way(trans: Any) -> int:
    """Returns 0 if the system is A x = b, 1 if it is A^T x = b, and 2 if it is
    A^H x = b."""
    if isinstance(trans, str) and trans.upper() in ("N", "T", "C"):
        return "NTC".index(trans.upper())
    whole = isinstance(trans, (int, np.integer, np.bool_))
    if whole and trans in (0, 1, 2):
        return int(trans)
    raise bad_value(f"trans={trans!r}: it must be True, False, 'N', 'T' or 'C'")


def hint(status: int, options: Any) -> str:
    """Returns what to add to the text of an error: the options given."""
    if status != Status.BAD_OPTION:
        return ""
    given = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f" (given: {given})"
