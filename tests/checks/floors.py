# SPDX-License-Identifier: BSD-3-Clause
"""Checks which folder uses which, from the includes of the sources and the
symbols of the archives. docs/developing.md shows the folders as floors of a
house."""
import collections
import os
import re
import subprocess

LIBRARY = ('api', 'base', 'refine', 'cpu_batch', 'cpu_dp', 'cpu_factor',
           'cpu_sp', 'gpu_sp')

# The folders that each folder may include. The objects of the library's folders
# may need symbols of these folders only.
ALLOWED = {
    'base': (),
    'refine': ('base',),
    'cpu_factor': ('base',),
    'cpu_batch': ('base', 'cpu_factor'),
    'cpu_dp': ('base', 'cpu_factor'),
    'cpu_sp': ('base', 'cpu_factor'),
    'gpu_sp': ('base',),
    'api': ('refine', 'cpu_batch', 'cpu_dp', 'cpu_sp', 'gpu_sp', 'base'),
    'examples': ('api',),
    'lapack': ('api', 'base'),
    'fuzz': ('api', 'examples'),
    'bench': ('api', 'examples'),
    'tests': LIBRARY + ('examples', 'fuzz', 'bench', 'lapack'),
}

# These headers include nothing of the library, and every folder may include
# them.
PUBLIC = ('api/hone.h', 'api/hone.hpp', 'api/hone_batch.h',
          'api/hone_batch.hpp', 'api/hone_complex.h', 'api/hone_tuning.h')

# Exceptions: (folder, prefix of a header it may include): the reason.
ALSO = {
    ('lapack', 'base/exact.h'): 'inline functions for exact sums',
    ('fuzz', 'tests/gallery/'): 'the hard matrices are not tests',
    ('bench', 'tests/gallery/'): 'the hard matrices are not tests',
    ('bench', 'cpu_sp/'): 'cpu/phases.cc times the steps of the loop',
    ('bench', 'gpu_sp/factor/loop.h'): 'gpu/hook.cu times the factorization',
    ('bench', 'gpu_sp/feed/round.h'): 'gpu/hook.cu transposes the factors',
    ('bench', 'base/dense.h'): 'gpu/several_alone.cu has dense matrices',
    ('bench', 'base/engine.h'): 'gpu/several_alone.cu times engines',
    ('bench', 'gpu_sp/layout.h'): 'gpu/several.cu models panels of its width',
    ('bench', 'gpu_sp/forms/crout.h'): 'papers/ measures the published method',
    ('bench', 'gpu_sp/batch/batch.h'): 'gpu/batch_kernel.h times the kernel',
    ('bench', 'gpu_sp/batch/kernel.h'): 'batch/search.cu compares its shapes',
    ('bench', 'gpu_sp/batch/panel_kernel.h'): 'and those of this one',
    ('bench', 'base/base.h'): 'papers/crout_cpu.c needs HONE_VECTOR',
    ('bench', 'base/lapack.h'): 'the peers are routines of LAPACK',
    ('bench', 'base/lapack_pairs.h'): 'some of them complex',
    ('bench', 'cpu_dp/residual.h'): 'trust/ times the pass over A alone',
}

CUDA = ('gpu_sp', 'tests', 'bench')  # folders that may include CUDA's headers

INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')


def cycles(arrows):
    """Returns the folders from which the arrows lead back to themselves."""
    def reached(start):
        seen, front = set(), [start]
        while front:
            for to in arrows.get(front.pop(), ()):
                if to not in seen:
                    seen.add(to)
                    front.append(to)
        return seen
    return sorted(folder for folder in arrows if folder in reached(folder))


def circle(arrows, told_by):
    found = cycles(arrows)
    if found:
        yield 'circle', ' '.join(found), (
            f'by their {told_by} these folders need one another: '
            + ' '.join(found))


