"""Unsupervised GraphSAGE: learns from edges and negatives to give linked nodes similar rows, and ranks links.

  python examples/links.py --part_config parts/                              one process, without servers
  torchrun --nproc_per_node 2 examples/links.py --ip_config ip_config.txt    two, over servers

A share of the edges is kept for evaluation and is never a target of training. Each such edge is ranked against
--num_ranked other ends. The figures are the mean reciprocal rank, and the share of edges among the first ten.

The rows of an edge's ends are computed without the edge itself and without its reverse. The graph records the edge type
of the reverses, which is the same type in an undirected graph; if the graph records none, --reverse_etype names it.
Node types without the feature start from a row of a table on the servers.

At the end, the rows of all nodes are computed layer by layer, with all neighbours; each rank computes a share of the
nodes. --embeddings writes the rows. If nodes have labels and masks, a linear model of the rows is trained too, and its
accuracy is printed.
"""

from __future__ import annotations

from pathlib import Path

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
    fitted,
    forget,
    in_words,
    inference,
    input_options,
    inputs_of,
    options,
    train,
    write_rows,
)
from graphwire.nn import HeteroConv, SAGEConv
from torch import nn


class Encoder(nn.Module):
    """Computes rows of nodes by layers of GraphSAGE over all edge types. A link's score is the dot product of the rows
    of its ends."""

    def __init__(self, graph, inputs, hidden, layers, dropout):
        super().__init__()
        self.dropout, self.inputs = nn.Dropout(dropout), inputs
        self.layers = nn.ModuleList(
            HeteroConv({etype: SAGEConv(hidden, hidden) for etype in graph.etypes}, "mean") for _ in range(layers))

    def layer(self, number, block, rows):
        rows = self.layers[number](block, rows)
        if number == len(self.layers) - 1:
            return rows
        return {ntype: self.dropout(F.relu(some)) for ntype, some in rows.items()}

    def forward(self, blocks, features, embedded):
        rows = self.inputs(features, embedded)
        for number, block in enumerate(blocks):
            rows = self.layer(number, block, rows)
        return rows


def division(graph, etype, share, seed):
    """(edges to learn from, edges kept for evaluation). share: of all edges, the part to keep. If the reverses have the
    same edge type (an undirected graph), the reverses of kept edges are not learned from either."""
    order = torch.randperm(graph.num_edges(etype), generator=torch.Generator().manual_seed(seed))
    count = max(1, int(share * len(order)))
    learned, held = order[count:], order[:count]
    if graph.reverse(etype) == etype:
        nodes = graph.num_nodes(graph.ends(etype)[0])
        src, dst = graph.find_edges(held, etype)
        turned = dst * nodes + src
        src, dst = graph.find_edges(learned, etype)
        learned = learned[~torch.isin(src * nodes + dst, turned)]
    return learned, held


def exclusion(graph, etype, reverse_etype):
    """The EdgeLoader's options that exclude a batch's edges and their reverses from the sampling."""
    if reverse_etype:
        return {"exclude": ["ends"], "reverse_etype": reverse_etype}
    return {"exclude": ["ends", "reverse"] if graph.reverse(etype) else ["ends"]}


def scores_of(model, tables, batch, ends, args):
    """The scores of each edge and of its negatives, [edges, 1 + negatives]."""
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
    """The mean reciprocal rank and the share of ranks up to 10, over the edges of a loader. Each rank evaluates a share
    of the edges. An equal score of a negative counts as half a place."""
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


def linear_accuracy(graph, args, ntype, rows):
    """The accuracy of a linear model on the test nodes. The model learns the classes of the train nodes from their
    rows. At most 100,000 nodes of each part are used. None if one part has no labels."""
    torch.manual_seed(args.seed)
    found = []
    for part in ("train", "test"):
        ids = torch.nonzero(graph.feature(f"{part}_mask", ntype)[:]).flatten()[:100000]
        classes = graph.gather(args.label, ids, ntype).flatten().long()
        known = classes >= 0
        found += [rows[ids[known]], classes[known]]
    x, y, tested, wanted = found
    if not len(y) or not len(wanted):
        return None
    mean, deviation = x.mean(0), x.std(0, unbiased=False).clamp(min=1e-6)
    model = nn.Linear(x.shape[1], int(max(y.max(), wanted.max())) + 1)
    scores = fitted(model, (x - mean) / deviation, y, 300, (tested - mean) / deviation)
    return float((scores.argmax(1) == wanted).float().mean())


