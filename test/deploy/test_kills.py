"""Random kills of any process of a job, on any host, at each stage. The job ends, and leaves no process. Twenty kills
here; `./check soak` makes five hundred (GRAPHWIRE_SOAK, or GRAPHWIRE_KILLS of them), and compares each end with the
limit of five seconds. The seed is printed with a failure."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from bed import HANG_S, ON_HOST, Host, processes_of, wait_for
from gate import Gate
from test_copy import COPY
from test_hosts import OnHosts

SOAK = bool(os.environ.get("GRAPHWIRE_SOAK"))
KILLS = int(os.environ.get("GRAPHWIRE_KILLS", "500" if SOAK else "20"))
SEED = int(os.environ.get("GRAPHWIRE_SEED", random.randrange(1 << 30)))
END_S = 5.0  # for all processes of the job, after the kill
STAGES = ("whenever", "running", "loading", "ending", "copying")


def is_of_job(text: str) -> bool:
    """False for a trainer's leftovers, which may end without the job. False for sshd before the login: a connection
    without its process hangs for as long as --timeout allows (test_an_sshd_that_hangs)."""
    if "sshd" in text:
        return "@notty" in text
    return not text.startswith(("setsid -f", "sleep 333"))


def is_needed(pid: int, text: str) -> bool:
    """Whether the job needs the process. A child that is about to run another program, and may be the one that was
    killed, still has its parent's command line; an agent has that of the agent that guards it."""
    if not re.search(r"launch\.py|^ssh |^sshd: |^\S*graphwire agent|^graphwire serve|sleep 900", text):
        return False
    for _ in range(2 if text.endswith("graphwire agent") else 1):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        parent = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        if parent != text:
            return True
    return False


