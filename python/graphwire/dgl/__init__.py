"""DGL's distributed API over Graphwire.

    python -m graphwire.dgl SCRIPT …        runs a DGL script as it is
    import graphwire.dgl as dgl             or by name: dgl.distributed, dgl.dataloading, dgl.NID, dgl.EID

docs/DGL.md has a table of every name.
"""

from __future__ import annotations

import importlib

from graphwire.dgl import dataloading, distributed, host
from graphwire.dgl.host import EID, ETYPE, NID, NTYPE
from graphwire.dgl.install import install
from graphwire.dgl.parts import convert_parts

__all__ = ["EID", "ETYPE", "NID", "NTYPE", "convert_parts", "dataloading", "distributed", "install"]

# What modules below take from modules above.
host.subset = lambda: importlib.import_module("graphwire.dgl.subset")
distributed.DistNodeDataLoader = dataloading.DistNodeDataLoader  # as in DGL 2
distributed.DistEdgeDataLoader = dataloading.DistEdgeDataLoader
