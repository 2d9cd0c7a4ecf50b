"""The contract of graphwire.pyg.NeighborLoader and LinkNeighborLoader with PyTorch Geometric's: arguments, orders of
seeds, loops, transforms, attributes. docs/PYG.md has the table of all arguments; test_pyg_batches.py checks the draws.
"""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import re
import signal
import warnings
from pathlib import Path

import graphwire
import pytest
import torch
import torch_geometric.loader as pyg
from conftest import Servers
from graphwire._base.native import lib
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, NeighborSampler, from_pyg, stores
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler, WeightedRandomSampler
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import NegativeSampling

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
TOP = Path(__file__).resolve().parents[2]
SAME, NOTHING = "the same", "no effect"
# Every argument, and a value for those that have no effect.
TABLE = {
    "data": SAME, "num_neighbors": SAME, "input_nodes": SAME, "edge_label_index": SAME, "edge_label": SAME,
    "replace": SAME, "neg_sampling": SAME, "neg_sampling_ratio": SAME, "weight_attr": "other law", "transform": SAME,
    "transform_sampler_output": SAME, "filter_per_worker": SAME, "neighbor_sampler": "other law", "custom_cls": SAME,
    "input_id": SAME, "batch_size": SAME, "shuffle": SAME, "sampler": SAME, "batch_sampler": SAME, "drop_last": SAME,
    "generator": SAME, "collate_fn": SAME, "dataset": SAME, "pin_memory": SAME, "pin_memory_device": SAME,
    "subgraph_type": "other law", "num_workers": (NOTHING, 2), "persistent_workers": (NOTHING, True),
    "prefetch_factor": (NOTHING, 3), "worker_init_fn": (NOTHING, print), "multiprocessing_context": (NOTHING, "spawn"),
    "timeout": (NOTHING, 5), "in_order": (NOTHING, False), "is_sorted": (NOTHING, True),
    "share_memory": (NOTHING, True),
    "disjoint": SAME, "temporal_strategy": SAME, "time_attr": "other law", "input_time": SAME, "edge_label_time": SAME,
    "directed": SAME}
LOADERS = {NeighborLoader: pyg.NeighborLoader, LinkNeighborLoader: pyg.LinkNeighborLoader}


def some_data(nodes=60, edges=400):
    torch.manual_seed(3)
    return Data(edge_index=torch.randint(0, nodes, (2, edges)), x=torch.randn(nodes, 3), y=torch.arange(nodes) % 4,
                edge_attr=torch.arange(edges), train_mask=torch.rand(nodes) < 0.5)


DATA = some_data()


def parameters(of):
    return {name: one for name, one in inspect.signature(of).parameters.items() if name not in ("self", "kwargs")}


@pytest.mark.parametrize("ours", LOADERS)
def test_signatures(ours):
    """PyG's parameters, in its order, with its defaults; and our own."""
    own = ["ids", "dtype", "edge_ids", "depth", "lookahead", "cache_bytes", "cache_batches"]
    theirs = parameters(LOADERS[ours].__init__)
    mine = parameters(ours.__init__)
    assert list(mine) == [*theirs, *own]
    assert all(mine[name].kind is inspect.Parameter.KEYWORD_ONLY for name in own)
    for name, one in theirs.items():
        assert (mine[name].default, mine[name].kind) == (one.default, one.kind), name
    assert inspect.signature(ours.__init__).parameters["kwargs"].kind is inspect.Parameter.VAR_KEYWORD


def test_the_table_has_every_argument():
    """Those of PyG's loaders, and what these pass to NodeLoader, LinkLoader and DataLoader; as docs/PYG.md says."""
    every = {name for of in (*LOADERS.values(), pyg.NodeLoader, pyg.LinkLoader, DataLoader) for name in parameters(
        of.__init__)} - {"node_sampler", "link_sampler", "args"}
    assert every | {"share_memory"} == set(TABLE)
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (the same|other law|no effect|refused)\b",
                      (TOP / "docs/PYG.md").read_text().split("### The arguments")[1].split("## Whose ids")[0], re.M)
    written = {name: verdict for names, verdict in rows for name in re.findall(r"`(\w+)`", names)}
    assert written == {name: one if isinstance(one, str) else one[0] for name, one in TABLE.items()}