class Kills(OnHosts):
    """SIGKILL hits a process of the job."""

    weight = 50  # see run.py

    @classmethod
    def setUpClass(cls) -> None:
        """The desk has the graph too, for copies; hosts have the library that holds a load."""
        super().setUpClass()
        if os.geteuid() != 0:
            return
        shutil.copytree(cls.parts, cls.bed.desk.home / "g")
        held = cls.bed.folder / "held_load.so"
        source = str(Path(__file__).with_name("held_load.c"))
        subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", str(held), source], check=True, timeout=60)
        for host in cls.bed.hosts:
            shutil.copy(held, host.folder)

    def there(self) -> list[tuple[Host, int, str]]:
        """All processes of the job, on the desk and on the hosts."""
        return processes_of([self.bed.desk, *self.bed.hosts])

    def words_of_all(self) -> list[str]:
        """The same as text."""
        return [f"{host.name}: {pid} {text}" for host, pid, text in self.there()]

    def test_any_process(self) -> None:
        chance = random.Random(SEED)
        ends: dict[str, list[float]] = collections.defaultdict(list)
        for number in range(KILLS):
            stage = STAGES[number % len(STAGES)]
            with self.subTest(seed=SEED, number=number, stage=stage):
                ends[stage].append(getattr(self, stage)(chance))
        for stage, took in ends.items():
            print(f"note: {len(took)} random kills, {stage}; the longest end took {max(took):.1f} s", flush=True)

    def test_agent_and_guardian_at_once(self) -> None:
        """On one host. The processes on the other hosts end with the job. Those on this host are listed, and can be
        ended."""
        host = self.bed.hosts[1]
        process = self.job()
        self.all_run(process)
        agents = host.find("graphwire agent")
        self.assertEqual(len(agents), 2)
        for pid in agents:
            os.kill(pid, signal.SIGSTOP)  # neither sees the other's end
        for pid in agents:
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 1)
        cluster = ["python3", "/mnt/top/deploy/cluster.py"]
        where = ["--program", ON_HOST, "--ip_config", "w/ip.txt", "--workspace", "~/w"]
        self.assertTrue(wait_for(lambda: set(host.find("sleep")) == set(host.find("sleep 333"))), self.words_of_all())
        status = self.bed.desk.run(*cluster, "status", "--json", *where)
        left = [json.loads(line).get("left", []) for line in status.stdout.splitlines()]
        self.assertEqual([len(one) for one in left], [0, 1, 0, 0], status.stdout + status.stderr)
        (there,) = left[1]
        self.assertEqual([one["command"] for one in there["processes"]], ["sleep 333", "sleep 333"])
        self.assertTrue(there["key"] and list(host.home.glob(".graphwire/*/agent-*/key")))
        ended = self.bed.desk.run(*cluster, "stop", there["job"], *where)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.is_gone("agent and guardian")
        self.assertEqual([list(one.home.glob(".graphwire/*/agent-*")) for one in self.bed.hosts], [[]] * self.count)

    # --- The stages. ---

    def whenever(self, chance: random.Random) -> float:
        """At a random stage."""
        process = self.job()
        time.sleep(chance.random() * 1.5)  # a random moment; waits for no event
        return self.strike(process, chance)

    def running(self, chance: random.Random) -> float:
        process = self.job()
        self.all_run(process)
        return self.strike(process, chance)

    def loading(self, chance: random.Random) -> float:
        """All servers are about to read a file of their part, and are held there (held_load.c)."""
        for host in self.bed.hosts:
            (host.folder / "held").unlink(missing_ok=True)
        held = "LD_PRELOAD=/mnt/bed/held_load.so", "HELD_LOAD=/feat.npy", "HELD_LOAD_AT=/mnt/bed"
        process = self.job("exec sleep 900", "--extra_envs", *held)
        everywhere = [host.folder / "held" for host in self.bed.hosts]
        if not wait_for(lambda: all(path.exists() for path in everywhere)):
            self.fail(f"the servers do not load: {self.bed.left()}")
        return self.strike(process, chance)

    def ending(self, chance: random.Random) -> float:
        """A Ctrl-C, or the trainers' own end, is in progress."""
        by_signal = chance.random() < 0.5
        process = self.job("exec sleep 900" if by_signal else "while [ ! -e ~/w/end ]; do sleep 0.01; done")
        self.all_run(process)
        if by_signal:
            os.kill(self.launcher(), signal.SIGINT)
        for host in self.bed.hosts:
            (host.home / "w/end").write_text("")
        time.sleep(chance.random() * 0.15)  # again a random moment
        try:
            return self.strike(process, chance)
        finally:
            for host in self.bed.hosts:
                (host.home / "w/end").unlink()

    def copying(self, chance: random.Random) -> float:
        """Each host's files are being sent, or a random stage has been reached; then a second copy, to its end."""
        for host in self.bed.hosts:
            shutil.rmtree(host.home / "new", ignore_errors=True)
        source = self.bed.desk.home / "g"
        words = [*COPY, "--workspace", "~/new", "--rel_data_path", "x", "--part_config", "g", "--ip_config", "w/ip.txt"]
        with Gate(source / f"part{host.index}/node/_N/feat.npy" for host in self.bed.hosts) as gate:
            process = self.bed.desk.start(*words)
            if chance.random() < 0.5:
                self.assertTrue(gate.held(self.count), "nothing is copied")
            else:
                gate.open()
                time.sleep(chance.random())
            took = self.strike(process, chance, gate.open)
        for host in self.bed.hosts:
            if (host.home / "new/x/rmat.json").exists():
                self.is_whole(host.index)
        again = self.bed.desk.run(*words)
        self.assertEqual(again.returncode, 0, again.stderr)
        for host in self.bed.hosts:
            self.is_whole(host.index)
        self.is_gone("a whole copy")
        return took

    # --- Shared code. ---

    def job(self, trainer: str = "exec sleep 900", *more: str) -> subprocess.Popen:
        """A job whose trainers leave a process. If the child that becomes this process dies early, its trainer ends."""
        return self.bed.desk.start(
            *self.words("--num_trainers", "2", *more, f"setsid -f sleep 333 || exit; echo running; {trainer}")
        )

    def all_run(self, process: subprocess.Popen) -> None:
        """Waits until all trainers have printed "running"."""
        assert process.stdout
        for _ in range(2 * self.count):
            self.assertIn("running", process.stdout.readline())

    def strike(self, process: subprocess.Popen, chance: random.Random, then: object = None) -> float:
        """Kills a running process of the job. Returns how long the others took to end. then: lets the job end by
        itself; without it, more processes are killed until one was needed."""
        text = self.kill_one(process, chance, then is None)
        began = time.monotonic()
        if callable(then):
            then()
        try:
            process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            left = self.words_of_all()
            os.kill(self.launcher(), signal.SIGKILL)  # for the next ones
            process.communicate(timeout=HANG_S)
            self.fail(f"{text}: the command does not end; there are {left}")
        finally:
            self.is_gone(text)
        took = time.monotonic() - began
        if SOAK and not then:  # the copies to the other hosts continue
            self.assertLess(took, END_S, text)
        return took

    def kill_one(self, process: subprocess.Popen, chance: random.Random, needed: bool) -> str:
        while process.poll() is None:
            victims = [(host, pid, text) for host, pid, text in self.there() if is_of_job(text)]
            if not victims:
                time.sleep(0.01)  # the command has not started yet
                continue
            host, pid, text = chance.choice(victims)
            with contextlib.suppress(OSError):  # it has just ended
                enough = not needed or is_needed(pid, text)
                os.kill(pid, signal.SIGKILL)
                if enough:
                    return f"{host.name}: {text}"
        return "nothing: it had ended"

    def is_gone(self, text: str) -> None:
        """No process remains on the hosts and the desk."""
        gone = wait_for(lambda: not self.there())
        self.assertTrue(gone, f"{text}: leaves {self.words_of_all()}")

    def is_whole(self, index: int) -> None:
        """A host has exactly its part, completely."""
        there, here = self.bed.hosts[index].home / "new/x", self.bed.desk.home / "g"
        want = sorted(str(path.relative_to(here)) for path in (here / f"part{index}").rglob("*.*"))
        have = sorted(str(path.relative_to(there)) for path in there.rglob("*.*"))
        self.assertEqual(have, [*want, "rmat.json"])
        for name in have:
            self.assertEqual((there / name).read_bytes(), (here / name).read_bytes(), name)


if __name__ == "__main__":
    unittest.main()
