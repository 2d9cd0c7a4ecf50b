"""What a server answers to scrapers: strict parsers read both formats, and the numbers are those of what was done."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading

import graphwire
import numpy as np
import pytest
import yaml
from conftest import TOP, Servers, run
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def ask(address, path="/metrics", method="GET", **headers):
    """The response and its body."""
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    body = response.read()
    assert response.getheader("Connection") == "close"
    connection.close()
    return response, body


def scraped(address):
    """{(sample's name, its labels)): value} of the text format, which the OpenMetrics format must agree with."""
    response, text = ask(address, Accept="text/plain")
    assert response.getheader("Content-Type") == TEXT
    response, opened = ask(address, Accept=f"{OPEN};q=0.5,text/plain;q=0.1")
    assert response.getheader("Content-Type") == OPEN
    assert opened.endswith(b"# EOF\n")
    plain = list(parse_text(text.decode()))
    strict = list(parse_openmetrics(opened.decode()))
    assert {sample.name for family in plain for sample in family.samples} == \
        {sample.name for family in strict for sample in family.samples}
    for family in strict:
        conventions(family)
    return {(sample.name, frozenset(sample.labels.items())): sample.value
            for family in plain for sample in family.samples}


def conventions(family):
    """The rules of Prometheus on names: base units at the end, and a prefix."""
    assert re.fullmatch(r"(graphwire|process)_[a-z0-9_]+", family.name), family.name
    assert family.documentation
    if family.type not in ("info", "counter"):
        assert not family.name.endswith(("_total", "_info"))
    for word in ("ms", "ns", "us", "kib", "mib", "gib", "milliseconds", "nanoseconds"):
        assert word not in family.name.split("_"), family.name
    if family.name.endswith(("_bytes", "_seconds")):
        assert family.unit == family.name.rsplit("_", 1)[1]


def metrics_of(servers, part=0):
    return json.loads(run("stat", "--json", servers.addresses[part]))["metrics"]


@pytest.fixture(scope="module")
def served(parts, tmp_path_factory):
    """Servers of this file, with a runtime folder of their own: a host serves a part once."""
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        runtime = folder / "runtime"
        runtime.mkdir(mode=0o700)
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        started = Servers(parts, 2, folder, "--metrics", "0")
        yield started
        started.close()


def test_formats(served):
    for part in range(2):
        values = scraped(metrics_of(served, part))
        (labels,) = [dict(labels) for name, labels in values if name == "graphwire_part_info"]
        assert labels["part"] == str(part)
        assert labels["parts"] == "2"
        assert labels["address"] == served.addresses[part]
        assert values["graphwire_ready", frozenset()] == 1


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [("", TEXT), ("*/*", TEXT), ("text/html", TEXT), ("text/plain", TEXT), ("application/openmetrics-text", OPEN),
     ("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", OPEN),
     ("text/plain;version=0.0.4;q=0.6,application/openmetrics-text;q=0.3", TEXT),
     ("application/openmetrics-text;version=0.0.1", TEXT), ("application/openmetrics-text;q=0", TEXT),
     ('APPLICATION/OpenMetrics-text ; version="1.0.0" ; q=1.000', OPEN), ("application/openmetrics-text;q=x", TEXT)],
    ids=lambda value: str(value).partition("/")[0][:8])
def test_accept(served, accept, wanted):
    assert ask(metrics_of(served), Accept=accept)[0].getheader("Content-Type") == wanted


def test_statuses(served):
    at = metrics_of(served)
    for path in ("/metrics", "/healthz", "/readyz", "/metrics?a=b"):
        response, body = ask(at, path)
        assert response.status == 200
        head, nothing = ask(at, path, "HEAD")
        assert head.status == 200 and nothing == b""
        if path != "/metrics":
            assert head.getheader("Content-Length") == str(len(body)) or path == "/metrics?a=b"
        refused, _ = ask(at, path, "POST")
        assert refused.status == 405 and refused.getheader("Allow") == "GET, HEAD"
    for path in ("/", "/metric", "/metrics/", "/healthz/x"):
        assert ask(at, path)[0].status == ask(at, path, "DELETE")[0].status == 404
    assert ask(at, headers_of_4_kib="x" * 5000)[0].status == 431
    assert ask(at, "/" + "x" * 5000)[0].status == 431


def test_slow_clients_keep_nobody_waiting(served):
    host, port = metrics_of(served).rsplit(":", 1)
    slow = []
    for i in range(20):
        slow.append(socket.create_connection((host, int(port)), timeout=30))
        slow[-1].sendall(b"GET /metrics HTTP/1.1\r\n"[:i])
    assert ask(f"{host}:{port}", "/healthz")[0].status == 200
    for one in slow:  # each is closed for a newer one, or after two seconds
        assert one.recv(1) == b""
        one.close()
    assert ask(f"{host}:{port}", "/healthz")[0].status == 200


# --- What was done. ---

def by(values, name, **wanted):
    """The sum of the samples of a name that have these labels."""
    return sum(value for (sample, labels), value in values.items()
               if sample == name and wanted.items() <= dict(labels).items())


def epoch(graph):
    """Runs an epoch; returns how many batches it had."""
    loader = graphwire.NodeLoader(graph, range(2048), [5, 3], batch_size=256, features=["feat"], labels=["label"])
    return sum(1 for _ in loader)


@pytest.mark.parametrize("transport", ["tcp", "shm"])
def test_counters_equal_what_was_done(served, transport):
    """Server and client count by themselves, and agree; and both agree with the number of batches."""
    before = [scraped(metrics_of(served, part)) for part in range(2)]
    with graphwire.open(servers=served.addresses, transport=transport, neighbours="requests", numpy=True) as graph:
        feature = graph.feature("feat")
        tensor = graph.create_tensor("t", (4096, 4))
        for first in range(10):
            tensor[range(first, 4000 + first)] = np.zeros((4000, 4), np.float32)
            graph.neighbours(range(first, 4000 + first), fanout=3)
            feature[range(first, 4000 + first)]
        stats = graph.stats()
        assert stats["batches"] == stats["batch_wait_s"] == 0
    for part in range(2):
        after = scraped(metrics_of(served, part))
        def grown(name, part=part, after=after, **labels):
            return by(after, name, **labels) - by(before[part], name, **labels)

        def asked(name):  # what a client's operations are, beside those of its opening and of `graphwire stat`
            own = sum(grown(name, op=op, transport=transport) for op in ("catalog", "transport", "stats", "read"))
            return grown(name, transport=transport) - own

        (mine,) = [row for row in stats["parts"] if row["part"] == part and row["transport"] == transport]
        assert mine["server"] == served.addresses[part]
        assert mine["errors"] == 0 and mine["wait_s"] > 0
        for op in ("sample", "tensor_update"):
            count = grown("graphwire_requests_total", op=op, transport=transport)
            assert count == 10
            assert grown("graphwire_request_seconds_count", op=op) == count
            assert grown("graphwire_slice_seconds_count", op=op) >= count
        assert asked("graphwire_requests_total") == mine["requests"]
        assert asked("graphwire_received_bytes_total") == mine["sent_bytes"]
        assert asked("graphwire_sent_bytes_total") == mine["received_bytes"]
        assert grown("graphwire_request_errors_total") == 0
        read = grown("graphwire_sent_bytes_total", op="read", transport="tcp")
        if transport == "tcp":
            assert read == mine["read_bytes"] > 0
            assert stats["copied_bytes"] == 0
        else:  # the server does not see what clients read from its memory
            assert read == 0
            posted = sum(row["read_bytes"] for row in stats["parts"])  # before an engine has mapped the memory
            assert stats["copied_bytes"] > 0
            assert stats["copied_bytes"] + posted == 10 * 4000 * 16 * 4


def test_batches_are_counted(served):
    with graphwire.open(servers=served.addresses, numpy=True) as graph:
        for epochs in range(1, 4):
            assert epoch(graph) == 8
            assert graph.stats()["batches"] == 8 * epochs
        stats = graph.stats()
        assert stats["batch_wait_s"] > 0
        assert sum(row["errors"] for row in stats["parts"]) == 0  # cancelled reads did not fail


def test_stats_of_a_standalone_graph(parts):
    with graphwire.open(parts, numpy=True) as graph:
        fresh = graph.stats()
        assert fresh["batches"] == fresh["batch_wait_s"] == fresh["copied_bytes"] == 0
        assert [(row["part"], row["server"]) for row in fresh["parts"]] == [(0, ""), (1, "")]
        rows = graph.feature("feat")[[0, 5, 4000]]
        assert graph.stats()["copied_bytes"] == rows.nbytes
        batches = epoch(graph)
        assert graph.stats()["batches"] == batches
        assert re.fullmatch("[0-9a-f]{30}", fresh["client"])


def test_torn_rows_replays_and_rows_of_deleted_tensors(served):
    """Counters never fall: a deleted tensor's rows stay counted."""
    before = by(scraped(metrics_of(served)), "graphwire_tensor_rows_written_total")
    with graphwire.open(servers=served.addresses, numpy=True) as graph:
        tensor = graph.create_tensor("t", (100, 4))
        tensor[list(range(100))] = [[1.0] * 4] * 100
        during = by(scraped(metrics_of(served)), "graphwire_tensor_rows_written_total")
        assert before < during <= before + 100
        assert by(scraped(metrics_of(served)), "graphwire_tensor_bytes") > 0
        graph.delete_tensor("t")
    assert by(scraped(metrics_of(served)), "graphwire_tensor_rows_written_total") == during


def test_scrapes_while_trainers_work(served):
    """The counters of each scrape are those of the scrape before, or more."""
    at, ended, seen = metrics_of(served), threading.Event(), []

    def scrape():
        while not ended.is_set() or len(seen) < 3:
            seen.append(scraped(at))

    scraper = threading.Thread(target=scrape)
    scraper.start()
    with graphwire.open(servers=served.addresses, numpy=True) as graph:
        for _ in range(3):
            epoch(graph)
    ended.set()
    scraper.join()
    for earlier, later in zip(seen, seen[1:]):
        for (name, labels), value in earlier.items():
            if name.endswith(("_total", "_bucket", "_count")):
                assert later[name, labels] >= value, name
    for values in seen:
        for (name, labels), value in values.items():
            if name.endswith("_count"):
                wide = frozenset({*labels, ("le", "+Inf")})
                assert values[name.removesuffix("_count") + "_bucket", wide] == value


# --- Trainers. ---

TRAINER = """
import sys
sys.modules["torch"] = None  # its import takes seconds
import graphwire
with graphwire.open(servers=sys.argv[1].split(","), transport="tcp", numpy=True) as graph:
    loader = graphwire.NodeLoader(graph, range(2048), [5, 3], batch_size=256, features=["feat"])
    batches = sum(1 for _ in loader)
    print(batches, graph.stats()["client"], flush=True)
    sys.stdin.readline()
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def trainer(served, address, **variables):
    process = subprocess.Popen(
        [sys.executable, "-c", TRAINER, ",".join(served.addresses)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        env={**os.environ, "GRAPHWIRE_METRICS": address, "GRAPHWIRE_LOG": "info", **variables})
    return process, process.stdout.readline().split()


def test_metrics_of_trainers(served):
    """The port of each trainer of a host is the first port plus its local rank."""
    port = free_port()
    trainers = [trainer(served, f"127.0.0.1:{port}", LOCAL_RANK=str(rank), RANK=str(10 + rank)) for rank in range(2)]
    for rank, (_, (batches, client)) in enumerate(trainers):
        values = scraped(f"127.0.0.1:{port + rank}")
        ((labels, one),) = [(dict(labels), value) for (name, labels), value in values.items()
                            if name == "graphwire_client_info"]
        assert one == 1
        assert labels["id"] == client and labels["rank"] == str(10 + rank) and labels["client"] == "1"
        assert by(values, "graphwire_client_batch_wait_seconds_count") == int(batches)
        for part in range(2):
            mine = {"part": str(part), "server": served.addresses[part], "transport": "tcp", "client": "1"}
            assert by(values, "graphwire_client_requests_total", **mine) > 0
            assert by(values, "graphwire_client_read_bytes_total", **mine) > 0
        assert ask(f"127.0.0.1:{port + rank}", "/readyz")[0].status == 200
    for process, _ in trainers:
        process.communicate("\n")
        assert process.returncode == 0


@pytest.mark.parametrize(("address", "says"), [("{taken}", "is taken by"), ("nonsense", "give ADDR:PORT"), ("", None)])
def test_trainers_without_metrics_train(served, address, says):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process, said = trainer(served, address.format(taken=f"127.0.0.1:{taken.getsockname()[1]}"))
        _, errors = process.communicate("\n")
    assert process.returncode == 0 and len(said) == 2
    warnings = [line for line in errors.splitlines() if "GRAPHWIRE_METRICS" in line]
    assert len(warnings) == (says is not None)
    assert says is None or says in warnings[0]


def test_forked_processes_leave_the_port(served, monkeypatch):
    """A child has no thread that answers, so it must not keep the port."""
    monkeypatch.setenv("GRAPHWIRE_METRICS", "127.0.0.1:0")
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("graphwire")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    graph = graphwire.open(servers=served.addresses, numpy=True)
    at = next(found[1] for line in lines if (found := re.search("metrics at http://([^/]*)/", line)))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        assert ask(at)[0].status == 200
        graph.close()
        del graph
        with pytest.raises(ConnectionRefusedError):
            ask(at)
    finally:
        os.close(read)
        os.write(write, b"x")
        os.close(write)
        os.waitpid(child, 0)
        logger.removeHandler(handler)
        logger.setLevel(level)


# --- Alerts. ---

def test_alerts_name_metrics_that_exist(served):
    rules = yaml.safe_load((TOP / "deploy/prometheus/alerts.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in alerts}) == len(alerts) > 8
    at = f"127.0.0.1:{free_port()}"
    process, _ = trainer(served, at)
    values = {**scraped(metrics_of(served)), **scraped(at)}
    process.communicate("\n")
    names = {name for name, _ in values}
    pages = {name for line in (TOP / "docs/OPERATE.md").read_text().splitlines() if line.startswith("| `")
             for name in re.findall(r"`((?:graphwire|process)_[a-z_]+)`", line.split("|")[1])}
    families = {re.sub("_(bucket|sum|count)$", "", name) if (name.rpartition("_")[0] + "_bucket") in names else name
                for name in names}
    assert pages == families
    labels = {key for _, pairs in values for key, _ in pairs} | {"instance", "job", "le"}
    for rule in alerts:
        used = set(re.findall(r"\b(?:graphwire|process)_[a-z_]+", rule["expr"])) - {"graphwire"}
        assert used or "up{" in rule["expr"], rule["alert"]
        assert used <= names, (rule["alert"], used - names)
        for group in re.findall(r"by \(([a-z, ]*)\)", rule["expr"]):
            assert set(group.split(", ")) <= labels
        for label in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]):
            assert label in labels
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_a_bad_address_is_one_line(parts, tmp_path):
    for address in ("nonsense", "1.2.3.4", "127.0.0.1:", ":x", "127.0.0.1:99999", "", "shm:x:3"):
        done = subprocess.run([os.environ["GRAPHWIRE"], "serve", "--part-config", parts, "--part", "0", "--metrics",
                               address], capture_output=True, text=True)
        assert done.returncode != 0
        assert len(done.stderr.splitlines()) == 1 and "--metrics" in done.stderr, done.stderr


# --- graphwire top. ---

def top(*words):
    done = subprocess.run([os.environ["GRAPHWIRE"], "top", "--once", "--interval", "0.3", *words], capture_output=True,
                          text=True)
    return done.returncode, done.stdout, done.stderr


def test_top(served):
    """A script's view has the client that works, by the id that it knows itself."""
    with graphwire.open(servers=served.addresses, numpy=True) as graph:
        ended = threading.Event()

        def work():
            while not ended.is_set():
                graph.neighbours(range(4000), fanout=3)

        worker = threading.Thread(target=work)
        worker.start()
        status, out, _ = top("--json", *served.addresses)
        text_status, text, _ = top(*served.addresses)
        ended.set()
        worker.join()
        mine = graph.stats()["client"]
    view = json.loads(out)
    assert status == text_status == 0 and len(out.splitlines()) == 1
    assert [server["server"] for server in view["servers"]] == served.addresses
    assert [server["part"] for server in view["servers"]] == [0, 1]
    assert all(server["errors_per_s"] == 0 for server in view["servers"])
    (client,) = view["clients"]
    assert client["client"] == mine
    assert client["transports"] == ["shm"] or set(client["transports"]) == {"shm", "tcp"}
    assert f"process {os.getpid()}" in client["names"]
    assert mine[:8] in text and all(address in text for address in served.addresses)
    assert "\x1b" not in text


def test_top_of_servers_that_are_away(served):
    away = f"127.0.0.1:{free_port()}"
    status, out, _ = top("--json", served.addresses[0], away)
    first, second = json.loads(out)["servers"]
    assert status == 1 and "error" not in first and "refused" in second["error"]
    status, text, _ = top(away)
    assert status == 1 and "does not answer" in text
    for words in (["--interval", "0"], ["--once"], ["nonsense:x"]):
        done = subprocess.run([os.environ["GRAPHWIRE"], "top", *words], capture_output=True, text=True)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
