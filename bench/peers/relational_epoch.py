"""Loads what RelBench's gnn_entity trains on, from the shop of relational_shop.py: batches of 512 users at times of
their own, [128, 64] neighbours of each edge type, and the TensorFrames of all rows.

relational_epoch.py DIR RESULTS.jsonl ROUNDS BATCHES [SHARE]

graphwire.pyg.NeighborLoader loads over the graph in one part, standalone, and over two servers on loopback, all over
TCP. Beside it, as ceilings, graphwire.NodeLoader samples without rows, and loads the same rows as arrays; PyTorch
Geometric's NeighborLoader loads from memory, if pyg-lib is there; and kumo-engine samples without rows, if it is
there. All systems run in this process with one thread each, in turn; servers are processes of their own. The order is
reversed in every second round. A line for each measurement goes to RESULTS.

First the batches of each system are checked: no row of a batch except the seed is later than its seed; the first hop
has min(128, count) of each seed's rows that are not later; rows are those of the tables. Of kumo-engine, which ignores
the times in uniform draws, only the edges are counted.

Prints the batches and edges, batches a second, and processor time, user and system, of this process and of the
servers: medians of the rounds.
"""
from __future__ import annotations

import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import graphwire
import graphwire.pyg
import numpy as np
import torch
import torch_geometric.typing
from relational_graph import NS, SECONDS
from relational_shop import TABLES, Shop
from torch_geometric.loader import NeighborLoader

SEEDS, FANOUTS, CHECKED, STRATEGIES = 512, [128, 64], 3, ("uniform", "last")
TICKS = os.sysconf("SC_CLK_TCK")


class Servers:
    """The graph of two parts, served by two processes."""

    def __init__(self, parts):
        self.processes, addresses = [], []
        for part in (0, 1):
            process = subprocess.Popen([os.environ["GRAPHWIRE"], "serve", "--part-config", parts, "--part", str(part),
                                        "--insecure", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
            self.processes.append(process)
            line = next(line for line in process.stdout if line.startswith("serving part"))
            addresses.append(line.split(" at ")[1].split(": ")[0])
        self.graph = graphwire.open(parts, addresses, insecure=True, transport="tcp", threads=1)

    def processor(self):
        total = 0
        for process in self.processes:
            with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
                total += sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))
        return total / TICKS

    def close(self):
        self.graph.close()
        for process in self.processes:
            process.terminate()
            process.wait()


class Pyg:
    """A NeighborLoader: that of graphwire.pyg over a graph, or PyTorch Geometric's over the data."""

    def __init__(self, loaders, source, strategy, frames=None, servers=None):
        self.loaders, self.source, self.strategy, self.frames = loaders, source, strategy, frames
        self.servers, self.sampler = servers, {}

    def batches(self, seeds, seconds):
        loader = self.loaders(self.source, FANOUTS, ("users", torch.from_numpy(seeds)), batch_size=SEEDS,
                              input_time=torch.from_numpy(seconds), time_attr="time",
                              temporal_strategy=self.strategy, transform=self.frames, **self.sampler)
        if self.loaders is NeighborLoader:  # which sorts all edges when it is made
            self.sampler = {"neighbor_sampler": loader.node_sampler}
        return loader

    @staticmethod
    def edges(batch):
        return sum(store.edge_index.shape[1] for store in batch.edge_stores)

    def check(self, batch, shop, data, seconds):
        for table in shop.seconds:
            store = batch[table]
            if (store.time > torch.from_numpy(seconds)[store.batch]).any():
                raise SystemExit(f"a row of {table} is later than its seed")
        for table in TABLES:
            store, want = batch[table], data[table].tf[batch[table].n_id]
            for kind, values in want.feat_dict.items():
                if not torch.equal(store.tf.feat_dict[kind], values):
                    raise SystemExit(f"rows of {table} in a batch are not those of the table")
        for etype, counts in batch.num_sampled_edges_dict.items():
            if etype[2] == "users":
                rows, of = shop.seconds[etype[0]], shop.keys[etype[0]]["user"]
                want = eligible(of, rows, batch["users"].n_id[:SEEDS].numpy(), seconds)
                if counts[0] != np.minimum(want, FANOUTS[0]).sum():
                    raise SystemExit(f"{etype}: {counts[0]} edges of the seeds, and not {want.sum()}")


def eligible(of, seconds, users, until):
    """How many of each user's rows are not later. of, seconds: the user and the time of each row."""
    keys = np.sort(of << 32 | seconds)
    return np.searchsorted(keys, users << 32 | until, "right") - np.searchsorted(keys, users << 32)


class Native:
    """graphwire.NodeLoader: without rows, or with all features as arrays."""

    def __init__(self, graph, strategy, rows, servers=None):
        self.graph, self.strategy, self.servers = graph, strategy, servers
        self.features = {}
        for feature in graph.features if rows else ():
            if not feature.of_edges and feature.name != "orig_id":
                self.features.setdefault(feature.type, []).append(feature.name)

    def batches(self, seeds, seconds):
        own = self.graph.ids_of(seeds, "users") if self.servers else seeds
        with graphwire.NodeLoader(self.graph, np.asarray(own), FANOUTS, ntype="users", batch_size=SEEDS, frontier="new",
                                  disjoint=True, time="time", times=seconds, pick=self.strategy,
                                  features=self.features or None) as loader:
            yield from loader

    @staticmethod
    def edges(batch):
        return batch.num_edges


