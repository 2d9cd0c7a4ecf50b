"""The trace (GRAPHWIRE_TRACE): a program's spans beside the library's, which server a batch waited for, a file for each
process, and whole events whatever ends a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import graphwire
import pytest
from conftest import PROGRAM, stopped

EPOCH = """
import graphwire, sys
parts, servers = sys.argv[1], sys.argv[2].split(",")
with graphwire.open(parts, servers=servers, transport="tcp") as graph:
    loader = graphwire.NodeLoader(graph, None, [10, 5], features="feat", labels="label", batch_size=500, shuffle=True,
                                  seed=42)
    for batch in loader:
        with graphwire.trace("forward"):
            with graphwire.trace("layer"):
                batch.blocks, batch.x
        print(batch.digest(), flush=True)
"""
WORKERS = """
import graphwire, sys, torch
class Rows(torch.utils.data.Dataset):
    def __init__(self, graph):
        self.graph = graph
    def __len__(self):
        return 40
    def __getitem__(self, i):
        with graphwire.trace("row"):
            return self.graph.gather("feat", [i])
if __name__ == "__main__":
    graph = graphwire.open(sys.argv[1])
    with graphwire.trace("main"):
        graph.gather("feat", [0])
    for rows in torch.utils.data.DataLoader(Rows(graph), batch_size=10, num_workers=2, multiprocessing_context="fork"):
        pass
"""
PYG = """
import graphwire, graphwire.pyg, sys
with graphwire.open(sys.argv[1], servers=sys.argv[2].split(","), transport="tcp") as graph:
    for batch in graphwire.pyg.NeighborLoader(graph, [10, 5], batch_size=500):
        pass
    for batch in graphwire.NodeLoader(graph, None, [5], features="feat", batch_size=2000):
        batch.to_pyg()
