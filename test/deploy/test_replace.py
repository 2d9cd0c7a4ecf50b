"""Servers that are replaced one by one, under jobs that read from them: cluster.py upgrade and restart --rolling."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from bed import HANG_S, PROGRAM, TOP, wait_for
from test_local import OnThisMachine, marked

# Reads epochs until a file is there; each is compared with the parts.
_READS = """
while [ ! -e stop-$RANK ]; do
	{program} epoch --part-config "$GRAPHWIRE_PART_CONFIG" --servers {servers} --key-file "$GRAPHWIRE_KEY_FILE" \\
		--check --json || exit 1
	touch reads-$RANK
done
"""
_ARROW = r"part (\d): pid (\d+) \(version (\S+)\) -> pid (\d+) \(version (\S+)\), (.*)$"


class Replace(OnThisMachine):
    """Each test starts its servers, and ends them."""

    weight = 40

    def cluster(self, *words: str, status: int = 0) -> str:
        end = list(words).index("--") if "--" in words else len(words)
        more = ["--scheduler", "local", "--program", PROGRAM, "--ip_config", str(self.work / "ip.txt")]
        result = subprocess.run(
            [sys.executable, str(TOP / "deploy/cluster.py"), *words[:end], *more, *words[end:]],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
            env=self.environment(),
        )
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def records(self) -> list[dict]:
        """The servers, as status shows them; each has answered."""
        rows = [json.loads(line) for line in self.cluster("status", "--json").splitlines()]
        found = [server for row in rows for server in row["servers"]]
        for server in found:
            self.assertEqual(server["stat"]["part"], server["part"], server)
        return found

    def pids(self) -> list[int]:
        return [record["pid"] for record in self.records()]

    def keep(self) -> None:
        """Starts servers that stay."""
        result = subprocess.run(
            self.words("--keep_alive", "--server_name", "long_live", "true"),
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
            env=self.environment(),
        )
        self.assertEqual(result.returncode, 0, result.stderr)

    def end(self) -> None:
        """Ends the servers that stay; no process or folder of theirs remains."""
        self.cluster("stop", "long_live")
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")
        self.assertTrue(wait_for(lambda: not list(self.home.glob(".graphwire/*/*"))), "files are left")

    def reads(self) -> subprocess.Popen:
        """A job whose trainers read until stop()."""
        for path in self.work.glob("*-[01]"):
            path.unlink()
        servers = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        job = subprocess.Popen(
            self.words("--num_trainers", "1", _READS.format(program=PROGRAM, servers=servers)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
        )
        self.addCleanup(job.kill)
        self.read_on()
        return job

    def read_on(self) -> None:
        """Each trainer has read a whole epoch since this began."""
        for rank in (0, 1):
            for _ in range(2):  # one that was in progress, and one more
                path = self.work / f"reads-{rank}"
                path.unlink(missing_ok=True)
                self.assertTrue(wait_for(path.exists), f"trainer {rank} does not read")

    def stop(self, job: subprocess.Popen) -> str:
        """Ends the trainers. Returns what the job printed on stderr."""
        for rank in (0, 1):
            (self.work / f"stop-{rank}").touch()
        output, errors = job.communicate(timeout=HANG_S)
        self.assertEqual(job.returncode, 0, errors)
        self.assertNotIn('"verified":false', output)
        self.assertGreaterEqual(output.count('"verified":true'), 4)
        return errors

    def moved(self, text: str, before: list[int]) -> list[int]:
        """The new pids of what upgrade or restart printed, with all the old ones before."""
        found = [match.groups() for match in re.finditer(_ARROW, text, re.MULTILINE)]
        self.assertEqual([int(one[0]) for one in found], [0, 1], text)
        self.assertEqual([int(one[1]) for one in found], before, text)
        after = [int(one[3]) for one in found]
        self.assertEqual(self.pids(), after)
        for pid in before:
            self.assertTrue(wait_for(lambda pid=pid: not Path(f"/proc/{pid}").exists()), f"{pid} still runs")
        return after

    def test_kept_servers_under_a_job(self) -> None:
        self.keep()
        job = self.reads()
        pids = self.pids()
        for _ in range(2):
            text = self.cluster("upgrade", "long_live")
            self.assertEqual(len(re.findall(r"pause \d+ ms$", text, re.MULTILINE)), 2, text)
            pids = self.moved(text, pids)
            self.read_on()
        self.assertEqual(self.stop(job), "")
        self.assertEqual(self.pids(), pids)
        logs = [Path(record["log"]) for record in self.records()]
        for log, pid in zip(logs, pids):
            self.assertIn(f"pid {pid}", log.read_text())
        shown = self.cluster("logs", "--workspace", str(self.work), "--job", logs[0].parts[-2])
        self.assertIn(logs[0].name, shown)
        self.end()

    def test_a_jobs_own_servers(self) -> None:
        """The job goes on when a server of its ends after a hand-over, and its end is the end of the successor."""
        job = self.reads()
        name = self.records()[0]["name"]
        pids = self.pids()
        pids = self.moved(self.cluster("upgrade", name), pids)
        self.read_on()
        self.assertEqual(self.stop(job), "")
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")
        for pid in pids:
            self.assertFalse(Path(f"/proc/{pid}").exists())
        self.assertEqual(list(self.home.glob(".graphwire/*/*")), [])

    def test_the_end_of_a_successor_is_reported(self) -> None:
        """To the job that owns it, and to a job that uses kept servers."""
        for kept in (False, True):
            if kept:
                self.keep()
            job = self.reads()
            name = self.records()[0]["name"]
            pids = self.pids()
            pids = self.moved(self.cluster("upgrade", name), pids)
            os.kill(pids[1], signal.SIGKILL)
            _, errors = job.communicate(timeout=HANG_S)
            self.assertEqual(job.returncode, 1)
            what = "the kept server of part 1 has ended" if kept else "the server of part 1 ended with signal 9"
            self.assertIn(what, errors)
        self.cluster("stop", "long_live")
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")

    def test_a_successor_that_fails_leaves_the_server(self) -> None:
        self.keep()
        job = self.reads()
        pids = self.pids()
        text = self.cluster("restart", "--rolling", "long_live", "--", "--mutable", "nothing", status=1)
        self.assertRegex(
            text, r"\Acluster: host 0 .*: part 0: graphwire serve: --mutable nothing: .*; no server was replaced\n\Z"
        )
        # The second host's server cannot be replaced: the first one was, and is named.
        record = self.records()[1]
        control = Path(record["folder"]) / "control"
        control.rename(control.with_name("away"))
        text = self.cluster("upgrade", "long_live", status=1)
        self.assertRegex(text, rf"(?m)part 0: pid {pids[0]} .*\n(?s:.*)part 1: .*; replaced before: part 0$")
        control.with_name("away").rename(control)
        self.assertEqual(self.pids()[1], pids[1])
        self.read_on()
        self.assertEqual(self.stop(job), "")
        self.end()

    def test_restart_with_other_options(self) -> None:
        self.keep()
        job = self.reads()
        pids = self.pids()
        pids = self.moved(self.cluster("restart", "--rolling", "long_live", "--", "--drain", "321"), pids)
        for pid in pids:
            self.assertIn(b"\0--drain\x00321\0", Path(f"/proc/{pid}/cmdline").read_bytes())
        pids = self.moved(self.cluster("upgrade", "long_live"), pids)
        for pid in pids:  # stays
            self.assertIn(b"\0--drain\x00321\0", Path(f"/proc/{pid}/cmdline").read_bytes())
        text = self.cluster("restart", "--rolling", "long_live", "--cold")
        self.assertEqual(text.count("the part was loaded again"), 2, text)
        self.moved(text, pids)
        self.read_on()
        self.stop(job)
        self.end()

    def test_wrong_use(self) -> None:
        for words, says in (
            (["upgrade", "nobody"], 'no host has a server named "nobody"'),
            (["restart", "nobody"], "--rolling"),
            (["upgrade", "nobody", "--", "--threads", "2"], "upgrade takes no options of servers: --threads 2"),
        ):
            text = self.cluster(*words, status=1 if says.startswith("no host") else 2)
            self.assertEqual(text.count("\n"), 1, text)
            self.assertIn(says, text)


if __name__ == "__main__":
    unittest.main()
