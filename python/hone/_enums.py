# SPDX-License-Identifier: BSD-3-Clause
"""The constants of hone.h and hone_tuning.h; HONE_DEVICE_CPU is Device.CPU."""

from __future__ import annotations

from enum import IntEnum

from ._abi import lib


class Status(IntEnum):
    """The result of a call. 0: every right-hand side is accepted. > 0: x is the
    best found, but weaker than asked. < 0: an error."""

    OK = 0
    NOT_CONVERGED = 1
    ILL_CONDITIONED = 2
    INTERRUPTED = 3
    NULL_POINTER = -10
    BAD_SIZE = -11
    BAD_LEADING_DIMENSION = -12
    BAD_OPTION = -13
    BAD_STRUCT_SIZE = -14
    BAD_OVERLAP = -15
    NOT_FACTORED = -16
    BUSY = -17
    NOT_FINITE_A = -20
    NOT_FINITE_B = -21
    SINGULAR = -30
    OVERFLOW = -31
    NO_MEMORY = -40
    NO_DEVICE = -50
    DEVICE_FAILED = -51
    CANCELLED = -60
    INTERNAL = -90

    @property
    def text(self) -> str:
        return status_text(self)


def status_text(status: int) -> str:
    """Returns the text of a status; any int has one."""
    if not -(2**31) <= status < 2**31:
        status = -(2**31)  # ctypes would take the last bits
    text: bytes = lib.hone_status_text(status)
    return text.decode()


class Layout(IntEnum):
    COL_MAJOR = 0
    ROW_MAJOR = 1


class Trans(IntEnum):
    NO_TRANS = 0
    TRANS = 1
    CONJ_TRANS = 2


class Device(IntEnum):
    """The device on which the factorization runs."""

    AUTO = 0
    CPU = 1
    CUDA = 2


class Factor(IntEnum):
    """The precision of the first factorization."""

    AUTO = 0
    SINGLE = 1
    DOUBLE = 2


class Structure(IntEnum):
    """The structure of A, as far as the caller knows it."""

    AUTO = 0
    SPD = 1
    GENERAL = 2


class Triangle(IntEnum):
    """The part of A that is read. One triangle is that of a symmetric or
    Hermitian matrix, or, with _SYMMETRIC, of a symmetric one in any case."""

    BOTH = 0
    LOWER = 1
    UPPER = 2
    LOWER_SYMMETRIC = 3
    UPPER_SYMMETRIC = 4


class Found(IntEnum):
    """The structure of A that was found, in Report.structure."""

    GENERAL = 0
    DEFINITE = 1
    BANDED = 2
    TRIANGULAR = 3
    DIAGONAL = 4


class Criterion(IntEnum):
    """The error of x that the tolerance limits."""

    COMPONENTWISE = 0
    NORMWISE = 1
    RESIDUAL = 2


class Arithmetic(IntEnum):
    """The arithmetic of the factorization's products on a GPU."""

    AUTO = 0
    FP32 = 1
    TF32 = 2
    FP16X3 = 3
    BF16X3 = 4
    FP16 = 5
    BF16 = 6


class Pivoting(IntEnum):
    AUTO = 0
    BLOCK = 1
    NONE = 2


class Diagonal(IntEnum):
    AUTO = 0
    GPU = 1
    CPU = 2


class BlockRows(IntEnum):
    AUTO = 0
    TRSM = 1
    SEEDED = 2
    CROUT = 3


class Residuals(IntEnum):
    AUTO = 0
    HOST = 1
    TWICE = 2


# The prefixes of the members' names in hone.h, after HONE_.
PREFIXES: dict[type[IntEnum], str] = {
    Status: "",
    Layout: "",
    Trans: "",
    Device: "DEVICE_",
    Factor: "FACTOR_",
    Structure: "STRUCTURE_",
    Triangle: "TRIANGLE_",
    Found: "FOUND_",
    Criterion: "CRITERION_",
    Arithmetic: "ARITHMETIC_",
    Pivoting: "PIVOT_",
    Diagonal: "DIAGONAL_",
    BlockRows: "BLOCK_ROWS_",
    Residuals: "RESIDUALS_",
}


def c_names() -> dict[str, int]:
    """Returns the value of every constant by its name in hone.h."""
    names = {}
    for kind, prefix in PREFIXES.items():
        for member in kind:
            names[f"HONE_{prefix}{member.name}"] = member.value
    return names
