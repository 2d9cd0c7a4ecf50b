"""How a host is reached: the words of the command that runs something there, and what its failures mean."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import shlex
from typing import Any

from .errors import DeployError, UsageError
from .ip_config import Host

LINE_MAX = 1 << 20  # of what an agent says

# Where the program may be on a host, in this order, when --program does not say: in the workspace, in PATH.
_PLACES = (".graphwire/bin/graphwire", "graphwire")
_OURS = re.compile("there is no user|the workspace is not there")  # as our scripts say it: nothing to explain

# What OpenSSH says, and what to do about it. {host}, {port} and {to} are filled in.
_MEANINGS: tuple[tuple[str, str], ...] = (
    (
        r"host key verification failed|no .* host key is known",
        "its host key is unknown or has changed: check it, then: ssh-keyscan -p {port} {host} >> ~/.ssh/known_hosts",
    ),
    (
        r"permission denied|too many authentication failures|no supported authentication",
        "ssh is refused without a password, and none is asked for here: ssh-copy-id -p {port} {to}, or --ssh_key",
    ),
    (r"could not resolve|name or service not known", "its name is not known here"),
    (r"connection refused", "nobody listens on its port {port}: is sshd running, is --ssh_port right?"),
    (r"closed by remote host|connection reset|broken pipe", "the connection was lost: is the host up?"),
    (r"no route to host|network is unreachable", "there is no route to it"),
    (r"timed out|timeout", "it does not answer in time: is it up, is port {port} open?"),
    (r"bad owner or permissions|unprotected private key", "ssh refuses a file of yours; chmod 600 it"),
    (r"not found|no such file", "graphwire is not there: copy_files.py --with_program, or --program PATH"),
)


def explain(host: Host, port: int, to: str, lines: list[str], status: int | None) -> str:
    """Why a connection failed, from what ssh said on stderr."""
    for line in lines:
        if _OURS.search(line):
            return line
    said = " | ".join(line for line in lines[-3:] if line)
    for pattern, meaning in _MEANINGS:
        if any(re.search(pattern, line, re.IGNORECASE) for line in lines):
            return f"{meaning.format(host=host.address, port=port, to=to)} ({said})"
    if said:
        return said
    if status is not None and status < 0:
        return f"ssh was killed by signal {-status}"
    return "the connection was lost" if status in (None, 0, 255) else f"ended with status {status}"


@dataclasses.dataclass(frozen=True)
class Reach:
    """Over ssh, with the user's own configuration; never with a prompt."""

    workspace: str
    ssh_port: int | None = None
    user: str = ""
    key: str | None = None
    program: str | None = None
    timeout_s: float = 30.0

    def to(self, host: Host) -> str:
        """What ssh calls the host."""
        return f"{self.user}@{host.address}" if self.user else host.address

    def ssh(self, multiplex: str | None = None) -> list[str]:
        """ssh and its options. The connection is ours alone, or shared by those that name the same socket."""
        words = ["ssh", "-T", "-e", "none", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]
        words += ["-o", f"ConnectTimeout={max(1, round(self.timeout_s / 2))}", "-o", "ClearAllForwardings=yes"]
        if multiplex:
            words += ["-o", "ControlMaster=auto", "-o", f"ControlPath={multiplex}", "-o", "ControlPersist=3"]
        else:
            words += ["-o", "ControlMaster=no", "-o", "ControlPath=none"]
        if self.ssh_port:
            words += ["-p", str(self.ssh_port)]
        if self.key:
            words += ["-i", self.key, "-o", "IdentitiesOnly=yes"]
        return words

    def shell(self, host: Host, script: str, multiplex: str | None = None) -> list[str]:
        """The words that run a script of sh on a host, whatever the user's shell there is."""
        return self.ssh(multiplex) + [self.to(host), f"exec sh -c {shlex.quote(script)}"]

    def find_program(self, optional: bool = False) -> str:
        """A line of sh that sets $g to the program on the host; to nothing, where it may be missing. Where it may not,
        a wrong workspace is told of first: the program may well be in the right one."""
        home, refuse, workspace = home_of(self.workspace)
        if self.program:
            places = _path(self.program)
        else:
            places = f"{workspace}/{_PLACES[0]} {_PLACES[1]}"
        tries = f'for p in {places}; do if [ -z "$g" ] && command -v "$p" >/dev/null; then g=$p; fi; done'
        absent = f'echo {workspace}": the workspace is not there: copy_files.py makes it" >&2; exit 127'
        named = _path(self.program or "graphwire")
        missing = f'{refuse}; [ -d {workspace} ] || {{ {absent}; }}; echo {named}": not found" >&2; exit 127'
        return f"g=; {home}; {tries}" + ("" if optional else f'; [ -n "$g" ] || {{ {missing}; }}')

    def agent_script(self, keep: bool = False) -> str:
        """The script that becomes an agent."""
        return f'{self.find_program()}; exec "$g" agent{" --keep" if keep else ""}'

    def agent(self, host: Host, keep: bool = False) -> list[str]:
        """The words that run an agent on a host."""
        return self.shell(host, self.agent_script(keep))

    async def connect(self, host: Host, keep: bool = False) -> Any:
        """Runs an agent on a host: a process, or what looks like one."""
        words = self.agent(host, keep)
        try:
            return await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_MAX,
                start_new_session=True,
            )
        except OSError as error:
            raise DeployError(f"{host}: {words[0]} cannot be run: {error.strerror}") from None

    def failure(self, host: Host, lines: list[str], status: int | None) -> DeployError:
        """Why a connection failed."""
        return DeployError(f"{host}: {explain(host, self.ssh_port or 22, self.to(host), lines, status)}")


@dataclasses.dataclass(frozen=True)
class Local(Reach):
    """All hosts are this machine: agents are processes of it."""

    def shell(self, host: Host, script: str, multiplex: str | None = None) -> list[str]:
        """The words that run a script of sh here."""
        return ["sh", "-c", script]


def home_of(workspace: str) -> tuple[str, str, str]:
    """Three pieces of sh: one sets h to the home that a path begins with, one ends with a line where that is nobody's,
    and the path as a word."""
    if workspace.startswith("~"):
        name, _, rest = workspace[1:].partition("/")
        if not re.fullmatch(r"[A-Za-z0-9._-]*", name):
            raise UsageError(f"--workspace {workspace}: no user's name")
        message = shlex.quote(f'{workspace}: there is no user "{name}" here; did you mean ~/{name}/{rest}?')
        refuse = f'case $h in "~"*) echo {message} >&2; exit 127;; esac' if name else ":"
        rest = rest.rstrip("/")
        return f"h=~{name}", refuse, f'"$h"/{shlex.quote(rest)}' if rest else '"$h"'
    if not workspace.startswith("/"):
        raise UsageError(f"--workspace {workspace}: must begin with / or ~")
    return ":", ":", shlex.quote(workspace.rstrip("/") or "/")


def _path(path: str) -> str:
    """A path for sh: a ~ in front is the host's home."""
    if path.startswith("~/"):
        return '"$HOME"/' + shlex.quote(path[2:])
    return shlex.quote(path)


def own_program() -> str | None:
    """The program beside this checkout's scripts, for hosts that are this machine."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for place in ("build/release/graphwire", "bin/graphwire", "build/dev/graphwire"):
        if os.access(os.path.join(top, place), os.X_OK):
            return os.path.join(top, place)
    return None
