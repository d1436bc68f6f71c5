# SPDX-License-Identifier: BSD-3-Clause
"""The declarations of hone.h, hone_batch.h and hone_tuning.h in ctypes, and the
library.

tests/packaging/abi.py compares the structures, the constants and the calls
with the headers, as the C compiler sees them.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int32
from ctypes import c_int64, c_size_t, c_void_p
from pathlib import Path

SONAME = "libhone.so.0"
VERSION = "0.1.0"  # of the header that this file mirrors


class Column(ctypes.Structure):
    """hone_column"""

    _fields_ = [
        ("status", c_int32),
        ("iterations", c_int32),
        ("precision", c_int32),
        ("digits", c_int32),
        ("backward_error", c_double),
        ("normwise_error", c_double),
        ("residual_error", c_double),
        ("forward_error", c_double),
    ]


class Progress(ctypes.Structure):
    """hone_progress"""

    _fields_ = [
        ("phase", c_char_p),
        ("fraction", c_double),
        ("elapsed_s", c_double),
        ("iteration", c_int32),
        ("precision", c_int32),
        ("backward_error", c_double),
        ("gmres", c_int32),
        ("reserved", c_int32),
    ]


PROGRESS_FN = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Progress))


class Tuning(ctypes.Structure):
    """hone_tuning"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("arithmetic", c_int32),
        ("pivoting", c_int32),
        ("diagonal", c_int32),
        ("block_rows", c_int32),
        ("residuals", c_int32),
        ("reserved", c_int32),
    ]


# Kept, because an interpreter beside this one that imports ctypes empties the
# cache by which ctypes.pointer would find it.
TUNING_POINTER = POINTER(Tuning)


class Options(ctypes.Structure):
    """hone_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("column_size", c_size_t),
        ("device", c_int32),
        ("factor_precision", c_int32),
        ("structure", c_int32),
        ("layout", c_int32),
        ("criterion", c_int32),
        ("extra_precise", c_int32),
        ("max_iterations", c_int32),
        ("threads", c_int32),
        ("deterministic", c_int32),
        ("trans", c_int32),
        ("tolerance", c_double),
        ("x0", c_void_p),
        ("ldx0", c_int64),
        ("columns", c_void_p),
        ("deadline_s", c_double),
        ("progress", PROGRESS_FN),
        ("progress_user", c_void_p),
        ("memory_limit_bytes", c_int64),
        ("device_memory_limit_bytes", c_int64),
        ("alloc", c_void_p),
        ("free", c_void_p),
        ("alloc_ctx", c_void_p),
        ("tuning", TUNING_POINTER),
        ("devices", c_int32),
        ("triangle", c_int32),
        ("error_bounds", c_void_p),
        ("ld_error_bounds", c_int64),
    ]


class Report(ctypes.Structure):
    """hone_report"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("status", c_int32),
        ("accepted", c_int32),
        ("n", c_int64),
        ("nrhs", c_int64),
        ("backward_error", c_double),
        ("normwise_error", c_double),
        ("residual_error", c_double),
        ("forward_error", c_double),
        ("tolerance", c_double),
        ("iterations", c_int32),
        ("precision", c_int32),
        ("fallback_columns", c_int32),
        ("digits", c_int32),
        ("gmres_steps", c_int32),
        ("threads", c_int32),
        ("bad_row", c_int64),
        ("bad_col", c_int64),
        ("norm1", c_double),
        ("rcond", c_double),
        ("growth", c_double),
        ("max_abs", c_double),
        ("min_abs", c_double),
        ("scale_exponent_min", c_int32),
        ("scale_exponent_max", c_int32),
        ("underflows", c_int64),
        ("inspect_ms", c_double),
        ("factor_ms", c_double),
        ("refine_ms", c_double),
        ("certify_ms", c_double),
        ("fallback_ms", c_double),
        ("total_ms", c_double),
        ("host_passes", c_int32),
        ("device_passes", c_int32),
        ("host_bytes", c_int64),
        ("device_bytes", c_int64),
        ("to_device_bytes", c_int64),
        ("from_device_bytes", c_int64),
        ("device", c_char * 64),
        ("path", c_char * 160),
        ("reason", c_char * 320),
        ("certificate_steps", c_int32),
        ("structure", c_int32),
        ("null_count", c_int64),
        ("null_index", c_int64 * 8),
        ("null_weight", c_double * 8),
        ("min_pivot_row", c_int64),
        ("min_pivot_col", c_int64),
        ("dependent_count", c_int64),
        ("dependent_index", c_int64 * 8),
        ("dependent_weight", c_double * 8),
        ("diagonal_ms", c_double),
        ("diagonal_wait_ms", c_double),
        ("block_rows", c_int32),
        ("block_row_sweeps", c_int32),
        ("block_row_sweeps_max", c_int32),
        ("block_row_fallbacks", c_int32),
        ("bound_failure", c_double),
        ("sparse_columns", c_int32),
    ]


