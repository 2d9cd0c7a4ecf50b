"""dgl.distributed.constants: the names of the types of a homogeneous graph."""

from __future__ import annotations

DEFAULT_NTYPE = "_N"
DEFAULT_ETYPE = (DEFAULT_NTYPE, "_E", DEFAULT_NTYPE)
