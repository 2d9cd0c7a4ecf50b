"""Original ids in are original ids out: texts, sparse integers and UUIDs, in 1, 2 and 8 parts, standalone and over
servers, beside plain Python; every form of array; ids that are missing, repeated or of another kind."""

from __future__ import annotations

import uuid

import graphwire
import numpy as np
import pytest
import torch
from conftest import TOP, Servers, run

PEOPLE = 60
PARTS = (1, 2, 8)


def names_of(kind):
    """The original ids of 60 nodes."""
    random = np.random.default_rng(5)
    if kind == "texts":
        return ["007", "7", "Ann", "ann", "Zoë", "深圳", "a b"] + [f"person-{i}" for i in range(PEOPLE - 7)]
    if kind == "uuids":
        return [str(uuid.UUID(bytes=random.bytes(16))) for _ in range(PEOPLE)]
    return [0, 10**9, 2**40 + 1] + sorted(random.choice(10**12, PEOPLE - 3, replace=False).tolist())


def pairs_of(names):
    random = np.random.default_rng(6)
    ends = [[(i, (i + 1) % PEOPLE) for i in range(PEOPLE)], random.integers(0, PEOPLE, (200, 2)).tolist()]
    return [(names[src], names[dst]) for pairs in ends for src, dst in pairs]


@pytest.fixture(scope="module", params=("texts", "integers", "uuids"))
def kind(request, tmp_path_factory):
    """(the ids, the edges, {parts: the graph's folder})."""
    folder = tmp_path_factory.mktemp(request.param)
    names = names_of(request.param)
    pairs = pairs_of(names)
    (folder / "edges.tsv").write_text("".join(f"{src}\t{dst}\n" for src, dst in pairs))
    words = ("--ids", "text") if request.param != "integers" else ("--ids", "compact")
    run("import", "--edges", f"person:knows:person={folder}/edges.tsv", "--no-header", "--delimiter", "tab", *words,
        "--edge-ids", "--transpose", "--out", folder / "whole", "--quiet")
    for parts in PARTS:
        run("partition", folder / "whole", "--num-parts", parts, "--method", "random", "--out", folder / str(parts))
    return names, pairs, {parts: folder / str(parts) for parts in PARTS}


def check_graph(graph, names, pairs):
    found = graph.ids_of(names)
    assert found.dtype == torch.int64 and sorted(found.tolist()) == list(range(PEOPLE))
    assert list(graph.original_ids(found)) == names
    some = [names[3], names[1], names[3]]
    assert graph.ids_of(some).tolist() == [found[3], found[1], found[3]]

    of = dict(zip(names, found.tolist()))
    backward = graph.neighbours(some, by="orig")
    forward = graph.neighbours(some, by="orig", out_edges=True)
    for i, name in enumerate(some):
        assert sorted(backward.of(i).src.tolist()) == sorted(of[src] for src, dst in pairs if dst == name)
        assert sorted(forward.of(i).dst.tolist()) == sorted(of[dst] for src, dst in pairs if src == name)
    assert graph.in_degrees(names, by="orig").tolist() == [sum(dst == name for _, dst in pairs) for name in names]
    assert graph.out_degrees(names, by="orig").tolist() == [sum(src == name for src, _ in pairs) for name in names]
    src, dst = zip(*pairs[:40])
    assert graph.has_edges(src, dst, by="orig").all()
    assert graph.has_edges(dst, src, by="orig").tolist() == [pair[::-1] in pairs for pair in pairs[:40]]
    edges = graph.edge_ids(src, dst, by="orig")
    assert [len(edges.of(i)) for i in range(40)] == [pairs.count(pair) for pair in pairs[:40]]
    assert set(map(tuple, zip(map(int, edges.src), map(int, edges.dst)))) == {(of[s], of[d]) for s, d in pairs[:40]}


@pytest.mark.parametrize("parts", PARTS)
def test_ids_in_are_ids_out(kind, parts):
    names, pairs, folders = kind
    with graphwire.open(folders[parts]) as graph:
        check_graph(graph, names, pairs)


