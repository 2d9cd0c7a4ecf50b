"""The command line of test/slow/rdma/run: hosts, programs, then the steps in turn, each with its share of the time."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import NoReturn, Optional

from card import batches, devices, faults, many, rates, suite
from card.host import Host, HostError, words
from card.report import Report, Stop
from card.run_state import Run, find_programs

# name, share of the limit, function, title
STEPS = (
    ("devices", 0.1, devices.check, "devices, firmware, link, limits"),
    ("suite", 0.17, suite.check, "the suite of all transports, over RDMA"),
    ("batches", 0.1, batches.check, "digests of mini-batches"),
    ("rates", 0.23, rates.check, "times and rates of reads, with those of perftest"),
    ("connections", 0.15, many.check, "many connections"),
    ("faults", 0.25, faults.check, "a server killed, stopped, its link down"),
)
EXAMPLES = """\
examples:
  test/slow/rdma/run --short
  test/slow/rdma/run --device mlx5_0 --out report.txt
  test/slow/rdma/run --peer nodeB --peer-device mlx5_1
  test/slow/rdma/run --peer nodeB --only rates --only faults --link-down

steps: devices, suite, batches, rates, connections, faults.
The server runs on --peer, else on this host; the client runs here.
Exit status: 0 every finding is ok or a note; 1 a finding is "not ok"; 2 the run
could not start or go on: wrong options, no device, no program, a peer that
cannot be reached.
"""
NAME = socket.gethostname() if socket.gethostname().strip("()") not in ("", "none") else "here"
BUILD = "cmake --preset release && cmake --build --preset release, or name the folder of a build with --build"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, as Graphwire's own programs print."""
        print(f"run: {message}; run --help lists the options", file=sys.stderr)
        sys.exit(2)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command line; ends with status 2 if it is wrong."""
    parser = _Parser(
        prog="run",
        description="Tests Graphwire on a host with an RDMA card, or on two, and writes one report.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--peer", metavar="HOST", help="run the server on this host, by ssh with a key or an agent")
    parser.add_argument("--ssh", metavar="COMMAND", default="ssh", help='ssh and its options, such as "ssh -p 2222"')
    parser.add_argument("--short", action="store_true", help="fewer tests, sizes and connections: a minute")
    parser.add_argument(
        "--only", metavar="STEP", action="append", choices=[s[0] for s in STEPS], help="run this step; may be repeated"
    )
    parser.add_argument("--out", metavar="FILE", help="the report (graphwire-rdma-HOST-TIME.txt)")
    parser.add_argument("--build", metavar="FOLDER", help="a build of Graphwire (build/release, build/dev; the bundle)")
    parser.add_argument("--device", metavar="NAME", default="", help="the RDMA device here (the first that is active)")
    parser.add_argument("--address", metavar="IP", default="", help="the device's address here (its interface's first)")
    parser.add_argument("--peer-device", metavar="NAME", default="", help="the same on the peer")
    parser.add_argument("--peer-address", metavar="IP", default="", help="the same on the peer")
    parser.add_argument(
        "--link-down", action="store_true", help="take the server's link down for 6 s; needs root there"
    )
    parser.add_argument("--limit", metavar="SECONDS", type=int, help="the time of all steps (600; 60 with --short)")
    parser.add_argument("--tmp", metavar="FOLDER", default="/tmp", help="for working files, on both hosts (/tmp)")
    a = parser.parse_args(arguments)
    if a.limit is not None and a.limit < 10:
        parser.error("--limit: at least 10 seconds")
    if not a.peer and (a.peer_device or a.peer_address):
        parser.error("--peer-device and --peer-address need --peer")
    if a.peer is not None and (not a.peer or a.peer.startswith("-")):
        parser.error("--peer: a host's name or address")
    return a


def _peer(a: argparse.Namespace, client: Host) -> Host:
    """The peer, with an open connection that later commands share."""
    try:
        ssh = shlex.split(a.ssh)
    except ValueError as error:
        raise Stop("--ssh: " + str(error)) from error
    share = [
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=10",
        "-o",
        "ControlMaster=auto",
        "-o",
        "ControlPersist=120",
        "-o",
        f"ControlPath={client.work}/ssh",
    ]
    peer = Host(a.peer, [*ssh, *share])
    try:
        peer.must("true", timeout=60)
        peer.begin(a.tmp)
    except (HostError, OSError) as error:
        raise Stop(
            f"{a.peer} cannot be reached: {error}\n    remedy: {a.ssh} {a.peer} true must work without a "
            "password: ssh-copy-id, or an agent (ssh-add)"
        ) from error
    return peer


def _give_program(client: Host, peer: Host, report: Report) -> None:
    """Finds the same program at the same path of the peer; else copies it there, with its folder of libraries."""
    same = f"sha256sum {words(client.program)} 2>/dev/null | cut -c 1-64"
    if peer.sh(same).out == client.must(same) + "\n":
        peer.program = client.program
        return
    folder, name = os.path.split(client.program)
    things = [name]
    if os.path.isdir(os.path.join(folder, "../lib")) and os.path.basename(folder) == "bin":
        folder, things = os.path.dirname(folder), [f"bin/{name}", "lib"]
    packed = f"{client.work}/program.tar"
    client.must(f"tar -C {words(folder)} -cf {words(packed)} {words(*things)}", timeout=60)
    with open(packed, "rb") as file:
        peer.must(f"tar -C {words(peer.work)} -xf -", timeout=120, data=file.read())
    peer.program = f"{peer.work}/{things[0]}"
    done = peer.sh(f"{words(peer.program)} --version")
    if done.rc != 0:
        raise Stop(
            f"{peer.name}: the program of this host does not run there: {done.why()}\n    remedy: run from the "
            "bundle (cmake --build build/release --target bundle): it brings its libraries"
        )
    report.line(f"   the program was copied to {peer.name}")


def _choose(host: Host, device: str, address: str) -> None:
    host.address = address
    missing = devices.choose(host, device)
    if missing:
        raise Stop(f"{host.name}: {missing}\n    remedy: {devices.missing_remedy(missing)}")


def _run(a: argparse.Namespace, report: Report, hosts: list[Host]) -> None:
    programs = find_programs(a.build)
    if programs is None:
        raise Stop(f"no program graphwire in {a.build or 'build/release and build/dev'}\n    remedy: {BUILD}")
    client = Host(NAME)
    client.program = str(programs.graphwire)
    hosts.append(client)
    client.begin(a.tmp)
    server = client
    if a.peer:
        server = _peer(a, client)
        hosts.append(server)
    _choose(client, a.device, a.address)
    if a.peer:
        _choose(server, a.peer_device, a.peer_address)
        _give_program(client, server, report)
    report.line(
        f"graphwire {client.must(words(client.program) + ' --version').splitlines()[0]}; server on {server.name} "
        f"({server.device}, {server.address}), client on {client.name} ({client.device}, {client.address})"
    )
    run = Run(report, programs, client, server, a.short, a.limit or (60 if a.short else 600))
    run.link_down = a.link_down
    _steps(a, run)


def _steps(a: argparse.Namespace, run: Run) -> None:
    """Runs the steps. A step that fails for a reason of the host's is one finding; the others still run."""
    before: dict[str, dict[str, int]] = {host.name: devices.counters(host) for host in run.hosts}
    prepared = False
    steps = [step for step in STEPS if not a.only or step[0] in a.only]
    for number, (name, _, function, title) in enumerate(steps):
        run.report.section(title)
        run.begin_step(sum(step[1] for step in steps[number + 1 :]))
        if not run.has_time(name, 2):
            continue
        try:
            if not prepared and name not in ("devices", "suite"):
                run.prepare()
                prepared = True
            if name == "faults":
                for host in run.hosts:
                    devices.compare_counters(run, host, before[host.name])
            function(run)
        except HostError as error:
            run.report.not_ok(f"{name}: {error}", "the hosts' logs; then run again with --only " + name)


def _interrupted(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(arguments: Sequence[str]) -> int:
    a = parse(arguments)
    path = a.out or f"graphwire-rdma-{NAME}-{time.strftime('%Y%m%d-%H%M%S')}.txt"
    for folder, option in ((os.path.dirname(path) or ".", "--out"), (a.tmp, "--tmp")):
        if not os.access(folder, os.W_OK | os.X_OK):
            print(f"run: {option}: {folder} cannot be written", file=sys.stderr)
            return 2
    report = Report(sys.stdout, " ".join(shlex.quote(word) for word in ["test/slow/rdma/run", *arguments]))
    hosts: list[Host] = []
    status: Optional[int] = None
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGHUP, _interrupted)
    try:
        _run(a, report, hosts)
    except Stop as stop:
        what, _, remedy = str(stop).partition("\n    remedy: ")
        report.not_ok(what, remedy)
        status = 2
    except KeyboardInterrupt:
        report.not_ok("interrupted", "run again")
        status = 130
    finally:
        for host in reversed(hosts):
            host.end()
    report.write(path)
    return report.status() if status is None else status
