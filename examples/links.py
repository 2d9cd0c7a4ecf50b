"""GraphSAGE without labels: nodes that are linked come out alike. Learns from edges and negatives, and ranks links.

  python examples/links.py --part_config parts/                              one process, without servers
  torchrun --nproc_per_node 2 examples/links.py --ip_config ip_config.txt    two, over servers

A share of the edges is kept for evaluation: never a target of training, and ranked against --num_ranked other ends by
the mean reciprocal rank and how many are among the first ten. An edge is never among those that its own ends are
computed from, in either direction. Nodes without the feature start from a row of a table in the servers.
"""

from __future__ import annotations

import graphwire
import torch
import torch.nn.functional as F
from common import Checkpoint, Inputs, Log, begin, columns, in_words, input_options, inputs_of, options, train
from graphwire.nn import HeteroConv, SAGEConv
from torch import nn


class Encoder(nn.Module):
    """Rows of nodes, by layers of GraphSAGE over all edge types; a link's score is the product of its ends' rows."""

    def __init__(self, graph, inputs, hidden, layers, dropout):
        super().__init__()
        self.dropout, self.inputs = nn.Dropout(dropout), inputs
        self.layers = nn.ModuleList(
            HeteroConv({etype: SAGEConv(hidden, hidden) for etype in graph.etypes}, "mean") for _ in range(layers))

    def forward(self, blocks, features, embedded):
        rows = self.inputs(features, embedded)
        for number, block in enumerate(blocks):
            found = self.layers[number](block, rows)
            last = number == len(blocks) - 1
            rows = {ntype: some if last else self.dropout(F.relu(some)) for ntype, some in found.items()}
        return rows


def scores_of(model, tables, batch, ends, args):
    """[edges, 1 + negatives]: of each edge, and of its negatives."""
    rows = model(batch.blocks, *inputs_of(batch, tables, args))
    src, dst = rows[ends[0]][batch.src_rows], rows[ends[1]][batch.dst_rows]
    true = (src * dst).sum(1, keepdim=True)
    return torch.cat([true, torch.einsum("nd,nkd->nk", src, rows[ends[1]][batch.negative_rows])], 1)


def loss_of(scores):
    wanted = torch.zeros_like(scores)
    wanted[:, 0] = 1
    return F.binary_cross_entropy_with_logits(scores, wanted)


@torch.no_grad()
def evaluate(model, tables, loader, ends, ranks, args):
    """Mean reciprocal rank, and the share of ranks up to 10, over a loader's edges, a share on each rank. Ties count
    half."""
    model.eval()
    total = torch.zeros(3)
    for batch in loader:
        scores = scores_of(model, tables, batch, ends, args)
        others, true = scores[:, 1:], scores[:, :1]
        rank = 1 + (others > true).sum(1) + (others == true).sum(1) / 2
        total += torch.tensor([float((1 / rank).sum()), float((rank <= 10).sum()), len(rank)])
    model.train()
    total = ranks.sum(total)
    return {"mrr": float(total[0] / total[2]), "hits10": float(total[1] / total[2]), "ranked": int(total[2])}


def main(arguments=None):
    parser = options(__doc__.split("\n")[0])
    input_options(parser)
    parser.add_argument("--etype", help='the links: "src:rel:dst"; may be left out where there is one')
    parser.add_argument("--num_negs", type=int, default=5)
    parser.add_argument("--num_ranked", type=int, default=100)
    parser.add_argument("--test_share", type=float, default=0.1)
    parser.add_argument("--reverse_etype", help="the edge type of the reverses, where the graph does not name it")
    args, ranks, graph = begin(parser, arguments)
    etype = graph.etypes[graph.etype_number(args.etype)]
    ends, widths = graph.ends(etype), columns(graph, args.feature)
    order = torch.randperm(graph.num_edges(etype), generator=torch.Generator().manual_seed(args.seed))
    held = order[:max(1, int(args.test_share * len(order)))]

    torch.manual_seed(args.seed)
    plain = Encoder(graph, Inputs(graph, args, widths), args.num_hidden, len(args.fan_out), args.dropout)
    tables, sparse = plain.inputs.tables()
    model = ranks.parallel(plain, some_unused=True)
    optimizer = torch.optim.Adam(model.parameters(), args.lr)

    def loader(edges, **more):
        exclude = {"exclude": ["ends"]}
        if args.reverse_etype:
            exclude["reverse_etype"] = args.reverse_etype
        elif any(other.split(":")[1] == "rev_" + etype.split(":")[1] for other in graph.etypes):
            exclude["exclude"] = ["ends", "reverse"]
        return graphwire.EdgeLoader(
            graph, edges, args.fan_out, etype=etype, features={ntype: args.feature for ntype in widths}, seed=args.seed,
            batch_size=args.batch_size, device=ranks.device, **exclude, **more)

    learned = loader(order[len(held):], shuffle=True, negatives=args.num_negs)  # equal steps for all ranks
    test = loader(held, negatives=args.num_ranked, last="short")
    checkpoint = Checkpoint(args, ranks, plain, optimizer, learned, tables=graph if tables else None)
    if checkpoint.load():
        ranks.say(f"going on from {args.checkpoint}: {learned.state_dict()}")
    else:
        ranks.say(f"untrained: {in_words(evaluate(plain, tables, test, ends, ranks, args))}")
    train(args, ranks, learned, [optimizer, sparse],
          lambda batch: loss_of(scores_of(model, tables, batch, ends, args)),
          lambda: evaluate(plain, tables, test, ends, ranks, args),
          Log(args, ranks, f"links of {graph.name}"), checkpoint)
    model = None  # goes before its group: Ranks.close tells why
    ranks.close()


if __name__ == "__main__":
    main()