def test_refused_weights(source):
    for end in ("src_weight", "dst_weight"):
        for weight, text in ((torch.ones(50), r"shape \[50\] for 60 nodes"), (-torch.ones(60), "not negative"),
                             (torch.zeros(60), "not all 0"), (torch.full((60,), torch.nan), "finite"),
                             (torch.full((60,), torch.inf), "finite"), (torch.ones(60, 2), r"\[60, 2\]")):
            with pytest.raises(ValueError, match=f"{end}.*{text}"):
                LinkNeighborLoader(source, [2], neg_sampling=NegativeSampling("binary", **{end: weight}))


def test_errors(source):
    for call, error, text in (
            (lambda: NeighborLoader(source, [2], input_time=torch.arange(60)), ValueError, "time_attr"),
            (lambda: LinkNeighborLoader(source, [2], time_attr="time"), ValueError, "edge_label_time"),
            (lambda: LinkNeighborLoader(source, [2], edge_label=torch.ones(400), neg_sampling="triplet"), ValueError,
             "edge_label"),
            (lambda: LinkNeighborLoader(source, [2], edge_label=torch.ones(3)), ValueError, "3 values for 400"),
            (lambda: LinkNeighborLoader(source, [2], torch.ones(3, 4)), ValueError, r"edge_label_index .*\[2, n\]"),
            (lambda: NeighborLoader(source, [2], torch.ones(60)), TypeError, "float32"),
            (lambda: NeighborLoader(source, [2], torch.full((60,), 2, dtype=torch.uint8)), ValueError,
             "input_nodes: uint8 .* 0 and 1 only"),
            (lambda: NeighborLoader(source, [2], torch.ones(50, dtype=torch.bool)), IndexError, "50"),
            (lambda: NeighborLoader(source, [2], torch.tensor([3, 60])), LookupError, "60"),
            (lambda: NeighborLoader(source, [2], torch.tensor([-1])), LookupError, "-1"),
            (lambda: LinkNeighborLoader(source, [2], torch.tensor([[0], [60]])), LookupError, "60"),
            (lambda: NeighborLoader(source, [2], input_id=torch.arange(3)), ValueError, "input_id"),
            (lambda: NeighborLoader(source, "2"), TypeError, "num_neighbors"),
            (lambda: NeighborLoader(source, [2], neighbor_sampler=object()), TypeError, "neighbor_sampler"),
            (lambda: NeighborLoader(source, [2], weight_attr="no"), graphwire.NotFoundError, "no"),
            (lambda: NeighborLoader(source, [2], ids="mine"), ValueError, "ids"),
            (lambda: NeighborLoader(3, [2]), TypeError, "data is"),
            (lambda: NeighborLoader(source, [2], bath_size=3), TypeError,
             r"NeighborLoader\(\) has no argument 'bath_size': did you mean 'batch_size'"),
            (lambda: NeighborLoader(source, [2], batch_size=0), ValueError, "batch_size"),
            (lambda: NeighborLoader(source, [2], shuffle=True, sampler=range(3)), ValueError, "sampler")):
        with pytest.raises(error, match=text):
            call()


def test_arguments_without_effect(source):
    """One warning names them all, and the batches stay the same."""
    named = {name: one[1] for name, one in TABLE.items() if one[0] == NOTHING}
    torch.manual_seed(5)
    expected = [batch.e_id for batch in NeighborLoader(source, [3, 2], batch_size=16, shuffle=True)]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        loader = NeighborLoader(source, [3, 2], batch_size=16, shuffle=True, **named)
    ours = [str(one.message) for one in warned if "no effect" in str(one.message)]
    assert len(ours) == 1 and all(name in ours[0] for name in named)
    assert next(one for one in warned if str(one.message) == ours[0]).filename == __file__
    torch.manual_seed(5)
    assert all(torch.equal(batch.e_id, one) for batch, one in zip(loader, expected))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NeighborLoader(source, [3, 2], num_workers=0, is_sorted=False)


