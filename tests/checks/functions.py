# SPDX-License-Identifier: BSD-3-Clause
"""Measures how long the functions of C, C++ and CUDA sources are, and how many
parameters they take. It uses no compiler: comments, strings and directives are
blanked out, then braces and parentheses are counted."""
import re

LINES = 60
PARAMETERS = 8
FILE_LINES = 500

BLANK = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    r'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
# A brace that opens after this encloses declarations, not statements.
SCOPE = re.compile(r'\b(namespace|extern|struct|class|union|enum)\b[^()]*$')


def blanked(text):
    return BLANK.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), text)


def head_of(text):
    """Returns (name, parameters) of a function's head, or None for other text.
    """
    end = len(text.rstrip())
    if not end or text[end - 1] != ')':
        return None
    depth = 0
    for start in range(end - 1, -1, -1):
        depth += (text[start] == ')') - (text[start] == '(')
        if depth == 0:
            break
    name = re.search(r'(\w+)\s*$', text[:start])
    if not name or '=' in text[:start]:
        return None
    return name.group(1), text[start + 1:end - 1]


def count_parameters(text):
    if text.strip() in ('', 'void'):
        return 0
    depth, commas = 0, 0
    for letter in text:
        depth += (letter in '([<{') - (letter in ')]>}')
        commas += letter == ',' and depth == 0
    return commas + 1


def functions(source):
    """Yields (name, line, lines, parameters) of every function with a body."""
    text = blanked(source)
    stack, since, found = [], 0, None
    for place, letter in enumerate(text):
        if letter == '{':
            head = text[since:place]
            function = None
            if all(kind == 'scope' for kind in stack):
                function = head_of(re.sub(r'\b(const|noexcept)\s*$', '', head))
            if function:
                lead = len(head) - len(head.lstrip())
                found = (*function, text.count('\n', 0, since + lead) + 1)
                stack.append('function')
            else:
                stack.append('scope' if SCOPE.search(head) else 'other')
            since = place + 1
        elif letter == '}':
            kind = stack.pop() if stack else 'other'
            if kind == 'function':
                name, parameters, line = found
                last = text.count('\n', 0, place) + 1
                yield (name, line, last - line + 1,
                       count_parameters(parameters))
            since = place + 1
        elif letter == ';' and (not stack or stack[-1] == 'scope'):
            since = place + 1


def sizes(tree, folders):
    """Yields (kind, subject, message) for functions and files that are too
    large."""
    for file in tree.sources:
        folder = file.split('/')[0]
        text = tree.text(file)
        lines = text.count('\n')
        if lines > FILE_LINES:
            yield 'file', file, f'{file}: {lines} lines, over {FILE_LINES}'
        if folder not in folders:
            continue
        for name, line, length, parameters in functions(text):
            if length > LINES:
                yield 'function', f'{file} {name}', (
                    f'{file}:{line}: {name} has {length} lines, over {LINES}')
            if parameters > PARAMETERS and folder == 'gpu_sp':
                yield 'parameters', f'{file} {name}', (
                    f'{file}:{line}: {name} takes {parameters} parameters, '
                    f'over {PARAMETERS}')
