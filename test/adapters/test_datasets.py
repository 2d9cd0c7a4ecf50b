"""Data sets by name: folders in the layouts of their own packages, and archives from a local server that cuts
connections. Results are compared with the arrays that were written."""

from __future__ import annotations

import gzip
import io
import multiprocessing
import pickle
from pathlib import Path

import graphwire
import graphwire.fetch
import numpy as np
import pytest
import torch
from archives import zipped
from graphwire._files.graph_arrays import HOMOGENEOUS
from graphwire.datasets import DatasetError, edge_list, load, triples
from web import Web

pytestmark = pytest.mark.slow  # once: these tests do not use dgl
NODES, EDGES = 60, 300


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """No proxy, no mirror, no pauses."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("GRAPHWIRE_MIRROR", raising=False)
    monkeypatch.setattr(graphwire._files.fetch.time, "sleep", lambda _: None)


def arrays():
    random = np.random.default_rng(8)
    order = random.permutation(NODES)
    return {"edge": random.integers(0, NODES, (EDGES, 2)),
            "feat": random.standard_normal((NODES, 5)).astype(np.float32), "label": random.integers(0, 4, NODES),
            "year": random.integers(1990, 2020, NODES), "weight": random.integers(1, 9, EDGES),
            "train": np.sort(order[:30]), "valid": np.sort(order[30:40]), "test": np.sort(order[40:])}


A = arrays()


def csv(rows):
    out = io.StringIO()
    np.savetxt(out, np.atleast_2d(rows.T).T, "%d" if rows.dtype.kind == "i" else "%.8f", delimiter=",")
    return gzip.compress(out.getvalue().encode())


def of_nodes(split):
    return {"raw/edge.csv.gz": csv(A["edge"]), "raw/num-node-list.csv.gz": csv(np.array([NODES])),
            "raw/num-edge-list.csv.gz": csv(np.array([EDGES])), "raw/node-feat.csv.gz": csv(A["feat"]),
            "raw/node-label.csv.gz": csv(A["label"]), "raw/node_year.csv.gz": csv(A["year"]), "RELEASE_v1.txt": b"",
            **{f"split/{split}/{word}.csv.gz": csv(A[word]) for word in ("train", "valid", "test")}}


def write(folder, files):
    for name, body in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


def check_nodes(dataset, edges, feat=A["feat"]):
    found = dataset.arrays
    assert found.counts == {"_N": NODES}
    assert np.array_equal(np.stack(found.edges[HOMOGENEOUS], 1), edges)
    rows = {name: rows for (_, name), rows in found.node_features.items()}
    assert np.allclose(rows["feat"], feat, atol=1e-6) and np.array_equal(rows["label"], A["label"])
    for split, word in (("train", "train"), ("val", "valid"), ("test", "test")):
        assert np.array_equal(np.flatnonzero(rows[f"{split}_mask"]), A[word])
    return rows


def test_ogb_nodes(tmp_path):
    """arxiv has edges in one direction, products in both; one further column; and the parts of a data set."""
    write(tmp_path / "ogbn_arxiv", of_nodes("time"))
    write(tmp_path / "ogbn_products", of_nodes("sales_ranking"))
    rows = check_nodes(load("ogbn-arxiv", tmp_path, download=False), A["edge"])
    assert np.array_equal(rows["year"], A["year"])
    both = np.stack([A["edge"], A["edge"][:, ::-1]], 1).reshape(-1, 2)
    dataset = load("ogbn-products", tmp_path, download=False)
    check_nodes(dataset, both)
    path = dataset.renamed({"feat": "features"}).partition(2, tmp_path / "parts", balance_train=True,
                                                           balance_edges=True)
    with graphwire.open(path, numpy=True) as graph:
        orig = graph.feature("orig_id")[:]
        assert graph.name == "ogbn-products" and graph.num_edges() == 2 * EDGES
        assert np.allclose(graph.feature("features")[:], A["feat"][orig], atol=1e-6)
        assert np.array_equal(graph.feature("label")[:], A["label"][orig])


def test_ogb_from_its_address(tmp_path, monkeypatch):
    """The connection is cut twice while the archive is downloaded, which is then unpacked. The second call uses the
    folder. An arxiv.zip that is not OGB's is refused."""
    body = zipped(of_nodes("sales_ranking"), "products/")
    where = "/snap.stanford.edu/ogb/data/nodeproppred/products.zip"
    edges = np.stack([A["edge"], A["edge"][:, ::-1]], 1).reshape(-1, 2)
    with Web({where: body}) as web:
        monkeypatch.setenv("GRAPHWIRE_MIRROR", web.url())
        web.cut(where, 1000)
        web.cut(where, 4000)
        check_nodes(load("ogbn-products", tmp_path), edges)
        assert [asked for _, asked in web.asked] == [None, "bytes=1000-", "bytes=4000-"]
        check_nodes(load("ogbn-products", tmp_path), edges)
        assert len(web.asked) == 3 and [path.name for path in tmp_path.iterdir()] == ["ogbn_products"]
        web.files[where.replace("products", "arxiv")] = zipped(of_nodes("time"), "arxiv/")
        with pytest.raises(graphwire.fetch.FetchError, match="changed on its way"):
            load("ogbn-arxiv", tmp_path)
        assert not (tmp_path / "ogbn_arxiv").exists()