# --- Orders and loops. ---

class Uneven:
    def __iter__(self):
        yield from ([0, 1], [5], [7, 6, 3])

    def __len__(self):
        return 3


ORDERS = {
    "plain": lambda: {"batch_size": 7}, "shuffled": lambda: {"batch_size": 7, "shuffle": True},
    "whole batches": lambda: {"batch_size": 6, "shuffle": True, "drop_last": True},
    "short one dropped": lambda: {"batch_size": 7, "drop_last": True},
    "generator": lambda: {"batch_size": 7, "shuffle": True, "generator": torch.Generator().manual_seed(4)},
    "with replacement": lambda: {"batch_size": 7, "sampler": RandomSampler(range(60), True, 20)},
    "a part": lambda: {"batch_size": 7, "sampler": RandomSampler(range(60), num_samples=20)},
    "weighted": lambda: {"batch_size": 7, "sampler": WeightedRandomSampler(torch.arange(60.), 30)},
    "imbalanced": lambda: {"batch_size": 7, "sampler": pyg.ImbalancedSampler(DATA.y)},
    "distributed": lambda: {"batch_size": 7, "sampler": DistributedSampler(range(60), 3, 1, seed=2)},
    "batches": lambda: {"batch_sampler": Uneven()},
    "sampler of batches": lambda: {"batch_sampler": BatchSampler(range(0, 60, 2), 4, False)}}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_are_those_of_torch(source, name):
    """Of three epochs, for one seed of torch; and len()."""
    found = []
    for of in (lambda **given: DataLoader(range(60), collate_fn=list, **given),
               lambda **given: NeighborLoader(source, [1], **given)):
        torch.manual_seed(9)
        loader = of(**ORDERS[name]())
        epochs = [[torch.as_tensor(getattr(batch, "input_id", batch)).tolist() for batch in loader] for _ in range(3)]
        found.append((len(loader), epochs, torch.rand(1)))
    assert found[0] == found[1]


def test_seeds_decide(source):
    """torch.manual_seed and `generator` decide the draws and the negatives; nothing else is drawn from torch."""
    def drawn(generator=None):
        loader = LinkNeighborLoader(source, [2, 2], neg_sampling="binary", batch_size=50, generator=generator)
        return torch.cat([torch.cat([batch.e_id, batch.n_id[batch.edge_label_index[0]]]) for batch in loader])

    torch.manual_seed(1)
    first, second, state = drawn(), drawn(), torch.get_rng_state()
    torch.manual_seed(1)
    assert torch.equal(first, drawn()) and not torch.equal(first, second)
    torch.manual_seed(1)
    for _ in range(2):
        torch.empty((), dtype=torch.int64).random_()
    assert torch.equal(state, torch.get_rng_state())
    own = [drawn(torch.Generator().manual_seed(6)) for _ in range(2)]
    assert torch.equal(*own) and torch.equal(torch.get_rng_state(), state)


def test_loops(source):
    """Loops at the same time, a loop that is left early, and a state."""
    loader = NeighborLoader(source, [3], batch_size=8, shuffle=True)
    next(iter(loader))
    assert len(list(zip(loader, loader))) == len(loader) == 8
    torch.manual_seed(2)
    whole = [batch.e_id for batch in loader]
    torch.manual_seed(2)
    for number, _ in enumerate(loader):
        if number == 2:
            state = pickle.loads(pickle.dumps(loader.state_dict()))
            break
    again = NeighborLoader(source, [3], batch_size=8, shuffle=True)
    again.load_state_dict(state)
    assert all(torch.equal(batch.e_id, one) for batch, one in zip(again, whole[3:]))
    batch = loader([4, 9])
    assert batch.input_id.tolist() == [4, 9] and batch.n_id[:2].tolist() == [4, 9]
    copy = pickle.loads(pickle.dumps(loader))
    assert len(list(copy)) == 8


def live():
    gc.collect()
    found = lib.count_live()
    return int(found.clients), int(found.shares)


