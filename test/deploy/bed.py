"""Hosts for tests: each has its own network, mount, PID, UTS and IPC namespaces, and an sshd as its first process.

    bed/                      a temporary folder
      h0/ h1/ ...             visible to one host as /mnt/bed: its home (mounted on HOME), its sshd's keys
    10.77.0.1, .2, ...        on a bridge in a separate network namespace
    fd77::1, ::2, ...         the same hosts over IPv6

A host sees this machine's programs and the checkout (/mnt/top), and an empty /tmp, /run and /dev/shm. Users type
commands on the last host, the desk. Needs root. All hosts end with this process: the kernel kills their first processes
with their parent, and each namespace ends with its first process.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GRAPHWIRE", str(TOP / "build/release/graphwire"))
HOME = os.path.expanduser("~root")
ON_HOST = "/mnt/program/graphwire"
HANG_S = 100.0  # time limit of a wait; trainers that must not end by themselves sleep longer
SILENCE = "150"  # limits of jobs in seconds: longer than the waits, so that an event and not a limit has ended a job
_WITH_US = ["setpriv", "--pdeathsig", "KILL"]  # ends with this process
_NAMESPACES = [
    *_WITH_US,
    "unshare",
    "--net",
    "--mount",
    "--pid",
    "--uts",
    "--ipc",
    "--fork",
    "--kill-child=KILL",
    "--mount-proc",
]
_ENVIRONMENT = {"HOME": HOME, "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}
# Tests open hundreds of connections, so the key exchange has no post-quantum part.
_SSHD = """Port 22
HostKey /mnt/bed/host_key
AuthorizedKeysFile /mnt/bed/authorized_keys
PidFile none
KexAlgorithms curve25519-sha256
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 300
Subsystem sftp internal-sftp
LogLevel ERROR
"""
# The setup of a host's new namespaces, before its first process.
_BEGIN = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/top /mnt/program /mnt/bed
mount --bind "$TOP" /mnt/top
mount --bind "$PROGRAM" /mnt/program
mount --bind "$BED" /mnt/bed
if [ -n "$SEEN" ]; then mkdir /mnt/seen && mount --bind "$SEEN" /mnt/seen; fi
for folder in /tmp /run /dev/shm; do mount -t tmpfs -o mode=1777 tmpfs $folder; done
mkdir -p /run/sshd
chmod 755 /run /run/sshd
mount --bind /mnt/bed/home "$ITS_HOME"
hostname "$NAME"
ip link set lo up
cd /
echo begun
read -r plugged
ip link set eth0 address "$MAC"
ip addr add "$ADDRESS/16" dev eth0
ip addr add "$ADDRESS6/64" dev eth0 nodad || echo no IPv6 >&2
ip link set eth0 up
echo up
"""
# Prints each address ($1 ...) whose sshd answers, for at most $0 seconds.
_ANSWERED = """
for address; do
	(until timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/22" && read -r said <&3 && [[ $said == SSH-* ]]' "$address"; do
		((SECONDS < ${0%.*})) || exit
		sleep 0.01
	done 2>/dev/null
	echo "$address") &
done
wait
"""


class BedError(Exception):
    """An error of the test bed, not of the test."""


