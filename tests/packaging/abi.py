# SPDX-License-Identifier: BSD-3-Clause
"""Compares the declarations of another language with api/hone.h,
hone_complex.h, hone_batch.h and hone_tuning.h: every structure (order, offset,
size and kind of each field, as the C compiler has them), every constant and
every function.

usage: tests/packaging/abi.py python     python/hone/_abi.py and _enums.py
       tests/packaging/abi.py fortran    api/hone_c.f90

Run it in the top folder. CC and FC are the compilers (cc, gfortran). It names
every difference; the exit status is 0 if there is none.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
CC = os.environ.get("CC") or "cc"
FC = os.environ.get("FC") or "gfortran"

# Pointers to opaque structures.
SOLVERS = ("hone_solver *", "hone_z_solver *", "hone_batch_solver *",
           "hone_z_batch_solver *")


def header():
    """Returns the headers without comments and continuation lines."""
    names = ("hone.h", "hone_complex.h", "hone_batch.h", "hone_tuning.h")
    text = "".join((TOP / "api" / name).read_text() for name in names)
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S).replace("\\\n", " ")


def structs(text):
    """{struct: [(field, is an array)]}"""
    found = {}
    for name, body in re.findall(
        r"typedef struct (\w+) \{(.*?)\} \1;", text, flags=re.S
    ):
        fields = []
        for line in body.split(";"):
            pointer = re.search(r"\(\*(\w+)\)\(", line)
            if pointer:
                fields.append((pointer.group(1), False))
                continue
            for each in line.split(","):
                last = re.search(r"(\w+)\s*(\[\w+\])?\s*$", each)
                if last:
                    fields.append((last.group(1), last.group(2) is not None))
        found[name] = fields
    return found


def constants(text):
    """Returns the names of all enumerators, statuses and version numbers."""
    bodies = re.findall(r"enum \{(.*?)\}", text, flags=re.S)
    names = re.findall(r"(HONE_\w+) = ", " ".join(bodies))
    names += re.findall(r"#define (HONE_VERSION_\w+) \d", text)
    return names + re.findall(r"X\((HONE_\w+), -?\d", text)


def kind(declaration):
    """Returns the C type of a parameter or result, without name and const."""
    words = re.sub(r"\bconst\b", " ", declaration).replace("*", " * ").split()
    stars = "*" * words.count("*")
    return words[0] + (" " + stars if stars else "")


def calls(text):
    """{function: (result, [parameters])}"""
    found = {}
    for result, name, parameters in re.findall(
        r"HONE_API ([\w\s*]+?)(hone_\w+)\(([^)]*)\);", text
    ):
        listed = [] if parameters.strip() == "void" else parameters.split(",")
        found[name] = (kind(result), [kind(each) for each in listed])
    return found


# Fields of initialized structures that have the size of a structure.
SIZES = (
    ("hone_options", "struct_size"),
    ("hone_report", "struct_size"),
    ("hone_tuning", "struct_size"),
    ("hone_column", "column_size"),
    ("hone_batch", "struct_size"),
    ("hone_z_batch", "struct_size"),
    ("hone_batch_result", "result_size"),
)
# The structures that start with the size of another.
HOLDERS = {"hone_column": "hone_options", "hone_batch_result": "hone_batch"}

C_KINDS = (
    "#define KIND(x) _Generic((x), int32_t: \"i4\", int64_t: \"i8\", "
    "size_t: \"u8\", double: \"f8\", default: \"p\")\n"
    "#define KIND_OF_ARRAY(x) _Generic((x), char *: \"s\", "
    "int64_t *: \"i8\", double *: \"f8\")\n"
)


def run(command, source, name):
    """Compiles and runs source; returns the lines that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_text(source)
        command = [*command, name, "-o", "it"]
        if subprocess.run(command, cwd=folder).returncode:
            sys.exit("abi: the names in the errors above are not declared")
        done = subprocess.run(
            [str(Path(folder) / "it")], check=True, stdout=subprocess.PIPE
        )
        return [each.rstrip() for each in done.stdout.decode().splitlines()]


def by_c(text):
    """Returns a line for every field and constant, as the C compiler has them.
    """
    lines = []
    for name, fields in structs(text).items():
        lines.append(f'printf("{name} size %zu\\n", sizeof({name}));')
        for field, is_array in fields:
            macro = "KIND_OF_ARRAY" if is_array else "KIND"
            lines.append(
                f'{{ {name} s; memset(&s, 0, sizeof s); '
                f'printf("{name}.{field} at %zu size %zu %s\\n", '
                f"offsetof({name}, {field}), sizeof s.{field}, "
                f"{macro}(s.{field})); }}"
            )
    for name, field in SIZES:
        macro = HOLDERS.get(name, name)
        init = macro.upper() + "_INIT"
        lines.append(
            f'{{ {macro} s = {init}; printf("{name} starts with '
            f'{field} = %zu\\n", s.{field}); }}'
        )
    for name in constants(text):
        lines.append(f'printf("{name} = %d\\n", (int){name});')
    source = (
        '#include "api/hone_tuning.h"\n#include <stdio.h>\n'
        "#include <string.h>\n"
        + C_KINDS
        + "int main(void) {\n"
        + "\n".join(lines)
        + "\nreturn 0;\n}\n"
    )
    return run([CC, "-std=c11", f"-I{TOP}"], source, "abi.c")


