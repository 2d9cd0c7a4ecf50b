"""What a server answers to scrapers: strict parsers read both formats, and the numbers are those of what was done."""

from __future__ import annotations

import http.client
import json
import re
import socket

import pytest
from conftest import Servers, run
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
    return {(sample.name, frozenset(sample.labels.items())): sample.value for family in plain for sample in family.samples}


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


@pytest.fixture
def served(parts, tmp_path, monkeypatch):
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    started = Servers(parts, 2, tmp_path, "--metrics", "0")
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
    "accept, wanted",
    [("", TEXT), ("*/*", TEXT), ("text/html", TEXT), ("text/plain", TEXT), ("application/openmetrics-text", OPEN),
     ("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", OPEN),
     ("text/plain;version=0.0.4;q=0.6,application/openmetrics-text;q=0.3", TEXT),
     ("application/openmetrics-text;version=0.0.1", TEXT), ("application/openmetrics-text;q=0", TEXT),
     ('APPLICATION/OpenMetrics-text ; version="1.0.0" ; q=1.000', OPEN), ("application/openmetrics-text;q=x", TEXT)])
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
