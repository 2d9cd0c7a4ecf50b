"""No call reads its caller's memory after it has returned. Arguments are changed as soon as each call returns, and
later results are as if they had not been."""

from __future__ import annotations

import graphwire
import numpy as np
import pytest
import torch
from conftest import run
from graphwire import optim
from graphwire._graph import edges
from graphwire._graph import ids as ids_module
from graphwire._graph import tensor as tensors

FORMS = {"int64": lambda ids: torch.tensor(ids), "int32": lambda ids: torch.tensor(ids, dtype=torch.int32),
         "numpy": lambda ids: np.array(ids, np.int64), "list": list,
         "strided": lambda ids: torch.tensor(ids).repeat_interleave(2)[::2]}


def spoil(given):
    """Replaces ids by other valid ids, so that a late read would not fail; clears lists and dicts."""
    if isinstance(given, dict):
        for some in given.values():
            spoil(some)
        given.clear()
    elif isinstance(given, (torch.Tensor, np.ndarray)):
        given[:] = 1 - given % 2
    elif isinstance(given, list):
        given[:] = [1 for _ in given]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [optim.SparseSGD, optim.SparseAdagrad, optim.SparseAdam])
def test_rows_that_were_read_are_trained(rmat, kind, form):
    """Compared with torch's embedding, in steps that read twice. The ids change after each read, as in a reused
    buffer."""
    table = optim.Embedding(rmat, "table", 3, rows=50, seed=1)
    expected, optimizer = table.weight, kind([table], lr=0.5)
    random = np.random.default_rng(5)
    for _ in range(4):
        touched = []
        for _ in range(2):
            ids = FORMS[form](random.permutation(50)[:6].tolist())
            touched += [int(one) for one in ids]
            rows = table(ids)
            rows.sum().backward()
            with torch.no_grad():
                rows.fill_(7)  # the caller's, not the table's
            spoil(ids)
        before = table.weight
        assert torch.equal(before, expected)
        optimizer.step()
        expected = table.weight
        assert (expected != before).any(1).nonzero().flatten().tolist() == sorted(set(touched))
    rmat.delete_tensor("table")


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_were_written_stay(rmat, form):
    tensor, plain = rmat.create_tensor("t", (40, 2)), torch.zeros(40, 2)
    random = np.random.default_rng(6)
    for _ in range(5):
        listed, values = random.permutation(40)[:9].tolist(), torch.rand(9, 2)
        plain[listed] = values
        ids = FORMS[form](listed)
        tensor[ids] = values
        spoil(ids), spoil(values)
        assert torch.equal(tensor[:], plain)
        ids, gradients = FORMS[form](listed), torch.rand(9, 2)
        plain[listed] -= 0.5 * gradients
        tensor.push(ids, gradients, kind="sgd", lr=0.5)
        spoil(ids), spoil(gradients)
        assert torch.allclose(tensor[:], plain)
        ids, out = FORMS[form](listed), torch.empty(9, 2)
        found = [tensor[ids], tensor.gather(ids, out)]
        spoil(ids)
        assert torch.equal(found[0], found[1])
        spoil(found[0]), spoil(out)
        assert torch.allclose(tensor[:], plain)
    rmat.delete_tensor("t")


def digests(loader):
    """The digests of three epochs, the second of which ends early, and of the first again from its state."""
    state = loader.state_dict()
    found = [[batch.digest() for batch in loader]]
    for batch in loader:
        found.append([batch.digest()])
        break
    found.append([batch.digest() for batch in loader])
    loader.load_state_dict(state)
    found.append([batch.digest() for batch in loader])
    return found