# ---- Python


def by_ctypes(text):
    import ctypes

    from hone import _abi, _enums

    short = {
        ctypes.c_int32: "i4",
        ctypes.c_int64: "i8",
        ctypes.c_size_t: "u8",
        ctypes.c_double: "f8",
        ctypes.c_char: "s",
    }
    lines = []
    for name, struct in _abi.STRUCTS.items():
        lines.append(f"{name} size {ctypes.sizeof(struct)}")
        for field, type_ in struct._fields_:
            at = getattr(struct, field)
            base = getattr(type_, "_type_", None)
            array = issubclass(type_, ctypes.Array)
            kind_ = short.get(base if array else type_, "p")
            lines.append(
                f"{name}.{field} at {at.offset} size {at.size} {kind_}"
            )
    fresh = {
        "hone_options": _abi.new_options(),
        "hone_column": _abi.new_options(),
        "hone_report": _abi.new_report(),
        "hone_tuning": _abi.new_tuning(),
        "hone_batch": _abi.new_batch(),
        "hone_z_batch": _abi.new_batch(),
        "hone_batch_result": _abi.new_batch(),
    }
    for name, field in SIZES:
        size = getattr(fresh[name], field)
        lines.append(f"{name} starts with {field} = {size}")
    lines += [f"{name} = {n}" for name, n in _enums.c_names().items()]
    parts = ("MAJOR", "MINOR", "PATCH")
    for part, n in zip(parts, _abi.VERSION.split(".")):
        lines.append(f"HONE_VERSION_{part} = {n}")
    return lines


def ctypes_calls():
    import ctypes

    from hone import _abi

    pointer = ctypes.POINTER
    names = {
        ctypes.c_int: {"int", "int32_t"},
        ctypes.c_int64: {"int64_t"},
        ctypes.c_size_t: {"size_t"},
        ctypes.c_char_p: {"char *"},
        ctypes.c_void_p: {
            "double *", "hone_complex *", "hone_column *",
            "hone_batch_result *", *SOLVERS,
        },
        pointer(_abi.Options): {"hone_options *"},
        pointer(_abi.Report): {"hone_report *"},
        pointer(_abi.Batch): {"hone_batch *", "hone_z_batch *"},
        pointer(ctypes.c_int64): {"int64_t *"},
        pointer(ctypes.c_void_p): {each + "*" for each in SOLVERS},
        None: {"void"},
    }
    return {
        name: (names[result], [names[each] for each in arguments])
        for name, (result, arguments) in _abi.FUNCTIONS.items()
    }


# ---- Fortran


def by_fortran(text):
    """Returns the same lines, printed by a program that uses hone_c."""
    lines = []
    declared = []
    for name, fields in structs(text).items():
        declared.append(f"type({name}), target :: s_{name}")
        lines.append(f"print '(a, i0)', '{name} size ', c_sizeof(s_{name})")
        for field, array in fields:
            one = f"s_{name}%{field}" + ("(1)" if array else "")
            lines.append(
                f"print '(2(a, i0), 2a)', '{name}.{field} at ', &\n"
                f"  place(c_loc(s_{name}), c_loc({one})), &\n"
                f"  ' size ', c_sizeof(s_{name}%{field}), ' ', kind_of({one})"
            )
    for name, field in SIZES:
        of = HOLDERS.get(name, name)
        lines.append(
            f"print '(a, i0)', '{name} starts with {field} = ', s_{of}%{field}"
        )
    for name in constants(text):
        lines.append(f"print '(a, i0)', '{name} = ', {name}")
    functions = ""
    for type_, short in (
        ("integer(c_int32_t)", "i4"),
        ("integer(c_int64_t)", "i8"),
        ("real(c_double)", "f8"),
        ("character(kind=c_char)", "s"),
        ("type(c_ptr)", "p"),
        ("type(c_funptr)", "p"),
    ):
        n = functions.count("end function")
        functions += (
            f"function kind_{n}(x) result(k)\n{type_}, intent(in) :: x\n"
            f"character(2) :: k\nassociate (unused => x)\nend associate\n"
            f"k = '{short}'\nend function\n"
        )
    names = ", ".join(f"kind_{n}" for n in range(6))
    source = (
        "module kinds\nuse, intrinsic :: iso_c_binding\nimplicit none\n"
        f"interface kind_of\nprocedure :: {names}\nend interface\n"
        f"contains\n{functions}"
        "function place(first, here) result(bytes)\n"
        "type(c_ptr), intent(in) :: first, here\n"
        "integer(c_intptr_t) :: bytes\n"
        "bytes = transfer(here, bytes) - transfer(first, bytes)\n"
        "end function\nend module\n"
        "program abi\nuse kinds\nuse hone_c\nimplicit none\n"
        + "\n".join(declared + lines)
        + "\nend program\n"
    )
    module = str(TOP / "api" / "hone_c.f90")
    return run([FC, "-ffree-line-length-none", module], source, "abi.f90")


