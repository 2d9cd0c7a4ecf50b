"""A job: agents on all hosts -> servers: started, or kept ones -> trainers -> the end of all processes.

The first task that notices a failure calls fail(), which stores the reason and wakes all waiting tasks. Then the job
ends all its processes on every host, whatever the job's state is. If the launcher is silent, a host's agent ends the
host's processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
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

_BEATS = 5  # pings in the time of --silence
_END_JOB = "end-job"
_END_JOB_S = 10  # most seconds for end-job
_PORT_TRIES = 4
_SHOWN = 8  # last lines to show of a trainer that wrote too many
_SETTLE_S = 3.0  # time to find the rank whose end made others fail: torchrun notices an end with a delay


def new_job() -> str:
    """Makes a unique name for a job from the time and a random number. Sorted names are in the order in which the jobs
    began, because the time is UTC in microseconds."""
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
        self.port = 0  # the rendezvous port of the trainers
        self._number = 0  # the number of the last line, among the lines of all trainers
        self._settling: asyncio.TimerHandle | None = None
        self._released = False  # the servers that this job started will stay
        self._tensors_ended = asyncio.Event()
        self._reach = options.reach()
        self._limit = asyncio.Semaphore(options.fanout)

    # --- Events. ---

    def say(self, text: str) -> None:
        """Prints a line with --verbose."""
        if self.options.verbose:
            print(f"launch: {text}", file=sys.stderr, flush=True)

    def fail(self, text: str) -> None:
        """Marks the job as failed; only the first reason counts."""
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
        elif kind == "replaced" and name in self.servers:
            server = self.servers[name]  # what starts it again is what runs now
            server.request = {**server.request, "argv": event.get("argv")}
            self.say(f"{agent.host}: {server.title} was replaced: pid {event.get('pid')}")
        elif kind == "succeeded" and self.kept:
            self.kept.pids[agent.host.index] = int(event["pid"])
        elif kind == "gone":
            self._tensors_ended.set()  # this server's tensors are gone; the other servers end theirs later
            self.fail(f"{agent.host}: the kept server of part {agent.host.index} has ended")
        elif kind in ("lost", "ending", "failed"):
            self.fail(f"{agent.host}: {event.get('text')}")
        elif kind == "closed" and not agent.leaving:
            self.fail(str(event.get("text")))

    def _print(self, name: str, dropped: int, lines: list[str]) -> None:
        """Prints a trainer's lines. dropped: lines that the agent could not send in time; only the log has them."""
        mark = f"[{name}] " if len(self.hosts) * self.options.num_trainers > 1 else ""
        if dropped:
            self._out(f"{mark}... {dropped} more lines are in its log")
        for line in lines:
            self._out(mark + line)

    def _said(self, process: Process, lines: list[str]) -> None:
        for line in lines:
            self._number += 1
            process.said(self._number, line)

    def _print_last(self, process: Process, event: Event) -> None:
        """Prints a trainer's last lines if the agent could not send them in time."""
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
        """Fails the job if a trainer has failed. A failure that follows from another rank's end is reported only after
        _SETTLE_S, or when all trainers have ended, if no other rank turns out to be the cause."""
        self._settling = None if at_last else self._settling
        if self._stopping or self._lost_the_port() or not any(one.failed for one in self.trainers.values()):
            return
        failure = failures.first(self.trainers.values(), self.options.num_trainers)
        if at_last or not failure.cause.follows or self._all_ended():
            self.fail(failure.text)
        elif not self._settling:
            self._settling = asyncio.get_running_loop().call_later(_SETTLE_S, self._look_at_trainers, True)

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
        """Waits for events until done() is true. Raises DeployError when the job fails or the time is over."""
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
        """Sends pings to all agents, and fails the job if an agent is silent for --silence."""
        while True:
            for agent in self.agents:
                agent.send("ping")
                silent = clock.now() - agent.heard
                gone = agent.hello and not agent.closed.is_set() and silent > self.options.silence
                if gone and not self._stopping:  # an agent that ends its processes sends nothing meanwhile
                    self.fail(f"{agent.host}: silent for {silent:.0f} s: the host or the network to it is lost")
                    agent.abandon()
            await asyncio.sleep(self.options.silence / _BEATS)
            await asyncio.sleep(0.05)  # after a suspension, the events that arrived meanwhile are read first

    async def _watch_kept(self) -> None:
        """Asks the agents to report the end of a kept server ("gone"), which fails the job."""
        kept = self.kept
        if kept:
            await self._all(
                [
                    agent.ask("watch", "watching", port=agent.host.port, pid=kept.pids[agent.host.index])
                    for agent in self.agents
                ]
            )

    async def _all(self, of: Sequence[Awaitable[Any]]) -> list[Any]:
        """Runs all at once, as far as --fanout allows, and returns the results. Raises DeployError as soon as one of
        them, or the job, fails."""

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
        """Connects an agent on every host, and checks that all agents find the same graph."""
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
        """Refuses a host whose address is loopback on the host itself: no other host would reach its server."""
        if len(self.hosts) == 1:
            return
        found = await self._all([agent.ask("own", "own", address=agent.host.address) for agent in self.agents])
        if len({own["network"] for own in found}) == 1:
            return  # all hosts are one machine
        for host, own in zip(self.hosts, found):
            if not own["loopback"]:
                continue
            if own["address"] == host.address:
                raise DeployError(
                    f"{host}: {host.address} is loopback, where no other host reaches it: write an address or name "
                    f"that all hosts know into {self.options.ip_config or 'NodeAddr of Slurm'}"
                )
            raise DeployError(
                f"{host}: its own name {host.address} means {own['address']} there, where no other host reaches it: "
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
            sitecustomize=command.AT_START,
        )

    async def _ask_graph(self, agent: Agent) -> Event:
        await self._set_up(agent)
        return await agent.ask("graph", "graph", part_config=self._path(agent, self.options.part_config))

    def _path(self, agent: Agent, path: str) -> str:
        """Returns an absolute path on the host, which stays valid if a trainer changes its folder."""
        if path.startswith("/"):
            return path
        if path.startswith("~"):
            raise UsageError(f"{path}: give the path relative to the workspace")
        return f"{agent.setup['workspace']}/{path}"

    async def find_servers(self) -> None:
        """Finds kept servers of this graph; if they exist, the job uses them. Then gives each agent the job's key."""
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
        """Starts a server of part i on host i, and waits until all are ready."""
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
            "argv": server_words(options, host, self._path(agent, options.part_config), agent.setup["key_file"]),
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

    async def run_trainers(self) -> None:
        """Starts all trainers, and waits until all have ended with status 0."""
        first = None
        for attempt in range(_PORT_TRIES):
            port = self.port = await self._rendezvous_port()
            self.trainers = {}
            for agent in self.agents:
                for process in self._trainers(agent, port, attempt):
                    self._start(agent, self.trainers, process)
            await self._until(lambda: self._lost_the_port() is not None or self._all_ended(), None, "")
            lost = self._lost_the_port()
            if not lost:
                return
            first = first or lost
            self.say(f"another program has taken the rendezvous port {port}; trying another port")
            self._kill_trainers()
        raise DeployError(f"other programs have taken each of {_PORT_TRIES} rendezvous ports; at first: {first}")

    def _all_ended(self) -> bool:
        return all(process.ended for process in self.trainers.values())

    def _lost_the_port(self) -> str | None:
        """Returns the text of a trainer that ended because another program had taken the rendezvous port, or None."""
        return failures.lost_port(self.trainers.values(), self.port, self.options.num_trainers)

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
        """Returns the variables that the trainers of a host share."""
        paths = {
            "PART_CONFIG": self._path(agent, self.options.part_config),
            "IP_CONFIG": str(agent.setup["ip_config"]),
            "AT_START": os.path.dirname(agent.setup["ip_config"]),
            "KEY_FILE": agent.setup["key_file"],
            "NAME": self.kept.name if self.kept else server_name(self.options, self.graph),
            "JOB": self.name,
            "METRICS": environment.metrics_of_trainers(self.options, len(self.hosts), agent.host),
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
        """Ends the job's tensors on servers that stay. A server that cannot be reached ends its tensors later by
        itself."""
        connected = [agent for agent in self.agents if agent.hello and not agent.closed.is_set()]
        if not self.kept or not self.trainers or len(connected) < len(self.hosts) or self._tensors_ended.is_set():
            return
        self._kill_trainers()
        agent = connected[0]
        argv = ["@", "end-job", "--timeout", str(_END_JOB_S * 1000), self.name]
        agent.send("start", name=_END_JOB, argv=argv, env=self._environment(agent))
        try:
            await asyncio.wait_for(self._tensors_ended.wait(), _END_JOB_S)
        except asyncio.TimeoutError:
            self.say("the end of the job could not be sent to the servers; they keep its tensors a while longer")

    async def end(self) -> None:
        """Ends all processes of the job on every host."""
        self._stopping = True
        await self._end_tensors()
        await asyncio.gather(*[agent.close() for agent in self.agents])

    async def _end_whole(self) -> None:
        """Runs end(); a signal does not interrupt it."""
        ending = asyncio.ensure_future(self.end())
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        ending.result()

    def _left(self, reason: str) -> list[str]:
        """Returns a text for each host where processes may still run: the agent could not end them, or did not
        report."""
        texts = []
        for agent in self.agents:
            if agent.left:
                texts.append(f"{agent.host}: could not be ended: {', '.join(agent.left)}")
            elif agent.left is None and agent.setup and not reason.startswith(f"{agent.host}:"):
                texts.append(
                    f"{agent.host}: sent no report that all processes have ended; its agent ends them within "
                    f"{self.options.silence:g} s"
                )
        return texts

    async def run(self) -> None:
        """Runs the job. A signal ends the job (Interrupted); a signal that comes during the end has no effect."""
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
            kept = ", except the servers that stay" if self._released else ""
            raise Interrupted("interrupted; " + ("; ".join(left) or f"all processes of the job have ended{kept}"))
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