def load_at_once(name, root, start, pipe):
    start.wait()
    try:
        load(name, root)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
    pipe.send("")


@pytest.mark.parametrize("name", ["ogbn-products", "Cora"])
def test_processes_that_load_at_once(name, tmp_path, monkeypatch):
    """One process downloads and unpacks; the other waits, and finds the folder. No other file is left."""
    if name == "Cora":
        where, folder = "/github.com/kimiyoung/planetoid/raw/master/data/", "Cora"
        files = {where + file: body for file, body in planetoid("Cora")[0].items()}
    else:
        where, folder = "/snap.stanford.edu/ogb/data/nodeproppred/products.zip", "ogbn_products"
        files = {where: zipped(of_nodes("sales_ranking"), "products/")}
    context = multiprocessing.get_context("fork")
    with Web(files) as web:
        monkeypatch.setenv("GRAPHWIRE_MIRROR", web.url())
        start, loaders = context.Barrier(4), []
        for _ in range(4):
            ours, theirs = context.Pipe()
            loaders.append((context.Process(target=load_at_once, args=(name, tmp_path / "new", start, theirs)), ours))
            loaders[-1][0].start()
        assert [ours.recv() for _, ours in loaders] == [""] * 4
        for process, _ in loaders:
            process.join()
        assert len(web.asked) == len(files)
    assert [path.name for path in (tmp_path / "new").iterdir()] == [folder]
    assert sorted(path.name for path in (tmp_path / "new" / folder).iterdir() if not path.name.startswith("R")) == (
        ["raw"] if name == "Cora" else ["raw", "split"])


def test_ogb_binary(tmp_path):
    raw = tmp_path / "ogbn_papers100M" / "raw"
    write(tmp_path / "ogbn_papers100M", {name: body for name, body in of_nodes("time").items() if "split" in name})
    raw.mkdir()
    labels = np.where(np.arange(NODES) % 3 == 0, A["label"].astype(np.float32), np.nan)[:, None]
    np.savez(raw / "data.npz", edge_index=A["edge"].T, node_feat=A["feat"], node_year=A["year"][:, None],
             num_nodes_list=np.array([NODES]), num_edges_list=np.array([EDGES]))
    np.savez(raw / "node-label.npz", node_label=labels)
    found = load("ogbn-papers100M", tmp_path, download=False).arrays
    assert np.array_equal(np.stack(found.edges[HOMOGENEOUS], 1), A["edge"])
    assert np.array_equal(found.node_features["_N", "label"], labels[:, 0], equal_nan=True)
    assert np.array_equal(found.node_features["_N", "year"], A["year"])


def test_ogb_of_types(tmp_path):
    """mag's layout: features and labels of some types, and a feature of edges."""
    writes = np.stack([A["edge"][:, 0] % 20, A["edge"][:, 1]], 1)
    files = {"raw/num-node-dict.csv.gz": gzip.compress(b"author,paper\n20,60\n"),
             "raw/triplet-type-list.csv.gz": gzip.compress(b"paper,cites,paper\nauthor,writes,paper\n"),
             "raw/node-feat/paper/node-feat.csv.gz": csv(A["feat"]),
             "raw/node-label/paper/node-label.csv.gz": csv(A["label"]),
             "raw/node-feat/paper/node_year.csv.gz": csv(A["year"]),
             **{f"split/time/paper/{word}.csv.gz": csv(A[word]) for word in ("train", "valid", "test")}}
    for name, edges in (("paper___cites___paper", A["edge"]), ("author___writes___paper", writes)):
        files[f"raw/relations/{name}/edge.csv.gz"] = csv(edges)
        files[f"raw/relations/{name}/edge_reltype.csv.gz"] = csv(A["weight"])
    write(tmp_path / "ogbn_mag", files)
    found = load("ogbn-mag", tmp_path, download=False).arrays
    assert found.counts == {"author": 20, "paper": 60}
    assert np.array_equal(np.stack(found.edges["author", "writes", "paper"], 1), writes)
    assert np.array_equal(found.edge_features[("paper", "cites", "paper"), "reltype"], A["weight"])
    assert np.array_equal(np.flatnonzero(found.node_features["paper", "val_mask"]), A["valid"])
    assert np.array_equal(found.node_features["paper", "year"], A["year"])


