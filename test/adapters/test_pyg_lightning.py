"""PyTorch Lightning over graphwire.pyg's neighbour loaders: a Trainer over the loaders, and PyG's LightningNodeData and
LightningLinkData with a sampler of ours. Skipped where lightning is not installed."""

from __future__ import annotations

import warnings

import pytest
import torch
from graphwire.pyg import LinkNeighborLoader, NeighborLoader, NeighborSampler, from_pyg
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
lightning = pytest.importorskip("lightning.pytorch", exc_type=ImportError)
NODES = 200


def some_data():
    torch.manual_seed(3)
    y, part = torch.randint(3, (NODES,)), torch.rand(NODES)
    return Data(edge_index=torch.randint(0, NODES, (2, 1600)), x=torch.eye(3)[y] + torch.randn(NODES, 3) / 2, y=y,
                train_mask=part < 0.6, val_mask=(part >= 0.6) & (part < 0.8), test_mask=part >= 0.8)


DATA = some_data()


class Model(lightning.LightningModule):
    """Also counts the batches of each stage, and compares their rows with those of the data."""

    def __init__(self, links=False):
        super().__init__()
        self.layers, self.links, self.seen = GraphSAGE(3, 16, 2, 3), links, {"fit": 0, "validate": 0, "test": 0}

    def loss_of(self, batch, stage):
        self.seen[stage] += 1
        assert torch.equal(batch.x, DATA.x[batch.n_id])
        rows = self.layers(batch.x, batch.edge_index)
        if self.links:
            found = (rows[batch.edge_label_index[0]] * rows[batch.edge_label_index[1]]).sum(1)
            return torch.nn.functional.binary_cross_entropy_with_logits(found, batch.edge_label.float())
        return torch.nn.functional.cross_entropy(rows[:batch.batch_size], batch.y[:batch.batch_size])

    def training_step(self, batch, number):
        return self.loss_of(batch, "fit")

    def validation_step(self, batch, number):
        self.loss_of(batch, "validate")

    def test_step(self, batch, number):
        self.log("loss", self.loss_of(batch, "test"), batch_size=1)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.02)


def trainer(folder):
    return lightning.Trainer(max_epochs=3, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
                             enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                             default_root_dir=folder)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not have many workers.*|.*log_every_n_steps.*")
        yield


def test_a_trainer(source, tmp_path):
    torch.manual_seed(1)
    loaders = [NeighborLoader(source, [4, 3], getattr(DATA, mask), batch_size=20, shuffle=mask == "train_mask")
               for mask in ("train_mask", "val_mask", "test_mask")]
    model, one = Model(), trainer(tmp_path)
    one.fit(model, loaders[0], loaders[1])
    (found,) = one.test(model, loaders[2], verbose=False)
    assert model.seen == {"fit": 3 * len(loaders[0]), "validate": 3 * len(loaders[1]), "test": len(loaders[2])}
    assert found["loss"] < 1.0  # 1.1 is what chance gives


def test_links(source, tmp_path):
    torch.manual_seed(1)
    loader = LinkNeighborLoader(source, [4, 3], DATA.edge_index[:, :300], neg_sampling="binary", batch_size=50)
    model = Model(links=True)
    trainer(tmp_path).fit(model, loader)
    assert model.seen["fit"] == 18


def test_data_modules(source, tmp_path):
    """PyG's data modules take our sampler. Their loaders are PyG's own, over the data in memory."""
    from torch_geometric.data.lightning import LightningLinkData, LightningNodeData

    with from_pyg(DATA) as graph:
        sampler = NeighborSampler(graph, [4, 3])
        module = LightningNodeData(DATA, node_sampler=sampler, batch_size=20)
        model = Model()
        one = trainer(tmp_path)
        one.fit(model, datamodule=module)
        one.test(model, datamodule=module, verbose=False)
        assert model.seen["fit"] == 3 * -(-int(DATA.train_mask.sum()) // 20) and model.seen["test"]
        module = LightningLinkData(DATA, DATA.edge_index[:, :300], link_sampler=sampler, neg_sampling="binary",
                                   batch_size=50)
        model = Model(links=True)
        trainer(tmp_path).fit(model, datamodule=module)
        assert model.seen["fit"] == 18