class BatchResult(ctypes.Structure):
    """hone_batch_result"""

    _fields_ = [
        ("status", c_int32),
        ("iterations", c_int32),
        ("precision", c_int32),
        ("digits", c_int32),
        ("backward_error", c_double),
        ("normwise_error", c_double),
        ("residual_error", c_double),
        ("forward_error", c_double),
        ("rcond", c_double),
        ("row", c_int32),
        ("col", c_int32),
        ("log_abs_det", c_double),
        ("det_re", c_double),
        ("det_im", c_double),
    ]


class Batch(ctypes.Structure):
    """hone_batch and hone_z_batch"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("result_size", c_size_t),
        ("count", c_int64),
        ("n", c_int64),
        ("orders", c_void_p),
        ("nrhs", c_int64),
        ("a", c_void_p),
        ("lda", c_int64),
        ("stride_a", c_int64),
        ("a_list", c_void_p),
        ("b", c_void_p),
        ("ldb", c_int64),
        ("stride_b", c_int64),
        ("b_list", c_void_p),
        ("x", c_void_p),
        ("ldx", c_int64),
        ("stride_x", c_int64),
        ("x_list", c_void_p),
        ("determinants", c_int32),
        ("reserved", c_int32),
    ]


def new_options() -> Options:
    """HONE_OPTIONS_INIT"""
    return Options(
        struct_size=ctypes.sizeof(Options), column_size=ctypes.sizeof(Column)
    )


def new_report() -> Report:
    """HONE_REPORT_INIT"""
    return Report(struct_size=ctypes.sizeof(Report))


def new_tuning() -> Tuning:
    """HONE_TUNING_INIT"""
    return Tuning(struct_size=ctypes.sizeof(Tuning))


def new_batch() -> Batch:
    """HONE_BATCH_INIT"""
    return Batch(
        struct_size=ctypes.sizeof(Batch),
        result_size=ctypes.sizeof(BatchResult),
    )


STRUCTS = {
    "hone_column": Column,
    "hone_progress": Progress,
    "hone_options": Options,
    "hone_tuning": Tuning,
    "hone_report": Report,
    "hone_batch_result": BatchResult,
    "hone_batch": Batch,
    "hone_z_batch": Batch,
}

# Arrays, of double or of Column, are passed as addresses (c_void_p).
_REPORT = POINTER(Report)
_OPTIONS = POINTER(Options)
_INT64 = POINTER(c_int64)
_BATCH = [POINTER(Batch), _OPTIONS, c_void_p, _REPORT]
_BATCH_CREATE = [POINTER(c_void_p), _OPTIONS]
_BATCH_FACTOR = [c_void_p, POINTER(Batch), c_void_p, _REPORT]
FUNCTIONS = {
    "hone_status_text": (c_char_p, [c_int]),
    "hone_version": (c_char_p, []),
    "hone_options_init": (None, [_OPTIONS, c_size_t]),
    "hone_report_init": (None, [_REPORT, c_size_t]),
    "hone_solve": (
        c_int,
        [c_int64, c_int64, c_void_p, c_int64, c_void_p, c_int64, c_void_p]
        + [c_int64, _OPTIONS, _REPORT],
    ),
    "hone_solver_create": (c_int, [POINTER(c_void_p), c_int64, _OPTIONS]),
    "hone_solver_factor": (c_int, [c_void_p, c_void_p, c_int64, _REPORT]),
    "hone_solver_update": (c_int, [c_void_p, c_void_p, c_int64, _REPORT]),
    "hone_solver_solve": (
        c_int,
        [c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_int64]
        + [_OPTIONS, _REPORT],
    ),
    "hone_solver_destroy": (None, [POINTER(c_void_p)]),
    "hone_z_solve": (
        c_int,
        [c_int64, c_int64, c_void_p, c_int64, c_void_p, c_int64, c_void_p]
        + [c_int64, _OPTIONS, _REPORT],
    ),
    "hone_z_solver_create": (c_int, [POINTER(c_void_p), c_int64, _OPTIONS]),
    "hone_z_solver_factor": (c_int, [c_void_p, c_void_p, c_int64, _REPORT]),
    "hone_z_solver_update": (c_int, [c_void_p, c_void_p, c_int64, _REPORT]),
    "hone_z_solver_solve": (
        c_int,
        [c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_int64]
        + [_OPTIONS, _REPORT],
    ),
    "hone_z_solver_destroy": (None, [POINTER(c_void_p)]),
    "hone_batch_solve": (c_int, _BATCH),
    "hone_z_batch_solve": (c_int, _BATCH),
    "hone_batch_solver_create": (c_int, _BATCH_CREATE),
    "hone_batch_solver_factor": (c_int, _BATCH_FACTOR),
    "hone_batch_solver_solve": (c_int, [c_void_p, *_BATCH]),
    "hone_batch_solver_destroy": (None, [POINTER(c_void_p)]),
    "hone_z_batch_solver_create": (c_int, _BATCH_CREATE),
    "hone_z_batch_solver_factor": (c_int, _BATCH_FACTOR),
    "hone_z_batch_solver_solve": (c_int, [c_void_p, *_BATCH]),
    "hone_z_batch_solver_destroy": (None, [POINTER(c_void_p)]),
    "hone_z_memory_needed": (
        c_int,
        [c_int64, c_int64, _OPTIONS, _INT64, _INT64],
    ),
    "hone_z_device_memory_needed": (
        c_int,
        [c_int64, _OPTIONS, _INT64, _INT64],
    ),
    "hone_memory_needed": (c_int, [c_int64, c_int64, _OPTIONS, _INT64, _INT64]),
    "hone_device_memory_needed": (c_int, [c_int64, _OPTIONS, _INT64, _INT64]),
    "hone_release_kept": (c_int64, []),
    "hone_report_json": (c_size_t, [_REPORT, c_char_p, c_size_t]),
    "hone_report_text": (c_size_t, [_REPORT, c_char_p, c_size_t]),
}

_ADVICE = (
    "build it (./configure && ninja in the Hone sources) and install this "
    "package again (pip install ./python there), or set HONE_LIBRARY to "
    "build/libhone.so.0, or install it where the loader looks (ninja install, "
    "then ldconfig)"
)


def library_path() -> str:
    """Returns the library's file: $HONE_LIBRARY, the one beside the package, or
    the one in the build folder of the checkout that has the package. Otherwise
    the loader looks for it."""
    here = Path(__file__).resolve().parent
    checkout = here.parent.parent
    given = os.environ.get("HONE_LIBRARY")
    if given:
        return given
    if (here / SONAME).is_file():
        return str(here / SONAME)
    if (checkout / "api" / "hone.h").is_file():
        built = checkout / "build" / SONAME
        if built.is_file():
            return str(built)
    return SONAME


def load() -> ctypes.CDLL:
    """Loads the library and declares its functions. An ImportError says what to
    do."""
    path = library_path()
    try:
        library = ctypes.CDLL(path)
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
    except OSError as error:
        raise ImportError(
            f"hone: cannot load its library: {error}. To get it, {_ADVICE}"
        ) from error
    except AttributeError as error:
        raise ImportError(
            f"hone: {path} is not a Hone library, or another version: {error}"
        ) from error
    found = library.hone_version().decode()
    if found.split(".")[0] != VERSION.split(".")[0]:
        raise ImportError(
            f"hone: {path} is version {found}; this package is for {VERSION}"
        )
    return library


lib = load()
