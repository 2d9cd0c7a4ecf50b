"""TensorFrames: each column of a frame comes back with the rows of the batch's nodes. Stand-ins of PyTorch Frame's
classes: its package need not be installed."""

from __future__ import annotations

import copy
import pickle

import graphwire
import pytest
import torch

pytest.importorskip("torch_geometric")
from graphwire.pyg import NeighborSampler, NodeLoader, TensorFrames, stores
from torch_geometric.data import Data, HeteroData

NONE = torch.empty(0, dtype=torch.int64)


class Ragged:
    """MultiNestedTensor: lists of different lengths, row after row."""

    def __init__(self, num_rows, num_cols, values, offset):
        assert len(offset) == num_rows * num_cols + 1 and len(values) == offset[-1]
        self.num_rows, self.num_cols, self.values, self.offset = num_rows, num_cols, values, offset

    @classmethod
    def of(cls, rows):
        lists = [torch.tensor(some, dtype=torch.int64) for row in rows for some in row]
        ends = torch.tensor([0, *map(len, lists)]).cumsum(0)
        return cls(len(rows), len(rows[0]) if rows else 2, torch.cat([torch.empty(0, dtype=torch.int64), *lists]), ends)

    def __len__(self):
        return self.num_rows

    def rows(self):
        ends = self.offset.tolist()
        lists = [self.values[begin:end].tolist() for begin, end in zip(ends, ends[1:])]
        return [lists[i * self.num_cols:(i + 1) * self.num_cols] for i in range(self.num_rows)]

    def __getitem__(self, index):
        rows = self.rows()
        return Ragged.of([rows[i] for i in index.tolist()])


class Embedded:
    """MultiEmbeddingTensor: columns of several widths, side by side."""

    def __init__(self, num_rows, num_cols, values, offset):
        assert (values.ndim == 2 or not num_rows) and len(offset) == num_cols + 1
        self.values, self.offset = values, offset

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        rows = self.values[index]  # without rows PyTorch Frame has values of one dimension
        return Embedded(len(rows), len(self.offset) - 1, rows if len(rows) else torch.empty(0), self.offset)


class Frame:
    """TensorFrame."""

    def __init__(self, feat_dict, col_names_dict, y=None):
        self.feat_dict, self.col_names_dict, self.y = feat_dict, col_names_dict, y

    def __len__(self):
        return len(next(iter(self.feat_dict.values())))

    def __getitem__(self, index):
        found = copy.copy(self)
        found.feat_dict = {kind: values[index] for kind, values in self.feat_dict.items()}
        found.y = None if self.y is None else self.y[index]
        return found


def frame_of(count, ragged=False):
    columns = {"numerical": torch.rand(count, 3), "categorical": torch.randint(-1, 5, (count, 2)),
               "timestamp": torch.randint(0, 60, (count, 1, 7)),
               "embedding": Embedded(count, 2, torch.rand(count, 7), torch.tensor([0, 3, 7]))}
    names = {"numerical": ["age", "Num Reviews", "a/b"], "categorical": ["kind", ">=50"], "timestamp": ["time"],
             "embedding": ["text", "title"]}
    if ragged:
        names["multicategorical"] = ["tags", "many"]
        columns["multicategorical"] = Ragged.of([[[i, -1][:i % 3], [5] * (i == 7) * 1000] for i in range(count)])
    return Frame(columns, names, torch.rand(count))


def check(found, wanted):
    """The frames have the same columns and rows, except the column "many"."""
    assert list(found.feat_dict) == list(wanted.feat_dict) and torch.equal(found.y, wanted.y)
    assert found.col_names_dict == {kind: [name for name in names if name != "many"]
                                    for kind, names in wanted.col_names_dict.items()}
    for kind in wanted.feat_dict:
        one, other = found.feat_dict[kind], wanted.feat_dict[kind]
        assert type(one) is type(other)
        if isinstance(one, Ragged):
            assert one.rows() == [row[:1] for row in other.rows()]
            continue
        one, other = (some.values if isinstance(some, Embedded) else some for some in (one, other))
        assert one.dtype == other.dtype and torch.equal(one, other)


@pytest.fixture(scope="module")
def tables():
    torch.manual_seed(1)
    data = HeteroData()
    data["user"].tf, data["item"].tf = frame_of(60), frame_of(40, ragged=True)
    data["user", "buys", "item"].edge_index = torch.stack([torch.randint(0, 60, (300,)), torch.randint(0, 40, (300,))])
    data["item", "of", "user"].edge_index = data["user", "buys", "item"].edge_index.flip(0)
    with pytest.warns(UserWarning, match=r"tf.many of item \(its longest list has 1000 entries"):
        graph = graphwire.pyg.from_pyg(data)
    return data, graph


def test_frames_of_a_batch(tables):
    data, graph = tables
    frames = pickle.loads(pickle.dumps(TensorFrames({"user": data["user"].tf[NONE], "item": data["item"].tf})))
    assert frames.ragged == {"user": [], "item": ["many"]}
    assert graph.num_nodes("user") == 60 and graph.feature("tf.a/b", "user").shape == (60,)
    loader = NodeLoader(stores(graph, frames.names), NeighborSampler(graph, [4, 3]), ("user", torch.arange(20)),
                        batch_size=10, transform=frames)
    for batch in loader:
        for ntype in ("user", "item"):
            check(batch[ntype].tf, data[ntype].tf[batch[ntype].n_id])
            assert not any(name.startswith("tf.") for name in batch[ntype].keys())


def test_frames_of_to_pyg(tables):
    data, graph = tables
    frames = TensorFrames({ntype: data[ntype].tf for ntype in ("user", "item")})
    for batch in graphwire.NodeLoader(graph, None, [3], ntype="item", features=frames.names, batch_size=15):
        found = frames(batch.to_pyg())
        check(found["user"].tf, data["user"].tf[found["user"].n_id])


def test_a_homogeneous_graph():
    data = Data(edge_index=torch.randint(0, 30, (2, 100)), tf=frame_of(30), edge_attr=torch.rand(100))
    graph = graphwire.pyg.from_pyg(data)
    frames = TensorFrames(data.tf)
    batch = frames(next(iter(graphwire.NodeLoader(graph, None, [3], features=frames.names))).to_pyg())
    check(batch.tf, data.tf[batch.n_id])


def test_frames_that_do_not_fit(tables):
    data, graph = tables
    with pytest.raises(TypeError, match="user is Tensor, and not a TensorFrame"):
        TensorFrames({"user": torch.ones(3)})
    two = Frame({"numerical": torch.ones(3, 1)}, {"numerical": ["y"]}, torch.ones(3))
    with pytest.raises(ValueError, match='a target, and a column "y"'):
        TensorFrames(two)
    frames = TensorFrames({"user": data["user"].tf})
    batch = next(iter(graphwire.NodeLoader(graph, None, [3], ntype="user", features={"user": "tf.age"}))).to_pyg()
    with pytest.raises(AttributeError, match=r"lacks tf\.Num Reviews, .* of user"):
        frames(batch)