def includes(tree):
    """Yields (kind, subject, message) for every include that is not allowed."""
    arrows = collections.defaultdict(set)
    for file in tree.sources:
        folder = file.split('/')[0]
        for number, line in enumerate(tree.lines(file), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            header = match.group(1)
            to = header.split('/')[0]
            at = f'{file}:{number}'
            if '../' in header:
                yield 'include', f'{file} {header}', (
                    f'{at}: {header} must be relative to the top folder')
            elif re.match(r'cu\w*\.h', header) and folder not in CUDA:
                yield 'include', f'{file} {header}', (
                    f'{at}: only gpu_sp may include {header} of CUDA')
            elif file in ('api/hone.h', 'api/hone_batch.h',
                          'api/hone_complex.h', 'api/hone_tuning.h'):
                if header not in ('stddef.h', 'stdint.h', 'complex',
                                  'api/hone.h', 'hone.h', 'hone_complex.h',
                                  'hone_batch.h'):
                    yield 'include', f'{file} {header}', (
                        f'{at}: a public header may not include {header}')
            elif ('/' in header and to in ALLOWED and to != folder
                  and header not in PUBLIC):
                if any(folder == one and header.startswith(prefix)
                       for one, prefix in ALSO):
                    continue
                arrows[folder].add(to)
                if to not in ALLOWED[folder]:
                    yield 'include', f'{file} {header}', (
                        f'{at}: {folder} may not include {header}')
    yield from circle(arrows, 'includes')


def nm(archive):
    """Yields (object, symbol, kind) of an archive's external symbols. The kind
    is U for undefined, W for writable and R for other symbols. Tables of
    constants that the loader relocates (.data.rel.ro) are not writable."""
    text = subprocess.run(['objdump', '-t', archive], check=True,
                          capture_output=True, text=True).stdout
    member = ''
    for line in text.splitlines():
        words = line.split()
        if ':     file format' in line:
            member = line.split(':')[0]
        elif len(words) >= 4 and '\t' in line:
            head, tail = line.split('\t', 1)
            section, flags = head.split()[-1], head[17:24]
            name = tail.split()[-1]
            if section == '*UND*':
                yield member, name, 'U'
            elif 'g' in flags or 'u' in flags or 'w' in flags:
                section = '.bss' if section == '*COM*' else section
                wrote = section.startswith(('.data', '.bss', '.tdata', '.tbss')
                                           ) and '.rel.ro' not in section
                yield member, name, 'W' if wrote else 'R'


def archives(build):
    """Yields (folder, archive) of the library, and gpu_sp's emulated ones."""
    for folder in LIBRARY:
        yield folder, os.path.join(build, folder + '.a')
        for name in (folder, folder + '_complex'):
            complex_one = os.path.join(build, 'complex', name + '.a')
            if os.path.exists(complex_one):
                yield folder, complex_one
        beside = os.path.join(build, folder + '_complex.a')
        if os.path.exists(beside):
            yield folder, beside
    for name in ('gpu_sp', 'gpu_sp_complex'):
        emulated = os.path.join(build, 'emulated', name + '.a')
        if os.path.exists(emulated):
            yield 'gpu_sp', emulated


def symbols(build):
    """Yields (kind, subject, message) for every object that needs a symbol it
    may not, and for every writable global variable."""
    owners, needs = {}, []
    for folder, archive in archives(build):
        for member, name, kind in nm(archive):
            if kind == 'U':
                needs.append((folder, member, name))
            elif kind == 'W' and re.search('hone_(?!emulate)', name):
                yield 'data', name, f'{folder}/{member}: {name} is writable'
            if kind != 'U':
                owners[name] = folder
    arrows = collections.defaultdict(set)
    for folder, member, name in needs:
        owner = owners.get(name)
        if owner is None and re.match('hone_', name):
            yield 'symbol', f'{member} {name}', (
                f'{folder}/{member} needs {name}, which is not defined')
        elif owner and owner != folder:
            arrows[folder].add(owner)
            if owner not in ALLOWED[folder]:
                yield 'symbol', f'{member} {name}', (
                    f'{folder}/{member} may not need {name} of {owner}')
    yield from circle(arrows, 'symbols')