def test_ogb_links(tmp_path):
    """collab's layout: weights of edges for both directions, and the package's splits."""
    files = {name: body for name, body in of_nodes("time").items() if "split" not in name and "label" not in name}
    write(tmp_path / "ogbl_collab", {**files, "raw/edge_weight.csv.gz": csv(A["weight"])})
    folder = tmp_path / "ogbl_collab" / "split" / "time"
    folder.mkdir(parents=True)
    for number, word in enumerate(("train", "valid", "test")):
        torch.save({"edge": A["edge"][number::3], "year": A["weight"][number::3], "n": np.int64(3)},
                   folder / f"{word}.pt")
    dataset = load("ogbl-collab", tmp_path, download=False)
    assert np.array_equal(dataset.splits["valid"]["edge"], A["edge"][1::3])
    weights = dataset.arrays.edge_features[HOMOGENEOUS, "weight"]
    assert np.array_equal(weights, np.repeat(A["weight"], 2))
    torch.save({"edge": Path("x")}, folder / "test.pt")
    with pytest.raises(DatasetError, match=r"test\.pt: cannot be read: .*pathlib.*: not a file of tensors$"):
        load("ogbl-collab", tmp_path, download=False)


def check_edges(arrays, etype, both, name=None, rows=None):
    """The edges of A, and a column of them. With both directions, each edge is followed by its reverse."""
    expected = np.stack([A["edge"], A["edge"][:, ::-1]], 1).reshape(-1, 2) if both else A["edge"]
    assert np.array_equal(np.stack(arrays.edges[etype], 1), expected)
    if name is not None:
        found = arrays.edge_features[etype, name]
        assert np.allclose(found, np.repeat(rows, 2, axis=0) if both else rows, atol=1e-6)


def test_ogb_proteins(tmp_path):
    """Labels with several columns, a species for each node, features of edges, no features of nodes."""
    files = of_nodes("species")
    del files["raw/node-feat.csv.gz"], files["raw/node_year.csv.gz"]
    labels, rows = (A["feat"] > 0).astype(np.int64), np.repeat(A["feat"], 5, axis=0)
    write(tmp_path / "ogbn_proteins", {**files, "raw/node-label.csv.gz": csv(labels),
                                       "raw/node_species.csv.gz": csv(A["year"]), "raw/edge-feat.csv.gz": csv(rows)})
    found = load("ogbn-proteins", tmp_path, download=False).arrays
    check_edges(found, HOMOGENEOUS, True, "feat", rows)
    assert {name for _, name in found.node_features} == {"label", "species", "train_mask", "val_mask", "test_mask"}
    assert np.array_equal(found.node_features["_N", "label"], labels)
    assert np.array_equal(found.node_features["_N", "species"], A["year"])


# Data sets of links: the split's folder, whether both directions exist, columns of nodes and of edges.
LINKS = {"ogbl-ppa": ("throughput", True, "node-feat", None), "ogbl-ddi": ("target", True, None, None),
         "ogbl-citation2": ("time", False, "node_year", None), "ogbl-wikikg2": ("time", False, None, "edge_reltype"),
         "ogbl-biokg": ("random", False, None, "edge_reltype"), "ogbl-vessel": ("random", False, "node_feat", None)}


