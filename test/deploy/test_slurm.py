"""Jobs inside an allocation of Slurm: slurmctld on the desk, a slurmd on each host, munge on all (slurm-wlm)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import unittest

from bed import HANG_S, ON_HOST, SILENCE, TOP, BedError, Host, wait_for
from gwdeploy import slurm
from gwdeploy.errors import DeployError, UsageError
from gwdeploy.ip_config import parse
from test_hosts import LAUNCH, OnHosts

_NEEDED = ("slurmctld", "slurmd", "srun", "salloc", "scontrol", "munged")
_OF_SLURM = re.compile(r"^[a-z0-9]+: (\S*/)?(munged|slurmd)\b")
_MUNGED = """mkdir -m 755 /run/munge && exec munged --foreground --force --key-file=/mnt/bed/munge.key \\
    --log-file=/mnt/bed/munged.log --seed-file=/run/munge/seed"""
_SLURM = """until [ -S /run/munge/munge.socket.2 ]; do sleep 0.05; done
mkdir -p /run/slurm.state && exec >/mnt/bed/slurm.log 2>&1 && export SLURM_CONF=/mnt/bed/slurm.conf && exec """
_CONF = """ClusterName=bed
SlurmctldHost={desk}({desk_address})
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=1
InactiveLimit=0
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmdSpoolDir=/run/slurmd.spool
StateSaveLocation=/run/slurm.state
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_ENV = ["env", "SLURM_CONF=/mnt/bed/slurm.conf"]


def tool(name: str) -> str | None:
    """The path of a program of Slurm or munge."""
    return shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")


class Words(unittest.TestCase):
    """Tests without Slurm."""

    def test_nodes_in_their_order(self) -> None:
        """Addresses from scontrol; hosts are in the order of the names."""
        details = "NodeName=b NodeAddr=10.0.0.2 NodeHostName=b\nNodeName=a Arch=x86 NodeAddr=a State=IDLE\n"
        nodes = slurm.read_nodes("b\na\nc\n", details)
        self.assertEqual(list(nodes.items()), [("b", "10.0.0.2"), ("a", "a"), ("c", "c")])
        hosts = slurm.hosts_of(nodes, None)
        self.assertEqual([(host.index, host.address) for host in hosts], [(0, "10.0.0.2"), (1, "a"), (2, "c")])
        with self.assertRaisesRegex(DeployError, "0 nodes"):
            slurm.read_nodes("", details)

    def test_a_list_of_hosts_is_of_the_allocation(self) -> None:
        """ip_config.txt orders the nodes and gives ports; a host outside the allocation is refused."""
        nodes = {"a": "10.0.0.1", "b": "10.0.0.2"}
        listed = parse("b 40000\n10.0.0.1\n")
        self.assertEqual(slurm.hosts_of(nodes, listed), listed)
        reach = slurm.Slurm("~/w", nodes=nodes)
        self.assertIn("--nodelist=b", reach.shell(listed[0], "true"))
        self.assertIn("--nodelist=a", reach.shell(listed[1], "true"))
        with self.assertRaisesRegex(UsageError, "not a node of this allocation, which has a, b"):
            slurm.hosts_of(nodes, parse("10.0.0.3\n"))

    def test_outside_of_an_allocation(self) -> None:
        """One line says how to start inside an allocation."""
        words = ["python3", str(TOP / "deploy/launch.py"), "--scheduler", "slurm", "--workspace", "/tmp"]
        words += ["--part_config", "g", "true"]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
        result = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=clean)
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (2, 1), result.stderr)
        self.assertRegex(result.stderr, "inside an allocation: salloc")


