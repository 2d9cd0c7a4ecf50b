"""Names and paths that C would cut at a NUL: every interface refuses them by the argument's name before any effect, and
the object with the cut name is unchanged."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM

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


MAKING = ("create_tensor", "checkpoint")  # names may have control characters
REFUSING = {
    **{name: call for name, (_, call) in CALLS.items() if name not in MAKING},
    "on_disk": lambda _, text, parts: graphwire.open(parts, on_disk=text),
    "transport": lambda _, text: graphwire.open(servers=["127.0.0.1:1"], transport=text),
    "seeds": lambda graph, text: graphwire.sample(graph, {text: [0]}, [2]),
    "fanouts": lambda graph, text: graphwire.sample(graph, [0], {text: [2]}),
    "features": lambda graph, text: graphwire.NodeLoader(graph, None, [2], features=text),
    "weight": lambda graph, text: graphwire.NodeLoader(graph, None, [2], weight=text),
    "exclude": lambda graph, text: graphwire.EdgeLoader(graph, None, [2], exclude=text),
    "negative_end": lambda graph, text: graphwire.EdgeLoader(graph, None, [2], negatives=1, negative_end=text),
}


@pytest.mark.parametrize("call", REFUSING)
def test_errors_are_one_plain_line(graph, parts, call):
    for text in ("fe\nat", "\x1b[2J", "a\x7f\x9bb"):
        with pytest.raises((ValueError, LookupError, graphwire.GraphwireError)) as caught:
            REFUSING[call](graph, text, *([parts] if call == "on_disk" else []))
        assert re.fullmatch("[^\0-\x1f\x7f-\x9f]+", str(caught.value))


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


@pytest.mark.parametrize("name", ["New\u00a0York", "\u65e5\u672c\u3000\u8a9e", "\u0645\u06cc\u200c\u062e", "a\tb",
                                  "a\nb", "\x7f", "\u200b"])
def test_names_of_characters_that_are_not_printed(tmp_path, name):
    """What partition_graph stores under a name is found under the name: types, features and edge types."""
    edges = {(name, name, "b"): (np.arange(5), np.arange(5))}
    folder = graphwire.partition_graph(edges, "g", 2, tmp_path / "g", method="random",
                                       node_features={name: {name: np.arange(5)}})
    with graphwire.open(folder, numpy=True) as graph:
        assert name in graph.ntypes and graph.num_nodes(name) == 5 and graph.num_edges((name, name, "b")) == 5
        assert sorted(graph.feature(name, name)[:].tolist()) == [0, 1, 2, 3, 4]
        assert sorted(graph.gather(name, range(5), name).tolist()) == [0, 1, 2, 3, 4]
        (batch,) = graphwire.NodeLoader(graph, {"b": None}, {(name, name, "b"): [1]}, features={name: [name]},
                                        batch_size=5)
        assert batch.num_edges == 5


WRONG = [3, 2.5, None, b"a", "half \ud800", "\udfff"]
EDGES = ([0, 1], [1, 0])
WRITTEN = [
    *(("name", {"node_features": {given: [1, 2]}}) for given in WRONG),
    *(("name", {"edge_features": {given: [1, 2]}}) for given in WRONG),
    *(("edge type|name", {"graph": {("u", given, "u"): EDGES}}) for given in WRONG),
    *(("edge type|name", {"graph": {(given, "r", given): EDGES}}) for given in WRONG),
    *(("name", {"name": given}) for given in (*WRONG, ["a"], "a\0b")),
    *(("out", {"out": given}) for given in (3, 2.5, None, ["a"], "", b"", "a\0b", "half \ud800")),
    *(("dictionary", {"graph": {}}), ("edge type is", {"graph": {("a", "b"): EDGES}}),
      ("edge type is", {"graph": {("a", "b", "c", "d"): EDGES}}), ("edge type is", {"graph": {0: EDGES}})),
]


@pytest.mark.parametrize(("said", "given"), WRITTEN, ids=lambda one: repr(one)[:40])
def test_what_is_no_name_is_refused_in_one_line(said, given, tmp_path, monkeypatch):
    """Before anything is written."""
    monkeypatch.chdir(tmp_path)
    words = {"graph": EDGES, "name": "g", "num_parts": 1, "out": tmp_path / "out", **given}
    with pytest.raises((TypeError, ValueError), match=rf"^[^\n]*({said})[^\n]*$") as error:
        graphwire.partition_graph(**words)
    assert not isinstance(error.value, UnicodeError) and list(tmp_path.iterdir()) == []


def test_lists_are_no_types(parts):
    with graphwire.open(parts) as graph:
        with pytest.raises(TypeError, match="ntype is a str, not list"):
            graphwire.NodeLoader(graph, None, [2], ntype=["_N"])
        three = graph.etypes[0].split(":")
        assert len(graphwire.EdgeLoader(graph, None, [2], etype=three)) == len(graphwire.EdgeLoader(graph, None, [2]))
        with pytest.raises(TypeError, match='etype is "relation"'):
            graphwire.EdgeLoader(graph, None, [2], etype=[3])
    for servers in ([None], [3], ["127.0.0.1:1", b"x"]):
        with pytest.raises(TypeError, match="servers is a list of"):
            graphwire.open(servers=servers)


def test_features_by_type_are_names(parts):
    with graphwire.open(parts) as graph:
        for given in ({"_N": None}, {"_N": 3}, {"_N": {"feat"}}, 3, {"feat"}):
            with pytest.raises(TypeError, match="features are names"):
                graphwire.NodeLoader(graph, None, [2], features=given)


def test_lines_of_programs_are_plain(tmp_path):
    """Names that files and command lines bring, in lines about what was read and in errors."""
    control, file = "fe\x1b[2J", tmp_path / "edges.tsv"
    file.write_text(f"{control}\tdst\n1\t2\n")
    for words in (["import", "--from", file, "--header", "--ids", "dense", "--out", tmp_path / "g"],
                  ["import", "--from", file, "--header", "--src", "s\nx", "--dst", "dst", "--out", tmp_path / "h"],
                  [control], ["stat", "--servers", control]):
        said = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        assert said.stderr and not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f]", said.stderr), said.stderr
    with pytest.raises(RuntimeError) as caught:
        graphwire.partition_graph({("u", control, "u"): ([0, 9], [0, 1])}, "g", 1, tmp_path / "p", num_nodes={"u": 2})
    assert "u:fe?[2J:u" in str(caught.value)


@pytest.mark.parametrize("given", [{"node_features": {"zz": {"x": [1, 2]}}}, {"edge_features": {"zz": {"x": [1, 2]}}},
                                   {"edge_features": {("u", "zz", "u"): {"x": [1, 2]}}},
                                   {"edge_features": {"u:zz:u": {"x": [1, 2]}}}, {"balance_nodes": {"zz": [1, 2]}}])
def test_types_that_the_graph_lacks(given, tmp_path):
    (what,) = given
    with pytest.raises(ValueError, match=f"^{what}: the graph has no (node|edge) type (u:)?zz(:u)?; it has u(:r:u)?$"):
        graphwire.partition_graph({("u", "r", "u"): EDGES}, "g", 1, tmp_path / "g", **given)
    for etype in (("u", "r", "u"), "u:r:u"):
        graphwire.partition_graph({("u", "r", "u"): EDGES}, "g", 1, tmp_path / "g",
                                  edge_features={etype: {"x": [1, 2]}})
