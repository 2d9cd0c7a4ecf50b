"""Supervised GraphSAGE: learns the classes of nodes from sampled neighbourhoods.

  python examples/graphsage.py --part_config parts/                              one process, without servers
  torchrun --nproc_per_node 2 examples/graphsage.py --ip_config ip_config.txt    two, over servers

The ranks share each epoch, and average their gradients (DDP). Evaluation computes all nodes layer by layer, with all
neighbours; each rank computes a share of the nodes. In a heterogeneous graph each edge type has its own weights, and
node types without the feature start from a learned vector.
"""

from __future__ import annotations

import time

import graphwire
import torch
import torch.nn.functional as F
from common import (
    Checkpoint,
    Log,
    begin,
    columns,
    epoch_of,
    fitted,
    forget,
    inference,
    labelled,
    options,
    progress,
)
from graphwire.nn import HeteroConv, SAGEConv
from torch import nn


class SAGE(nn.Module):
    """GraphSAGE over all edge types. widths: {node type: columns of the feature}. target: the node type whose classes
    the model predicts."""

    def __init__(self, graph, widths, target, hidden, classes, layers, dropout, input_dropout=0.0):
        super().__init__()
        self.target, self.dropout, self.input_dropout = target, nn.Dropout(dropout), nn.Dropout(input_dropout)
        self.inputs, self.starts = nn.ModuleDict(), nn.ParameterDict()
        if len(graph.ntypes) > 1:  # brings the rows of all types to the width `hidden`
            self.inputs.update({ntype: nn.Linear(width, hidden) for ntype, width in widths.items()})
            self.starts.update({ntype: nn.Parameter(torch.randn(hidden) / hidden**0.5)
                                for ntype in graph.ntypes if ntype not in widths})
            widths = {ntype: hidden for ntype in graph.ntypes}
        self.layers = nn.ModuleList()
        for layer in range(layers):
            last = layer == layers - 1
            self.layers.append(HeteroConv({
                etype: SAGEConv(tuple(widths[end] for end in graph.ends(etype)), classes if last else hidden)
                for etype in graph.etypes if not last or graph.ends(etype)[1] == target}, "mean"))
            widths = {ntype: hidden for ntype in graph.ntypes}

    def first(self, x, counts):
        """The input rows of the first layer. x: {node type: rows of the feature}; counts: {node type: nodes}."""
        x = {ntype: self.input_dropout(some) for ntype, some in x.items()}
        rows = {ntype: self.inputs[ntype](some) if ntype in self.inputs else some for ntype, some in x.items()}
        return {**rows, **{ntype: start.expand(counts[ntype], -1) for ntype, start in self.starts.items()}}

    def layer(self, number, block, rows):
        rows = self.layers[number](block, rows)
        if number == len(self.layers) - 1:
            return rows
        return {ntype: self.dropout(F.relu(some)) for ntype, some in rows.items()}

    def forward(self, blocks, x):
        rows = self.first(x, blocks[0].num_src)
        for number, block in enumerate(blocks):
            rows = self.layer(number, block, rows)
        return rows[self.target]


def features_of(batch, args):
    """{node type: rows of the feature}, float32; --normalize divides each row by its sum."""
    found = {ntype: rows[args.feature].float() for ntype, rows in batch.features.items() if args.feature in rows}
    if args.normalize:
        found = {ntype: rows / rows.sum(1, keepdim=True).clamp(min=1e-12) for ntype, rows in found.items()}
    return found


def evaluate(model, graph, ranks, args, features, labels, parts):
    """The accuracy on the val nodes, and on the test nodes."""
    scores = inference(model, graph, ranks, args, features, [model.target], lambda batch: model.first(
        features_of(batch, args), batch.blocks[0].num_src))[model.target]
    right = torch.zeros(2)
    for i, name in enumerate(("val", "test")):
        ids = parts[name][ranks.share(len(parts[name]))]
        right[i] = (scores[ids].argmax(1) == labels[ids]).sum()
    right = ranks.sum(right)
    forget(graph, ranks, {model.target: scores})
    return float(right[0]) / max(len(parts["val"]), 1), float(right[1]) / max(len(parts["test"]), 1)


def baselines(graph, args, target, labels, parts, classes):
    """The test accuracy of the most frequent class, and of a perceptron that sees only a node's own feature."""
    torch.manual_seed(args.seed)
    train, test = (parts[name][:100000] for name in ("train", "test"))
    frequent = torch.bincount(labels[train], minlength=classes).argmax()
    x, y = graph.gather(args.feature, train, target).float(), labels[train]
    model = nn.Sequential(nn.Linear(x.shape[1], args.num_hidden), nn.ReLU(), nn.Dropout(args.dropout),
                          nn.Linear(args.num_hidden, classes))
    own = fitted(model, x, y, args.baseline_steps, graph.gather(args.feature, test, target).float()).argmax(1)
    return (labels[test] == frequent).float().mean().item(), (own == labels[test]).float().mean().item()