@pytest.mark.parametrize("form", FORMS)
def test_loaders_of_nodes_have_their_own_seeds(rmat, graph, form):
    def of_one_type():
        return rmat, {"seeds": FORMS[form](range(5, 405)), "fanouts": [4, 3], "features": ["feat"], "labels": ["label"]}

    def of_two_types():
        return graph, {"seeds": {"paper": FORMS[form](range(3, 90)), "author": FORMS[form](range(40))},
                       "fanouts": [{"cites": 3, "writes": 2}, {"cites": 2}], "features": {"paper": ["feat"]}}

    for make in (of_one_type, of_two_types):
        expected = None
        for changed in (False, True):
            opened, arguments = make()
            loader = graphwire.NodeLoader(opened, **arguments, batch_size=60, shuffle=True, seed=3)
            if changed:
                spoil(arguments)
            found = digests(loader)
            assert expected is None or found == expected
            expected = found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("option", ["negative_ids", "reverse_ids"])
def test_loaders_of_edges_have_their_own_ids(graph, form, option):
    count = graph.num_edges("writes")
    (back,) = [name for name in graph.etypes if graph.ends(name) == ("paper", "author")]
    src, dst = graph.find_edges(range(count), "writes")
    found = graph.edge_ids(dst, src, back)
    reverses = [int(found.edge_ids[first]) for first in found.offsets[:-1].tolist()]
    expected = None
    for changed in (False, True):
        arguments = {"seeds": FORMS[form](range(7, 300)), "fanouts": [3, 3], "exclude": ["edges"]}
        if option == "negative_ids":
            arguments.update(negative_ids=FORMS[form](range(100, 140)), negatives=2)
        else:
            arguments.update(reverse_ids=FORMS[form](reverses), reverse_etype=back)
        loader = graphwire.EdgeLoader(graph, **arguments, etype="writes", batch_size=50, shuffle=True, seed=4)
        if changed:
            spoil(arguments)
        found = digests(loader)
        assert expected is None or found == expected
        expected = found


@pytest.mark.parametrize("form", FORMS)
def test_answers_are_no_views_of_questions(rmat, form):
    src, dst = rmat.find_edges(range(30))
    calls = {"find_edges": [range(30)], "edge_ids": [src.tolist(), dst.tolist()], "neighbours": [range(9)],
             "has_edges": [src.tolist(), dst.tolist()], "in_degrees": [range(30)], "split": [range(30)]}
    for name, arguments in calls.items():
        given = [FORMS[form](list(one)) for one in arguments]
        found = getattr(rmat, name)(*given)
        parts = [found.offsets, found.src, found.dst, found.edge_ids] if isinstance(found, graphwire.EdgeList) else (
            list(found) if isinstance(found, tuple) else [found])
        before = [part.clone() for part in parts]
        for one in given:
            spoil(one)
        assert all(torch.equal(*pair) for pair in zip(parts, before)), name


def test_calls_that_go_on_alone_read_nothing_of_the_callers(rmat, tmp_path, monkeypatch):
    """A call continues after a signal's exception has left it. Here each call continues after its caller has moved
    on."""
    for name in ("one", "two"):
        rmat.create_tensor(name, 3)
    (tmp_path / "edges.tsv").write_text("ant\tbee\nbee\tcat\ncat\tant\n")
    run("import", "--edges", tmp_path / "edges.tsv", "--out", tmp_path / "texts", "--quiet")
    texts = graphwire.open(tmp_path / "texts")
    calls = [(rmat.split, lambda: torch.arange(50)), (rmat.split, lambda: torch.arange(4096) < 100),
             (texts.node_texts, lambda: torch.tensor([2, 0, 2])), (texts.node_texts, lambda: np.array([1, 2])),
             (lambda names: rmat.checkpoint(tmp_path / "saved", names, replace=True), lambda: ["one"])]
    for call, make in calls:
        expected, given = call(make()), make()

        def later(rest, given=given):
            spoil(given)
            return rest()

        with monkeypatch.context() as patch:
            for module in (edges, ids_module, tensors):
                patch.setattr(module, "in_thread", later)
            found = call(given)
        assert torch.equal(found, expected) if isinstance(expected, torch.Tensor) else found == expected
    rmat.delete_tensor("one"), rmat.delete_tensor("two")
    rmat.restore(tmp_path / "saved")
    assert [tensor["name"] for tensor in rmat.tensors] == ["one"]
    rmat.delete_tensor("one")