def test_nothing_leaks(source):
    """Exceptions of transforms and samplers, loops that are left early, garbage in an epoch, many epochs."""
    calls = []

    def transform(batch):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("the third")
        return batch

    class Breaks:
        def __iter__(self):
            yield [1, 2]
            raise OSError("the sampler")

    loader = NeighborLoader(source, [5, 5], batch_size=4, transform=transform)
    list(NeighborLoader(source, [5]))  # the first batches open what a process needs once
    before, descriptors = live(), len(os.listdir("/proc/self/fd"))
    with pytest.raises(RuntimeError, match="the third"):
        list(loader)
    with pytest.raises(OSError, match="the sampler"):
        list(NeighborLoader(source, [5], batch_sampler=Breaks()))
    for _ in range(200):
        next(iter(loader))
        gc.collect(0)
    kept = iter(loader)
    next(kept)
    cycle = [kept]
    cycle.append(cycle)
    del kept, cycle
    assert len(list(loader)) == 15
    assert live() == before and len(os.listdir("/proc/self/fd")) == descriptors


def test_a_signal_ends_the_wait(tmp_path):
    """The servers do not answer: Ctrl-C ends the wait, the batches under way are cancelled, and later loops work."""
    from_pyg(DATA, tmp_path / "parts", num_parts=2).close()
    servers = Servers(tmp_path / "parts", 2, tmp_path)
    with graphwire.open(servers=servers.addresses, transport="tcp", insecure=True) as graph:
        loader = NeighborLoader(graph, [3, 3], batch_size=8)
        assert len(list(loader)) == 8
        before = live()
        servers.stop()
        handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            list(loader)
        signal.signal(signal.SIGALRM, handler)
        servers.go_on()
        assert live() == before and len(list(loader)) == 8
    servers.close()


# --- What a batch has. ---

def follows(drawn, weights):
    """Whether numbers are drawn in proportion to weights: chi-square within eight deviations, and none of weight 0."""
    counts, expected = torch.bincount(drawn, minlength=len(weights)).double(), weights / weights.sum() * len(drawn)
    some = expected > 0
    square = float(((counts - expected)[some] ** 2 / expected[some]).sum())
    return not counts[~some].any() and square < int(some.sum()) + 8 * (2 * int(some.sum())) ** 0.5


def is_even(drawn, count):
    return follows(drawn, torch.ones(count, dtype=torch.float64))


@pytest.mark.parametrize("parts", [0, 3])
def test_the_law_of_negatives(parts):
    """Each end of a negative is any node of its type, equally often."""
    data = HeteroData()
    data["a"].x, data["b"].x, kind = torch.arange(30), torch.arange(12), ("a", "to", "b")
    data[kind].edge_index = torch.stack([torch.randint(0, 30, (600,)), torch.randint(0, 12, (600,))])
    torch.manual_seed(8)
    with from_pyg(data, num_parts=parts or 1) as graph:
        loader = LinkNeighborLoader(graph if parts else data, [1], kind, neg_sampling=("binary", 4), batch_size=100)
        ends = [torch.cat([batch[end].n_id[batch[kind].edge_label_index[side, 100:]] for batch in loader])
                for side, end in enumerate("ab")]
        assert len(ends[0]) == 2400 and is_even(ends[0], 30) and is_even(ends[1], 12)
        loader = LinkNeighborLoader(graph if parts else data, [1], kind, neg_sampling=("triplet", 3), batch_size=100)
        drawn = torch.cat([batch["b"].n_id[batch["b"].dst_neg_index.flatten()] for batch in loader])
        assert len(drawn) == 1800 and is_even(drawn, 12)


