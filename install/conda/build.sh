#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run by conda-build in a copy of the sources, with CC, CFLAGS and LDFLAGS of
# its compiler, and PREFIX and PYTHON of the package that is made.
set -eu
./configure --prefix="$PREFIX" --without-cuda --without-lapack
ninja -j "${CPU_COUNT:-1}" installable
ninja install
# The module finds the library by HONE_LIBRARY, beside itself, or where the
# loader looks, which is not conda's lib folder: it has a link to the library
# beside it.
HONE_LIBRARY=/nonexistent "$PYTHON" -m pip install --no-deps \
  --no-build-isolation --no-index -v ./python
module=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for file in libhone.so.0 libhone_lapack.so; do
  ln -sr "$PREFIX/lib/$file" "$module/hone/$file"
done
