# SPDX-License-Identifier: BSD-3-Clause
"""Checks of every text: it is on the list of sources, names its licence, fits
in 80 columns, is laid out by clang-format 14, and its comments have a subject.
Rules of Ninja see to it that the list of headers is there.
"""
import re
import shutil
import subprocess

COMPILED = ('.c', '.cc', '.cu')
LAID_OUT = COMPILED + ('.h', '.cuh', '.hpp')
# A comment that begins like this has no subject, and often no verb.
RIDDLE = re.compile(r'/\*\*?\s+(What|Of|The same)\b')


def listed(tree):
    """Checks that every file that is compiled is once in the file sources, and
    at most once more for complex entries, in a section of theirs or with
    -DHONE_COMPLEX."""
    editions, complex_edition = ({}, {}), False
    for line in tree.lines('sources'):
        words = line.split('#')[0].split()
        if re.match('[a-z]', line):
            complex_edition = words[2:] == ['in', 'complex']
        if not words or not words[0].endswith(COMPILED):
            continue
        file = words[0]
        seen = editions[complex_edition or '-DHONE_COMPLEX' in words]
        if not tree.exists(file):
            yield 'list', file, f'sources: {file} does not exist'
        if file in seen and not (seen[file] and '->' in words):
            yield 'list', file, f'sources: {file} is listed twice'
        seen[file] = '->' in words
    for file in tree.sources:
        if file.endswith(COMPILED) and not any(file in e for e in editions):
            yield 'list', file, f'{file}: not in the file sources'


def written(tree):
    for file in tree.texts:
        lines = tree.lines(file)
        if not any('SPDX-License-Identifier: BSD-3-Clause' in line
                   for line in lines[:3]):
            yield 'licence', file, (
                f'{file}: the first three lines have no SPDX identifier')
        for number, line in enumerate(lines, 1):
            if len(line) > 80:
                yield 'columns', file, (
                    f'{file}:{number}: the line is longer than 80 columns')
                break


def depending(tree):
    """Checks that a command of Ninja fails if its list of headers is missing,
    which Ninja takes for an empty one: the object would never be made again."""
    for file in tree.texts:
        if not file.endswith('.ninja'):
            continue
        text = tree.text(file).replace('$\n', '')
        for name, body in re.findall(r'^rule (\S+)\n((?:[ \t].*\n?)*)', text,
                                     re.M):
            if 'depfile =' in body and 'test -s $out.d' not in body:
                yield 'depfile', file, (
                    f'{file}: the command of rule {name} does not fail without '
                    'its depfile: add "&& test -s $out.d"')


def laid_out(tree):
    files = [file for file in tree.sources if file.endswith(LAID_OUT)]
    program = shutil.which('clang-format-14') or shutil.which('clang-format')
    version = program and subprocess.run(
        [program, '--version'], capture_output=True, text=True).stdout
    if not version or 'version 14.' not in version:
        print('check: the layout is not checked without clang-format 14')
        return
    text = subprocess.run([program, '--dry-run', *files], cwd=tree.top,
                          capture_output=True, text=True).stderr
    for file in sorted(set(re.findall(r'^(\S+?):\d+:\d+: ', text, re.M))):
        yield 'layout', file, (
            f'{file}: the layout is not that of clang-format (clang-format -i)')


def riddles(tree, folders):
    for file in tree.sources:
        if file.split('/')[0] not in folders:
            continue
        text = tree.text(file)
        for match in RIDDLE.finditer(text):
            line = text.count('\n', 0, match.start()) + 1
            yield 'riddle', file, (
                f'{file}:{line}: the comment begins with "{match.group(1)}", '
                'without a subject')
