# SPDX-License-Identifier: BSD-3-Clause
"""Breaks each rule of tests/check in a copy of the sources, one at a time, and
expects that the broken rule is named."""
import os
import shutil
import subprocess
import sys
import tempfile

from floors import LIBRARY

LONG = 'int hone_long(int n) {\n' + '  n++;\n' * 60 + '  return n;\n}\n'
NINE = 'void hone_nine(' + ', '.join(f'int a{i}' for i in range(9)) + ') {}\n'

# (kind expected, file, text that is appended to it)
BREAKS = (
    ('include', 'base/memory.c', '#include "refine/refine.h"\n'),
    ('include', 'refine/gmres.c', '#include "cpu_dp/residual.h"\n'),
    ('include', 'cpu_dp/dense.c', '#include "cpu_sp/apply.h"\n'),
    ('include', 'cpu_sp/lu.c', '#include "api/engines.h"\n'),
    ('include', 'gpu_sp/calls.cu', '#include "../base/base.h"\n'),
    ('include', 'cpu_dp/dense.c', '#include <cuda_runtime.h>\n'),
    ('include', 'api/hone.h', '#include <stdio.h>\n'),
    ('include', 'examples/ten_lines.c', '#include "base/base.h"\n'),
    ('circle', 'base/pool.c', '#include "refine/refine.h"\n'),
    ('function', 'api/report.c', LONG),
    ('parameters', 'gpu_sp/calls.cu', NINE),
    ('list', 'refine/forgotten.c',
     '/* SPDX-License-Identifier: BSD-3-Clause */\n'),
    ('list', 'sources', '  refine/refine.c\n'),
    ('licence', 'tests/unit/stray.h', '#define STRAY 1\n'),
    ('columns', 'api/report.c', '/* ' + 'x' * 80 + ' */\n'),
    ('file', 'refine/gmres.c', '\n' * 500),
    ('riddle', 'base/memory.c', '/* What is not there is not freed. */\n'),
    ('depfile', 'tests/emulated.ninja',
     'rule late\n  command = cc -MD -MF $out.d -c $in -o $\n      $out\n'
     '  depfile = $out.d\n'),
)

# (kind expected, {folder: C source}) of archives that break a rule of symbols.
SYMBOLS = (
    ('symbol', {'refine': 'void hone_dense(void);\n'
                          'void hone_loop(void) { hone_dense(); }\n',
                'cpu_dp': 'void hone_dense(void) {}\n'}),
    ('symbol', {'base': 'void hone_nowhere(void);\n'
                        'void hone_pool(void) { hone_nowhere(); }\n'}),
    ('circle', {'refine': 'void hone_b(void);\nvoid hone_a(void) { hone_b(); '
                          '}\n',
                'base': 'void hone_a(void);\nvoid hone_b(void) { hone_a(); }'
                        '\n'}),
    ('data', {'gpu_sp': 'int hone_hook = 1;\n'}),
    ('data', {'gpu_sp': 'int hone_hook;\n'}),
)


def copied(top, to):
    for name in sorted(os.listdir(top)):
        if name == '.git' or name == 'build' or name.startswith('build-'):
            continue
        source, target = os.path.join(top, name), os.path.join(to, name)
        if os.path.isdir(source):
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(
                '*.mtx', 'corpus', 'results', '__pycache__'))
        else:
            shutil.copy(source, target)


def archives(folder, texts):
    """Makes a folder like that of a build, with an archive for each floor."""
    for name in LIBRARY:
        source = os.path.join(folder, name + '.c')
        with open(source, 'w', encoding='utf-8') as file:
            file.write(texts.get(name, f'void hone_{name}_only(void) {{}}\n'))
        subprocess.run([os.environ.get('CC', 'cc'), '-c', name + '.c'],
                       cwd=folder, check=True)
        archive = os.path.join(folder, name + '.a')
        if os.path.exists(archive):
            os.remove(archive)
        subprocess.run(['ar', 'qcs', name + '.a', name + '.o'], cwd=folder,
                       check=True)


def run(top, failures):
    missed = 0
    with tempfile.TemporaryDirectory() as copy:
        copied(top, copy)
        before = set(failures(copy, layout=False))

        def expect(kind, what, found):
            nonlocal missed
            if kind not in {one[0] for one in found}:
                print(f'check: did not find: {kind}: {what}', file=sys.stderr)
                missed += 1

        for kind, file, added in BREAKS:
            path = os.path.join(copy, file)
            old = None
            if os.path.exists(path):
                with open(path, encoding='utf-8') as opened:
                    old = opened.read()
            with open(path, 'w', encoding='utf-8') as opened:
                opened.write((old or '') + added)
            expect(kind, f'{file}: {added[:40]!r}',
                   set(failures(copy, layout=False)) - before)
            if old is None:
                os.remove(path)
            else:
                with open(path, 'w', encoding='utf-8') as opened:
                    opened.write(old)
        build = os.path.join(copy, 'build')
        os.mkdir(build)
        for kind, texts in SYMBOLS:
            archives(build, texts)
            expect(kind, str(texts),
                   set(failures(copy, build, layout=False)) - before)
    if missed:
        return 1
    print(f'check: found all of {len(BREAKS) + len(SYMBOLS)} broken rules')
    return 0
