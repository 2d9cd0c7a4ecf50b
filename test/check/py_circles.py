#!/usr/bin/env python3
"""py_circles.py [ROOT]: checks that Python modules do not import each other in a circle. Then each module can be read,
tested and changed with only the modules below it. Imports count at the top of a module, inside functions, and under "if
TYPE_CHECKING". Prints each circle with its imports.

If a package's __init__.py imports a name from a module, "from package import name" counts as an import of that module.
For a module outside the package it also counts as an import of __init__.py, because Python runs that file first.

py_circles.py --self-test: plants circles and checks that they are found.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Folders of modules; the names of modules are relative to these folders.
FOLDERS = ("python", "deploy", "test/support")

Lines = dict[str, int]  # {imported module: the first line that imports it}


class Modules:
    """The modules of one folder, and what each module imports from the folder."""

    def __init__(self, folder: Path) -> None:
        self.packages: set[str] = set()
        self.trees: dict[str, ast.Module] = {}
        self.paths: dict[str, Path] = {}
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if parts[-1] == "__init__":
                self.packages.add(name)
            self.trees[name] = ast.parse(path.read_bytes(), str(path))
            self.paths[name] = path
        self.passed_on = {package: dict(self._passed_on(package)) for package in self.packages}
        self.imports = {name: self._imports(name) for name in self.trees}

    def _from(self, module: str, node: ast.ImportFrom) -> str:
        """The full name of the module after "from"."""
        if not node.level:
            return node.module or ""
        up = node.level - (module in self.packages)
        base = module.split(".")[: len(module.split(".")) - up]
        return ".".join([*base, node.module] if node.module else base)

    def _passed_on(self, package: str) -> Iterator[tuple[str, tuple[str, str]]]:
        """The names that a package's __init__.py imports. Yields (name, (module, the name in that module))."""
        for node in ast.walk(self.trees[package]):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    yield alias.asname or alias.name, (self._from(package, node), alias.name)

    def _definer(self, module: str, name: str) -> str:
        """The module that "from module import name" imports: a submodule, or the module that defines the name."""
        seen = set()
        while (module, name) not in seen:
            seen.add((module, name))
            if f"{module}.{name}" in self.trees:
                return f"{module}.{name}"
            module_next, name_next = self.passed_on.get(module, {}).get(name, (module, name))
            if module_next not in self.trees:
                break
            module, name = module_next, name_next
        return module

    def _named(self, module: str) -> Iterator[tuple[str, str, int]]:
        """The imports of a module: the module as written, the module that is imported in effect, the line."""
        for node in ast.walk(self.trees[module]):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, alias.name, node.lineno
            elif isinstance(node, ast.ImportFrom):
                written = self._from(module, node)
                for alias in node.names:
                    yield written, self._definer(written, alias.name), node.lineno
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                    yield node.args[0].value, node.args[0].value, node.lineno

    def _imports(self, module: str) -> Lines:
        lines: Lines = {}
        inside = {module, *_packages_of(module)}
        for written, meant, line in self._named(module):
            run = {package for name in (written, meant) for package in _packages_of(name)}
            if written in self.packages and written != meant:
                run.add(written)
            for name in [meant, *sorted(run - inside)]:
                if name in self.trees and name != module:
                    lines[name] = min(line, lines.get(name, line))
        return lines

    def circles(self) -> list[list[str]]:
        """The strongly connected components of more than one module (Tarjan)."""
        found: list[list[str]] = []
        order: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []

        def visit(module: str) -> None:
            order[module] = low[module] = len(order)
            stack.append(module)
            for other in self.imports[module]:
                if other not in order:
                    visit(other)
                    low[module] = min(low[module], low[other])
                elif other in stack:
                    low[module] = min(low[module], order[other])
            if low[module] == order[module]:
                at = stack.index(module)
                if len(stack) - at > 1:
                    found.append(sorted(stack[at:]))
                del stack[at:]

        for module in self.trees:
            if module not in order:
                visit(module)
        return sorted(found)


def _packages_of(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def report(root: Path) -> bool:
    """Prints each circle of the modules below root. Returns whether a circle exists."""
    found = False
    for folder in FOLDERS:
        modules = Modules(root / folder)
        for circle in modules.circles():
            found = True
            print(f"a circle of {len(circle)} modules: {' '.join(circle)}")
            for module in circle:
                for other, line in sorted(modules.imports[module].items()):
                    if other in circle:
                        print(f"  {modules.paths[module].relative_to(root)}:{line}: imports {other}")
    return found


# The planted modules of the package p: for each case, its name, the expected verdict, and the lines of each file.
PLANTED = """
two modules import each other: caught
    a: from p import b
    b: import p.a
three modules import in a ring: caught
    a: from p.b import x
    b: from .c import x
    c: from . import a
an import inside a function leads back: caught
    a: import p.b
    b: def f(): from p.a import x
a type-only import leads back: caught
    a: from p.b import x
    b: if TYPE_CHECKING: from p.a import X
an import by a text leads back: caught
    a: import p.b
    b: importlib.import_module("p.a")
a name that __init__ passes on leads back: caught
    __init__: from p.a import X
    a: from p.b import x
    b: from p import X
a name that two packages pass on leads back: caught
    __init__: from p.q import X
    q/__init__: from .a import X
    q/a: from ..b import x
    b: from p import X
a name that __init__ passes on by * leads back: caught
    __init__: from p.a import *
    a: from p import X
a module imports the package that imports it: caught
    __init__: from p.a import X
    a: import p
a name that __init__ defines leads back: caught
    __init__: from p.a import X; Y = 1
    a: from p import Y
the __init__ of another package leads back: caught
    a: from p.q.low import x
    q/__init__: from p.q.high import y
    q/low: import sys
    q/high: from p.a import z
modules import downwards: allowed
    a: from p import b, c
    b: import p.c
    c: import os
a name that __init__ passes on is defined below: allowed
    __init__: from p.b import x; from p.a import y
    a: from p import x
    b: import sys
a package passes on what its modules import downwards: allowed
    q/__init__: from .a import x
    q/a: from . import b
    q/b: from p import c
    c: import sys
"""


def planted() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yields each case's name, its verdict, and the text of each file."""
    for block in re.split(r"\n(?! )", PLANTED.strip("\n")):
        title, *lines = block.split("\n")
        what, _, verdict = title.rpartition(": ")
        yield what, verdict, dict(line.strip().split(": ", 1) for line in lines)


def self_test() -> bool:
    """Checks all cases; they are planted in the folders in turn. Returns whether all verdicts are right."""
    right = True
    for at, (what, verdict, files) in enumerate(planted()):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"__init__": "", **files}.items():
                path = Path(root, FOLDERS[at % len(FOLDERS)], "p", f"{name}.py")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text + "\n")
            found = "caught" if any(Modules(Path(root, folder)).circles() for folder in FOLDERS) else "allowed"
        right = right and found == verdict
        print(f"ok - {what}: {verdict}" if found == verdict else f"not ok - {what}: {found}, not {verdict}")
    return right


def main(arguments: list[str]) -> int:
    if arguments == ["--self-test"]:
        return not self_test()
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    if report(root):
        print("not ok - these Python modules import each other")
        return 1
    print("ok - no Python module imports another module that leads back to it")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
