"""Names and paths that C would cut at a NUL: every interface refuses them by the argument's name before any effect, and
the object with the cut name is unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import graphwire
import pytest

NUL = "kept\0cut"


@pytest.fixture
def graph(parts, servers):
    with graphwire.open(parts, servers.addresses, job="names") as opened:
        tensor = opened.create_tensor("kept", (4, 1), "float32")
        tensor[:] = 7
        yield opened
        for left in opened.tensors:
            opened.delete_tensor(left["name"], kept=left["kept"])


CALLS = {
    "create_tensor": ("name", lambda graph, text: graph.create_tensor(text, (3, 1))),
    "open_tensor": ("name", lambda graph, text: graph.open_tensor(text)),
    "delete_tensor": ("name", lambda graph, text: graph.delete_tensor(text)),
    "checkpoint": ("folder", lambda graph, text: graph.checkpoint(text)),
    "checkpoint of names": ("names", lambda graph, text: graph.checkpoint("/nowhere", [text])),
    "restore": ("folder", lambda graph, text: graph.restore(text)),
    "restore of names": ("names", lambda graph, text: graph.restore("/nowhere", [text])),
    "ntype": ("ntype", lambda graph, text: graph.num_nodes(text)),
    "etype": ("etype", lambda graph, text: graph.num_edges(text)),
    "etype of three": ("etype", lambda graph, text: graph.num_edges((graph.ntypes[0], text, graph.ntypes[0]))),
    "texts": ("name", lambda graph, text: graph.node_texts([0], None, text)),
    "feature": (None, lambda graph, text: graph.gather(text, [0], graph.ntypes[0])),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_name_with_a_nul_is_refused(graph, call):
    what, call = CALLS[call]
    before = [(some["name"], some["bytes"]) for some in graph.tensors]
    with pytest.raises((ValueError, LookupError), match=f"^{what} has a NUL byte: " if what else "NUL|there is no"):
        call(graph, NUL)
    assert [(some["name"], some["bytes"]) for some in graph.tensors] == before
    assert (graph.open_tensor("kept")[:] == 7).all()


@pytest.mark.parametrize("option", ["part_config", "servers", "key_file", "transport", "neighbours", "job"])
def test_an_option_with_a_nul_is_refused(parts, servers, option):
    right = {"part_config": str(parts), "servers": servers.addresses, "key_file": None, "transport": "tcp",
             "neighbours": "reads", "job": "names"}
    text = f"{right[option] or '/key'}\0x"
    for given in (text, *((Path(text),) if option in ("part_config", "key_file") else ())):
        wrong = [servers.addresses[0], f"{servers.addresses[1]}\0x"] if option == "servers" else given
        with pytest.raises(ValueError, match=re.escape(f"{option} has a NUL byte: ")):
            graphwire.open(**{**right, option: wrong})
    with graphwire.open(str(parts).encode(), servers.addresses) as graph:  # bytes are a valid path
        assert graph.num_parts == len(servers.addresses)
