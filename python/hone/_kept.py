# SPDX-License-Identifier: BSD-3-Clause
"""The part of a solver that does not depend on its matrices: the library's
handle, and the rule that one call at a time uses it."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import byref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional

from ._enums import Status
from ._errors import REFUSED, HoneBusyError, HoneValueError
from ._report import Report
from ._watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Self


class Kept:
    """A handle, which destroy frees, and the arrays that the library borrows.

    Calls from several threads wait for one another.
    """

    def __init__(self, destroy: Any) -> None:
        self._handle = ctypes.c_void_p()
        self._destroy = destroy
        self._lock: Any = threading.RLock()
        self._process = os.getpid()
        self._report: Optional[Report] = None
        self._watch: Optional[Watch] = None
        self._a: Any = None  # the arrays that the library borrows

    @property
    def report(self) -> Optional[Report]:
        """The report of the last call of factor, update or solve."""
        return self._report

    @property
    def closed(self) -> bool:
        return not self._handle

    def _alone(self) -> Any:
        """Returns the lock, for a with statement that has the solver to itself.
        The statement takes a lock of Python's and gives it back whatever a
        signal's handler raises meanwhile, as one of our own would not."""
        if self._process != os.getpid():
            # The thread that had it may not exist in the child of a fork.
            self._process = os.getpid()
            self._lock = threading.RLock()
        if self._lock._is_owned():
            raise HoneBusyError(
                "a solver cannot be used by its own progress function, nor by "
                "a signal's handler that interrupts it",
                Status.BUSY,
            )
        return self._lock

    def _check_open(self) -> None:
        if not self._handle:
            raise HoneValueError("the solver is closed", Status.NOT_FACTORED)

    def _use(
        self, call: Any, a: Any, watch: Optional[Watch], *arguments: Any
    ) -> int:
        """Calls call(handle, *arguments), within _alone. a is what it borrows,
        if anything. What interrupted it is raised by watch.check."""
        before = self._a
        if a is not None:
            self._a = a, before  # keeps both during the call
        status: int = Status.OK
        try:
            if watch is not None:
                status = watch.run(call, self._handle, *arguments)
            else:
                status = call(self._handle, *arguments)
            return status
        finally:
            if a is not None:
                self._a = before if status in REFUSED else a

    def close(self) -> None:
        """Frees the factors and no longer refers to A. May be called again."""
        with self._alone():
            self._destroy(byref(self._handle))
            self._a = None
            self._watch = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            self._destroy(byref(handle))

    def __reduce_ex__(self, _protocol: Any) -> Any:
        kind = type(self).__name__
        raise TypeError(f"a hone.{kind} can be neither copied nor pickled")
