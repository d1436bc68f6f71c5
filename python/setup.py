# SPDX-License-Identifier: BSD-3-Clause
"""Copies the library into the package if it has been built.

It is taken from HONE_LIBRARY or the build folder of this checkout. If there is
none the package is installed without it, and the loader must find an installed
libhone.so.0 when the package is imported.
"""

import os
import shutil
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

BUILT = Path(__file__).resolve().parent.parent / "build" / "libhone.so.0"
LIBRARY = Path(os.environ.get("HONE_LIBRARY") or BUILT)


class BuildWithLibrary(build_py):
    def run(self) -> None:
        super().run()
        if LIBRARY.is_file() and not getattr(self, "editable_mode", False):
            folder = Path(self.build_lib) / "hone"
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(LIBRARY, folder / "libhone.so.0")


class MaybeBinary(Distribution):
    def has_ext_modules(self) -> bool:
        return LIBRARY.is_file()


setup(cmdclass={"build_py": BuildWithLibrary}, distclass=MaybeBinary)
