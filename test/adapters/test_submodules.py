"""Names of dgl and its submodules after the installation: none is the original's, and missing ones are errors."""

from __future__ import annotations

import pytest
from graphwire.dgl.install import install, left_over

dgl = install()


def test_no_other_module_holds_an_original():
    """Originals that remain in modules of an installed dgl, by name; the subset has none."""
    if getattr(dgl, "is_graphwire_subset", False):
        assert left_over() == []
        return
    collators = ("Collator", "EdgeCollator", "NodeCollator")  # they work with any graph, also Graphwire's
    helpers = ("_find_exclude_eids_with_reverse_id", "_find_exclude_eids_with_reverse_types", "_remove_kwargs_dist")
    assert left_over() == sorted([*[f"dgl.dataloading.{name}" for name in collators],
                                  *[f"dgl.dataloading.dist_dataloader.{name}" for name in collators + helpers]])
    import dgl.dataloading.dataloader as dataloader

    assert dataloader.DistGraph is dgl.distributed.DistGraph
    for name in ("DistNodeDataLoader", "DistEdgeDataLoader"):
        assert getattr(dgl.dataloading, name) is getattr(dgl.distributed, name)
    assert dgl.dataloading.dist_dataloader.DistDataLoader is dgl.distributed.DistDataLoader


def test_submodules_are_ours():
    from dgl.distributed.dist_graph import DistGraph
    from dgl.distributed.optim import SparseAdam
    from dgl.distributed.optim.pytorch import SparseAdagrad

    assert DistGraph is dgl.distributed.DistGraph and SparseAdam is dgl.distributed.optim.SparseAdam
    assert SparseAdagrad is dgl.distributed.optim.SparseAdagrad
    for line, name in (("from dgl.distributed.kvstore import KVStore", "dgl.distributed.kvstore.KVStore"),
                       ("from dgl.distributed import KVStore", "dgl.distributed.KVStore"),
                       ("import dgl.distributed.context", "dgl.distributed.context"),
                       ("from dgl.distributed.optim.pytorch import Sgd", "dgl.distributed.optim.pytorch.Sgd")):
        with pytest.raises(ImportError, match=f"^{name} is not in Graphwire's dgl.distributed"):
            exec(line)
    with pytest.raises(AttributeError, match=r"dgl\.distributed\.rpc_server\.wait is not in"):
        getattr(dgl.distributed.rpc_server, "wait")  # noqa: B009


@pytest.mark.parametrize("name", ["DistGraphServer", "KVServer", "KVClient", "ServerState", "start_server",
                                  "connect_to_server", "shutdown_servers"])
def test_names_of_servers_can_be_imported(name):
    """Using them is an error that names what to do."""
    made = getattr(dgl.distributed, name)
    with pytest.raises(NotImplementedError, match=f"dgl.distributed.{name}: .*launch.py.*graphwire serve"):
        made("part", 0)
