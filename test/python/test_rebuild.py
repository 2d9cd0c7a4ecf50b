"""Graphs of tables with keys, rebuilt from an earlier graph and resumed after a kill: the bytes are those of a build
from the beginning."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pty
import random
import re
import resource
import shutil
import signal
import subprocess
import sys

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM, TOP, run
from graphwire._files import database_command

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

sys.path.insert(0, str(TOP / "test/support"))

from database_changes import changed  # noqa: E402
from databases import Database  # noqa: E402

COUNT = int(os.environ.get("GRAPHWIRE_REBUILDS", "9"))
KILLS = int(os.environ.get("GRAPHWIRE_KILLS", "4"))


def bytes_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(autouse=True)
def handlers(monkeypatch):
    """The command writes the log to the present stderr, as in a process of its own."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    yield
    logging.getLogger().handlers.clear()


def build(folder, out, *words):
    logging.getLogger().handlers.clear()
    return database_command.main(["--tables", str(folder / "db.json"), "--out", str(out), *words])


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_rebuild_has_the_bytes_of_a_full_build(seed, tmp_path, capfd):
    """After random changes of the rows, the files and the description. What fails, fails with the same line, and leaves
    the earlier graph. Each third database is built by Python, in parts, and each other third with --resume."""
    draw, database = random.Random(f"rebuild {seed}"), Database(seed)
    database.write(tmp_path)
    assert build(tmp_path, tmp_path / "g", "--quiet", *["--resume"] * (seed % 3 == 1)) == 0
    for _ in range(2):
        done = [changed(database, tmp_path, draw) for _ in range(draw.randint(1, 3))]
        earlier = bytes_of(tmp_path / "g")
        capfd.readouterr()
        expected = build(tmp_path, tmp_path / "full", "--quiet"), capfd.readouterr().err
        found = build(tmp_path, tmp_path / "g", "--rebuild", "--quiet"), capfd.readouterr().err
        assert found == expected, done
        assert bytes_of(tmp_path / "g") == (earlier if expected[0] else bytes_of(tmp_path / "full")), done
        assert not list(tmp_path.glob(".*")), done
        if seed % 3 == 0 and not expected[0]:
            for whole in (None, tmp_path / "whole"):
                graphwire.partition_graph(graphwire.from_database(tmp_path / "db.json"), "db", 2, tmp_path / str(
                    bool(whole)), method="random", whole=whole)
            assert bytes_of(tmp_path / "True") == bytes_of(tmp_path / "False"), done
            assert bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "full"), done
        shutil.rmtree(tmp_path / "full", ignore_errors=True)


def shop(folder, orders=4, **more):
    """users <- orders <- lines, and items <- lines."""
    folder.mkdir(exist_ok=True)
    tables = {"users": pa.table({"id": [1, 2, 3], "x": [1, 2, 3]}), "items": pa.table({"id": ["a", "b"]}),
              "orders": pa.table({"id": range(orders), "user": [1] * orders,
                                  "at": pa.array([10] * orders, pa.timestamp("s"))}),
              "lines": pa.table({"order": [0, 1, 9], "item": ["a", "b", "b"]})}
    for name, rows in tables.items():
        pa.parquet.write_table(more.get(name, rows), folder / f"{name}.parquet")
    described = {"users": {"key": "id"}, "items": {"key": "id"}, "orders": {
        "key": "id", "foreign_keys": {"user": "users"}, "time": "at"},
        "lines": {"foreign_keys": {"order": "orders", "item": "items"}}}
    (folder / "db.json").write_text(json.dumps({"format": "graphwire-tables-1", "tables": {
        name: {"source": f"{name}.parquet", **one} for name, one in described.items()}}))


def test_what_is_taken_over(tmp_path, capfd):
    """A changed table takes its own edges with it, and those of the keys that refer to it. The arrays that are taken
    over are the files of the earlier graph."""
    shop(tmp_path)
    assert build(tmp_path, tmp_path / "g", "--quiet") == 0
    inode = os.stat(tmp_path / "g/part0/node/users/x.npy").st_ino
    for change, said in (({}, "4 of 4 tables, 6 of 6"), ({"orders": 5}, "3 of 4 tables, 2 of 6"),
                         ({"orders": 5, "lines": pa.table({"order": [1], "item": ["a"]})}, "3 of 4 tables, 2 of 6"),
                         ({"orders": 5, "items": pa.table({"id": ["b", "a", "c"]})}, "2 of 4 tables, 2 of 6")):
        shop(tmp_path, **change)
        capfd.readouterr()
        assert build(tmp_path, tmp_path / "g", "--rebuild") == 0
        out, err = capfd.readouterr()
        assert f"taken over: {said} edge types\n" in out and re.fullmatch(
            r"graphwire import: lines.order -> orders: 1 of 3 rows have no edge: .*\n|", err)
        assert os.stat(tmp_path / "g/part0/node/users/x.npy").st_ino == inode
    assert "users" in run("inspect", tmp_path / "g") and "g.npy" not in run("verify", tmp_path / "g")


