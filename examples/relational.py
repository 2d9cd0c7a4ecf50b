"""A model of a database: who of a shop's customers will come back? Rows of a task's table, drawn by time.

  python examples/relational.py                                  a database that the script makes, in two parts
  python examples/relational.py --out parts/                     only writes the parts, for servers
  python examples/relational.py --servers a:30050,b:30050        the same over the servers of these parts
  python examples/relational.py --leak                           draws without times, to show what that does

The script makes three tables: customers, products and purchases. After a good product a customer comes back soon. A row
of the task asks whether a customer buys in the 30 days after a time. The answer is in the database too, as later
purchases; batches have only earlier ones. The figure is the area under the ROC curve, of customers at later times than
those of training; the script also prints that of the customers' own columns.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial

import graphwire
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch_geometric.nn import HeteroConv, SAGEConv

DAYS, SOON = 400, 30
START = np.datetime64("2025-01-01", "s")
EDGES = {("purchase", "by", "customer"): "customer", ("purchase", "of", "product"): "product"}


def times(days):
    return START + (np.asarray(days) * 86400).astype("timedelta64[s]")


def shop(customers, products=40):
    """{name: table}."""
    random = np.random.default_rng(0)
    good = np.arange(products) < products // 2
    of_kind = {kind: np.flatnonzero(good == kind) for kind in (True, False)}
    found = []
    for customer in range(customers):
        day, kind = random.exponential(30), random.random() < 0.5
        while day < DAYS:
            found.append((f"c-{customer}", f"p-{random.choice(of_kind[kind])}", day))
            day += random.exponential(15 if kind else 100)
            kind = kind if random.random() < 0.95 else not kind  # a habit
    purchases = pd.DataFrame(found, columns=["customer", "product", "day"])
    return {"customer": pd.DataFrame({"id": [f"c-{one}" for one in range(customers)],
                                      "age": random.integers(18, 80, customers) / 80}),
            "product": pd.DataFrame({"id": [f"p-{one}" for one in range(products)],
                                     "score": good + random.normal(0, 0.3, products)}),
            "purchase": pd.DataFrame({"id": np.arange(len(purchases)), "customer": purchases["customer"],
                                      "product": purchases["product"], "time": times(purchases["day"])})}


def task(tables, days):
    """A row for each customer and day: whether a purchase follows within SOON days."""
    bought = tables["purchase"].groupby("customer")["time"].agg(list)
    asked = pd.DataFrame([(who, when) for when in times(days) for who in bought.index], columns=["customer", "when"])
    soon = pd.Timedelta(days=SOON)
    asked["back"] = [any(when < one <= when + soon for one in bought[who])
                     for who, when in zip(asked["customer"], asked["when"])]
    return asked


def partition(tables, out):
    graph = graphwire.from_tables(dict.fromkeys(EDGES, tables["purchase"]), tables, id="id", src="id", dst=EDGES,
                                  features={"customer": ["age"], "product": ["score"], "purchase": ["time"]})
    return graphwire.partition_graph(graph, "shop", 2, out, method="random", reverse=True, time="time")


class Model(torch.nn.Module):
    """Each type's own columns, and for purchases their age when the row asks; then two layers of messages."""

    def __init__(self, etypes, hidden):
        super().__init__()
        self.own = torch.nn.ModuleDict({"customer": torch.nn.Linear(1, hidden), "product": torch.nn.Linear(1, hidden),
                                        "purchase": torch.nn.Linear(2, hidden)})
        self.layers = torch.nn.ModuleList(HeteroConv({etype: SAGEConv(hidden, hidden, "sum") for etype in etypes})
                                          for _ in range(2))
        self.head = torch.nn.Linear(hidden, 1)

    def forward(self, batch):
        asked = batch["customer"]
        days = (asked.seed_time[batch["purchase"].batch] - batch["purchase"].time) / 86400
        rows = {"customer": asked.age.float()[:, None], "product": batch["product"].score.float()[:, None],
                "purchase": torch.stack([torch.tanh(days / 20), torch.tanh(days / 100)], 1).float()}
        x = {kind: F.relu(layer(rows[kind])) for kind, layer in self.own.items()}
        for layer in self.layers:
            x = {**x, **{kind: F.relu(found) for kind, found in layer(x, batch.edge_index_dict).items()}}
        return self.head(x["customer"][:asked.batch_size]).flatten()


