# SPDX-License-Identifier: BSD-3-Clause
"""Records made up for the tests, and functions that load the programs."""

import copy
import importlib.machinery
import importlib.util
import json
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, 'bench', 'report'))


def program(path):
    """Loads a program without .py as a module."""
    loader = importlib.machinery.SourceFileLoader(
        os.path.basename(path) + '_program', os.path.join(TOP, path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def method(name, ms, accepted=True, **more):
    """Returns a method."""
    return {'name': name, 'ms': ms, 'error': 1e-16, 'accepted': accepted,
            **more}


def row(n, methods, section='solve', **more):
    """Returns a row."""
    return {'section': section, 'kind': 'uniform', 'n': n, 'nrhs': 1,
            'methods': methods, **more}


def report(factor, refine):
    """Returns the phases as the library reports them."""
    return {'inspect_ms': 1.0, 'factor_ms': factor, 'refine_ms': refine,
            'certify_ms': 0.5, 'fallback_ms': 0.0,
            'total_ms': factor + refine + 1.5}


def record(speed=1.0):
    """Returns a record with solves at three orders, a gallery, a history and a
    profile."""
    around = (0.98, 1.01, 1.0, 1.02, 0.99, 1.03, 0.97)
    rows = [row(n, [
        method('Hone once', [speed * t * n / 100 for t in around],
               solve=report(5.0, 3.0)),
        method('dgesv', [2 * t * n / 100 for t in around], False,
               error=1e-13),
        method('dsgesv', [3 * t * n / 100 for t in around])],
        floor_ms=n / 300) for n in (512, 1024, 2048)]
    rows.append(row(500, [method('Hone once', [1.0], history=[
        {'iteration': 0, 'backward_error': 1e-7, 'precision': 32,
         'gmres': False},
        {'iteration': 1, 'backward_error': 1e-17, 'precision': 32,
         'gmres': False}])], 'history'))
    rows.append(row(512, [method('Hone kept', [1.0, 2.0])], 'phases',
                    parts={'round': 1.0, 'update': 3.0}, parts_of_ms=3.5))
    rows.append({'section': 'gallery', 'kind': 'hilbert', 'answers': {
        'n': [10, 20, 30], 'status': [0, 2, -30],
        'hone': [1e-16, 1e-9, None], 'dgesv': [1e-15, 1e-15, None]}})
    return {'format': 'hone-bench/1', 'program': 'bench_cpu --json F',
            'commit': 'abc', 'host': 'A <CPU> & more', 'device': 'CPU',
            'rows': rows}


def save(folder, name, value, cut=None):
    """Writes text or JSON, cut after so many bytes; returns the path."""
    text = value if isinstance(value, str) else json.dumps(value)
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text[:cut])
    return path


def changed(change):
    """Returns a record that change(record) has changed."""
    made = copy.deepcopy(record())
    change(made)
    return made