def test_frames_in_memory(tmp_path, caplog):
    """Rows in memory are compared by their values, also those of categories."""
    import pandas as pd

    caplog.set_level("INFO", "graphwire")
    users = pd.DataFrame({"id": [1, 2], "kind": pd.Categorical(["a", "b"])})

    def make(users, **more):
        database = graphwire.from_database({"users": graphwire.Table(users, "id"), "links": graphwire.Table(
            {"a": [1, 2], "b": [2, 2]}, None, {"a": "users", "b": "users"})})
        caplog.clear()
        graphwire.partition_graph(database, "g", 1, tmp_path / "parts", whole=tmp_path / "whole", **more)
        return caplog.text

    assert "taken over" not in make(users)
    assert "taken over: 2 of 2 tables, 4 of 4 edge types" in make(users.copy())
    assert "taken over: 1 of 2 tables, 0 of 4" in make(users.assign(kind=pd.Categorical(["a", "c"])))
    assert "taken over: 1 of 2 tables, 0 of 4" in make(users.assign(kind=pd.Categorical.from_codes([1, 0], ["a", "c"])))
    assert "made with other options" in make(users, transpose=True)
    for word, value in (("weight", "x"), ("time", "x"), ("reverse", True), ("undirected", True)):
        with pytest.raises(ValueError, match=f"{word}: with whole=, types are made one at a time"):
            make(users, **{word: value})
    with pytest.raises(TypeError, match="whole: for the result of from_database"):
        graphwire.partition_graph((np.array([0]), np.array([1])), "g", 1, tmp_path / "x", whole=tmp_path / "y")
    with pytest.raises(ValueError, match="resume: pass whole="):
        graphwire.partition_graph((np.array([0]), np.array([1])), "g", 1, tmp_path / "x", resume=True)


def damage(path, change):
    data = bytearray(path.read_bytes())
    path.unlink()  # another graph may share the file
    path.write_bytes(change(data))


def flip(data):
    data[-1] ^= 1
    return data


def of_another(name):
    return lambda text: re.sub(name.encode(), lambda found: found.group(0)[:-1] + b"0", bytes(text), count=1)


@pytest.mark.parametrize("file, change, said", [
    ("part0/edge/orders__f2p_user__users/indices.npy", flip, "indices.npy: another digest than in the graph's JSON"),
    ("part0/node/users/orig_id.npy", flip, r"orig_id.npy(: another digest| is damaged)"),
    ("part0/node/orders/time.npy", lambda data: data[:-8], r"time.npy(: truncated| is damaged)"),
    ("part0/node/users/indptr.npy", flip, "indptr.npy: another digest"),
    ("part0/edge/orders__f2p_user__users/time.npy", lambda data: b"", "time.npy"),
    ("graph.build.json", lambda data: data[:-9], "its JSON, or the record of its build, is damaged"),
    ("graph.build.json", of_another(r'"graph_id": "\w+'), "the record of its build is that of another graph"),
    ("graph.build.json", of_another(r'"pyarrow": "[^"]+'), "made with other versions"),
    ("graph.build.json", None, "it has no record of its build")])
def test_an_earlier_graph_that_does_not_serve(file, change, said, tmp_path, capfd):
    """Nothing is taken over from it. One line says why."""
    shop(tmp_path)
    assert build(tmp_path, tmp_path / "g", "--quiet") == 0
    shop(tmp_path, lines=pa.table({"order": [0, 1], "item": ["a", "b"]}))
    assert build(tmp_path, tmp_path / "full", "--quiet") == 0
    damage(tmp_path / "g" / file, change) if change else (tmp_path / "g" / file).unlink()
    capfd.readouterr()
    assert build(tmp_path, tmp_path / "g", "--rebuild") == 0
    out, err = capfd.readouterr()
    assert re.fullmatch(rf"graphwire import: {tmp_path}/g: nothing is taken over from it: .*{said}.*\n", err), err
    assert bytes_of(tmp_path / "g") == bytes_of(tmp_path / "full") and "taken over: 0 of 4 tables, 0 of 6" in out


