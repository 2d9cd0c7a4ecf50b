"""Look-ahead and kept rows of graphwire.pyg's loaders: the rows that are fetched are those of the definition
(test/support/row_sets.py), and no batch, order or random number differs from those without."""

from __future__ import annotations

import itertools
import pickle

import graphwire
import pytest
import torch
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, stores
from row_sets import fetched_rows, kept_rows, read_bytes
from torch.utils.data import BatchSampler, RandomSampler, Sampler, SubsetRandomSampler, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler
from torch_geometric.data import Data

ROW = 16 * 4  # bytes of "feat"
NODES, LINKS = 1000, 600
OPTIONS = [(4, 0, 0), (1, 300 * ROW, 0), (3, 64 << 10, 0), (2, 100 * ROW, 3)]  # lookahead, cache_bytes, cache_batches


def content(batch):
    return [(name, value.numpy().tobytes() if isinstance(value, torch.Tensor) else repr(value))
            for name, value in sorted(batch.to_dict().items())]


def links():
    return torch.stack([torch.arange(LINKS), torch.arange(LINKS).flip(0)])


def nodes(graph, **more):
    return NeighborLoader(stores(graph, {"x": "feat"}, ids="graph"), [5, 5], torch.arange(NODES),
                          **{"batch_size": 100, "shuffle": True, **more})


def pairs(graph, **more):
    return LinkNeighborLoader(stores(graph, {"x": "feat"}, ids="graph"), [4], links(), neg_sampling="binary",
                              **{"batch_size": 60, "shuffle": True, **more})


@pytest.fixture
def served(servers):
    with graphwire.open(servers=servers.addresses, transport="tcp", threads=3, neighbours="requests") as graph:
        yield graph


@pytest.fixture(scope="module")
def alone(parts):
    with graphwire.open(parts) as graph:
        yield graph


