"""Step 6: the server is killed, stopped, its link taken down. The client's errors come within their deadlines, and
nothing is written to a buffer after its read has ended.

    killed    a trainer in mid-epoch ends with one line that names the server, within its deadlines
    killed    reads in flight end; nothing is written afterwards (test/slow/faults/deadline.c, over RDMA)
    stopped   reads go on without the server's code; a request ends at its deadline (test/slow/faults/stopped.c)
    stopped   reads over TCP end at their deadlines; nothing is written when the server goes on
    link      reads over RDMA end at their deadlines while the server's link is down; nothing is written when it is back
"""

from __future__ import annotations

import time
from typing import Optional

from card.batches import ready, servers, trainer
from card.host import Program, wait_until, words
from card.run_state import Run, Server
from card.suite import BUILD

RECONNECT_MS = 4000
TIMEOUT_MS, GUEST_MS = 4000, 30000  # an operation's deadline
SLACK_S, GUEST_S = 5.0, 60.0  # a completion may be this much later than its deadline on a busy machine
DOWN_S, GUEST_DOWN_S = 6, 15  # longer than the reads take to end
BEFORE_S = 3
NEEDED_S = 5  # a fault is not tried with less time


def _trainer_killed(run: Run) -> None:
    """A trainer whose server is killed."""
    if not ready(run):
        return
    work = run.client.work
    timeout = GUEST_MS if run.guest else TIMEOUT_MS
    both = servers(run)
    addresses = ",".join(server.address for server in both)
    limits = ("--timeout", timeout, "--reconnect", RECONNECT_MS)
    files = ("--until", f"{work}/never", "--progress", f"{work}/progress")
    command = trainer(run, "--servers", addresses, "--transport", "verbs", *limits, *files)
    client = run.start(run.client, *command)
    begun = wait_until(lambda: _batches(f"{work}/progress") >= 5 or client.ended(), run.left(60))
    if not begun or client.ended():
        run.report.not_ok(f"the trainer does not begin: {client.output()[-200:]}", "send the report")
    both[0].program.kill()
    killed = time.monotonic()
    status = client.wait(run.left(60))
    took = time.monotonic() - killed
    lines = [line for line in client.output().splitlines() if line.startswith("trainer: ")]
    most = (timeout + RECONNECT_MS) / 1000 + (GUEST_S if run.guest else SLACK_S)
    if status == 1 and len(lines) == 1 and both[0].address in lines[0] and took <= most:
        run.report.ok(
            f"server killed: the trainer ends after {took:.1f} s (deadline {timeout / 1000:g} s, reconnect "
            f"budget {RECONNECT_MS / 1000:g} s) with one line that names the server"
        )
    else:
        run.report.not_ok(
            f"server killed: the trainer's status is {status} after {took:.1f} s: {' / '.join(lines)}",
            "send the report, with hw_counters of both hosts",
        )
    client.kill()


def _batches(path: str) -> int:
    """The number of batches in the trainer's file of progress."""
    try:
        with open(path, encoding="utf-8") as file:
            return int((file.read().split() or ["0"])[0])
    except (OSError, ValueError):
        return 0


def _stopped(run: Run) -> None:
    """Reads from a stopped server, and a request to it."""
    program = run.programs.test("faults_stopped")
    if program is None:
        run.report.note("a stopped server: the program is not built", BUILD)
        return
    both = servers(run)
    base = f"{run.client.work}/stopped"
    reads, picks = (500, 500) if run.short else (20000, 100000)
    client = run.start(
        run.client,
        *program,
        "--part-config",
        f"{run.client.work}/parts",
        "--servers",
        ",".join(server.address for server in both),
        "--key-file",
        f"{run.client.work}/key",
        "--transport",
        "verbs",
        "--reads",
        reads,
        "--picks",
        picks,
        "--ready",
        f"{base}.ready",
        "--go",
        f"{base}.go",
    )
    connected = run.awaits(client, f"{base}.ready")
    both[0].program.signal("STOP")
    before = _ticks(both[0])
    run.client.must(f"touch {base}.go")
    status = client.wait(run.left(90)) if connected else None
    after = _ticks(both[0])
    if status == 0 and before == after:
        run.report.ok(
            f"server stopped: {(client.output().splitlines() or [''])[-1]}; the server used no processor time"
        )
    else:
        run.report.not_ok(
            f"server stopped: status {status}, processor ticks {before} and {after}: {client.output().strip()[-200:]}",
            "send the report",
        )
    client.kill()
    both[0].program.kill()


def _ticks(server: Server) -> str:
    """Processor time that a server has used."""
    return server.program.host.must(f"sed 's/.*) //' /proc/{server.program.pid}/stat | cut -d ' ' -f 12,13")


