"""How a host is reached: the command that runs a script on the host, and the meanings of its failures."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import shlex
from typing import Any

from .errors import DeployError, UsageError
from .ip_config import Host
from .names import COPY, IN_PACKAGE, TOP, own_folder

LINE_MAX = 1 << 20  # bytes of an agent's line

# Places of the program on a host without --program, in this order: the workspace, PATH. The places of the installed
# package and of this Python's environment come last, because all hosts may have the same environment.
_OF_PACKAGE = [os.path.join(TOP, "bin/graphwire")] if IN_PACKAGE else []
_OF_ENVIRONMENT = [os.path.join(folder, "graphwire")] if (folder := own_folder()) else []
_PLACES = (".graphwire/bin/graphwire", "graphwire", *_OF_PACKAGE, *_OF_ENVIRONMENT)
_OURS = re.compile("there is no user|the workspace is not there")  # texts of our own scripts, which need no explanation

# Texts of OpenSSH, and what to do. explain() fills in {host}, {port} and {to}.
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
    (r"connection refused", "its port {port} is closed: is sshd running, is --ssh_port right?"),
    (r"closed by remote host|connection reset|broken pipe", "the connection was lost: is the host up?"),
    (r"no route to host|network is unreachable", "there is no route to it"),
    (r"timed out|timeout", "it does not answer in time: is it up, is port {port} open?"),
    (r"bad owner or permissions|unprotected private key", "ssh refuses a file of yours; chmod 600 it"),
    (r"not found|no such file", f"graphwire is not there: {COPY} --with_program, or --program PATH"),
)


def explain(host: Host, port: int, to: str, lines: list[str], status: int | None) -> str:
    """Returns why a connection failed. lines: ssh's stderr; status: its exit status, or None."""
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
    """Reaches hosts by ssh, with the user's own configuration and without prompts."""

    workspace: str
    ssh_port: int | None = None
    user: str = ""
    key: str | None = None
    program: str | None = None
    timeout_s: float = 30.0

    def to(self, host: Host) -> str:
        """Returns the host's name for ssh."""
        return f"{self.user}@{host.address}" if self.user else host.address

    def ssh(self, multiplex: str | None = None) -> list[str]:
        """Returns ssh and its options. multiplex: a socket's path; sessions with the same socket share a connection."""
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
        """Returns the command that runs a script of sh on a host, for any login shell there."""
        return self.ssh(multiplex) + [self.to(host), f"exec sh -c {shlex.quote(script)}"]

    def find_program(self, optional: bool = False) -> str:
        """Returns a line of sh that sets $g to the program on the host. If the program does not exist, `optional`
        leaves $g empty; otherwise the line fails. A wrong workspace is reported first, because the program may be in
        the right one."""
        home, refuse, workspace = home_of(self.workspace)
        if self.program:
            places = _path(self.program)
        else:
            places = f"{workspace}/{_PLACES[0]} {shlex.join(_PLACES[1:])}"
        tries = f'for p in {places}; do if [ -z "$g" ] && command -v "$p" >/dev/null; then g=$p; fi; done'
        absent = f'echo {workspace}": the workspace is not there: {COPY} makes it" >&2; exit 127'
        named = _path(self.program or "graphwire")
        missing = f'{refuse}; [ -d {workspace} ] || {{ {absent}; }}; echo {named}": not found" >&2; exit 127'
        return f"g=; {home}; {tries}" + ("" if optional else f'; [ -n "$g" ] || {{ {missing}; }}')

    def agent_script(self, keep: bool = False) -> str:
        """Returns the script that becomes an agent."""
        return f'{self.find_program()}; exec "$g" agent{" --keep" if keep else ""}'

    def agent(self, host: Host, keep: bool = False) -> list[str]:
        """Returns the command that runs an agent on a host."""
        return self.shell(host, self.agent_script(keep))

    async def connect(self, host: Host, keep: bool = False) -> Any:
        """Runs an agent on a host. Returns a process of asyncio, or an object with the same interface."""
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
        """Returns an error that explains why a connection failed."""
        return DeployError(f"{host}: {explain(host, self.ssh_port or 22, self.to(host), lines, status)}")


@dataclasses.dataclass(frozen=True)
class Local(Reach):
    """All hosts are this machine: an agent is a local process."""

    def shell(self, host: Host, script: str, multiplex: str | None = None) -> list[str]:
        """Returns the command that runs a script of sh here."""
        return ["sh", "-c", script]


def home_of(workspace: str) -> tuple[str, str, str]:
    """Returns three pieces of sh for a workspace: one sets h to the home folder at the path's beginning; one prints a
    line and exits if the home's user does not exist; and the path as a word."""
    if workspace.startswith("~"):
        name, _, rest = workspace[1:].partition("/")
        if not re.fullmatch(r"[A-Za-z0-9._-]*", name):
            raise UsageError(f"--workspace {workspace}: after ~ comes a user's name, or /")
        message = shlex.quote(f'{workspace}: there is no user "{name}" here; did you mean ~/{name}/{rest}?')
        refuse = f'case $h in "~"*) echo {message} >&2; exit 127;; esac' if name else ":"
        rest = rest.rstrip("/")
        return f"h=~{name}", refuse, f'"$h"/{shlex.quote(rest)}' if rest else '"$h"'
    if not workspace.startswith("/"):
        raise UsageError(f"--workspace {workspace}: must begin with / or ~")
    return ":", ":", shlex.quote(workspace.rstrip("/") or "/")


def _path(path: str) -> str:
    """Quotes a path for sh; a leading ~/ becomes the home folder on the host."""
    if path.startswith("~/"):
        return '"$HOME"/' + shlex.quote(path[2:])
    return shlex.quote(path)


def own_program() -> str | None:
    """Finds the program of this checkout, bundle or package, for hosts that are this machine."""
    for place in ("build/release/graphwire", "bin/graphwire", "build/dev/graphwire"):
        if os.access(os.path.join(TOP, place), os.X_OK):
            return os.path.join(TOP, place)
    return None