@unittest.skipUnless(os.geteuid() == 0, "hosts in namespaces need root")
@unittest.skipUnless(all(tool(name) for name in _NEEDED), "slurm-wlm is not installed")
class InAllocation(OnHosts):
    """Two hosts; the tools are typed on the desk."""

    count = 2

    @classmethod
    def setUpClass(cls) -> None:
        """The bed with Slurm on it; both hosts are idle."""
        super().setUpClass()
        desk = cls.bed.desk
        nodes = "\n".join(f"NodeName={host.name} NodeAddr={host.address} CPUs=1" for host in cls.bed.hosts)
        conf = _CONF.format(desk=desk.name, desk_address=desk.address, nodes=nodes)
        key = os.urandom(1024)
        for host in [*cls.bed.hosts, desk]:
            (host.folder / "slurm.conf").write_text(conf)
            (host.folder / "munge.key").write_bytes(key)
            os.chmod(host.folder / "munge.key", 0o400)
            cls._daemon(host, _MUNGED)
            cls._daemon(host, _SLURM + ("slurmctld -D" if host is desk else f"slurmd -D -N {host.name}"))
        if not wait_for(lambda: cls.sinfo() == [str(cls.count), "idle"]):
            logs = [path.read_text()[-1000:] for host in [desk, *cls.bed.hosts] for path in host.folder.glob("*.log")]
            raise BedError("\n".join(logs))

    @classmethod
    def _daemon(cls, host: Host, script: str) -> None:
        """Runs for as long as its host."""
        process = host.start("sh", "-c", script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(process.wait, 20)
        cls.addClassCleanup(process.kill)  # nsenter; the daemon ends with its host's namespace

    @classmethod
    def sinfo(cls) -> list[str]:
        return cls.bed.desk.run(*_ENV, "sinfo", "--noheader", "--format=%D %t").stdout.split()

    def nothing_left(self, sessions: bool = True) -> None:
        """No process of any job remains on the hosts, and Slurm has released them in the expected time."""

        def left() -> list[str]:
            return [text for text in self.bed.left(sessions) if not _OF_SLURM.match(text)]

        self.assertTrue(wait_for(lambda: not left()), left())
        self.assertTrue(wait_for(lambda: self.sinfo() == [str(self.count), "idle"]), self.sinfo())

    def words(self, *more: str) -> list[str]:
        """A launch in an allocation of all hosts, as a user types it on the desk."""
        salloc = [*_ENV, "salloc", "--quiet", f"--nodes={self.count}", *LAUNCH, "--scheduler", "slurm"]
        return [*salloc, "--program", ON_HOST, "--workspace", "~/w/", "--part_config", "g", "--silence", SILENCE, *more]

    def test_nodes_are_hosts(self) -> None:
        """Trainers run on the hosts of their parts, with ranks in the nodes' order, and read all parts."""
        trainer = f'echo "rank $RANK on $(hostname) in job $SLURM_JOB_ID" && {self.epoch()}'
        result = self.launch(trainer)
        self.assertEqual(result.returncode, 0, result.stderr)
        for i, host in enumerate(self.bed.hosts):
            self.assertRegex(result.stdout, rf"(?m)rank {i} on {host.name} in job [0-9]+$")
        self.assertEqual(len(re.findall("parts: 1 mapped on this host, 0 by RDMA, 1 over TCP", result.stdout)), 2)

    def test_a_trainer_dies(self) -> None:
        """One line, with the trainer's host, its status and its last output."""
        self.fails(
            r"host 1 \(10.77.0.2\): trainer 1 ended with status 3.*no luck", 'echo no luck; exit "$((RANK * 3))"'
        )

    def test_a_program_is_missing(self) -> None:
        """srun reports the missing program and its host, and the launch explains it."""
        self.fails(r"host [01] \(10.77.0.[12]\): graphwire is not there", "--program", "/nowhere/graphwire", "true")

    def test_the_allocation_ends(self) -> None:
        """scancel: Slurm ends all processes, and the launch reports a lost host."""
        process = self.bed.desk.start(*self.words("echo running; exec sleep 900"))
        try:
            self.assertTrue(
                wait_for(lambda: sum(bool(host.find("sleep", "900")) for host in self.bed.hosts) == self.count)
            )
            self.assertEqual(self.bed.desk.run(*_ENV, "scancel", "--me").returncode, 0)
            process.wait(HANG_S)
            self.assertNotEqual(process.returncode, 0)
        finally:
            process.kill()
            process.communicate()
        self.nothing_left()

    def test_the_launcher_dies(self) -> None:
        """Agents without a launcher end the processes that they started."""
        process = self.bed.desk.start(*self.words("echo running; exec sleep 900"))
        try:
            self.assertTrue(
                wait_for(lambda: sum(bool(host.find("sleep", "900")) for host in self.bed.hosts) == self.count)
            )
            launchers = [pid for pid, text in self.bed.desk.processes().items() if text.startswith("python3 ")]
            self.assertEqual(len(launchers), 1)
            os.kill(launchers[0], signal.SIGKILL)
            process.wait(HANG_S)
        finally:
            process.kill()
            process.communicate()
        self.nothing_left()
