"""Jobs on four hosts with namespaces and an sshd each (bed.py), launched from a desk."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
import unittest
from collections.abc import Callable, Mapping
from pathlib import Path

from bed import HANG_S, HOME, ON_HOST, PROGRAM, SILENCE, Bed, Host, wait_for

LAUNCH = ["python3", "/mnt/top/deploy/launch.py"]
HOSTS = 4


def make_graph(folder: Path, parts: int, scale: int = 11, seed: int = 1) -> None:
    """A graph in parts, in folder/g."""
    graph = folder / f"whole{seed}"
    for words in (
        [
            "generate",
            "rmat",
            "--scale",
            str(scale),
            "--seed",
            str(seed),
            "--features",
            "8",
            "--labels",
            "4",
            "--train-share",
            "0.5",
            "--out",
            str(graph),
        ],
        ["partition", str(graph), "--num-parts", str(parts), "--method", "random", "--out", str(folder / "g")],
    ):
        subprocess.run([PROGRAM, *words], check=True, capture_output=True, timeout=120)
    shutil.rmtree(graph)


def give_parts(bed: Bed, parts: Path) -> None:
    """Each host has ~/w/g with only its part; the desk has only the list of hosts."""
    for host in [*bed.hosts, bed.desk]:
        (host.home / "w").mkdir(exist_ok=True)
        (host.home / "w/ip.txt").write_text("".join(f"{one.address}\n" for one in bed.hosts))
    for i, host in enumerate(bed.hosts):
        target = host.home / "w/g"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for path in parts.iterdir():
            if path.is_file():
                shutil.copy(path, target)
        shutil.copytree(parts / f"part{i}", target / f"part{i}")


@unittest.skipUnless(os.geteuid() == 0, "hosts in namespaces need root")
class OnHosts(unittest.TestCase):
    """Shared code of tests on hosts: one bed for each class."""

    count = HOSTS
    seen = ""  # see Bed
    environment: Mapping[str, str] = {}  # likewise
    bed: Bed
    parts: Path

    @classmethod
    def setUpClass(cls) -> None:
        if os.geteuid() != 0:
            return
        cls.bed = Bed(cls.count, seen=cls.seen, environment=cls.environment)
        cls.addClassCleanup(cls.bed.end)
        make_graph(cls.bed.folder, cls.count)
        cls.parts = cls.bed.folder / "g"
        give_parts(cls.bed, cls.parts)
        cls.bed.reachable()

    def words(self, *more: str) -> list[str]:
        """A launch, as a user types it on the desk."""
        return [
            *LAUNCH,
            "--program",
            ON_HOST,
            "--workspace",
            "~/w/",
            "--part_config",
            "g",
            "--ip_config",
            "ip.txt",
            "--silence",
            SILENCE,
            *more,
        ]

    def launch(self, *more: str, timeout: float = HANG_S) -> subprocess.CompletedProcess:
        """A complete launch, of which no process remains on any host."""
        result = self.bed.desk.run(*self.words(*more), timeout=timeout)
        self.nothing_left()
        return result

    def nothing_left(self, sessions: bool = True) -> None:
        """No process of any job remains on the hosts. The processes would not have ended by themselves so soon."""
        gone = wait_for(lambda: not self.bed.left(sessions))
        self.assertTrue(gone, self.bed.left(sessions))

    def fails(self, says: str, *more: str, status: int = 1, timeout: float = HANG_S) -> None:
        result = self.launch(*more, timeout=timeout)
        lines = result.stderr.strip().splitlines()
        self.assertEqual((result.returncode, len(lines)), (status, 1), result.stderr + result.stdout[-500:])
        self.assertRegex(lines[0], says)

    def epoch(self, more: str = "--steps 3") -> str:
        """A trainer: it finds the servers by its environment, and reads batches from all of them."""
        return f"{ON_HOST} epoch {more}"

    def begun(self, *more: str, trainers: int = 1, trainer: str = "echo running; exec sleep 900") -> subprocess.Popen:
        """A job whose trainers all run."""
        process = self.bed.desk.start(*self.words("--num_trainers", str(trainers), *more, trainer))
        assert process.stdout
        for _ in range(trainers * self.count):
            line = process.stdout.readline()
            if "running" not in line:
                self.fail(f"{line}{process.communicate(timeout=HANG_S)[1]}")
        return process

    def ends(self, process: subprocess.Popen, status: int, says: str, sessions: bool = True) -> None:
        """It ends with this status and line, and leaves no process, though its trainers would continue. figures.py
        measures how soon."""
        _, errors = process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, status, errors)
        self.assertEqual(len(errors.strip().splitlines()), 1, errors)
        self.assertRegex(errors, says)
        self.nothing_left(sessions)

    def in_time_for_others(self, run: Callable[[str], str], says: str) -> None:
        """An error names a host that does not answer. A short --timeout is tried first. On a busy machine it may be too
        short for other hosts as well, so longer ones follow."""
        for seconds in ("2", "10", "40"):
            text = run(seconds)
            if re.search(says, text):
                return
        self.fail(text)

    def launcher(self) -> int:
        """The pid of the running launcher."""
        (pid,) = self.bed.desk.find("launch.py")
        return pid

    def host_with(self, *words: str) -> tuple[Host, int]:
        """A host with such a process, and its pid."""
        for host in self.bed.hosts[1:]:
            for pid in host.find(*words):
                return host, pid
        raise AssertionError(f"no host runs {words}")


class Launch(OnHosts):
    """Launches that succeed."""

    def test_trainers_read_all_parts(self) -> None:
        shutil.rmtree(self.bed.hosts[2].home / "w/logs", ignore_errors=True)
        result = self.launch("--num_trainers", "2", f"{self.epoch('--json')}; ls -d ~/w/g/part*; echo $RANK $DGL_ROLE")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [json.loads(line.split("] ", 1)[1]) for line in result.stdout.splitlines() if '"epoch"' in line]
        self.assertEqual(len(rows), 2 * HOSTS)
        for row in rows:
            self.assertEqual(row["epoch"], "shm+tcp")  # the host's own part is mapped, the others come over TCP
        for host in range(HOSTS):
            for rank in (2 * host, 2 * host + 1):
                name = f"[trainer-10.77.0.{host + 1}-{rank}]"
                self.assertIn(f"{name} {HOME}/w/g/part{host}\n", result.stdout)
                self.assertIn(f"{name} {rank} client\n", result.stdout)
        self.assertEqual(result.stdout.count(f"{HOME}/w/g/part"), 2 * HOSTS)
        logs = self.bed.hosts[2].shell("ls w/logs/*").stdout.split()
        self.assertEqual(
            [log for log in logs if log.endswith(".log")],
            ["server-10.77.0.3-2.log", "trainer-10.77.0.3-4.log", "trainer-10.77.0.3-5.log"],
        )

    def test_python_trainers_start_under_torchrun(self) -> None:
        self.stand_in("import sys\nprint('torchrun', sys.argv[1:])\n")
        result = self.launch("--num_trainers", "3", "--extra_envs", "PYTHONPATH=.", "--", "python3 t.py --a 'b c'")
        self.assertEqual(result.returncode, 0, result.stderr)
        for host in range(HOSTS):
            self.assertRegex(
                result.stdout,
                rf"'--nproc_per_node=3', '--nnodes=4', '--node_rank={host}', '--master_addr=10.77.0.1', "
                r"'--master_port=\d+', 't.py', '--a', 'b c'\]",
            )

    def stand_in(self, text: str) -> None:
        """A stand-in for torchrun, which prints its arguments."""
        for host in self.bed.hosts:
            code = host.home / "w/torch/distributed"
            code.mkdir(parents=True, exist_ok=True)
            for package in (code.parent, code):
                (package / "__init__.py").write_text("")
            (code / "run.py").write_text(text)

    def test_a_rendezvous_port_that_another_job_took(self) -> None:
        """A port was free, then another job took it: all trainers are started again, with another port."""
        self.stand_in(
            "import os, sys, time\n"
            "word = next(word for word in sys.argv if 'master_port' in word)\n"
            "print(word, flush=True)\n"
            "if not os.path.exists('tried'):\n"
            "    open('tried', 'w').close()\n"
            "    if '--node_rank=0' in sys.argv:\n"
            "        raise RuntimeError('The server socket has failed to listen on any local network address. port: '\n"
            "                           f'{word[14:]}, code: -98, name: EADDRINUSE, message: address already in use')\n"
            "    time.sleep(3)\n"  # was interrupted, or had not begun: either is right
        )
        result = self.launch("--extra_envs", "PYTHONPATH=.", "--", "python3 t.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        last = [line.split("=")[1] for line in result.stdout.splitlines() if "-again1]" in line]
        self.assertEqual((len(last), len(set(last))), (HOSTS, 1), result.stdout)

    def test_ctrl_c(self) -> None:
        process = self.begun(trainers=2)
        os.kill(self.launcher(), 2)
        self.ends(process, 130, "interrupted")


class Failures(OnHosts):
    """Each failure prints one line, and all processes end."""

    def test_a_trainer_dies(self) -> None:
        process = self.begun(trainers=2)
        host, pid = self.host_with("sleep 900")
        os.kill(pid, 9)
        self.ends(process, 1, rf"{host.address}.*trainer \d ended with signal 9: running; log: {HOME}/w/logs")

    def test_a_server_dies(self) -> None:
        process = self.begun()
        host, pid = self.host_with("serve")
        os.kill(pid, 9)
        self.ends(process, 1, rf"{host.address}.*server of part {host.index} ended with signal 9: serving part")

    def test_a_server_comes_back_and_no_batch_is_lost(self) -> None:
        """Trainers run one epoch after another until the server is back, and every epoch is complete."""
        epoch = self.epoch("--batch-size 4 --threads 1")
        rounds = f"while [ ! -e ~/w/go ]; do {epoch} >/dev/null || exit 1; done"
        process = self.begun("--restarts", "1", trainer=f"echo running; {rounds}; {epoch} --json")
        _host, pid = self.host_with("serve")
        os.kill(pid, 9)
        assert process.stderr
        self.assertIn("started again (1 of 1)", process.stderr.readline())
        for one in self.bed.hosts:
            (one.home / "w/go").write_text("")
        output, errors = process.communicate(timeout=HANG_S)
        for one in self.bed.hosts:
            (one.home / "w/go").unlink()
        self.assertEqual(process.returncode, 0, errors)
        batches = [json.loads(line.split("] ", 1)[1])["batches"] for line in output.splitlines() if '"epoch"' in line]
        self.assertEqual(len(set(batches)), 1)
        self.assertEqual(len(batches), HOSTS)
        self.nothing_left()

    def test_an_agent_dies(self) -> None:
        for which in (0, 1):
            process = self.begun()
            host = self.bed.hosts[2]
            os.kill(sorted(host.find("graphwire agent"))[which], 9)
            self.ends(process, 1, host.address)

    def test_the_launcher_dies(self) -> None:
        process = self.begun()
        os.kill(self.launcher(), 9)
        process.communicate(timeout=HANG_S)
        self.nothing_left()

    def test_a_host_dies(self) -> None:
        process = self.begun("--silence", "5")
        host = self.bed.hosts[3]
        host.end()
        try:
            self.ends(process, 1, f"{host.address}.*(silent|lost)")
        finally:
            self.bed.begin(host)
            self.bed.reachable()

    def test_a_link_is_cut(self) -> None:
        process = self.begun("--silence", "5")
        host = self.bed.hosts[1]
        self.bed.cut(host)
        try:
            self.ends(process, 1, f"{host.address}.*(silent|lost)", sessions=False)
        finally:
            self.bed.mend(host)
        # sshd's session there ends when TCP tries again
        self.assertTrue(wait_for(lambda: not self.bed.left()), self.bed.left())

    def test_a_short_cut_is_a_pause(self) -> None:
        flag = "w/go"
        wait = f"while [ ! -e ~/{flag} ]; do sleep 0.1; done"
        process = self.begun("--silence", "20", trainer=f"echo running; {wait}; {self.epoch()}")
        host = self.bed.hosts[1]
        self.bed.cut(host)
        time.sleep(1.0)  # the cut
        self.bed.mend(host)
        for one in self.bed.hosts:
            (one.home / flag).write_text("")
        _, errors = process.communicate(timeout=HANG_S)
        for one in self.bed.hosts:
            (one.home / flag).unlink()
        self.assertEqual(process.returncode, 0, errors)
        self.nothing_left()

    def test_a_port_is_taken(self) -> None:
        host = self.bed.hosts[2]
        other = host.start(
            "python3",
            "-c",
            "import socket,time; s=socket.create_server(('', 30050)); print('up', flush=True); time.sleep(900)",
        )
        assert other.stdout
        other.stdout.readline()
        try:
            result = self.bed.desk.run(*self.words("true"))
            self.assertRegex(result.stderr, rf"{host.address}.*30050.*taken by process \d+ \(python3\)")
            self.assertEqual(result.stderr.count("\n"), 1)
        finally:
            for pid in host.find("create_server"):
                os.kill(pid, 9)
            other.communicate(timeout=HANG_S)
        self.nothing_left()

    def test_a_workspace_is_missing(self) -> None:
        (self.bed.hosts[1].home / "w").rename(self.bed.hosts[1].home / "away")
        try:
            self.fails(rf"10\.77\.0\.2.*{HOME}/w: the workspace is not there", "true")
        finally:
            (self.bed.hosts[1].home / "away").rename(self.bed.hosts[1].home / "w")

    def test_a_name_that_is_loopback_on_its_host(self) -> None:
        """Debian's installer maps the host's name to loopback. The launch reports it before it starts anything. With
        the right line all works."""
        names = "".join(f"{host.address} node{i}\n" for i, host in enumerate(self.bed.hosts))
        known = self.bed.desk.home / ".ssh/known_hosts"
        text = known.read_text()
        for i, host in enumerate(self.bed.hosts):
            text = text.replace(f"{host.address},", f"{host.address},node{i},")
        for host in [*self.bed.hosts, self.bed.desk]:
            mine = names if host.index != 2 else names.replace(f"{host.address} node2", "127.0.1.1 node2.local node2")
            (host.home / "hosts").write_text(f"127.0.0.1 localhost\n{mine}")
            host.shell(f"mount --bind {HOME}/hosts /etc/hosts")
        (self.bed.desk.home / "names.txt").write_text("node0\nnode1 30051\nnode2\nnode3\n")
        before, _ = known.read_text(), known.write_text(text)
        try:
            self.fails(
                r"host 2 \(node2\): its own name node2 means 127.0.1.1 there.* node2 in its /etc/hosts",
                *("--ip_config", "names.txt", "true"),
            )
            (self.bed.hosts[2].home / "hosts").write_text(names)
            result = self.launch("--ip_config", "names.txt", self.epoch())
            self.assertEqual(result.returncode, 0, result.stderr)
        finally:
            known.write_text(before)
            for host in [*self.bed.hosts, self.bed.desk]:
                host.shell("umount /etc/hosts")

    def test_graphs_differ(self) -> None:
        other = self.bed.folder / "other"
        other.mkdir()
        make_graph(other, HOSTS, seed=2)
        config = next((other / "g").glob("*.json"))
        mine = self.bed.hosts[3].home / "w/g" / config.name
        kept = mine.read_bytes()
        shutil.copy(config, mine)
        try:
            self.fails(r"10\.77\.0\.4.*another graph", "true")
        finally:
            mine.write_bytes(kept)
            shutil.rmtree(other)

    def test_duplicate_hosts(self) -> None:
        (self.bed.desk.home / "twice.txt").write_text("10.77.0.1\n10.77.0.2\n10.77.0.1\n10.77.0.3\n")
        self.fails("twice.txt:3: 10.77.0.1 is on line 1 already", "--ip_config", "twice.txt", "true", status=2)

    def test_a_host_key_is_unknown(self) -> None:
        known = self.bed.desk.home / ".ssh/known_hosts"
        text = known.read_text()
        known.write_text("".join(line for line in text.splitlines(True) if "10.77.0.2" not in line))
        try:
            self.fails(r"10\.77\.0\.2.*host key is unknown.*ssh-keyscan", "true")
        finally:
            known.write_text(text)

    def test_a_password_is_asked(self) -> None:
        keys = self.bed.hosts[1].folder / "authorized_keys"
        text = keys.read_text()
        keys.write_text("")
        try:
            self.fails(r"10\.77\.0\.2.*ssh-copy-id", "true")
        finally:
            keys.write_text(text)

    def test_an_sshd_that_hangs(self) -> None:
        host = self.bed.hosts[1]
        os.kill(host.pid, 19)  # SIGSTOP to the listener: the kernel accepts connections, and no process answers
        try:
            self.in_time_for_others(
                lambda seconds: self.bed.desk.run(*self.words("--timeout", seconds, "true")).stderr,
                r"^launch: host \d \(10\.77\.0\.2\).*(in time|no answer).*\n$",
            )
            self.nothing_left()
        finally:
            os.kill(host.pid, 18)
            self.bed.reachable()

    def test_another_key(self) -> None:
        key = self.bed.desk.home / "other.key"
        key.write_bytes(os.urandom(32))
        self.fails(
            "trainer . ended with status 1.*key",
            "--key_file",
            "~/other.key",
            "--num_trainers",
            "1",
            f"head -c 32 /dev/urandom >k; chmod 600 k; {self.epoch('--key-file k')}",
        )

    def test_a_disk_is_full(self) -> None:
        host = self.bed.hosts[1]
        logs = shlex.quote(f"{HOME}/w/logs")
        host.shell(f"mkdir -p {logs}; mount -t tmpfs -o size=64k tmpfs {logs}; head -c 1M /dev/zero >{logs}/full")
        try:
            self.fails(
                r"10\.77\.0\.2.*(No space|no space|could not be written)",
                "--num_trainers",
                "1",
                "echo much; [ $RANK = 1 ] && exit 1; exec sleep 900",
            )
        finally:
            host.shell(f"umount {logs}")

    def test_a_flood(self) -> None:
        result = self.launch("--num_trainers", "1", "yes | head -n 1000000; echo the end")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("the end"), HOSTS)


if __name__ == "__main__":
    unittest.main()
