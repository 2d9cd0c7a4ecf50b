"""Rows that a program writes into the parts after partition_graph, as DGL's save_tensors stores them; the mappings of
GraphStorm. Files are made here from the format's description, and by DGL where it is installed."""

from __future__ import annotations

import struct
import subprocess
import sys

import graphwire.dgl
import numpy as np
import pytest
import torch
from graphwire.dgl.distributed import later_rows
from graphwire.dgl.install import install

dgl = install()
with_dgl = not getattr(dgl, "is_graphwire_subset", False)
R, S = ("a", "r", "b"), ("b", "s", "a")
CODES = {"i": 0, "u": 1, "f": 2, "b": 1}


def write(path, tensors):
    if with_dgl:
        return dgl.data.utils.save_tensors(str(path), {name: torch.from_numpy(rows) for name, rows in tensors.items()})
    out = [struct.pack("<QQQ", 0xDD5A9FBE3FA2443F, len(tensors), len(tensors))]
    for name, rows in tensors.items():
        out += [struct.pack("<Q", len(name.encode())), name.encode(),
                struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, rows.ndim, CODES[rows.dtype.kind],
                            8 * rows.itemsize, 1),
                struct.pack(f"<{rows.ndim}qq", *rows.shape, rows.nbytes), rows.tobytes()]
    path.write_bytes(b"".join(out))


@pytest.fixture
def folder(tmp_path):
    """A graph in one part, and the files that its builder writes afterwards."""
    random = np.random.default_rng(3)
    ends = {etype: torch.from_numpy(random.integers(0, 30, (2, 150))) for etype in (R, S)}
    whole = dgl.heterograph({etype: tuple(some) for etype, some in ends.items()}, {"a": 30, "b": 40})
    whole.nodes["a"].data["own"] = torch.arange(30)
    dgl.distributed.partition_graph(whole, "g", 1, str(tmp_path / "one"))
    nodes = {"a/x": random.random((30, 3)).astype(np.float32), "a/train_mask": random.random(30) < 0.5,
             "b/label": random.integers(0, 9, 40)}
    edges = {"a:r:b/w": random.random(150).astype(np.float16)}
    write(tmp_path / "one" / "part0" / "node_feat.dgl", nodes)
    write(tmp_path / "one" / "part0" / "edge_feat.dgl", edges)
    torch.save({"a": torch.arange(30) * 7, "b": torch.arange(40) + 1000}, tmp_path / "one" / "node_mapping.pt")
    torch.save({R: torch.arange(150) * 3}, tmp_path / "one" / "edge_mapping.pt")
    yield tmp_path, whole, nodes, edges
    dgl.distributed.exit_client()


def convert(*words):
    return subprocess.run([sys.executable, "-m", "graphwire.dgl.convert", *map(str, words)], capture_output=True,
                          text=True)


def opened(path):
    dgl.distributed.initialize("none.txt")
    return dgl.distributed.DistGraph("g", part_config=str(path))


def test_a_graph_that_lacks_the_rows_is_refused(folder):
    """By the file, its columns and the command. The command needs no dgl, and gives the rows and the ids of before."""
    top, whole, nodes, edges = folder
    with pytest.raises(graphwire.dgl.RowsError, match=r"part0/node_feat.dgl has rows that the graph lacks: "
                       r"a/train_mask, a/x, b/label: convert both, python -m graphwire.dgl.convert .*g.json NEW_FOL"):
        opened(top / "one" / "g.json")
    done = convert(top / "one" / "g.json", top / "new")
    assert done.returncode == 0 and done.stdout.strip().endswith("new/g.json"), done.stderr
    g = opened(top / "new" / "g.json")
    for of_edges, given in ((False, nodes), (True, edges)):
        for name, rows in given.items():
            kind, _, column = name.rpartition("/")
            data = (g.edges[tuple(kind.split(":"))] if of_edges else g.nodes[kind]).data
            assert np.array_equal(np.asarray(data[column][torch.arange(len(rows))]), rows)
    assert g.nodes["a"].data["own"][torch.arange(30)].tolist() == list(range(30))
    for etype in (R, S):
        assert all(torch.equal(*both) for both in zip(g.find_edges(torch.arange(150), etype),
                                                      whole.find_edges(torch.arange(150), etype)))
    assert torch.equal(torch.load(top / "new" / "node_mapping.pt")["a"], torch.arange(30) * 7)
    (top / "one" / "part0" / "node_feat.dgl").unlink()
    (top / "one" / "part0" / "edge_feat.dgl").unlink()
    assert opened(top / "one" / "g.json").num_nodes("a") == 30


