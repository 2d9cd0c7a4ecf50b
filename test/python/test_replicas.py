"""Replicas of hot rows: which rows are chosen, against NumPy and against a loader's own batches; budgets; what the
folder holds; servers and clients; errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import graphwire
import numpy as np
import pytest
from conftest import Servers, run

NODES, PARTS, BATCH, FANOUTS = 3000, 3, 40, [4, 3]


def read_index(folder, part, ntype="_N"):
    """The ids of replica.index, as FORMAT.md describes it; the ranks are compared."""
    blocks = np.load(Path(folder) / f"part{part}/node/{ntype}/replica.index.npy")
    bits = np.unpackbits(blocks[:, 2:].copy().view(np.uint8), axis=1, bitorder="little")
    before = np.cumsum(bits.sum(1)) - bits.sum(1)
    assert (blocks[:, 0] == before).all()
    words = bits.reshape(len(blocks), 6, 64).sum(2)
    within = np.cumsum(words, 1) - words
    assert (blocks[:, 1] == sum(within[:, w].astype(np.uint64) << np.uint64(9 * w) for w in range(6))).all()
    return np.flatnonzero(bits.reshape(-1))


class Parts:
    """What a test knows of a folder of parts: the book, the lists, the seeds."""

    def __init__(self, config):
        self.config, self.folder = Path(config), Path(config).parent
        self.json = json.loads(self.config.read_text())
        self.starts = [begin for begin, _ in self.json["node_map"]["_N"]] + [self.json["node_map"]["_N"][-1][1]]
        self.lists = []
        for part in range(PARTS):
            indptr = self.array(part, "node/_N/indptr")[:, 0].astype(np.int64)
            indices = self.array(part, "edge/_N___E___N/indices").astype(np.int64)
            self.lists += [indices[a:b] for a, b in zip(indptr[:-1], indptr[1:])]
        self.mask = np.concatenate([self.array(part, "node/_N/train_mask") for part in range(PARTS)]).astype(bool)

    def array(self, part, key):
        return np.load(self.folder / self.json[f"part-{part}"][key]["file"])

    def own(self, part):
        ids = np.arange(NODES)
        return (ids >= self.starts[part]) & (ids < self.starts[part + 1])

    def seeds(self, part):
        return np.flatnonzero(self.mask & self.own(part))

    def vip(self, part):
        p = np.where(self.mask & self.own(part), min(1, BATCH / len(self.seeds(part))), 0.0)
        for fanout in FANOUTS:
            left = np.ones(NODES)
            for v, sources in enumerate(self.lists):
                if len(sources):
                    np.multiply.at(left, sources, 1 - min(1, fanout / len(sources)) * p[v])
            p = 1 - (1 - p) * left
        return p

    def degree(self, _):
        return np.bincount(np.concatenate(self.lists), minlength=NODES).astype(float)

    def counted(self, part, epochs, seed):
        counts = np.zeros(NODES)
        with graphwire.open(self.config) as graph:
            loader = graphwire.NodeLoader(graph, self.seeds(part), FANOUTS, batch_size=BATCH, shuffle=True, seed=seed,
                                          world=1)
            for _ in range(epochs):
                for batch in loader:
                    counts[np.asarray(batch.nodes["_N"])] += 1
        return counts


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A graph with hubs, in one part; the arguments of partition_graph."""
    draw = np.random.default_rng(5)
    src = (NODES * draw.random(20000) ** 3).astype(np.int64)
    dst = draw.integers(0, NODES, 20000)
    return (src, dst), {"feat": draw.random((NODES, 6), dtype=np.float32), "other": draw.integers(0, 9, (NODES, 2)),
                        "label": draw.integers(0, 4, NODES), "train_mask": draw.random(NODES) < 0.3,
                        "splits_mask": draw.random((NODES, 2)) < 0.3}


def divide(whole, folder, **more):
    edges, features = whole
    return graphwire.partition_graph(edges, "hot", PARTS, folder, node_features=features, method="random", seed=3,
                                     num_nodes=NODES, **more)


@pytest.fixture(scope="module")
def divided(whole, tmp_path_factory):
    return divide(whole, tmp_path_factory.mktemp("replicas") / "parts")


@pytest.fixture
def parts(divided, tmp_path):
    shutil.copytree(divided.parent, tmp_path / "parts")
    return Parts(tmp_path / "parts" / divided.name)


def expect_hottest(found, hot, own, count, slack):
    """The hottest nodes that the part does not own; equal ones by id, where they differ by less than slack."""
    hot = np.where(own, 0, hot)
    order = np.lexsort((np.arange(NODES), -hot))[:count]
    wanted = order[hot[order] > 0]
    assert len(found) == len(wanted)
    if slack == 0:
        assert (found == np.sort(wanted)).all()
    else:
        assert (hot[found] >= hot[wanted].min() - slack).all()


