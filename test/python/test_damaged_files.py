"""Files that are damaged at random places: a reader gives rows, or an error of the documented class that names the
file."""

from __future__ import annotations

import gzip
import json
import random
import subprocess

import graphwire
import graphwire.chunks
import numpy as np
import pytest
from conftest import PROGRAM
from graphwire.kge import data
from graphwire.kge.best import Names

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet  # noqa: E402, F401

ROWS = 400
TEXT = "src,dst,name,w\n" + "".join(f"{i * 7 % 50},{i * 11 % 50},n{i % 9},{i / 8}\n" for i in range(ROWS))
TABLE = pa.table({"src": [i * 7 % 50 for i in range(ROWS)], "dst": [i * 11 % 50 for i in range(ROWS)],
                  "name": [f"n{i % 9}" for i in range(ROWS)], "w": [i / 8 for i in range(ROWS)]})


def damaged(draw, whole):
    """The bytes with some changed, cut off, or put in."""
    made = bytearray(whole)
    for _ in range(draw.randint(1, 4)):
        made[draw.randrange(len(made))] = draw.randrange(256)
    place = draw.randrange(len(made))
    return bytes({0: made[:place], 1: made[:place] + b"\xff\x00\x80" + made[place:]}.get(draw.randrange(5), made))


def parquet(path, **options):
    pa.parquet.write_table(TABLE, path, row_group_size=150, **options)


WRITERS = {
    "edges.csv": lambda path: path.write_text(TEXT),
    "edges.csv.gz": lambda path: path.write_bytes(gzip.compress(TEXT.encode())),
    "edges.parquet": lambda path: parquet(path),
    "plain.parquet": lambda path: parquet(path, use_dictionary=False, compression="none"),
    "sums.parquet": lambda path: parquet(path, compression="zstd", write_page_checksum=True),
}


@pytest.mark.parametrize("name", WRITERS)
def test_tables(name, tmp_path):
    draw, path, errors = random.Random(f"tables {name}"), tmp_path / name, 0
    WRITERS[name](path)
    whole, right = path.read_bytes(), None
    for number in range(-1, 60 if "parquet" in name else 15):
        out = tmp_path / str(number)
        out.mkdir()
        path.write_bytes(whole if number < 0 else damaged(draw, whole))
        try:
            tables = graphwire.from_tables(path, src="src", dst="dst", features=["w"], categories=["name"])
            tables.write(out)
        except (ValueError, TypeError) as error:  # TypeError: the schema may name another type
            assert name in str(error) and "\n" not in str(error), error
            assert type(error).__module__ in ("builtins", "graphwire"), type(error)
            errors += 1
            continue
        found = [np.load(made).tobytes() for made in sorted(out.glob("*.npy"))]
        right = right or found
        assert name != "sums.parquet" or found == right  # a page with a sum is right, or refused
    assert errors > 3


def chunked(folder, kind):
    """DGL's chunked graph. Returns the paths of its metadata and of a chunk of each kind of data."""
    def write(name, rows):
        path = folder / f"{name}.{kind}"
        if kind == "parquet":
            pa.parquet.write_table(pa.table({f"c{i}": column for i, column in enumerate(rows.T)}), path)
        elif kind == "npy":
            np.save(path, rows)
        else:
            np.savetxt(path, rows, fmt="%d" if rows.dtype.kind == "i" else "%.3f", delimiter=",")
        return path

    numbers = np.arange(60)
    edges = write("edges", np.stack([numbers % 20, numbers * 3 % 20], 1))
    rows = write("rows", np.arange(40.0).reshape(20, 2))
    form = {"name": {"npy": "numpy"}.get(kind, kind), **({"delimiter": ","} if kind == "csv" else {})}
    (folder / "metadata.json").write_text(json.dumps({
        "graph_name": "g", "node_type": ["n"], "num_nodes_per_chunk": [[20]], "edge_type": ["n:e:n"],
        "num_edges_per_chunk": [[60]], "edges": {"n:e:n": {"format": form, "data": [edges.name]}},
        "node_data": {"n": {"f": {"format": form, "data": [rows.name]}}}, "edge_data": {}}))
    return [folder / "metadata.json", edges, rows]