@pytest.mark.parametrize("transport", ("tcp", "shm"))
def test_servers_say_the_same(kind, tmp_path, transport, monkeypatch):
    names, pairs, folders = kind
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    servers = Servers(folders[2], 2, tmp_path)
    try:
        with graphwire.open(servers=servers.addresses, transport=transport) as graph:
            assert graph.transport(0) == transport
            check_graph(graph, names, pairs)
    finally:
        servers.close()


@pytest.mark.parametrize("parts", PARTS)
def test_edges_by_their_rows(kind, parts):
    _, pairs, folders = kind
    with graphwire.open(folders[parts]) as graph:
        rows = np.random.default_rng(1).permutation(len(pairs))
        edges = graph.ids_of(rows, etype="knows")
        assert graph.original_ids(edges, etype="knows").tolist() == rows.tolist()
        src, dst = graph.find_edges(rows, by="orig")
        found = list(zip(graph.original_ids(src), graph.original_ids(dst)))
        assert found == [pairs[row] for row in rows]
        assert graph.ids_of([3, len(pairs), -1], etype="knows", missing="mark").tolist()[1:] == [-1, -1]
        with pytest.raises(graphwire.NotFoundError, match=f"2 of 3 .* no edge .*knows.*: {len(pairs)}, -1"):
            graph.ids_of([3, len(pairs), -1], etype="knows")
        with pytest.raises(TypeError, match="rows of the input"):
            graph.ids_of(["a"], etype="knows")


def test_what_is_missing_is_named(kind):
    names, _, folders = kind
    text = isinstance(names[0], str)
    with graphwire.open(folders[2]) as graph:
        strange = ["no-one", "08", names[5] + " "] if text else [5, -1, 2**62]
        assert graph.ids_of([names[0], *strange], missing="mark").tolist() == [graph.ids_of([names[0]]), -1, -1, -1]
        with pytest.raises(graphwire.NotFoundError, match=f"3 of 4 .*{strange[0]}.*position 1.*{strange[1]}") as error:
            graph.ids_of([names[0], *strange])
        assert "\n" not in str(error.value)
        with pytest.raises(graphwire.NotFoundError, match=strange[0] if text else "5"):
            graph.neighbours([strange[0]], by="orig")
        with pytest.raises(graphwire.InvalidError, match="are texts, and the call has integers" if text else
                           "are integers, and the call has texts"):
            graph.ids_of([7] if text else ["7"])
        with pytest.raises(graphwire.InvalidError, match="raise or mark"):
            graph.ids_of(names, missing="drop")
        with pytest.raises(graphwire.InvalidError, match="graph or orig"):
            graph.neighbours(names, by="name")


def test_every_form_of_texts():
    names = names_of("texts")
    pairs = pairs_of(names)
    forms = {"list": list, "tuple": tuple, "U": np.array, "object": lambda x: np.array(x, object),
             "bytes": lambda x: [one.encode() for one in x], "S": lambda x: np.array([one.encode() for one in x])}
    try:
        import pyarrow as pa
        forms["arrow"] = pa.array
        forms["large"] = lambda x: pa.array(x, pa.large_string())
        forms["slice"] = lambda x: pa.array(["x", *x, "y"])[1:-1]
        forms["chunked"] = lambda x: pa.chunked_array([x[:3], x[3:]])
        forms["no chunks"] = lambda x: pa.chunked_array([pa.array(x)])
        forms["dictionary"] = lambda x: pa.array(x).dictionary_encode()
    except ImportError:
        pass
    try:
        import pandas as pd
        forms["series"] = pd.Series
        forms["index"] = pd.Index
    except ImportError:
        pass
    try:
        import polars as pl
        forms["polars"] = pl.Series
    except ImportError:
        pass
    from graphwire import ids
    offsets, data = ids.given(names)
    for form, make in forms.items():
        found = ids.given(make(names))
        assert found[0].tolist() == offsets.tolist() and found[1].tobytes() == data.tobytes(), form
    assert len(pairs) and len(ids.given([])) == 0 and len(ids.given(np.array([], "U3"))) == 0


