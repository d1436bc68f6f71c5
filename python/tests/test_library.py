# SPDX-License-Identifier: BSD-3-Clause
"""Where the library is looked for, and the messages if it is missing. Each case
imports a copy of the package in a process of its own."""

import ctypes.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import hone
from hone._abi import SONAME, lib

SAY = "import hone; print(hone._abi.lib._name, hone.version())"


class Found(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.package = self.top / "checkout" / "python" / "hone"
        shutil.copytree(
            Path(hone.__file__).parent,
            self.package,
            ignore=shutil.ignore_patterns("lib*", "__pycache__"),
        )
        self.library = self.real()

    def real(self):
        """Returns the file of the library that this process has loaded."""
        for line in Path("/proc/self/maps").read_text().splitlines():
            if line.endswith(SONAME):
                return line.split(maxsplit=5)[5]
        raise AssertionError(lib._name)

    def run_python(self, **environment):
        clean = {
            name: value
            for name, value in os.environ.items()
            if name not in ("HONE_LIBRARY", "LD_LIBRARY_PATH", "PYTHONPATH")
        }
        clean.update(environment, PYTHONPATH=str(self.package.parent))
        return subprocess.run(
            [sys.executable, "-B", "-c", SAY],
            env=clean,
            cwd=self.top,
            capture_output=True,
            text=True,
        )

    def loads(self, path, **environment):
        done = self.run_python(**environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split(), [str(path), hone.version()])

    def fails(self, *texts, **environment):
        done = self.run_python(**environment)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("ImportError: hone: ", done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def place(self, *parts):
        target = self.top.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.library, target)
        return target

    def test_where_the_environment_says(self):
        self.place("checkout", "python", "hone", SONAME)
        self.loads(self.library, HONE_LIBRARY=self.library)

    def test_beside_the_package(self):
        beside = self.place("checkout", "python", "hone", SONAME)
        self.place("checkout", "build", SONAME)
        self.place("checkout", "api", "hone.h")
        self.loads(beside)

    def test_in_the_build_folder_of_a_checkout(self):
        built = self.place("checkout", "build", SONAME)
        self.place("checkout", "api", "hone.h")
        self.loads(built)

    def test_on_the_path_of_the_loader(self):
        self.place("lib", SONAME)
        self.loads(SONAME, LD_LIBRARY_PATH=str(self.top / "lib"))

    def test_nowhere(self):
        if ctypes.util.find_library("hone"):
            self.skipTest("a Hone is installed here")
        self.fails("HONE_LIBRARY", "ninja", SONAME)

    def test_not_where_the_environment_says(self):
        self.place("checkout", "python", "hone", SONAME)
        self.fails("/no/such/file", HONE_LIBRARY="/no/such/file")

    def test_another_library(self):
        other = ctypes.util.find_library("m")
        self.fails("is not a Hone library", other, HONE_LIBRARY=other)

    def test_no_library_at_all(self):
        text = self.top / "text"
        text.write_text("no library")
        self.fails(str(text), HONE_LIBRARY=str(text))


class Kept(unittest.TestCase):
    @unittest.skipUnless(hasattr(ctypes, "_reset_cache"), "for CPython")
    def test_where_another_interpreter_imports_ctypes(self):
        # That empties ctypes' cache of pointers for the whole process.
        say = (
            "import ctypes, hone; hone.solve([[2.0]], [4.0]); "
            "ctypes._reset_cache(); print(hone.solve([[2.0]], [4.0]))"
        )
        done = subprocess.run(
            [sys.executable, "-B", "-c", say], capture_output=True, text=True
        )
        self.assertEqual(done.stdout.split(), ["[2.]"], done.stderr)


if __name__ == "__main__":
    unittest.main()
