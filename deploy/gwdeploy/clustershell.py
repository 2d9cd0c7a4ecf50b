"""Hosts that are reached by ClusterShell, where it is installed: one loop for thousands of ssh, where asyncio has a
thread for each of its processes.

ClusterShell's loop runs in a thread of its own, for as long as the process lives:

    connect ─▶ (port) ─▶ a worker of that loop, which is ssh ─▶ its lines ─▶ (call_soon) ─▶ the stream
    what is written, its end, and giving up go the way of connect

A channel looks like a process of asyncio's, so that agents know no difference; what ssh says is told as ever. Gateways
(topology.conf) are passed by: what is written through one goes to all hosts behind it, and agents are spoken to one by
one.
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

_HOSTS_MAX = 1 << 16  # of which none waits for another's end


def is_installed() -> bool:
    """Whether there is a ClusterShell here."""
    return importlib.util.find_spec("ClusterShell") is not None


class _Loop:
    """ClusterShell's task, and the thread that it is bound to."""

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
            raise DeployError(f"ClusterShell cannot be used here: {kind}: {self._failure}; --via ssh needs none")

    def _run(self) -> None:
        try:
            self._begin()
        except Exception as error:  # a module that is not there, a configuration that is none: whatever it raises
            self._failure = error
            return
        finally:
            self._begun.set()
        self.task.resume()

    def _begin(self) -> None:
        from ClusterShell.Event import EventHandler  # type: ignore[import-not-found,unused-ignore]
        from ClusterShell.Task import task_self  # type: ignore[import-not-found,unused-ignore]

        class Calls(EventHandler):  # type: ignore[misc,unused-ignore]
            """What other threads want done in this one."""

            def ev_msg(self, _: Any, call: Callable[[], None]) -> None:
                """Called by ClusterShell."""
                call()

        logging.getLogger("ClusterShell").addHandler(logging.NullHandler())  # what matters comes as an event
        self.task = task_self()
        for stream in ("stdout_msgtree", "stderr_msgtree"):
            self.task.set_default(stream, False)  # would keep all that was ever said
        for name, value in (
            ("fanout", _HOSTS_MAX),
            ("ssh_user", self._user or None),
            ("ssh_options", self._options),
        ):
            self.task.set_info(name, value)
        self._port = self.task.port(handler=Calls())

    def call(self, what: Callable[[], None]) -> None:
        """Has it done in the loop's thread."""
        self._port.msg_send(what)


@functools.cache
def _loop(user: str, options: str) -> _Loop:
    return _Loop(user, options)


class _Input:
    """What is written to the host: as of an asyncio.StreamWriter."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._closing = False

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._closing

    def write(self, data: bytes) -> None:
        """Sends it."""
        self._channel.call(lambda worker: worker.write(data))

    def close(self) -> None:
        """The host is told that nothing more comes."""
        if not self._closing:
            self._closing = True
            self._channel.call(lambda worker: worker.set_write_eof())

    async def wait_closed(self) -> None:
        """Nothing is waited for."""


class Channel:
    """A script that runs on a host: as of an asyncio.subprocess.Process."""

    def __init__(self, loop: _Loop, address: str, command: str) -> None:
        self.stdin = _Input(self)
        self.stdout, self.stderr = asyncio.StreamReader(LINE_MAX), asyncio.StreamReader(LINE_MAX)
        self.returncode: int | None = None
        self._here, self._there = asyncio.get_running_loop(), loop
        self._ended = asyncio.Event()
        self._worker: Any = None
        loop.call(lambda: self._start(address, command))

    async def wait(self) -> int:
        """The status that it ended with."""
        await self._ended.wait()
        return -1 if self.returncode is None else self.returncode

    def kill(self) -> None:
        """Gives it up."""
        self.call(lambda worker: worker.abort())

    def call(self, what: Callable[[Any], None]) -> None:
        """Does something with the worker, in ClusterShell's thread, unless it has ended."""

        def there() -> None:
            if self._worker is not None:
                with contextlib.suppress(KeyError, OSError):  # of a pipe that has ended: ev_hup tells so
                    what(self._worker)

        self._there.call(there)

    # --- In ClusterShell's thread. ---

    def _start(self, address: str, command: str) -> None:
        from ClusterShell.Event import EventHandler  # type: ignore[import-not-found,unused-ignore]
        from ClusterShell.NodeSet import NodeSetException  # type: ignore[import-not-found,unused-ignore]

        channel = self

        class Events(EventHandler):  # type: ignore[misc,unused-ignore]
            """What befalls the worker."""

            def ev_read(self, worker: Any, _node: str, sname: str, line: bytes) -> None:
                """A line."""
                stream = channel.stderr if sname == worker.SNAME_STDERR else channel.stdout
                channel._tell(stream.feed_data, line + b"\n")

            def ev_hup(self, _worker: Any, _node: str, status: int) -> None:
                """The script has ended."""
                channel._worker = None
                channel._tell(channel._end, status)

            def ev_close(self, _worker: Any, _timedout: bool) -> None:
                """It has ended, also where it was given up (abort), of which ev_hup says nothing."""
                if channel._worker is not None:
                    channel._worker = None
                    channel._tell(channel._end, -signal.SIGKILL)

        try:
            self._worker = self._there.task.shell(command, nodes=address, handler=Events(), stderr=True, tree=False)
        except (NodeSetException, OSError) as error:
            self._tell(self.stderr.feed_data, f"{error}\n".encode())
            self._tell(self._end, 255)

    def _tell(self, what: Callable[..., Any], *arguments: Any) -> None:
        try:
            self._here.call_soon_threadsafe(what, *arguments)
        except RuntimeError:
            pass  # the desk's loop has ended: nobody listens any more

    # --- In the desk's. ---

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
    """How hosts are reached, by --via; many: more than are reached at once."""
    if via == "clustershell" and not is_installed():
        raise UsageError(
            "--via clustershell: ClusterShell is not installed here (python3-clustershell); --via ssh needs none"
        )
    return ClusterShell if via == "clustershell" or (via == "auto" and many and is_installed()) else Reach
