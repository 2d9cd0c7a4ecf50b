"""The launcher's connection to a `graphwire agent` (tools/agent): a process, usually ssh, that exchanges lines of JSON.

At most one request waits for its answer. All other events of an agent go to the job's callback. A wait ends when the
answer arrives, when the connection ends, or after a timeout.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
from typing import Any, Callable

from . import clock
from .errors import DeployError
from .ip_config import Host
from .reach import Reach

Event = dict[str, Any]
_STDERR_LINES = 20
# To end its processes, an agent waits two seconds, then kills for two seconds; then its guardian kills for two more.
_FAREWELL_S = 7.0
_LAST_EVENTS = ("bye", "end", "lost")  # the last events of an agent and its guardian; they list the remaining processes


class Agent:
    """An agent on a host, and the connection to it."""

    def __init__(self, host: Host, reach: Reach, on_event: Callable[[Agent, Event], None], keep: bool = False) -> None:
        self.host = host
        self.reach = reach
        self.keep = keep
        self.hello: Event = {}
        self.setup: Event = {}
        self.heard = clock.now()
        self.closed = asyncio.Event()
        self.leaving = False
        self.left: list[str] | None = None  # processes that could not be ended; None: not reported yet
        self._on_event = on_event
        self._process: Any = None  # see Reach.connect
        self._said: collections.deque[str] = collections.deque(maxlen=_STDERR_LINES)
        self._expected: str | None = None
        self._asked = ""
        self._answer: asyncio.Future | None = None
        self._reading: asyncio.Task | None = None
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Connects and waits for the agent's hello; raises DeployError."""
        answer = self._expect("hello", "connect")
        self._process = await self.reach.connect(self.host, self.keep)
        self._reading = asyncio.ensure_future(self._read())
        self.hello = await self._wait(answer, self.reach.timeout_s)

    async def ask(self, op: str, expected: str, timeout_s: float = 30.0, **fields: Any) -> Event:
        """Sends a request and waits for the event that answers it."""
        async with self._turn:
            answer = self._expect(expected, op)
            self.send(op, **fields)
            return await self._wait(answer, timeout_s)

    def send(self, op: str, **fields: Any) -> None:
        """Sends a request. If the request does not arrive, the connection ends, and the job gets the event of its
        end."""
        stdin = self._process.stdin if self._process else None
        if stdin and not stdin.is_closing() and not self.closed.is_set():
            stdin.write(json.dumps({"op": op, **fields}).encode() + b"\n")

    async def close(self) -> None:
        """Asks the agent to end all processes that it has started, and waits for the end. Abandons an agent that does
        not answer."""
        self.leaving = True
        self.send("bye")
        await self._closed_within(_FAREWELL_S)
        self.abandon()
        await self._closed_within(1.0)

    def abandon(self) -> None:
        """Ends the connection. The agent notices the end of the connection or, without network, the launcher's
        silence; then it ends its processes."""
        self.leaving = True
        if self._process and self._process.returncode is None:
            try:
                self._process.kill()
            except ProcessLookupError:
                pass

    async def _closed_within(self, seconds: float) -> None:
        if not self._process:
            return
        try:
            await asyncio.wait_for(self.closed.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    def _expect(self, event: str, op: str) -> asyncio.Future:
        self._expected, self._asked = event, op
        self._answer = asyncio.get_running_loop().create_future()
        return self._answer

    async def _wait(self, answer: asyncio.Future, timeout_s: float) -> Event:
        try:
            return await asyncio.wait_for(answer, timeout_s)
        except asyncio.TimeoutError:
            said = f" ({' | '.join(self._said)})" if self._said else ""
            raise DeployError(f"{self.host}: no answer to {self._asked} within {timeout_s:g} s{said}") from None
        finally:
            self._answer = self._expected = None

    async def _read(self) -> None:
        assert self._process and self._process.stdout
        errors = asyncio.ensure_future(self._read_errors())
        try:
            while True:
                line = await self._process.stdout.readline()
                if not line:
                    break
                self._take(line)
        except (ValueError, ConnectionError):
            self._said.append("its lines are too long for an agent")
        status = await self._reap()
        await asyncio.wait([errors], timeout=0.5)
        errors.cancel()
        await self._close_stdin()
        self.closed.set()
        failure = self.reach.failure(self.host, list(self._said), status)
        if self._answer and not self._answer.done():
            self._answer.set_exception(failure)
        else:
            self._on_event(self, {"event": "closed", "text": str(failure)})

    async def _reap(self) -> int | None:
        assert self._process
        try:
            return await asyncio.wait_for(self._process.wait(), 2.0)
        except asyncio.TimeoutError:
            self.abandon()
            return None

    async def _close_stdin(self) -> None:
        """Closes stdin. Errors of earlier writes are ignored: the connection has ended anyway."""
        assert self._process and self._process.stdin
        self._process.stdin.close()
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self._process.stdin.wait_closed(), 0.5)

    async def _read_errors(self) -> None:
        assert self._process and self._process.stderr
        try:
            while True:
                line = await self._process.stderr.readline()
                if not line:
                    return
                self._said.append(line.decode("utf-8", "replace").strip()[:300])
        except (ValueError, ConnectionError):
            return

    def _take(self, line: bytes) -> None:
        """Handles a line: an answer, or an event for the job. A line that is not JSON (a shell's banner) is kept for
        error texts only."""
        try:
            event = json.loads(line)
        except ValueError:
            self._said.append(line.decode("utf-8", "replace").strip()[:300])
            return
        if not isinstance(event, dict):
            return
        self.heard = clock.now()
        kind = event.get("event")
        if kind in _LAST_EVENTS and isinstance(event.get("left"), list):
            self.left = [f"process {one.get('pid')} ({one.get('command')})" for one in event["left"]]
        waiting = self._answer is not None and not self._answer.done()
        if waiting and kind == self._expected:
            self._answer.set_result(event)  # type: ignore[union-attr]
        elif waiting and kind == "failed" and event.get("op") == self._asked:
            self._answer.set_exception(DeployError(f"{self.host}: {event.get('text')}"))  # type: ignore[union-attr]
        elif kind != "ping":
            self._on_event(self, event)
