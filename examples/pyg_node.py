"""GraphSAGE that classifies nodes, with PyTorch Geometric's NeighborLoader or Graphwire's: one import differs.

  python examples/pyg_node.py                                      communities that the script draws
  python examples/pyg_node.py --pyg                                the same with PyG's own loader
  python examples/pyg_node.py --reddit data/                       Reddit, which PyG downloads
  python examples/pyg_node.py --part_config parts/ --servers a:30050,b:30050      a graph on servers

Training and evaluation sample the neighbours; the evaluation takes more of them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pyg_common import communities, loaders, options, parse, read, report
from torch_geometric.nn import SAGEConv


class SAGE(torch.nn.Module):
    def __init__(self, widths, dropout):
        super().__init__()
        self.layers = torch.nn.ModuleList(SAGEConv(*pair) for pair in zip(widths, widths[1:]))
        self.dropout = dropout

    def forward(self, x, edge_index):
        for layer in self.layers[:-1]:
            x = F.dropout(F.relu(layer(x, edge_index)), self.dropout, self.training)
        return self.layers[-1](x, edge_index)


def data_of(args):
    """(the loader's data, {split: its nodes}, number of features, number of classes)"""
    if args.part_config or args.servers:
        import graphwire

        graph = graphwire.open(args.part_config, args.servers)
        masks = {name: graph.feature(f"{name}_mask") for name in ("train", "test")}
        stores = graphwire.pyg.stores(graph, {"x": args.feature, "y": args.label})
        return stores, masks, graph.feature(args.feature).shape[1], int(graph.feature(args.label)[:].max()) + 1
    if args.reddit:
        from torch_geometric.datasets import Reddit

        data = Reddit(args.reddit)[0]
    else:
        data = read(args, communities)
    return data, {"train": data.train_mask, "test": data.test_mask}, data.num_features, int(data.y.max()) + 1


def accuracy(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for batch in loader:
            found = model(batch.x, batch.edge_index)[:batch.batch_size].argmax(1)
            right += int((found == batch.y[:batch.batch_size]).sum())
            total += batch.batch_size
    return right / total


def main(arguments=None):
    parser = options(__doc__.split("\n")[0], "10,10")
    parser.add_argument("--reddit", help="the folder of PyG's Reddit")
    parser.add_argument("--part_config", help="a graph's JSON or its folder")
    parser.add_argument("--servers", help="the servers' addresses: host:port,host:port")
    parser.add_argument("--feature", default="x", help="the feature of the graph of --part_config")
    parser.add_argument("--label", default="y")
    args = parse(parser, arguments)
    NeighborLoader, _ = loaders(args)
    data, masks, width, classes = data_of(args)
    batches = {"batch_size": args.batch_size, "num_workers": 2 if args.pyg else 0}
    train_loader = NeighborLoader(data, args.fan_out, input_nodes=masks["train"], shuffle=True, **batches)
    test_loader = NeighborLoader(data, [2 * count for count in args.fan_out], input_nodes=masks["test"], **batches)

    def train(seed):
        model = SAGE([width, *[args.num_hidden] * (len(args.fan_out) - 1), classes], 0.5)
        optimizer = torch.optim.Adam(model.parameters(), args.lr)
        for epoch in range(args.num_epochs):
            model.train()
            total = 0.0
            for batch in train_loader:
                rows = model(batch.x, batch.edge_index)[:batch.batch_size]
                loss = F.cross_entropy(rows, batch.y[:batch.batch_size])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"seed {seed}, epoch {epoch}: loss {total / len(train_loader):.4f}", flush=True)
        return accuracy(model, test_loader)

    return report(args, "test accuracy", train)


if __name__ == "__main__":
    main()
