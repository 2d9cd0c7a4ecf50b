"""Lists sorted by times of edges or of their sources, with fences and indexes: --time beside NumPy."""

import json
import subprocess

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM, TOP, run

TYPES = [("a", "r", "b"), ("b", "s", "b"), ("a", "q", "a"), ("b", "z", "a")]


def key(times):
    """The 64-bit key of each time (core/numbers/time_key.h)."""
    if times.dtype.kind == "i":
        return times.astype(np.int64)
    bits = (times.astype(np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


class Parts:
    """The arrays of a graph's parts, read without Graphwire."""

    def __init__(self, folder):
        self.folder = folder
        self.json = json.loads(next(folder.glob("*.json")).read_text())
        self.parts = range(self.json["num_parts"])

    def __call__(self, part, name):
        return np.load(self.folder / self.json[f"part-{part}"][name]["file"])

    def digests(self):
        return {(part, name): array["digest"] for part in self.parts
                for name, array in self.json[f"part-{part}"].items()}


class Whole:
    """A random graph: several edge types share a node feature; ties, extreme values and empty types."""

    def __init__(self, folder, rng):
        self.folder, self.rng = folder, rng
        self.counts = {"a": int(rng.integers(1, 300)), "b": int(rng.integers(1, 150))}
        self.nodes = {ntype: {"t": self.times(count)} if rng.random() < 0.7 else {}
                      for ntype, count in self.counts.items()}
        self.nodes["b" if self.nodes["a"] else "a"]["u"] = self.times(self.counts["b" if self.nodes["a"] else "a"])
        self.edges = {}
        for src, rel, dst in TYPES:
            count = int(rng.choice([0, 3, 64, 700, 2000]))
            ends = np.stack([rng.integers(0, self.counts[src], count), rng.integers(0, self.counts[dst], count)], 1)
            self.edges[f"{src}:{rel}:{dst}"] = ends, {
                name: rows for name, rows in (("t", self.times(count)), ("w", rng.random(count)))
                if rng.random() < 0.5}
        if not any("t" in features for _, features in self.edges.values()):
            self.nodes["a"]["t"] = self.times(self.counts["a"])
        self.words = self._written()

    def times(self, count):
        dtype = np.dtype(self.rng.choice(["int64", "int32", "float64", "float32"]))
        found = self.rng.integers(-6, int(self.rng.integers(-5, 300)), count).astype(dtype)
        if dtype.kind == "f":
            found /= 2
            for value in (-0.0, np.inf, -np.inf):
                found[self.rng.random(count) < 0.05] = value
        elif count and self.rng.random() < 0.5:
            found[0], found[-1] = np.iinfo(dtype).min, np.iinfo(dtype).max
        return found

    def _saved(self, name, rows):
        np.save(self.folder / f"{name}.npy", rows)
        return self.folder / f"{name}.npy"

    def _written(self):
        words = ["--edge-ids", *(["--transpose"] if self.rng.random() < 0.5 else [])]
        for etype, (ends, features) in self.edges.items():
            np.savez(self.folder / f"{etype}.npz", src=ends[:, 0], dst=ends[:, 1])
            words += ["--edges", f"{etype}={self.folder / etype}.npz"]
            for name, rows in features.items():
                words += ["--edge-feature", f"{etype}:{name}={self._saved(f'{etype}-{name}', rows)}"]
        for ntype, count in self.counts.items():
            words += ["--num-nodes", f"{ntype}={count}"]
            for name, rows in self.nodes[ntype].items():
                words += ["--node-feature", f"{ntype}:{name}={self._saved(f'{ntype}-{name}', rows)}"]
        if self.rng.random() < 0.5:
            words.append("--reverse")
            for (src, rel, dst) in TYPES:
                ends, features = self.edges[f"{src}:{rel}:{dst}"]
                self.edges[f"{dst}:rev_{rel}:{src}"] = ends[:, ::-1], features
        return words

    def order(self, name):
        """{edge type: what --time NAME sorts its lists by, or ""}."""
        stem = name.removesuffix(".source")
        return {etype: name if name in features else f"{stem}.source" if stem in self.nodes[etype[0]] else ""
                for etype, (_, features) in self.edges.items()}


def check_lists(whole, parts, etype, order, ids, input_ties):
    src, rel, dst = etype.split(":")
    folder, (ends, features) = f"edge/{src}__{rel}__{dst}", whole.edges[etype]
    found = []
    for part in parts.parts:
        column = parts.json["indptr_columns"][dst].index(etype)
        indptr = parts(part, f"node/{dst}/indptr")[:, column].astype(np.int64)
        indices, rows = parts(part, f"{folder}/indices").astype(np.int64), parts(part, f"{folder}/orig_id")
        to = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)) + parts.json["node_map"][dst][part][0]
        keys = np.zeros(len(indices), np.int64)
        if order:
            keys = key(parts(part, f"{folder}/{order}"))
            assert np.array_equal(parts(part, f"{folder}/{order}.fence"), keys[::64])
        made = [name for name in parts.json[f"part-{part}"] if name.startswith(f"{folder}/")]
        assert [name for name in made if name.endswith(".fence")] == ([f"{folder}/{order}.fence"] if order else [])
        for name in made:
            if name.endswith(".source"):
                wanted = whole.nodes[src][name.split("/")[2].removesuffix(".source")][ids[src][indices]]
                assert wanted.dtype == parts(part, name).dtype and np.array_equal(wanted, parts(part, name))
        for name, wanted in features.items():
            assert np.array_equal(parts(part, f"{folder}/{name}"), wanted[rows])
        same, equal = np.diff(to) == 0, np.diff(keys) == 0
        assert np.all((keys[1:] > keys[:-1]) | (equal & (np.diff(indices) >= 0)) | ~same)
        ties = same & equal & (np.diff(indices) == 0)
        assert not input_ties or np.all(np.diff(rows.astype(np.int64))[ties] > 0)
        found.append(np.stack([ids[src][indices], ids[dst][to], rows], 1))
    found, wanted = np.concatenate(found), np.column_stack([ends, np.arange(len(ends))])
    assert np.array_equal(found[np.argsort(found[:, 2])], wanted)


