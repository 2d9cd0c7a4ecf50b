"""R-GCN in both forms of DGL's history (rgcn.py), on a generated graph of three node types: standalone, and launched
over two servers."""

from __future__ import annotations

import re

import pytest
from conftest import TOP, runner
from graphwire.dgl.distributed import partition_graph
from graphwire.dgl.install import install
from papers import graph_of_papers
from test_scripts import launched

install()


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """{number of parts: folder}."""
    folder = tmp_path_factory.mktemp("papers")
    for count in (1, 2):
        partition_graph(graph_of_papers(), "papers", count, str(folder / str(count)), part_method="random")
    return {count: folder / str(count) for count in (1, 2)}


def accuracies(text):
    return [float(found) for found in re.findall(r"test accuracy ([0-9.]+)", text)]


def test_standalone(parts, tmp_path):
    """Guesses would give 0.2."""
    text = runner(TOP / "test/adapters/rgcn.py", "--form", "both", "--graph_name", "papers", "--standalone",
                  "--part_config", parts[1] / "papers.json", "--epochs", 8, folder=tmp_path)
    found = accuracies(text)
    assert len(found) == 2 and min(found) > 0.55, text


@pytest.mark.slow
def test_over_two_servers(parts, tmp_path):
    text = launched(TOP / "test/adapters", parts[2], tmp_path, "rgcn.py", "--form both --epochs 8", name="papers")
    found = accuracies(text)
    assert len(found) == 4 and min(found) > 0.55, text