def area(scores, labels):
    """The area under the ROC curve."""
    ranks, labels = pd.Series(scores).rank().to_numpy(), np.asarray(labels, bool)
    right, wrong = labels.sum(), (~labels).sum()
    return float((ranks[labels].sum() - right * (right + 1) / 2) / (right * wrong))


def own_columns(tables, train, test):
    """The area of a model that sees the customers' own columns."""
    age = tables["customer"].set_index("id")["age"]
    bins = np.linspace(0, 1, 8)
    places = [np.digitize(age[asked["customer"]], bins) for asked in (train, test)]
    rates = train["back"].groupby(places[0]).mean()
    return area(rates.reindex(places[1]).fillna(rates.mean()), test["back"])


def with_times(seconds, batch):
    """The times of the rows, by which a batch of --leak was not drawn."""
    batch["customer"].seed_time = seconds[batch["customer"].input_id]
    return batch


def loaders(args, graph, tables):
    """(training, test, the rows of the test)"""
    asked = {True: task(tables, range(60, 300, 40)), False: task(tables, [DAYS - SOON - 20, DAYS - SOON])}
    made = []
    for training, rows in asked.items():
        drawn = {"time": "when"}
        if args.leak:
            seconds = torch.from_numpy(rows["when"].to_numpy().astype("datetime64[s]").astype(np.int64))
            drawn = {"disjoint": True, "transform": partial(with_times, seconds)}
        made.append(graphwire.pyg.relational(
            graph, rows, args.fan_out, entity=("customer", "customer"), target="back", batch_size=args.batch_size,
            shuffle=training, **drawn))
    return *made, asked


@torch.no_grad()
def scores(model, loader):
    """The model's answers, in the order of the table's rows."""
    found = torch.empty(len(loader.target))
    for batch in loader:
        found[batch["customer"].input_id] = model(batch)
    return found.numpy()


def trained(args, graph):
    """The area of the model, and of the customers' own columns."""
    tables = shop(args.customers)
    loader, tests, asked = loaders(args, graph, tables)
    torch.manual_seed(args.seed)
    model = Model([tuple(etype.split(":")) for etype in graph.etypes], args.num_hidden)
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    for epoch in range(args.num_epochs):
        total = 0.0
        for batch in loader:
            loss = F.binary_cross_entropy_with_logits(model(batch), batch["customer"].y.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}", flush=True)
    found = area(scores(model, tests), asked[False]["back"]), own_columns(tables, asked[True], asked[False])
    print(f"area of the model {found[0]:.3f}, of the customers' own columns {found[1]:.3f}", flush=True)
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--customers", type=int, default=800)
    parser.add_argument("--out", help="write the graph's parts to this folder, and end")
    parser.add_argument("--servers", help="the servers' addresses: host:port,host:port; default: none, in this process")
    parser.add_argument("--leak", action="store_true", help="each row sees all purchases, also later ones")
    parser.add_argument("--fan_out", default="16,4", help="neighbours of each hop, from the customers outwards")
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--num_epochs", type=int, default=5)
    parser.add_argument("--num_hidden", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    args.fan_out = [int(count) for count in args.fan_out.split(",")]
    if args.out:
        print(partition(shop(args.customers), args.out))
        return None
    if args.servers:
        with graphwire.open(servers=args.servers) as graph:
            return trained(args, graph)
    with tempfile.TemporaryDirectory() as folder, graphwire.open(partition(shop(args.customers), folder)) as graph:
        return trained(args, graph)


if __name__ == "__main__":
    main()
