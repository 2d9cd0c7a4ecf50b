"""graphwire.nn and the sparse optimizers beside DGL's own, with the same weights: bench/peers/dgl_layers.py."""

from __future__ import annotations

import sys

import pytest
from conftest import TOP
from graphwire.dgl import host

sys.path.insert(0, str(TOP / "bench/peers"))


@pytest.mark.skipif(getattr(host.dgl(), "is_graphwire_subset", False), reason="beside DGL's own layers")
def test_layers_are_dgls(communities):
    from dgl_layers import compare

    assert compare(communities) == []