@pytest.mark.parametrize("parts", [0, 3])
def test_the_law_of_weighted_negatives(parts):
    """Each end of a negative is drawn in proportion to its weight in the order of the user's rows."""
    torch.manual_seed(9)
    weights = {"src_weight": torch.rand(30).double(), "dst_weight": torch.rand(12).double()}
    weights["src_weight"][[0, 7, 29]] = weights["dst_weight"][[3, 11]] = 0
    data, kind = HeteroData(), ("a", "to", "b")
    data["a"].x, data["b"].x = torch.arange(30), torch.arange(12)
    data[kind].edge_index = torch.stack([torch.randint(0, 30, (600,)), torch.randint(0, 12, (600,))])
    with from_pyg(data, num_parts=parts or 1) as graph:
        some = {"data": graph if parts else data, "num_neighbors": [1], "edge_label_index": kind, "batch_size": 100}
        loader = LinkNeighborLoader(**some, neg_sampling=NegativeSampling("binary", 6, **weights))
        for side, (end, law) in enumerate(zip("ab", weights.values())):
            drawn = torch.cat([batch[end].n_id[batch[kind].edge_label_index[side, 100:]] for batch in loader])
            assert len(drawn) == 3600 and follows(drawn, law) and not follows(drawn, law.flip(0))
        loader = LinkNeighborLoader(**some, neg_sampling=NegativeSampling("triplet", 6, **weights))
        drawn = torch.cat([batch["b"].n_id[batch["b"].dst_neg_index.flatten()] for batch in loader])
        assert len(drawn) == 3600 and follows(drawn, weights["dst_weight"])


def test_the_law_of_draws(source):
    """The in-edges of a node are drawn equally often, with and without replacement, at both hops."""
    torch.manual_seed(0)
    degrees = torch.bincount(DATA.edge_index[1], minlength=60)
    hub = int(degrees.argmax())
    into = DATA.edge_index[0][(DATA.edge_index[1] == hub) & (DATA.edge_index[0] != hub)]
    other = int(into[degrees[into].argmax()])
    for replace in (False, True):
        loader, drawn = NeighborLoader(source, [4, 3], torch.tensor([hub]), replace=replace), {hub: [], other: []}
        for _ in range(800):
            batch = loader([0])
            for node, edges in drawn.items():
                edges.append(batch.e_id[batch.n_id[batch.edge_index[1]] == node])
        for node, edges in drawn.items():
            own = (DATA.edge_index[1] == node).nonzero().flatten()
            assert is_even(torch.searchsorted(own, torch.cat(edges)), len(own)), (node, replace)


def test_attributes_are_those_of_pyg(source):
    """PyG's NodeLoader and LinkLoader with our sampler over the data: the same attributes, in one order, and with all
    neighbours the same values."""
    graph = source if isinstance(source, graphwire.Graph) else from_pyg(DATA)
    sampler = NeighborSampler(graph, [-1, -1])
    pairs = [(NeighborLoader(DATA, [-1, -1], DATA.train_mask, batch_size=5),
              pyg.NodeLoader(DATA, sampler, DATA.train_mask, batch_size=5))]
    for negatives in (None, "binary", ("triplet", 1)):
        pairs.append((LinkNeighborLoader(DATA, [-1, -1], edge_label=None if negatives else torch.arange(400),
                                         neg_sampling=negatives, batch_size=90),
                      pyg.LinkLoader(DATA, sampler, edge_label=None if negatives else torch.arange(400),
                                     neg_sampling=negatives, batch_size=90)))
    for ours, theirs in pairs:
        for mine, other in zip(ours, theirs):
            assert list(mine.to_dict()) == list(other.to_dict())
            negative = getattr(ours, "neg_sampling", None) is not None
            for name in () if negative else mine.keys():
                one, two = mine[name], other[name]
                if name in ("edge_index", "n_id", "e_id", "edge_attr", "x", "y", "train_mask", "edge_label_index"):
                    assert one.shape == two.shape and one.dtype == two.dtype, name
                else:
                    assert torch.equal(torch.as_tensor(one), torch.as_tensor(two)), name
            if not negative:
                assert set(mine.n_id.tolist()) == set(other.n_id.tolist())
                assert set(mine.e_id.tolist()) == set(other.e_id.tolist())
    graph_batch = next(iter(NeighborLoader(source, [2], batch_size=5)))
    assert {"x", "y", "edge_attr", "train_mask"} <= set(graph_batch.keys())


