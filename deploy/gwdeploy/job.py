"""A job: agents on all hosts -> servers, or those that were kept -> trainers -> all of it ended.

The first task to notice a failure calls fail(), which keeps that reason and wakes those who wait; then everything
of the job is ended on every host, in whatever state it is. A host that is silent ends its part by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import sys
import time
from collections.abc import Awaitable, Sequence
from typing import Any, Callable

from . import clock, command, environment, failures
from .agent import Agent, Event
from .errors import DeployError, Interrupted, UsageError
from .ip_config import text_of
from .kept import Kept, find_kept
from .options import LaunchOptions
from .process import Process, how_it_ended, rank_of, read_key, server_name, server_words, tail_of, trainer_commands

_BEATS = 5  # in the time of silence
_PORT_LOST = re.compile(r"EADDRINUSE|[Aa]ddress already in use")
_END_JOB = "end-job"
_END_JOB_S = 10  # that it may take
_PORT_TRIES = 4
_SHOWN = 8  # last lines of a trainer that wrote too many
_SETTLE_S = 3.0  # for the end of the rank that others have lost: torchrun takes a moment to notice


def new_job() -> str:
    """A name that no other job has: the time, and chance. Names sort as their jobs began, also within a second and in
    the hour that comes twice: UTC, to the microsecond."""
    now, rest = divmod(time.time_ns(), 10**9)
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{rest // 1000:06d}-{secrets.token_hex(3)}"


class Job:
    """One launch."""

    def __init__(self, options: LaunchOptions, out: Callable[[str], None] = print) -> None:
        self.options = options
        self.hosts = options.hosts()
        self.name = new_job()
        self.agents: list[Agent] = []
        self.key = read_key(options.key_file) if options.key_file else secrets.token_bytes(32)
        self.graph: Event = {}
        self.kept: Kept | None = None
        self.servers: dict[str, Process] = {}
        self.trainers: dict[str, Process] = {}
        self.failure: str | None = None
        self._out = out
        self._changed = asyncio.Event()
        self._stopping = False
        self._number = 0  # of the last line of any trainer
        self._settling: asyncio.TimerHandle | None = None
        self._released = False  # servers of ours stay
        self._tensors_ended = asyncio.Event()
        self._reach = options.reach()
        self._limit = asyncio.Semaphore(options.fanout)

    # --- What happens. ---

    def say(self, text: str) -> None:
        """A line for those who asked for more (--verbose)."""
        if self.options.verbose:
            print(f"launch: {text}", file=sys.stderr, flush=True)

    def fail(self, text: str) -> None:
        """The job has failed; the first reason counts."""
        if not self._stopping and self.failure is None:
            self.failure = text
            self._changed.set()

    def _on_event(self, agent: Agent, event: Event) -> None:
        kind = event.get("event")
        name = str(event.get("name"))
        if kind == "output" and name in self.trainers:
            self._said(self.trainers[name], [str(event.get("text"))])
            self._print(name, int(event.get("dropped") or 0), [str(event.get("text"))])
        elif kind == "started" and name in self.trainers:
            self.trainers[name].log = str(event.get("log"))
        elif kind == "ready":
            process = self.servers.get(name)
            if process:
                process.ready.set()
                self._changed.set()
        elif kind == "ended" and name == _END_JOB:
            self._tensors_ended.set()
        elif kind == "ended":
            self._on_end(agent, event)
        elif kind == "gone":
            self._tensors_ended.set()  # its own went with it; the others end theirs by themselves, later
            self.fail(f"{agent.host}: the kept server of part {agent.host.index} has ended")
        elif kind in ("lost", "ending", "failed"):
            self.fail(f"{agent.host}: {event.get('text')}")
        elif kind == "closed" and not agent.leaving:
            self.fail(str(event.get("text")))

    def _print(self, name: str, dropped: int, lines: list[str]) -> None:
        """A trainer's lines; those that it wrote faster than they could be told are in its log alone."""
        mark = f"[{name}] " if len(self.hosts) * self.options.num_trainers > 1 else ""
        if dropped:
            self._out(f"{mark}... {dropped} lines more are in its log")
        for line in lines:
            self._out(mark + line)

    def _said(self, process: Process, lines: list[str]) -> None:
        for line in lines:
            self._number += 1
            process.said(self._number, line)

    def _print_last(self, process: Process, event: Event) -> None:
        """Its last lines, where it wrote them faster than they could be told."""
        dropped, tail = int(event.get("dropped") or 0), [str(line) for line in event.get("tail", [])]
        self._said(process, tail[max(0, len(tail) - dropped) :] if dropped else [])
        shown = tail[max(0, len(tail) - min(dropped, _SHOWN)) :] if dropped else []
        if dropped:
            self._print(process.name, dropped - len(shown), shown)

    def _on_end(self, agent: Agent, event: Event) -> None:
        name = str(event.get("name"))
        process = self.trainers.get(name) or self.servers.get(name)
        if not process or self._stopping:
            return
        process.ended = event
        self._number += 1
        process.end_number = self._number
        self._changed.set()
        if name in self.servers:
            self._on_server_end(agent, process, event)
        else:
            self._print_last(process, event)
            self._look_at_trainers()

    def _look_at_trainers(self, at_last: bool = False) -> None:
        """Whether one has failed. One that lost its peers is told of if none of those turns out to be the cause."""
        self._settling = None if at_last else self._settling
        if self._stopping or self._lost_the_port() or not any(one.failed for one in self.trainers.values()):
            return
        failure = failures.first(self.trainers.values(), self.options.num_trainers)
        if at_last or not failure.cause.follows or self._all_ended():
            self.fail(failure.text)
        elif not self._settling:
            self._settling = asyncio.get_running_loop().call_later(_SETTLE_S, self._look_at_trainers, True)

    def _lost_port(self, event: Event) -> bool:
        """Whether a trainer ended because another job took the rendezvous port in between."""
        return command.runs_under_torchrun(self.options.command) and any(
            _PORT_LOST.search(str(line)) for line in event.get("tail", [])[-_SHOWN:]
        )

    def _on_server_end(self, agent: Agent, process: Process, event: Event) -> None:
        text = f"{process.host}: {process.title} ended with {how_it_ended(event)}{tail_of(event)}"
        if not process.ready.is_set() or process.restarts >= self.options.restarts:
            self.fail(text)
            return
        process.restarts += 1
        process.ended = None
        print(f"launch: {text}; started again ({process.restarts} of {self.options.restarts})", file=sys.stderr)
        agent.send("start", **process.request)

    # --- Waiting. ---

    def _check(self) -> None:
        if self.failure is not None:
            raise DeployError(self.failure)

    async def _until(self, done: Callable[[], bool], timeout_s: float | None, what: str) -> None:
        """Waits for events until it is done, the job has failed, or the time is over."""
        end = None if timeout_s is None else clock.now() + timeout_s
        while True:
            self._changed.clear()
            self._check()
            if done():
                return
            try:
                await asyncio.wait_for(self._changed.wait(), None if end is None else end - clock.now())
            except asyncio.TimeoutError:
                raise DeployError(f"{what} within {timeout_s:g} s") from None

    async def _beat(self) -> None:
        """Sends a sign of life to each agent, and looks for agents that have sent none."""
        while True:
            for agent in self.agents:
                agent.send("ping")
                silent = clock.now() - agent.heard
                gone = agent.hello and not agent.closed.is_set() and silent > self.options.silence
                if gone and not self._stopping:  # one that ends says nothing meanwhile
                    self.fail(f"{agent.host}: silent for {silent:.0f} s: the host or the way to it is lost")
                    agent.abandon()
            await asyncio.sleep(self.options.silence / _BEATS)
            await asyncio.sleep(0.05)  # lines that came while this process did not run are read first

    async def _watch_kept(self) -> None:
        """Kept servers are not ours, but their end is the job's: agents tell of it ("gone")."""
        kept = self.kept
        if kept:
            await self._all(
                [
                    agent.ask("watch", "watching", port=agent.host.port, pid=kept.pids[agent.host.index])
                    for agent in self.agents
                ]
            )

    async def _all(self, of: Sequence[Awaitable[Any]]) -> list[Any]:
        """All at once, as far as --fanout allows; the first failure, of any of them, ends the waiting."""

        async def limited(one: Awaitable[Any]) -> Any:
            async with self._limit:
                return await one

        tasks = [asyncio.ensure_future(limited(one)) for one in of]
        lost = asyncio.ensure_future(self._until(lambda: False, None, ""))
        everything: asyncio.Future = asyncio.gather(*tasks)
        waiting: list[asyncio.Future] = [everything, lost]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not everything.done():
                await lost
            return list(everything.result())
        finally:
            for task in [*tasks, lost, everything]:
                task.cancel()
            await asyncio.gather(*tasks, lost, everything, return_exceptions=True)

    # --- The steps. ---

    async def connect(self) -> None:
        """An agent on every host, which agrees with all others on the graph."""
        self.agents = [Agent(host, self._reach, self._on_event) for host in self.hosts]
        await self._all([self._open(agent) for agent in self.agents])
        await self._check_addresses()
        graphs = await self._all([self._ask_graph(agent) for agent in self.agents])
        self.graph = graphs[0]
        for agent, graph in zip(self.agents, graphs):
            if graph["id"] != self.graph["id"]:
                raise DeployError(
                    f"{agent.host} has another graph ({graph['name']}, id {graph['id']}) than {self.hosts[0]} "
                    f"({self.graph['name']}, id {self.graph['id']}): copy it again"
                )
        if self.graph["parts"] != len(self.hosts):
            whose = self.options.ip_config or "the allocation"
            raise UsageError(
                f"{self.options.part_config} has {self.graph['parts']} parts, and {whose} "
                f"{len(self.hosts)} hosts: part i goes to line i"
            )

    async def _open(self, agent: Agent) -> None:
        await agent.open()
        mine = self.agents[0].hello
        if mine and agent.hello["version"] != mine["version"]:
            raise DeployError(
                f"{agent.host} has graphwire {agent.hello['version']}, {self.hosts[0]} {mine['version']}: "
                "install the same"
            )

    async def _check_addresses(self) -> None:
        """No host's own address is loopback there: servers would listen, and no other host reach them."""
        if len(self.hosts) == 1:
            return
        found = await self._all([agent.ask("own", "own", address=agent.host.address) for agent in self.agents])
        if len({own["network"] for own in found}) == 1:
            return  # all hosts are one
        for host, own in zip(self.hosts, found):
            if not own["loopback"]:
                continue
            if own["address"] == host.address:
                raise DeployError(
                    f"{host}: {host.address} is loopback, at which no other host reaches it: write an address or name "
                    f"that all hosts know into {self.options.ip_config or 'NodeAddr of Slurm'}"
                )
            raise DeployError(
                f"{host}: its own name {host.address} means {own['address']} there, at which no other host reaches it: "
                f"correct the line of {host.address} in its /etc/hosts, or write its address in the name's place"
            )

    async def _set_up(self, agent: Agent) -> None:
        agent.setup = await agent.ask(
            "setup",
            "setup",
            job=self.name,
            workspace=self.options.workspace,
            silence_ms=round(self.options.silence * 1000),
            log_bytes=self.options.log_bytes,
            logs_kept=self.options.keep_logs,
            ip_config=text_of(self.hosts),
        )

    async def _ask_graph(self, agent: Agent) -> Event:
        await self._set_up(agent)
        return await agent.ask("graph", "graph", part_config=self._path(agent, self.options.part_config))

    def _path(self, agent: Agent, path: str) -> str:
        """A path on the host: absolute, so that a trainer may change its folder."""
        if path.startswith("/"):
            return path
        if path.startswith("~"):
            raise UsageError(f"{path}: give it as seen from the workspace")
        return f"{agent.setup['workspace']}/{path}"

    async def find_servers(self) -> None:
        """Kept servers of this graph, if there are any; then they are used."""
        found = await self._all([agent.ask("servers", "servers") for agent in self.agents])
        self.kept = find_kept(self.options, self.hosts, self.graph, self.agents[0].hello["version"], found)
        if self.kept:
            if self.options.key_file and self.kept.key != self.key:
                raise DeployError("the kept servers have another key than --key_file")
            self.key = self.kept.key
            self.say(f"uses the servers that {self.kept.name} kept")
        await self._all([self._give_key(agent) for agent in self.agents])

    async def _give_key(self, agent: Agent) -> None:
        agent.setup.update(key_file=(await agent.ask("key", "key", key=self.key.hex()))["key_file"])

    async def start_servers(self) -> None:
        """A server of part i on host i; all are ready."""
        starters = self.agents
        if self.options.keep_alive:
            starters = [Agent(host, self._reach, self._on_event, keep=True) for host in self.hosts]
            self.agents = self.agents + starters
            await self._all([self._open(agent) for agent in starters])
            await self._all([self._set_up(agent) for agent in starters])
            await self._all([self._give_key(agent) for agent in starters])
        for agent in starters:
            self._start(agent, self.servers, self._server(agent))
        servers = list(self.servers.values())
        await self._until(
            lambda: all(server.ready.is_set() for server in servers),
            self.options.load_timeout,
            "not all servers were ready",
        )
        if self.options.keep_alive:
            await self._release(starters)

    async def _release(self, starters: list[Agent]) -> None:
        found = await self._all([agent.ask("servers", "servers") for agent in starters])
        for agent in starters:
            agent.leaving = True
        await self._all([agent.ask("release", "released") for agent in starters])
        self._released = True
        self.agents = [agent for agent in self.agents if agent not in starters]
        self.servers = {}
        self.kept = find_kept(self.options, self.hosts, self.graph, self.agents[0].hello["version"], found)

    def _start(self, agent: Agent, table: dict[str, Process], process: Process) -> None:
        table[process.name] = process
        agent.send("start", **process.request)

    def _server(self, agent: Agent) -> Process:
        options, host = self.options, agent.host
        name = f"server-{host.label}-{host.index}"
        request = {
            "name": name,
            "argv": server_words(options, host, self._path(agent, options.part_config), self._key_file(agent)),
            "env": environment.of_server(options, len(self.hosts), host.index),
            "ready": "serving part ",
            "server": {
                "port": host.port,
                "address": host.listen,
                "name": server_name(options, self.graph),
                "named": options.server_name is not None,
                "graph": self.graph["name"],
                "graph_id": self.graph["id"],
                "parts": self.graph["parts"],
                "part": host.index,
                "version": agent.hello["version"],
            },
        }
        return Process(host, name, f"the server of part {host.index}", request)

    def _key_file(self, agent: Agent) -> str:
        return str(agent.setup["key_file"])

    async def run_trainers(self) -> None:
        """All trainers, until all have ended well."""
        for attempt in range(_PORT_TRIES):
            port = await self._rendezvous_port()
            self.trainers = {}
            for agent in self.agents:
                for process in self._trainers(agent, port, attempt):
                    self._start(agent, self.trainers, process)
            await self._until(lambda: self._lost_the_port() or self._all_ended(), None, "")
            if not self._lost_the_port():
                return
            self.say(f"the rendezvous port {port} was taken meanwhile; another one")
            self._kill_trainers()
        raise DeployError(f"{self.hosts[0]}: each of {_PORT_TRIES} rendezvous ports was taken by somebody else")

    def _all_ended(self) -> bool:
        return all(process.ended for process in self.trainers.values())

    def _lost_the_port(self) -> bool:
        ends = [process.ended for process in self.trainers.values() if process.ended]
        return any(end.get("status") != 0 and self._lost_port(end) for end in ends)

    def _kill_trainers(self) -> None:
        for agent in self.agents:
            for process in self.trainers.values():
                if process.host is agent.host and not process.ended:
                    agent.send("signal", name=process.name, signal=9)
        self.trainers = {}

    async def _rendezvous_port(self) -> int:
        taken = {host.port for host in self.hosts}
        for _ in range(16):
            port = int((await self.agents[0].ask("port", "port"))["port"])
            if port not in taken:
                return port
        raise DeployError(f"{self.hosts[0]}: no free port for the rendezvous")

    def _environment(self, agent: Agent) -> dict[str, str]:
        """What the trainers of a host share."""
        paths = {
            "PART_CONFIG": self._path(agent, self.options.part_config),
            "IP_CONFIG": str(agent.setup["ip_config"]),
            "KEY_FILE": self._key_file(agent),
            "NAME": self.kept.name if self.kept else server_name(self.options, self.graph),
            "JOB": self.name,
        }
        return environment.of_trainers(self.options, len(self.hosts), paths, int(agent.hello["processors"]))

    def _trainers(self, agent: Agent, port: int, attempt: int) -> list[Process]:
        options, host = self.options, agent.host
        shared = self._environment(agent)
        again = f"-again{attempt}" if attempt else ""
        processes = []
        for local, text in trainer_commands(options, self.hosts, host, port):
            rank = host.index * options.num_trainers + (local or 0)
            env = dict(shared)
            if local is not None:
                env.update(rank_of(options, self.hosts, rank, local, port))
            name = f"trainer-{host.label}-{rank}{again}"
            title = f"trainer {rank}" if local is not None else f"trainers from {rank}"
            request = {"name": name, "argv": ["sh", "-c", text], "env": env}
            processes.append(Process(host, name, title, request, several=local is None))
        return processes

    async def _end_tensors(self) -> None:
        """The job's tensors, on servers that stay. Those that cannot be told end them by themselves, later."""
        there = [agent for agent in self.agents if agent.hello and not agent.closed.is_set()]
        if not self.kept or not self.trainers or len(there) < len(self.hosts) or self._tensors_ended.is_set():
            return
        self._kill_trainers()
        agent = there[0]
        argv = ["@", "end-job", "--timeout", str(_END_JOB_S * 1000), self.name]
        agent.send("start", name=_END_JOB, argv=argv, env=self._environment(agent))
        try:
            await asyncio.wait_for(self._tensors_ended.wait(), _END_JOB_S)
        except asyncio.TimeoutError:
            self.say("the servers could not be told that the job is over; they hold its tensors a while longer")

    async def end(self) -> None:
        """Everything of the job, on every host."""
        self._stopping = True
        await self._end_tensors()
        await asyncio.gather(*[agent.close() for agent in self.agents])

    async def _end_whole(self) -> None:
        """The end, which no signal cuts short."""
        ending = asyncio.ensure_future(self.end())
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        ending.result()

    def _left(self, reason: str) -> list[str]:
        """What may still run when the end is over: a text for each host that could not end all, or did not say so."""
        texts = []
        for agent in self.agents:
            if agent.left:
                texts.append(f"{agent.host}: could not be ended: {', '.join(agent.left)}")
            elif agent.left is None and agent.setup and not reason.startswith(f"{agent.host}:"):
                texts.append(
                    f"{agent.host}: did not say whether all of it was ended; its agent ends it within "
                    f"{self.options.silence:g} s"
                )
        return texts

    async def run(self) -> None:
        """The whole job. A signal ends it (Interrupted); one that comes when it is ending changes nothing any more."""
        reason: DeployError | None = None
        beat = asyncio.ensure_future(self._beat())
        try:
            await self._steps()
        except asyncio.CancelledError:
            reason = Interrupted()
        except DeployError as error:
            reason = error
        finally:
            await self._end_whole()
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
        left = self._left(str(reason))
        if isinstance(reason, Interrupted):
            kept = ", but for the servers that stay" if self._released else ""
            raise Interrupted("interrupted; " + ("; ".join(left) or f"everything of it was ended{kept}"))
        for line in left:
            print(f"launch: {line}", file=sys.stderr, flush=True)
        if reason:
            raise reason

    async def _steps(self) -> None:
        await self.connect()
        await self.find_servers()
        if not self.kept:
            await self.start_servers()
        await self._watch_kept()
        await self.run_trainers()
