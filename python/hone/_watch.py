# SPDX-License-Identifier: BSD-3-Clause
"""Stops a call if the caller's progress function says so or raises an
exception, and if a signal's handler raises one, as on Ctrl-C, which Python
alone would handle only after the library returns."""

from __future__ import annotations

import sys
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
            return int(function(*arguments))
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


def watch_for(function: Optional[ProgressFunction], n: int) -> Optional[Watch]:
    """Returns a Watch, or None if nothing can stop the call."""
    if function is None and n < INTERRUPTIBLE_FROM:
        return None
    return Watch(function)
