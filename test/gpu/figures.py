"""The figures of test/gpu/run: copies to a device, and epochs by several loaders, as lines of one table.

    graph ─▶ a way: batches of 1,000 seeds ─▶ loading alone: edges/s, bytes/s to the device
                                           └▶ training: GraphSAGE of three layers on the device

A way is a loader with what its users write around it. All ways sample the same law from the same seeds, and each
measurement ends when its batches are used up or its time is over, whatever comes first. The clock stops when the device
has nothing to do.
"""

from __future__ import annotations

import itertools
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import graphwire
import torch
from graphwire.nn import SAGEConv

SEEDS, FANOUTS, HIDDEN, CLASSES = 1000, [15, 10, 5], 64, 47
BATCHES, WARM = 60, 6  # of a measurement; before it
MEASURE_S = 20.0
COPY_BYTES = 256 << 20


@dataclass
class Clock:
    """Time on a device, which works behind the calls."""

    device: torch.device
    until: float
    begun: float = field(default_factory=time.perf_counter)

    def waited(self) -> float:
        """Returns the seconds since the beginning, after all work of the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter() - self.begun

    def over(self) -> bool:
        return time.perf_counter() - self.begun > MEASURE_S or time.monotonic() > self.until


@dataclass
class Way:
    """A loader, as its users write it."""

    name: str
    batches: Callable[[], Iterator[Any]]  # on the device
    edges: Callable[[Any], int]
    rows: Callable[[Any], torch.Tensor]
    loss: Callable[[Any, torch.nn.ModuleList], torch.Tensor]
    layers: Callable[[], torch.nn.ModuleList]


def bytes_of(batch: Any) -> int:
    """The bytes of all tensors of a batch."""
    found = batch._tensors() if isinstance(batch, graphwire.Batch) else (
        value for store in batch.stores for value in store.values() if isinstance(value, torch.Tensor))
    return sum(tensor.numel() * tensor.element_size() for tensor in found)


# --- Copies. ---


def memcpy_rate(device: torch.device) -> float:
    """cudaMemcpyAsync from pinned memory, bytes/s: the best of ten copies of 256 MiB. On the processor: a memcpy."""
    source = torch.empty(COPY_BYTES, dtype=torch.uint8, pin_memory=device.type == "cuda")
    target = torch.empty(COPY_BYTES, dtype=torch.uint8, device=device)
    best = float("inf")
    for _ in range(10):
        clock = Clock(device, float("inf"))
        target.copy_(source, non_blocking=True)
        best = min(best, clock.waited())
    return COPY_BYTES / best


def copy_rates(graph: graphwire.Graph, device: torch.device) -> tuple[float, float, float]:
    """(bytes/s of a batch's copy to pinned memory, where its rows may be already; bytes/s of the pinned batch's copy to
    the device; the share of the batches whose rows landed in pinned memory). Medians."""
    pins, moves, landed = [], [], []
    for batch in itertools.islice(loader_of(graph, None), 12):
        size = bytes_of(batch)
        landed.append(device.type == "cuda" and batch.x.is_pinned())
        clock = Clock(device, float("inf"))
        pinned = batch.pinned() if device.type == "cuda" else batch._changed(torch.clone)
        pins.append(size / clock.waited())
        clock = Clock(device, float("inf"))
        pinned.to(device, non_blocking=True)
        moves.append(size / clock.waited())
    return statistics.median(pins[2:]), statistics.median(moves[2:]), statistics.mean(landed[4:])


# --- Ways. ---


def seeds_of(graph: graphwire.Graph) -> range:
    return range(min(graph.num_nodes(), SEEDS * (BATCHES + WARM)))


def loader_of(graph: graphwire.Graph, device: Any) -> graphwire.NodeLoader:
    return graphwire.NodeLoader(graph, seeds_of(graph), FANOUTS, features="feat", labels="label", batch_size=SEEDS,
                                shuffle=True, device=device)


def widths(graph: graphwire.Graph) -> list[tuple[int, int]]:
    rows = [graph.feature("feat").shape[1], HIDDEN, HIDDEN, CLASSES]
    return list(zip(rows, rows[1:], strict=False))


def native_loss(batch: Any, layers: torch.nn.ModuleList) -> torch.Tensor:
    rows = batch.x
    for number, (layer, block) in enumerate(zip(layers, batch.blocks, strict=True)):
        rows = layer(block, rows)
        rows = torch.relu(rows) if number < len(layers) - 1 else rows
    return torch.nn.functional.cross_entropy(rows[batch.seed_rows], batch.y.long())


def native(graph: graphwire.Graph, folder: str, device: torch.device) -> list[Way]:
    """NodeLoader, whose batches a second thread copies, and with a copy in the trainer's thread: of rows that landed in
    pinned memory, where there is a GPU, and of others."""
    rest = (lambda batch: batch.num_edges, lambda batch: batch.x, native_loss,
            lambda: torch.nn.ModuleList(SAGEConv(*pair) for pair in widths(graph)))
    def moved(source: graphwire.Graph) -> Callable[[], Iterator[Any]]:
        return lambda: (batch.to(device, non_blocking=True) for batch in loader_of(source, None))

    ordinary = graphwire.open(folder, verify=False)
    ordinary._opened().landing = None
    return [Way("`NodeLoader(device=)`", lambda: iter(loader_of(graph, device)), *rest),
            Way("`NodeLoader`, `batch.to()`", moved(graph), *rest),
            Way("`NodeLoader`, `batch.to()`, rows in ordinary memory", moved(ordinary), *rest)]


def pyg_loss(batch: Any, layers: torch.nn.ModuleList) -> torch.Tensor:
    from torch_geometric.utils import trim_to_layer

    rows, edges = batch.x, batch.edge_index
    for number, layer in enumerate(layers):
        if "num_sampled_nodes" in batch:
            rows, edges, _ = trim_to_layer(number, batch.num_sampled_nodes, batch.num_sampled_edges, rows, edges)
        rows = layer(rows, edges)
        rows = torch.relu(rows) if number < len(layers) - 1 else rows
    return torch.nn.functional.cross_entropy(rows[:batch.batch_size], batch.y[:batch.batch_size].long())


def of_pyg(graph: graphwire.Graph, device: torch.device) -> list[Way]:
    """graphwire.pyg.NeighborLoader, and PyG's own if it can sample; each without and with pin_memory. Empty without
    PyG."""
    try:
        import torch_geometric.typing
        from graphwire.pyg import NeighborLoader
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader as Theirs
        from torch_geometric.nn import SAGEConv as Layer
    except ImportError:
        return []
    rest = (lambda batch: batch.edge_index.shape[1], lambda batch: batch.x, pyg_loss,
            lambda: torch.nn.ModuleList(Layer(*pair) for pair in widths(graph)))

    def moved(make: Callable[..., Any], source: Any, **more: Any) -> Callable[[], Iterator[Any]]:
        seeds = torch.arange(len(seeds_of(graph)))
        return lambda: (batch.to(device, non_blocking=True) for batch in make(
            source, FANOUTS, input_nodes=seeds, batch_size=SEEDS, shuffle=True, **more))

    stores = graphwire.pyg.stores(graph, {"x": "feat", "y": "label"}, ids="graph")
    ways = [Way(f"`graphwire.pyg.NeighborLoader`{said}", moved(NeighborLoader, stores, ids="graph", **more), *rest)
            for said, more in (("", {}), (", `pin_memory`", {"pin_memory": True}))]
    if torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE:
        ends = graph.find_edges(slice(None))
        data = Data(x=graph.feature("feat")[:], y=graph.feature("label")[:], edge_index=torch.stack(list(ends)))
        workers = min(4, os.cpu_count() or 1)
        ways += [Way(f"PyG, {count} workers, `pin_memory`",
                     moved(Theirs, data, pin_memory=True, num_workers=count), *rest) for count in (0, workers)]
    return ways


# --- Measurements. ---


def loaded(way: Way, device: torch.device, until: float) -> tuple[float, float]:
    """Loading alone: (edges/s, bytes/s to the device)."""
    batches = way.batches()
    for batch in itertools.islice(batches, WARM):
        way.rows(batch)
    clock, edges, size = Clock(device, until), 0, 0
    for batch in batches:
        edges, size = edges + way.edges(batch), size + bytes_of(batch)
        if clock.over():
            break
    seconds = clock.waited()
    return edges / seconds, size / seconds


def trained(way: Way, device: torch.device, until: float) -> tuple[float, float]:
    """Training: (batches/s, the share of the time that the trainer waited for data)."""
    torch.manual_seed(1)
    layers = way.layers().to(device)
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.003)
    batches, count, waited, clock = way.batches(), 0, 0.0, Clock(device, until)
    while True:
        before = time.perf_counter()
        batch = next(batches, None)
        waited += time.perf_counter() - before
        if batch is None or (count > WARM and clock.over()):
            break
        loss = way.loss(batch, layers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count += 1
        if count == WARM:
            clock.waited()
            clock, waited = Clock(device, until), 0.0
    seconds = clock.waited()
    return max(0, count - WARM) / seconds, waited / seconds


def described(device: torch.device, scale: int) -> str:
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "a rehearsal without a GPU"
    return (f"{where}, {os.cpu_count()} processors ({platform.machine()}), PyTorch {torch.__version__}, Graphwire "
            f"{graphwire.__version__}; R-MAT {scale} x 16, fanouts {', '.join(map(str, FANOUTS))}, 128 features, "
            f"{SEEDS} seeds")


def table(folder: str, scale: int, name: str, until: float) -> Iterator[str]:
    """The lines of the table. until: of time.monotonic(); measurements that would begin later are left out."""
    device = torch.device(name)
    graph = graphwire.open(folder, verify=False)
    yield described(device, scale)
    yield ""
    yield "| way | loading alone, M edges/s | GB/s to the GPU | training, batches/s | waiting for data |"
    yield "|---|---|---|---|---|"
    ceiling = memcpy_rate(device)
    yield f"| cudaMemcpyAsync, pinned, 256 MiB | | {ceiling / 1e9:.1f} | | |"
    pins, moves, landed = copy_rates(graph, device)
    yield f"| a pinned batch, tensor by tensor | | {moves / 1e9:.1f} ({moves / ceiling:.2f} of it) | | |"
    yield f"| a batch to pinned memory, rows landed there: {landed:.0%} | | {pins / 1e9:.1f} | | |"
    left = 0
    for way in [*native(graph, folder, device), *of_pyg(graph, device)]:
        if time.monotonic() + 2 * MEASURE_S > until:
            left += 1
            continue
        edges, size = loaded(way, device, until)
        rate, waiting = trained(way, device, until)
        yield (f"| {way.name} | {edges / 1e6:.1f} | {size / 1e9:.2f} ({size / ceiling:.2f}) | {rate:.1f} | "
               f"{waiting:.0%} |")
    if left:
        yield f"\n{left} more: no time was left"
