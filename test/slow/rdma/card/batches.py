"""Step 3: mini-batches over RDMA, over TCP and from the folder have the same digests.

The trainer of test/slow/faults compares each batch of an epoch with the folder's, and prints the transport to each
part.
"""

from __future__ import annotations

import hashlib

from card.host import words
from card.run_state import Run, Server
from card.suite import BUILD


def trainer(run: Run, *arguments: object) -> list[object]:
    """The words of a trainer over the graph of this run, empty if it is not built."""
    program = run.programs.test("faults_trainer")
    work = run.client.work
    if program is None:
        return []
    graph = ("--part-config", f"{work}/parts", "--digests", f"{work}/digests", "--key-file", f"{work}/key")
    return [*program, *graph, "--batch-size", 32, *arguments]


def servers(run: Run) -> list[Server]:
    """A server of each part, both on the server's host."""
    return [run.serve("parts", part) for part in (0, 1)]


def ready(run: Run) -> bool:
    """Writes the digests of the folder's batches once. False if that fails; a finding says why."""
    command = trainer(run)
    if not command:
        run.report.note("mini-batches: the trainer is not built", BUILD)
        return False
    path = f"{run.client.work}/digests"
    if run.client.sh(f"[ -s {words(path)} ]").rc == 0:
        return True
    done = run.client.sh(words(*command, "--steps", 8 if run.short else 40), run.left(60))
    if done.rc != 0:
        run.report.not_ok(f"mini-batches from the folder: {done.why()}", "send the report")
    return done.rc == 0


def check(run: Run) -> None:
    if not ready(run):
        return
    digests = run.client.must(f"cat {words(run.client.work)}/digests")
    run.report.line(
        f"   digest of the digests of {len(digests.split())} batches: "
        f"{hashlib.sha256(digests.encode()).hexdigest()[:16]}"
    )
    both = servers(run)
    addresses = ",".join(server.address for server in both)
    for transport, neighbours in (("verbs", "reads"), ("verbs", "requests"), ("tcp", "requests")):
        command = trainer(run, "--servers", addresses, "--transport", transport, "--neighbours", neighbours)
        done = run.client.sh(words(*command), run.left(60))
        paths = sorted(line.partition(": ")[2] for line in done.out.splitlines() if line.startswith("part "))
        what = f"mini-batches over {transport}, neighbours by {neighbours}"
        if done.rc == 0 and paths == [transport] * 2:
            run.report.ok(f"{what}: {done.out.splitlines()[0]}; the digests are the folder's")
        else:
            why = done.why() if done.rc else f"the parts are reached over {', '.join(paths)}"
            run.report.not_ok(
                f"{what}: {why}",
                "graphwire doctor --server ADDRESS --transport verbs says what fails; "
                "a batch that differs is a defect: send the report",
            )
