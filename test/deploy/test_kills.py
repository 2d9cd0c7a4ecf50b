"""Random kills: any process of a running job, anywhere, at any stage. The job ends, and nothing of it is left.

Twenty of them here; `./check soak` makes five hundred (GRAPHWIRE_SOAK). The seed is printed with a failure.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
import unittest

from bed import wait_for
from test_hosts import OnHosts

SOAK = bool(os.environ.get("GRAPHWIRE_SOAK"))
KILLS = int(os.environ.get("GRAPHWIRE_KILLS", "500" if SOAK else "20"))
END_S = 5.0  # for everything of the job, after the death


def is_of_job(text: str) -> bool:
    """Not what a trainer left behind, which may die without an end of the job, nor sshd before the login: a connection
    without its process hangs for as long as --timeout allows (test_an_sshd_that_hangs)."""
    if "sshd" in text:
        return "@notty" in text
    return "sleep 333" not in text or "sleep 100" in text


class Kills(OnHosts):
    """A process of the job dies by SIGKILL."""

    def victims(self) -> list[tuple[int, str]]:
        """Whatever belongs to the job, on the desk and on the hosts."""
        found = [(pid, f"desk: {text}") for pid, text in self.bed.desk.processes().items()]
        for host in self.bed.hosts:
            found += [(pid, f"{host.name}: {text}") for pid, text in host.processes().items()]
        return found

    def test_any_process(self) -> None:
        seed = random.randrange(1 << 30)
        chance = random.Random(seed)
        longest = 0.0
        for number in range(KILLS):
            with self.subTest(seed=seed, number=number):
                longest = max(longest, self.one(chance))
        print(f"note: {KILLS} random kills; the longest end took {longest:.1f} s", flush=True)

    def one(self, chance: random.Random) -> float:
        """One job, one death; how long the end took."""
        trainer = "echo running; (setsid sleep 333 &); exec sleep 100"
        process = self.bed.desk.start(*self.words("--num_trainers", "2", trainer))
        assert process.stdout
        if chance.random() < 0.5:  # while it runs; else at whatever stage it has come to
            for _ in range(2 * self.count):
                process.stdout.readline()
        else:
            time.sleep(chance.random() * 1.5)  # chance, not a wait for something
        text = self.strike(process, chance)
        began = time.monotonic()
        try:
            process.communicate(timeout=30)
        finally:
            self.finish(text)
        took = time.monotonic() - began
        self.assertLess(took, END_S + 5 * (os.getloadavg()[0] > 8), text)
        return took

    def strike(self, process: subprocess.Popen, chance: random.Random) -> str:
        """Kills a process of the job, one that is still there; what it was."""
        while process.poll() is None:
            victims = [(pid, text) for pid, text in self.victims() if is_of_job(text)]
            if not victims:
                time.sleep(0.01)  # the launcher is not there yet
                continue
            pid, text = chance.choice(victims)
            try:
                os.kill(pid, 9)
                return text
            except ProcessLookupError:
                continue
        return "nothing: it had ended"

    def finish(self, text: str) -> None:
        """Nothing is left, neither on the hosts nor on the desk."""
        gone = wait_for(lambda: not self.victims(), END_S + 5)
        self.assertTrue(gone, f"{text}: leaves {self.victims()}")


if __name__ == "__main__":
    unittest.main()
