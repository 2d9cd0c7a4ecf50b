"""Processes and signals: the same results from servers and standalone; Ctrl-C, fork, spawn, DataLoader's workers; no
growth."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import graphwire
import pytest
import torch
from conftest import PROGRAM, run

EPOCH = """
#include <graphwire/graphwire.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct gw_client_options options = {.part_config = argv[1]};
    struct gw_client *client;
    const int32_t fanouts[] = {10, 5};
    struct gw_fetch fetches[2] = {{.at = GW_AT_INPUTS}, {.at = GW_AT_SEEDS}};
    struct gw_loader *loader;
    struct gw_minibatch *batch;
    if (argc != 2 || gw_client_open(&options, &client) || gw_node_tensor(client, 0, "feat", &fetches[0].tensor) ||
        gw_node_tensor(client, 0, "label", &fetches[1].tensor))
        return 1;
    struct gw_loader_options epoch = {
        .spec = {.hops = 2, .fanouts = fanouts, .wide_indices = true, .fetch_count = 2, .fetches = fetches},
        .batch_size = 500, .shuffle = true, .seed = 42, .last = GW_LAST_SHORT};
    if (gw_loader_open(client, &epoch, &loader))
        return 1;
    while (gw_loader_next(loader, &batch, -1) == GW_OK) {
        printf("%llu\\n", (unsigned long long)gw_minibatch_digest(batch));
        gw_minibatch_release(batch);
    }
    gw_loader_close(loader);
    gw_client_close(client);
}
"""


def digests(graph):
    loader = graphwire.NodeLoader(graph, None, [10, 5], features="feat", labels="label", batch_size=500, shuffle=True,
                                  seed=42)
    return [batch.digest() for batch in loader]


@pytest.fixture(scope="module")
def digests_in_c(parts, tmp_path_factory):
    """The same epoch by a C program that uses the package's library."""
    folder = tmp_path_factory.mktemp("c")
    (folder / "epoch.c").write_text(EPOCH)
    top = Path(PROGRAM).resolve().parents[2]
    library = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()
                   if "libgraphwire.so" in line)
    subprocess.run(["cc", folder / "epoch.c", f"-I{top}/include", library, f"-Wl,-rpath,{Path(library).parent}", "-o",
                    folder / "epoch"], check=True)
    out = subprocess.run([folder / "epoch", parts], check=True, capture_output=True, text=True).stdout
    return [int(line) for line in out.split()]


@pytest.mark.parametrize("way", ["memory", "tcp", "shm"])
def test_the_same_batches_as_from_c(parts, servers, digests_in_c, way):
    served = {} if way == "memory" else {"servers": servers.addresses, "transport": way}
    with graphwire.open(parts, **served) as graph:
        assert {graph.transport(part) for part in range(2)} == {way}
        assert len(digests_in_c) == 9 and digests(graph) == digests_in_c


def test_servers_alone_tell_the_graph(parts, servers):
    with graphwire.open(servers=",".join(servers.addresses)) as served, graphwire.open(parts) as alone:
        assert served.graph_id == alone.graph_id
        assert torch.equal(served.gather("feat", range(100)), alone.gather("feat", range(100)))


def test_a_lost_server_is_an_error(parts, own_servers):
    graph = graphwire.open(parts, own_servers.addresses, reconnect=0.1, transport="tcp")
    own_servers.end(1)
    with pytest.raises((graphwire.PeerError, graphwire.DeadlineError)) as error:
        graph.gather("feat", slice(None))
    assert own_servers.addresses[1] in str(error.value)


def test_a_server_that_comes_back_costs_a_pause(parts, own_servers):
    with graphwire.open(parts) as alone:
        expected = digests(alone)
    graph = graphwire.open(parts, own_servers.addresses, transport="tcp")
    loader = graphwire.NodeLoader(graph, None, [10, 5], features="feat", labels="label", batch_size=500, shuffle=True,
                                  seed=42, depth=1)
    found = []
    for batch in loader:
        found.append(batch.digest())
        if batch.step == 2:
            own_servers.end(0)
            back = threading.Thread(target=own_servers.start, args=(0,))
            back.start()
    back.join()
    assert found == expected


