"""Damaged files of data sets, and of other programs' models and parts: each reader ends in its own error, which names
the file's folder. A hostile pickle ends there too."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import test_datasets as sets
import torch
from damage import damages
from graphwire._files.pickles import load, load_torch
from graphwire.datasets import DatasetError
from graphwire.datasets import load as load_set
from graphwire.dgl import host
from graphwire.dgl.distributed.partition import load_partition_book
from graphwire.dgl.parts import PartsError, _config, _Parts
from graphwire.dgl.subset import data as subset
from graphwire.dgl.tensor_files import RowsError, read_tensors, write_tensors

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
A = sets.A
TYPES = {"raw/num-node-dict.csv.gz": b"author,paper\n20,60\n",
         "raw/triplet-type-list.csv.gz": b"paper,cites,paper\nauthor,writes,paper\n"}


def nodes(split):
    return {name.replace(".gz", ""): sets.gzip.decompress(body) if body else body
            for name, body in sets.of_nodes(split).items()}


def npz(**arrays):
    out = sets.io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def saved(**values):
    out = sets.io.BytesIO()
    torch.save(values, out)
    return out.getvalue()


def files_of(name):
    """The files of a small set, below the root."""
    if name == "Cora":
        return {f"Cora/raw/{file}": body for file, body in sets.planetoid("Cora")[0].items()}
    if name == "reddit":
        kinds = np.full(sets.NODES, 3)
        return {"reddit/reddit_data.npz": npz(feature=A["feat"], label=A["label"], node_types=kinds),
                "reddit/reddit_graph.npz": npz(row=A["edge"][:, 0], col=A["edge"][:, 1])}
    if name == "ogbn-products":
        files = {**sets.of_nodes("sales_ranking"), "raw/edge.csv": nodes("time")["raw/edge.csv"]}
        del files["raw/edge.csv.gz"]
    elif name == "ogbn-papers100M":
        files = {name: body for name, body in nodes("time").items() if "split" in name}
        files |= {"raw/data.npz": npz(edge_index=A["edge"].T, node_feat=A["feat"], num_nodes_list=np.array([60])),
                  "raw/node-label.npz": npz(node_label=A["label"][:, None])}
    elif name == "ogbn-mag":
        files = {name: sets.gzip.compress(body) for name, body in TYPES.items()}
        files |= {f"raw/{place}": sets.csv(rows) for place, rows in (
            ("node-feat/paper/node-feat.csv.gz", A["feat"]), ("node-label/paper/node-label.csv.gz", A["label"]),
            ("relations/paper___cites___paper/edge.csv.gz", A["edge"]),
            ("relations/author___writes___paper/edge.csv.gz", A["edge"] % 20))}
        files |= {f"split/time/paper/{word}.csv.gz": sets.csv(A[word]) for word in ("train", "valid", "test")}
    else:
        files = {name: body for name, body in nodes("time").items() if "split" not in name and "label" not in name}
        files |= {f"split/time/{word}.pt": saved(edge=A["edge"], year=A["weight"], n=np.int64(3), t=torch.arange(4))
                  for word in ("train", "valid", "test")}
    return {f"{name.replace('-', '_')}/{file}": body for file, body in files.items()}


@pytest.mark.parametrize(("name", "trials"), [
    ("Cora", 30), ("reddit", 60), ("ogbn-products", 8), ("ogbn-papers100M", 16), ("ogbn-mag", 6), ("ogbl-collab", 12)])
def test_sets_end_in_dataset_errors(tmp_path, name, trials):
    files, errors = files_of(name), 0
    sets.write(tmp_path, files)
    load_set(name, tmp_path, download=False)
    for seed, (file, body) in enumerate(files.items()):
        for what, other in damages(body, trials, seed):
            (tmp_path / file).write_bytes(other)
            try:
                found = load_set(name, tmp_path, download=False).arrays
                assert all(len(rows) == found.counts[ntype] for (ntype, _), rows in found.node_features.items())
                assert all(0 <= ids.min() and ids.max() < found.counts[ntype] for (src, _, dst), ends in
                           found.edges.items() for ntype, ids in zip((src, dst), ends) if len(ids)), (file, what)
            except DatasetError as error:
                assert str(tmp_path / file.split("/")[0]) in str(error) and "\n" not in str(error), (file, what)
                errors += 1
        (tmp_path / file).write_bytes(body)
    assert errors > len(files) * trials // 4


# A structure with a field of objects, whose flags deny it; NumPy itself would take the bytes for pointers.
FORGED = (b"cnumpy\ndtype\n(S'V8'\nI0\nI1\ntR(I3\nS'|'\nN(S'a'\nt(dS'a'\n(cnumpy\ndtype\n(S'O8'\nI0\nI1\ntR(I3\nS'|'\n"
          b"NNNI-1\nI-1\nI63\ntbI0\ntsI8\nI1\nI0\ntb")
SCALAR = b"cnumpy.core.multiarray\nscalar\n(" + FORGED + b"S'" + b"\\x41" * 8 + b"'\ntR."


class Run:
    def __reduce__(self):
        return print, ("ran",)


def array(dtype, state=(3, "|", None, None, None, -1, -1, 0), shape=(1,), data=b"\0" * 8):
    """A pickle of an array whose dtype has this state."""
    class Dtype:
        def __reduce__(self):
            return np.dtype, (dtype, False, True), state

    class Array:
        def __reduce__(self):
            return np._core.multiarray._reconstruct, (np.ndarray, (0,), b"b"), (1, shape, Dtype(), False, data)

    return pickle.dumps(Array(), 2)


def test_a_pickle_makes_plain_numbers_only(tmp_path):
    path = tmp_path / "file"
    for protocol in range(5):
        for rows in (np.eye(3), np.arange(6, dtype=">i2").reshape(2, 3), np.asfortranarray(np.ones((2, 3), "f4")),
                     np.array([True, False]), np.zeros((0, 4)), np.float64(2), np.array(7, "u8")):
            path.write_bytes(pickle.dumps(rows, protocol))
            found = load(path)
            assert np.array_equal(found, rows) and found.dtype == rows.dtype and found.shape == rows.shape
    path.write_bytes(array("f8"))
    assert load(path).tolist() == [0.0]
    for body in (SCALAR, pickle.dumps(Run()), array("O8"), array("V8"), array("S8"), array("U2"), array("M8"),
                 array("f8", (3, "|", None, ("a",), {"a": 1}, 8, 1, 0)),
                 array("f8", (3, "|", None, None, None, -1, -1, 63)),
                 array("f8", (3, "|", (np.dtype("f8"), (2,)), None, None, -1, -1, 0)),
                 array("f8", shape=(2**40, 2**40)),
                 array("f8", shape=(-1,)), array("f8", shape=(2,)), array("f8", data=[Run()]),
                 pickle.dumps(np.array([Run()], object)), pickle.dumps(np.ndarray), b"cbuiltins\neval\n(S'1'\ntR.",
                 b"cbuiltins\nlist\n(N(dS'append'\nI1\nstb.", b"r\xff\xff\xff\xff.", b"\x8e" + b"\xff" * 8,
                 b"(" * 99999):
        path.write_bytes(body)
        with pytest.raises(Exception) as refused:
            load(path)
        assert not isinstance(refused.value, MemoryError), body[:40]


def test_torch_files_make_plain_numbers_only(tmp_path):
    path = tmp_path / "file.pt"
    path.write_bytes(saved(a=np.eye(2), b=np.float32(3), c=torch.arange(3), d=["x"]))
    found = load_torch(path, arrays=True)
    assert np.array_equal(found["a"], np.eye(2)) and found["b"] == 3 and found["c"].tolist() == [0, 1, 2]
    body = b"\x80\x02" + SCALAR.replace(b"S'" + b"\\x41" * 8 + b"'", b"U\x08AAAAAAAA")
    # In a child, which a signal would end.
    done = subprocess.run([sys.executable, "-c", """