def check(whole, folder, order, index, input_ties=True):
    """Every list, array and index of the graph in the folder; and the program's own checks."""
    run("verify", folder)
    parts = Parts(folder)
    ids = {ntype: np.concatenate([parts(part, f"node/{ntype}/orig_id") for part in parts.parts])
           for ntype in whole.counts}
    assert parts.json["order"] == {etype: [f"time:{by}", "src"] if by else ["src"] for etype, by in order.items()}
    assert parts.json["minor"] == (4 if any(order.values()) or index else 2)
    for etype in whole.edges:
        check_lists(whole, parts, etype, order[etype], ids, input_ties)
    for ntype, features in whole.nodes.items():
        for name in features:
            assert (f"node/{ntype}/{name}.times" in parts.json["part-0"]) == (name in index)
            for part in parts.parts if name in index else ():
                keys = key(parts(part, f"node/{ntype}/{name}"))
                rows = np.argsort(keys, kind="stable")
                assert np.array_equal(parts(part, f"node/{ntype}/{name}.times_nodes"), rows)
                assert np.array_equal(parts(part, f"node/{ntype}/{name}.times"), keys[rows])


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs(tmp_path, seed):
    """import and partition, with the time given to either, make the same lists of all dtypes in 1 to 8 parts."""
    whole = Whole(tmp_path, np.random.default_rng(seed))

    def made(command, source, name, *words):
        run(command, *source, *words, *(["--quiet"] if command == "import" else []), "--out", tmp_path / name)
        return tmp_path / name

    def divided(source, name, *words):
        return made("partition", [source], name, "--num-parts", seed + 1, "--method", "random", *words)

    plain, order = made("import", whole.words, "plain"), whole.order("t")
    check(whole, plain, whole.order("none"), ())
    by_import = made("import", whole.words, "sorted", "--time", "t")
    check(whole, by_import, order, "t")
    parts = divided(plain, "parts", "--time", "t")
    check(whole, parts, order, "t")
    kept = divided(by_import, "kept")
    check(whole, kept, order, "t")
    assert Parts(kept).digests() == Parts(parts).digests()
    again = divided(by_import, "again", "--time", "t")
    assert Parts(again).digests() == Parts(parts).digests()
    if any(whole.order("u").values()):  # the others keep their order
        mixed = {etype: by or order[etype] for etype, by in whole.order("u").items()}
        sources = [f"{etype}:u" for etype, by in whole.order("u").items() if by]
        typed = divided(by_import, "typed", *(word for name in sources for word in ("--time", name)))
        untyped = divided(by_import, "untyped", "--time", "u")
        assert Parts(typed).digests() == Parts(untyped).digests()
        check(whole, typed, mixed, "tu", input_ties=False)


