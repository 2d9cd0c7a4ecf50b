"""partition_graph(from_tables(…), memory=…): the parts have the same bytes with any memory, and errors the same text.
Tables are streams of small batches, so that a numbering is spilled between any two of them."""

import random

import graphwire
import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from graphwire._files import numberings  # noqa: E402

MEMORY = ("1", "40k", "200k")


def stream(columns, rows=61):
    table = pa.table(columns)
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=rows))


def tree(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ids_of(kind, numbers):
    if kind == "integers":
        return [int(number) * 2654435761 - 10**9 for number in numbers]
    text = [f"{'node' * (number % 5)}-{number}" for number in numbers]
    return pa.array(text, pa.large_string() if kind == "large" else pa.string())


def tables_of(seed):
    """The arguments of from_tables. Streams can be read once, so each graph has its own."""
    draw, dice = np.random.default_rng(seed), random.Random(seed)
    kind = dice.choice(["text", "large", "integers"])
    users, films = 400, 300
    edges = {("user", "rates", "film"): (draw.integers(0, users, 2000), draw.integers(0, films, 2000)),
             ("user", "knows", "user"): (draw.integers(0, users, 900), draw.integers(0, users, 900))}
    with_table = [ntype for ntype in ("user", "film") if dice.random() < 0.5]
    counts, kinds = {"user": users, "film": films}, {"user": kind, "film": dice.choice(["text", "integers"])}
    nodes = {}
    for ntype in with_table:
        order = draw.permutation(counts[ntype])
        nodes[ntype] = stream({"id": ids_of(kinds[ntype], order), "age": order.astype(np.float32)})
    return {"edges": {etype: stream({"src": ids_of(kinds[etype[0]], src), "dst": ids_of(kinds[etype[2]], dst),
                                     "at": np.arange(len(src))}) for etype, (src, dst) in edges.items()},
            "nodes": nodes or None, "time": "at",
            **({"features": {ntype: ["age"] for ntype in nodes}} if nodes else {})}


@pytest.mark.parametrize("seed", range(8))
def test_bytes_do_not_depend_on_the_memory(seed, tmp_path, monkeypatch):
    spilled = []
    spill = numberings.Numbering.spill
    monkeypatch.setattr(numberings.Numbering, "spill",
                        lambda self, stem: (spilled.append(len(self)), spill(self, stem)))
    graphwire.partition_graph(graphwire.from_tables(**tables_of(seed)), "g", 2, tmp_path / "whole", method="random")
    assert not spilled
    for memory in MEMORY:
        graphwire.partition_graph(graphwire.from_tables(**tables_of(seed)), "g", 2, tmp_path / memory, method="random",
                                  memory=memory)
        assert tree(tmp_path / memory) == tree(tmp_path / "whole"), memory
    assert spilled and all(spilled)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["whole", *MEMORY])


def refused(tmp_path, memory, edges, nodes):
    with pytest.raises(ValueError) as error:
        graphwire.partition_graph(graphwire.from_tables(stream(edges), stream(nodes)), "g", 2, tmp_path / "out",
                                  method="random", memory=memory)
    assert not list(tmp_path.iterdir())
    return str(error.value)


@pytest.mark.parametrize("kind", ["text", "integers"])
def test_errors_do_not_depend_on_the_memory(kind, tmp_path):
    ids = list(range(200))
    edges = {"src": ids_of(kind, ids), "dst": ids_of(kind, ids)}
    missing = {"id": ids_of(kind, [number for number in ids if number != 137])}
    repeated = {"id": ids_of(kind, [*ids, 150])}
    for nodes, row in ((missing, 137), (repeated, 200)):
        said = {memory: refused(tmp_path, memory, edges, nodes) for memory in (None, *MEMORY)}
        assert len(set(said.values())) == 1 and f"row {row}" in said[None], said


def test_a_long_id(tmp_path):
    edges = {"src": ["a"] * 100 + ["b" * 65536], "dst": ["c"] * 101}
    with pytest.raises(graphwire.ResourceError, match="65,536"):
        graphwire.partition_graph(graphwire.from_tables(stream(edges)), "g", 2, tmp_path / "out", memory="1")
    assert not list(tmp_path.iterdir())
