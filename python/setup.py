# SPDX-License-Identifier: BSD-3-Clause
"""Copies the library, and the drop-in for LAPACK, into the package if they have
been built.

They are taken from the folder of HONE_LIBRARY, which must name a file, or from
the build folder of this checkout. If nothing has been built there the package
is installed without a library, which pip -v says, and the loader must find an
installed libhone.so.0 when the package is imported.
"""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

BUILT = Path(__file__).resolve().parent.parent / "build" / "libhone.so.0"
LIBRARY = Path(os.environ.get("HONE_LIBRARY") or BUILT)
if os.environ.get("HONE_LIBRARY") and not LIBRARY.is_file():
    sys.exit(f"HONE_LIBRARY names no file: {LIBRARY}")


class BuildWithLibrary(build_py):
    def run(self) -> None:
        super().run()
        if getattr(self, "editable_mode", False):
            return
        if not LIBRARY.is_file():
            print(f"hone: {LIBRARY} is not built: no library is copied")
            return
        folder = Path(self.build_lib) / "hone"
        for file in (LIBRARY, LIBRARY.with_name("libhone_lapack.so")):
            if file.is_file():
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, folder / file.name)


class MaybeBinary(Distribution):
    def has_ext_modules(self) -> bool:
        return LIBRARY.is_file()


class OfAnyPython(bdist_wheel):
    """The library is loaded by ctypes: one wheel serves every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


setup(
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": OfAnyPython},
    distclass=MaybeBinary,
)
