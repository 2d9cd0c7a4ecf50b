"""GraphSAGE that predicts links, with PyTorch Geometric's LinkNeighborLoader or Graphwire's: one import differs.

  python examples/pyg_link.py                  communities that the script draws
  python examples/pyg_link.py --pyg            the same with PyG's own loader

RandomLinkSplit keeps some links for the test. They are not in the graph that is sampled; the loader takes them by their
ends. A link's score is the dot product of the rows of its ends. The figure is the area under the ROC curve.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pyg_common import communities, loaders, options, parse, read, report
from torch_geometric.nn import GraphSAGE
from torch_geometric.transforms import RandomLinkSplit


def scores(model, batch):
    rows = model(batch.x, batch.edge_index)
    return (rows[batch.edge_label_index[0]] * rows[batch.edge_label_index[1]]).sum(1)


def area(found, labels):
    """The area under the ROC curve: the probability that a link has a higher score than another pair."""
    order = torch.argsort(found)
    ranks = torch.empty(len(found), dtype=torch.float64)
    ranks[order] = torch.arange(1, len(found) + 1, dtype=torch.float64)
    links = labels > 0
    count = int(links.sum())
    return float((ranks[links].sum() - count * (count + 1) / 2) / (count * (len(found) - count)))


def main(arguments=None):
    args = parse(options(__doc__.split("\n")[0], "10,5"), arguments)
    _, LinkNeighborLoader = loaders(args)
    torch.manual_seed(0)
    data = read(args, communities)
    split = RandomLinkSplit(num_val=0.05, num_test=0.1, is_undirected=True, add_negative_train_samples=False)
    train_data, _, test_data = split(data)
    batches = {"batch_size": args.batch_size, "num_workers": 2 if args.pyg else 0}
    train_loader = LinkNeighborLoader(train_data, args.fan_out, edge_label_index=train_data.edge_label_index,
                                      neg_sampling="binary", shuffle=True, **batches)
    test_loader = LinkNeighborLoader(test_data, args.fan_out, edge_label_index=test_data.edge_label_index,
                                     edge_label=test_data.edge_label, **batches)

    def train(seed):
        model = GraphSAGE(data.num_features, args.num_hidden, len(args.fan_out), 16)
        optimizer = torch.optim.Adam(model.parameters(), args.lr)
        for epoch in range(args.num_epochs):
            model.train()
            total = 0.0
            for batch in train_loader:
                loss = F.binary_cross_entropy_with_logits(scores(model, batch), batch.edge_label.float())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"seed {seed}, epoch {epoch}: loss {total / len(train_loader):.4f}", flush=True)
        model.eval()
        with torch.no_grad():
            found = [(scores(model, batch), batch.edge_label) for batch in test_loader]
        return area(*(torch.cat(some) for some in zip(*found)))

    return report(args, "test AUC", train)


if __name__ == "__main__":
    main()
