"""The database of relational_epoch.py, a made shop: relational_shop.py DIR [SHARE]

Ten tables of 2 million rows: users, items, stores and campaigns, and six kinds of events with times that point to them.
SHARE makes tables of that share of the rows. DIR gets the tables as Parquet with kumo-engine's index of them, and
Graphwire's graph of the same data in one part and in two. Existing ones are not made again. Prints how long each took.

The data is PyTorch Geometric's HeteroData in the form of RelBench: a node type for each table, with a TensorFrame and
the time in seconds, and for each foreign key the edge types f2p_KEY and rev_f2p_KEY.
"""
from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from relational_graph import NS, SECONDS, kumo_index, made

# {table: (rows, {foreign key: its table})}. Tables with foreign keys have times.
TABLES = {
    "users": (50_000, {}), "items": (30_000, {}), "stores": (1_000, {}), "campaigns": (500, {}),
    "orders": (400_000, {"user": "users", "store": "stores"}),
    "lines": (800_000, {"order": "orders", "item": "items"}),
    "visits": (400_000, {"user": "users", "campaign": "campaigns"}),
    "reviews": (200_000, {"user": "users", "item": "items"}),
    "returns": (50_000, {"line": "lines"}),
    "messages": (68_500, {"user": "users", "store": "stores"}),
}
NUMBERS, KINDS = ["amount", "score", "length"], ["colour", "country"]
DAY = 86400


class Shop:
    """rows: {table: count}; keys: {table: {foreign key: rows of its table}}; seconds: {table: the times of its rows}. A
    line has the time of its order, and a return follows its line within 30 days."""

    def __init__(self, share=1.0):
        random = np.random.default_rng(21)
        self.rows = {table: max(2, int(count * share)) for table, (count, _) in TABLES.items()}
        self.keys, self.seconds = {}, {}
        for table, (_, keys) in TABLES.items():
            self.keys[table] = {key: random.integers(0, self.rows[to], self.rows[table]) for key, to in keys.items()}
            if keys:
                self.seconds[table] = random.integers(0, SECONDS, self.rows[table])
        self.seconds["lines"] = self.seconds["orders"][self.keys["lines"]["order"]]
        self.seconds["returns"] = self.seconds["lines"][self.keys["returns"]["line"]] + random.integers(
            0, 30 * DAY, self.rows["returns"])

    def frame(self, table):
        """The table's TensorFrame: three numbers, two kinds, and the parts of the time."""
        import torch
        from torch_frame import TensorFrame, stype

        random = torch.Generator().manual_seed(len(table))
        count = self.rows[table]
        values = {stype.numerical: torch.randn(count, len(NUMBERS), generator=random),
                  stype.categorical: torch.randint(0, 50, (count, len(KINDS)), generator=random)}
        names = {stype.numerical: NUMBERS, stype.categorical: KINDS}
        if table in self.seconds:
            seconds = torch.from_numpy(self.seconds[table])
            values[stype.timestamp] = torch.stack([seconds // unit for unit in (
                365 * DAY, 30 * DAY, DAY, 7 * DAY, 3600, 60, 1)], 1).unsqueeze(1)
            names[stype.timestamp] = ["date"]
        return TensorFrame(values, names)

    def data(self):
        """HeteroData in the form of RelBench."""
        import torch
        from torch_geometric.data import HeteroData

        data = HeteroData()
        for table, count in self.rows.items():
            data[table].num_nodes, data[table].tf = count, self.frame(table)
            if table in self.seconds:
                data[table].time = torch.from_numpy(self.seconds[table])
        for table, keys in self.keys.items():
            for key, rows in keys.items():
                ends, to = torch.stack([torch.arange(self.rows[table]), torch.from_numpy(rows)]), TABLES[table][1][key]
                data[table, f"f2p_{key}", to].edge_index = ends
                data[to, f"rev_f2p_{key}", table].edge_index = ends.flip(0)
        return data

    def write(self, folder):
        folder.mkdir()
        for table, count in self.rows.items():
            columns = {"id": np.arange(count), **self.keys[table]}
            if table in self.seconds:
                columns["time"] = pa.array(self.seconds[table] * NS, pa.timestamp("ns"))
            parquet.write_table(pa.table(columns), folder / f"{table}.parquet")


def main(folder, share="1"):
    import graphwire

    folder, shop = Path(folder).absolute(), Shop(float(share))
    folder.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("diskgraph"):
        made("the tables", folder / "tables", shop.write)
        made("kumo-engine's index", folder / "index", lambda path: kumo_index(
            {table: keys for table, (_, keys) in TABLES.items()}, folder / "tables", path))
    for parts in (1, 2):
        made(f"partition_graph, {parts} of {parts}", folder / f"parts{parts}", lambda path, parts=parts: (
            graphwire.partition_graph(shop.data(), "shop", parts, path, method="metis" if parts > 1 else "random",
                                      time="time", progress=False)))


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    main(*sys.argv[1:])
