"""R-GCN in both forms of DGL's history (rgcn.py), on a generated graph of three node types: standalone, and launched
over two servers. The graph's classes show in features, with noise, and in edges."""

from __future__ import annotations

import re

import pytest
import torch
from conftest import TOP, runner
from graphwire.dgl.distributed import partition_graph
from graphwire.dgl.install import install
from test_scripts import launched

dgl = install()
PAPERS, CLASSES = 900, 5
FORMS = ("typed", "homogeneous")


def graph_of_papers():
    random = torch.Generator().manual_seed(8)
    label = {ntype: torch.randint(0, CLASSES, (count,), generator=random)
             for ntype, count in (("paper", PAPERS), ("author", 300), ("field", 20))}

    def ends(src, dst, count, noise):
        pairs = [torch.randint(0, len(label[ntype]), (9 * count,), generator=random) for ntype in (src, dst)]
        stay = (label[src][pairs[0]] == label[dst][pairs[1]]) | (torch.rand(9 * count, generator=random) < noise)
        return tuple(some[stay][:count] for some in pairs)

    edges = {}
    for (src, relation, dst), count, noise in ((("author", "writes", "paper"), 2000, 0.15),
                                               (("paper", "cites", "paper"), 2500, 0.2),
                                               (("paper", "has", "field"), 1500, 0.3)):
        edges[src, relation, dst] = ends(src, dst, count, noise)
        edges[dst, f"rev-{relation}", src] = edges[src, relation, dst][::-1]
    g = dgl.heterograph(edges, {ntype: len(rows) for ntype, rows in label.items()})
    rows = torch.randn(PAPERS, 16, generator=random) + 2 * torch.eye(16)[label["paper"]]
    order = torch.randperm(PAPERS, generator=random)
    masks = {"train_mask": order < 400, "test_mask": order >= 500}
    g.nodes["paper"].data.update({"feat": rows, "labels": label["paper"], **masks})
    return g


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """{number of parts: folder}."""
    folder = tmp_path_factory.mktemp("papers")
    for count in (1, 2):
        partition_graph(graph_of_papers(), "papers", count, str(folder / str(count)), part_method="random")
    return {count: folder / str(count) for count in (1, 2)}


def accuracies(text):
    return [float(found) for found in re.findall(r"test accuracy ([0-9.]+)", text)]


@pytest.mark.parametrize("form", FORMS)
def test_standalone(parts, form, tmp_path):
    """Guesses would give 0.2."""
    text = runner(TOP / "test/adapters/rgcn.py", "--form", form, "--graph_name", "papers", "--standalone",
                  "--part_config", parts[1] / "papers.json", "--epochs", 8, folder=tmp_path)
    assert accuracies(text)[0] > 0.55, text


@pytest.mark.slow
def test_over_two_servers(parts, tmp_path):
    text = launched(TOP / "test/adapters", parts[2], tmp_path, "rgcn.py", "--form both --epochs 8", name="papers")
    found = accuracies(text)
    assert len(found) == 4 and min(found) > 0.55, text
