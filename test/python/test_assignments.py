"""Parts that another partitioner has assigned: partition_graph(assignment=…), in each form of file."""

import re

import graphwire
import numpy as np
import pytest
from graphwire._files import partition

EDGES = {("user", "rates", "film"): (np.arange(300) % 60, np.arange(300) * 7 % 90),
         ("film", "like", "film"): (np.arange(200) % 90, np.arange(200) * 11 % 90)}
COUNTS = {"user": 60, "film": 90}


def parts_of(seed, parts):
    random = np.random.default_rng(seed)
    return {ntype: random.integers(0, parts, count) for ntype, count in COUNTS.items()}


def lines(rows, path):
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


def files(form, given, folder):
    """The argument that names the parts in a form."""
    folder.mkdir()
    together = np.concatenate([given[ntype] for ntype in COUNTS])
    if form == "arrays":
        return given
    if form == "npy":
        for ntype, rows in given.items():
            np.save(folder / f"{ntype}.npy", rows.astype(np.uint8 if ntype == "user" else np.int16))
        return {ntype: folder / f"{ntype}.npy" for ntype in given}
    if form == "folder":  # as DGL's and GraphStorm's pipelines write it
        (folder / "partition_meta.json").write_text('{"algo_name": "random", "num_parts": 3, "version": "1.0.0"}')
        for ntype, rows in given.items():
            lines(rows, folder / f"{ntype}.txt")
        return str(folder)
    if form == "all types":  # as METIS writes it
        return lines(together, folder / "graph.part.3")
    shuffled = np.random.default_rng(1).permutation(len(together))  # "node part", as ParMETIS's ranks write it
    return lines([f"{node} {together[node]}" for node in shuffled], folder / "graph_part.3")


@pytest.mark.parametrize("form", ["arrays", "npy", "folder", "all types", "pairs"])
def test_each_node_is_in_its_part(form, tmp_path):
    given = parts_of(3, 3)
    argument = files(form, given, tmp_path / "files")
    config = graphwire.partition_graph(EDGES, "g", 3, tmp_path / "parts", assignment=argument)
    with graphwire.open(config, numpy=True) as graph:
        for ntype, parts in given.items():
            original = graph.feature("orig_id", ntype)
            for part in range(3):
                found = original[np.array(graph.part_range(part, ntype))]
                assert sorted(found) == np.flatnonzero(parts == part).tolist(), (ntype, part)


def test_forms_give_the_same_bytes(tmp_path):
    given, folders = parts_of(4, 3), []
    for form in ("arrays", "npy", "folder", "all types", "pairs"):
        argument = files(form, given, tmp_path / form)
        folders.append(graphwire.partition_graph(EDGES, "g", 3, tmp_path / f"parts {form}", assignment=argument).parent)
    first = {path.relative_to(folders[0]): path.read_bytes() for path in folders[0].rglob("*") if path.is_file()}
    for other in folders[1:]:
        assert {path.relative_to(other): path.read_bytes() for path in other.rglob("*") if path.is_file()} == first


def test_parts_may_be_empty(tmp_path):
    given = {ntype: np.zeros(count, int) for ntype, count in COUNTS.items()}
    config = graphwire.partition_graph(EDGES, "g", 3, tmp_path / "parts", assignment=given)
    with graphwire.open(config) as graph:
        assert [len(graph.part_range(part, "user")) for part in range(3)] == [60, 0, 0]


GOOD = parts_of(5, 3)
WRONG = [
    ({"film": GOOD["film"]}, "assignment: nodes of user have no part"),
    ({**GOOD, "x": np.zeros(3, int)}, "assignment: the graph has no node type x"),
    ({**GOOD, "user": np.zeros(7, int)}, "assignment: 7 rows for 60 nodes of user"),
    ({**GOOD, "user": np.full(60, 3)}, "assignment of user: row 0: part 3 does not exist: num_parts is 3"),
    ({**GOOD, "user": np.full(60, -1)}, "row 0: part -1 does not exist"),
    ({**GOOD, "user": np.zeros(60)}, "one integer or bool for each node, not float64"),
    ("two columns", r"line 150: this node has a line before"),
    ("beyond", r"line 1: this node does not exist"),
    ("short", r"149 rows for 150 nodes of all types"),
    ("words", r"line 2.*x"),
    ("wide", "a line has 3 fields: write PART, or NODE PART"),
    ("other parts", r"partition_meta\.json: its assignment is of 2 parts, and num_parts is 3"),
    ("half", r'has neither "user\.npy" nor "user\.txt"'),
    ("absent", r"absent"),
]


@pytest.mark.parametrize("given, error", WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_errors(given, error, tmp_path):
    together = np.concatenate([GOOD["user"], GOOD["film"]])
    rows = {"two columns": [f"{node} {together[node]}" for node in [*range(149), 0]],
            "beyond": [f"{node + 1} 0" for node in reversed(range(150))],
            "short": together[1:], "words": [together[0], "x", *together[2:]],
            "wide": ["1 2 3"] * 150}
    if isinstance(given, str) and given in ("other parts", "half"):
        folder = tmp_path / given
        folder.mkdir()
        if given == "other parts":
            (folder / "partition_meta.json").write_text('{"num_parts": 2}')
        lines(GOOD["film"], folder / "film.txt")
        given = folder
    elif isinstance(given, str):
        given = lines(rows[given], tmp_path / given) if given in rows else tmp_path / given
    with pytest.raises((ValueError, TypeError, RuntimeError), match=error):
        graphwire.partition_graph(EDGES, "g", 3, tmp_path / "parts", assignment=given)
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize("also", [{"balance_edges": True}, {"num_trainers_per_machine": 2},
                                  {"balance_nodes": {"user": np.arange(60) % 2}}])
def test_what_an_assignment_excludes(also, tmp_path):
    with pytest.raises(ValueError, match=re.escape(f"leave out {next(iter(also))}")):
        graphwire.partition_graph(EDGES, "g", 3, tmp_path / "parts", assignment=GOOD, **also)


def test_the_memory_also_limits_the_lists_of_a_part(tmp_path, monkeypatch):
    """Each program gets it, and the parts do not depend on it."""
    given, ran, run = parts_of(3, 2), [], partition.run
    monkeypatch.setattr(partition, "run", lambda words, *others, **named: (ran.append(list(map(str, words))),
                                                                           run(words, *others, **named)))
    for name, options in (("whole", {}), ("little", {"memory": 1})):
        graphwire.partition_graph(EDGES, "g", 2, tmp_path / name, num_nodes=COUNTS, assignment=given, **options)
    assert [("--memory" in words, words[0]) for words in ran] == [
        (False, "import"), (False, "partition"), (True, "import"), (True, "partition")]
    whole, little = ({path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.npy")}
                     for name in ("whole", "little"))
    assert whole == little