def test_transforms(source):
    """transform_sampler_output may drop nodes and edges: rows follow. filter_per_worker changes nothing."""
    def fewer(out):
        out.node, out.edge = out.node.clone(), out.edge[::2]
        out.row, out.col = out.row[::2], out.col[::2]
        return out

    for filtered in (None, True, False):
        loader = NeighborLoader(source, [4, 2], batch_size=9, transform_sampler_output=fewer,
                                transform=lambda batch: (batch, batch.x.sum()), filter_per_worker=filtered)
        for batch, total in loader:
            assert total == batch.x.sum() and torch.equal(batch.x, DATA.x[batch.n_id])
            assert torch.equal(batch.edge_attr, DATA.edge_attr[batch.e_id])
            assert torch.equal(DATA.edge_index[:, batch.e_id], batch.n_id[batch.edge_index])


def test_bidirectional(source):
    """Each sampled edge in both directions, with its id and rows."""
    for batch in NeighborLoader(source, [3, 2], batch_size=9, subgraph_type="bidirectional"):
        assert torch.equal(batch.x, DATA.x[batch.n_id]) and torch.equal(batch.edge_attr, DATA.edge_attr[batch.e_id])
        ends = batch.n_id[batch.edge_index]
        own = DATA.edge_index[:, batch.e_id]
        assert bool(((ends == own) | (ends == own.flip(0))).all(0).all())
        pairs = {tuple(pair) for pair in batch.edge_index.T.tolist()}
        assert pairs == {pair[::-1] for pair in pairs}


def test_bidirectional_of_types():
    """Types with a reverse lose ids and rows of edges, as in PyG; others keep them."""
    data = HeteroData()
    data["a"].x, data["b"].x = torch.arange(30), torch.arange(20)
    for kind in (("a", "to", "b"), ("b", "rev_to", "a"), ("a", "at", "a"), ("b", "on", "b")):
        data[kind].edge_index = torch.stack([torch.randint(0, data[end].num_nodes, (90,)) for end in kind[::2]])
        data[kind].edge_attr = torch.arange(90)
    data["b", "down", "b"].edge_index = data["b", "on", "b"].edge_index
    with from_pyg(data, num_parts=2) as graph:
        for given in (data, graph):
            with warnings.catch_warnings(record=True):  # PyG's, of types without one reverse
                batch = next(iter(NeighborLoader(given, [3, 2], "a", batch_size=9, subgraph_type="bidirectional")))
            assert not {"edge_attr", "e_id"} & {*batch["a", "to", "b"].keys(), *batch["a", "at", "a"].keys()}
            assert torch.equal(batch["a", "to", "b"].edge_index, batch["b", "rev_to", "a"].edge_index.flip(0))
            assert batch["a"].x.tolist() == batch["a"].n_id.tolist()
            pairs = {tuple(pair) for pair in batch["a", "at", "a"].edge_index.T.tolist()}
            assert pairs and pairs == {pair[::-1] for pair in pairs}


def test_equal_seeds(source):
    """Each seed has its own node, with the same neighbours."""
    seeds = torch.tensor([5, 9, 5, 7, 9, 5])
    batch = next(iter(NeighborLoader(source, [4, 2], seeds, batch_size=6)))
    assert torch.equal(batch.n_id[:6], seeds) and batch.num_sampled_nodes[0] == batch.batch_size == 6
    assert torch.equal(batch.x, DATA.x[batch.n_id]) and torch.equal(batch.edge_attr, DATA.edge_attr[batch.e_id])
    assert torch.equal(DATA.edge_index[:, batch.e_id], batch.n_id[batch.edge_index])
    for one, two in ((0, 2), (0, 5), (1, 4)):
        assert torch.equal(batch.e_id[batch.edge_index[1] == one], batch.e_id[batch.edge_index[1] == two])


class Mine(Data):
    pass


def test_stores_and_custom_class(source):
    """Stores name the attributes; a tensor that was put into them is read with each batch."""
    if not isinstance(source, graphwire.Graph):
        return
    both = stores(source, {"feat": "x"})
    both[0][None, "h", None] = torch.arange(60)
    for batch in NeighborLoader(both, [3], DATA.train_mask, batch_size=8, custom_cls=Mine, neighbor_sampler=None):
        assert type(batch) is Mine and torch.equal(batch.feat, DATA.x[batch.n_id])
        assert torch.equal(batch.h, batch.n_id) and "edge_attr" not in batch and "x" not in batch
    sampler = NeighborSampler(source, [2, 2, 2])
    assert len(next(iter(NeighborLoader(source, [9], neighbor_sampler=sampler))).num_sampled_edges) == 3


