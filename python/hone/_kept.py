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
from ._report import NO_COLUMNS, Report
from ._watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Self


class Held:
    """What one call gives the library to keep: arrays, which it borrows, and
    what is to be known of them. told is the report of the call."""

    def __init__(self, a: Any, told: Any, known: Any) -> None:
        self.a = a
        self.told = told
        self.known = known
        self.before: Optional[Held] = None
        told.status = Status.BUSY  # until the library says otherwise

    @property
    def taken(self) -> bool:
        return self.told.status not in REFUSED


class Kept:
    """A handle, which destroy frees, and what the library borrows.

    A signal's handler may raise an exception at any place, just before the
    library is called too, or just after. So what is new is held beside what
    was there before, and the library's own report tells which one counts.

    Calls from several threads wait for one another.
    """

    def __init__(self, destroy: Any) -> None:
        self._handle = ctypes.c_void_p()
        self._destroy = destroy
        self._locks: dict[int, Any] = {}  # one for each process
        self._watch: Optional[Watch] = None
        self._last: Optional[Held] = None
        self._told: tuple[Optional[Held], Optional[Report]] = None, None

    @property
    def report(self) -> Optional[Report]:
        """The report of the last call of factor, update or solve."""
        held = self._held
        at, report = self._told
        if held is None or at is held:
            return report
        return Report(held.told, NO_COLUMNS)

    def _tell(self, report: Report) -> Report:
        """Returns the report of a call that has ended, and keeps it."""
        self._told = self._held, report
        return report

    @property
    def _held(self) -> Optional[Held]:
        """What the library has now."""
        held = self._last
        while held is not None and not held.taken:
            held = held.before
        return held

    def _let_go(self) -> None:
        """Keeps nothing but what the library has."""
        held = self._held
        if held is not None:
            held.before = None
        self._last = held

    @property
    def _a(self) -> Any:
        """The arrays that the library borrows."""
        held = self._held
        return None if held is None else held.a

    @property
    def closed(self) -> bool:
        return not self._handle

    def _alone(self) -> Any:
        """Returns the lock, for a with statement that has the solver to itself.
        The statement takes a lock of Python's and gives it back whatever a
        signal's handler raises meanwhile, as one of our own would not."""
        # In the child of a fork the thread that had it may not exist.
        lock = self._locks.setdefault(os.getpid(), threading.RLock())
        if lock._is_owned():
            raise HoneBusyError(
                "a solver cannot be used by its own progress function, nor by "
                "a signal's handler that interrupts it",
                Status.BUSY,
            )
        return lock

    def _check_open(self) -> None:
        if not self._handle:
            raise HoneValueError("the solver is closed", Status.NOT_FACTORED)

    def _use(
        self,
        call: Any,
        new: Optional[Held],
        watch: Optional[Watch],
        *arguments: Any,
    ) -> int:
        """Calls call(handle, *arguments), within _alone. new is what it gives
        the library, if anything. What interrupted it is raised by
        watch.check."""
        self._let_go()
        if new is not None:
            new.before = self._last
            self._last = new
        if watch is not None:
            status = watch.run(call, self._handle, *arguments)
        else:
            status = int(call(self._handle, *arguments))
        self._let_go()
        return status

    def close(self) -> None:
        """Frees the factors and no longer refers to A. May be called again."""
        with self._alone():
            self._destroy(byref(self._handle))
            self._let_go()
            if self._last is not None:
                self._last.a = None
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
