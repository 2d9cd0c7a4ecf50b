"""Jobs on this machine only (--scheduler local): no ssh and no root."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path

from bed import HANG_S, PROGRAM, SILENCE, TOP, wait_for
from ports import free_ports

_ALL_ENDED = "launch: interrupted; all processes of the job have ended\n"
_FIRST_THREAD_ENDS = """
import ctypes, subprocess, sys, threading, time
deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('running', flush=True); time.sleep(900)"
subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
threading.Thread(target=time.sleep, args=(900,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""
_RAISES = """
import os, threading, time
def stay():
    threading.main_thread().join()  # its exception is reported
    open("told", "w").close()
    time.sleep(900)
if os.environ["RANK"] == "1":
    threading.Thread(target=stay).start()
    raise ValueError("first\\n\\tsecond line")
while not os.path.exists("told"):
    time.sleep(0.01)
raise RuntimeError("[pair.cc:553] Connection closed by peer [127.0.0.1]:1")
"""
_LOSES = """
import os, signal, time
if os.environ["RANK"] == "1":
    while not os.path.exists("lost"):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
try:
    raise RuntimeError("[pair.cc:553] Connection closed by peer [127.0.0.1]:1")
finally:
    open("lost", "w").close()
"""
_PTRACE_SEIZE, _PTRACE_O_TRACEEXIT = 0x4206, 0x40  # <linux/ptrace.h>


@contextlib.contextmanager
def held_at_exit(pid: int) -> Iterator[bool]:
    """Holds the process at its exit, whatever kills it. Yields whether that is possible here."""
    told, ends = os.pipe(), os.pipe()
    holder = os.fork()
    if holder == 0:
        traced = ctypes.CDLL(None).ptrace(_PTRACE_SEIZE, pid, None, ctypes.c_void_p(_PTRACE_O_TRACEEXIT))
        os.close(ends[1])
        os.write(told[1], b"y" if traced == 0 else b"n")
        os.read(ends[0], 1)
        os._exit(0)
    try:
        yield os.read(told[0], 1) == b"y"
    finally:
        for fd in (*told, *ends):
            os.close(fd)
        os.waitpid(holder, 0)


def marked(mark: str) -> list[int]:
    """Processes with the mark in their environment, whatever started them."""
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


class OnThisMachine(unittest.TestCase):
    """A graph of two parts, both served here."""

    @classmethod
    def setUpClass(cls) -> None:
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
        cls.folder.cleanup()

    def setUp(self) -> None:
        """Ports for this test only."""
        self.ports = free_ports(2)
        (self.work / "ip.txt").write_text("".join(f"127.0.0.1 {port}\n" for port in self.ports))
        self.mark = f"GW_TEST_MARK={os.getpid()}-{self.id()}"
        shutil.rmtree(self.work / "logs", ignore_errors=True)
        self.home = Path(tempfile.mkdtemp(dir=self.work))
        self.addCleanup(self.clear)

    def clear(self) -> None:
        """Removes what a failed test has left."""
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


class Local(OnThisMachine):
    """A launch from its begin to its end."""

    def test_trainers_find_their_graph(self) -> None:
        servers = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        epoch = f'{PROGRAM} epoch --part-config "$GRAPHWIRE_PART_CONFIG" --servers {servers}'
        epoch += ' --key-file "$GRAPHWIRE_KEY_FILE" --check --json'
        result = self.launch("--num_trainers", "2", f"{epoch}; echo rank $RANK of $WORLD_SIZE, 'a  \"b\"'")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(re.findall(r'"verified":true', result.stdout)), 4, result.stdout)
        for rank in range(4):
            self.assertIn(f'rank {rank} of 4, a  "b"', result.stdout)

    def test_a_python_in_a_shell_script_waits_for_dgl(self) -> None:
        (self.work / "train.sh").write_text('exec python3 -c "import sys; print(type(sys.meta_path[0]).__name__)"\n')
        for mode, count in (("auto", 4), ("off", 0)):
            result = self.launch("--num_trainers", "2", "--dgl", mode, "cd .; sh ./train.sh")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(result.stdout.count("FirstLook"), count, result.stdout)

    def test_stat_and_doctor_find_the_servers_and_what_they_hold(self) -> None:
        words = ("--num_trainers", "1", "--mutable", "feat", "--lists", "all", "--on_disk", "label")
        words += ("--disk-cache", "2Mi")
        result = self.launch(*words, f"{PROGRAM} stat --json && {PROGRAM} doctor --measure 10 --json >&2")
        self.assertEqual(result.returncode, 0, result.stderr)
        parts = re.findall(r'"part":(\d)', result.stdout)
        self.assertEqual(sorted(parts), ["0", "0", "1", "1"])
        for held in (r'"tensors":\[{[^]]*feat', r'"lists_bytes":[1-9]', r'"disk_cache_bytes":2097152\b'):
            self.assertEqual(len(re.findall(held, result.stdout)), 4, result.stdout)

    def test_a_trainer_that_fails_is_named(self) -> None:
        self.fails(
            r"host 1 .*trainer 1 ended with status 3: .*why not.*log: ",
            '[ "$RANK" = 0 ] && exec sleep 900; (setsid sleep 900 &); echo why not >&2; exit 3',
        )

    def test_an_exception_is_reported_and_not_its_consequences(self) -> None:
        """Rank 0 ends first. Rank 1, which fails, takes long to end, because one of its threads continues."""
        (self.work / "raises.py").write_text(_RAISES)
        self.fails(
            r"^launch: host 1 \(127.0.0.1\): trainer 1 (failed|ended with status 1): ValueError: first \| second line; "
            rf"log: {self.work}/logs/.*/trainer-127.0.0.1-1.log$",
            *("--no_torchrun", f"{sys.executable} raises.py"),
        )

    def test_a_killed_rank_is_reported_and_not_its_peers(self) -> None:
        (self.work / "loses.py").write_text(_LOSES)
        self.fails(
            r"^launch: host 1 \(127.0.0.1\): trainer 1 ended with (signal 9 without a word|status 137: Killed); log: ",
            *("--no_torchrun", f"{sys.executable} loses.py"),
        )

    def test_a_server_that_fails_is_named(self) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", self.ports[1]))
            other.listen()
            said = rf"status 1: .*{self.ports[1]}.*process {os.getpid()} .*log: "
            self.fails(f"host 1 .*the server of part 1 ended with {said}", "true")
        (self.work / "odd").mkdir(exist_ok=True)
        self.fails("host [01] .*odd", "--part_config", "odd", "true")
        self.fails('log_bytes: "64MB" is not a whole number', "--log_bytes", "64MB", "true")

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

    def test_a_wrong_workspace_is_reported_before_a_missing_program(self) -> None:
        """The program may be in the right workspace. The workspace is also reported before an ip_config."""
        lost = ["--program", str(self.work / "graphwire"), "--ip_config", str(self.work / "ip.txt"), "true"]
        self.fails('no user "nobody-here" here; did you mean ~/nobody-here/w', "--workspace", "~nobody-here/w", *lost)
        self.fails(rf"{self.work}/away: the workspace is not there", "--workspace", str(self.work / "away"), *lost)
        self.fails("graphwire is not there: copy_files.py --with_program", *lost)
        self.fails(
            '--ip_config ip.none: no such file.*no user "nobody-here".*--workspace ~/nobody-here/',
            *("--workspace", "~nobody-here/", "--ip_config", "ip.none", "true"),
            status=2,
        )

    def test_a_flood_ends_like_anything_else(self) -> None:
        result = self.launch("--num_trainers", "1", "--log_bytes", "1M", "yes | head -n 2000000; echo the end")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("the end"), 2, result.stdout[-300:])
        self.assertIn("more lines are in its log", result.stdout[-3000:])
        logs = list((self.work / "logs").glob("*/trainer-127.0.0.1-0.log*"))
        self.assertEqual(len(logs), 4, logs)
        self.assertTrue(all(log.stat().st_size <= 1000000 for log in logs))

    def begun(
        self, *more: str, before: str = "", trainer: str = "echo running; exec sleep 900"
    ) -> tuple[subprocess.Popen, list[int]]:
        """A job whose two trainers run, and the pids of its agents: worker, guardian, ..."""
        process = subprocess.Popen(
            self.words("--verbose", *more, f"{before} {trainer}"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
        )
        assert process.stdout
        for _ in range(2):
            self.assertIn("running", process.stdout.readline())
        agents = self.running("agent")
        self.assertEqual(len(agents), 4)
        return process, agents

    def running(self, word: str) -> list[int]:
        """Processes of this test with the word in their command."""
        found = []
        for pid in marked(self.mark):
            with contextlib.suppress(OSError):  # it has just ended
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if word.encode() in words:
                    found.append(pid)
        return found

    def ends(self, process: subprocess.Popen, status: int, says: str) -> None:
        _, errors = process.communicate(timeout=HANG_S)
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")
        self.assertEqual(process.returncode, status, errors)
        self.assertRegex(errors, says)

    def test_interrupted(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process, _ = self.begun()
            process.send_signal(number)
            _, errors = process.communicate(timeout=HANG_S)
            self.assertEqual(marked(self.mark), [], "it says that everything was ended")
            self.assertEqual((process.returncode, errors), (130, _ALL_ENDED))

    def test_children_of_a_process_whose_first_thread_has_ended(self) -> None:
        """In /proc such a process looks like a zombie. So does any process with several threads for a moment when it is
        killed."""
        (self.work / "first.py").write_text(_FIRST_THREAD_ENDS)
        for trainer in ("{0} & exec sleep 900", "setsid {0} & exec sleep 900", "(setsid {0} &); exec sleep 900"):
            process, _ = self.begun("--no_torchrun", trainer=trainer.format(f"{sys.executable} first.py"))
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=HANG_S)
            self.assertEqual(marked(self.mark), [], trainer)
            self.assertEqual((process.returncode, errors), (130, _ALL_ENDED))

    def test_a_signal_does_not_cut_the_end_short(self) -> None:
        """The job has failed, and its end takes a while; then the signal arrives."""
        deaf = "trap 'echo told' TERM; echo running; while :; do sleep 0.1; done"
        os.mkfifo(self.work / "go")
        process, _ = self.begun(trainer=f'[ "$RANK" = 0 ] || {{ echo running; read x <go; exit 3; }}; {deaf}')
        (self.work / "go").write_text("x\n")
        assert process.stdout
        while "told" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=HANG_S)
        self.assertEqual(marked(self.mark), [])
        self.assertEqual((process.returncode, len(errors.splitlines())), (1, 1), errors)
        self.assertIn("trainer 1 ended with status 3", errors)

    def test_a_process_that_cannot_be_ended_is_named(self) -> None:
        """For example a process that a debugger holds at its exit."""
        process, _ = self.begun(trainer='echo running; [ "$RANK" = 0 ] && exec sleep 900; exec sleep 901')
        self.assertTrue(wait_for(lambda: self.running("901")))  # then the shell has become sleep
        (pid,) = self.running("901")
        with held_at_exit(pid) as holds:
            if not holds:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=HANG_S)
                self.skipTest("no process can be traced here")
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=HANG_S)
            left = marked(self.mark)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(
            errors, rf"^launch: interrupted; host 1 \(127.0.0.1\): could not be ended: process {pid} \(sleep.*\)\n$"
        )
        self.assertLessEqual(set(left), {pid})

    def test_the_launcher_is_killed(self) -> None:
        process, _ = self.begun()
        process.kill()
        process.communicate(timeout=HANG_S)
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")

    def test_an_agent_is_killed(self) -> None:
        """Each of an agent's two processes watches the other."""
        for which, says in ((0, "worker|guardian|connection"), (1, "worker|guardian|connection")):
            process, agents = self.begun()
            os.kill(agents[which], signal.SIGKILL)
            self.ends(process, 1, says)

    def cluster(self, *words: str) -> subprocess.CompletedProcess:
        command = [sys.executable, str(TOP / "deploy/cluster.py"), *words, "--scheduler", "local", "--program", PROGRAM]
        command += ["--ip_config", str(self.work / "ip.txt"), "--workspace", str(self.work)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=HANG_S, check=False, env=self.environment()
        )

    def left(self) -> dict[str, list[str]]:
        """The processes of this test's jobs without agents, from status: job -> commands, and its keys."""
        result = self.cluster("status", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        found: dict[str, list[str]] = {}
        for line in result.stdout.splitlines():
            for one in json.loads(line).get("left", []):
                if not (self.work / "logs" / one["job"]).exists():
                    continue  # of another test that runs at the same time
                found.setdefault(one["job"], []).extend(
                    [*[process["command"] for process in one["processes"]], *(["key"] if one["key"] else [])]
                )
        return found

    def killed(self, before: str = "") -> str:
        """A job whose four agents were all killed at once. Returns its name."""
        known = {path.name for path in (self.work / "logs").glob("*")}
        process, agents = self.begun(before=before)
        (job,) = {path.name for path in (self.work / "logs").glob("*")} - known
        for pid in agents:
            os.kill(pid, signal.SIGSTOP)  # none of them sees the end of another
        for pid in agents:
            os.kill(pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 1, errors)
        return job

    def test_all_agents_are_killed_at_once(self) -> None:
        """status lists the remaining processes by job, and stop ends them by job: also processes that left their
        session or their environment. Processes of other jobs stay."""
        ignores_term = "trap '' TERM; while :; do sleep 0.1; done"
        bare = "(env -i sleep 902 &) ; env -i sleep 903 & exec sleep 901"
        job = self.killed(f"setsid -f sh -c '{bare}'; setsid -f sh -c \"{ignores_term}\";")
        other, _ = self.begun()
        left = self.left()
        self.assertEqual(list(left), [job])
        for command, count in (("sleep 901", 2), ("sleep 902", 2), ("sleep 903", 2), ("key", 2), ("sleep 900", 0)):
            self.assertEqual(left[job].count(command), count, left)
        self.assertEqual(sum(command.startswith("sh -c trap") for command in left[job]), 2, left)
        self.assertRegex(self.cluster("status").stdout, f"left over +{job} .*`cluster.py stop {job}` ends it\n")
        self.assertEqual(self.cluster("stop", "nobody").returncode, 1)
        ended = self.cluster("stop", job)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn(f"what was left of job {job}", ended.stdout)
        self.assertEqual(self.left(), {})
        self.assertEqual([self.running(word) for word in ("901", ignores_term)], [[], []])
        self.assertEqual(len(list(self.home.glob(".graphwire/*/agent-*"))), 2)  # the other job's
        self.assertIsNone(other.poll())
        other.send_signal(signal.SIGINT)
        self.ends(other, 130, "interrupted")
        self.assertEqual(list(self.home.glob(".graphwire/*/agent-*")), [])

    @unittest.skipUnless(os.geteuid() == 0, "namespaces need root")
    def test_other_namespaces_are_left_alone(self) -> None:
        """A container's processes have its own pids, so from here their agents look gone."""
        mark = "GRAPHWIRE_AGENT=4000000:1:20200101-000000-000000-abcdef"
        (self.work / "logs/20200101-000000-000000-abcdef").mkdir(parents=True)
        words = ["unshare", "--pid", "--fork", "--kill-child=KILL", "sh", "-c", "echo up; exec sleep 900"]
        environment = self.environment() | dict([mark.split("=")])
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as container:
            assert container.stdout
            self.assertEqual(container.stdout.readline(), "up\n")
            found = self.left()
            container.kill()
        commands = [command for job in found.values() for command in job]
        self.assertEqual([command for command in commands if command.startswith("sleep")], [])

    def test_a_key_that_is_left(self) -> None:
        """Only the key remains: status lists it, and stop or the next job removes it."""
        job = self.killed()
        self.assertTrue(wait_for(lambda: self.left() == {job: ["key", "key"]}), self.left())
        self.assertEqual(self.cluster("stop", job).returncode, 0)
        self.assertEqual(list(self.home.glob(".graphwire/*/agent-*")), [])
        self.killed()
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")
        self.assertEqual(self.launch("true").returncode, 0)  # which looks for folders

    def test_the_launcher_is_silent(self) -> None:
        """Stopped for longer than --silence: the agents end all processes by themselves."""
        process, _ = self.begun("--silence", "4")
        process.send_signal(signal.SIGSTOP)
        gone = wait_for(lambda: marked(self.mark) == [process.pid])
        process.send_signal(signal.SIGCONT)
        self.ends(process, 1, "silent")
        self.assertTrue(gone, "processes are left")

    def test_all_of_it_is_suspended(self) -> None:
        """A batch system suspends all processes for longer than --silence, and not at the same moment. The job
        continues."""
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
        half = len(everything) // 2  # about one host's
        everything.insert(half, process.pid)
        for pid in everything:
            with contextlib.suppress(ProcessLookupError):  # a trainer's sleep may have ended
                os.kill(pid, signal.SIGSTOP)
        time.sleep(5)
        for at, pid in enumerate(everything):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            if at in (half - 1, half):
                time.sleep(0.3)
        time.sleep(1)  # for a check of silent peers
        go.write_text("")
        output, errors = process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(output.count("the end"), 2, output)
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")

    def test_the_launcher_is_suspended_while_servers_load(self) -> None:
        """Suspended for longer than --load_timeout: that time does not count, and the job continues."""
        held, source = self.work / "held_load.so", str(Path(__file__).with_name("held_load.c"))
        subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", str(held), source], check=True, timeout=60)
        preload = f"LD_PRELOAD={held}", "HELD_LOAD=/feat.npy", f"HELD_LOAD_AT={self.work}"
        words = self.words("--load_timeout", "3", "--silence", "60", "true", "--extra_envs", *preload)
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=self.environment())
        self.assertTrue(wait_for((self.work / "held").exists))
        self.assertTrue(wait_for(lambda: len(self.servers_ready()) == 2))
        process.send_signal(signal.SIGSTOP)
        time.sleep(4)  # the launcher does not wait for it
        (self.work / "go").write_text("")
        ready = wait_for(lambda: self.servers_ready() == [True, True])
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=HANG_S)
        self.assertEqual((process.returncode, errors), (0, ""))
        self.assertTrue(ready)
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")

    def servers_ready(self) -> list[bool]:
        """For each server of the job, whether its log has the ready line."""
        return ["serving part " in log.read_text() for log in self.work.glob("logs/*/server-*.log")]

    def server(self) -> int:
        """The recorded pid of part 0's server; 0: no server."""
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
        """Removes the logs of all but the latest jobs. Logs of running jobs, and other files, stay."""
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
        self.assertEqual(len(left), 5, left)  # including its own
        self.assertLess({running, later, "mine", "2020"}, left)

    def test_an_agent_watches_a_server(self) -> None:
        """A server without a record counts as ended at once, even if another process has its pid now. Invalid requests
        fail."""
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

    def test_a_text_with_a_nul_is_no_request(self) -> None:
        """No name, path or argument is truncated."""
        requests = [{"op": "setup", "job": "a\0b", "workspace": str(self.work)}, {"op": "end_left", "job": "a\0b"}]
        requests += [{"op": "start", "name": "a", "argv": ["true\0", "x"]}, {"op": "ping\0"}]
        lines = "".join(json.dumps(request) + "\n" for request in requests) + '{"op": "ping", "x": "a\0b"}\n'
        result = subprocess.run(
            [PROGRAM, "agent"], input=lines, capture_output=True, text=True, timeout=HANG_S, env=self.environment()
        )
        events = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([event["event"] for event in events], ["hello", *["failed"] * 5, "bye", "end"])
        self.assertEqual({event["text"] for event in events[1:6]}, {"the line is not a request"})

    def test_a_kept_server_keeps_its_key(self) -> None:
        """Its agents were killed; the next job still finds the key, and stop removes it."""
        words = self.words("--keep_alive", "--server_name", "kept", "true")
        for _ in range(2):
            done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, env=self.environment())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for pid in self.running("agent"):
                os.kill(pid, signal.SIGKILL)
            self.assertEqual(len(list(self.home.glob(".graphwire/*/agent-*/key"))), 2)
            self.assertEqual(self.left(), {})  # they are servers
        self.assertEqual(self.cluster("stop", "kept").returncode, 0)
        self.assertTrue(wait_for(lambda: not marked(self.mark)), "processes are left")
        self.assertEqual(list(self.home.glob(".graphwire/*/agent-*")), [])

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
        self.assertNotIn("metrics", result.stdout.lower())

    def test_metrics_have_ports_of_their_own(self) -> None:
        for given, address in (("9100", ""), ("[::1]:9100", "[::1]:")):
            result = self.launch("--dry_run", "--metrics", given, "--num_trainers", "3", "true")
            self.assertEqual(result.returncode, 0, result.stderr)
            words = [word for line in re.findall("^cd .*", result.stdout, re.M) for word in shlex.split(line)]
            servers = [words[i + 1] for i, word in enumerate(words) if word == "--metrics"]
            trainers = [word.partition("=")[2] for word in words if word.startswith("GRAPHWIRE_METRICS=")]
            self.assertEqual(servers, [f"{address}9100", f"{address}9101"])
            self.assertEqual(trainers, 3 * [f"{address}9102"] + 3 * [f"{address}9105"])  # plus the local rank
        for wrong in ("x", "1:", "99999"):
            result = self.launch("--dry_run", "--metrics", wrong, "true")
            self.assertRegex(f"{result.returncode} {result.stderr}", "^2 .*--metrics.*$")


if __name__ == "__main__":
    unittest.main()
