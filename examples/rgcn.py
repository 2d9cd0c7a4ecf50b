"""R-GCN on a heterogeneous graph, with embeddings that are learned in the servers: the classes of nodes.

  python examples/rgcn.py --part_config parts/                              one process, without servers
  torchrun --nproc_per_node 2 examples/rgcn.py --ip_config ip_config.txt    two, over servers

Node types without the feature (with --embed_all: all types) have a row each in a table of the servers, which SparseAdam
trains there. With --sync the ranks' gradients are combined in their order, and the same job gives the same bytes again.
"""

from __future__ import annotations

import time

import graphwire
import torch
import torch.nn.functional as F
from common import Checkpoint, Log, Ranks, open_graph, options, parse
from graphwire.nn import RelGraphConv
from torch import nn


class RGCN(nn.Module):
    """widths: of the feature, {node type: columns}."""

    def __init__(self, graph, widths, target, hidden, classes, layers, bases, dropout):
        super().__init__()
        self.target, self.dropout = target, nn.Dropout(dropout)
        self.inputs = nn.ModuleDict({ntype: nn.Linear(width, hidden) for ntype, width in widths.items()})
        sizes = [hidden] * layers + [classes]
        self.layers = nn.ModuleList(
            RelGraphConv(sizes[i], sizes[i + 1], graph.etypes, num_bases=bases or None, aggregator="mean")
            for i in range(layers))

    def forward(self, blocks, features, embedded):
        rows = {**embedded, **{ntype: self.inputs[ntype](some) for ntype, some in features.items()}}
        for number, block in enumerate(blocks):
            rows = self.layers[number](block, rows)
            if number < len(blocks) - 1:
                rows = {ntype: self.dropout(F.relu(some)) for ntype, some in rows.items()}
        return rows[self.target]


def scores_of(model, tables, batch, args):
    """[seeds, classes], of a batch and the tables' rows for its nodes."""
    features = {ntype: rows[args.feature].float() for ntype, rows in batch.features.items() if args.feature in rows}
    embedded = {ntype: table(batch.nodes[ntype], batch.seeds.device) for ntype, table in tables.items()}
    return model(batch.blocks, features, embedded)[batch.seed_rows]


@torch.no_grad()
def evaluate(model, tables, loader, ranks, args):
    """Accuracy over the nodes of a loader."""
    model.eval()
    total = torch.zeros(2)
    for batch in loader:
        total += torch.tensor([int((scores_of(model, tables, batch, args).argmax(1) == batch.y).sum()), len(batch.y)])
    model.train()
    total = ranks.sum(total)
    return float(total[0] / total[1].clamp(min=1))


def main(arguments=None):
    parser = options(__doc__.split("\n")[0])
    parser.add_argument("--ntype", help="the node type that has labels; default: the first that has")
    parser.add_argument("--feature", default="feat")
    parser.add_argument("--label", default="label")
    parser.add_argument("--num_bases", type=int, default=0, help="0: a weight for each edge type")
    parser.add_argument("--sparse_lr", type=float, default=0.01, help="of the tables")
    parser.add_argument("--embed_all", action="store_true", help="no features: a table for every node type")
    parser.add_argument("--sync", action="store_true", help="combine the ranks' gradients of the tables in order")
    args = parse(parser, arguments)

    ranks = Ranks(args)
    graph = open_graph(args, ranks)
    there = [feature for feature in graph.features if not feature.of_edges]
    target = args.ntype or next((f.type for f in there if f.name == args.label), None)
    if target is None:
        raise SystemExit(f'no node type has "{args.label}"; --label names another feature')
    widths = {} if args.embed_all else {f.type: f.shape[1] for f in there if f.name == args.feature}
    tables = {ntype: graphwire.Embedding(graph, f"embedding/{ntype}", args.num_hidden, ntype=ntype, seed=args.seed)
              for ntype in graph.ntypes if ntype not in widths}
    classes = int(graph.feature(args.label, target)[:].max()) + 1

    torch.manual_seed(args.seed)
    plain = RGCN(graph, widths, target, args.num_hidden, classes, len(args.fan_out.split(",")), args.num_bases,
                 args.dropout)
    model = ranks.parallel(plain, some_unused=True)
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    sparse = graphwire.optim.SparseAdam(list(tables.values()), args.sparse_lr, sync=args.sync)

    def loader(mask, **more):
        return graphwire.NodeLoader(
            graph, graph.feature(mask, target)[:], [int(count) for count in args.fan_out.split(",")], ntype=target,
            features={ntype: args.feature for ntype in widths}, labels=args.label, batch_size=args.batch_size,
            seed=args.seed, device=ranks.device, **more)

    train = loader("train_mask", shuffle=True)  # equal steps for all ranks
    tests = {name: loader(f"{name}_mask", last="short") for name in ("val", "test")}
    log = Log(args, ranks, f"R-GCN on {graph.name}")
    checkpoint = Checkpoint(args, ranks, plain, optimizer, train, tables=graph if tables else None)
    if checkpoint.load():
        ranks.say(f"going on from {args.checkpoint}: {train.state_dict()}")

    tested = 0.0
    while (epoch := train.state_dict()["epoch"]) < args.num_epochs:
        begun, total = time.time(), torch.zeros(2)
        for batch in train:
            ranks.random(batch.epoch, batch.step)
            loss = F.cross_entropy(scores_of(model, tables, batch, args), batch.y.long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sparse.step()
            total += torch.tensor([loss.item() * len(batch.seeds), len(batch.seeds)])
            if args.log_every and (batch.step + 1) % args.log_every == 0:
                ranks.say(f"epoch {epoch} step {batch.step}: loss {loss.item():.4f}")
            checkpoint.step(batch)
        total = ranks.sum(total)
        figures = {"loss": float(total[0] / total[1])}
        text = f"epoch {epoch}: loss {figures['loss']:.4f}, {time.time() - begun:.2f} s"
        if (epoch + 1) % args.eval_every == 0 or epoch + 1 == args.num_epochs:
            figures.update({name: evaluate(plain, tables, some, ranks, args) for name, some in tests.items()})
            tested = figures["test"]
            text += f"; val {figures['val']:.4f}, test {tested:.4f}"
        ranks.say(text)
        log.add(epoch=epoch, **figures)
        checkpoint.save()
    ranks.say(f"test accuracy {tested:.4f}")
    log.plot()
    ranks.close()


if __name__ == "__main__":
    main()
