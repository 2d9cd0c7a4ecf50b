"""docs/PYTHON.md and README.md: every block of Python is run, in its order. docs/api: Sphinx builds it, and it tells of
every name."""

from __future__ import annotations

import re
import subprocess
import sys

import graphwire
from conftest import TOP

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_snippets(parts, tmp_path):
    (tmp_path / "parts").symlink_to(parts)
    blocks = BLOCK.findall((TOP / "docs/PYTHON.md").read_text())
    assert len(blocks) > 8
    done = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    assert "epoch 2: loss" in done.stdout


def test_readme(parts, servers, tmp_path):
    """With these servers in the place of those, and a model."""
    (tmp_path / "parts").symlink_to(parts)
    (block,) = BLOCK.findall((TOP / "README.md").read_text())
    block = block.replace("10.0.0.1:30050", servers.addresses[0]).replace("10.0.0.2:30050", servers.addresses[1])
    block = block.replace(', key_file="job.key"', "")
    setting = ("import graphwire, torch\nfrom graphwire.nn import SAGEConv\na, b = SAGEConv(16, 8), SAGEConv(8, 5)\n"
               "model = lambda blocks, x: b(blocks[1], a(blocks[0], x))\n"
               "criterion = torch.nn.functional.cross_entropy\n")
    done = subprocess.run([sys.executable, "-c", setting + block + "\nprint(float(loss))"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0 and float(done.stdout) > 0, done.stderr


def test_reference(tmp_path):
    """Warnings are errors; everything that the package exports has its place in the index."""
    from sphinx.util.inventory import InventoryFile

    done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "-d", tmp_path / "trees",
                           TOP / "docs/api", tmp_path / "html"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = InventoryFile.loads((tmp_path / "html/objects.inv").read_bytes(), uri="")
    names = {name for kind in ("py:class", "py:function", "py:exception") for name in found.data[kind]}
    modules = {"datasets", "nn", "optim", "pyg"}
    missing = {name for name in graphwire.__all__ if f"graphwire.{name}" not in names} - modules
    assert not missing, f"docs/api/index.rst lacks {missing}"
    assert "graphwire.Graph.split" in found.data["py:method"]