"""


def events_of(file, ended=True):
    """The events of a file. ended=False: if the closing bracket is missing, nothing else is."""
    text = file.read_text()
    return json.loads(text if ended or text.endswith("]\n") else text + "]")


def environment(file):
    return {**os.environ, "GRAPHWIRE_TRACE": str(file)}


def start(script, file, *arguments):
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], env=environment(file),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_script(script, file, *arguments):
    """The lines that the script prints."""
    process = start(script, file, *arguments)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert "trace" not in err
    return out.splitlines()


def spans(events, name):
    return [event for event in events if event["ph"] == "X" and event["name"] == name]


def pairs(events):
    """{(category, id, name): (begin, end)} of all that lies on lines of its own; end: None while it is open."""
    found = {}
    for event in events:
        key = event.get("cat"), event.get("id"), event["name"]
        if event["ph"] == "b":
            found[key] = [event, None]
    for event in events:
        if event["ph"] == "e":
            assert found[event["cat"], event["id"], event["name"]][1] is None
            found[event["cat"], event["id"], event["name"]][1] = event
    return {key: pair for key, pair in found.items() if key[0] == "request" or key[2] == "batch"}


def requests(events, part, begin_us, end_us):
    """The requests to a part that were open for all of this time, or longer."""
    return [begin for (category, _, name), (begin, end) in pairs(events).items()
            if category == "request" and name.startswith(f"part {part}: ") and begin["ts"] <= begin_us
            and (end is None or end["ts"] >= end_us)]


def check_nests(events):
    """The spans of each thread nest."""
    threads = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault(event["tid"], []).append((event["ts"], -event["dur"]))
    for some in threads.values():
        ends = []
        for begin, minus in sorted(some):
            assert minus <= 0
            while ends and ends[-1] <= begin + 0.0015:  # rounded to nanoseconds
                ends.pop()
            assert not ends or begin - minus <= ends[-1] + 0.0015
            ends.append(begin - minus)


def handed_over(events):
    """How often the caller got the batch of each (epoch, step)."""
    return Counter((event["args"]["epoch"], event["args"]["step"]) for event in events
                   if event["ph"] == "e" and event["name"] == "batch" and event["args"]["end"] == "handed over")


def test_spans_of_the_program_and_of_the_library(parts, servers, tmp_path):
    file = tmp_path / "trace.json"
    digests = run_script(EPOCH, file, parts, ",".join(servers.addresses))
    events = events_of(file)
    with graphwire.open(parts) as graph:  # without a trace, and without servers
        assert digests == [str(batch.digest()) for batch in graphwire.NodeLoader(
            graph, None, [10, 5], features="feat", labels="label", batch_size=500, shuffle=True, seed=42)]
    steps = len(digests)
    assert handed_over(events) == Counter({(0, step): 1 for step in range(steps)})
    assert len(spans(events, "forward")) == len(spans(events, "layer")) == len(spans(events, "to tensors")) == steps
    assert len(spans(events, "next batch")) == steps + 1 and len(spans(events, "wait")) >= steps
    check_nests(events)
    batches = {event["args"]["batch"] for event in events if event["ph"] == "e" and event["name"] == "batch"
               and event["args"]["end"] == "handed over"}
    asked = Counter()
    for (category, _, name), (begin, end) in pairs(events).items():
        assert end is not None and end["ts"] >= begin["ts"]
        if category == "request" and begin["args"].get("batch") in batches:
            assert end["args"]["transport"] == "tcp" and begin["args"]["bytes"] > 0
            asked[begin["args"]["batch"], name] += 1
    for batch in batches:
        for part in range(2):
            assert asked[batch, f"part {part}: hop 0"] == asked[batch, f"part {part}: hop 1"] == 1
            assert asked[batch, f"part {part}: rows"] >= 2  # of features and labels


def test_the_server_that_a_batch_waits_for(parts, own_servers, tmp_path):
    """A stopped server is that of the requests that stay open, in the file while the batch waits, and later."""
    file = tmp_path / "trace.json"
    process = start(EPOCH, file, parts, ",".join(own_servers.addresses))
    assert process.stdout.readline()
    server = own_servers.processes[1]
    server.send_signal(signal.SIGSTOP)
    while not stopped(server.pid):
        time.sleep(0.001)

    def wait_until(event):
        """The time when the file tells that part 1 is all that is waited for, and `event` of its waits."""
        while True:
            assert process.poll() is None
            now = time.monotonic_ns() / 1000
            events = events_of(file, ended=False)
            if requests(events, 1, now, now) and not requests(events, 0, now, now) and event(spans(events, "wait")):
                return now
            time.sleep(0.01)

    begin = wait_until(len)
    end = wait_until(lambda waits: max(wait["ts"] for wait in waits) > begin)  # has begun since, and ended in vain
    server.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=200)[1] == "" and process.returncode == 0
    events = events_of(file)
    late = requests(events, 1, begin, end)
    assert late and not requests(events, 0, begin, end)
    assert [span for span in spans(events, "next batch") if span["ts"] <= begin and span["ts"] + span["dur"] >= end]
    waited = {event["args"]["step"] for event in spans(events, "wait")
              if begin <= event["ts"] and event["ts"] + event["dur"] <= end}
    assert waited == {min(begin["args"]["step"] for begin in late)}
    assert set(handed_over(events).values()) == {1}


def test_each_worker_writes_a_file(parts, tmp_path):
    """Workers are forked from a process that has a trace, and end by _exit()."""
    script, file = tmp_path / "workers.py", tmp_path / "trace.json"
    script.write_text(WORKERS)
    subprocess.run([sys.executable, script, parts], env=environment(file), check=True)
    files = sorted(tmp_path.glob("trace.json*"))
    assert files[0] == file and len(files) == 3
    every = [events_of(one, ended=one == file) for one in files]
    for events, name in zip(every, files):
        assert {event["pid"] for event in events} == {events[0]["pid"]}
        assert name == file or name.suffix == f".{events[0]['pid']}"
    assert [len(spans(events, "main")) for events in every] == [1, 0, 0]
    assert sum(len(spans(events, "row")) for events in every) == 40


def test_the_steps_of_pyg(parts, servers, tmp_path):
    pytest.importorskip("torch_geometric")
    file = tmp_path / "trace.json"
    run_script(PYG, file, parts, ",".join(servers.addresses))
    events = events_of(file)
    check_nests(events)
    assert len(spans(events, "pyg batch")) == 9 and len(spans(events, "to_pyg")) == 3
    assert sum(handed_over(events).values()) == 12


def test_a_c_program_writes_the_same(parts, servers, tmp_path):
    file = tmp_path / "trace-%p.json"
    done = subprocess.Popen([PROGRAM, "epoch", "--part-config", parts, "--servers", ",".join(servers.addresses),
                             "--batch-size", "100"], env=environment(file), stdout=subprocess.PIPE)
    out, _ = done.communicate(timeout=100)
    assert done.returncode == 0
    events = events_of(tmp_path / f"trace-{done.pid}.json")
    check_nests(events)
    found = handed_over(events)
    assert set(found.values()) == {1} and f"{len(found)} mini-batches".encode() in out


def test_a_file_that_cannot_be_written_is_a_warning(parts, tmp_path):
    done = subprocess.run([PROGRAM, "epoch", "--part-config", parts], env=environment(tmp_path), capture_output=True,
                          text=True, check=True)
    assert "mini-batches" in done.stdout and done.stderr.count("\n") == 1
    assert "GRAPHWIRE_TRACE" in done.stderr and str(tmp_path) in done.stderr


def test_without_the_variable():
    with graphwire.trace("nothing") as span, span, graphwire.trace("ü" * 100), graphwire.trace("a\0\ud800"):
        assert isinstance(span, graphwire.trace)
    with pytest.raises(ZeroDivisionError), graphwire.trace("error"):
        raise ZeroDivisionError
    with pytest.raises(TypeError, match="name"):
        graphwire.trace(7)
    with pytest.raises(TypeError, match="did you mean 'name'"):
        graphwire.trace(nam="forward")


def test_names_of_spans(tmp_path):
    file = tmp_path / "trace.json"
    names = ["ü" * 50, "a\0\ud800\n\"", "", "x" * 81]
    run_script("import ast, graphwire, sys\nfor name in ast.literal_eval(sys.argv[1]):\n"
               "    with graphwire.trace(name):\n        pass", file, ascii(names))
    found = [event["name"] for event in events_of(file) if event["ph"] == "X"]
    assert found == ["ü" * 40, "a??\n\"", "", "x" * 80]
