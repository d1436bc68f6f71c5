# SPDX-License-Identifier: BSD-3-Clause
"""Runs a Python program with the drop-in for LAPACK before NumPy's and SciPy's
own LAPACK. The program itself does not change.

    python -m hone.preload program.py [ARGUMENT...]
    python -m hone.preload -m module [ARGUMENT...]
    python -m hone.preload -c command
    python -m hone.preload --path     prints the file, for LD_PRELOAD elsewhere

Its children inherit LD_PRELOAD. HONE_LOG=1 prints a line for each call;
docs/lapack.md has the other variables, and the calls that are served.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ._abi import library_path

NAME = "libhone_lapack.so"


def path() -> str:
    """Returns the drop-in's file. It is beside the library; if that is where
    the loader finds it, so is the drop-in."""
    library = library_path()
    if os.sep not in library:
        return NAME
    file = Path(library).resolve().with_name(NAME)
    if not file.is_file():
        raise SystemExit(f"hone.preload: there is no {file}")
    if set(" :") & set(str(file)):
        raise SystemExit(f"hone.preload: LD_PRELOAD cannot name {file}")
    return str(file)


def main(arguments: list[str]) -> None:
    """Replaces this process by the program."""
    if not arguments or arguments[0] in ("-h", "--help"):
        raise SystemExit((__doc__ or "").strip())
    if arguments == ["--path"]:
        print(path())
        return
    given = os.environ.get("LD_PRELOAD")
    os.environ["LD_PRELOAD"] = f"{path()}:{given}" if given else path()
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
