"""R-GCN on a heterogeneous graph: learns the classes of nodes, and embeddings that the servers store.

  python examples/rgcn.py --part_config parts/                              one process, without servers
  torchrun --nproc_per_node 2 examples/rgcn.py --ip_config ip_config.txt    two, over servers

Nodes of types without the feature (with --embed_all: of all types) have a row in a table on the servers, which
SparseAdam trains there. --sync combines the ranks' gradients in the order of the ranks, so that a repeated job gives
the same bytes.
"""

from __future__ import annotations

import graphwire
import torch
import torch.nn.functional as F
from common import (
    Checkpoint,
    Inputs,
    Log,
    at_epoch,
    begin,
    columns,
    input_options,
    inputs_of,
    labelled,
    options,
    train,
)
from graphwire.nn import RelGraphConv
from torch import nn


class RGCN(nn.Module):
    """Computes the scores of each class for nodes of the type `target`."""

    def __init__(self, graph, inputs, target, hidden, classes, layers, bases, dropout):
        super().__init__()
        self.target, self.dropout, self.inputs = target, nn.Dropout(dropout), inputs
        sizes = [hidden] * layers + [classes]
        self.layers = nn.ModuleList(
            RelGraphConv(sizes[i], sizes[i + 1], graph.etypes, num_bases=bases or None, aggregator="mean")
            for i in range(layers))

    def forward(self, blocks, features, embedded):
        rows = self.inputs(features, embedded)
        for number, block in enumerate(blocks):
            rows = self.layers[number](block, rows)
            if number < len(blocks) - 1:
                rows = {ntype: self.dropout(F.relu(some)) for ntype, some in rows.items()}
        return rows[self.target]


def scores_of(model, tables, batch, args):
    """The scores of a batch's seeds, [seeds, classes]."""
    return model(batch.blocks, *inputs_of(batch, tables, args))[batch.seed_rows]


@torch.no_grad()
def evaluate(model, tables, loader, ranks, args):
    """The accuracy over the seeds of a loader."""
    model.eval()
    total = torch.zeros(2)
    for batch in loader:
        total += torch.tensor([int((scores_of(model, tables, batch, args).argmax(1) == batch.y).sum()), len(batch.y)])
    model.train()
    total = ranks.sum(total)
    return float(total[0] / total[1].clamp(min=1))


def main(arguments=None):
    parser = options(__doc__.split("\n")[0])
    input_options(parser)
    parser.add_argument("--ntype", help="the node type with labels; default: the first one")
    parser.add_argument("--label", default="label")
    parser.add_argument("--num_bases", type=int, default=0, help="the number of bases; 0: a weight for each edge type")
    parser.add_argument("--embed_all", action="store_true", help="use no features, and a table for every node type")
    args, ranks, graph = begin(parser, arguments)
    target = labelled(graph, args)
    widths = {} if args.embed_all else columns(graph, args.feature)
    classes = int(graph.feature(args.label, target)[:].max()) + 1

    torch.manual_seed(args.seed)
    plain = RGCN(graph, Inputs(graph, args, widths), target, args.num_hidden, classes, len(args.fan_out),
                 args.num_bases, args.dropout)
    tables, sparse = plain.inputs.tables()
    model = ranks.parallel(plain, some_unused=True)
    optimizer = torch.optim.Adam(model.parameters(), args.lr)

    def loader(mask, **more):
        return graphwire.NodeLoader(
            graph, graph.feature(mask, target)[:], args.fan_out, ntype=target,
            features={ntype: args.feature for ntype in widths}, labels=args.label, batch_size=args.batch_size,
            seed=args.seed, device=ranks.device, **more)

    learned = loader("train_mask", shuffle=True)  # equal steps for all ranks
    tests = {name: loader(f"{name}_mask", last="short") for name in ("val", "test")}
    log = Log(args, ranks, f"R-GCN on {graph.name}")
    checkpoint = Checkpoint(args, ranks, plain, optimizer, learned, log, graph, tables)
    if checkpoint.load():
        ranks.say(f"going on from {args.checkpoint}: {learned.state_dict()}")
    found = train(args, ranks, learned, [optimizer, sparse],
                  lambda batch: F.cross_entropy(scores_of(model, tables, batch, args), batch.y.long()),
                  lambda epoch: {name: evaluate(plain, tables, at_epoch(some, epoch), ranks, args)
                                 for name, some in tests.items()},
                  checkpoint)
    ranks.say(f"test accuracy {found.get('test', 0.0):.4f}")
    model = None  # must be freed before the group: see Ranks.close
    ranks.close()


if __name__ == "__main__":
    main()