def train_epoch(loader, model, ranks, args, optimizer, checkpoint):
    """Trains one epoch, or the rest of one. Returns the mean loss and the accuracy over all ranks, and the share of the
    time that this rank waited for data."""
    total, steps = torch.zeros(3), 0  # loss, right, seeds
    waited, begun = 0.0, time.time()
    with ranks.joined(model):
        before = time.time()
        for batch in progress(loader):
            waited += time.time() - before
            ranks.random(batch.epoch, batch.step)
            rows = model(batch.blocks, features_of(batch, args))[batch.seed_rows]
            loss = F.cross_entropy(rows, batch.y.long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            right = int((rows.argmax(1) == batch.y).sum())
            total += torch.tensor([loss.item() * len(rows), right, len(rows)])
            if args.log_every and (batch.step + 1) % args.log_every == 0:
                ranks.say(f"epoch {batch.epoch} step {batch.step}: loss {loss.item():.4f}, "
                          f"accuracy {right / len(rows):.4f}")
            checkpoint.step(batch)
            before = time.time()
    ranks.together(optimizer, steps)
    total = ranks.sum(total)
    spent = max(time.time() - begun, 1e-9)
    return float(total[0] / total[2]), float(total[1] / total[2]), waited / spent


def main(arguments=None):
    parser = options(__doc__.split("\n")[0])
    parser.add_argument("--n_classes", type=int, help="the number of classes; default: the greatest label plus 1")
    parser.add_argument("--close_profiler", action="store_true", help="ignored; for the options of DGL's script")
    parser.add_argument("--batch_size_eval", type=int, default=10000)
    parser.add_argument("--ntype", help="the node type with labels; default: the first one")
    parser.add_argument("--feature", default="feat")
    parser.add_argument("--label", default="label")
    parser.add_argument("--weight_decay", type=float, default=0.0)
    parser.add_argument("--input_dropout", type=float, default=0.0)
    parser.add_argument("--normalize", action="store_true", help="divide each row of the feature by its sum")
    parser.add_argument("--baselines", action="store_true",
                        help="also report the accuracy of the most frequent class, and of a node's own features")
    parser.add_argument("--baseline_steps", type=int, default=300)
    args, ranks, graph = begin(parser, arguments)
    target, widths, fanouts = labelled(graph, args), columns(graph, args.feature), args.fan_out
    features = {ntype: args.feature for ntype in widths}
    labels = graph.feature(args.label, target)[:].long()
    parts = {name: torch.nonzero(graph.feature(f"{name}_mask", target)[:]).flatten()
             for name in ("train", "val", "test")}
    classes = args.n_classes or int(labels.max()) + 1
    if classes <= int(labels.max()):
        raise SystemExit(f"--n_classes {classes}: the labels go up to {int(labels.max())}")
    ranks.say(f"{graph}: {len(parts['train'])} nodes of {target} to learn from, {classes} classes")

    torch.manual_seed(args.seed)  # every rank starts from the same weights
    plain = SAGE(graph, widths, target, args.num_hidden, classes, len(fanouts), args.dropout,
                 args.input_dropout)
    model = ranks.parallel(plain, some_unused=len(graph.etypes) > 1)
    optimizer = torch.optim.Adam(model.parameters(), args.lr, weight_decay=args.weight_decay)
    loader = graphwire.NodeLoader(graph, parts["train"], fanouts, ntype=target, features=features, labels=args.label,
                                  batch_size=args.batch_size, shuffle=True, seed=args.seed, last="short",
                                  device=ranks.device)
    log = Log(args, ranks, f"GraphSAGE on {graph.name}")
    checkpoint = Checkpoint(args, ranks, plain, optimizer, loader, log)
    if checkpoint.load():
        ranks.say(f"going on from {args.checkpoint}: {loader.state_dict()}")

    while (epoch := (state := loader.state_dict())["epoch"]) < args.num_epochs:
        begun = time.time()
        loss, accuracy, waited = train_epoch(loader, model, ranks, args, optimizer, checkpoint)
        figures = {"loss": loss, "train": accuracy}
        text = (f"{epoch_of(state)}: loss {loss:.4f}, accuracy {accuracy:.4f}, {time.time() - begun:.2f} s, "
                f"{waited:.0%} of it waiting for data")
        if (epoch + 1) % args.eval_every == 0 or epoch + 1 == args.num_epochs:
            figures["val"], figures["test"] = evaluate(plain, graph, ranks, args, features, labels, parts)
            if figures["val"] > checkpoint.found.get("val", -1):
                checkpoint.found = {name: figures[name] for name in ("val", "test")}
            text += f"; val {figures['val']:.4f}, test {figures['test']:.4f}"
        ranks.say(text)
        log.add(epoch=epoch, **figures)
        checkpoint.save()
    tested = checkpoint.found.get("test", 0.0)
    ranks.say(f"test accuracy {tested:.4f} where val was best")
    if args.baselines and ranks.rank == 0:
        frequent, own = baselines(graph, args, target, labels, parts, classes)
        ranks.say(f"a node's own features alone: {own:.4f}; the most frequent class: {frequent:.4f}")
        log.add(frequent=frequent, own=own)
    log.plot()
    model = None  # must be freed before the group: see Ranks.close
    ranks.close()
    return tested


if __name__ == "__main__":
    main()
