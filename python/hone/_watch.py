# SPDX-License-Identifier: BSD-3-Clause
"""Stops a call if the caller's progress function says so or raises an
exception, and if a signal's handler raises one, as on Ctrl-C, which Python
alone would handle only after the library returns."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any, Optional

from . import _abi
from ._enums import Status
from ._errors import error_of
from ._options import Progress, ProgressFunction

# Smaller systems are solved before Ctrl-C could stop them, unless they have
# many columns: so many entries of A times columns take a tenth of a second. A
# solver does not know how many there will be, but may be given so many.
INTERRUPTIBLE_FROM = 1000
INTERRUPTIBLE_WORK = 10**8
SOLVER_COLUMNS = 1000


class _Calls:
    """The calls with a callback that threads other than the main one make. When
    Python ends it ends such a thread as it calls back, and the library's own
    threads would go on with what it had on its stack."""

    AT_MOST_S = 5.0

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.watches: list[Watch] = []
        self.ending = False

    def begin(self, watch: Watch) -> bool:
        """Makes the call one of these; returns False if Python ends."""
        with self.lock:
            if not self.ending:
                self.watches.append(watch)
            return not self.ending

    def end(self, watch: Watch) -> None:
        with self.lock:
            self.watches.remove(watch)

    def stop(self) -> None:
        """Stops all of them, and waits until they have ended; a progress
        function may wait for the main thread, and is not waited for long."""
        with self.lock:
            self.ending = True
            for watch in self.watches:
                watch.interrupted = True
        until = time.monotonic() + self.AT_MOST_S
        while self.watches and time.monotonic() < until:
            time.sleep(0.001)


class Watch:
    """Calls the progress function for the library. It must live as long as the
    options that point to it."""

    def __init__(self, function: Optional[ProgressFunction]) -> None:
        self.raised: Optional[BaseException] = None
        self.interrupted = False
        self.function = function
        self.callback = _abi.PROGRESS_FN(self._event)

    def _event(self, _user: Any, event: Any) -> int:
        if self.interrupted:
            return 1
        if self.function is None:
            return 0
        try:
            e = event.contents
            told = Progress(
                e.phase.decode(),
                e.fraction,
                e.elapsed_s,
                e.iteration,
                e.precision,
                e.backward_error,
                bool(e.gmres),
            )
            return 1 if self.function(told) else 0
        except BaseException as error:  # raised again by check
            self.raised = error
            return 1

    def _catch(self, told: Any) -> bool:
        """Keeps an exception that was raised by a signal's handler in a
        callback before its first line or after its last one, where only
        sys.unraisablehook is told of it. Returns whether it is one."""
        if told.object is None:  # from Python 3.13 on the message names it
            ours = repr(self._event) in (told.err_msg or "")
        else:
            ours = told.object == self._event
        if ours and self.raised is None:
            self.raised = told.exc_value
        self.interrupted = self.interrupted or ours
        return ours

    def run(self, function: Any, *arguments: Any) -> int:
        """Calls function(*arguments) and returns its status. What the progress
        function or a signal handler has raised is raised by check."""
        self.raised = None
        self.interrupted = False
        # Python calls the handlers of signals in its main thread only.
        if threading.current_thread() is not threading.main_thread():
            calls = _calls
            if not calls.begin(self):
                raise error_of(Status.CANCELLED, None, ": Python ends")
            try:
                return int(function(*arguments))
            finally:
                if calls is _calls:  # else in the child of a fork
                    calls.end(self)
        before = sys.unraisablehook

        def hook(told: Any) -> None:
            if not self._catch(told):
                before(told)

        try:
            sys.unraisablehook = hook
            return int(function(*arguments))
        finally:
            if sys.unraisablehook is hook:
                sys.unraisablehook = before

    def check(self) -> None:
        """Raises what was raised during the last run."""
        error, self.raised = self.raised, None
        if error is None:
            return
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame


def watch_for(
    function: Optional[ProgressFunction], n: int, columns: int = 1
) -> Optional[Watch]:
    """Returns a Watch, or None if nothing can stop the call."""
    long = n >= INTERRUPTIBLE_FROM or n * n * columns >= INTERRUPTIBLE_WORK
    return Watch(function) if function is not None or long else None


_calls = _Calls()
atexit.register(lambda: _calls.stop())


def _begin_in_child() -> None:
    """The threads of the parent are not there."""
    global _calls
    _calls = _Calls()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
