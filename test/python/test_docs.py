"""docs/PYTHON.md and README.md: every block is run, in order. docs/api: Sphinx builds it, and it documents every
name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import graphwire
import numpy as np
from conftest import PROGRAM, TOP

sys.path.insert(0, str(TOP / "test/adapters"))

from ogb_folder import main as write_ogb_folder

GUIDE = (TOP / "docs/PYTHON.md").read_text()
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FEWER = " --num_epochs 1 --fan_out 4,3 --log_every 0"


def write_products(folder):
    """A data set of 200 nodes in the place of ogbn-products."""
    random = np.random.default_rng(0)
    np.savez(folder / "small.npz", src=random.integers(0, 200, 900), dst=random.integers(0, 200, 900), x_dim=8,
             x_indptr=np.arange(0, 402, 2), x_indices=random.integers(0, 8, 400), y=random.integers(0, 5, 200))
    write_ogb_folder(folder / "small.npz", folder / "dataset/ogbn_products")


def test_the_guide(servers, tmp_path):
    """One Python process runs all blocks, and the shell's commands too. The test step has installed the package; epochs
    are fewer."""
    (tmp_path / "examples").symlink_to(TOP / "examples")
    write_products(tmp_path)
    (tmp_path / "ip_config.txt").write_text("".join(
        "{} {}\n".format(*address.rsplit(":", 1)) for address in servers.addresses))
    script, typed = ["import subprocess"], TYPED.findall(GUIDE)
    assert {kind for kind, _ in typed} == {"sh", "python"} and len(typed) > 12
    for kind, text in typed:
        if kind == "python":
            script.append(text)
        elif not text.startswith("pip install "):
            text = re.sub(r"(examples/graphsage.py .*)", rf"\1{FEWER}", text)
            script.append(f"subprocess.run(['bash', '-euc', {text!r}], check=True)")
    setting = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{Path(PROGRAM).parent}:{os.environ['PATH']}",
               "PET_STANDALONE": "1"}  # torchrun chooses a free port
    done = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(script)], cwd=tmp_path, env=setting,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "epoch 2: loss" in done.stdout and done.stdout.count("test accuracy") == 3


def test_commands_to_a_model():
    """A first trained model from one's own CSV takes three commands, which test_the_guide runs."""
    commands, = re.findall(r"three commands lead .*?^```sh\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    assert [line.split()[:2] for line in commands.splitlines()] == [
        ["graphwire", "import"], ["graphwire", "partition"], ["python", "examples/graphsage.py"]]


def test_the_build_trees_words():
    """The command builds for minutes, so only the names in it are checked."""
    preset, option = re.search(r"`cmake --preset (\w+) -D(\w+)=ON && cmake --build --preset \1`", GUIDE).groups()
    presets = json.loads((TOP / "CMakePresets.json").read_text())
    for kind in ("configurePresets", "buildPresets"):
        assert preset in {one["name"] for one in presets[kind]}
    assert f"option({option} " in (TOP / "CMakeLists.txt").read_text()


def test_readme(parts, servers, tmp_path):
    """With the test's servers instead of the README's, and a model."""
    (tmp_path / "parts").symlink_to(parts)
    (block,) = BLOCK.findall((TOP / "README.md").read_text())
    block = block.replace("10.0.0.1:30050", servers.addresses[0]).replace("10.0.0.2:30050", servers.addresses[1])
    block = block.replace(', key_file="job.key"', "")
    setting = ("import graphwire, torch\nfrom graphwire.nn import SAGEConv\na, b = SAGEConv(16, 8), SAGEConv(8, 5)\n"
               "model = lambda blocks, x: b(blocks[1], a(blocks[0], x))\n"
               "criterion = torch.nn.functional.cross_entropy\n"
               "optimizer = torch.optim.SGD([*a.parameters(), *b.parameters()], 0.01)\n")
    done = subprocess.run([sys.executable, "-c", setting + block + "\nprint(float(loss))"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0 and float(done.stdout) > 0, done.stderr


def test_reference(tmp_path):
    """As the guide says, in a checkout; warnings are errors. The index has everything that the package exports."""
    from sphinx.util.inventory import InventoryFile

    commands = re.search(r"`(pip install sphinx)` and `(python -m sphinx .*)` make the reference", GUIDE).groups()
    (tmp_path / "docs").symlink_to(TOP / "docs")
    setting = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PIP_NO_INDEX": "1"}
    done = subprocess.run(["bash", "-euc", f"{commands[0]}\n{commands[1]} -W -q"], cwd=tmp_path, env=setting,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "already satisfied: sphinx" in done.stdout
    found = InventoryFile.loads((tmp_path / "build/api/objects.inv").read_bytes(), uri="")
    names = {name for kind in ("py:class", "py:function", "py:exception") for name in found.data[kind]}
    modules = {"chunks", "datasets", "nn", "optim", "pyg"}
    missing = {name for name in graphwire.__all__ if f"graphwire.{name}" not in names} - modules
    assert not missing, f"docs/api/index.rst lacks {missing}"
    assert "graphwire.Graph.split" in found.data["py:method"]
