"""RelBench's scripts and the data of graphs for the tests over them; fixtures of the package come from test/python."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path

import graphwire
import pytest
import torch

TOP = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("graphs", TOP / "test/python/conftest.py")
graphs = importlib.util.module_from_spec(_spec)
sys.modules["graphs"] = graphs
_spec.loader.exec_module(graphs)

from shared import given, imported  # noqa: E402

pytest_runtest_logreport, runtime_folder = graphs.pytest_runtest_logreport, graphs.runtime_folder
NONE = torch.empty(0, dtype=torch.int64)


@pytest.fixture(scope="session")
def scripts():
    """RelBench's scripts, unmodified."""
    imported("bed")
    return given("relbench-scripts")


@contextlib.contextmanager
def in_two_parts(data, folder, time=()):
    """HeteroData in two parts: {"one host": the data of its graph, opened by this process, "two hosts": the same over
    two servers, by TCP alone}."""
    graphwire.partition_graph(data, "g", 2, folder / "parts", method="random", time=time)
    servers = graphs.Servers(folder / "parts", 2, folder)
    with contextlib.closing(servers), graphwire.open(folder / "parts") as one, graphwire.open(
            servers=servers.addresses, transport="tcp") as two:
        yield {"one host": served(one, data), "two hosts": served(two, data)}


def served(graph, data):
    """A graph's data, with the frames of the types that have one; their rows are left out."""
    return graphwire.pyg.served(graph, {ntype: data[ntype].tf[NONE] for ntype in data.node_types
                                        if "tf" in data[ntype]})