@pytest.mark.parametrize("name", LINKS)
def test_ogb_sets_of_links(name, tmp_path):
    split, both, of_nodes_, of_edges = LINKS[name]
    folder, etype = tmp_path / name.replace("-", "_"), HOMOGENEOUS
    every = of_nodes("time")
    files = {f"raw/{word}.csv.gz": every[f"raw/{word}.csv.gz"] for word in ("edge", "num-node-list", "num-edge-list")}
    if name == "ogbl-biokg":
        etype = ("protein", "protein-protein_activation", "protein")
        files = {"raw/num-node-dict.csv.gz": gzip.compress(b"protein\n60\n"),
                 "raw/triplet-type-list.csv.gz": gzip.compress(",".join(etype).encode() + b"\n"),
                 f"raw/relations/{'___'.join(etype)}/edge.csv.gz": csv(A["edge"]),
                 f"raw/relations/{'___'.join(etype)}/edge_reltype.csv.gz": csv(A["weight"])}
    elif name == "ogbl-vessel":
        out = io.BytesIO()
        np.savez(out, edge_index=A["edge"].T, node_feat=A["feat"], num_nodes_list=np.array([NODES]),
                 num_edges_list=np.array([EDGES]))
        files = {"raw/data.npz": out.getvalue()}
    elif of_nodes_ is not None:
        files[f"raw/{of_nodes_}.csv.gz"] = every[f"raw/{of_nodes_}.csv.gz"]
    elif of_edges is not None:
        files["raw/edge_reltype.csv.gz"] = csv(A["weight"])
    write(folder, files)
    (folder / "split" / split).mkdir(parents=True)
    for number, word in enumerate(("train", "valid", "test")):
        part = A["edge"][number::3]
        links = {"head": part[:, 0], "tail": part[:, 1], "relation": A["weight"][number::3],
                 "head_type": ["protein"] * len(part)} if of_edges else {"edge": torch.from_numpy(part)}
        torch.save(links, folder / "split" / split / f"{word}.pt")
    dataset = load(name, tmp_path, download=False)
    found = dataset.arrays
    assert list(found.edges) == [etype] and found.counts == {etype[0]: NODES}
    check_edges(found, etype, both, *(("reltype", A["weight"]) if of_edges else ()))
    assert len(found.node_features) == (of_nodes_ is not None)
    for (_, column), rows in found.node_features.items():
        assert np.allclose(rows, A[column], atol=1e-6)
    valid = dataset.splits["valid"]
    heads = valid["head"] if of_edges else valid["edge"][:, 0].numpy()
    assert np.array_equal(heads, A["edge"][1::3, 0])
    assert not of_edges or valid["head_type"] == ["protein"] * len(heads)


class Run:
    """Code that a pickle could run."""

    def __reduce__(self):
        return print, ("was run",)


def planetoid(name):
    """The eight files. Test ids are not in order, and CiteSeer lacks some ids between them."""
    sparse = pytest.importorskip("scipy.sparse")
    train, public, tests = 10, 540, 20
    random = np.random.default_rng(1)
    ids = np.arange(public, public + tests + (name == "CiteSeer"))
    ids = np.delete(ids, 5) if name == "CiteSeer" else ids
    count = int(ids.max()) + 1
    x = (random.random((count, 12)) < 0.3).astype(np.float32)
    labels = np.eye(4, dtype=np.int32)[random.integers(0, 4, count)]
    gone = np.setdiff1d(np.arange(public, count), ids)
    x[gone], labels[gone] = 0, 0
    shuffled = random.permutation(ids)
    graph = {node: random.integers(0, count, 3).tolist() for node in range(count)}
    files = {"x": sparse.csr_matrix(x[:train]), "allx": sparse.csr_matrix(x[:public]), "y": labels[:train],
             "ally": labels[:public], "tx": sparse.csr_matrix(x[shuffled]), "ty": labels[shuffled], "graph": graph}
    bodies = {f"ind.{name.lower()}.{part}": pickle.dumps(value, 2) for part, value in files.items()}
    bodies[f"ind.{name.lower()}.test.index"] = "".join(f"{node}\n" for node in shuffled).encode()
    return bodies, x, labels, graph, ids


@pytest.mark.parametrize("name", ["Cora", "CiteSeer"])
def test_planetoid(name, tmp_path, monkeypatch):
    bodies, x, labels, graph, ids = planetoid(name)
    prefix = "/github.com/kimiyoung/planetoid/raw/master/data/"
    with Web({prefix + part: body for part, body in bodies.items()}) as web:
        monkeypatch.setenv("GRAPHWIRE_MIRROR", web.url())
        web.cut(f"{prefix}ind.{name.lower()}.allx", 100)
        dataset = load(name, tmp_path)
        assert len(web.asked) == 9
    found = dataset.arrays
    assert np.array_equal(found.node_features["_N", "feat"], x)
    assert np.array_equal(found.node_features["_N", "label"], labels.argmax(1))
    assert np.array_equal(np.flatnonzero(found.node_features["_N", "test_mask"]), ids)
    assert found.node_features["_N", "train_mask"].sum() == 10 and found.node_features["_N", "val_mask"].sum() == 500
    pairs = {(src, dst) for src, ends in graph.items() for dst in ends if src != dst}
    assert sorted(zip(*(ends.tolist() for ends in found.edges[HOMOGENEOUS]))) == sorted(pairs)
    raw = tmp_path / name / "raw"
    assert load(name, tmp_path, download=False).arrays.counts == found.counts
    (raw / f"ind.{name.lower()}.graph").write_bytes(pickle.dumps(Run()))
    with pytest.raises(DatasetError, match="print has no place"):
        load(name, tmp_path, download=False)
    (raw / f"ind.{name.lower()}.graph").write_bytes(pickle.dumps({0: [1]})[:-3])
    with pytest.raises(DatasetError, match="no file of Planetoid's"):
        load(name, tmp_path, download=False)


