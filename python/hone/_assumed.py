# SPDX-License-Identifier: BSD-3-Clause
"""What a caller says of A in SciPy's words: which of its entries count."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import COMPLEX, Numbers
from ._errors import bad_type, bad_value
from ._view import View

# SciPy's names, and what A is then.
_KINDS = {
    "general": "general",
    "gen": "general",
    "symmetric": "symmetric",
    "sym": "symmetric",
    "hermitian": "hermitian",
    "her": "hermitian",
    "positive definite": "definite",
    "pos": "definite",
    "diagonal": "diagonal",
    "tridiagonal": "tridiagonal",
    "banded": "banded",
    "upper triangular": "upper",
    "lower triangular": "lower",
}


def _mirrored(a: Numbers, lower: bool, conjugate: bool) -> Numbers:
    """Returns the matrices whose entries are those of one triangle of a, and
    their mirror images; a itself if it has them already."""
    half = np.tril(a) if lower else np.triu(a)
    other = np.swapaxes(np.tril(a, -1) if lower else np.triu(a, 1), -2, -1)
    if conjugate:
        other = other.conj()
        place = np.arange(a.shape[-1])
        half[..., place, place] = half[..., place, place].real
    whole: Numbers = half + other
    return a if np.array_equal(whole, a) else whole


def _kept(a: Numbers, kind: str) -> Numbers:
    """Returns a without the entries that do not count."""
    part = a
    if kind in ("lower", "diagonal", "tridiagonal"):
        part = np.tril(part, 1 if kind == "tridiagonal" else 0)
    if kind in ("upper", "diagonal", "tridiagonal"):
        part = np.triu(part, -1 if kind == "tridiagonal" else 0)
    return a if np.array_equal(part, a) else part


def assumed(
    a: Numbers, assume_a: Any, lower: bool, stacked: bool
) -> tuple[Numbers, dict[str, str]]:
    """Returns a, or a copy that has only the entries that count, and what that
    is in the library's options. Of a system that is in no stack it reads one
    triangle itself; a copy has both."""
    if not isinstance(assume_a, str) or assume_a not in _KINDS:
        names = ", ".join(repr(each) for each in _KINDS)
        raise bad_value(f"assume_a={assume_a!r}: it must be one of {names}")
    kind = _KINDS[assume_a]
    said = {"triangle": "both"}
    if kind == "general":
        return a, {"structure": "general", **said}
    if isinstance(a, View):
        raise bad_type(
            f"assume_a={assume_a!r} needs an A in host memory: on a device all "
            'of A counts. structure="spd" says that it is positive definite'
        )
    if kind in ("symmetric", "hermitian", "definite"):
        conjugate = a.dtype == COMPLEX and kind != "symmetric"
        part = "lower" if lower else "upper"
        said["triangle"] = part if conjugate else part + "_symmetric"
        if kind == "definite":
            said["structure"] = "spd"
        return _mirrored(a, lower, conjugate) if stacked else a, said
    return _kept(a, kind), said