def test_other_parts(folder):
    """Rows go with their nodes and edges, and mappings name the same nodes and edges for the new ids."""
    top, whole, nodes, edges = folder
    path = graphwire.dgl.convert_parts(top / "one" / "g.json", top / "two", num_parts=2, method="random")
    g = opened(path)
    mapping, of_edges = (torch.load(top / "two" / f"{kind}_mapping.pt") for kind in ("node", "edge"))
    old = mapping["a"] // 7
    assert sorted(old.tolist()) == list(range(30)) and old.tolist() != list(range(30))
    assert np.array_equal(g.nodes["a"].data["x"][torch.arange(30)].numpy(), nodes["a/x"][old])
    assert np.array_equal(g.nodes["b"].data["label"][torch.arange(40)].numpy(), nodes["b/label"][mapping["b"] - 1000])
    old_edges = of_edges[R] // 3
    assert np.array_equal(g.edges["r"].data["w"][torch.arange(150)].numpy(), edges["a:r:b/w"][old_edges])
    src, dst = g.find_edges(torch.arange(150), R)
    was = whole.find_edges(old_edges, etype=R)
    assert torch.equal(mapping["a"][src] // 7, was[0]) and torch.equal(mapping["b"][dst] - 1000, was[1])


def test_rows_that_do_not_fit(folder):
    top, *_ = folder
    for name, rows, text in (("a/y", np.zeros(29), "a/y of node_feat.dgl has 29 rows, and the graph 30"),
                             ("c/y", np.zeros(29), "the graph has no type c")):
        write(top / "one" / "part0" / "node_feat.dgl", {name: rows})
        with pytest.raises(graphwire.dgl.RowsError, match=text):
            graphwire.dgl.convert_parts(top / "one" / "g.json", top / "bad")
    done = convert(top / "one" / "g.json", top / "bad")
    assert done.returncode == 1 and "graphwire.dgl.convert: " in done.stderr and "Traceback" not in done.stderr


def test_the_format(tmp_path):
    """Every dtype and shape; every file that ends too early, and other files, are errors that name the file."""
    random = np.random.default_rng(1)
    tensors = {f"t/{dtype}{shape}": random.integers(0, 2, shape).astype(dtype)
               for dtype in ("u1", "i1", "i4", "i8", "f2", "f4", "f8") for shape in ((), (0,), (3,), (2, 0), (2, 3, 1))
               if shape or not with_dgl}
    write(tmp_path / "t.dgl", tensors)
    found = later_rows.read_tensors(tmp_path / "t.dgl")
    assert found.keys() == tensors.keys() and all(
        found[name].dtype == rows.dtype and np.array_equal(found[name], rows) and found[name].shape == rows.shape
        for name, rows in tensors.items())
    assert later_rows.read_tensors(tmp_path / "t.dgl", only_names=True).keys() == tensors.keys()
    write(tmp_path / "none.dgl", {})
    assert later_rows.read_tensors(tmp_path / "none.dgl") == {}
    data = (tmp_path / "t.dgl").read_bytes()
    for cut in [*range(0, 200), len(data) - 1]:
        (tmp_path / "cut.dgl").write_bytes(data[:cut])
        for only in (False, True):
            with pytest.raises(graphwire.dgl.RowsError, match=r"cut\.dgl"):
                later_rows.read_tensors(tmp_path / "cut.dgl", only_names=only)
    for at in range(8):
        wrong = bytearray(data)
        wrong[at] ^= 1
        (tmp_path / "wrong.dgl").write_bytes(wrong)
        with pytest.raises(graphwire.dgl.RowsError, match="no file of DGL's save_tensors"):
            later_rows.read_tensors(tmp_path / "wrong.dgl")
