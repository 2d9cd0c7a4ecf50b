"""Layer-by-layer inference of the examples, and its outputs: files of rows, and a linear model."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import graphwire
import numpy as np
import pytest
import torch
from conftest import TOP, run

sys.path.insert(0, str(TOP / "examples"))

from common import Inputs, Ranks, columns, forget, inference, inputs_of, write_rows
from graphsage import SAGE, features_of
from links import Encoder, linear_accuracy

ARGS = SimpleNamespace(batch_size_eval=70, feature="feat", label="label", normalize=True, num_hidden=8, sparse_lr=0.01,
                       sync=False, num_gpus=-1, seed=0, standalone=True)


def close(found, expected):
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-5)


def whole_neighbourhood(graph, ids, ntype):
    return graphwire.sample(graph, ids, [-1, -1], ntype=ntype, features=dict.fromkeys(columns(graph, "feat"), "feat"))


@pytest.mark.parametrize("kind", ["whole", "parts", "hetero"])
def test_graphsage(request, kind):
    """Equal to one pass over the whole neighbourhood, for all nodes together and for a few."""
    torch.manual_seed(1)
    with graphwire.open(request.getfixturevalue(kind)) as graph:
        target, widths, ranks = graph.ntypes[-1], columns(graph, "feat"), Ranks(ARGS)
        model = SAGE(graph, widths, target, 8, 5, 2, dropout=0.5, input_dropout=0.5)
        found = inference(model, graph, ranks, ARGS, dict.fromkeys(widths, "feat"), [target],
                          lambda batch: model.first(features_of(batch, ARGS), batch.blocks[0].num_src))
        assert list(found) == [target] and [tensor["name"] for tensor in graph.tensors] == [f"layer1/{target}"]
        model.eval()
        for ids in (range(graph.num_nodes(target)), [90, 3, 41]):
            batch = whole_neighbourhood(graph, ids, target)
            with torch.no_grad():
                close(found[target][ids], model(batch.blocks, features_of(batch, ARGS))[batch.seed_rows])
        forget(graph, ranks, found)
        assert not graph.tensors


def test_rows_of_every_node_type(hetero):
    """The links' encoder, with a table for the type that has no feature."""
    torch.manual_seed(1)
    with graphwire.open(hetero) as graph:
        widths, ranks = columns(graph, "feat"), Ranks(ARGS)
        model = Encoder(graph, Inputs(graph, ARGS, widths), 8, 2, dropout=0.5)
        tables, _ = model.inputs.tables()
        found = inference(model, graph, ranks, ARGS, dict.fromkeys(widths, "feat"), graph.ntypes,
                          lambda batch: model.inputs(*inputs_of(batch, tables, ARGS)))
        model.eval()
        assert set(found) == {"author", "paper"}
        for ntype, rows in found.items():
            batch = whole_neighbourhood(graph, range(len(rows)), ntype)
            with torch.no_grad():
                close(rows[:], model(batch.blocks, *inputs_of(batch, tables, ARGS))[ntype][batch.seed_rows])


@pytest.mark.parametrize("far, text", [(0, "original ids"), (1 << 40, "the graph's ids")])
def test_rows_in_a_file(tmp_path, far, text):
    """Rows are ordered by the input's ids, if these number the nodes."""
    pairs = np.random.default_rng(1).integers(0, 50, (400, 2)) + far
    np.save(tmp_path / "edges.npy", np.concatenate([pairs, np.stack([np.arange(50), np.arange(50)], 1) + far]))
    run("import", "--from", tmp_path / "edges.npy", "--out", tmp_path / "graph", "--quiet")
    run("partition", tmp_path / "graph", "--num-parts", 2, "--method", "random", "--out", tmp_path / "parts")
    with graphwire.open(tmp_path / "parts") as graph:
        original = graph.feature("orig_id")[:]
        assert original.tolist() != sorted(original.tolist())
        rows = graph.create_tensor("rows", (0, 3), ntype="_N")
        rows[:] = torch.stack([original - far, torch.arange(50), torch.ones(50)], 1)
        assert write_rows(tmp_path / "rows.npy", graph, "_N", rows, 7) == text
    written = np.load(tmp_path / "rows.npy")
    assert written.shape == (50, 3) and written.dtype == np.float32
    assert written[:, 1 if far else 0].tolist() == list(range(50))
    assert not (tmp_path / "rows.npy.tmp").exists()


def test_a_linear_model_of_rows(hetero):
    """It finds classes that the rows determine, and none if the rows carry no information."""
    with graphwire.open(hetero) as graph:
        classes = graph.feature("label", "paper")[:]
        assert linear_accuracy(graph, ARGS, "paper", torch.eye(4)[classes]) == 1
        assert linear_accuracy(graph, ARGS, "paper", torch.zeros(300, 4)) < 0.5
