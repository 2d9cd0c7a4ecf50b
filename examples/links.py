"""GraphSAGE without labels: nodes that are linked come out alike. Learns from edges and negatives, and ranks links.

  python examples/links.py --part_config parts/                              one process, without servers
  torchrun --nproc_per_node 2 examples/links.py --ip_config ip_config.txt    two, over servers

A share of the edges is kept for evaluation: never a target of training, and ranked against --num_ranked other ends by
the mean reciprocal rank and how many are among the first ten. An edge is never among those that its own ends are
computed from, and neither is its reverse, in the type that the graph names for it (an undirected graph: the same type)
or --reverse_etype. Nodes without the feature start from a row of a table in the servers.

At the end the rows of all nodes are computed layer by layer, with all neighbours, a share of the nodes on each rank:
for --embeddings, and, where nodes have labels and masks, for the accuracy of a linear model of them.
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
    """Rows of nodes, by layers of GraphSAGE over all edge types; a link's score is the product of its ends' rows."""

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
    """Edges to learn from, and those kept for evaluation, a share of all. Where an edge's reverse is of the same type
    (an undirected graph) it is not learned from either."""
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
    """Of a batch's own edges: what its ends are not computed from."""
    if reverse_etype:
        return {"exclude": ["ends"], "reverse_etype": reverse_etype}
    return {"exclude": ["ends", "reverse"] if graph.reverse(etype) else ["ends"]}


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


def linear_accuracy(graph, args, ntype, rows):
    """On the test nodes, of a linear model that learns the classes of the train nodes from their rows, at most 100,000
    of each; None where one part has no labels."""
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
    """Rows of all nodes: written, and tried by a linear model, where there is what that needs."""
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
            ids = write_rows(path, graph, ntype, rows, args.batch_size_eval)
            print(f"{path}: {rows.shape[0]} rows of {rows.shape[1]}, by {ids}", flush=True)
        if ntype in labelled and (accuracy := linear_accuracy(graph, args, ntype, rows)) is not None:
            print(f"test accuracy {accuracy:.4f} of a linear model of the rows of {ntype}", flush=True)
    forget(graph, ranks, found)


def main(arguments=None):
    parser = options(__doc__.split("\n")[0])
    input_options(parser)
    parser.add_argument("--etype", help='the links: "src:rel:dst"; may be left out where there is one')
    parser.add_argument("--num_negs", type=int, default=5)
    parser.add_argument("--num_ranked", type=int, default=100)
    parser.add_argument("--test_share", type=float, default=0.1)
    parser.add_argument("--batch_size_eval", type=int, default=10000, help="of the rows of all nodes")
    parser.add_argument("--embeddings", help="a .npy to write, with a row for each node: row i is of the node whose "
                        "original id is i, where these are 0 to nodes - 1, else of the graph's node i; of several node "
                        "types NAME_TYPE.npy")
    parser.add_argument("--label", default="label", help="of nodes, for the linear model's accuracy")
    for flag, why in (("neg_share", "each edge has negatives of its own"),
                      ("remove_edge", "a batch's edges are left out always")):
        parser.add_argument(f"--{flag}", action="store_true", help=f"of DGL's script; changes nothing: {why}")
    parser.add_argument("--n_classes", type=int, help="of DGL's script; changes nothing: links have no classes")
    parser.add_argument("--reverse_etype", help="the edge type of the reverses, where the graph does not name it")
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
    model = None  # goes before its group: Ranks.close tells why
    ranks.close()


if __name__ == "__main__":
    main()
