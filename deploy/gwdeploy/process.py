"""The launcher's records of servers and trainers: their commands, and how they ended."""

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
from .names import own_folder
from .options import LaunchOptions

_TAIL_LINES = 4
_LINES = 1000  # last lines of a process to search for its failure: several tracebacks, and torchrun's report
_LINE_MAX = 400


def how_it_ended(event: Event) -> str:
    """Returns a text such as `status 1` or `signal 9`."""
    return f"signal {event['signal']}" if "signal" in event else f"status {event.get('status')}"


def tail_of(event: Event) -> str:
    """Returns the last lines of a process that ended, and the path of its log."""
    lines = [str(line).strip() for line in event.get("tail", []) if str(line).strip()][-_TAIL_LINES:]
    text = f": {' | '.join(lines)}" if lines else " without a word"
    return f"{text}{_log(event)}"


def _log(event: Event) -> str:
    failed = f"; its log could not be written: {event['log_error']}" if event.get("log_error") else ""
    return f"{failed}; log: {event.get('log')}"


class Process:
    """A server, a trainer, or torchrun with several trainers (`several`)."""

    def __init__(self, host: Host, name: str, title: str, request: dict[str, Any], several: bool = False) -> None:
        self.host, self.name, self.title, self.request, self.several = host, name, title, request, several
        self.ready = asyncio.Event()
        self.ended: Event | None = None
        self.end_number = 0  # the number of its end, in the count of all trainers' lines
        self.restarts = 0
        self.log = ""
        self.lines: collections.deque[tuple[int, str]] = collections.deque(maxlen=_LINES)  # the last (number, line)

    @property
    def failed(self) -> bool:
        """Whether it ended with another status than 0, or by a signal."""
        return self.ended is not None and self.ended.get("status") != 0

    def said(self, number: int, text: str) -> None:
        """Records a line of its output. number: the line's number among the lines of all trainers."""
        self.lines.append((number, text[:_LINE_MAX]))


def log_of(process: Process) -> str:
    """Returns the path of a process' log, as the end of a text."""
    return _log(process.ended or {"log": process.log})


def server_name(options: LaunchOptions, graph: Event) -> str:
    """Returns the name of the servers that `stat` shows."""
    return options.server_name or re.sub(r"[^A-Za-z0-9_-]", "-", str(graph["name"]))[:60]


def server_words(options: LaunchOptions, host: Host, part_config: str, key_file: str) -> list[str]:
    """Returns the command of a server; "@" stands for the agent's own program."""
    words = ["@", "serve", "--part-config", part_config, "--part", str(host.index), "--listen", host.listen]
    words += ["--key-file", key_file, "--drain", "1000"]
    threads = options.num_servers or host.servers
    if threads:
        words += ["--threads", str(threads * options.num_server_threads)]
    if options.server_name:
        words += ["--name", options.server_name]
    if options.transport:
        words += ["--transport", options.transport]
    if options.spin:
        words += ["--spin", str(options.spin)]
    metrics = environment.metrics_of_server(options, host)
    if metrics:
        words += ["--metrics", metrics]
    if options.lists != "own":
        words += ["--lists", options.lists]
    if options.on_disk:
        words += ["--on-disk", ",".join(options.on_disk)]
    if options.disk_cache is not None:
        words += ["--disk-cache", options.disk_cache]
    for name in options.mutable:
        words += ["--mutable", name]
    return words


def rank_of(options: LaunchOptions, hosts: list[Host], rank: int, local: int, port: int) -> dict[str, str]:
    """Returns the environment of a trainer that torchrun does not start."""
    return environment.of_rank(rank, local, options.num_trainers, len(hosts), hosts[0].address, port)


def trainer_commands(options: LaunchOptions, hosts: list[Host], host: Host, port: int) -> list[tuple]:
    """Returns (local rank, command) for each process to start on a host. With torchrun this is one process, whose rank
    is None."""
    text = command.with_dgl(options.command, options.dgl)
    several = not options.no_torchrun and command.runs_under_torchrun(options.command)
    if several:
        text = command.torchrun(text, options.num_trainers, len(hosts), host.index, hosts[0].address, port)
    if "PATH" not in environment.extra(options):
        text = command.in_environment(text, own_folder())
    return [(None, text)] if several else [(local, text) for local in range(options.num_trainers)]


def read_key(path: str) -> bytes:
    """Returns the bytes of the user's key file."""
    try:
        if os.path.exists(os.path.expanduser(path)) and not os.path.isfile(os.path.expanduser(path)):
            raise UsageError(f"--key_file {path}: it is not a file")
        with open(os.path.expanduser(path), "rb") as file:
            key = file.read(1025)
    except OSError as error:
        raise UsageError(f"--key_file {path}: {error.strerror}") from None
    if not 16 <= len(key) <= 1024:
        raise UsageError(f"--key_file {path}: a key must have 16 to 1024 bytes")
    return key