def test_what_is_no_earlier_graph_stays(tmp_path, capfd):
    """A folder of other files, a graph in parts, and a graph whose files are not known are not replaced, or anew."""
    shop(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("mine")
    assert build(tmp_path, tmp_path / "notes", "--rebuild") == 1
    assert "only a graph is replaced" in capfd.readouterr().err and os.listdir(tmp_path / "notes") == ["a.txt"]
    assert build(tmp_path, tmp_path / "g", "--rebuild", "--quiet") == 0  # no earlier graph: a first build
    (tmp_path / "g/mine.txt").write_text("mine")
    first = bytes_of(tmp_path / "g")
    assert build(tmp_path, tmp_path / "g", "--rebuild", "--quiet") == 0 and bytes_of(tmp_path / "g") == first
    damage(tmp_path / "g/graph.json", lambda data: data[:-9])
    assert build(tmp_path, tmp_path / "g", "--rebuild") == 1
    assert "which files are the graph's cannot be known" in capfd.readouterr().err
    for word in ("--weight=x", "--undirected"):
        for way in ("--rebuild", "--resume"):
            assert build(tmp_path, tmp_path / "g", way, word) == 2
            assert f"graphwire import: {way} makes types one at a time: leave out {word}\n" in capfd.readouterr().err


def combined(*words):
    done = subprocess.run([PROGRAM, "import", "combine", "--quiet", *map(str, words)], capture_output=True, text=True)
    assert "\n" not in done.stderr.strip()
    return done.returncode, done.stderr


@pytest.mark.parametrize("transpose", [[], ["--transpose"]])
def test_types_of_several_graphs(transpose, tmp_path):
    """`graphwire import combine`: the types of two graphs in any order, with offsets in the order of the edge types."""
    np.save(tmp_path / "a.npy", np.array([[0, 1], [2, 1], [1, 0]]))
    np.save(tmp_path / "b.npy", np.array([[0, 2], [1, 2], [2, 3]]))
    counts = ["--num-nodes", "u=3", "--num-nodes", "v=4", *transpose, "--edge-ids"]
    edges = {name: f"u:{name}:v={tmp_path}/{name}.npy" for name in "ab"}
    rows, narrow = np.random.default_rng(4), {"a": [], "b": []}
    for graph, of, count, kind, width, store in (("a", "v", 4, "f4", 3, "float16"), ("b", "u", 3, "f8", 5, "int8_row"),
                                                 ("a", "u:a:v", 3, "f8", 2, "bfloat16")):
        np.save(tmp_path / f"{graph}{width}.npy", rows.random((count, width)).astype(kind))
        what = "--edge-feature" if ":" in of else "--node-feature"
        narrow[graph] += [what, f"{of}:feat={tmp_path}/{graph}{width}.npy", "--store", f"{of}:feat={store}"]
    for name in "ab":
        run("import", "--edges", edges[name], "--reverse", *counts, *narrow[name], "--out", tmp_path / name)
    run("import", "--node-type", "v", "--node-type", "u", "--edges", edges["b"], "--edges", edges["a"], "--reverse",
        *counts, *narrow["a"], *narrow["b"], "--out", tmp_path / "whole")
    types = ["--node-type", f"v={tmp_path}/a", "--node-type", f"u={tmp_path}/b/graph.json"]
    for name in "ba":
        types += ["--edge-type", f"u:{name}:v={tmp_path}/{name}", "--edge-type", f"v:rev_{name}:u={tmp_path}/{name}"]
    assert combined(*types, "--out", tmp_path / "made") == (0, "")
    assert bytes_of(tmp_path / "made") == bytes_of(tmp_path / "whole")
    assert combined(*types[:-2], "--out", tmp_path / "one-way") == (0, "")
    run("verify", tmp_path / "one-way")
    np.save(tmp_path / "c.npy", np.array([[0, 9]]))
    run("import", "--edges", f"u:c:v={tmp_path}/c.npy", "--out", tmp_path / "c")
    run("partition", tmp_path / "a", "--num-parts", 2, "--method", "random", "--out", tmp_path / "parts")
    for words, said in ((["--edge-type", f"u:c:v={tmp_path}/c"], r"u:c:v: \S+/c has 1 nodes of u, and \S+ has 3"),
                        (["--edge-type", f"u:x:v={tmp_path}/a"], "u:x:v"), (["--node-type", "v"], "write TYPE=GRAPH"),
                        (["--node-type", f"v={tmp_path}/parts"], "a graph of 2 parts"),
                        (["--node-type", f"v={tmp_path}/b"], '"v"'), (["--record", "x=y"], "write tables=FILE"),
                        (["--record", f"build={tmp_path}/x.json"], "x.json"), (["--name", "a/b"], "a/b")):
        status, line = combined(*types, *words, "--out", tmp_path / "wrong")
        assert status in (1, 2) and re.search(said, line) and not (tmp_path / "wrong").exists(), line
    assert combined(*types[2:], "--out", tmp_path / "wrong")[1].endswith("no --node-type v\n")
    assert combined("--out", tmp_path / "wrong")[0] == 2
    assert combined("--node-type", f"u={tmp_path}/a", "--out", tmp_path / "nodes")[0] == 0


def test_keys_that_another_table_reads_as_times(tmp_path):
    """Texts of CSV are keys as they are, or times if a column that refers to them has times: both tables change."""
    (tmp_path / "days.csv").write_text("day\n2024-01-31T00:00:00Z\n2024-02-01T00:00:00\n")
    (tmp_path / "db.json").write_text(json.dumps({"format": "graphwire-tables-1", "tables": {
        "days": {"source": "days.csv", "key": "day"},
        "rows": {"source": "rows.parquet", "foreign_keys": {"day": "days"}}}}))
    columns = [pa.array([19753], pa.date32()), ["2024-01-31T00:00:00Z"], pa.array([1], pa.date32())]
    for number, day in enumerate(columns):
        pa.parquet.write_table(pa.table({"day": day}), tmp_path / "rows.parquet")
        assert build(tmp_path, tmp_path / "g", "--rebuild", "--quiet") == 0
        assert build(tmp_path, tmp_path / f"full{number}", "--name", "graph", "--quiet") == 0
        assert bytes_of(tmp_path / "g") == bytes_of(tmp_path / f"full{number}")


def test_progress(tmp_path):
    """A line with the rate and the remaining time on a terminal, and nothing in a pipe."""
    pytest.importorskip("tqdm")
    shop(tmp_path)
    for words in ([], ["--resume"], ["--rebuild", "--resume"]):
        mine, its = pty.openpty()
        process = command_of(tmp_path, tmp_path / "seen", *words, stderr=its)
        os.close(its)
        shown = b""
        with contextlib.suppress(OSError):  # the terminal's end
            while piece := os.read(mine, 4096):
                shown += piece
        os.close(mine)
        assert process.communicate() and process.returncode == 0
        assert re.search(rb"tables: +\d+%\|.*\| \d+/\d+ \[\d\d:\d\d<(\?|\d\d:\d\d), +\S+ rows/s\]", shown), shown
        process = command_of(tmp_path, tmp_path / "piped", *words)
        assert [line for line in process.communicate()[1].splitlines() if "rows have no edge" not in line] == []
        for name in ("seen", "piped"):
            shutil.rmtree(tmp_path / name)


# --- Interruptions. ---

def command_of(folder, out, *words, **options):
    """`graphwire import --tables`, running in a session of its own."""
    return subprocess.Popen([sys.executable, "-m", "graphwire", "import", "--tables", folder / "db.json", "--out", out,
                             *words], stdout=subprocess.PIPE, text=True, start_new_session=True,
                            **{"stderr": subprocess.PIPE, **options})


def pieces(out):
    with contextlib.suppress(FileNotFoundError):
        return sum(name.startswith("piece-") and "." not in name for name in os.listdir(
            out.parent / f".{out.name}.build"))
    return 0


SIGNALLED = """import os, sys
from graphwire._files import database_steps
from graphwire._files.database_command import main
whole, left, number = database_steps.run, int(sys.argv[1]), int(sys.argv[2])
def run(words, *others, **options):
    global left
    whole(words, *others, **options)
    left -= "piece" in words
    if "piece" in words and not left:
        os.killpg(0, number)
database_steps.run = run
sys.exit(main(sys.argv[3:]))"""


def signalled(number, pieces, folder, out):
    """`graphwire import --tables --resume`, which sends itself and its programs a signal when so many pieces exist."""
    return subprocess.Popen([sys.executable, "-c", SIGNALLED, str(pieces), str(int(number)), "--tables",
                             folder / "db.json", "--out", out, "--resume"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def killed(pieces, folder, out):
    """Kills a build when so many pieces exist."""
    process = signalled(signal.SIGKILL, pieces, folder, out)
    said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said


def paths_below(folder):
    return {os.path.join(root, name) for root, folders, files in os.walk(folder) for name in (*folders, *files)}


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_build_goes_on(seed, tmp_path):
    """Killed once or twice, when so many files have been seen, with its programs or alone, it goes on from the steps
    that are done. The graph appears complete or not at all."""
    draw, out = random.Random(f"kill {seed}"), tmp_path / "out/graph"
    shop(tmp_path)
    out.parent.mkdir()
    assert build(tmp_path, tmp_path / "full", "--quiet") == 0
    full, words = bytes_of(tmp_path / "full"), ["--resume"]
    for _ in range(draw.randint(1, 2)):
        process, seen, wanted = command_of(tmp_path, out, *words), set(), draw.randrange(1, 230)
        while process.poll() is None and len(seen) < wanted:
            seen |= paths_below(out.parent)
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if draw.random() < 0.5 else os.kill)(process.pid, signal.SIGKILL)
        process.communicate()
        assert not out.exists() or bytes_of(out) == full
    there, complete = pieces(out), out.exists()
    process = command_of(tmp_path, out, *words)
    said, log = process.communicate()
    assert process.returncode == 0 and bytes_of(out) == full, log
    if there and not complete and "complete already" not in said:
        nodes, edges = map(int, re.search(r"taken over: (\d+) of 4 tables, (\d+) of 6", said).groups())
        assert nodes >= min(there, 4) and (there < 6 or edges == 6), said
    while os.listdir(out.parent) != ["graph"]:  # guards remove the temporary folders of killed processes
        pass


def test_a_resumed_build_after_a_change(tmp_path, capfd):
    """Steps that depend on a change are made again, those in damaged pieces too. Without --resume the pieces go."""
    shop(tmp_path)
    out = tmp_path / "out/graph"
    out.parent.mkdir()
    killed(5, tmp_path, out)
    shop(tmp_path, orders=6)
    for piece in (out.parent / ".graph.build").glob("piece-*/part0/node/users/x.npy"):
        damage(piece, flip)
    assert build(tmp_path, tmp_path / "full", "--quiet") == 0
    capfd.readouterr()
    assert build(tmp_path, out, "--resume") == 0
    said = capfd.readouterr()
    assert "taken over: 2 of 4 tables, 0 of 6 edge types" in said.out and "x.npy: another digest" in said.err
    assert bytes_of(out) == bytes_of(tmp_path / "full")
    assert build(tmp_path, out, "--resume") == 0 and "is complete already" in capfd.readouterr().out
    shop(tmp_path)
    assert build(tmp_path, out, "--resume") == 1 and "exists already" in capfd.readouterr().err
    assert os.listdir(out.parent) == ["graph"]
    shutil.rmtree(out)
    killed(1, tmp_path, out)
    assert build(tmp_path, out, "--quiet") == 0
    while os.listdir(out.parent) != ["graph"]:
        pass


def test_two_builds_at_once(tmp_path, capfd):
    """The second one is refused, with --resume and without."""
    shop(tmp_path)
    first = signalled(signal.SIGSTOP, 1, tmp_path, tmp_path / "graph")
    assert os.WIFSTOPPED(os.waitpid(first.pid, os.WUNTRACED)[1]) and pieces(tmp_path / "graph") == 1
    for words in (["--resume"], []):
        assert build(tmp_path, tmp_path / "graph", *words) == 1
        assert re.fullmatch(r"graphwire import: \S+/graph: another build of it uses \S+: wait for its end\n",
                            capfd.readouterr().err)
    os.killpg(first.pid, signal.SIGCONT)
    first.communicate()
    assert first.returncode == 0 and not (tmp_path / ".graph.build").exists()


def test_a_full_disk_keeps_finished_steps(tmp_path):
    """One line, which says that the command goes on. No file may be larger than a limit, as on a full disk."""
    shop(tmp_path, lines=pa.table({"order": [0] * 30000, "item": ["a"] * 30000}))
    out = tmp_path / "out/graph"
    out.parent.mkdir()
    assert build(tmp_path, tmp_path / "full", "--quiet") == 0
    process = command_of(tmp_path, out, "--resume", "--quiet", preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (100_000, 100_000)))
    said = process.communicate()[1]
    assert process.returncode == 1 and re.fullmatch(
        r"graphwire import: \S+: .*File too large.*; finished steps are kept, and the same command goes on from them\n",
        said), said
    while os.listdir(out.parent) != [".graph.build"]:
        pass
    done = command_of(tmp_path, out, "--resume")
    assert "taken over: 3 of 4 tables" in done.communicate()[0] and bytes_of(out) == bytes_of(tmp_path / "full")
