# SPDX-License-Identifier: BSD-3-Clause
"""Stops a call if the caller's progress function says so or raises an
exception, and if a signal's handler raises one, as on Ctrl-C, which Python
alone would handle only after the library returns."""

from __future__ import annotations

import signal
import threading
from typing import Any, Optional

from . import _abi
from ._options import Progress, ProgressFunction

# Smaller systems are solved before Ctrl-C could stop them.
INTERRUPTIBLE_FROM = 1000


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

    def _guarded(self, handler: Any) -> Any:
        """Returns a signal handler that keeps what this one raises, and has
        the call stop."""

        def caught(number: int, frame: Any) -> None:
            try:
                handler(number, frame)
            except BaseException as error:  # raised again by check
                self.raised = error
                self.interrupted = True

        return caught

    def run(self, function: Any, *arguments: Any) -> int:
        """Calls function(*arguments) and returns its status. What the progress
        function or a signal handler has raised is raised by check."""
        self.raised = None
        self.interrupted = False
        # A signal handler that raises an exception, as that of Ctrl-C does, may
        # interrupt a callback before its first line, where nothing catches the
        # exception.
        handlers = {}
        if threading.current_thread() is threading.main_thread():
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    handlers[number] = handler, self._guarded(handler)
        try:
            for number, (_, guarded) in handlers.items():
                signal.signal(number, guarded)
            status: int = function(*arguments)
        finally:
            for number, (handler, guarded) in handlers.items():
                if signal.getsignal(number) is guarded:
                    signal.signal(number, handler)
        return status

    def check(self) -> None:
        """Raises what was raised during the last run."""
        error, self.raised = self.raised, None
        if error is None:
            return
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame


def watch_for(function: Optional[ProgressFunction], n: int) -> Optional[Watch]:
    """Returns a Watch, or None if nothing can stop the call."""
    if function is None and n < INTERRUPTIBLE_FROM:
        return None
    return Watch(function)