def test_every_form_of_integers(kind):
    names, _, folders = kind
    if isinstance(names[0], str):
        pytest.skip("of integers")
    with graphwire.open(folders[2]) as graph:
        small = [one for one in names if one < 2**31]
        wanted = graph.ids_of(small).tolist()
        for dtype in (np.int32, np.uint32, np.int64, np.uint64, ">i8", ">u4"):
            assert graph.ids_of(np.array(small, dtype)).tolist() == wanted
        assert graph.ids_of(np.repeat(np.array(small), 2)[::2]).tolist() == wanted
        for dtype in (torch.int32, torch.int64):
            assert graph.ids_of(torch.tensor(small, dtype=dtype)).tolist() == wanted
        assert graph.ids_of([np.int64(one) for one in small]).tolist() == wanted
        assert graph.ids_of(np.zeros(2, np.uint8)).tolist() == graph.ids_of(range(1)).tolist() * 2
        assert graph.ids_of(np.array([2**64 - 1], np.uint64), missing="mark").tolist() == [-1]
        assert graph.ids_of([2**63], missing="mark").tolist() == [-1]
        with graphwire.open(folders[2], numpy=True) as plain:
            assert isinstance(plain.ids_of(small), np.ndarray)


@pytest.mark.parametrize("ids, error, words", [
    ("ann", TypeError, r"\['ann'\]"), (5, TypeError, r"\[5\]"), ([1.5], TypeError, "1.5"), ([True], TypeError, "True"),
    (["a", 7], TypeError, "number 1 is 7"), ([7, "a"], TypeError, "number 1 is 'a'"), ([None], TypeError, "None"),
    (np.ones(2), TypeError, "float64"), (np.ones((2, 2), int), ValueError, "one dimension"),
    ([2**64], IndexError, "64 bits"), ([-2**63 - 1], IndexError, "64 bits"), ([-1, 2**63], IndexError, "64 bits"),
    (np.array(["a", None], object), TypeError, "None"), (None, TypeError, "None"),
    (np.array([True]), TypeError, "bool"),
])
def test_what_is_no_id(ids, error, words):
    from graphwire.ids import given
    with pytest.raises(error, match=words):
        given(ids)


def test_ids_that_repeat(tmp_path):
    """A table of names may have one twice: its other ids are found, and it is named."""
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n")
    np.save(tmp_path / "orig_id.npy", np.array([5, 9, 5]))
    run("import", "--edges", f"n:r:n={tmp_path}/edges.csv", "--no-header", "--node-feature",
        f"n:orig_id={tmp_path}/orig_id.npy", "--out", tmp_path / "graph", "--quiet")
    with graphwire.open(tmp_path / "graph") as graph:
        assert graph.ids_of([9]).tolist() == [1]
        with pytest.raises(graphwire.InvalidError, match=r"id 5 .*position 1.* several nodes .*of them 0 is the first"):
            graph.ids_of([9, 5])


def test_a_permuted_node_table(tmp_path):
    """The order of a table of nodes changes no node's features, found by its own id."""
    names, rows = names_of("uuids"), np.arange(PEOPLE * 3, dtype=np.float32).reshape(PEOPLE, 3)
    (tmp_path / "edges.csv").write_text("".join(f"{src},{dst}\n" for src, dst in pairs_of(names)))
    found = []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(PEOPLE)
        (tmp_path / "nodes.txt").write_text("".join(f"{names[i]}\n" for i in order))
        np.save(tmp_path / "feat.npy", rows[order])
        run("import", "--edges", f"n:r:n={tmp_path}/edges.csv", "--no-header", "--nodes", f"n={tmp_path}/nodes.txt",
            "--node-feature", f"n:feat={tmp_path}/feat.npy", "--out", tmp_path / f"whole{seed}", "--quiet")
        run("partition", tmp_path / f"whole{seed}", "--num-parts", 2, "--method", "random", "--out",
            tmp_path / f"parts{seed}")
        with graphwire.open(tmp_path / f"parts{seed}") as graph:
            assert np.array_equal(graph.gather("feat", names, by="orig"), rows)
            found.append([sorted(graph.original_ids(one.src)) for one in map(
                graph.neighbours([*names], by="orig").of, range(PEOPLE))])
    assert found[0] == found[1]


def test_a_graph_without_index():
    """Graphs of version 0.1 open, and say what to do."""
    with graphwire.open(TOP / "test/formats/0.1/two") as graph:
        with pytest.raises(graphwire.GraphwireError, match=r"no index of original ids.*older version") as error:
            graph.ids_of([1])
    assert error.value.status == "GW_UNSUPPORTED"