def embed(model, tables, graph, ranks, args, widths):
    """Computes the rows of all nodes. Writes them if --embeddings is given, and evaluates a linear model of them for
    the node types with labels and masks."""
    divided = columns(graph, "train_mask").keys() & columns(graph, "test_mask").keys()
    labelled = [ntype for ntype, width in columns(graph, args.label).items() if width == 1 and ntype in divided]
    if not args.embeddings and not labelled:
        return
    found = inference(model, graph, ranks, args, {ntype: args.feature for ntype in widths}, graph.ntypes,
                      lambda batch: model.inputs(*inputs_of(batch, tables, args)))
    for ntype, rows in found.items() if ranks.rank == 0 else ():
        if args.embeddings:
            path = Path(args.embeddings)
            if len(graph.ntypes) > 1:
                path = path.with_name(f"{path.stem}_{ntype}{path.suffix}")
            if path.suffix == ".npy":
                ids = write_rows(path, graph, ntype, rows, args.batch_size_eval)
            else:
                graphwire.save(rows, path, ntype, name="row", replace=True, world=1, rank=0, progress=False)
                ids = "original ids"
            print(f"{path}: {rows.shape[0]} rows of {rows.shape[1]}, by {ids}", flush=True)
        if ntype in labelled and (accuracy := linear_accuracy(graph, args, ntype, rows)) is not None:
            print(f"test accuracy {accuracy:.4f} of a linear model of the rows of {ntype}", flush=True)
    forget(graph, ranks, found)


def main(arguments=None):
    parser = options(__doc__.split("\n")[0])
    input_options(parser)
    parser.add_argument("--etype", help='the edge type of the links, "src:rel:dst"; default: the only edge type')
    parser.add_argument("--num_negs", type=int, default=5)
    parser.add_argument("--num_ranked", type=int, default=100)
    parser.add_argument("--test_share", type=float, default=0.1)
    parser.add_argument("--batch_size_eval", type=int, default=10000,
                        help="nodes of a batch when the rows of all nodes are computed")
    parser.add_argument("--embeddings", help="a file to write, with a row for each node. .parquet or .csv: with the "
                        "original ids, such as the keys of tables. .npy: in the order of original ids if these are 0 "
                        "to nodes - 1, else in the order of the graph's ids. For several node types NAME_TYPE.parquet")
    parser.add_argument("--label", default="label", help="the feature with the classes of nodes, for the linear model")
    for flag, why in (("neg_share", "each edge has negatives of its own"),
                      ("remove_edge", "a batch's edges are always excluded")):
        parser.add_argument(f"--{flag}", action="store_true", help=f"ignored; for the options of DGL's script: {why}")
    parser.add_argument("--n_classes", type=int,
                        help="ignored; for the options of DGL's script: links have no classes")
    parser.add_argument("--reverse_etype", help="the edge type of the reverses, if the graph does not record it")
    args, ranks, graph = begin(parser, arguments)
    etype = graph.etypes[graph.etype_number(args.etype)]
    ends, widths = graph.ends(etype), columns(graph, args.feature)
    targets, held = division(graph, etype, args.test_share, args.seed)

    torch.manual_seed(args.seed)
    plain = Encoder(graph, Inputs(graph, args, widths), args.num_hidden, len(args.fan_out), args.dropout)
    tables, sparse = plain.inputs.tables()
    model = ranks.parallel(plain, some_unused=True)
    optimizer = torch.optim.Adam(model.parameters(), args.lr)

    def loader(edges, **more):
        return graphwire.EdgeLoader(
            graph, edges, args.fan_out, etype=etype, features={ntype: args.feature for ntype in widths}, seed=args.seed,
            batch_size=args.batch_size, device=ranks.device, **exclusion(graph, etype, args.reverse_etype), **more)

    learned = loader(targets, shuffle=True, negatives=args.num_negs)  # equal steps for all ranks
    test = loader(held, negatives=args.num_ranked, last="short")
    log = Log(args, ranks, f"links of {graph.name}")
    checkpoint = Checkpoint(args, ranks, plain, optimizer, learned, log, graph, tables)

    def found_after(epochs):
        return evaluate(plain, tables, at_epoch(test, epochs), ends, ranks, args)

    if checkpoint.load():
        ranks.say(f"going on from {args.checkpoint}: {learned.state_dict()}")
    else:
        ranks.say(f"untrained: {in_words(found_after(0))}")
    train(args, ranks, learned, [optimizer, sparse],
          lambda batch: loss_of(scores_of(model, tables, batch, ends, args)), found_after, checkpoint)
    embed(plain, tables, graph, ranks, args, widths)
    model = None  # must be freed before the group: see Ranks.close
    ranks.close()


if __name__ == "__main__":
    main()
