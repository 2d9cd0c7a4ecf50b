"""Sphinx configuration: makes the API reference of the Python package from its docstrings.

    python -m sphinx -W -b html docs/api build/api        # with graphwire installed, or PYTHONPATH=python

The docstrings are written for a terminal: arguments as "name: description", and code by indentation. _rewritten
converts them to reStructuredText. Sphinx warns about text that it cannot read, and -W makes a warning an error.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import graphwire
from sphinx.pycode import ModuleAnalyzer

project = "Graphwire"
copyright = "the Graphwire authors"
extensions = ["sphinx.ext.autodoc"]
html_theme = "alabaster"
html_theme_options = {"description": "mini-batches of a partitioned graph, from Python"}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

_ITEM = re.compile(r"^([a-z_][a-z_0-9]*(?:, [a-z_][a-z_0-9]*)*): ")
_CODE = re.compile(r"`([^`]+)`")
_MARKS = re.compile(r"([*|\\_])")


def _plain(text):
    """Escapes reStructuredText's markup in a line, except `code`."""
    parts = _CODE.split(text)
    return "".join(f"``{part}``" if i % 2 else _MARKS.sub(r"\\\1", part) for i, part in enumerate(parts))


def _items(lines):
    """Converts a paragraph that lists arguments to a bullet list, with an item for each argument."""
    found = []
    for line in lines:
        item = _ITEM.match(line)
        if item:
            names = ", ".join(f"``{name}``" for name in item[1].split(", "))
            found += ["", f"* {names}: {_plain(line[item.end():])}"]
        else:
            found.append("  " + _plain(line.strip()))
    return [*found, ""]


def _rewritten(lines):
    paragraphs, found = "\n".join(lines).strip("\n").split("\n\n"), []
    for text in paragraphs:
        part = text.split("\n")
        if all(line.startswith("    ") for line in part):
            found += ["::", "", *part, ""]
        elif _ITEM.match(part[0]):
            found += _items(part)
        else:
            found += [*(_plain(line.strip()) for line in part), ""]
    return found


def _read_private_files():
    """Classes of private folders name a public module. Sphinx looks there for the order of their members, and gets it
    from the files that have the classes."""
    for path in sorted(Path(graphwire.__file__).parent.glob("_*/*.py")):
        name = f"graphwire.{path.parent.name}.{path.stem}"
        source = ModuleAnalyzer.for_file(path, name)
        source.analyze()
        things = [thing for thing in vars(importlib.import_module(name)).values() if isinstance(thing, type)]
        classes = [thing for thing in things if thing.__module__.startswith("graphwire")]
        for public in {one.__module__ for one in classes if one.__name__ in source.tagorder} - {name}:
            analyzer = ModuleAnalyzer.for_module(public)
            analyzer.analyze()
            analyzer.tagorder.update(source.tagorder)


def setup(app):
    _read_private_files()

    def rewrite(app, what, name, obj, options, lines):
        lines[:] = _rewritten(lines)

    app.connect("autodoc-process-docstring", rewrite)
