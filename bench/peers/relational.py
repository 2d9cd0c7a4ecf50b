"""Compares kumo-engine and Graphwire by processor time on the graph of relational_graph.py: disjoint trees, by time.

relational.py DIR RESULTS.jsonl ROUNDS BATCHES

Every system first draws batches that relational_law.py checks, and as many as it draws in a measurement: the first ones
also map the pages of its files. Then, in every round and for each of FANOUTS, one system after the other draws BATCHES
batches of 512 users at times of their own, without rows, in one process, in which each system has one thread. The order
is reversed in every second round. A line for each measurement goes to RESULTS.

Prints the law, as counted, and edges a second of processor time, user and system, of the process: medians of the
rounds, and the ratio of Graphwire's last edges to kumo-engine's most recent ones. The law is asserted of Graphwire
alone.
"""
from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path

import diskgraph
import graphwire
import numpy as np
from relational_graph import NS, SECONDS, columns_of
from relational_law import Batch, Tables, equal_picks, figures

SEEDS = 512
FANOUTS = ([16, 8], [128, 64], [16, 16, 16])
CHECKED = 4  # batches for each of FANOUTS
FEW, MANY = 4, 12  # equal seeds draw FEW of at least MANY events: equal picks are one of 495


class Kumo:
    def __init__(self, folder, mode, law):
        self.engine, self.law = diskgraph.SamplerEngine(f"{folder}/index", random_seed=1, num_threads=1), law
        # Most recent: relations without times, those to the users and items of events, have one edge for each event.
        self.rule = {"mode": mode, "absent_key_policy": "uniform_fallback"}
        self.types = json.loads(self.engine.get_type_mapping())

    def batches(self, seeds, seconds, fanouts):
        plan = json.dumps({"layers": [{"fanouts": {}, "default_fanout": {"fanout": count, **self.rule}}
                                      for count in fanouts]})
        for begin in range(0, len(seeds), SEEDS):
            some = slice(begin, begin + SEEDS)
            yield list(self.engine.sample({"users": seeds[some]}, plan, fused=False,
                                          seed_timestamps={"users": seconds[some] * NS}))

    @staticmethod
    def edges(batch):
        return sum(part["batch"].num_rows for part in batch if part["type"] == "edge")

    def plain(self, batch):
        """Edges are rows of nodes: a column of their trees, and one of their ids."""
        rows = {name: ([], []) for name in self.types["node_types"]}
        for part in batch:
            if part["type"] == "node":
                for all_of, name in zip(rows[self.types["node_types"][part["type_id"]]], ("id_a", "id_b")):
                    all_of.append(part["batch"][name].to_numpy())
        tree, ids = ({name: np.concatenate(both[at]).astype(np.int64) if both[at] else np.empty(0, np.int64)
                      for name, both in rows.items()} for at in (0, 1))
        found = Batch()
        for part in batch:
            if part["type"] != "edge":
                continue
            relation = self.types["edge_relations"][part["rel_id"]]
            src, dst = (part["batch"][name].to_numpy().astype(np.int64) for name in ("id_a", "id_b"))
            add(found, relation["src_type"], relation["dst_type"], src, dst, tree, ids)
        return found.done()


class Graphwire:
    def __init__(self, graph, options, law):
        self.graph, self.options, self.law = graph, options, law

    def batches(self, seeds, seconds, fanouts):
        times = {"times": seconds * NS} if "time" in self.options else {}
        with graphwire.NodeLoader(self.graph, seeds, fanouts, ntype="users", batch_size=SEEDS, frontier="new",
                                  disjoint=True, **self.options, **times) as loader:
            yield from loader

    @staticmethod
    def edges(batch):
        return batch.num_edges

    def plain(self, batch):
        found = Batch()
        for block in batch.blocks:
            for edges in block.edges.values():
                add(found, edges.src_type, edges.dst_type, edges.indices, edges.dst, batch.groups, batch.nodes)
        return found.done()


def add(found, src_type, dst_type, src, dst, tree, ids):
    if not np.array_equal(tree[src_type][src], tree[dst_type][dst]):
        raise SystemExit("an edge of a batch leads from tree to tree")
    kind, what = (dst_type, found.picks) if src_type == "events" else (src_type, found.ends)
    nodes, events = (dst, src) if src_type == "events" else (src, dst)
    found.add(what, kind, tree[kind][nodes], ids[kind][nodes], ids["events"][events])


def systems_of(folder):
    graph = graphwire.open(f"{folder}/parts", threads=1, verify=False)
    return {
        "kumo-engine, most recent": Kumo(folder, "temporal_most_recent", "last"),
        "kumo-engine, uniform": Kumo(folder, "uniform", "uniform"),
        "Graphwire, disjoint": Graphwire(graph, {}, "any"),
        "Graphwire, temporal uniform": Graphwire(graph, {"time": "time"}, "uniform"),
        "Graphwire, last": Graphwire(graph, {"time": "time", "pick": "last"}, "last"),
    }