@pytest.mark.parametrize("by", ["vip", "degree", "epochs:2"])
def test_the_hottest_rows_are_chosen(parts, by):
    for share in (0.02, 0.1, 1):
        graphwire.replicate(parts.config, f"{100 * share:g}%", by=by, fanouts=FANOUTS, batch_size=BATCH, seed=9)
        run("verify", parts.config, "--quiet")
        for part in range(PARTS):
            found = read_index(parts.folder, part)
            hot = (parts.vip(part) if by == "vip" else parts.degree(part) if by == "degree"
                   else parts.counted(part, 2, 9))
            expect_hottest(found, hot, parts.own(part), int(share * NODES), 1e-9 if by == "vip" else 0)
            for name in ("feat", "other"):  # not label: one number a row
                rows = np.load(parts.folder / f"part{part}/node/_N/{name}.replica.npy")
                whole = np.concatenate([parts.array(p, f"node/_N/{name}") for p in range(PARTS)])
                assert (rows == whole[found]).all()
            assert not (parts.folder / f"part{part}/node/_N/label.replica.npy").exists()


def test_the_result_does_not_depend_on_threads(parts, tmp_path):
    files = []
    for threads in (1, 2, 5):
        run("replicate", parts.config, "--rows", "7%", "--fanouts", "4,3", "--threads", threads)
        files.append({path.relative_to(parts.folder): path.read_bytes() for path in parts.folder.rglob("*.*")})
    assert files[0] == files[1] == files[2]


