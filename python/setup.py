# SPDX-License-Identifier: BSD-3-Clause
"""Puts the library beside the package where it has been built already.

It is taken from HONE_LIBRARY or the build folder of this checkout. Where
there is none the package is installed without it, and the loader finds an
installed libhone.so.0 when the package is imported.
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