def seeds_of(random, users, batches):
    count = SEEDS * batches
    return random.integers(0, users, count), random.integers(SECONDS // 4, SECONDS, count)


def law_of(name, system, tables):
    """The figures of the law over CHECKED batches of each of FANOUTS, and those of equal seeds."""
    random, total = np.random.default_rng(3), {}
    for fanouts in FANOUTS:
        seeds, seconds = seeds_of(random, tables.users, CHECKED)
        for number, batch in enumerate(system.batches(seeds, seconds, fanouts)):
            some = slice(number * SEEDS, (number + 1) * SEEDS)
            for what, count in figures(tables, system.plain(batch), system.law, seeds[some], seconds[some],
                                       fanouts).items():
                total[what] = total.get(what, 0) + count
    begins = tables.begins["users"]
    seeds = np.flatnonzero(np.diff(begins) >= MANY)[:SEEDS // 2].repeat(2)
    batch = next(system.batches(seeds, np.full(len(seeds), SECONDS), [FEW]))
    total |= {"equal": equal_picks(system.plain(batch), seeds), "pairs": len(seeds) // 2}
    broken = total["lists"] - total["exact"] + total["missing"] + total["elsewhere"] + (
        total["later"] if system.law != "any" else 0)
    if isinstance(system, Graphwire) and broken:
        raise SystemExit(f"{name} breaks the law: {total}")
    return total


def measured(system, seeds, seconds, fanouts):
    """Draws a batch for each SEEDS seeds. The loader begins and ends within the measurement, so that all of its work
    counts."""
    before, begun, edges, batches = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter(), 0, 0
    for batch in system.batches(seeds, seconds, fanouts):
        edges += system.edges(batch)
        batches += 1
    taken, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
    return {"batches": batches, "edges": edges, "seconds": taken,
            "processor": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def law_table(laws):
    print("| law | edges from events | later than their seed | lists | lists that follow the law "
          "| equal seeds with equal picks |\n|---|---|---|---|---|---|")
    for name, total in laws.items():
        print(f"| {name} | {total['picks']:,} | {total['later']:,} | {total['lists']:,} | {total['exact']:,} | "
              f"{total['equal']} of {total['pairs']} |")


def rate(line):
    return line["edges"] / line["processor"] / 1e6


def table(lines, names):
    recent, last, batches = next(iter(names)), list(names)[-1], []
    print("\n| fanouts, M edges a CPU second | " + " | ".join(names) + " | last / most recent, rounds |")
    print("|---" * 7 + "|")
    for fanouts in FANOUTS:
        rates = {name: [rate(line) for line in lines if line["peer"] == name and line["fanouts"] == fanouts]
                 for name in names}
        ratios = sorted(a / b for a, b in zip(rates[last], rates[recent]))
        print(f"| {fanouts} | " + " | ".join(f"{statistics.median(some):.2f}" for some in rates.values()) +
              f" | {statistics.median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f}) |")
        edges = {line["peer"]: line["edges"] // line["batches"] for line in lines if line["fanouts"] == fanouts}
        batches.append(f"{fanouts}: {', '.join(map(str, edges.values()))}")
    print(f"\nedges a batch, {'; '.join(batches)}; load of the machine at the end: {os.getloadavg()[0]:.1f}")


def main(folder, results, rounds, batches):
    user, item, times = columns_of(json.loads(Path(folder, "sizes.json").read_text()))
    tables, systems, lines = Tables(user, item, times // NS), systems_of(folder), []
    laws = {name: law_of(name, system, tables) for name, system in systems.items()}
    for system in systems.values():
        measured(system, *seeds_of(np.random.default_rng(5), tables.users, int(batches)), FANOUTS[-1])
    with open(results, "w", encoding="utf-8") as out:
        for name, total in laws.items():
            out.write(json.dumps({"peer": name, "law": total}) + "\n")
        for number in range(int(rounds)):
            for fanouts in FANOUTS:
                seeds, seconds = seeds_of(np.random.default_rng([7, number]), tables.users, int(batches))
                for name in list(systems)[::1 if number % 2 == 0 else -1]:
                    line = {"peer": name, "fanouts": fanouts, "round": number,
                            **measured(systems[name], seeds, seconds, fanouts)}
                    lines.append(line)
                    out.write(json.dumps(line) + "\n")
                    out.flush()
            sys.stderr.write(f"round {number + 1} of {rounds}\n")
    law_table(laws)
    table(lines, systems)


if __name__ == "__main__":
    main(*sys.argv[1:])