import sys, zipfile
from graphwire._files.pickles import load_torch
with zipfile.ZipFile(sys.argv[1], "w") as file:
    file.writestr("a/data.pkl", bytes.fromhex(sys.argv[2]))
    file.writestr("a/version", "3")
    file.writestr("a/byteorder", "little")
try:
    load_torch(sys.argv[1], arrays=True)
except ValueError as error:
    print("refused", error)""", path, body.hex()], capture_output=True, text=True)
    assert done.stdout.startswith("refused") and not done.returncode, done.stderr[-500:]
    for value in (np.array(["x"]), np.array([None], object), Run()):
        path.write_bytes(saved(a=value))
        with pytest.raises(ValueError, match=r"not a file of tensors$|is no dtype of numbers"):
            load_torch(path, arrays=True)


def test_files_of_dgl_and_of_its_subset(tmp_path):
    """save_tensors' files, save_graphs' files, Reddit, the JSON of parts, and a file of an optimizer."""
    write_tensors(tmp_path / "rows.dgl", {"a/x": A["feat"], "b": A["label"]})
    graph = subset.graph((A["edge"][:, 0], A["edge"][:, 1]), num_nodes=sets.NODES)
    graph.ndata["x"] = torch.from_numpy(A["feat"])
    subset.save_graphs(str(tmp_path / "graphs.bin"), [graph], {"y": torch.arange(3)})
    sets.write(tmp_path, {name: body for name, body in files_of("reddit").items()})
    (tmp_path / "parts.json").write_text(json.dumps({
        "graph_name": "g", "num_parts": 2, "node_map": {"_N": [[0, 30], [30, 60]]}, "ntypes": {"_N": 0},
        "edge_map": {"_N:_E:_N": [[0, 150], [150, 300]]}, "etypes": {"_N:_E:_N": 0}, "part-0": {}, "part-1": {}}))
    error = host.error_type()
    readers = {"rows.dgl": (lambda path: read_tensors(path), RowsError),
               "graphs.bin": (lambda path: subset.load_graphs(str(path)), (subset.DGLError, NotImplementedError)),
               "reddit/reddit_data.npz": (lambda _: subset.RedditDataset(raw_dir=str(tmp_path)), subset.DGLError),
               "reddit/reddit_graph.npz": (lambda _: subset.RedditDataset(raw_dir=str(tmp_path)), subset.DGLError),
               "parts.json": (lambda path: (_config(path), _Parts(path)), PartsError)}
    for seed, (file, (read, kind)) in enumerate(readers.items()):
        path, errors = tmp_path / file, 0
        body = path.read_bytes()
        read(path)
        for what, other in damages(body, 100, seed):
            path.write_bytes(other)
            try:
                read(path)
            except kind as refused:
                assert str(tmp_path) in str(refused), (file, what, str(refused))
                errors += 1
        path.write_bytes(body)
        assert errors > 20, file
    body = (tmp_path / "parts.json").read_bytes()
    for _, other in damages(body, 100, 9):
        (tmp_path / "parts.json").write_bytes(other)
        try:
            load_partition_book(str(tmp_path / "parts.json"), 0)
        except (error, TypeError, AssertionError):
            pass
