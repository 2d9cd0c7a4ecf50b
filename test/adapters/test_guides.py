"""The guides for those who come from PyTorch Geometric and DGL: blocks of Python are run, tables are compared."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import TOP
from graphwire.dgl import host

of_dgl = pytest.mark.skipif(getattr(host.dgl(), "is_graphwire_subset", False), reason="DGL's names are DGL's to tell")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_blocks(text, folder):
    blocks = BLOCK.findall(text)
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return len(blocks), done.stdout


@pytest.mark.slow
def test_pyg(tmp_path):
    count, text = run_blocks((TOP / "docs/PYG.md").read_text(), tmp_path)
    assert count == 6 and text.count("y=[") == 3 and "torch.Size([100])" in text


def names_of_dgl_guide():
    """{name: same, other or missing} of the table."""
    text = (TOP / "docs/DGL.md").read_text().partition("## Every name")[2]
    rows = re.findall(r"^\| (`.*?`) \| (same|other|missing) \|", text, re.MULTILINE)
    return {name: word for names, word in rows for name in re.findall(r"`([^`]+)`", names)}


def test_dgl_names():
    """What the table says to be there is there, and the rest is an error that says so."""
    import graphwire.dgl as dgl

    names = names_of_dgl_guide()
    assert len(names) > 60
    for name, word in names.items():
        found = dgl
        try:
            for part in name.split("."):
                found = getattr(found, part)
        except AttributeError as error:
            assert word == "missing" and name in str(error), name
        else:
            assert word != "missing", name


# The named arguments of what argv names in a module, and of its methods.
ARGUMENTS = """
import importlib, inspect, json, sys

def arguments(call):
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [name for name, one in inspect.signature(call).parameters.items() if one.kind not in kinds]

dgl, found = importlib.import_module(sys.argv[1]), {}
for name in sys.argv[2:]:
    value = dgl
    for word in name.split("."):
        value = getattr(value, word)
    found[name] = arguments(value)
    for method, call in inspect.getmembers(value, inspect.isfunction) if isinstance(value, type) else ():
        if not method.startswith("_") or method == "__call__":
            found[f"{name}.{method}"] = arguments(call)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_the_backend_is_told_before_dgl_is_imported(tmp_path):
    """As scripts do, in their first lines: which are after the import of dgl here. What is set stays."""
    (tmp_path / "dgl").mkdir()
    (tmp_path / "dgl/__init__.py").write_text("import os\nprint(os.environ.get('DGLBACKEND'))\n")
    clean = {name: value for name, value in os.environ.items() if name != "DGLBACKEND"}
    for given, backend in (({}, "pytorch"), ({"DGLBACKEND": "mxnet"}, "mxnet")):
        done = subprocess.run([sys.executable, "-c", "from graphwire.dgl import host; host.dgl()"], text=True,
                              capture_output=True, check=True, env={**clean, **given, "PYTHONPATH": os.pathsep.join(
                                  [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])})
        assert done.stdout.split() == [backend]


@of_dgl
def test_what_is_the_same_has_the_same_arguments():
    """DGL's, in DGL's order, of functions, classes and methods; Graphwire's may have more behind them."""
    names = [name for name, word in names_of_dgl_guide().items() if word == "same"]
    theirs, ours = [json.loads(subprocess.run([sys.executable, "-c", ARGUMENTS, module, *names], capture_output=True,
                                              text=True, check=True).stdout.splitlines()[-1])
                    for module in ("dgl", "graphwire.dgl")]
    assert len(theirs) > 40
    lacking = {name for name in theirs if name not in ours}
    assert {name.rpartition(".")[2] for name in lacking} == {"assign_lazy_features"}
    other = {name: (words, ours[name]) for name, words in theirs.items()
             if name in ours and ours[name][:len(words)] != words}
    assert not other


@of_dgl
def test_the_table_is_whole():
    """Every class and function of dgl.distributed has its line."""
    code = ("import dgl.distributed as d\nfor name, value in vars(d).items():\n"
            "    if not name.startswith('_') and callable(value): print('distributed.' + name)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) > 50 and not set(done.stdout.split()) - set(names_of_dgl_guide())
