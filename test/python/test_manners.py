"""Reprs, names of exceptions, the logger, and progress, over all public names."""

from __future__ import annotations

import builtins
import importlib.util
import io
import logging
import pickle
import re
import subprocess
import sys
import traceback

import graphwire
import pytest
from graphwire._base import progress as _progress
from graphwire._files import partition
from test_keywords import MODULES, public_names

# --- Reprs. ---


def opened_things(graph):
    """An object of each public class that this package makes for a graph of servers."""
    nodes = graphwire.NodeLoader(graph, None, [3, 2], batch_size=100, features="feat")
    edges = graphwire.EdgeLoader(graph, None, {"_E": [2, 2]}, batch_size=500, negatives=1, device="cpu")
    batch = next(iter(nodes))
    table = graphwire.Embedding(graph, "of_reprs", 4, ntype="_N")
    return {
        "Graph": graph, "Feature": graph.feature("feat"), "Tensor": table.tensor, "Embedding": table,
        "EdgeList": graph.neighbours([1, 2]), "EdgeIds": graphwire.EdgeIds(graph), "NodeLoader": nodes,
        "EdgeLoader": edges, "Batch": batch, "Block": batch.blocks[0], "Edges": batch.blocks[0].only,
        "optim.SparseSGD": graphwire.optim.SparseSGD([table], 0.1),
        "optim.SparseAdagrad": graphwire.optim.SparseAdagrad([table]),
        "optim.SparseAdam": graphwire.optim.SparseAdam([table]),
        "datasets.Dataset": graphwire.datasets.Dataset("small"), "HeldOut": graphwire.HeldOut(graph, [1, 2]),
        "ForeignKey": graphwire.ForeignKey("users"), "Table": graphwire.Table({"a": [0]}, "a", {"b": "users"}),
        "Sampler": graphwire.Sampler(graph, [2]), "trace": graphwire.trace("a\n" * 999),
        **({"Tables": graphwire.from_tables({("a", "r", "a"): {"s": [0, 1], "d": [1, 2]}}, src="s", dst="d"),
            "Database": graphwire.from_database({"a": graphwire.Table({"a": [0], "b": [0]}, "a", {"b": "a"})})}
           if importlib.util.find_spec("pyarrow") else {})}


def test_reprs_are_one_line_and_ask_no_server(own_servers):
    """The servers are suspended: what asks them fails."""
    graph = graphwire.open(servers=own_servers.addresses, transport="tcp", timeout=0.5, reconnect=0.5, job="reprs")
    things = opened_things(graph)
    classes = {name for name, thing in public_names("graphwire").items()
               if isinstance(thing, type) and not issubclass(thing, Exception)}
    assert classes - things.keys() <= {"Tables", "Database"}  # they need pyarrow
    own_servers.stop()
    for name, thing in things.items():
        text = repr(thing)
        assert re.match(rf"<graphwire\.{name}[ :>]", text) and text.endswith(">"), text
        assert "\n" not in text and len(text) < 200, text
    own_servers.go_on()
    graph.delete_tensor("of_reprs")
    graph.close()
    assert repr(things["NodeLoader"]).startswith("<graphwire.NodeLoader ")  # of a closed graph


def test_reprs_of_loaders_name_their_work(rmat, graph):
    loader = graphwire.NodeLoader(rmat, range(300), [15, 10], batch_size=64, device="cpu")
    assert repr(loader) == f"<graphwire.NodeLoader {rmat.name}: 300 seed nodes, fanouts [15, 10], batches of 64 on cpu>"
    loader.close()
    assert "300 seed nodes" in repr(loader)
    several = graphwire.EdgeLoader(graph, {"cites": range(9), "writes": None}, [2])
    assert f"{9 + graph.num_edges('writes')} seed edges, fanouts [2], batches of 1000>" in repr(several)
    long = {etype: list(range(12)) for etype in graph.etypes}
    assert len(repr(graphwire.NodeLoader(graph, None, long, ntype="paper"))) < 300


# --- Exceptions. ---

@pytest.mark.parametrize("module", MODULES)
def test_exceptions_are_named_by_where_they_are_found(module):
    """The name in a traceback can be imported, and is the shortest one: that of a module with public names."""
    for name, thing in public_names(module).items():
        if not (isinstance(thing, type) and issubclass(thing, Exception)):
            continue
        assert thing.__module__ in MODULES and f"{thing.__module__}." in f"{module}.", thing
        assert getattr(sys.modules[thing.__module__], name) is thing
        made = thing("GW_INVALID", "words") if issubclass(thing, graphwire.GraphwireError) else thing("words")
        assert "".join(traceback.format_exception_only(thing, made)) == f"{thing.__module__}.{name}: words\n"
        again = pickle.loads(pickle.dumps(made))
        assert type(again) is thing and again.args == made.args and vars(again) == vars(made)


def test_there_are_exceptions():
    names = [name for name, thing in public_names("graphwire").items()
             if isinstance(thing, type) and issubclass(thing, graphwire.GraphwireError)]
    assert len(names) == 7 and all(getattr(graphwire, name).__module__ == "graphwire" for name in names)


# --- The logger. ---

PROGRAM_LINES = """2026-01-02T03:04:05.678Z warn edges.csv: its header names the columns src and dst
2026-01-02T03:04:05.678Z error bad
reading edges 10.0 M of 40.0 M (25 %) edges, 2.00 M edges/s
parse: 8 B in 81.2 us
"""


