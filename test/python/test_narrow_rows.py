"""Rows that are stored narrow and come wide: the bits beside NumPy's and torch's conversions, the same over standalone
graphs and servers, in one part and in three; and what is refused, by name."""

import json

import graphwire
import numpy as np
import pytest
import torch
from conftest import Servers, run
from graphwire import optim

NODES, EDGES, COLUMNS = 3000, 9000, 13
ENDS = np.random.default_rng(1).integers(0, NODES, (2, EDGES))
LOADER = {"fanouts": [4, 3], "batch_size": 600, "shuffle": True, "seed": 5}


def floats(rows, columns, seed):
    """Numbers of all sizes: normal rows, random bits of float32 (NaN, infinities, denormal numbers), large ones."""
    rng = np.random.default_rng(seed)
    out = rng.normal(size=(rows, columns)).astype(np.float32)
    out[::3] = rng.integers(0, 2**32, (len(out[::3]), columns), dtype=np.uint32).view(np.float32)
    out[1::3] *= np.float32(2) ** rng.integers(-30, 30, (len(out[1::3]), 1)).astype(np.float32)
    return out


FEAT = floats(NODES, COLUMNS, 2)
with np.errstate(invalid="ignore"):
    WEIGHTS = floats(EDGES, 4, 3).astype(np.float64)
FINITE = np.where(np.abs(FEAT) < 1e38, FEAT, np.float32(7)).astype(np.float32)


def as_narrow(rows, dtype):
    """Rows that were stored as float16 or bfloat16, by NumPy and torch."""
    with np.errstate(over="ignore"):
        if dtype == "float16":
            return rows.astype(np.float16)
    return torch.from_numpy(np.ascontiguousarray(rows)).to(getattr(torch, dtype))


