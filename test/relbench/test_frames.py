"""TensorFrames of PyTorch Frame itself: the frame of a batch is frame[n_id], bit for bit, in all types of columns."""

from __future__ import annotations

import graphwire
import pytest
import torch
from shared import imported

torch_frame = imported("torch_frame")
from conftest import in_two_parts, served  # noqa: E402
from graphwire.pyg import NeighborLoader, NeighborSampler, NodeLoader, TensorFrames, from_pyg, stores  # noqa: E402
from torch_frame import stype  # noqa: E402
from torch_frame.data import MultiEmbeddingTensor, MultiNestedTensor  # noqa: E402
from torch_geometric.data import HeteroData  # noqa: E402

FRAMES = 12
GENERATOR = torch.Generator().manual_seed(11)


def number(high, low=0):
    return int(torch.randint(low, high + 1, (), generator=GENERATOR))


def lists(rows, columns, dtype, longest=4):
    """Some are empty, some entries are missing (-1 and NaN), and a column may have empty lists alone."""
    lengths = torch.randint(0, longest + 1, (rows, columns), generator=GENERATOR)
    lengths[:, 0] *= number(1)
    offset = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.flatten().cumsum(0)])
    return MultiNestedTensor(rows, columns, entries(int(offset[-1]), dtype), offset)


def entries(count, dtype):
    found = torch.randint(-1, 100, (count,), generator=GENERATOR).to(dtype)
    if dtype.is_floating_point:
        found[torch.rand(count, generator=GENERATOR) < 0.2] = float("nan")
    return found


def embeddings(rows, columns):
    widths = torch.tensor([0, *(number(5, 1) for _ in range(columns))])
    offset = widths.cumsum(0)
    return MultiEmbeddingTensor(rows, columns, entries(rows * int(offset[-1]), torch.float32).view(
        rows, int(offset[-1])), offset)


VALUES = {
    stype.numerical: lambda rows, columns: entries(rows * columns, torch.float32).view(rows, columns),
    stype.categorical: lambda rows, columns: entries(rows * columns, torch.int64).view(rows, columns),
    stype.timestamp: lambda rows, columns: entries(rows * columns * 7, torch.int64).view(rows, columns, 7),
    stype.multicategorical: lambda rows, columns: lists(rows, columns, torch.int64),
    stype.sequence_numerical: lambda rows, columns: lists(rows, columns, torch.float32, 30),
    stype.text_tokenized: lambda rows, columns: {"input_ids": lists(rows, columns, torch.int64, 40),
                                                 "attention_mask": lists(rows, columns, torch.bool)},
    stype.embedding: embeddings, stype.text_embedded: embeddings, stype.image_embedded: embeddings}


def frame_of(rows, kinds):
    found, names = {}, {}
    for kind in kinds:
        columns = number(3, 1)
        found[kind], names[kind] = VALUES[kind](rows, columns), [f"{kind.value} {i}" for i in range(columns)]
    return torch_frame.TensorFrame(found, names, y=torch.rand(rows) if number(1) else None,
                                   num_rows=None if kinds else rows)


def tensors(values):
    if isinstance(values, dict):
        return [one for key in sorted(values) for one in (key, *tensors(values[key]))]
    return [values] if isinstance(values, torch.Tensor) else [values.num_rows, values.num_cols, values.values,
                                                              values.offset]


def bits(frame):
    """All that a frame is, as something that == compares, NaN too."""
    found = [frame.num_rows, frame.col_names_dict, list(frame.feat_dict)]
    for values in (*frame.feat_dict.values(), *(() if frame.y is None else (frame.y,))):
        found += [(one.dtype, one.shape, one.contiguous().numpy().tobytes()) if isinstance(one, torch.Tensor) else one
                  for one in tensors(values)]
    return found


@pytest.fixture(scope="module")
def data():
    """A node type for each of the frames: one for each type of columns, all in one, none, and no rows."""
    made = HeteroData()
    kinds = list(VALUES)
    for i, some in enumerate([*([kind] for kind in kinds), kinds, [], kinds]):
        rows = 0 if i == FRAMES - 1 else number(40, 1)
        made[f"t{i}"].tf, made[f"t{i}"].num_nodes = frame_of(rows, some), rows
        made[f"t{i}", "to", f"t{i}"].edge_index = torch.randint(0, rows, (2, 80)) if rows else torch.empty(
            2, 0, dtype=torch.int64)
    assert len(made.node_types) == FRAMES
    return made


@pytest.fixture(scope="module", params=["one part", "two hosts"])
def place(request, data, tmp_path_factory):
    if request.param == "one part":
        with from_pyg(data) as graph:
            yield served(graph, data)
    else:
        with in_two_parts(data, tmp_path_factory.mktemp("frames")) as places:
            yield places[request.param]


def test_rows_of_the_data(data, place):
    for ntype in data.node_types:
        frame, found = data[ntype].tf, place[ntype].tf
        assert found.col_names_dict == frame.col_names_dict and len(found) == found.num_rows == len(frame)
        assert found.stypes == frame.stypes and found.num_cols == frame.num_cols
        for count in (0, 1, 50):
            ids = torch.randint(0, max(1, len(frame)), (count if len(frame) else 0,), generator=GENERATOR)
            assert bits(found[ids]) == bits(frame[ids])


def ways(place, ntype):
    """Loaders over a graph, each by another way of a batch's rows."""
    graph, frames = place.graph, place._frames
    seeds = (ntype, torch.arange(graph.num_nodes(ntype)))
    sampler = NeighborSampler(graph, [3, 2])
    yield NeighborLoader(place, [3, 2], input_nodes=seeds, batch_size=9)
    yield NeighborLoader(stores(graph, frames.names), [3], input_nodes=seeds, batch_size=50, transform=frames)
    yield NodeLoader(stores(graph, {ntype: [] for ntype in graph.ntypes}, frames=frames), sampler, seeds, batch_size=9)
    yield NodeLoader(place, sampler, seeds, batch_size=50)


def test_frames_of_batches(data, place):
    for ntype in data.node_types[:-1]:
        for loader in ways(place, ntype):
            for batch in loader:
                for kind in data.node_types:
                    assert bits(batch[kind].tf) == bits(data[kind].tf[batch[kind].n_id])
                    assert not any(name.startswith("tf.") for name in batch[kind].keys())


def test_a_column_that_is_not_stored_is_named(data):
    made = HeteroData()
    made["t"].tf = torch_frame.TensorFrame({stype.multicategorical: MultiNestedTensor.from_tensor_mat(
        [[torch.arange(500 if i == 3 else 1), torch.arange(2)] for i in range(100)])},
        {stype.multicategorical: ["many", "two"]})
    made["t", "to", "t"].edge_index = torch.randint(0, 100, (2, 80))
    with pytest.warns(UserWarning, match=r"tf\.many of t \(its longest list has 500 entries"):
        graph = from_pyg(made)
    frames = TensorFrames({"t": made["t"].tf})
    assert frames.ragged == {"t": ["many"]}
    for batch in NeighborLoader(graphwire.pyg.served(graph, frames), [3], input_nodes="t", batch_size=30):
        assert bits(batch["t"].tf) == bits(torch_frame.TensorFrame(
            {stype.multicategorical: made["t"].tf.feat_dict[stype.multicategorical][batch["t"].n_id, 1]},
            {stype.multicategorical: ["two"]}))
    with pytest.raises(ValueError, match=r"does not store tf\.many, tf\.many\.length of t"):
        served(graph, made)
