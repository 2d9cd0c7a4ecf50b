"""Step 5: many connections of one process to one server: their time, and the memory of both ends."""

from __future__ import annotations

from typing import Optional

from card.run_state import Run, memory_kib
from card.suite import BUILD

COUNT, SHORT = 1000, 16
FILES_EACH = 4  # descriptors of a connection, at the client: more than it needs


def _count(run: Run) -> int:
    """How many connections the descriptors allow; a note if they are too few."""
    wanted = SHORT if run.short else COUNT
    limits = {host.name: host.must("ulimit -Hn") for host in run.hosts}
    least = min((int(text) for text in limits.values() if text.isdigit()), default=1 << 30)
    if least >= wanted * FILES_EACH + 100:
        return wanted
    count = max(1, (least - 100) // FILES_EACH)
    run.report.note(
        f"{count} connections instead of {wanted}: the hard limit of open files is {least}",
        "sudo prlimit --pid $$ --nofile=65536; permanently: nofile in /etc/security/limits.conf",
    )
    return count


def check(run: Run) -> None:
    program = run.programs.test("faults_connections")
    if program is None:
        run.report.note("many connections: their program is not built", BUILD)
        return
    count, base = _count(run), f"{run.client.work}/many"
    server = run.serve(fresh=True)
    client = run.start(
        run.client,
        *program,
        "--server",
        f"verbs://{server.address}",
        "--key-file",
        f"{run.client.work}/key",
        "--count",
        count,
        "--before",
        f"{base}.before",
        "--begin",
        f"{base}.begin",
        "--ready",
        f"{base}.ready",
        "--go",
        f"{base}.go",
        prefix='ulimit -n "$(ulimit -Hn)";',
    )
    run.awaits(client, f"{base}.before")
    before = (server.memory_kib(), memory_kib(run.client, client.pid))
    run.client.must(f"touch {base}.begin")
    if run.awaits(client, f"{base}.ready"):
        during = (server.memory_kib(), memory_kib(run.client, client.pid))
        said = client.output().strip()
        ends = [
            f"{end} {(now.get('Pss', 0) - then.get('Pss', 0)) / count:.1f} KiB, "
            f"locked {(_locked(now) - _locked(then)) / count:.1f} KiB"
            for end, then, now in zip(("server", "client"), before, during)
        ]
        run.report.ok(f"{said}; each read the same bytes; memory of one connection: {'; '.join(ends)}")
        run.client.must(f"touch {base}.go")
        if client.wait(run.left(60)) != 0:
            run.report.not_ok(f"{count} connections do not close: {client.output().strip()[-200:]}", "send the report")
        _returned(run, server.memory_kib(), before[0], during[0])
    else:
        why: Optional[str] = client.output().strip()[-300:]
        run.report.not_ok(
            f"{count} connections: {why or 'no time left'}",
            "GW_LOCKED_MEMORY: ulimit -l unlimited "
            '(docs/RDMA.md, "Locked memory"); queue pairs of the device: ibv_devinfo -v, max_qp',
        )
    client.kill()


def _locked(figures: dict[str, int]) -> int:
    return max(figures.get("VmPin", 0), figures.get("VmLck", 0))


def _returned(run: Run, after: dict[str, int], before: dict[str, int], during: dict[str, int]) -> None:
    """What the server keeps after its clients have gone."""
    kept, took = after.get("Pss", 0) - before.get("Pss", 0), during.get("Pss", 0) - before.get("Pss", 0)
    run.report.line(f"   after the clients have gone the server keeps {kept} of {took} KiB")