def test_reddit(tmp_path, monkeypatch):
    kinds = np.full(NODES, 3)
    kinds[A["train"]], kinds[A["valid"]] = 1, 2
    files = {}
    for name, content in (
        ("reddit_data.npz", {"feature": A["feat"], "label": A["label"], "node_types": kinds}),
        ("reddit_graph.npz", {"row": A["edge"][:, 0], "col": A["edge"][:, 1], "data": np.ones(EDGES)}),
    ):
        out = io.BytesIO()
        np.savez(out, **content)
        files[name] = out.getvalue()
    with Web({"/data.dgl.ai/dataset/reddit.zip": zipped(files)}) as web:
        monkeypatch.setenv("GRAPHWIRE_MIRROR", web.url())
        check_nodes(load("reddit", tmp_path), A["edge"])
        assert sorted(path.name for path in (tmp_path / "reddit").iterdir()) == sorted(files)
    (tmp_path / "reddit/reddit_graph.npz").write_bytes(b"no archive")
    with pytest.raises(DatasetError, match=r"reddit_graph\.npz: no \.npz file"):
        load("reddit", tmp_path, download=False)


def test_snap(tmp_path, monkeypatch):
    """Any numbers are valid ids, and are kept as orig_id."""
    pairs = np.unique(A["edge"] * 1000 + 7, axis=0)
    lines = ["# Directed graph", "# FromNodeId\tToNodeId", *[f"{src}\t{dst}" for src, dst in pairs]]
    with Web({"/snap.stanford.edu/data/soc-Small1.txt.gz": gzip.compress("\n".join(lines).encode() + b"\n")}) as web:
        monkeypatch.setenv("GRAPHWIRE_MIRROR", web.url())
        path = load("snap:soc-Small1", tmp_path).partition(2, tmp_path / "parts", method="random")
        load("snap:soc-Small1", tmp_path)
        assert len(web.asked) == 1
    with graphwire.open(path, numpy=True) as graph:
        orig = graph.feature("orig_id")[:]
        found = np.stack([orig[ends] for ends in graph.find_edges(slice(None))], 1)
    assert np.array_equal(np.unique(found, axis=0), pairs)


def test_triples(tmp_path):
    for split, part in (("train", slice(0, 200)), ("valid", slice(200, 300))):
        lines = [f"e{src}\tr{dst % 3}\te{dst}" for src, dst in A["edge"][part]]
        (tmp_path / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    dataset = triples({split: tmp_path / f"{split}.tsv" for split in ("train", "valid")}, name="facts")
    path = graphwire.partition_graph(dataset, "facts", 2, tmp_path / "parts", method="random")
    with graphwire.open(path, numpy=True) as graph:
        assert graph.num_edges() == 300 and graph.name == "facts"
        assert set(graph.node_texts(slice(None), graph.ntypes[0])) == {f"e{node}" for node in np.unique(A["edge"])}


def test_what_is_not_there(tmp_path):
    for make, says in (
        (lambda: load("ogbn-nothing"), "ogbn-products"),
        (lambda: load("Cora", tmp_path, download=False), "put ind.cora"),
        (lambda: load("ogbn-arxiv", tmp_path, download=False), "put arxiv.zip"),
        (lambda: load("snap:x", tmp_path, download=False), "put it there"),
        (lambda: load("snap:../x", tmp_path), "SNAP"),
        (lambda: edge_list(tmp_path / "none.txt"), "does not exist"),
        (lambda: triples(tmp_path / "none.tsv"), "does not exist"),
    ):
        with pytest.raises(DatasetError, match=says):
            make()
    files = of_nodes("time")
    for name, body, says in (("raw/edge.csv.gz", csv(A["edge"] + 5), "name nodes outside"),
                             ("raw/edge.csv.gz", csv(A["feat"][:, :3]), "not two integers a line"),
                             ("raw/edge.csv.gz", files["raw/edge.csv.gz"][:-20], "not a table"),
                             ("raw/node-label.csv.gz", None, "not a complete set"),
                             ("split/time/test.csv.gz", csv(np.array([70])), "names node 70")):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        write(folder / "ogbn_arxiv", {**files, name: body or b""})
        if body is None:
            (folder / "ogbn_arxiv" / name).unlink()
        with pytest.raises(DatasetError, match=says):
            load("ogbn-arxiv", folder, download=False)