def same(found, wanted):
    """Equal bits, and NaN for NaN."""
    found, wanted = torch.as_tensor(found), torch.as_tensor(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[found.element_size()]
    nan = wanted.isnan()
    assert bool((found.isnan() == nan).all()) and torch.equal(found.view(kind)[~nan], wanted.view(kind)[~nan])


def made(folder, parts, store):
    nodes = {"feat": FEAT, "finite": FINITE, "label": np.arange(NODES)}
    return graphwire.partition_graph(tuple(ENDS), "narrow", parts, folder, method="random", node_features=nodes,
                                     edge_features={"w": WEIGHTS}, store=store)


@pytest.fixture(scope="module", params=[1, 3])
def narrow(request, tmp_path_factory):
    """{dtype: folder} of graphs whose feat and w are stored as a dtype, and finite as int8_row."""
    folder = tmp_path_factory.mktemp("narrow")
    return {dtype: made(folder / dtype, request.param, {
        "feat": dtype, "_N:_E:_N:w": getattr(torch, dtype), "_N:finite": "int8_row"})
        for dtype in ("float16", "bfloat16")}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rows_come_in_their_original_type(narrow, dtype):
    with graphwire.open(narrow[dtype]) as graph:
        nodes, edges = graph.feature("orig_id")[:].numpy(), graph.feature("orig_id", etype="_E")[:].numpy()
        feat, weights = graph.feature("feat"), graph.feature("w", etype="_E")
        assert feat.dtype == torch.float32 and weights.dtype == torch.float64 and feat.shape == (NODES, COLUMNS)
        stored = torch.as_tensor(as_narrow(FEAT[nodes], dtype))
        same(feat[:], stored.float())
        same(weights[:], torch.as_tensor(as_narrow(WEIGHTS[edges], dtype)).double())
        same(feat[[5, 2, 5]], stored.float()[[5, 2, 5]])
        for other in ("float32", torch.float64, np.float16, "bfloat16"):
            found = graph.feature("feat", dtype=other)
            same(found[:], stored if found.dtype == stored.dtype else stored.float().to(found.dtype))
            same(graph.gather("feat", [7], dtype=other), found[[7]])
    with graphwire.open(narrow[dtype], numpy=True) as graph:
        feat = graph.feature("feat")
        assert feat.dtype == np.float32
        same(feat[:], stored.float())
        same(graph.feature("feat", dtype="float16")[:], stored.float().half())
        with pytest.raises(ValueError, match="NumPy has no bfloat16"):
            graph.feature("feat", dtype=torch.bfloat16)


def test_int8_rows_stay_within_half_a_step(narrow):
    with graphwire.open(narrow["float16"]) as graph:
        rows, nodes = graph.feature("finite"), graph.feature("orig_id")[:].numpy()
        assert rows.dtype == torch.float32 and rows.shape == (NODES, COLUMNS)
        found, wanted = rows[:].numpy().astype(np.float64), FINITE[nodes].astype(np.float64)
        meta = json.loads(narrow["float16"].read_text())
        parts = [np.load(narrow["float16"].parent / meta[f"part-{part}"]["node/_N/finite"]["file"])
                 for part in range(meta["num_parts"])]
        assert meta["minor"] == 5 and meta["originals"]["node/_N/finite"] == {"dtype": "float32", "columns": COLUMNS}
        stored = np.concatenate(parts)
        head = np.ascontiguousarray(stored[:, :8]).view(np.float32)
        numbers = stored[:, 8:8 + COLUMNS].view(np.int8).astype(np.float32)
        assert np.array_equal(rows[:].numpy(), head[:, :1] * numbers + head[:, 1:])
        assert stored.shape == (NODES, 24) and not stored[:, 8 + COLUMNS:].any()
        assert (np.abs(found - wanted) <= head[:, :1].astype(np.float64) / 2).all()
        spread = np.ptp(wanted, axis=1)
        assert (head[:, 0] <= spread / 254 * 1.001 + np.abs(wanted).max(1) * 2.0**-22 + 2.0**-147).all()


def test_inspect_shows_both_types(narrow):
    shown = run("inspect", narrow["bfloat16"])
    lines = {line.split()[0]: line for line in shown.splitlines() if line.startswith(("node/", "edge/"))}
    assert "bfloat16" in lines["node/_N/feat"] and lines["node/_N/feat"].endswith("  was float32")
    assert "int8_row" in lines["node/_N/finite"] and lines["node/_N/finite"].endswith(f"  was float32 x {COLUMNS}")
    assert "was" not in lines["node/_N/label"].split()
    arrays = json.loads(run("inspect", narrow["bfloat16"], "--json"))["arrays"]
    assert arrays["edge/_N___E___N/w"]["original"] == {"dtype": "float64"} and "original" not in arrays["node/_N/label"]


def test_a_graph_stores_what_users_stored(tmp_path):
    """A graph whose features are float16 themselves has no originals; they come as they are."""
    half = as_narrow(FEAT[:100], "float16")
    path = graphwire.partition_graph(tuple(ENDS % 100), "half", 2, tmp_path / "g", method="random",
                                     node_features={"feat": half, "deep": np.ones((100, 2, 3), np.float32)},
                                     store={"deep": "bfloat16"})
    with graphwire.open(path) as graph:
        same(graph.feature("feat")[:], half[graph.feature("orig_id")[:].numpy()])
        same(graph.feature("feat", dtype="float32")[:], graph.feature("feat")[:].float())
        same(graph.feature("deep")[:], torch.ones(100, 2, 3))
    assert list(json.loads(path.read_text())["originals"]) == ["node/_N/deep"]


@pytest.mark.parametrize("words", [(), ("--transport", "tcp")])
def test_batches_are_the_same_everywhere(narrow, words, tmp_path):
    path = narrow["bfloat16"]
    count = json.loads(path.read_text())["num_parts"]
    servers = Servers(path, count, tmp_path, *words)
    try:
        options = [{"part_config": path}, {"servers": servers.addresses}, {"part_config": path, "threads": 1},
                   {"servers": servers.addresses, "threads": 3, "neighbours": "reads"}]
        for dtype in (None, "float16", torch.bfloat16, "float64"):
            digests = []
            for option in options:
                with graphwire.open(**option) as graph:
                    loader = graphwire.NodeLoader(graph, features=["feat", "finite"], labels="label",
                                                  edge_features="w", dtype=dtype, **LOADER)
                    digests.append([batch.digest() for batch in loader])
                    batch = next(iter(loader))
                    for name in ("feat", "finite"):
                        same(batch.features["_N"][name], graph.feature(name, dtype=dtype)[batch.nodes["_N"]])
                    edges = batch.blocks[0].edges["_N:_E:_N"]
                    same(edges.data["w"], graph.feature("w", etype="_E", dtype=dtype)[edges.edge_ids])
                    assert batch.labels["label"].dtype == torch.int64
            assert all(one == digests[0] for one in digests)
    finally:
        servers.close()


def test_narrow_rows_are_chosen_by_name(tmp_path):
    def refused(store, text, **more):
        with pytest.raises((RuntimeError, ValueError, TypeError)) as error:
            graphwire.partition_graph(tuple(ENDS % 50), "g", 1, tmp_path / "out", method="random", node_features={
                "feat": FEAT[:50], "number": np.arange(50), "flag": np.arange(50) % 2 == 0, "y": FEAT[:50, 0],
                "time": np.arange(50.0), "thin": FEAT[:50, :2]}, edge_features={"weight": np.ones(EDGES)},
                store=store, **more)
        assert text in str(error.value) and not (tmp_path / "out").exists()

    first = np.argwhere(~(np.abs(FEAT[:50]) < np.inf))[0]
    refused({"number": "float16"}, '"number" of _N: it is of int64')
    refused({"flag": "float16"}, '"flag" of _N: it is of bool')
    refused({"y": "float16"}, '"y" of _N: labels stay')
    refused({"time": "bfloat16"}, '"time" of _N: times are compared', time="time")
    refused({"weight": "float16"}, '"weight" of _N:_E:_N: weights are drawn by', weight="weight")
    refused({"thin": "int8_row"}, "a row of 2 takes 8 bytes as float32, and 12 as int8_row")
    refused({"feat": "int8_row"}, f'node {first[0]} of _N: "feat", column {first[1]}, is')
    refused({"none": "float16"}, 'has a feature "none"')
    refused({"paper:feat": "float16"}, 'paper has no feature "feat"')
    refused({"feat": "float8"}, "float16, bfloat16, int8_row")
    refused({"feat": torch.float32}, "float16, bfloat16, int8_row")
    refused(["feat"], "store is {")


def test_only_real_numbers_have_a_dtype(narrow):
    with graphwire.open(narrow["float16"]) as graph:
        with pytest.raises(TypeError, match=r"label.*only rows of real numbers"):
            graph.feature("label", dtype="float32")
        for wrong in ("int8", "float8", torch.int64, 5):
            with pytest.raises(ValueError, match="is not one of the types float32, float16, bfloat16, float64"):
                graph.feature("feat", dtype=wrong)
            with pytest.raises(ValueError, match="is not one of the types"):
                graphwire.NodeLoader(graph, features="feat", dtype=wrong, **LOADER)
        batch = graphwire.sample(graph, [1, 2], [3], features=["feat", "label"], dtype="float16")
        assert batch.features["_N"]["label"].dtype == torch.int64


def test_rows_that_change_have_their_own_type(narrow, tmp_path):
    """serve --mutable refuses rows that were stored narrow, and takes those whose own type is narrow."""
    with pytest.raises(AssertionError, match="cannot be mutable: its rows are stored narrow"):
        Servers(narrow["float16"], 1, tmp_path, "--mutable", "feat")
    np.save(tmp_path / "feat.npy", as_narrow(FEAT[:20], "float16"))
    (tmp_path / "edges.txt").write_text("".join(f"{one} {(one + 1) % 20}\n" for one in range(20)))
    run("import", "--from", tmp_path / "edges.txt", "--node-feature", f"feat={tmp_path / 'feat.npy'}", "--out",
        tmp_path / "own", "--quiet")
    servers = Servers(tmp_path / "own", 1, tmp_path, "--mutable", "feat")
    try:
        with graphwire.open(servers=servers.addresses) as graph:
            assert graph.feature("feat").dtype == torch.float16
            same(graph.feature("feat", dtype="float32")[:], graph.feature("feat")[:].float())
    finally:
        servers.close()


@pytest.mark.parametrize("dtype", ["bfloat16", torch.float16])
@pytest.mark.parametrize("make", [optim.SparseAdagrad, optim.SparseAdam, optim.SparseSGD])
def test_narrow_embeddings_are_trained_as_wide_ones(parts, make, dtype):
    """A step gives what it gives for float32 rows, rounded to the type; the state stays float32."""
    kind = dtype if isinstance(dtype, torch.dtype) else getattr(torch, dtype)
    with graphwire.open(parts) as graph:
        narrow_table = graphwire.Embedding(graph, "narrow", 6, rows=40, initial=("normal", 0, 1), dtype=dtype)
        wide = graphwire.Embedding(graph, "wide", 6, rows=40)
        wide.tensor[:] = narrow_table.weight
        assert narrow_table.tensor.dtype == kind and narrow_table.weight.dtype == torch.float32
        optimizers = make([narrow_table], lr=0.2), make([wide], lr=0.2)
        for step in range(5):
            ids = torch.arange(step, 40, 3)
            for table, optimizer in zip((narrow_table, wide), optimizers):
                rows = table(ids)
                assert rows.dtype == torch.float32
                (rows.sin() * (rows + step)).sum().backward()
                optimizer.step()
            wide.tensor[:] = wide.weight.to(kind).float()
            assert torch.equal(narrow_table.weight, wide.weight)
            assert torch.equal(narrow_table.tensor[ids].float(), wide.weight[ids])
        with pytest.raises(ValueError, match="float32, bfloat16, float16"):
            graphwire.Embedding(graph, "other", 6, rows=40, dtype="float64")


def test_narrow_embeddings_are_saved(parts, tmp_path):
    with graphwire.open(parts) as graph:
        table = graphwire.Embedding(graph, "narrow", 6, rows=40, dtype="bfloat16")
        before = table.weight
        graph.checkpoint(tmp_path / "saved", ["narrow"])
        table.tensor[:] = torch.zeros(40, 6)
        graph.restore(tmp_path / "saved", ["narrow"])
        assert torch.equal(table.weight, before)
