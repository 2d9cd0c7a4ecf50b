"""Batches of the loaders that RelBench's scripts make, those of relbench.modeling.loader of 2.1.1 and 3.0.2 among them:
the same bytes on one host and over two, with the past alone, and with the tables' rows."""

from __future__ import annotations

import hashlib
import importlib.util
import random
import sys
from pathlib import Path

import pytest
import torch
from conftest import in_two_parts
from shared import lacking
from torch_geometric.seed import seed_everything

COUNTS = [6, 3]


@pytest.fixture(scope="module")
def tables(scripts):
    """(HeteroData of the made database, the task of its recommendations)."""
    import made
    from relbench.modeling.graph import make_pkey_fkey_graph
    from relbench.modeling.utils import get_stype_proposal
    from torch_frame.config.text_embedder import TextEmbedderConfig

    random.seed(0)
    dataset = made.Made()
    db = dataset.get_db()
    data, _ = make_pkey_fkey_graph(db, get_stype_proposal(db), TextEmbedderConfig(made.Hashed(), batch_size=256))
    return data, made.Bought(dataset)


@pytest.fixture(scope="module")
def places(tables, tmp_path_factory):
    with in_two_parts(tables[0], tmp_path_factory.mktemp("batches"), "time") as found:
        yield {"memory": tables[0], **found}


def of_nodes(data, task, **options):
    """gnn_entity's loader, and idgnn_recommendation's."""
    from graphwire.pyg import NeighborLoader
    from relbench.modeling.graph import get_link_train_table_input

    given = get_link_train_table_input(task.get_table("val"), task)
    return NeighborLoader(data, num_neighbors=COUNTS, time_attr="time", input_nodes=given.src_nodes,
                          input_time=given.src_time, batch_size=256, shuffle=True, num_workers=0,
                          persistent_workers=False, **options)


def of_links(data, task, version="2.1.1", **options):
    """gnn_recommendation's loader, of a version of RelBench."""
    from relbench.modeling.graph import get_link_train_table_input

    given = get_link_train_table_input(task.get_table("val"), task)
    return _loaders(version).LinkNeighborLoader(
        data=data, num_neighbors=COUNTS, time_attr="time", src_nodes=given.src_nodes, dst_nodes=given.dst_nodes,
        num_dst_nodes=given.num_dst_nodes, src_time=given.src_time, batch_size=256, num_workers=0, **options)


def _loaders(version):
    """relbench.modeling.loader, anew: the bed has replaced the names of PyG that it imports."""
    found = [folder for folder in map(Path, sys.path) if (folder / f"relbench-{version}.dist-info").exists()]
    if not found:
        raise lacking(f"RelBench {version} is not installed")
    spec = importlib.util.spec_from_file_location("loader_of_relbench", found[0] / "relbench/modeling/loader.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WAYS = {
    "entity": lambda data, task: of_nodes(data, task, temporal_strategy="uniform"),
    "entity, last": lambda data, task: of_nodes(data, task, temporal_strategy="last"),
    "idgnn": lambda data, task: of_nodes(data, task, temporal_strategy="last", subgraph_type="bidirectional"),
    "recommendation": lambda data, task: of_links(data, task, shuffle=True),
    "recommendation, one time": lambda data, task: of_links(data, task, share_same_time=True),
    "recommendation of 3.0.2": lambda data, task: of_links(data, task, "3.0.2", share_same_time=True),
}


def batches(loader):
    """The batches of an epoch, in the order of their seeds."""
    seed_everything(3)
    for batch in loader:
        yield from batch if isinstance(batch, tuple) else (batch,)


def digest(batch):
    found = hashlib.sha256()
    for store in batch.stores:
        for name in sorted(store.keys()):
            value = store[name]
            parts = [value]
            if hasattr(value, "feat_dict"):
                parts = [value.col_names_dict, *(one for values in value.feat_dict.values() for one in (
                    (values.values, values.offset) if hasattr(values, "offset") else (values,)))]
            for part in parts:
                is_tensor = isinstance(part, torch.Tensor)
                found.update(f"{store._key} {name} {part.dtype if is_tensor else part}".encode())
                found.update(part.contiguous().numpy().tobytes() if is_tensor else b"")
    return found.hexdigest()


@pytest.fixture
def replaced(scripts, tmp_path, monkeypatch):
    import bed
    import made

    bed.Bed(monkeypatch, scripts, tmp_path, made.Made())


@pytest.mark.parametrize("way", WAYS)
def test_one_host_and_two_have_the_same_batches(tables, places, replaced, way):
    _, task = tables
    found = {name: [digest(batch) for batch in batches(WAYS[way](where, task))] for name, where in places.items()
             if name != "memory"}
    assert len(found["one host"]) == len(set(found["one host"])) > 2
    assert found["one host"] == found["two hosts"]


@pytest.mark.parametrize("place", ["memory", "two hosts"])
@pytest.mark.parametrize("way", WAYS)
def test_batches_have_the_past_and_its_rows(tables, places, replaced, way, place):
    data, task = tables
    edges = 0
    for batch in batches(WAYS[way](places[place], task)):
        (seeds,) = (store for store in batch.node_stores if "seed_time" in store)
        for store in batch.node_stores:
            rows, own = data[store._key].tf[store.n_id], store.tf
            assert own.col_names_dict == rows.col_names_dict and len(own) == len(store.n_id) == len(store.batch)
            for kind, values in rows.feat_dict.items():
                for one, other in zip(*(([some.values, some.offset] if hasattr(some, "offset") else [some])
                                        for some in (values, own.feat_dict[kind]))):
                    assert torch.equal(torch.nan_to_num(one), torch.nan_to_num(other))
            if "time" in store:
                assert torch.equal(store.time, data[store._key].time[store.n_id])
                assert (store.time <= seeds.seed_time[store.batch]).all()
        for store in batch.edge_stores:
            source, _, target = store._key
            ends = batch[source].n_id[store.edge_index[0]], batch[target].n_id[store.edge_index[1]]
            assert torch.equal(batch[source].batch[store.edge_index[0]], batch[target].batch[store.edge_index[1]])
            every, width = data[store._key].edge_index, data[target].num_nodes
            assert torch.isin(ends[0] * width + ends[1], every[0] * width + every[1]).all()
            edges += len(ends[0])
    assert edges