INTERRUPTED = """
import os, signal, sys, threading, time
import graphwire
from conftest import stopped
folder, addresses, processes, saved = sys.argv[1], *(word.split(",") for word in sys.argv[2:4]), sys.argv[4]
way = {"transport": "tcp", "timeout": None, "reconnect": None}
graph = graphwire.open(folder, addresses, **way)
nodes, rows = range(4096), [[1.0, 1.0]] * 4096
tensor, other = (graph.create_tensor(name, (4096, 2)) for name in ("tensor", "other"))
graph.create_tensor("deleted", 4096)
graph.checkpoint(saved, ["tensor"])
table = graphwire.Embedding(graph, "table", 2, rows=4096)
optimizer = graphwire.optim.SparseAdam([table])
table(nodes).sum().backward()
loader = graphwire.NodeLoader(graph, None, [5], features="feat", batch_size=100, depth=1)
batches = iter(loader)
next(batches)

def loaded():
    for _ in batches:  # the first may be here already
        pass

waits = {
    "gather": lambda: graph.gather("feat", nodes), "loader": loaded,
    "sample": lambda: graphwire.sample(graph, nodes, [5]), "in_degrees": lambda: graph.in_degrees(nodes),
    "find_edges": lambda: graph.find_edges(nodes), "edge_ids": lambda: graph.edge_ids(nodes, nodes),
    "has_edges": lambda: graph.has_edges(nodes, nodes), "neighbours": lambda: graph.neighbours(nodes),
    "split": lambda: graph.split("train_mask"), "read": lambda: tensor[nodes],
    "write": lambda: tensor.__setitem__(nodes, rows), "step": optimizer.step,
    "push": lambda: tensor.push(nodes, rows, kind="sgd", lr=1.0), "count_nonzero": tensor.count_nonzero,
    "create_tensor": lambda: graph.create_tensor("created", 4096), "tensors": lambda: graph.tensors,
    "delete_tensor": lambda: graph.delete_tensor("deleted"), "checkpoint": lambda: graph.checkpoint(saved + "2"),
    "restore": lambda: graph.restore(saved), "open": lambda: graphwire.open(servers=addresses, **way)}
BEGUN = {"finish": "status", "_filled": "status", "in_thread": "one"}  # set when the function of this name waits

def interrupt():
    while True:
        frame = sys._current_frames()[threading.main_thread().ident]
        while frame is not None:
            if BEGUN.get(frame.f_code.co_name) in frame.f_locals:
                return os.kill(os.getpid(), signal.SIGINT)
            frame = frame.f_back
        time.sleep(0.001)

for process in processes:
    os.kill(int(process), signal.SIGSTOP)
while not all(map(stopped, processes)):
    time.sleep(0.001)
for name, call in waits.items():
    beside = threading.Thread(target=interrupt, daemon=True)
    try:
        beside.start()
        call()
        sys.exit(f"{name} did not wait")
    except KeyboardInterrupt:
        print(name, flush=True)
    beside.join()
for process in processes:
    os.kill(int(process), signal.SIGCONT)
graph.gather("feat", nodes)
other[nodes] = rows
print("goes on" if other[:].all() else "forgets")
"""
WAITS = ("gather loader sample in_degrees find_edges edge_ids has_edges neighbours split read write step push "
         "count_nonzero create_tensor tensors delete_tensor checkpoint restore open").split()


def test_an_interrupt_ends_a_wait(parts, own_servers, tmp_path):
    """The servers are stopped, so only the signal ends the wait. It arrives while the main thread waits."""
    ids = ",".join(str(process.pid) for process in own_servers.processes)
    setting = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, parts, ",".join(own_servers.addresses), ids,
                           tmp_path / "saved"], capture_output=True, text=True, env=setting)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [*WAITS, "goes on"]


def _work(graph, pipe):
    loader = graphwire.NodeLoader(graph, range(1000), [5], features="feat", batch_size=100, shuffle=True)
    pipe.send([batch.digest() for batch in loader])


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("where", ["standalone", "servers"])
def test_another_process_opens_its_own(parts, servers, method, where):
    with graphwire.open(parts, servers.addresses if where == "servers" else None) as graph:
        context = multiprocessing.get_context(method)
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(graph, theirs))
        process.start()
        theirs.close()  # else the wait for its end would not see it
        found = ours.recv()
        process.join()
        loader = graphwire.NodeLoader(graph, range(1000), [5], features="feat", batch_size=100, shuffle=True)
        assert found == [batch.digest() for batch in loader]


class Rows(torch.utils.data.Dataset):
    def __init__(self, graph):
        self.graph = graph

    def __len__(self):
        return 40

    def __getitem__(self, number):
        return self.graph.gather("feat", [number])[0]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_dataloader(parts, servers, method):
    with graphwire.open(parts, servers.addresses) as graph:
        loader = torch.utils.data.DataLoader(Rows(graph), batch_size=10, num_workers=2, multiprocessing_context=method)
        assert torch.equal(torch.cat(list(loader)), graph.gather("feat", range(40)))


def resident():
    """Bytes of memory that only this process uses."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def threads():
    return len(os.listdir("/proc/self/task"))


@pytest.mark.parametrize("where", ["standalone", "servers"])
def test_nothing_grows(parts, servers, where):
    """20,000 small batches, and 1,000 loaders opened, started and closed: the second half of either adds no memory. One
    MiB would be 100 bytes per batch, or 2 KiB per loader."""
    with graphwire.open(parts, servers.addresses if where == "servers" else None) as graph:
        loader = graphwire.NodeLoader(graph, range(2500), [2], features="feat", batch_size=1, depth=8)

        def epochs():
            for _ in range(4):
                for batch in loader:
                    assert batch.x.shape[1] == 16

        def opened():
            for number in range(500):
                with graphwire.NodeLoader(graph, range(100), [2], features="feat", batch_size=10, depth=2,
                                          seed=number) as other:
                    next(iter(other))

        def after(work):
            work()
            gc.collect()
            return resident(), descriptors(), threads()

        for work in (epochs, opened):
            first, second = after(work), after(work)
            assert second[1:] == first[1:]
            assert second[0] < first[0] + (1 << 20), (work.__name__, second[0] - first[0])


def test_graphs_leave_nothing(parts, servers):
    def opened():
        with graphwire.open(parts, servers.addresses) as graph:
            graph.gather("feat", [1])

    opened()
    gc.collect()
    before = descriptors(), threads()
    for _ in range(10):
        opened()
    gc.collect()
    assert (descriptors(), threads()) == before


def test_text_ids(tmp_path):
    (tmp_path / "edges.tsv").write_text("ant\tbee\nbee\tcat\ncat\tünn\n")
    run("import", "--from", tmp_path / "edges.tsv", "--out", tmp_path / "graph", "--quiet")
    with graphwire.open(tmp_path / "graph") as graph:
        assert graph.node_texts([3, 0, 0]) == ["ünn", "ant", "ant"]
        assert graph.node_texts([]) == []
