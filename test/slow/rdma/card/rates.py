"""Step 4: times and rates of reads, and perftest's in the same minutes.

For each size, one after the other: ib_read_lat, `doctor --server` (one read at a time, then many; over RDMA and over
TCP), ib_read_bw. On one host also `bench latency` and `bench gather`, which have both ends in one process.
"""

from __future__ import annotations

import json
import random
from typing import Optional

from card.devices import INSTALL
from card.host import words
from card.run_state import Run, Server

SIZES = (64, 256, 1024, 4096, 16384, 65536)
SHORT = (512,)
LATENCY_MOST = 1.15  # of ib_read_lat
RATE_LEAST = 0.90  # of ib_read_bw
TUNE = 'docs/RDMA.md, "Tuning": NUMA node and processor of both programs, MTU, queue pairs (--queue-pairs), PCIe slot'
_COLUMNS = (
    "bytes",
    "lat us",
    "ours us",
    "ratio",
    "bw reads/s",
    "ours reads/s",
    "ratio",
    "bw GB/s",
    "ours GB/s",
    "TCP reads/s",
)


def _perftest(run: Run, tool: str, size: int, *more: object) -> Optional[list[float]]:
    """The columns of perftest's line for this size, or None. Both ends use the connection manager (-R), as Graphwire
    does: it finds the GID."""
    port = random.randint(20000, 29999)
    common = [tool, "-d", "", "-R", "-F", "-s", size, "-p", port, *more]
    common[2] = run.server.device
    there = run.start(run.server, *common)
    run.server.sh(
        f"for i in 1 2 3 4 5 6 7 8 9 10; do ss -ltn 2>/dev/null | grep -q :{port} && break; sleep 0.2; done; sleep 0.3"
    )
    common[2] = run.client.device
    done = run.client.sh(words(*common, run.server.address), run.left(30))
    if there.wait(2) is None:
        there.kill()
    for line in done.out.splitlines():
        cells = line.split()
        if cells and cells[0] == str(size):
            return [float(cell) for cell in cells]
    run.report.attach(f"{tool} -s {size}", f"{done.out}\n{done.err}\nserver:\n{there.output()}")
    return None


def _doctor(run: Run, server: Server, size: int) -> dict[str, dict]:
    """The figures of one size by transport."""
    milliseconds = 300 if run.short else 800
    done = run.client.sh(
        words(
            run.client.program,
            "doctor",
            "--json",
            "--server",
            server.address,
            "--key-file",
            f"{run.client.work}/key",
            "--row",
            size,
            "--measure",
            milliseconds,
            "--timeout",
            20000,
        ),
        run.left(60),
    )
    try:
        findings = json.loads(done.out)["findings"]
    except (ValueError, KeyError):
        run.report.not_ok(f"doctor --server {server.address} --row {size}: {done.why()}", "run it by hand")
        return {}
    named = {f["name"].rsplit(" ", 1)[-1]: f for f in findings if f["section"] == "servers"}
    verbs = named.get("verbs", {})
    if "figures" not in verbs:
        run.report.not_ok(f"reads of {size} B over RDMA: {verbs.get('value', done.why())}", verbs.get("fix") or TUNE)
    return {name: f["figures"] for name, f in named.items() if "figures" in f}


def _bench(run: Run, what: str, *arguments: object) -> list[dict]:
    """The JSON lines of a benchmark of both ends on this host."""
    done = run.client.sh(
        words(run.client.program, "bench", what, "--transport", "verbs", "--repeats", 5, "--json", "-", *arguments),
        run.left(60),
    )
    lines = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    if not lines or not all(line.get("verified") for line in lines):
        run.report.not_ok(
            f"bench {what}: {done.why()}", "run it by hand: graphwire bench " + what + " --transport verbs"
        )
    return lines


def _own(run: Run, size: int, latency: Optional[float], rate: Optional[float]) -> None:
    """The benchmarks with both ends on this host, against perftest and their own ceilings."""
    rounds, seconds, table = (100, 0.1, "2Mi") if run.short else (2000, 0.3, "64Mi")
    for line in _bench(run, "latency", "--row", size, "--rounds", rounds, "--spin", 20000, "--table", table)[-1:]:
        against = f", {line['value'] / latency:.2f} of ib_read_lat" if latency else ""
        run.report.line(
            f"   bench latency, {size} B: {line['value']:.2f} us, {line['ratio']:.2f} of the bare read{against}"
        )
    batch = 64 if size > 4096 else 1000
    for line in _bench(run, "gather", "--row", size, "--batch", batch, "--seconds", seconds, "--table", table)[-1:]:
        ours = line["value"] * 1e9 / size
        against = f", {ours / rate:.2f} of ib_read_bw" if rate else ""
        text = f"bench gather, {size} B: {ours:.4g} rows/s, {line['ratio']:.2f} of the bare loop{against}"
        if rate and ours < RATE_LEAST * rate:
            run.report.note(text, TUNE)
        else:
            run.report.line(f"   {text}")


def check(run: Run) -> None:
    missing = [host.name for host in run.hosts if host.sh("command -v ib_read_lat && command -v ib_read_bw").rc != 0]
    if missing:
        run.report.note(f"no perftest on {', '.join(missing)}: Graphwire's figures are without their ceiling", INSTALL)
    server = run.serve()
    table = ["   " + "".join(f"{name:>13}" for name in _COLUMNS)]
    done = 0
    for size in SHORT if run.short else SIZES:
        if run.left() < 5:
            run.report.note(f"reads of {size} B and more: no time left", "run with a larger --limit")
            break
        lat = None if missing else _perftest(run, "ib_read_lat", size, "-n", 500 if run.short else 2000)
        figures = _doctor(run, server, size)
        bandwidth = (
            None if missing else _perftest(run, "ib_read_bw", size, "-q", 2, "-D", 1 if run.short else 2, "-f", 0)
        )
        if not missing and (lat is None or bandwidth is None):
            run.report.note(
                f"perftest has no figure for {size} B: the appendix has its output",
                "run it by hand: it fails over the connection manager (-R) where Graphwire fails too",
            )
        latency = lat[4] if lat and len(lat) > 4 else None
        rate = bandwidth[3] * 2**20 / size if bandwidth and len(bandwidth) > 3 else None
        verbs, tcp = figures.get("verbs", {}), figures.get("tcp", {})
        if verbs:
            done += 1
            table.append(_row(size, latency, rate, verbs, tcp))
            if latency and verbs["p50_us"] > 3 * LATENCY_MOST * latency:
                run.report.note(
                    f"one read of {size} B takes {verbs['p50_us']:.1f} us, ib_read_lat {latency:.1f} us: the "
                    "doctor's thread sleeps between reads; --spin of bench latency polls",
                    TUNE,
                )
        if not run.two:
            _own(run, size, latency, rate)
    for line in table:
        run.report.line(line)
    if done:
        run.report.ok(f"reads of {done} sizes over {run.client.device}, compared with TCP's bytes")


def _row(size: int, latency: Optional[float], rate: Optional[float], verbs: dict, tcp: dict) -> str:
    def text(value: Optional[float]) -> str:
        return f"{value:.4g}" if value is not None else "-"

    ours, reads = verbs["p50_us"], verbs["rows_per_second"]
    cells = (
        str(size),
        text(latency),
        text(ours),
        text(ours / latency if latency else None),
        text(rate),
        text(reads),
        text(reads / rate if rate else None),
        text(rate * size * 1e-9 if rate else None),
        text(reads * size * 1e-9),
        text(tcp.get("rows_per_second")),
    )
    return "   " + "".join(f"{cell:>13}" for cell in cells)