@pytest.fixture
def fake_program(tmp_path, monkeypatch):
    """A program that writes PROGRAM_LINES and ends with the status in its first argument."""
    path = tmp_path / "program"
    (tmp_path / "lines").write_text(PROGRAM_LINES)
    path.write_text(f"#!/bin/sh\ncat {tmp_path}/lines >&2\nexit $1\n")
    path.chmod(0o755)
    monkeypatch.setenv("GRAPHWIRE", str(path))


def test_messages_of_the_program_go_to_the_logger(fake_program, caplog, capfd):
    with caplog.at_level(logging.DEBUG, "graphwire"):
        partition.run(["0"], {"edges.csv": "edges of _N"})
    assert [(one.name, one.levelname, one.message) for one in caplog.records] == [
        ("graphwire", "WARNING", "edges of _N: its header names the columns src and dst"),
        ("graphwire", "ERROR", "bad"), ("graphwire", "INFO", "parse: 8 B in 81.2 us")]
    assert capfd.readouterr() == ("", "")
    with pytest.raises(RuntimeError, match=r"^parse: 8 B in"):
        partition.run(["3"])


def test_the_package_prints_nothing_itself(tmp_path):
    """Messages that a program must see are warnings of the logger, which Python prints to stderr unless the program
    sets a handler."""
    code = ("import logging, sys, graphwire\n"
            "log = logging.getLogger('graphwire'); assert not log.handlers and log.propagate\n"
            "graphwire.partition_graph(([0, 1], [1, 0]), 'g', 1, sys.argv[1], method='random')\n")
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "parts"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- Progress. ---

class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_shows_the_programs_progress(fake_program, monkeypatch):
    pytest.importorskip("tqdm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    partition.run(["0"], progress=_progress.wanted(None))
    assert "25%" in screen.getvalue() and "reading edges" in screen.getvalue()


WORK = {
    "partition_graph": lambda graph, folder, **more: graphwire.partition_graph(
        ([0, 1], [1, 0]), "g", 1, folder / "parts", method="random", **more),
    "datasets.Dataset.partition": lambda graph, folder, **more: graphwire.datasets.edge_list(
        edges_in(folder)).partition(1, folder / "parts", method="random", **more),
    "save": lambda graph, folder, **more: graphwire.save(graph.feature("feat"), folder / "rows.csv", **more),
}


def edges_in(folder):
    (folder / "e.txt").write_text("0 1\n1 0\n")
    return folder / "e.txt"


@pytest.mark.parametrize("work", WORK)
def test_progress_is_shown_to_persons_only(work, rmat, tmp_path, monkeypatch):
    pytest.importorskip("tqdm")
    for screen, more, expected in ((Terminal(), {}, True), (Terminal(), {"progress": False}, False),
                                   (io.StringIO(), {}, False), (io.StringIO(), {"progress": True}, True)):
        folder = tmp_path / f"{id(screen)}"
        folder.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", screen)
            WORK[work](rmat, folder, **more)
        assert bool(screen.getvalue()) == expected, (more, screen.getvalue())
    with pytest.raises(TypeError, match="progress"):
        WORK[work](rmat, tmp_path, progress="yes")


def test_without_tqdm_there_is_no_bar(monkeypatch, tmp_path, rmat):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    real = builtins.__import__

    def lacking(name, *rest):
        if name.split(".")[0] == "tqdm":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", lacking)
    for name, work in WORK.items():
        (tmp_path / name).mkdir()
        work(rmat, tmp_path / name, progress=True)
    assert screen.getvalue() == ""


# --- Epochs. ---

def of(loader):
    return [batch.digest() for batch in loader]


@pytest.mark.parametrize("kind", [graphwire.NodeLoader, graphwire.EdgeLoader])
def test_loops_run_the_epoch_that_is_set(rmat, kind):
    def make():
        return kind(rmat, range(250), [3, 2], batch_size=100, shuffle=True, seed=3)

    loader = make()
    expected = [of(loader) for _ in range(4)]
    assert len({tuple(some) for some in expected}) == 4
    other = make()
    for epoch in (2, 0, 3, 3, 1):
        other.set_epoch(epoch)
        assert other.state_dict()["epoch"] == epoch and other.state_dict()["step"] == 0
        assert of(other) == expected[epoch]
    assert of(other) == expected[2]  # the one after the last
    for epoch in range(3):  # the usual loop
        other.set_epoch(epoch)
        assert of(other) == expected[epoch] and len(other) == 3

    first = make()
    for _ in range(2):
        for _ in first:
            pass
    going = iter(first)
    next(going)
    resumed = make()
    resumed.load_state_dict(first.state_dict())
    resumed.set_epoch(2)  # the epoch of the state: the position stays
    assert of(resumed) == expected[2][1:]
    first.set_epoch(0)  # the loop under way continues
    assert [batch.digest() for batch in going] == expected[2][1:]
    assert of(first) == expected[0]

    for wrong, error in ((-1, ValueError), (2**64, ValueError), ("1", TypeError), (True, TypeError), (1.0, TypeError)):
        with pytest.raises(error, match=r"^epoch"):
            first.set_epoch(wrong)
    first.close()
    with pytest.raises(ValueError, match="closed"):
        first.set_epoch(1)
