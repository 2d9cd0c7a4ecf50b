"""GraphSAGE over several types of nodes, with PyTorch Geometric's NeighborLoader or Graphwire's: one import differs.

  python examples/pyg_hetero.py                papers and authors that the script draws
  python examples/pyg_hetero.py --pyg          the same with PyG's own loader
  python examples/pyg_hetero.py --data FILE --target paper

PyG's to_hetero makes the model of a homogeneous one. Only the target type has labels and masks.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pyg_common import loaders, options, papers, parse, read, report
from torch_geometric.nn import GraphSAGE, to_hetero


def rows_of(model, batch, target):
    """The rows of the batch's seeds."""
    return model(batch.x_dict, batch.edge_index_dict)[target][:batch[target].batch_size]


def accuracy(model, loader, target):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for batch in loader:
            labels = batch[target].y[:batch[target].batch_size]
            right += int((rows_of(model, batch, target).argmax(1) == labels).sum())
            total += len(labels)
    return right / total


def main(arguments=None):
    parser = options(__doc__.split("\n")[0], "8,8")
    parser.add_argument("--target", default="paper", help="the node type with labels")
    args = parse(parser, arguments)
    NeighborLoader, _ = loaders(args)
    data, target = read(args, papers), args.target
    counts = {etype: args.fan_out for etype in data.edge_types}
    batches = {"batch_size": args.batch_size, "num_workers": 2 if args.pyg else 0}
    train_loader = NeighborLoader(data, counts, input_nodes=(target, data[target].train_mask), shuffle=True, **batches)
    test_loader = NeighborLoader(data, counts, input_nodes=(target, data[target].test_mask), **batches)

    def train(seed):
        sage = GraphSAGE((-1, -1), args.num_hidden, len(args.fan_out), int(data[target].y.max()) + 1)
        model = to_hetero(sage, data.metadata())
        with torch.no_grad():  # the first batch gives the lazy layers their widths
            rows_of(model, next(iter(test_loader)), target)
        optimizer = torch.optim.Adam(model.parameters(), args.lr)
        for epoch in range(args.num_epochs):
            model.train()
            total = 0.0
            for batch in train_loader:
                labels = batch[target].y[:batch[target].batch_size]
                loss = F.cross_entropy(rows_of(model, batch, target), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"seed {seed}, epoch {epoch}: loss {total / len(train_loader):.4f}", flush=True)
        return accuracy(model, test_loader, target)

    return report(args, "test accuracy", train)


if __name__ == "__main__":
    main()
