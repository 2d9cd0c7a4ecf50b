"""Rows of every width and type, compared with torch's index_select on the arrays that they were imported from: where
the library copies them in one pass (standalone, mapped) and where servers send them."""
import graphwire
import numpy as np
import pytest
import torch
from conftest import Servers, run

NODES = 3000
KINDS = {"u1": ("uint8", ()), "flag": ("bool", ()), "i2": ("int16", ()), "three": ("uint8", (3,)),
         "f4": ("float32", ()),
         "five": ("int8", (5,)), "i8": ("int64", ()), "f12": ("float32", (3,)), "c16": ("float64", (2,)),
         "odd": ("uint8", (33,)), "f32": ("float32", (8,)), "f64": ("float32", (16,)), "f128": ("float32", (32,)),
         "f512": ("float32", (128,)), "wide": ("int16", (1500,))}


@pytest.fixture(scope="module")
def arrays():
    random = np.random.default_rng(5)
    return {name: random.integers(0, 2 if dtype == "bool" else 120, (NODES, *shape)).astype(dtype)
            for name, (dtype, shape) in KINDS.items()}


@pytest.fixture(scope="module")
def graphs(arrays, tmp_path_factory):
    """The graph in one part and in three, each standalone, mapped, and over TCP."""
    folder = tmp_path_factory.mktemp("local_rows")
    random = np.random.default_rng(6)
    np.savez(folder / "edges.npz", src=random.integers(0, NODES, 9000), dst=random.integers(0, NODES, 9000))
    words = []
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        words += ["--node-feature", f"{name}={folder}/{name}.npy"]
    run("import", "--from", folder / "edges.npz", "--num-nodes", NODES, *words, "--out", folder / "one")
    run("partition", folder / "one", "--num-parts", 3, "--method", "random", "--out", folder / "three")
    served = {name: Servers(folder / name, parts, folder) for name, parts in (("one", 1), ("three", 3))}
    opened = {}
    for name, servers in served.items():
        opened[name, "standalone"] = graphwire.open(folder / name)
        for transport in "shm", "tcp":
            opened[name, transport] = graphwire.open(folder / name, servers.addresses, transport=transport)
    yield opened
    for graph in opened.values():
        graph.close()
    for servers in served.values():
        servers.close()


@pytest.mark.parametrize("where", ["standalone", "shm", "tcp"])
@pytest.mark.parametrize("parts", ["one", "three"])
def test_rows_are_those_of_index_select(arrays, graphs, parts, where):
    graph = graphs[parts, where]
    ids_of_rows = torch.as_tensor(graph.feature("orig_id")[:]).to(torch.int64)
    assert sorted(ids_of_rows.tolist()) == list(range(NODES))
    random = torch.Generator().manual_seed(7)
    for name, array in arrays.items():
        feature, expected = graph.feature(name), torch.from_numpy(array).index_select(0, ids_of_rows)
        for count, bound in ((0, NODES), (1, NODES), (13, NODES), (700, 20), (2 * NODES, NODES)):
            ids = torch.randint(0, bound, (count,), generator=random)
            rows = feature[ids]
            assert rows.dtype == expected.dtype
            assert torch.equal(rows, expected.index_select(0, ids)), (name, count)
        assert torch.equal(feature[5:2000:7], expected[5:2000:7])


@pytest.mark.parametrize("where", ["standalone", "shm", "tcp"])
@pytest.mark.parametrize("parts", ["one", "three"])
@pytest.mark.parametrize("bad", [-1, NODES, 2**62])
def test_a_bad_id_is_named(graphs, parts, where, bad):
    graph = graphs[parts, where]
    for name in "u1", "f4", "f512":
        feature = graph.feature(name)
        for at in 0, 11, 12, 13, 399:
            ids = torch.arange(400)
            ids[at] = bad
            with pytest.raises(graphwire.OutOfRangeError, match=str(bad)):
                feature[ids]
            assert len(feature[:3]) == 3  # the graph goes on