def refused(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    assert done.returncode != 0 and not done.stdout
    return done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """a:r:b and b:s:b with features that can be times, and others; the import's words too."""
    top = tmp_path_factory.mktemp("plain")
    words = ["--num-nodes", "a=9", "--num-nodes", "b=5"]

    def saved(name, rows):
        np.save(top / f"{name}.npy", rows)
        return f"{name}={top / name}.npy"

    for etype, count in (("a:r:b", 20), ("b:s:b", 12)):
        words += ["--edges", saved(etype, np.stack([np.arange(count) % 5, np.arange(count) % 3], 1))]
    reals = np.arange(20) / 2
    reals[13] = np.nan
    for name, rows in {"a:r:b:t": np.arange(20), "a:r:b:nan": reals, "a:r:b:byte": np.zeros(20, np.uint8),
                       "b:s:b:big": np.zeros(12, np.uint64), "a:r:b:half": np.zeros(20, np.float16),
                       "a:r:b:wide": np.zeros((20, 2)), "a:r:b:flag": np.zeros(20, bool)}.items():
        words += ["--edge-feature", saved(name, rows)]
    for name, rows in {"a:t": np.arange(9), "b:year": np.arange(5.0), "a:bad": np.where(np.arange(9) == 4, np.nan, 1),
                       "b:column": np.zeros((5, 1)), "b:word": np.zeros(5, np.int16), "a:long" + "g" * 48: np.arange(9)
                       }.items():
        words += ["--node-feature", saved(name, rows)]
    run("import", *words, "--out", top / "whole", "--quiet")
    return top / "whole", words


@pytest.mark.parametrize("words, says", [
    (["none"], 'no edge type and no node type has this feature; times can be: a:r:b:nan, a:r:b:t, a:bad'),
    (["none.source"], "has this feature"),
    (["b:s:b:t"], "has this feature"),
    (["x:y:z:t"], "has this feature"),
    (["a:b"], "write NAME or SRC:REL:DST:NAME"),
    (["nan"], 'edge 11 (input row 13) of a:r:b: time "nan" is nan'),
    (["bad"], 'node 4 (input id 4) of a: time "bad" is nan'),
    (["byte"], "edge feature \"byte\" of a:r:b: uint8 [20] cannot be a time: a time is one number for each edge"),
    (["big"], "uint64 [12] cannot be a time"),
    (["half"], "float16 [20] cannot be a time"),
    (["flag"], "bool [20] cannot be a time"),
    (["wide"], "float64 [20, 2] cannot be a time"),
    (["column"], "node feature \"column\" of b: float64 [5, 1] cannot be a time: a time is one number for each node"),
    (["word.source"], "int16 [5] cannot be a time"),
    (["t", "bad"], 'edge type a:r:b has two times, "t" and "bad.source": name one with a:r:b:NAME'),
    (["a:r:b:t", "a:r:b:t.source"], "edge type a:r:b has two times"),
    (["long" + "g" * 48], "the name of a time has at most 51 characters"),
    (["orig_id"], "the format uses this name itself"),
    (["indices"], "has this feature"),
])
def test_what_cannot_be_a_time(plain, tmp_path, words, says):
    words = [word for name in words for word in ("--time", name)]
    line = refused("partition", plain[0], "--num-parts", 2, "--method", "random", *words, "--out", tmp_path / "parts")
    assert says in line, line
    assert not (tmp_path / "parts").exists()
    if "input" in says or "write" in says or "times can be" in says:
        return
    line = refused("import", *plain[1], *words, "--out", tmp_path / "parts", "--quiet")
    assert says in line or "is not a feature of edges or nodes" in line, line


def test_import_names_the_row(plain, tmp_path):
    for name, says in (("nan", "nan.npy: row 13 of a:r:b"), ("bad", "bad.npy: node 4 of a")):
        assert says in refused("import", *plain[1], "--time", name, "--out", tmp_path / "parts", "--quiet")


def test_names_of_such_arrays_are_taken(plain, tmp_path):
    zeros = tmp_path / "zeros.npy"
    np.save(zeros, np.zeros(20))
    for name in ("x.source", "x.fence"):
        assert "reserves this name" in refused("import", *plain[1], "--edge-feature", f"a:r:b:{name}={zeros}", "--out",
                                               tmp_path / "parts", "--quiet")
    np.save(zeros, np.zeros(9))
    for name in ("x.times", "x.times_nodes"):
        assert "reserves this name" in refused("import", *plain[1], "--node-feature", f"a:{name}={zeros}", "--out",
                                               tmp_path / "parts", "--quiet")


def test_an_edge_feature_comes_before_its_sources(plain, tmp_path):
    """One line says so; NAME.source, and a word with the edge type, decide otherwise."""
    orders = {}
    for name in ("t", "t.source", "a:r:b:t.source"):
        done = subprocess.run([PROGRAM, "partition", plain[0], "--num-parts", "2", "--method", "random", "--time", name,
                               "--out", tmp_path / name], capture_output=True, text=True)
        assert done.returncode == 0 and len(done.stderr.splitlines()) == (name == "t"), done.stderr
        orders[name] = json.loads((tmp_path / name / "graph.json").read_text())["order"]["a:r:b"][0]
    assert orders == {"t": "time:t", "t.source": "time:t.source", "a:r:b:t.source": "time:t.source"}


def test_sorted_lists_with_relations_are_refused(tmp_path):
    (tmp_path / "kg.tsv").write_text("a\tr\tb\nb\ts\ta\n")
    np.save(tmp_path / "t.npy", np.arange(2))
    words = ["--triples", tmp_path / "kg.tsv", "--edge-feature", f"t={tmp_path / 't.npy'}"]
    run("import", *words, "--out", tmp_path / "whole", "--quiet")
    says = 'lists with relations are sorted by relation, and cannot also be sorted by the time "t"'
    assert says in refused("import", *words, "--time", "t", "--out", tmp_path / "other", "--quiet")
    assert says in refused("partition", tmp_path / "whole", "--num-parts", 1, "--time", "t", "--out",
                           tmp_path / "other")


def test_a_sorted_graph_of_an_older_version(tmp_path):
    """It has no fence, and is read without one."""
    run("verify", TOP / "test/formats/0.1/types")
    old = Parts(TOP / "test/formats/0.1/types")
    assert ["time:time", "src"] in old.json["order"].values() and not any(
        name.endswith(".fence") for name in old.json["part-0"])
    with graphwire.open(TOP / "test/formats/0.1/types") as graph:
        assert "time" in {feature.name for feature in graph.features}


def test_arrays_of_times_are_no_features(plain, tmp_path):
    run("partition", plain[0], "--num-parts", 2, "--method", "random", "--time", "t", "--time", "year", "--out",
        tmp_path / "parts")
    with graphwire.open(tmp_path / "parts", numpy=True) as graph, graphwire.open(plain[0], numpy=True) as before:
        assert list(map(repr, graph.features)) == list(map(repr, before.features))


@pytest.mark.parametrize("unit, stored", [*((unit, unit) for unit in ("D", "s", "ms", "us", "ns")), ("M", "D"),
                                          ("W", "D"), ("h", "s"), ("10us", "us")])
def test_units_of_arrays(tmp_path, unit, stored):
    """Of datetime64; what graphs cannot store, they store exactly in a finer unit. Partitions keep the unit."""
    ends, times = np.arange(6) % 3, (np.arange(6) - 2).astype(f"M8[{unit}]")
    path = graphwire.partition_graph((ends, ends[::-1]), "g", 2, tmp_path / "parts", method="random", time="t",
                                     node_features={"t": times[:3]}, edge_features={"seen": times})
    parts = Parts(path.parent)
    edge = "edge/_N___E___N"
    assert parts.json["units"] == {f"{edge}/seen": stored, f"{edge}/t.source": stored, "node/_N/t": stored}
    for part in parts.parts:
        rows = parts(part, f"{edge}/orig_id")
        assert np.array_equal(parts(part, f"{edge}/seen").view(f"M8[{stored}]"), times[rows])
        assert np.array_equal(parts(part, f"{edge}/t.source").view(f"M8[{stored}]"), times[ends[rows]])
    assert [time["unit"] for time in json.loads(run("inspect", "--json", path))["times"]] == [stored] * 2


@pytest.mark.parametrize("times, says", [
    (np.array(["2020", "NaT", "2021"], "M8[us]"), "t of _N: row 1 is NaT: fill in what is missing"),
    (np.array([1, 2, 3], "m8[s]"), "t of _N: durations"),
    (np.array([1, 2, 3]).astype("M8"), "t of _N: row 0: times of datetime64 without a unit"),
    (np.array([0, 1, 1000], "M8[ps]"), "t of _N: row 1 is 1970-01-01T00:00:00.000000000001: datetime64[ns] does not"),
    (np.array([[1, 2], [3, 4], [5, 6]], "M8[s]"), "int64 [3, 2] cannot be a time"),
])
def test_arrays_that_cannot_be_times(tmp_path, times, says):
    with pytest.raises((ValueError, TypeError, RuntimeError)) as error:
        graphwire.partition_graph((np.arange(3), np.arange(3)), "g", 1, tmp_path / "parts", time="t",
                                  node_features={"t": times})
    assert says in str(error.value)


def test_files_that_lack_a_time(plain, tmp_path):
    """NaT in a file is refused, whether lists are sorted by it or not: a draw would take it for the first time."""
    np.save(tmp_path / "day.npy", np.array([*range(19), "NaT"], "M8[D]"))
    words = [*plain[1], "--edge-feature", f"a:r:b:day={tmp_path / 'day.npy'}"]
    for sorts in ((), ("--time", "day")):
        assert 'day.npy: row 19 of a:r:b: time "day" is nat: fill it in, or leave out the row' in refused(
            "import", *words, *sorts, "--out", tmp_path / "no", "--quiet")
    np.save(tmp_path / "two.npy", np.array([*range(9), "NaT"], "M8[s]").reshape(5, 2))
    assert 'two.npy: node 4 of b: time "two" is nat' in refused(
        "import", *plain[1], "--node-feature", f"b:two={tmp_path / 'two.npy'}", "--out", tmp_path / "no", "--quiet")
    edges = ["--edges", next(word for word in words if word.startswith("a:r:b=")), "--num-nodes", "a=9"]
    assert "row 19" in refused("import", *edges, "--edge-time", f"a:r:b={tmp_path / 'day.npy'}", "--out",
                               tmp_path / "no", "--quiet")
    np.save(tmp_path / "pairs.npy", np.zeros((3, 2), "M8[D]"))
    assert "times of datetime64, not whole numbers" in refused("import", "--from", tmp_path / "pairs.npy", "--out",
                                                               tmp_path / "no", "--quiet")


@pytest.mark.parametrize("words, order, times", [
    (["--time", "t"], "time:t", ["edge/_N___E___N/t"]),
    (["--node-time", "t"], "time:t.source", ["edge/_N___E___N/t.source", "node/_N/t"]),
    (["--time", "t", "--node-time", "u"], "time:t", ["edge/_N___E___N/t"]),
    (["--time", "t", "--undirected"], "time:t", ["edge/_N___E___N/t"]),
])
def test_generated_times(tmp_path, words, order, times):
    """The same bytes with any number of threads; inspect shows the first and the last time, and the added bytes."""
    for threads in (1, 3):
        run("generate", "rmat", "--scale", 8, *words, "--threads", threads, "--out", tmp_path / str(threads), "--quiet")
        run("verify", tmp_path / str(threads))
    parts = Parts(tmp_path / "1")
    assert parts.digests() == Parts(tmp_path / "3").digests()
    assert list(parts.json["order"].values()) == [[order, "src"]]
    shown = json.loads(run("inspect", "--json", tmp_path / "1"))["times"]
    assert [time["array"] for time in shown] == times
    for time in shown:
        found = parts(0, time["array"])
        assert (time["first"], time["last"]) == (found.min(), found.max()) and 0 <= time["first"]
        added = [f"{time['array']}{end}" for end in (".fence", ".times", ".times_nodes")]
        added += [time["array"]] if time["array"].endswith(".source") else []
        assert time["added_bytes"] == sum(parts(0, name).nbytes for name in added if name in parts.json["part-0"])
        assert time["array"] in run("inspect", tmp_path / "1")
