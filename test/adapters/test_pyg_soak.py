"""The soak that runs PyTorch Geometric's own tests (test/slow/soak/pyg_tests.py), over a file of such tests: what
passes over two servers, what fails, and what is skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch_geometric")

SOAK = Path(__file__).resolve().parents[1] / "slow/soak"
TESTS = '''
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkNeighborLoader, NeighborLoader
from torch_geometric.testing import onlyNeighborSampler, withPackage
from torch_geometric.typing import WITH_PYG_LIB

DATA = Data(x=torch.arange(40), edge_index=torch.randint(0, 40, (2, 200)))

@onlyNeighborSampler
@withPackage("pyg_lib")
@pytest.mark.parametrize("size", [1, 7])
def test_served(size):
    assert WITH_PYG_LIB
    loaders = [NeighborLoader(DATA, [2], batch_size=size) for _ in range(2)]
    assert loaders[0].data.graph.num_parts == 2 and str(loaders[0]) == "NeighborLoader()"
    for batch in loaders[1]:
        assert torch.equal(batch.x, batch.n_id)

def test_without_edges():
    loader = LinkNeighborLoader(HeteroData(a={"num_nodes": 9}), [], (("a", "a"), torch.ones(2, 3, dtype=torch.long)))
    assert len(loader) == 3 and loader.data.num_nodes == 9

@pytest.mark.parametrize("size", [1, 2])
def test_wrong(size):
    assert size == 1, "too many"
    NeighborLoader(DATA, [2])

@withPackage("no_such_package")
def test_lacking():
    NeighborLoader(DATA, [2])

@pytest.mark.xfail(reason="later")
def test_later():
    raise AssertionError(NeighborLoader(DATA, [2]))

def test_of_something_else():
    raise AssertionError
'''


def test_counts(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    path = os.pathsep.join([str(SOAK), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "-p",
         "pyg_tests", "--over", "servers", "--fails", "test_wrong,test_lacking,test_later", "test_some.py"],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ("test_some.py: 2 of 5 functions pass", "test_wrong: 1 of 2 failed: AssertionError: too many",
                 "test_lacking: 1 of 1 skipped: Skipped: Package no_such_package not found",
                 "test_later: 1 of 1 marked as failing: ", "all: 2 of 5 functions pass"):
        assert f"\n{line}" in done.stdout, done.stdout
