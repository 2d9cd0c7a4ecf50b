"""The names that users import, run and pickle: those of docs/ and docs/api, and modules that programs use. None of them
names a private folder of the package."""

from __future__ import annotations

import importlib
import pickle
import re
import subprocess
import sys

import graphwire
import numpy as np
import pytest
import torch
from conftest import TOP
from format_data import batches

MODULES = ["batch", "bench", "chunks", "fetch", "graph", "ids", "loader", "nn", "optim", "partition"]
PROGRAMS = ["bench", "chunks", "dgl", "dgl.convert"]
DOCS = [path for path in sorted((TOP / "docs").rglob("*")) if path.suffix in (".md", ".rst", ".7")]
NAME = re.compile(r"(?<![\w./-])graphwire(?:\.[A-Za-z_]\w*)+")
IMPORT = re.compile(r"\bfrom (graphwire(?:\.\w+)*) import ([\w, ]+)")
DIRECTIVE = re.compile(r"^\.\. (currentmodule|auto\w+):: ([\w.]+)", re.MULTILINE)


def names_of(text):
    """The names of the package in a page: in full, imported, or in a directive of Sphinx."""
    found, module = set(NAME.findall(text)), ""
    for source, names in IMPORT.findall(text):
        found |= {f"{source}.{name.split()[0]}" for name in names.split(",")}
    for kind, name in DIRECTIVE.findall(text):
        if kind == "currentmodule":
            module = name
        else:
            found.add(name if name.startswith("graphwire") else f"{module}.{name}")
    return found


DOCUMENTED = sorted(set().union(*(names_of(path.read_text()) for path in DOCS)))
CLASSES = [thing for thing in vars(graphwire).values() if isinstance(thing, type)]


def resolved(name):
    """Imports as much of the name as is a module, and takes the rest as attributes."""
    words = name.split(".")
    for end in range(len(words), 0, -1):
        try:
            found = importlib.import_module(".".join(words[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
            continue
        for word in words[end:]:
            found = getattr(found, word)
        return found
    raise ModuleNotFoundError(name)


def test_the_docs_have_names():
    assert {"graphwire.open", "graphwire.Tensor", "graphwire.pyg.LinkLoader", "graphwire.dgl.convert_parts",
            "graphwire.nn.SAGEConv", "graphwire.fetch.unpack"} < set(DOCUMENTED) and len(DOCUMENTED) > 60
    assert not [name for name in DOCUMENTED if "._" in name]
    with pytest.raises(AttributeError):
        resolved("graphwire.no_such_name")


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_documented_name_is_found(name):
    resolved(name)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_imported(name):
    assert importlib.import_module(f"graphwire.{name}").__name__ == f"graphwire.{name}"


def test_modules_are_attributes_of_the_package():
    """The package imports them at their first use. graphwire.bench is a program."""
    words = [f"graphwire.{name}" for name in MODULES if name != "bench"]
    done = subprocess.run([sys.executable, "-c", f"import graphwire; print({', '.join(words)})"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_module_is_run(name):
    done = subprocess.run([sys.executable, "-m", f"graphwire.{name}", "-h"], capture_output=True, text=True)
    assert done.returncode == 0 and "usage: " in done.stdout, done.stderr


@pytest.mark.parametrize("thing", [*CLASSES, graphwire.fetch.FetchError, graphwire.chunks.Chunked,
                                   graphwire.loader.Loader], ids=lambda thing: thing.__name__)
def test_a_class_is_named_by_where_users_import_it(thing):
    """In repr, pickles and tracebacks. A pickle finds the class in later versions too."""
    assert "._" not in thing.__module__
    assert getattr(importlib.import_module(thing.__module__), thing.__name__) is thing
    assert pickle.loads(pickle.dumps(thing)) is thing


def content(value):
    """Arrays and values, without the objects that hold them."""
    if isinstance(value, (graphwire.Batch, graphwire.Block, graphwire.Edges)):
        # A batch makes what is not made yet.
        state = value.__getstate__() if isinstance(value, graphwire.Batch) else vars(value)
        return {name: content(one) for name, one in state.items() if name not in ("_lease", "_dst")}
    if isinstance(value, dict):
        return {name: content(one) for name, one in value.items()}
    if isinstance(value, list):
        return [content(one) for one in value]
    if isinstance(value, (np.ndarray, torch.Tensor)):
        return type(value).__name__, str(value.dtype), value.tolist()
    return value


@pytest.mark.parametrize("version", ["0.1"])
def test_batches_that_an_earlier_version_pickled(version):
    """test/formats/make says how the file is made. The same batches are drawn from the same graphs now."""
    folder = TOP / "test/formats" / version
    found, now = pickle.loads((folder / "batches.pickle").read_bytes()), batches(folder)
    assert [type(batch) for batch in found] == 4 * [graphwire.Batch] == [type(batch) for batch in now]
    for old, new in zip(found, now):
        assert content(old) == content(new) and repr(old) == repr(new)
        assert sum(edges.edge_index.shape[1] for edges in old.blocks[0].edges.values()) > 0
    assert found[2].x.equal(now[2].x) and found[2].to("cpu").y.equal(now[2].y)
