"""What a reader finds in the graphs and the checkpoint of a folder of test/formats, as {name: digest or value}.

test/formats/make writes the folder and this account of it; test/python/test_formats.py takes the account again, with
the code as it is now, and compares.
"""

from __future__ import annotations

import hashlib

import graphwire
import numpy as np

GRAPHS = ("one", "two", "types", "knowledge")
TENSORS = {"nodes": {"kind": "adam", "lr": 0.1}, "edges": {"kind": "adagrad", "lr": 0.5}, "striped": None}


def digest(*arrays):
    """Returns the SHA-256 of types, shapes and bytes."""
    found = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def opened(folder, **options):
    return graphwire.open(folder, numpy=True, **options)


def graph_account(folder, **options):
    """Returns counts, edges, rows of features, texts and mini-batches."""
    graph = opened(folder, **options)
    found = {"graph_id": f"{graph.graph_id:016x}", "parts": graph.num_parts}
    for ntype in graph.ntypes:
        found[f"nodes {ntype}"] = [len(graph.part_range(part, ntype)) for part in range(graph.num_parts)]
    for etype in graph.etypes:
        found[f"edges {etype}"] = [len(graph.part_edge_range(part, etype)) for part in range(graph.num_parts)]
        found[f"ends {etype}"] = digest(*graph.find_edges(slice(None), etype))
        found[f"reverse {etype}"] = graph.reverse(etype)
    for feature in graph.features:
        found[f"feature {feature.type}/{feature.name}"] = digest(feature[:])
    for ntype in graph.ntypes:
        try:
            texts = "\n".join(graph.node_texts(slice(None), ntype))
        except graphwire.NotFoundError:
            continue
        found[f"texts {ntype}"] = hashlib.sha256(texts.encode()).hexdigest()
    seeds = {ntype: None for ntype in graph.ntypes}
    loader = graphwire.NodeLoader(graph, seeds, [3, 2], batch_size=16, seed=5)
    found["batches"] = [f"{batch.digest():016x}" for batch in loader]
    loader = graphwire.EdgeLoader(graph, {etype: None for etype in graph.etypes}, [2], batch_size=32, negatives=2,
                                  exclude=["edges"], seed=7)
    found["edge batches"] = [f"{batch.digest():016x}" for batch in loader]
    return found


def step(tensor, options, number):
    ids = np.arange(0, len(tensor), 3)
    shape = (len(ids), *tensor.shape[1:])
    gradients = (np.arange(np.prod(shape)) * (36 + number) % 101 - 50).reshape(shape).astype(np.float32) / 64
    tensor.push(ids, gradients, **options)


def checkpoint_account(parts, folder):
    """Returns the restored rows, and the rows after one more optimizer step."""
    graph = opened(parts)
    graph.restore(folder)
    found = {"tensors": sorted([one["name"], one["kept"], one["dtype"], list(one["shape"])] for one in graph.tensors)}
    for name, options in TENSORS.items():
        tensor = graph.open_tensor(name, kept=name == "striped")
        found[f"rows {name}"] = digest(tensor[:])
        if options is not None:
            step(tensor, options, 2)
            found[f"rows {name}, a step later"] = tensor[:].astype(float).round(6).tolist()
    return found


def batches(folder):
    """Returns mini-batches of nodes and of edges, as arrays of NumPy and as tensors; torch is needed."""
    found = []
    for numpy in (True, False):
        one, types = (graphwire.open(folder / name, numpy=numpy) for name in ("one", "types"))
        nodes = graphwire.NodeLoader(one, range(12), [3, 2], features="feat", labels="label", edge_features="weight",
                                     batch_size=4, seed=3)
        edges = graphwire.EdgeLoader(types, {etype: range(4) for etype in types.etypes}, [2], batch_size=6, negatives=2,
                                     seed=4)
        found += [next(iter(nodes)), next(iter(edges))]
    return found


def account(folder):
    found = {name: graph_account(folder / name) for name in GRAPHS}
    found["checkpoint"] = checkpoint_account(folder / "two", folder / "checkpoint")
    return found