@pytest.mark.parametrize("make", [nodes, pairs])
@pytest.mark.parametrize(("lookahead", "cache_bytes", "cache_batches"), OPTIONS)
def test_fetched_rows_are_those_of_the_definition(alone, served, make, lookahead, cache_bytes, cache_batches):
    torch.manual_seed(4)
    plain = make(alone)
    wanted = [batch for _ in range(3) for batch in plain]
    torch.manual_seed(4)
    before = read_bytes(served)
    loader = make(served, lookahead=lookahead, cache_bytes=cache_bytes, cache_batches=cache_batches)
    found = (batch for _ in range(3) for batch in loader)
    for batch, other in zip(found, wanted, strict=True):
        assert content(batch) == content(other)
        batch.x.zero_()  # the batch is the caller's
    lists = [batch.n_id.tolist() for batch in wanted]
    expected = fetched_rows(lists, len(loader), lookahead, cache_bytes // ROW, cache_batches or None, anew=True)
    assert read_bytes(served) - before == expected * ROW < sum(map(len, lists)) * ROW
    stats = served.stats()
    assert (stats["ahead_bytes"] > 0) == (lookahead > 1) and (stats["cached_bytes"] > 0) == bool(cache_bytes)


class Own(Sampler):
    """A sampler of a user's own."""

    def __init__(self, count=NODES):
        self.count = count

    def __iter__(self):
        return iter(torch.randperm(self.count).tolist())

    def __len__(self):
        return self.count


def whole(loader):
    return list(loader), list(loader)


def left_early(loader):
    return [*itertools.islice(loader, 3), *itertools.islice(loader, 5), *loader]


def several(loader):
    first = iter(loader)
    found = list(itertools.islice(first, 2))
    return [*found, *itertools.chain.from_iterable(zip(loader, loader)), *first, *loader]


def resumed(loader):
    found = list(itertools.islice(loader, 4))
    state = loader.state_dict()
    torch.rand(5)
    loader.load_state_dict(state)
    return [*found, *loader]


def pickled(loader):
    return [*itertools.islice(loader, 2), *pickle.loads(pickle.dumps(loader))]


def other_counts(loader):
    found = []
    for batch in loader:
        found.append(batch)
        if len(found) == 3:
            (getattr(loader, "node_sampler", None) or loader.link_sampler).num_neighbors = [2, 3]
    return found


def failing(loader):
    calls = itertools.count()

    def transform(batch):
        if next(calls) in (1, 4, 5):
            raise ValueError("this batch")
        return batch

    loader.transform, found, loop = transform, [], iter(loader)
    while True:
        try:
            found.append(next(loop))
        except StopIteration:
            return found
        except ValueError:
            found.append(None)


def of_generator():
    return {"generator": torch.Generator().manual_seed(9)}


ORDERS = {
    "usual": dict, "generator": of_generator, "drop_last": lambda: {"drop_last": True, "batch_size": 170},
    "in order": lambda: {"shuffle": False}, "depth": lambda: {"depth": 6},
    "one at a time": lambda: {"depth": 1, "lookahead": 1},
    "a subset": lambda: {"shuffle": False, "sampler": SubsetRandomSampler(range(300))},
    "weights": lambda: {"shuffle": False, "sampler": WeightedRandomSampler([1] * 500, 400)},
    "ranks": lambda: {"shuffle": False, "sampler": DistributedSampler(range(LINKS), 2, 1)},
    "a list": lambda: {"shuffle": False, "batch_size": 1, "batch_sampler": [[5, 6], [9], list(range(80)), [5, 5, 7]]},
    "workers": lambda: {"num_workers": 2, "persistent_workers": True, "filter_per_worker": True},
}


@pytest.mark.filterwarnings("ignore:graphwire.pyg. the library's own threads")
@pytest.mark.parametrize("make", [nodes, pairs])
@pytest.mark.parametrize(("order", "walk"), [*((order, whole) for order in ORDERS), *(
    ("usual", walk) for walk in (left_early, several, resumed, pickled, other_counts, failing)),
    ("generator", left_early), ("a subset", left_early), ("ranks", several)])
def test_nothing_else_differs(served, make, order, walk):
    """Batches, and torch's random numbers after them."""
    results = []
    for ahead in ({}, {"lookahead": 3, "cache_bytes": "16k"}, {"lookahead": 2, "cache_bytes": 200 * ROW,
                                                               "cache_batches": 2}):
        given = ORDERS[order]()
        torch.manual_seed(7)
        flat = walk(make(served, **{**ahead, **given}))
        flat = [*flat[0], *flat[1]] if isinstance(flat, tuple) else flat
        results.append(([None if batch is None else content(batch) for batch in flat], torch.rand(2).tolist(),
                        given["generator"].get_state().tolist() if "generator" in given else None))
    assert results[0] == results[1] == results[2]


def test_kept_rows_stay_after_a_loop_that_ends_early(served):
    """The next loop of the same seeds fetches only rows that are not kept."""
    loader = nodes(served, cache_bytes=1 << 20, cache_batches=4, depth=1)
    fetched = []
    for _ in range(3):
        before = read_bytes(served)
        torch.manual_seed(4)
        lists = [batch.n_id.tolist() for batch in itertools.islice(loader, 4)]
        fetched.append((read_bytes(served) - before) // ROW)
    kept = kept_rows(lists, 1, NODES * 100)
    others = len({node for one in lists for node in one} - kept)
    assert kept and fetched == [len(kept) + others, others, others]


def test_refused(served):
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), x=torch.rand(2, 3))
    pair = stores(served, ["feat"], ids="graph")
    for call, error, text in (
            (lambda: nodes(served, lookahead=5), graphwire.InvalidError, "lookahead=5 needs .* depth is 4"),
            (lambda: nodes(served, depth=0), graphwire.InvalidError, "depth is 1 or more"),
            (lambda: nodes(served, cache_bytes="4 GB"), graphwire.InvalidError, 'cache_bytes: "4 GB" is not'),
            (lambda: nodes(served, cache_batches=4), graphwire.InvalidError, "no effect: cache_bytes is 0"),
            *((lambda more=more: NeighborLoader(served, [2], cache_bytes=1, **more), graphwire.InvalidError,
               f"^cache_bytes: the order of an epoch's seeds must be known when it begins, and {name} may")
              for more, name in (({"sampler": Own(), "batch_size": 9}, "Own"),
                                 ({"batch_sampler": BatchSampler(Own(), 5, False)}, "Own"),
                                 ({"sampler": RandomSampler(range(9), True)}, "RandomSampler"))),
            (lambda: graphwire.pyg.NodeLoader(pair, graphwire.pyg.NeighborSampler(pair[1], [2]), lookahead=2),
             TypeError, "lookahead")):
        with pytest.raises(error, match=text):
            call()
    assert len(list(NeighborLoader(data, [1], lookahead=2, cache_bytes=5))) == 2  # in memory: nothing to save
    assert len(list(NeighborLoader(served, [1], sampler=Own(50), batch_size=25, lookahead=2))) == 2
