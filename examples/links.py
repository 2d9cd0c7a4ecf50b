"""GraphSAGE without labels: nodes that are linked come out alike. Learns from edges and negatives, and ranks links.

  python examples/links.py --part_config parts/                              one process, without servers
  torchrun --nproc_per_node 2 examples/links.py --ip_config ip_config.txt    two, over servers

A share of the edges is kept for evaluation: never a target of training, and ranked against --num_ranked other ends by
the mean reciprocal rank and how many are among the first ten. An edge is never among those that its own ends are
computed from, in either direction. Nodes without the feature start from a row of a table in the servers.
"""

from __future__ import annotations

import time

import graphwire
import torch
import torch.nn.functional as F
from common import Checkpoint, Log, Ranks, open_graph, options, parse
from graphwire.nn import HeteroConv, SAGEConv
from torch import nn


class Encoder(nn.Module):
    """Rows of nodes, by layers of GraphSAGE over all edge types; a link's score is the product of its ends' rows."""

    def __init__(self, graph, widths, hidden, layers, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.inputs = nn.ModuleDict({ntype: nn.Linear(width, hidden) for ntype, width in widths.items()})
        self.layers = nn.ModuleList(
            HeteroConv({etype: SAGEConv(hidden, hidden) for etype in graph.etypes}, "mean") for _ in range(layers))

    def forward(self, blocks, features, embedded):
        rows = {**embedded, **{ntype: self.inputs[ntype](some) for ntype, some in features.items()}}
        for number, block in enumerate(blocks):
            found = self.layers[number](block, rows)
            last = number == len(blocks) - 1
            rows = {ntype: some if last else self.dropout(F.relu(some)) for ntype, some in found.items()}
        return rows


def scores_of(model, tables, batch, ends, args):
    """[edges, 1 + negatives]: of each edge, and of its negatives."""
    features = {ntype: rows[args.feature].float() for ntype, rows in batch.features.items() if args.feature in rows}
    embedded = {ntype: table(batch.nodes[ntype], batch.seeds.device) for ntype, table in tables.items()}
    rows = model(batch.blocks, features, embedded)
    src, dst = rows[ends[0]][batch.src_rows], rows[ends[1]][batch.dst_rows]
    true = (src * dst).sum(1, keepdim=True)
    return torch.cat([true, torch.einsum("nd,nkd->nk", src, rows[ends[1]][batch.negative_rows])], 1)


@torch.no_grad()
def evaluate(model, tables, loader, ends, ranks, args):
    """Mean reciprocal rank, and the share of ranks up to 10, over a loader's edges. Ties count half."""
    model.eval()
    total = torch.zeros(3)
    for batch in loader:
        scores = scores_of(model, tables, batch, ends, args)
        others, true = scores[:, 1:], scores[:, :1]
        rank = 1 + (others > true).sum(1) + (others == true).sum(1) / 2
        total += torch.tensor([float((1 / rank).sum()), float((rank <= 10).sum()), len(rank)])
    model.train()
    total = ranks.sum(total)
    return {"mrr": float(total[0] / total[2]), "hits10": float(total[1] / total[2])}


def main(arguments=None):
    parser = options(__doc__.split("\n")[0])
    parser.add_argument("--etype", help='the links: "src:rel:dst"; may be left out where there is one')
    parser.add_argument("--feature", default="feat")
    parser.add_argument("--num_negs", type=int, default=5)
    parser.add_argument("--num_ranked", type=int, default=100)
    parser.add_argument("--test_share", type=float, default=0.1)
    parser.add_argument("--reverse_etype", help="the edge type of the reverses, where the graph does not name it")
    parser.add_argument("--sparse_lr", type=float, default=0.01, help="of the tables")
    args = parse(parser, arguments)

    ranks = Ranks(args)
    graph = open_graph(args, ranks)
    etype = graph.etypes[graph.etype_number(args.etype)]
    ends = graph.ends(etype)
    widths = {f.type: f.shape[1] for f in graph.features if not f.of_edges and f.name == args.feature}
    tables = {ntype: graphwire.Embedding(graph, f"embedding/{ntype}", args.num_hidden, ntype=ntype, seed=args.seed)
              for ntype in graph.ntypes if ntype not in widths}
    order = torch.randperm(graph.num_edges(etype), generator=torch.Generator().manual_seed(args.seed))
    held = order[:max(1, int(args.test_share * len(order)))]
    learned = order[len(held):]

    torch.manual_seed(args.seed)
    fanouts = [int(count) for count in args.fan_out.split(",")]
    plain = Encoder(graph, widths, args.num_hidden, len(fanouts), args.dropout)
    model = ranks.parallel(plain, some_unused=True)
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    sparse = graphwire.optim.SparseAdam(list(tables.values()), args.sparse_lr)

    def loader(edges, **more):
        exclude = {"exclude": ["ends"]}
        if args.reverse_etype:
            exclude["reverse_etype"] = args.reverse_etype
        elif any(other.split(":")[1] == "rev_" + etype.split(":")[1] for other in graph.etypes):
            exclude["exclude"] = ["ends", "reverse"]
        return graphwire.EdgeLoader(
            graph, edges, fanouts, etype=etype, features={ntype: args.feature for ntype in widths}, seed=args.seed,
            batch_size=args.batch_size, device=ranks.device, **exclude, **more)

    train = loader(learned, shuffle=True, negatives=args.num_negs)  # equal steps for all ranks
    test = loader(held, negatives=args.num_ranked, last="short")
    log = Log(args, ranks, f"links of {graph.name}")
    checkpoint = Checkpoint(args, ranks, plain, optimizer, train, tables=graph if tables else None)
    if checkpoint.load():
        ranks.say(f"going on from {args.checkpoint}: {train.state_dict()}")
    else:
        figures = evaluate(plain, tables, test, ends, ranks, args)
        ranks.say(f"untrained: MRR {figures['mrr']:.4f}, among the first ten {figures['hits10']:.4f}")

    while (epoch := train.state_dict()["epoch"]) < args.num_epochs:
        begun, total = time.time(), torch.zeros(2)
        for batch in train:
            ranks.random(batch.epoch, batch.step)
            scores = scores_of(model, tables, batch, ends, args)
            wanted = torch.zeros_like(scores)
            wanted[:, 0] = 1
            loss = F.binary_cross_entropy_with_logits(scores, wanted)
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
            figures.update(evaluate(plain, tables, test, ends, ranks, args))
            text += f"; MRR {figures['mrr']:.4f}, among the first ten {figures['hits10']:.4f}"
        ranks.say(text)
        log.add(epoch=epoch, **figures)
        checkpoint.save()
    log.plot()
    ranks.close()


if __name__ == "__main__":
    main()