class _Late:
    """The program of test/slow/faults/deadline.c: reads that end before their bytes can arrive."""

    def __init__(self, run: Run, name: str, server: Server, scheme: str, lost: bool) -> None:
        self.run, self.name = run, name
        self.base = f"{run.client.work}/late-{name.replace(' ', '-')}"
        command = run.programs.test("faults_deadline")
        assert command is not None
        self.program: Program = run.start(
            run.client,
            *command,
            "--server",
            f"{scheme}://{server.address}",
            "--key-file",
            f"{run.client.work}/key",
            "--ready",
            f"{self.base}.ready",
            "--go",
            f"{self.base}.go",
            "--passed",
            f"{self.base}.passed",
            "--back",
            f"{self.base}.back",
            *(["--lost"] if lost else []),
        )
        self.connected = run.awaits(self.program, f"{self.base}.ready")

    def go(self) -> None:
        """The fault is there: the reads begin. Returns when all have ended."""
        self.run.client.must(f"touch {self.base}.go")
        self.run.awaits(self.program, f"{self.base}.passed")

    def back(self) -> None:
        """The fault is gone: late bytes would arrive now. Reports."""
        self.run.client.must(f"touch {self.base}.back")
        status = self.program.wait(self.run.left(60))
        said = self.program.output().strip()
        if status == 0:
            self.run.report.ok(f"{self.name}: nothing is written after a read has ended: {said}")
        else:
            self.run.report.not_ok(
                f"{self.name}: late reads: status {status}: {said[-200:]}",
                '"was written to" is a defect: send the report. Else: graphwire doctor --server',
            )
            self.program.kill()


def _late_writes(run: Run) -> None:
    """Reads in flight when the server is killed or stopped."""
    server = run.serve()
    late = _Late(run, "server killed", server, "verbs", lost=True)
    server.program.kill()
    late.go()
    late.back()
    server = run.serve()
    late = _Late(run, "server stopped, over TCP", server, "tcp", lost=False)
    server.program.signal("STOP")
    late.go()
    server.program.signal("CONT")
    late.back()


def _down_s(run: Run) -> int:
    return GUEST_DOWN_S if run.guest else DOWN_S


def _down(run: Run) -> Optional[str]:
    """The line that takes the server's link down for a while, or None if it may not run here."""
    netdev = words(run.server.netdev)
    line = f"ip link set dev {netdev} down; sleep {_down_s(run)}; ip link set dev {netdev} up"
    if not run.link_down:
        run.report.note(
            f"the link was not taken down: {netdev} of {run.server.name} would carry nothing for {_down_s(run)} s",
            f"--link-down does it, by these commands as root (or sudo -n): {line}",
        )
        return None
    for root in ("", "sudo -n "):
        if run.server.sh(f"{root}sh -c '[ \"$(id -u)\" = 0 ]'").rc == 0:
            return f"{root}sh -c {words(line)}"
    run.report.note("the link was not taken down: it needs root (or sudo -n)", f"sudo sh -c {words(line)}")
    return None


def _link(run: Run) -> None:
    """Reads while the link is down. The line restores the link by itself, since ssh may use it."""
    if not run.two:
        run.report.note("the link was not taken down: on one host reads do not use it", "--peer HOST --link-down")
        return
    line = _down(run)
    if line is None:
        return
    server = run.serve()
    late = _Late(run, "link down", server, "verbs", lost=True)
    # ssh may use the link: its reply comes before the link is down.
    run.server.must(f"setsid sh -c {words(f'sleep {BEFORE_S}; {line}')} >/dev/null 2>&1 </dev/null &")
    time.sleep(BEFORE_S + 0.5)
    late.go()
    time.sleep(_down_s(run))
    run.server.must("true", timeout=90)  # TCP resends after a pause
    late.back()
    server.program.kill()
    asked = ("--server", run.serve().address, "--key-file", f"{run.client.work}/key", "--transport", "verbs")
    done = run.client.sh(words(run.client.program, "doctor", *asked, "--timeout", 20000), run.left(60))
    if done.rc == 0:
        run.report.ok("the link is up again, and RDMA works")
    else:
        run.report.note(
            "the link is up again, but RDMA does not work: Soft-RoCE of Linux 6.1 does this",
            "a card: send the report; Soft-RoCE: rdma link delete, rdma link add",
        )


def check(run: Run) -> None:
    if run.programs.test("faults_deadline") is None:
        run.report.note("faults: their programs are not built", BUILD)
        return
    for what, function in (
        ("a trainer whose server is killed", _trainer_killed),
        ("a stopped server", _stopped),
        ("late writes", _late_writes),
        ("the link down", _link),
    ):
        if run.has_time(what, NEEDED_S):
            function(run)
