"""The guides for those who come from PyTorch Geometric and DGL: blocks of Python are run, tables are compared."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from conftest import TOP
from graphwire.dgl import host

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


@pytest.mark.skipif(getattr(host.dgl(), "is_graphwire_subset", False), reason="DGL's names are DGL's to tell")
def test_the_table_is_whole():
    """Every class and function of dgl.distributed has its line."""
    code = ("import dgl.distributed as d\nfor name, value in vars(d).items():\n"
            "    if not name.startswith('_') and callable(value): print('distributed.' + name)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) > 50 and not set(done.stdout.split()) - set(names_of_dgl_guide())