def test_data_in_memory_is_filtered_as_it_is_now():
    """As in PyG: attributes may be removed or added later, graph-level ones stay. The edges are those of the beginning.
    """
    data = some_data()
    data.classes, data.words = 4, ["a", "b"]
    loader, other = NeighborLoader(data, [3], batch_size=8), NeighborLoader(data, [3], batch_size=8)
    assert loader._source.graph is other._source.graph
    del loader.data.y
    loader.data.more = torch.arange(60) * 2
    expected = data.edge_index
    data.edge_index = data.edge_index.flip(0)
    for batch in loader:
        assert "y" not in batch and torch.equal(batch.more, 2 * batch.n_id)
        assert batch.classes == 4 and batch.words == ["a", "b"]
        assert torch.equal(expected[:, batch.e_id], batch.n_id[batch.edge_index])


def test_forms_of_seeds(source):
    """None, a mask, ids as a tensor, list and array; a feature of the graph; and input_id."""
    mask = DATA.train_mask
    chosen = mask.nonzero().flatten()
    for asked, nodes, names in ((None, torch.arange(60), None), (mask, chosen, chosen), (chosen, chosen, None),
                                (chosen.tolist(), chosen, None), (chosen.numpy(), chosen, None),
                                (chosen.int(), chosen, None), ([], chosen[:0], None)):
        batches = list(NeighborLoader(source, [1], asked, batch_size=100))
        assert len(batches) == (len(nodes) > 0)
        for batch in batches:
            assert torch.equal(batch.n_id[:batch.batch_size], nodes)
            assert torch.equal(batch.input_id, torch.arange(len(nodes)) if names is None else names)
    batch = next(iter(NeighborLoader(source, [1], mask, batch_size=100, input_id=10 * chosen)))
    assert torch.equal(batch.input_id, 10 * chosen)
    if isinstance(source, graphwire.Graph):
        batch = next(iter(NeighborLoader(source, [1], source.feature("train_mask"), batch_size=100)))
        assert set(batch.n_id[:batch.batch_size].tolist()) == set(chosen.tolist())
    links = DATA.edge_index[:, :7]
    for asked in (links, (None, links)) if isinstance(source, graphwire.Graph) else (links,):
        batch = next(iter(LinkNeighborLoader(source, [1], asked, batch_size=9)))
        assert torch.equal(batch.n_id[batch.edge_label_index], links)


def test_types():
    """Types of seeds, of links, and of the graph's own; a graph of one type with a name gives HeteroData."""
    data = HeteroData()
    data["a"].x, data["b"].x = torch.randn(30, 2), torch.randn(20, 2)
    data["a", "to", "b"].edge_index = torch.stack([torch.randint(0, 30, (90,)), torch.randint(0, 20, (90,))])
    data["b", "rev", "a"].edge_index = data["a", "to", "b"].edge_index.flip(0)
    with from_pyg(data, num_parts=2) as graph:
        for given_data in (data, graph):
            for asked in ("a", ("a", None), ("a", torch.arange(30)), ["a", torch.arange(30)]):
                batch = next(iter(NeighborLoader(given_data, [2, 2], asked, batch_size=30)))
                assert torch.equal(batch["a"].n_id[:30], torch.arange(30)) and isinstance(batch, HeteroData)
            for asked in (("a", "to", "b"), ("a", "b"), (("a", "to", "b"), None), (("a", "b"), None)):
                batch = next(iter(LinkNeighborLoader(given_data, [2, 2], asked, batch_size=90)))
                ends = [batch[end].n_id[row] for end, row in zip("ab", batch["a", "to", "b"].edge_label_index)]
                assert torch.equal(torch.stack(ends), data["a", "to", "b"].edge_index)
            for ours, asked in ((NeighborLoader, None), (LinkNeighborLoader, None), (NeighborLoader, torch.arange(3))):
                with pytest.raises(ValueError, match="which type"):
                    ours(given_data, [2], asked)
            with pytest.raises(graphwire.NotFoundError, match="a b"):
                NeighborLoader(given_data, [2], "c")
    with pytest.raises(ValueError, match="names a type"):
        NeighborLoader(DATA, [2], ("a", torch.arange(3)))
    with from_pyg(DATA) as graph:
        batch = next(iter(NeighborLoader(graph, [2], (graph.ntypes[0], torch.arange(3)), batch_size=3)))
        assert isinstance(batch, HeteroData)


