"""DGL's distributed API over Graphwire.

    python -m graphwire.dgl SCRIPT …        runs an unchanged DGL script
    import graphwire.dgl as dgl             gives dgl.distributed, dgl.dataloading, dgl.NID and dgl.EID

docs/DGL.md has a table of all names.
"""

from __future__ import annotations

import importlib

from graphwire._base.requirements import need

need("graphwire.dgl", "torch")

from graphwire.dgl import dataloading, distributed, host
from graphwire.dgl.host import EID, ETYPE, NID, NTYPE, MissingError
from graphwire.dgl.install import install
from graphwire.dgl.parts import PartsError, convert_parts
from graphwire.dgl.tensor_files import RowsError

__all__ = ["EID", "ETYPE", "NID", "NTYPE", "MissingError", "PartsError", "RowsError", "convert_parts", "dataloading",
           "distributed", "install"]

# Names that lower modules need from higher ones, which they cannot import.
host.subset = lambda: importlib.import_module("graphwire.dgl.subset")
distributed.DistNodeDataLoader = dataloading.DistNodeDataLoader  # as in DGL 2
distributed.DistEdgeDataLoader = dataloading.DistEdgeDataLoader
distributed.NodeCollator, distributed.EdgeCollator = dataloading.NodeCollator, dataloading.EdgeCollator
