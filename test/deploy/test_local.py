"""Jobs on this machine alone (--scheduler local): no ssh and no root."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from bed import HANG_S, PROGRAM, SILENCE, TOP, wait_for
from ports import free_ports


def marked(mark: str) -> list[int]:
    """Processes that have the mark in their environment, by whatever they were started."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if mark.encode() in file.read():
                        found.append(int(entry))
            except OSError:
                continue
    return found


class Local(unittest.TestCase):
    """A graph of two parts, both served here."""

    @classmethod
    def setUpClass(cls) -> None:
        """A workspace with a graph."""
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = Path(cls.folder.name)
        for words in (
            ["generate", "rmat", "--scale", "11", "--features", "8", "--labels", "4", "--train-share", "0.5"],
            ["partition", str(cls.work / "graph"), "--num-parts", "2", "--method", "random"],
        ):
            out = cls.work / ("graph" if words[0] == "generate" else "parts")
            subprocess.run([PROGRAM, *words, "--out", str(out)], check=True, capture_output=True, timeout=60)

    @classmethod
    def tearDownClass(cls) -> None:
        """The workspace goes."""
        cls.folder.cleanup()

    def setUp(self) -> None:
        """Ports of this test's own."""
        self.ports = free_ports(2)
        (self.work / "ip.txt").write_text("".join(f"127.0.0.1 {port}\n" for port in self.ports))
        self.mark = f"GW_TEST_MARK={os.getpid()}-{self.id()}"
        shutil.rmtree(self.work / "logs", ignore_errors=True)
        self.home = Path(tempfile.mkdtemp(dir=self.work))
        self.addCleanup(self.clear)

    def clear(self) -> None:
        """A test that failed leaves nothing to the next."""
        for pid in marked(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def words(self, *more: str) -> list[str]:
        words = [sys.executable, str(TOP / "deploy/launch.py"), "--scheduler", "local", "--program", PROGRAM]
        words += ["--workspace", str(self.work), "--part_config", "parts", "--ip_config", "ip.txt"]
        return [*words, "--silence", SILENCE, *more]

    def environment(self) -> dict:
        name, value = self.mark.split("=")
        return dict(os.environ, HOME=str(self.home), XDG_RUNTIME_DIR=str(self.home), **{name: value})

    def launch(self, *more: str, timeout: float = HANG_S) -> subprocess.CompletedProcess:
        result = subprocess.run(
            self.words(*more), capture_output=True, text=True, timeout=timeout, check=False, env=self.environment()
        )
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")
        self.assertEqual(list(self.home.glob(".graphwire/*/agent-*")), [], "folders are left")
        return result

    def fails(self, says: str, *more: str, status: int = 1) -> None:
        result = self.launch(*more)
        lines = result.stderr.strip().splitlines()
        self.assertEqual((result.returncode, len(lines)), (status, 1), result.stderr + result.stdout)
        self.assertRegex(lines[0], says)

    def test_trainers_find_their_graph(self) -> None:
        servers = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        epoch = f'{PROGRAM} epoch --part-config "$GRAPHWIRE_PART_CONFIG" --servers {servers}'
        epoch += ' --key-file "$GRAPHWIRE_KEY_FILE" --check --json'
        result = self.launch("--num_trainers", "2", f"{epoch}; echo rank $RANK of $WORLD_SIZE, 'a  \"b\"'")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(re.findall(r'"verified":true', result.stdout)), 4, result.stdout)
        for rank in range(4):
            self.assertIn(f'rank {rank} of 4, a  "b"', result.stdout)

    def test_stat_and_doctor_find_the_servers_too(self) -> None:
        result = self.launch(
            *("--num_trainers", "1", "--mutable", "feat"),
            f"{PROGRAM} stat --json && {PROGRAM} doctor --measure 10 --json >&2",
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        parts = re.findall(r'"part":(\d)', result.stdout)
        self.assertEqual(sorted(parts), ["0", "0", "1", "1"])
        self.assertEqual(len(re.findall(r'"tensors":\[{[^]]*feat', result.stdout)), 4, result.stdout)

    def test_a_trainer_that_fails_is_named(self) -> None:
        self.fails(
            r"host 1 .*trainer 1 ended with status 3: .*why not.*log: ",
            '[ "$RANK" = 0 ] && exec sleep 900; (setsid sleep 900 &); echo why not >&2; exit 3',
        )

    def test_a_server_that_fails_is_named(self) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", self.ports[1]))
            other.listen()
            self.fails(
                rf"host 1 .*the server of part 1 ended with status 1: .*{self.ports[1]}.*process {os.getpid()} .*log: ",
                "true",
            )
        (self.work / "odd").mkdir(exist_ok=True)
        self.fails("host [01] .*odd", "--part_config", "odd", "true")

    def test_wrong_usage_is_status_2(self) -> None:
        (self.work / "ip.txt").write_text("127.0.0.1 1\n127.0.0.1 2\n127.0.0.1 3\n")
        self.fails("parts has 2 parts, and ip.txt 3 hosts", "true", status=2)
        self.fails("--nonsense", "--nonsense", "true", status=2)
        self.fails(
            "no user .*did you mean ~/nobody-here/w",
            "--workspace",
            "~nobody-here/w",
            "--ip_config",
            str(self.work / "ip.txt"),
            "true",
        )

    def test_a_flood_ends_like_anything_else(self) -> None:
        result = self.launch("--num_trainers", "1", "--log_bytes", "1000000", "yes | head -n 2000000; echo the end")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("the end"), 2, result.stdout[-300:])
        self.assertIn("lines more are in its log", result.stdout[-3000:])
        logs = list((self.work / "logs").glob("*/trainer-127.0.0.1-0.log*"))
        self.assertEqual(len(logs), 4, logs)
        self.assertTrue(all(log.stat().st_size <= 1000000 for log in logs))

    def begun(self, *more: str) -> tuple[subprocess.Popen, list[int]]:
        """A job whose two trainers run; the pids of its agents: worker, guardian, ..."""
        process = subprocess.Popen(
            self.words("--verbose", *more, "echo running; exec sleep 900"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
        )
        assert process.stdout
        for _ in range(2):
            self.assertIn("running", process.stdout.readline())
        agents = []
        for pid in marked(self.mark):
            with contextlib.suppress(OSError):  # one that has just ended
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if b"agent" in words and b"graphwire" in words[0]:
                    agents.append(pid)
        self.assertEqual(len(agents), 4)
        return process, agents

    def ends(self, process: subprocess.Popen, status: int, says: str) -> None:
        _, errors = process.communicate(timeout=HANG_S)
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")
        self.assertEqual(process.returncode, status, errors)
        self.assertRegex(errors, says)

    def test_interrupted(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process, _ = self.begun()
            process.send_signal(number)
            self.ends(process, 130, "interrupted")

    def test_the_launcher_is_killed(self) -> None:
        process, _ = self.begun()
        process.kill()
        process.communicate(timeout=HANG_S)
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")

    def test_an_agent_is_killed(self) -> None:
        """Each of the two processes of an agent watches the other."""
        for which, says in ((0, "worker|guardian|connection"), (1, "worker|guardian|connection")):
            process, agents = self.begun()
            os.kill(agents[which], signal.SIGKILL)
            self.ends(process, 1, says)

    def test_the_launcher_is_silent(self) -> None:
        """Stopped for longer than --silence: the agents end everything by themselves."""
        process, _ = self.begun("--silence", "4")
        process.send_signal(signal.SIGSTOP)
        gone = wait_for(lambda: marked(self.mark) == [process.pid])
        process.send_signal(signal.SIGCONT)
        self.ends(process, 1, "silent")
        self.assertTrue(gone, "processes are left")

    def test_all_of_it_is_suspended(self) -> None:
        """As a batch system does: for longer than --silence, and not everywhere at once. The job goes on."""
        go = self.work / "go"
        go.unlink(missing_ok=True)
        words = self.words("--silence", "4", f"echo running; until [ -e {go} ]; do sleep 0.1; done; echo the end")
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment()
        )
        assert process.stdout
        for _ in range(2):
            self.assertIn("running", process.stdout.readline())
        everything = [pid for pid in marked(self.mark) if pid != process.pid]
        half = len(everything) // 2  # one host's, or nearly
        everything.insert(half, process.pid)
        for pid in everything:
            with contextlib.suppress(ProcessLookupError):  # a trainer's sleep
                os.kill(pid, signal.SIGSTOP)
        time.sleep(5)
        for at, pid in enumerate(everything):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            if at in (half - 1, half):
                time.sleep(0.3)
        time.sleep(1)  # for a look at who is silent
        go.write_text("")
        output, errors = process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(output.count("the end"), 2, output)
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")

    def server(self) -> int:
        """The server of part 0, as it is on record; 0: none now."""
        for path in self.home.glob(f".graphwire/*/server-{self.ports[0]}.json"):
            with contextlib.suppress(FileNotFoundError):  # it has just ended
                return int(json.loads(path.read_text())["pid"])
        return 0

    def test_a_dead_server_comes_back(self) -> None:
        process, _ = self.begun("--restarts", "1")
        first = self.server()
        os.kill(first, signal.SIGKILL)
        assert process.stderr
        self.assertIn("started again (1 of 1)", process.stderr.readline())
        self.assertTrue(wait_for(lambda: self.server() not in (0, first)), "it does not come back")
        os.kill(self.server(), signal.SIGKILL)
        self.ends(process, 1, "host 0 .*the server of part 0 ended with signal 9")

    def test_old_logs_go(self) -> None:
        """Of all but the last jobs; not of one that still runs, nor what is not a job's."""
        logs = self.work / "logs"
        old, running, later = "20200101-000000-aaaaaa", "20200102-000000-000001-bbbbbb", "20990101-000000-cccccc"
        for name in (old, running, later, "mine", "2020"):
            (logs / name).mkdir(parents=True)
            (logs / name / "x.log").write_text("x")
            (logs / name / ".running").write_text("")
        with open(logs / running / ".running") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            self.assertEqual(self.launch("--keep_logs", "0", "true").returncode, 0)
            self.assertEqual(len(list(logs.iterdir())), 6)
            self.assertEqual(self.launch("--keep_logs", "2", "true").returncode, 0)
        left = {path.name for path in logs.iterdir()}
        self.assertEqual(len(left), 5, left)  # its own too
        self.assertLess({running, later, "mine", "2020"}, left)

    def test_an_agent_watches_a_server(self) -> None:
        """One that is not on record any more is told of at once, whoever has its pid now; strange requests fail."""
        requests = [{"op": "watch", "port": self.ports[0], "pid": os.getpid()}, {"op": "watch", "port": 0, "pid": 1}]
        requests += [{"op": "watch", "port": 1, "pid": -1}]
        agent = subprocess.Popen(
            [PROGRAM, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment()
        )
        assert agent.stdin and agent.stdout
        agent.stdin.write("".join(json.dumps(request) + "\n" for request in requests))
        agent.stdin.flush()
        events = [json.loads(agent.stdout.readline()) for _ in range(5)]
        agent.communicate(timeout=HANG_S)
        self.assertEqual([event["event"] for event in events], ["hello", "watching", "failed", "failed", "gone"])
        self.assertEqual((events[4]["port"], events[4]["pid"]), (self.ports[0], os.getpid()))

    def test_help(self) -> None:
        for name in ("launch", "copy_files", "cluster"):
            words = [sys.executable, str(TOP / f"deploy/{name}.py"), "--help"]
            result = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("usage: ", result.stdout)

    def test_dry_run(self) -> None:
        result = self.launch("--dry_run", "--num_trainers", "1", "python3 t.py 'a b'")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("graphwire serve"), 2)
        self.assertEqual(result.stdout.count("torch.distributed.run"), 2)


if __name__ == "__main__":
    unittest.main()