@pytest.mark.parametrize("kind", [("a", "likes", "b"), ("a", "a"), ["b", "likes", "a"], "a:likes:b"], ids=str)
def test_links_of_another_type(kind):
    """The links of a type that the data lacks: held-out relations. The batch gets the type."""
    data = HeteroData()
    data["a"].x, data["b"].x = torch.randn(30, 2), torch.randn(20, 2)
    data["a", "to", "b"].edge_index = torch.stack([torch.randint(0, 30, (90,)), torch.randint(0, 20, (90,))])
    named = ("a", "to", "a") if kind == ("a", "a") else tuple(kind.split(":") if isinstance(kind, str) else kind)
    links = torch.randint(0, 20, (2, 7))
    with from_pyg(data, num_parts=2) as graph:
        for given_data in (data, graph):
            for asked in (None, "binary", "triplet"):
                batch = next(iter(LinkNeighborLoader(given_data, [2, 2], (kind, links), neg_sampling=asked,
                                                     batch_size=7)))
                source, target = batch[named[0]], batch[named[2]]
                rows = (source.src_index, target.dst_pos_index) if asked == "triplet" else (
                    batch[named].edge_label_index[:, :7])
                assert torch.equal(torch.stack([source.n_id[rows[0]], target.n_id[rows[1]]]), links)
                assert torch.equal(batch[named].input_id, torch.arange(7)) and "edge_index" not in batch[named]
            for wrong in ((kind, None), kind, (("a", "likes", "c"), links), ("likes", links)):
                with pytest.raises(ValueError, match="no edge type"):
                    LinkNeighborLoader(given_data, [2], wrong)


def test_data_without_edge_types():
    data = HeteroData()
    data["a"].x, data["b"].x = torch.arange(30), torch.arange(20) * 2
    for counts in ([], [2, -1]):
        for batch in NeighborLoader(data, counts, ("b", torch.arange(5)), batch_size=5):
            assert batch.node_types == ["a", "b"] and batch.edge_types == []
            assert torch.equal(batch["b"].x, data["b"].x[:5]) and not len(batch["a"].x)
            assert batch["b"].num_sampled_nodes == [5] + [0] * len(counts)
        links = torch.stack([torch.arange(20), torch.arange(20).flip(0)])
        loops = torch.stack([links[0], links[0]])
        (batch,) = LinkNeighborLoader(data, counts, (("a", "a"), loops), batch_size=20)
        assert batch.edge_types == [("a", "to", "a")]
        for batch in LinkNeighborLoader(data, counts, (("a", "b"), links), batch_size=10, neg_sampling="binary"):
            assert batch.edge_types == [("a", "to", "b")] and "edge_index" not in batch["a", "to", "b"]
            rows = batch["a", "to", "b"].edge_label_index[:, :10]
            assert torch.equal(torch.stack([batch["a"].x[rows[0]], batch["b"].x[rows[1]] // 2]),
                               links[:, batch["a", "to", "b"].input_id])
    with pytest.raises(ValueError, match="the data has no edge type"):
        LinkNeighborLoader(data, [], ("a", "b"))


def test_a_fork_and_a_graph_that_closes():
    """A DataLoader's worker that uses a loader opens its own connections."""
    with from_pyg(DATA) as graph:
        loader = NeighborLoader(graph, [2], batch_size=60)
        next(iter(loader))
        child = os.fork()
        if not child:
            os._exit(0 if torch.equal(next(iter(loader)).n_id[:60], torch.arange(60)) else 1)
        assert os.waitpid(child, 0)[1] == 0


