# SPDX-License-Identifier: BSD-3-Clause
"""What holds of every text: it is on the list of sources, names its licence,
fits in 80 columns, is laid out by clang-format 14, and its comments do not
open with a riddle."""
import re
import shutil
import subprocess

COMPILED = ('.c', '.cc', '.cu')
LAID_OUT = COMPILED + ('.h', '.cuh', '.hpp')
# A comment that begins so has no subject, and often no verb.
RIDDLE = re.compile(r'/\*\*?\s+(What|Of|The same)\b')


def listed(tree):
    """Every file that is compiled is in the file sources, once."""
    seen = {}
    for line in tree.lines('sources'):
        words = line.split('#')[0].split()
        if not words or not words[0].endswith(COMPILED):
            continue
        file = words[0]
        if not tree.exists(file):
            yield 'list', file, f'sources: there is no {file}'
        if file in seen and not (seen[file] and '->' in words):
            yield 'list', file, f'sources: {file} is there twice'
        seen[file] = '->' in words
    for file in tree.sources:
        if file.endswith(COMPILED) and file not in seen:
            yield 'list', file, f'{file}: not in the file sources'


def written(tree):
    for file in tree.texts:
        lines = tree.lines(file)
        if not any('SPDX-License-Identifier: BSD-3-Clause' in line
                   for line in lines[:3]):
            yield 'licence', file, f'{file}: no SPDX line in the first three'
        for number, line in enumerate(lines, 1):
            if len(line) > 80:
                yield 'columns', file, f'{file}:{number}: over 80 columns'
                break


def laid_out(tree):
    files = [file for file in tree.sources if file.endswith(LAID_OUT)]
    program = shutil.which('clang-format-14') or shutil.which('clang-format')
    version = program and subprocess.run(
        [program, '--version'], capture_output=True, text=True).stdout
    if not version or 'version 14.' not in version:
        print('check: no clang-format 14, layout not checked')
        return
    text = subprocess.run([program, '--dry-run', *files], cwd=tree.top,
                          capture_output=True, text=True).stderr
    for file in sorted(set(re.findall(r'^(\S+?):\d+:\d+: ', text, re.M))):
        yield 'layout', file, (
            f'{file}: not as clang-format lays it out (clang-format -i)')


def riddles(tree, folders):
    for file in tree.sources:
        if file.split('/')[0] not in folders:
            continue
        text = tree.text(file)
        for match in RIDDLE.finditer(text):
            line = text.count('\n', 0, match.start()) + 1
            yield 'riddle', file, (
                f'{file}:{line}: a comment opens with "{match.group(1)}"')