class Kumo:
    servers = None

    def __init__(self, folder, mode):
        import diskgraph

        self.engine = diskgraph.SamplerEngine(f"{folder}/index", random_seed=1, num_threads=1)
        rule = {"mode": mode, "absent_key_policy": "uniform_fallback"}  # as in relational.py
        self.plan = json.dumps({"layers": [{"fanouts": {}, "default_fanout": {"fanout": count, **rule}}
                                           for count in FANOUTS]})

    def batches(self, seeds, seconds):
        for begin in range(0, len(seeds), SEEDS):
            some = slice(begin, begin + SEEDS)
            yield list(self.engine.sample({"users": seeds[some]}, self.plan, fused=False,
                                          seed_timestamps={"users": seconds[some] * NS}))

    @staticmethod
    def edges(batch):
        return sum(part["batch"].num_rows for part in batch if part["type"] == "edge")


def systems_of(folder, data, servers):
    graph = graphwire.open(f"{folder}/parts1", threads=1, verify=False)
    frames = graphwire.pyg.TensorFrames({table: data[table].tf for table in TABLES})
    found = {}
    for strategy in STRATEGIES:
        found[f"graphwire.pyg, {strategy}"] = Pyg(graphwire.pyg.NeighborLoader, graph, strategy, frames)
        found[f"graphwire.pyg over two servers, {strategy}"] = Pyg(
            graphwire.pyg.NeighborLoader, servers.graph, strategy, frames, servers)
        found[f"NodeLoader with the rows, {strategy}"] = Native(graph, strategy, True)
        found[f"NodeLoader with the rows over two servers, {strategy}"] = Native(servers.graph, strategy, True, servers)
        found[f"NodeLoader without rows, {strategy}"] = Native(graph, strategy, False)
        if torch_geometric.typing.WITH_PYG_LIB:
            found[f"PyG with pyg-lib, {strategy}"] = Pyg(NeighborLoader, data, strategy)
    if importlib.util.find_spec("diskgraph"):
        found["kumo-engine without rows, uniform"] = Kumo(folder, "uniform")
        found["kumo-engine without rows, most recent"] = Kumo(folder, "temporal_most_recent")
    return found


def seeds_of(random, shop, batches):
    count = SEEDS * batches
    return random.integers(0, shop.rows["users"], count), random.integers(SECONDS // 4, SECONDS, count)


def check(systems, shop, data):
    """Checks batches of each system of PyG's form; those of equal draws are equal, whatever the parts."""
    equal = {}
    seeds, seconds = seeds_of(np.random.default_rng(3), shop, CHECKED)
    for name, system in systems.items():
        torch.manual_seed(1)
        for number, batch in enumerate(system.batches(seeds, seconds)):
            if not isinstance(system, Pyg):
                continue
            system.check(batch, shop, data, seconds[number * SEEDS:(number + 1) * SEEDS])
            if system.strategy == "last":
                want = equal.setdefault(number, system.edges(batch))
                if system.edges(batch) != want:
                    raise SystemExit(f"{name}: {system.edges(batch)} edges in a batch, and not {want}")


def measured(system, seeds, seconds):
    """Loads a batch for each SEEDS seeds, from the loader's constructor to its end."""
    before, begun, edges, batches = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter(), 0, 0
    served = system.servers.processor() if system.servers else 0
    for batch in system.batches(seeds, seconds):
        edges += system.edges(batch)
        batches += 1
    taken, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
    return {"batches": batches, "edges": edges, "seconds": taken,
            "processor": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "servers": system.servers.processor() - served if system.servers else 0}


def table(lines, names, batches):
    print("| | edges a batch | batches/s | processor ms a batch | that of the servers | the epoch, s |")
    print("|---|---|---|---|---|---|")
    for name in names:
        own = [line for line in lines if line["peer"] == name]
        mid = {key: statistics.median(line[key] / line["batches"] for line in own) for key in (
            "edges", "seconds", "processor", "servers")}
        print(f"| {name} | {mid['edges']:,.0f} | {1 / mid['seconds']:.1f} | {mid['processor'] * 1e3:.2f} | "
              f"{mid['servers'] * 1e3:.2f} | {mid['seconds'] * batches:.2f} |")
    print(f"\nload of the machine at the end: {os.getloadavg()[0]:.1f}")


def main(folder, results, rounds, batches, share="1"):
    torch.set_num_threads(1)
    shop, rounds, batches = Shop(float(share)), int(rounds), int(batches)
    data, servers, lines = shop.data(), Servers(f"{folder}/parts2"), []
    try:
        systems = systems_of(folder, data, servers)
        check(systems, shop, data)
        with open(results, "w", encoding="utf-8") as out:
            for number in range(rounds):
                seeds, seconds = seeds_of(np.random.default_rng([7, number]), shop, batches)
                for name in list(systems)[::1 if number % 2 == 0 else -1]:
                    lines.append({"peer": name, "round": number, **measured(systems[name], seeds, seconds)})
                    out.write(json.dumps(lines[-1]) + "\n")
                    out.flush()
                sys.stderr.write(f"round {number + 1} of {rounds}\n")
        table(lines, systems, batches)
    finally:
        servers.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
