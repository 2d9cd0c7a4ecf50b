"""Reaches hosts by ClusterShell, if it is installed. One loop serves thousands of ssh processes; asyncio needs a thread
for each process.

ClusterShell's loop runs in a thread until the process ends:

    connect ─▶ (port) ─▶ a worker of the loop: ssh ─▶ its lines ─▶ (call_soon) ─▶ the stream
    writing, closing and aborting take the same path as connect

A Channel has the interface of an asyncio process, so Agent works with both; errors of ssh are reported in the same way.
Gateways (topology.conf) are not used: a write through a gateway goes to all hosts behind it, but each agent needs its
own lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import importlib.util
import logging
import shlex
import signal
import threading
from collections.abc import Callable
from typing import Any

from .errors import DeployError, UsageError
from .ip_config import Host
from .reach import LINE_MAX, Reach

_HOSTS_MAX = 1 << 16  # ClusterShell's fanout: no host waits for another


def is_installed() -> bool:
    """Whether ClusterShell is installed here."""
    return importlib.util.find_spec("ClusterShell") is not None


class _Loop:
    """ClusterShell's task, and the thread that runs it."""

    def __init__(self, user: str, options: str) -> None:
        self._user, self._options = user, options
        self._begun = threading.Event()
        self._failure: Exception | None = None
        self._port: Any = None
        self.task: Any = None
        threading.Thread(target=self._run, name="ClusterShell", daemon=True).start()
        self._begun.wait()
        if self._failure:
            kind = type(self._failure).__name__
            raise DeployError(f"ClusterShell cannot be used here: {kind}: {self._failure}; --via ssh works without it")

    def _run(self) -> None:
        try:
            self._begin()
        except Exception as error:  # any error: a missing module, a configuration that cannot be read
            self._failure = error
            return
        finally:
            self._begun.set()
        self.task.resume()

    def _begin(self) -> None:
        from ClusterShell.Event import EventHandler  # type: ignore[import-not-found,unused-ignore]
        from ClusterShell.Task import task_self  # type: ignore[import-not-found,unused-ignore]

        class Calls(EventHandler):  # type: ignore[misc,unused-ignore]
            """Runs calls of other threads in this thread."""

            def ev_msg(self, _: Any, call: Callable[[], None]) -> None:
                """Called by ClusterShell."""
                call()

        logging.getLogger("ClusterShell").addHandler(logging.NullHandler())  # events report all that matters
        self.task = task_self()
        for stream in ("stdout_msgtree", "stderr_msgtree"):
            self.task.set_default(stream, False)  # ClusterShell would keep all output
        for name, value in (
            ("fanout", _HOSTS_MAX),
            ("ssh_user", self._user or None),
            ("ssh_options", self._options),
        ):
            self.task.set_info(name, value)
        self._port = self.task.port(handler=Calls())

    def call(self, what: Callable[[], None]) -> None:
        """Calls `what` in the loop's thread."""
        self._port.msg_send(what)


@functools.cache
def _loop(user: str, options: str) -> _Loop:
    return _Loop(user, options)


class _Input:
    """The host's stdin, with the methods of an asyncio.StreamWriter that Agent calls."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._closing = False

    def is_closing(self) -> bool:
        """Whether close() was called."""
        return self._closing

    def write(self, data: bytes) -> None:
        """Sends data."""
        self._channel.call(lambda worker: worker.write(data))

    def close(self) -> None:
        """Sends the end of the input."""
        if not self._closing:
            self._closing = True
            self._channel.call(lambda worker: worker.set_write_eof())

    async def wait_closed(self) -> None:
        """Returns at once."""


class Channel:
    """A script that runs on a host, with the interface of an asyncio.subprocess.Process."""

    def __init__(self, loop: _Loop, address: str, command: str) -> None:
        self.stdin = _Input(self)
        self.stdout, self.stderr = asyncio.StreamReader(LINE_MAX), asyncio.StreamReader(LINE_MAX)
        self.returncode: int | None = None
        self._here, self._there = asyncio.get_running_loop(), loop
        self._ended = asyncio.Event()
        self._worker: Any = None
        loop.call(lambda: self._start(address, command))

    async def wait(self) -> int:
        """Waits for the script's end and returns its status."""
        await self._ended.wait()
        return -1 if self.returncode is None else self.returncode

    def kill(self) -> None:
        """Aborts the worker."""
        self.call(lambda worker: worker.abort())

    def call(self, what: Callable[[Any], None]) -> None:
        """Calls `what` with the worker in ClusterShell's thread, unless the worker has ended."""

        def in_its_thread() -> None:
            if self._worker is not None:
                with contextlib.suppress(KeyError, OSError):  # the pipe has ended; ev_hup reports the end
                    what(self._worker)

        self._there.call(in_its_thread)

    # --- In ClusterShell's thread. ---

    def _start(self, address: str, command: str) -> None:
        from ClusterShell.Event import EventHandler  # type: ignore[import-not-found,unused-ignore]
        from ClusterShell.NodeSet import NodeSetException  # type: ignore[import-not-found,unused-ignore]

        channel = self

        class Events(EventHandler):  # type: ignore[misc,unused-ignore]
            """The worker's events."""

            def ev_read(self, worker: Any, _node: str, sname: str, line: bytes) -> None:
                """A line."""
                stream = channel.stderr if sname == worker.SNAME_STDERR else channel.stdout
                channel._report(stream.feed_data, line + b"\n")

            def ev_hup(self, _worker: Any, _node: str, status: int) -> None:
                """The script has ended."""
                channel._worker = None
                channel._report(channel._end, status)

            def ev_close(self, _worker: Any, _timedout: bool) -> None:
                """The worker has ended. After an abort, this is the only event: ev_hup does not come."""
                if channel._worker is not None:
                    channel._worker = None
                    channel._report(channel._end, -signal.SIGKILL)

        try:
            self._worker = self._there.task.shell(command, nodes=address, handler=Events(), stderr=True, tree=False)
        except (NodeSetException, OSError) as error:
            self._report(self.stderr.feed_data, f"{error}\n".encode())
            self._report(self._end, 255)

    def _report(self, what: Callable[..., Any], *arguments: Any) -> None:
        try:
            self._here.call_soon_threadsafe(what, *arguments)
        except RuntimeError:
            pass  # the launcher's loop has ended; the event has no receiver

    # --- In the launcher's thread. ---

    def _end(self, status: int) -> None:
        self.returncode = status
        self.stdout.feed_eof()
        self.stderr.feed_eof()
        self._ended.set()


@dataclasses.dataclass(frozen=True)
class ClusterShell(Reach):
    """Over ssh, by ClusterShell."""

    async def connect(self, host: Host, keep: bool = False) -> Any:
        """Runs an agent on a host."""
        loop = _loop(self.user, shlex.join(self.ssh()[1:]))
        return Channel(loop, host.address, self.shell(host, self.agent_script(keep))[-1])


def choose(via: str, many: bool) -> type[Reach]:
    """Chooses how to reach hosts. via: the option --via; many: whether there are more hosts than --fanout."""
    if via == "clustershell" and not is_installed():
        raise UsageError(
            "--via clustershell: ClusterShell is not installed here (python3-clustershell); --via ssh works without it"
        )
    return ClusterShell if via == "clustershell" or (via == "auto" and many and is_installed()) else Reach
