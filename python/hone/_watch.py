# SPDX-License-Identifier: BSD-3-Clause
"""Stops a call if the caller's progress function says so or raises an
exception, and on Ctrl-C, which Python alone would handle only after the library
returns."""

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
        except BaseException as error:  # raised again by run
            self.raised = error
            return 1

    def _interrupt(self, _number: int, _frame: Any) -> None:
        self.interrupted = True

    def run(self, function: Any, *arguments: Any) -> int:
        """Calls function(*arguments). Raises the exception of the progress
        function, or KeyboardInterrupt."""
        self.raised = None
        self.interrupted = False
        # A signal handler that raises an exception may interrupt a callback
        # before its first line, where nothing catches the exception. The
        # handler therefore only sets a flag.
        ours = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if ours:
            signal.signal(signal.SIGINT, self._interrupt)
        try:
            status: int = function(*arguments)
        finally:
            if ours:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.raised is not None:
            error, self.raised = self.raised, None
            raise error
        if self.interrupted:
            raise KeyboardInterrupt
        return status


def watch_for(function: Optional[ProgressFunction], n: int) -> Optional[Watch]:
    """Returns a Watch, or None if nothing can stop the call."""
    if function is None and n < INTERRUPTIBLE_FROM:
        return None
    return Watch(function)