@pytest.mark.parametrize("kind", ["csv", "npy", "parquet"])
def test_chunks(kind, tmp_path):
    """What `graphwire import` finds in a chunk is a ValueError too."""
    draw, errors = random.Random(f"chunks {kind}"), 0
    paths = chunked(tmp_path, kind)
    for number in range(18):
        path = paths[number % 3]
        whole = path.read_bytes()
        path.write_bytes(damaged(draw, whole))
        try:
            graphwire.partition_graph(graphwire.chunks.chunked(paths[0]), "g", 1, tmp_path / "g", method="random")
        except (ValueError, TypeError) as error:
            assert any(one.name in str(error) for one in paths) and "\n" not in str(error), (path.name, error)
            assert type(error).__module__ in ("builtins", "graphwire"), type(error)
            errors += 1
        except FileNotFoundError as error:
            assert path == paths[0], error  # the metadata has another name of a file
        path.write_bytes(whole)
    assert errors > 3


@pytest.mark.parametrize("name", ["edges.csv", "edges.csv.gz", "edges.npy", "edges.npz", "table.csv", "list.txt",
                                  "rows.npy", "train.tsv"])
def test_the_program(name, tmp_path):
    draw, errors = random.Random(f"program {name}"), 0
    (tmp_path / "edges.csv").write_text(TEXT)
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    ends = np.stack([TABLE["src"].to_numpy(), TABLE["dst"].to_numpy()], 1)
    np.save(tmp_path / "edges.npy", ends)
    np.savez(tmp_path / "edges.npz", src=ends[:, 0], dst=ends[:, 1])
    (tmp_path / "table.csv").write_text("id,x\n" + "".join(f"{i},{i / 4}\n" for i in range(50)))
    (tmp_path / "list.txt").write_text("".join(f"{i}\n" for i in range(50)))
    np.save(tmp_path / "rows.npy", np.arange(50.0))
    (tmp_path / "train.tsv").write_text("".join(f"a{i}\tr{i % 3}\tb{i % 7}\n" for i in range(60)))
    path = tmp_path / name
    words = {"table.csv": ["--from", tmp_path / "edges.csv", "--node-table", path, "--node-column", "x=x"],
             "list.txt": ["--from", tmp_path / "edges.csv", "--nodes", path],
             "rows.npy": ["--from", tmp_path / "edges.csv", "--node-feature", f"x={path}"],
             "train.tsv": ["--triples", path]}.get(name, ["--from", path])
    whole = path.read_bytes()
    for _ in range(20):
        path.write_bytes(damaged(draw, whole))
        done = subprocess.run([PROGRAM, "import", *words, "--out", tmp_path / "g", "--replace", "--quiet"],
                              capture_output=True, text=True, errors="replace")
        assert done.returncode in (0, 1), done
        if done.returncode:
            assert str(path) in done.stderr.splitlines()[-1], done.stderr
            errors += 1
    assert errors > 0


@pytest.mark.parametrize("name", ["train", "entities", "names"])
def test_files_of_knowledge_graphs(name, tmp_path):
    draw, errors = random.Random(f"kge {name}"), 0
    (tmp_path / "entities.tsv").write_text("".join(f"{i}\tentity {i}\n" for i in range(60)))
    (tmp_path / "relations.tsv").write_text("0\tr\n1\ts\n")
    (tmp_path / "train.tsv").write_text("".join(f"{i % 60}\t{i % 2}\t{i * 7 % 60}\n" for i in range(90)))
    (tmp_path / "names.tsv").write_text("".join(f"entity {i}\n" for i in range(40)))
    path = tmp_path / f"{name}.tsv"
    whole = path.read_bytes()
    for _ in range(60):
        path.write_bytes(damaged(draw, whole))
        try:
            if name == "train":
                data.load(tmp_path, "own", "udd_hrt", files=["entities.tsv", "relations.tsv", "train.tsv"])
            else:
                names = Names(tmp_path / "entities.tsv", 60)
                names.read(tmp_path / "names.tsv")
        except data.DataError as error:
            assert path.name in str(error), error
            errors += 1
    assert errors > 3
