# SPDX-License-Identifier: BSD-3-Clause
"""Hone solves dense A x = b to full double accuracy and verifies every answer.

    import hone
    x = hone.solve(A, b)                      # like numpy.linalg.solve
    x, report = hone.solve(A, b, return_report=True)

    x, results = hone.solve_batch(A, b)       # stacks, a verdict on each

    with hone.factor(A) as solver:            # factor once, solve often
        x = solver.solve(b)
        y = solver.update(A2).solve(b)        # a nearby matrix

    with hone.factor_batch(A) as solver:      # a stack of matrices
        x, results = solver.solve(b)

A and b may be real or complex; hone.solve(A, b, trans="C") solves A^H x = b.
If x is less accurate than asked, a HoneWarning says so; errors are exceptions
with the text of their status. Options have the names of hone.h, such as
device="cpu", structure="spd", threads=4, extra_precise=True.

A and b may lie on a CUDA device: arrays of CuPy, PyTorch and others that have
__cuda_array_interface__ or __dlpack__. x is then made where b lies.
"""

from ._abi import VERSION as __version__
from ._batch import BatchResult, solve_batch
from ._batch_solver import BatchSolver, factor_batch
from ._device import DeviceArray
from ._enums import Arithmetic, BlockRows, Criterion, Device, Diagonal, Factor
from ._enums import Found, Layout, Pivoting, Residuals, Status, Structure
from ._enums import Trans, Triangle, status_text
from ._errors import HoneBusyError, HoneCancelledError, HoneDeviceError
from ._errors import HoneError
from ._errors import HoneInternalError, HoneMemoryError, HoneOverflowError
from ._errors import HoneSingularError, HoneTypeError, HoneValueError
from ._errors import HoneWarning, HoneWeakError
from ._memory import DeviceMemory, HostMemory, device_memory_needed
from ._memory import memory_needed, release_kept, version
from ._options import Options, Progress
from ._report import Report
from ._solve import solve
from ._solver import Solver, factor

__all__ = [
    "Arithmetic",
    "BatchResult",
    "BatchSolver",
    "BlockRows",
    "Criterion",
    "Device",
    "DeviceArray",
    "DeviceMemory",
    "Diagonal",
    "Factor",
    "Found",
    "HoneBusyError",
    "HoneCancelledError",
    "HoneDeviceError",
    "HoneError",
    "HoneInternalError",
    "HoneMemoryError",
    "HoneOverflowError",
    "HoneSingularError",
    "HoneTypeError",
    "HoneValueError",
    "HoneWarning",
    "HoneWeakError",
    "HostMemory",
    "Layout",
    "Options",
    "Pivoting",
    "Progress",
    "Report",
    "Residuals",
    "Solver",
    "Status",
    "Structure",
    "Trans",
    "Triangle",
    "__version__",
    "device_memory_needed",
    "factor",
    "factor_batch",
    "memory_needed",
    "release_kept",
    "solve",
    "solve_batch",
    "status_text",
    "version",
]
