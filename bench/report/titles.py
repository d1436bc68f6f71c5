# SPDX-License-Identifier: BSD-3-Clause
"""The titles of the page's tables: of every section, of the publications' own
tables, and of those that stand in short at the beginning."""

PUBLISHED = {
    'igual 4.1': 'Igual, table 4.1: Cholesky of a diagonal block',
    'igual 4.2': 'Igual, table 4.2: factored in single precision and refined',
    'igual padding': 'Igual: with and without padding',
    'igual blocks': 'Igual: the size of the blocks',
    'cejka sections': 'Cejka: columns of a section',
    'cejka': 'Cejka, tables 3.4 and 3.5: the iterative Crout method'}
TITLES = {
    'small': 'Small n', 'solve': 'Whole solves',
    'spd': 'Symmetric positive definite',
    'factor': 'The factorization alone, in single precision',
    'forms': 'Other forms of the factorization',
    'hard': 'Condition 1e12', 'columns': 'Many right-hand sides',
    'callers': 'What a caller gets',
    'device': 'A, b and x in device memory',
    'complex': 'Complex systems',
    'complex factor': 'The factorization alone, complex, in single precision',
    'batch': 'Many small systems at once',
    'several': 'Several GPUs',
    'threads': 'Threads', 'phases': 'Inside the factorization: whole solves',
    **{name: f'{title}: all methods' for name, title in PUBLISHED.items()}}

SHORT = {'solve': 'Whole solves beside the best of the peers',
         'factor': 'The factorization alone', 'small': 'Small orders',
         'hard': 'Condition 1e12', 'parts': 'Where the time goes, ms',
         'forms': 'Other forms of the factorization, ms'}
