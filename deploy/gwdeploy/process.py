"""Servers and trainers as the launcher knows them: their commands, and how they ended."""

from __future__ import annotations

import asyncio
import collections
import os
import re
from typing import Any

from . import command, environment
from .agent import Event
from .errors import UsageError
from .ip_config import Host
from .options import LaunchOptions

_TAIL_LINES = 4
_LINES = 1000  # of a process, in which its failure is looked for: several tracebacks, and torchrun's report
_LINE_MAX = 400


def how_it_ended(event: Event) -> str:
    """`status 1` or `signal 9`."""
    return f"signal {event['signal']}" if "signal" in event else f"status {event.get('status')}"


def tail_of(event: Event) -> str:
    """The last lines of a process that ended, and where the rest is."""
    lines = [str(line).strip() for line in event.get("tail", []) if str(line).strip()][-_TAIL_LINES:]
    text = f": {' | '.join(lines)}" if lines else " without a word"
    return f"{text}{_log(event)}"


def _log(event: Event) -> str:
    failed = f"; its log could not be written: {event['log_error']}" if event.get("log_error") else ""
    return f"{failed}; log: {event.get('log')}"


class Process:
    """A server, a trainer, or torchrun with several trainers (`several`), as far as the launcher knows it."""

    def __init__(self, host: Host, name: str, title: str, request: dict[str, Any], several: bool = False) -> None:
        self.host, self.name, self.title, self.request, self.several = host, name, title, request, several
        self.ready = asyncio.Event()
        self.ended: Event | None = None
        self.end_number = 0  # its end among the lines of all
        self.restarts = 0
        self.log = ""
        self.lines: collections.deque[tuple[int, str]] = collections.deque(maxlen=_LINES)  # the last ones, numbered

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise than well."""
        return self.ended is not None and self.ended.get("status") != 0

    def said(self, number: int, text: str) -> None:
        """It wrote a line."""
        self.lines.append((number, text[:_LINE_MAX]))


def log_of(process: Process) -> str:
    """Where all that a process wrote is."""
    return _log(process.ended or {"log": process.log})


def server_name(options: LaunchOptions, graph: Event) -> str:
    """What `stat` calls the servers."""
    return options.server_name or re.sub(r"[^A-Za-z0-9_-]", "-", str(graph["name"]))[:60]


def server_words(options: LaunchOptions, host: Host, part_config: str, key_file: str) -> list[str]:
    """The command of a server; "@" is the agent's own program."""
    words = ["@", "serve", "--part-config", part_config, "--part", str(host.index), "--listen", host.listen]
    words += ["--key-file", key_file, "--drain", "1000"]
    threads = options.num_servers or host.servers
    if threads:
        words += ["--threads", str(threads * options.num_server_threads)]
    if options.server_name:
        words += ["--name", options.server_name]
    if options.transport:
        words += ["--transport", options.transport]
    for name in options.mutable:
        words += ["--mutable", name]
    return words


def rank_of(options: LaunchOptions, hosts: list[Host], rank: int, local: int, port: int) -> dict[str, str]:
    """The environment of a trainer that torchrun does not start."""
    return environment.of_rank(rank, local, options.num_trainers, len(hosts), hosts[0].address, port)


def trainer_commands(options: LaunchOptions, hosts: list[Host], host: Host, port: int) -> list[tuple]:
    """(local rank, command) of each process to start on a host; one without a rank under torchrun."""
    text = command.with_dgl(options.command, options.dgl)
    if options.no_torchrun or not command.runs_under_torchrun(options.command):
        return [(local, text) for local in range(options.num_trainers)]
    text = command.torchrun(text, options.num_trainers, len(hosts), host.index, hosts[0].address, port)
    return [(None, text)]


def read_key(path: str) -> bytes:
    """The bytes of a key file of the user's."""
    try:
        if os.path.exists(os.path.expanduser(path)) and not os.path.isfile(os.path.expanduser(path)):
            raise UsageError(f"--key_file {path}: it is no file")
        with open(os.path.expanduser(path), "rb") as file:
            key = file.read(1025)
    except OSError as error:
        raise UsageError(f"--key_file {path}: {error.strerror}") from None
    if not 16 <= len(key) <= 1024:
        raise UsageError(f"--key_file {path}: a key has 16 to 1024 bytes")
    return key