def test_a_budget_in_bytes_holds(parts):
    row = 6 * 4 + 2 * 8
    for budget in (0, 1, row - 1, row, 1000, 12345, 10**9, 2**40):
        graphwire.replicate(parts.config, budget, fanouts=FANOUTS, batch_size=BATCH)
        after = json.loads(parts.config.read_text())
        assert after["graph_id"] == parts.json["graph_id"]
        assert ("replicas" in after) == (budget > 0)
        for part in range(PARTS if budget else 0):
            chosen = len(read_index(parts.folder, part))
            possible = np.count_nonzero(np.where(parts.own(part), 0, parts.vip(part)))
            assert chosen == min(budget // row, possible)


def test_without_replicas_the_folder_is_as_before(parts):
    before = {path.relative_to(parts.folder): path.read_bytes() for path in parts.folder.rglob("*.*")}
    (parts.folder / "mine.txt").write_text("mine")
    graphwire.replicate(parts.config, "5%", fanouts=FANOUTS, features="feat")
    assert json.loads(parts.config.read_text())["minor"] == 5
    assert not list(parts.folder.rglob("other.replica.npy"))
    graphwire.replicate(parts.config, 0)
    assert (parts.folder / "mine.txt").read_text() == "mine"
    (parts.folder / "mine.txt").unlink()
    assert {path.relative_to(parts.folder): path.read_bytes() for path in parts.folder.rglob("*.*")} == before


def test_partition_graph_makes_them_too(whole, parts, tmp_path):
    graphwire.replicate(parts.config, "5%", by="degree", fanouts=FANOUTS, batch_size=BATCH)
    made = divide(whole, tmp_path / "again", replicate="5%", replicate_by="degree", fanouts=FANOUTS, batch_size=BATCH,
                  memory=2**40)
    for path in parts.folder.rglob("*.*"):
        assert (made.parent / path.relative_to(parts.folder)).read_bytes() == path.read_bytes()


def test_edge_types_have_fanouts_of_their_own(tmp_path):
    draw = np.random.default_rng(8)
    edges = {("user", "sees", "film"): (draw.integers(0, 90, 900), draw.integers(0, 60, 900)),
             ("tag", "of", "film"): (draw.integers(0, 30, 300), draw.integers(0, 60, 300))}
    features = {ntype: {"x": draw.random((count, 3), dtype=np.float32)}
                for ntype, count in (("user", 90), ("film", 60), ("tag", 30))}
    config = graphwire.partition_graph(edges, "films", 2, tmp_path / "films", node_features=features, method="random")
    graphwire.replicate(config, "100%", fanouts={("user", "sees", "film"): [5]}, ntype="film")
    assert len(read_index(config.parent, 0, "user")) > 0
    assert len(read_index(config.parent, 0, "tag")) == 0  # no hop samples them
    assert len(read_index(config.parent, 0, "film")) == 0  # the seeds are the part's own
    with pytest.raises(RuntimeError, match='"cat"'):
        graphwire.replicate(config, "5%", fanouts={"cat": [5]})


def test_types_without_nodes_have_none(tmp_path):
    draw = np.random.default_rng(2)
    edges = {("a", "to", "a"): (draw.integers(0, 40, 300), draw.integers(0, 40, 300)),
             ("none", "to", "a"): (np.zeros(0, int), np.zeros(0, int))}
    features = {"a": {"feat": draw.random((40, 3))}, "none": {"feat": np.zeros((0, 3))}}
    config = graphwire.partition_graph(edges, "x", 2, tmp_path / "parts", node_features=features, method="random",
                                       num_nodes={"a": 40, "none": 0}, replicate="50%", fanouts=[9])
    assert list(json.loads(config.read_text())["replicas"]) == ["node/a/feat"]
    for names in ([], ["feat"]):
        graphwire.replicate(config, "20%", fanouts=[9], features=names)
        assert len(read_index(config.parent, 0, "a")) == 8
        run("verify", config)
    with pytest.raises(RuntimeError, match="have no nodes"):
        graphwire.replicate(config, "20%", fanouts=[9], features="none:feat")


def test_clients_of_a_mapped_part_copy_them(parts, tmp_path):
    seeds = parts.seeds(0)
    with graphwire.open(parts.config) as graph:
        expected = [np.asarray(batch.x).tobytes() for batch in graphwire.NodeLoader(
            graph, seeds, FANOUTS, features="feat", batch_size=BATCH, shuffle=True, seed=9, world=1)]
    saved = []
    for rows in ("0%", "10%"):
        graphwire.replicate(parts.config, rows, by="epochs:1", fanouts=FANOUTS, batch_size=BATCH, seed=9)
        servers = Servers(parts.config, PARTS, tmp_path)
        try:
            for part in (1, 2):  # as on other hosts
                servers.end(part)
                servers.words = ("--transport", "tcp")
                servers.start(part)
            with graphwire.open(servers=servers.addresses) as graph:
                got = [np.asarray(batch.x).tobytes() for batch in graphwire.NodeLoader(
                    graph, seeds, FANOUTS, features="feat", batch_size=BATCH, shuffle=True, seed=9, world=1)]
            with graphwire.open(servers=servers.addresses) as graph:  # without the batches ahead of an epoch's end
                for batch in graphwire.NodeLoader(graph, seeds, FANOUTS, batch_size=BATCH, shuffle=True, seed=9,
                                                  world=1):
                    graph.feature("feat")[batch.nodes["_N"]]
                saved.append(graph.stats())
            shown = json.loads(run("stat", "--json", servers.addresses[0]))
        finally:
            for part in range(PARTS):
                servers.end(part)
        assert got == expected
    assert saved[0]["replica_rows"] == 0
    counts = np.where(parts.own(0), 0, parts.counted(0, 1, 9))
    hits = int(counts[read_index(parts.folder, 0)].sum())  # the loader's own epoch was counted
    assert saved[1]["replica_rows"] == hits > 0
    assert saved[1]["replica_bytes"] == hits * 24
    assert str(shown).count("replica_rows") == 1


def test_the_doctor_foretells_narrow_rows(whole, divided, tmp_path):
    def means(config):
        text = run("doctor", "--part-config", config, "--fanouts", "4,3", "--batch-size", BATCH, "--features", "feat",
                   "--memory", "1Gi", "--json")
        found = json.loads(text)
        return found, {(row["means"], row.get("by"), row["value"]): row for row in found["means"]}

    _, wide = means(divided)
    for name in ("float16", "int8_row"):
        found, narrow = means(divide(whole, tmp_path / name, store={"feat": name}))
        told, none = wide["narrow", name, 0], narrow["none", None, 0]
        assert (told["rows"], told["samples"]) == (none["rows"], none["samples"]) and none["rows"] > 0
        assert told["memory"] == wide["disk", None, 0]["memory"] - narrow["disk", None, 0]["memory"]
        assert all(fit["fits"] and fit["samples"] == 0 for fit in found["fits"])


@pytest.mark.parametrize("arguments, error", [
    ({"rows": "five"}, ValueError), ({"rows": -1}, ValueError), ({"rows": 2.5}, TypeError),
    ({"rows": "5%", "fanouts": [1.5]}, TypeError), ({"rows": "5%", "fanouts": "4,3"}, TypeError),
    ({"rows": "5%", "fanouts": {}}, ValueError), ({"rows": "5%", "fanouts": {"_E": [1], "x": [1, 2]}}, ValueError),
    ({"rows": "5%", "fanouts": [1], "by": "luck"}, RuntimeError), ({"rows": "5%", "by": 3}, TypeError),
    ({"rows": "5%"}, RuntimeError), ({"rows": "5%", "fanouts": [2], "features": "no"}, RuntimeError),
    ({"rows": "5%", "fanouts": [2], "features": [3]}, TypeError),
    ({"rows": "5%", "fanouts": [2], "features": None}, TypeError), ({"rows": 2**63, "fanouts": [2]}, ValueError),
    ({"rows": "5%", "fanouts": [2], "mask": "no"}, RuntimeError),
    ({"rows": "5%", "fanouts": [2], "mask": "splits_mask"}, RuntimeError),
    ({"rows": "5%", "fanouts": [2], "ntype": "no"}, RuntimeError),
])
def test_wrong_arguments_are_refused(parts, arguments, error):
    with pytest.raises(error) as found:
        graphwire.replicate(parts.config, **arguments)
    assert "\n" not in str(found.value)
    assert json.loads(parts.config.read_text()) == parts.json