def fortran_calls():
    text = (TOP / "api" / "hone_c.f90").read_text().replace("&\n", " ")
    text = text[text.index("end interface") :]  # skips the abstract interface
    names = {
        "integer(c_int64_t), value": {"int64_t"},
        "integer(c_int32_t), value": {"int32_t"},
        "integer(c_int), value": {"int"},
        "integer(c_size_t), value": {"size_t"},
        "integer(c_int64_t)": {"int64_t *"},
        "real(c_double)": {"double *"},
        "complex(c_double_complex)": {"hone_complex *"},
        "type(hone_options)": {"hone_options *"},
        "type(hone_report)": {"hone_report *"},
        "type(hone_column)": {"hone_column *"},
        "type(hone_batch)": {"hone_batch *"},
        "type(hone_z_batch)": {"hone_z_batch *"},
        "type(hone_batch_result)": {"hone_batch_result *"},
        "type(c_ptr), value": set(SOLVERS),
        "type(c_ptr)": {each + "*" for each in SOLVERS},
        "character(kind=c_char)": {"char *"},
    }
    results = {
        "integer(c_int)": {"int"},
        "integer(c_int64_t)": {"int64_t"},
        "integer(c_size_t)": {"size_t"},
        "type(c_ptr)": {"char *"},
    }
    found = {}
    for what, arguments, head, body in re.findall(
        r"(function|subroutine) hone_\w+\((.*?)\)(.*?name=.*?)\n(.*?)end \1",
        text,
        flags=re.S,
    ):
        of = {}
        for type_, attributes, listed in re.findall(
            r"^ *(\w+\([\w=]+\))(.*?) :: ([^!\n]*)", body, flags=re.M
        ):
            value = ", value" if ", value" in attributes else ""
            for each in re.findall(r"\w+", listed):
                of[each] = type_ + value
        result = re.search(r"result\((\w+)\)", head)
        found[re.search(r"name='(\w+)'", head).group(1)] = (
            results[of[result.group(1)]] if result else {"void"},
            [names[of[each]] for each in re.findall(r"\w+", arguments)],
        )
    return found


# ---- Comparing


def compare(theirs, ours, what):
    """Prints the lines that differ between C and the other language; returns
    their number."""
    wrong = 0
    for line in [each for each in theirs if each not in ours]:
        print(f"abi: {what} does not have: {line}")
        wrong += 1
    for line in [each for each in ours if each not in theirs]:
        print(f"abi: {what} has, but not hone.h: {line}")
        wrong += 1
    return wrong


def compare_calls(theirs, ours, what):
    wrong = 0
    for name in sorted(set(theirs) | set(ours)):
        if name not in theirs or name not in ours:
            print(f"abi: {name} is not in both hone.h and {what}")
            wrong += 1
            continue
        result, parameters = theirs[name]
        got, arguments = ours[name]
        fits = result in got and len(parameters) == len(arguments)
        if not fits or any(
            each not in allowed for each, allowed in zip(parameters, arguments)
        ):
            print(f"abi: {what}: {name} is {result} {name}{parameters} in C")
            wrong += 1
    return wrong


def compare_project(text):
    """Compares the version in pyproject.toml."""
    version = ".".join(re.findall(r"#define HONE_VERSION_\w+ (\d+)", text))
    project = (TOP / "python" / "pyproject.toml").read_text()
    if f'version = "{version}"' in project:
        return 0
    print(f"abi: python/pyproject.toml: the version should be {version}")
    return 1


def main():
    if sys.argv[1:] not in (["python"], ["fortran"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = header()
    theirs = by_c(text)
    if sys.argv[1] == "python":
        what = "python/hone"
        wrong = compare(theirs, by_ctypes(text), what)
        wrong += compare_calls(calls(text), ctypes_calls(), what)
        wrong += compare_project(text)
    else:
        what = "api/hone_c.f90"
        signed = [re.sub(" u8$", " i8", line) for line in theirs]
        wrong = compare(signed, by_fortran(text), what)
        wrong += compare_calls(calls(text), fortran_calls(), what)
    if wrong == 0:
        print(
            f"abi: {what} agrees with hone.h and hone_tuning.h: "
            f"{len(structs(text))} structures, {len(constants(text))} "
            f"constants, {len(calls(text))} calls"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
