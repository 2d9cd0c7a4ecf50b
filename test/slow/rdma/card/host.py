"""A host: commands and background programs on this machine, or on another one by ssh.

Every command is a line for sh. A program in the background is a child of this process, on another host under its own
ssh: its output goes to a file here, and begins with a line with its process id there.

    sh -c 'echo graphwire-pid $$; exec PROGRAM'   or   ssh HOST sh -c '…'     > WORK/N.out

A login shell may print lines of its own before that one; they are dropped.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

BACKGROUND_S = 900  # no program in the background outlives this, even if the link to its host is lost
POLL_S = 0.05
START_S = 60


class Done(NamedTuple):
    """A command that has ended. rc is 124 if it ran out of time."""

    rc: int
    out: str
    err: str
    seconds: float

    def why(self) -> str:
        """The last line that explains a failure."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        last = lines[-1].strip() if lines else "no output"
        return f"out of time after {self.seconds:.0f} s: {last}" if self.rc == 124 else f"status {self.rc}: {last}"


class HostError(Exception):
    """A host does not do what every host does: its folder cannot be made, or ssh fails."""


def words(*parts: object) -> str:
    return " ".join(shlex.quote(str(part)) for part in parts)


def wait_until(what: Callable[[], object], seconds: float) -> bool:
    """Waits until a condition is true. Returns False after the time limit."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


class Host:
    """This machine, or with `ssh` (the words of the ssh command) the host of this name."""

    def __init__(self, name: str, ssh: Sequence[str] | None = None) -> None:
        self.name = name
        self.ssh = list(ssh) if ssh is not None else None
        self.work = ""
        self.program = ""  # graphwire there
        self.address = ""  # of its RDMA device
        self.device = ""
        self.netdev = ""
        self.programs: list[Program] = []

    def __repr__(self) -> str:
        return f"Host({self.name!r})"

    def command(self, line: str) -> list[str]:
        """The words that run a line of sh there."""
        if self.ssh is None:
            return ["sh", "-c", line]
        return [*self.ssh, self.name, "sh -c " + shlex.quote(line)]

    def sh(self, line: str, timeout: float = 30, data: bytes | None = None) -> Done:
        """Runs a line of sh. Its input is `data`, or empty."""
        begun = time.monotonic()
        with subprocess.Popen(
            self.command(line),
            stdin=subprocess.PIPE if data is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as child:
            try:
                out, err = child.communicate(data, timeout=max(timeout, 0.1))
                rc = child.returncode
            except subprocess.TimeoutExpired:
                end_group(child)
                out, err = child.communicate()
                rc = 124
            except BaseException:
                end_group(child)
                raise
        return Done(rc, out.decode(errors="replace"), err.decode(errors="replace"), time.monotonic() - begun)

    def must(self, line: str, timeout: float = 30, data: bytes | None = None) -> str:
        """Runs a line of sh that must succeed. Returns its output without the last newline."""
        done = self.sh(line, timeout, data)
        if done.rc != 0:
            raise HostError(f"{self.name}: {line.split(';')[0][:80]}: {done.why()}")
        return done.out.rstrip("\n")

    def begin(self, top: str) -> None:
        self.work = self.must(f"mktemp -d {words(top)}/graphwire-rdma.XXXXXX", timeout=60)

    def start(self, output: str, *command: object, prefix: str = "") -> Program:
        """Starts a program in the background, with its output in a file of this machine. `prefix` is put before it in
        its shell, such as "ulimit -l 64;"."""
        program = Program(self, output, words(*command), prefix)
        self.programs.append(program)
        return program

    def end(self) -> None:
        """Ends all programs that were started here, removes the work folder, and closes the connection."""
        for program in self.programs:
            program.kill()
        if self.work:
            self.sh(f"rm -rf {words(self.work)}")
        if self.ssh is not None:  # the connection that the commands shared
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run([*self.ssh, "-O", "exit", self.name], capture_output=True, check=False, timeout=30)


def end_group(child: subprocess.Popen) -> None:
    """Ends a command and what it started: its process group has the child's process id."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


class Program:
    """A program in the background of a host."""

    def __init__(self, host: Host, output: str, command: str, prefix: str) -> None:
        self.host = host
        self.path = output
        line = f"{prefix} exec timeout -k 5 {BACKGROUND_S} sh -c {words('echo graphwire-pid $$; exec ' + command)}"
        with open(output, "wb") as file:
            self.child = subprocess.Popen(
                host.command(line), stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        self.pid = 0
        if not wait_until(lambda: self._split()[0] or self.ended(), START_S) or not self._split()[0]:
            raise HostError(f"{host.name}: {command[:80]}: {self._split()[1][-200:] or 'does not start'}")
        self.pid = self._split()[0]

    def __repr__(self) -> str:
        return f"Program({self.host.name}, {self.pid})"

    def _split(self) -> tuple[int, str]:
        """Its process id and what it has printed since; 0 and all output before the id is there."""
        with open(self.path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        match = re.search(r"^graphwire-pid (\d+)\n", text, re.MULTILINE)
        return (int(match[1]), text[match.end() :]) if match else (0, text)

    def output(self) -> str:
        return self._split()[1]

    def ended(self) -> bool:
        return self.child.poll() is not None

    def prints(self, text: str, timeout: float) -> str:
        """Waits for a line that begins with `text` and returns it; "" if the program ends without it or the time is
        over."""
        found: list[str] = []

        def look() -> bool:
            ended = self.ended()
            found.extend(line for line in self.output().splitlines(True) if line.startswith(text) and line[-1] == "\n")
            return bool(found) or ended

        wait_until(look, timeout)
        return found[0].rstrip("\n") if found else ""

    def signal(self, name: str) -> bool:
        """Sends a signal to the program. With STOP, returns when all of its threads have stopped."""
        line = f"kill -{name} {self.pid}"
        if name == "STOP":
            line += f" && while grep -qv ') T ' /proc/{self.pid}/task/*/stat; do sleep 0.05; done"
        return self.host.sh(line).rc == 0

    def wait(self, timeout: float) -> int | None:
        """Waits for the end and returns the exit status, or None if the time is over."""
        try:
            return self.child.wait(max(timeout, 0.1))
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        self.signal("TERM")
        if self.wait(10) is None:
            self.kill()

    def kill(self) -> None:
        """Kills it, if it still runs."""
        if not self.ended():
            self.signal("KILL")
            if self.wait(5) is None:
                end_group(self.child)
                self.wait(5)
