"""Errors name the place of the fault: no server for a graph opened from its folder, and each server once."""

from __future__ import annotations

import re

import graphwire
import numpy as np
import pytest

FAR = 10**9


def taken_with_another_shape(graph):
    graph.create_tensor("same", [100, 4])
    graph.create_tensor("same", [100, 5])


def deleted_meanwhile(graph):
    tensor = graph.create_tensor("mine", [100, 4])
    graph.delete_tensor("mine")
    tensor[[1]]


def a_row_beyond_the_last(graph):
    graph.create_tensor("short", [100, 4])[[100]]


def written_feature(graph):
    graph.feature("feat")[[1]] = np.zeros((1, 16), np.float32)


def another_width(graph):
    graph.create_tensor("narrow", [100, 4]).push([1], np.zeros((1, 5), np.float32), kind="sgd", lr=1.0)


# Calls that fail on every graph, wherever it is stored.
WRONG = {
    "an id beyond the last": lambda graph: graph.gather("feat", [FAR]),
    "a feature that is none": lambda graph: graph.gather("nothing", [1]),
    "out-edges": lambda graph: graph.neighbours([1], out_edges=True),
    "an edge beyond the last": lambda graph: graph.find_edges([FAR]),
    "ends beyond the last": lambda graph: graph.edge_ids([FAR], [1]),
    "a seed": lambda graph: next(iter(graphwire.NodeLoader(graph, [FAR], [3]))),
    "a loader's feature": lambda graph: next(iter(graphwire.NodeLoader(graph, [1], [3], features="nothing"))),
    "a seed that is an edge": lambda graph: next(iter(graphwire.EdgeLoader(graph, [FAR], [3]))),
    "a tensor that is none": lambda graph: graph.open_tensor("nothing"),
    "a tensor to delete that is none": lambda graph: graph.delete_tensor("nothing"),
    "more rows than there may be": lambda graph: graph.create_tensor("many", [10**14]),
    "more rows than memory": lambda graph: graph.create_tensor("large", [10**11, 64]),
    "another shape": taken_with_another_shape,
    "a tensor that is gone": deleted_meanwhile,
    "a row beyond the last": a_row_beyond_the_last,
    "gradients of another width": another_width,
    "a feature that is written": written_feature,
    "a checkpoint that is none": lambda graph: graph.restore("/nothing"),
}


def told(wrong, graph):
    with pytest.raises((graphwire.GraphwireError, ValueError, IndexError, KeyError, TypeError)) as failed:
        wrong(graph)
    return str(failed.value)


def close(graph):
    for tensor in graph.tensors:
        graph.delete_tensor(tensor["name"])
    graph.close()


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("where", ["whole", "parts"])
def test_a_folder_has_no_server(request, where, wrong):
    graph = graphwire.open(request.getfixturevalue(where))
    text = told(WRONG[wrong], graph)
    assert text and "server" not in text.lower() and "standalone" not in text, text
    close(graph)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("transport", ["tcp", "auto"])
def test_a_server_is_named_once(servers, transport, wrong):
    graph = graphwire.open(servers=servers.addresses, transport=transport)
    text = told(WRONG[wrong], graph)
    assert text.lower().count("server") <= 1 and "shm:" not in text, text
    assert sum(text.count(address) for address in servers.addresses) <= 1, text
    close(graph)


@pytest.mark.parametrize(("address", "says", "timeout"), [
    ("127.0.0.1:1", r"server 127\.0\.0\.1:1: Connection refused", 2),  # is asked again until then
    ("nowhere.invalid:1", r"server nowhere\.invalid:1: .*[nN]ame", 60),
])
def test_one_that_cannot_be_reached(servers, address, says, timeout):
    with pytest.raises(graphwire.GraphwireError, match=rf"^{says}") as failed:
        graphwire.open(servers=[servers.addresses[0], address], timeout=timeout, reconnect=0.2)
    assert str(failed.value).count(address.split(":")[0]) == 1


def test_another_key(servers, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(b"x" * 32)
    key.chmod(0o600)
    with pytest.raises(graphwire.GraphwireError, match=r"^server 127\.0\.0\.1:\d+ has another key") as failed:
        graphwire.open(servers=servers.addresses, key_file=key)
    assert len(re.findall("server", str(failed.value))) == 1


def test_the_same_twice(servers):
    with pytest.raises(graphwire.GraphwireError, match=r"^server 127\.0\.0\.1:\d+ is given twice"):
        graphwire.open(servers=[servers.addresses[0]] * 2)


def test_one_that_has_ended(own_servers):
    graph = graphwire.open(servers=own_servers.addresses, transport="tcp", reconnect=0.2)
    own_servers.end(1)
    address = own_servers.addresses[1]
    with pytest.raises(graphwire.GraphwireError, match=rf"^server {address}: Connection refused") as failed:
        graph.gather("feat", np.arange(4096))
    assert str(failed.value).count(address) == 1
    graph.close()


# --- Arrays that the package passes to the program in files. ---

SRC, DST = np.arange(9), np.arange(1, 10)
REFUSED = {
    "records": (dict(edge_features={"w": np.zeros(9, [("a", "f4")])}), "edge feature w of _N:_E:_N: .*structured"),
    "five dimensions": (dict(node_features={"deep": np.zeros((10, 1, 1, 1, 1))}), "feature deep of _N: more than 4"),
    "no columns": (dict(node_features={"thin": np.zeros((10, 0))}), "thin"),
    "a name of the format's": (dict(node_features={"indptr": np.zeros(10)}), 'node feature "indptr"'),
    "too few nodes": (dict(num_nodes=3), "edges of _N:_E:_N, edge 2: .* id of 3 or more"),
    "another aim": (dict(objtype="best"), 'objtype: "best"'),
    "no mask": (dict(balance_train=True), "balance_train: .*train_mask"),
}


def refused(tmp_path, graph, **options):
    with pytest.raises(RuntimeError) as failed:
        graphwire.partition_graph(graph, "g", 1, tmp_path / "out", method="random", **options)
    text = str(failed.value)
    assert ".npy" not in text and ".tmp" not in text and "--" not in text, text
    assert not (tmp_path / "out").exists()
    return text


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_named_as_it_was_given(tmp_path, case):
    options, says = REFUSED[case]
    assert re.search(says, refused(tmp_path, (SRC, DST), **options))


def test_edges_are_named_by_their_type(tmp_path):
    two = {("a", "to", "b"): (SRC, DST), ("b", "from", "a"): ([1, -1], [1, 1])}
    with pytest.raises(ValueError, match="sources of b:from:a: row 1 is -1"):
        graphwire.partition_graph(two, "g", 1, tmp_path / "two")
    with pytest.raises(TypeError, match="feat of _N:_E:_N is text"):
        graphwire.partition_graph((SRC, DST), "g", 1, tmp_path / "text", edge_features={"feat": np.array(["a"] * 9)})
    assert "edge type to goes from a to b: undirected needs one node type; use reverse" in refused(
        tmp_path, {("a", "to", "b"): (SRC, DST)}, undirected=True)


def test_data_of_pyg_is_named_as_it_was_given():
    import torch

    data_type = pytest.importorskip("torch_geometric.data").Data
    from graphwire.pyg import from_pyg

    data = data_type(edge_index=torch.tensor([[0, 1], [1, 2]]), x=torch.zeros(3, 1, 1, 1, 1))
    with pytest.raises(RuntimeError, match=r"import: node feature x of _N: more than 4") as failed:
        from_pyg(data)
    assert ".npy" not in str(failed.value)
