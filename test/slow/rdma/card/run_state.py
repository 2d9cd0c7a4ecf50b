"""What the steps share: the report, the two hosts, the programs, the graph, and the time that is left.

The client's host is this machine. The server's host is --peer, or this machine too.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple, Optional

from card.host import Host, HostError, Program, wait_until, words
from card.report import Report

HERE = Path(__file__).resolve().parent.parent  # the folder of `run`
GRAPH = "--seed 3 --labels 4 --train-share 0.5 --weight weight"


class Programs(NamedTuple):
    """Where this host's programs are. tests: a folder with a program for each test, or one program that has all of
    them and takes a test's name first; None: not built."""

    graphwire: Path
    tests: Optional[Path]

    def test(self, name: str) -> Optional[list[str]]:
        """The words that start a test program, or None if it does not exist."""
        if self.tests is None:
            return None
        if self.tests.is_dir():
            path = self.tests / name
            return [str(path)] if os.access(path, os.X_OK) else None
        return [str(self.tests), name]


def find_programs(build: Optional[str]) -> Optional[Programs]:
    """Finds the programs of --build, of the bundle that has this folder, or of the checkout."""
    if build:
        folders = [Path(build).resolve()]
    elif (HERE / "tests").exists():  # PREFIX/libexec/graphwire/rdma in a bundle
        folders = [HERE.parents[2]]
    else:
        folders = [HERE.parents[2] / "build" / name for name in ("release", "dev")]
    graphwire = [path for folder in folders for path in (folder / "graphwire", folder / "bin/graphwire")]
    tests = [HERE / "tests", *(folder / "test" for folder in folders)]
    programs = [path for path in graphwire if path.is_file() and os.access(path, os.X_OK)]
    found = [path for path in tests if path.is_file() or (path / "faults_trainer").exists()]
    return Programs(programs[0], found[0] if found else None) if programs else None


class Run:
    """One run of all steps."""

    def __init__(
        self, report: Report, programs: Programs, client: Host, server: Host, short: bool, limit: float
    ) -> None:
        self.report = report
        self.programs = programs
        self.client = client
        self.server = server
        self.short = short
        self.link_down = False
        self.ends = time.monotonic() + limit
        self.step_ends = self.ends
        self.limit = limit
        self.outputs = 0
        self.servers: dict[tuple[str, int], Server] = {}
        self.guest = bool(os.environ.get("GRAPHWIRE_GUEST"))  # an emulated host, however slow

    def __repr__(self) -> str:
        return f"Run({self.client}, {self.server})"

    @property
    def two(self) -> bool:
        """Whether server and client are on two hosts."""
        return self.server is not self.client

    @property
    def hosts(self) -> list[Host]:
        """The client's host, and the server's if it is another."""
        return [self.client, self.server] if self.two else [self.client]

    def begin_step(self, later: float) -> None:
        """A step may take what is left, except for the share of the limit that is meant for later steps."""
        self.step_ends = self.ends - later * self.limit

    def left(self, most: float = 1e9) -> float:
        """Seconds that are left for the step, at most `most`; not negative."""
        return max(0.0, min(most, self.step_ends - time.monotonic()))

    def start(self, host: Host, *command: object, prefix: str = "") -> Program:
        """Starts a program in the background of a host."""
        self.outputs += 1
        return host.start(f"{self.client.work}/{self.outputs}.out", *command, prefix=prefix)

    def has_time(self, what: str, seconds: float) -> bool:
        """Whether so many seconds are left; if not, a note says that `what` was left out."""
        if self.left() >= seconds:
            return True
        self.report.note(f"{what}: no time left", "run with a larger --limit")
        return False

    def awaits(self, program: Program, path: str) -> bool:
        """Waits until a client has created a file; False if it ends without it, or no time is left."""
        wait_until(lambda: os.path.exists(path) or program.ended(), self.left())
        return os.path.exists(path)

    def prepare(self) -> None:
        """Makes key and graph on both hosts: the same commands give the same bytes."""
        key = os.urandom(32)
        scale, features = (11, 32) if self.short else (15, 128)
        for host in self.hosts:
            host.must(f"umask 077; cat >{words(host.work)}/key", data=key)
            program = words(host.program)
            cut = f"{program} partition graph --method random"
            host.must(
                f"cd {words(host.work)} && "
                f"{program} generate rmat --scale {scale} --features {features} {GRAPH} --out graph --quiet && "
                f"{cut} --num-parts 2 --out parts >cut.out && {cut} --num-parts 1 --out whole >cut.out",
                timeout=120,
            )

    def serve(self, folder: str = "whole", part: int = 0, fresh: bool = False) -> Server:
        """A server of a part on the server's host, over TCP and RDMA: the last one of this part if it still runs.
        fresh: always a new one."""
        host, key = self.server, (folder, part)
        old = self.servers.get(key)
        if old and not old.program.ended():
            if not fresh:
                return old
            old.program.stop()
        # As many descriptors as the hard limit allows: the step of many connections needs them.
        program = self.start(
            host,
            *(host.program, "serve", "--part-config", f"{host.work}/{folder}", "--part", part, "--transport", "verbs"),
            *("--listen", f"{host.address}:0", "--key-file", f"{host.work}/key", "--runtime-dir", host.work),
            prefix='ulimit -n "$(ulimit -Hn)";',
        )
        line = program.prints("serving part", max(self.left(), 20))
        at = line.split(" at ", 1)
        if len(at) != 2:
            said = " ".join(program.output().split())[-300:]
            raise HostError(f"{host.name}: the server does not start: {said or 'no output'}")
        self.servers[key] = Server(program, at[1].split(": ")[0])
        return self.servers[key]


class Server:
    """A running server. address: HOST:PORT."""

    def __init__(self, program: Program, address: str) -> None:
        self.program = program
        self.address = address

    def __repr__(self) -> str:
        return f"Server({self.address})"

    def memory_kib(self) -> dict[str, int]:
        """Its memory in KiB: Pss, and what it has locked."""
        return memory_kib(self.program.host, self.program.pid)


def memory_kib(host: Host, pid: int) -> dict[str, int]:
    """Memory of a process in KiB: Pss (its share of all pages), and VmPin and VmLck, what it has locked."""
    out = host.sh(f"cat /proc/{pid}/smaps_rollup /proc/{pid}/status").out
    found = {}
    for line in out.splitlines():
        name, _, rest = line.partition(":")
        if name in ("Pss", "VmPin", "VmLck") and rest.split():
            found[name] = int(rest.split()[0])
    return found