def wait_for(what: Callable[[], object], seconds: float = HANG_S) -> bool:
    """Waits until a condition is true, checked a hundred times a second. Returns False after the time limit."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Host:
    def __init__(self, bed: Bed, index: int, name: str, address: str, first: str) -> None:
        self.bed, self.index, self.name, self.address = bed, index, name, address
        self.address6 = f"fd77::{index + 1:x}"
        self.folder = bed.folder / f"h{index}"
        self.home = self.folder / "home"
        self.home.mkdir(parents=True)
        self.link = f"v{index}"
        self.first = first
        self.pid = 0
        self._outer: subprocess.Popen | None = None

    def begin(self) -> None:
        """Starts to make the namespaces; the host's first process waits for the network."""
        environment = dict(
            os.environ,
            TOP=str(TOP),
            ITS_HOME=HOME,
            PROGRAM=str(Path(PROGRAM).parent),
            BED=str(self.folder),
            NAME=self.name,
            SEEN=self.bed.seen,
            ADDRESS=self.address,
            ADDRESS6=self.address6,
            # The same network address after a restart: other hosts remember the old one for a while.
            MAC=f"02:00:00:00:{self.index >> 8:02x}:{self.index & 255:02x}",
        )
        with open(self.folder / "sshd.log", "wb") as log:
            self._outer = subprocess.Popen(
                [*_NAMESPACES, "sh", "-c", _BEGIN + "exec " + self.first],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def _said(self, word: bytes) -> None:
        assert self._outer and self._outer.stdout
        if self._outer.stdout.readline() != word:
            raise BedError(f"{self.name}: {(self.folder / 'sshd.log').read_text()}")

    def begun(self) -> None:
        """Waits for the namespaces."""
        self._said(b"begun\n")
        assert self._outer
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children").read_text().split()
        self.pid = int(children[0])

    def go(self) -> None:
        """Connects the network, so that the first process goes on."""
        assert self._outer and self._outer.stdin
        self._outer.stdin.write(b"plugged\n")
        self._outer.stdin.close()

    def up(self) -> None:
        """Waits for its addresses."""
        self._said(b"up\n")

    def words(self, command: Sequence[str]) -> list[str]:
        """Returns the command that runs a command on this host, in its home folder."""
        environment = [f"{name}={value}" for name, value in {**_ENVIRONMENT, **self.bed.environment}.items()]
        return ["nsenter", f"--target={self.pid}", "--all", "env", "-i", "-C", HOME, *environment, *command]

    def start(self, *command: str, **options: object) -> subprocess.Popen:
        """Starts a command on this host; its output is text."""
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(  # type: ignore[call-overload]
            self.words(command), stdin=subprocess.DEVNULL, text=True, start_new_session=True, **options
        )

    def run(self, *command: str, timeout: float = HANG_S) -> subprocess.CompletedProcess:
        return subprocess.run(
            self.words(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
        )

    def shell(self, text: str, timeout: float = HANG_S) -> subprocess.CompletedProcess:
        return self.run("bash", "-c", text, timeout=timeout)

    def processes(self) -> dict[int, str]:
        """Returns pid (here) -> command line of all processes of the host except the first."""
        return {pid: text for _, pid, text in processes_of([self])}

    def find(self, *words: str) -> list[int]:
        """Returns the pids of processes whose command line has all the words."""
        return [pid for pid, text in self.processes().items() if all(word in text for word in words)]

    def kill(self) -> None:
        if self._outer:
            try:
                os.kill(self.pid or self._outer.pid, signal.SIGKILL)  # a process that did not start has no pid
            except ProcessLookupError:
                pass

    def end(self) -> None:
        self.kill()
        if self._outer:
            self._outer.wait(HANG_S)
            if self._outer.stdout:
                self._outer.stdout.close()
            self._outer = None
            self.pid = 0


def processes_of(hosts: Sequence[Host]) -> list[tuple[Host, int, str]]:
    """Returns (host, pid here, command line) of all processes of the hosts except their first, in one scan."""
    spaces: dict[int, Host] = {}
    for host in hosts:
        with contextlib.suppress(OSError):
            spaces[os.stat(f"/proc/{host.pid}/ns/pid").st_ino] = host
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                its = spaces.get(os.stat(f"/proc/{entry}/ns/pid").st_ino)
                if its and int(entry) != its.pid:
                    text = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ")
                    found.append((its, int(entry), text.decode(errors="replace").strip()))
    return [one for one in found if one[2]]  # a zombie has no command line


def _compiled(seen: str) -> dict[str, str]:
    """The variable with which hosts find what Python has compiled here (test/check/venv.sh): to compile torch takes
    longer than a test's own work. Python files it by the names of sources, and hosts have other names for them."""
    here = os.environ.get("PYTHONPYCACHEPREFIX", "")
    if not Path(here).is_relative_to(TOP):
        return {}
    for name, folder in (("/mnt/top", str(TOP)), ("/mnt/seen", seen)):
        files, link = Path(here + folder), Path(here + name)
        files.mkdir(parents=True, exist_ok=True)
        link.parent.mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError):
            link.symlink_to(os.path.relpath(files, link.parent))
    return {"PYTHONPYCACHEPREFIX": here.replace(str(TOP), "/mnt/top", 1)}


class Bed:
    """A few hosts and a desk. seen: a folder that the hosts see as /mnt/seen. environment: variables of every command
    on the hosts, as an administrator would set them."""

    def __init__(
        self, count: int, tmp: str | None = None, seen: str = "", environment: Mapping[str, str] | None = None
    ) -> None:
        self.seen = seen
        self.environment = dict(environment or {})
        if seen:  # the interpreter's own library, which another version must not use
            self.environment.setdefault("LD_LIBRARY_PATH", "/mnt/seen/lib")
            self.environment.update(_compiled(seen))
        self.folder = Path(tempfile.mkdtemp(prefix="gwbed-", dir=tmp))
        self.switch: subprocess.Popen | None = None
        self.hosts: list[Host] = []
        sshd = "/usr/sbin/sshd -D -e -f /mnt/bed/sshd_config"
        self.hosts = [Host(self, i, f"host{i}", f"10.77.0.{i + 1}", sshd) for i in range(count)]
        self.desk = Host(self, count, "desk", f"10.77.0.{count + 1}", "sleep infinity")
        try:
            self._keys()
            self._start()
        except BaseException:
            self.end()
            raise

    def _keys(self) -> None:
        key = self.folder / "key"
        for path in (key, self.folder / "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=30)
        public = (self.folder / "key.pub").read_text()
        host_public = " ".join((self.folder / "host_key.pub").read_text().split()[:2])
        known = "".join(f"{host.address},{host.address6} {host_public}\n" for host in self.hosts)
        for host in [*self.hosts, self.desk]:
            (host.folder / "sshd_config").write_text(_SSHD + self._set_env())
            (host.folder / "authorized_keys").write_text(public)
            shutil.copy(self.folder / "host_key", host.folder / "host_key")
            ssh = host.home / ".ssh"
            ssh.mkdir(mode=0o700)
            shutil.copy(key, ssh / "id_ed25519")
            (ssh / "known_hosts").write_text(known)

    def _set_env(self) -> str:
        """Returns sshd_config's line for the environment."""
        words = " ".join(f'"{name}={value}"' for name, value in self.environment.items())
        return f"SetEnv {words}\n" if words else ""

    def _start(self) -> None:
        self.switch = subprocess.Popen(
            [
                "unshare",
                "--net",
                "sh",
                "-c",
                "ip link add br0 type bridge && ip link set br0 up && echo up && read end",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.switch.stdout
        if self.switch.stdout.readline() != b"up\n":
            raise BedError("no bridge can be made")
        self.begin(*self.hosts, self.desk)

    def begin(self, *hosts: Host) -> None:
        """Starts hosts in parallel, or starts a dead host again."""
        for host in hosts:
            host.begin()
        plug = []
        for host in hosts:
            host.begun()
            plug.append(
                f"ip link del {host.link} 2>/dev/null; "
                f"ip link add {host.link} type veth peer name eth0 netns {host.pid} && "
                f"ip link set {host.link} master br0 up || exit"
            )
        self.on_switch("\n".join(plug))
        for host in hosts:
            host.go()
        for host in hosts:
            host.up()

    def on_switch(self, script: str) -> None:
        assert self.switch
        words = ["nsenter", f"--target={self.switch.pid}", "--net", "sh", "-c", script]
        result = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
        if result.returncode != 0:
            raise BedError(f"{script}: {result.stderr}")

    def reachable(self) -> None:
        """Waits until the sshd of every host answers."""
        addresses = [host.address for host in self.hosts]
        answered = self.desk.run("bash", "-c", _ANSWERED, str(HANG_S), *addresses, timeout=2 * HANG_S).stdout.split()
        for host in self.hosts:
            if host.address not in answered:
                raise BedError(f"{host.name} does not answer: {(host.folder / 'sshd.log').read_text()}")

    def cut(self, host: Host) -> None:
        self.on_switch(f"ip link set {host.link} down")

    def mend(self, host: Host) -> None:
        self.on_switch(f"ip link set {host.link} up")

    def left(self, sessions: bool = True) -> list[str]:
        """Returns the processes on the hosts except sshd. Its sessions may be left out too: they live until TCP gives
        up."""
        found = processes_of(self.hosts)
        return [f"{host.name}: {text}" for host, _, text in found if sessions or not text.startswith("sshd: ")]

    def end(self) -> None:
        for host in [*self.hosts, self.desk]:
            host.kill()
        for host in [*self.hosts, self.desk]:
            host.end()
        if self.switch:
            self.switch.kill()
            self.switch.wait(20)
            for stream in (self.switch.stdin, self.switch.stdout):
                if stream:
                    stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)
