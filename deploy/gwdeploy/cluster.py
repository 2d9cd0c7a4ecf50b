"""cluster.py: shows, replaces and ends servers on the hosts of an ip_config.txt, prints logs and runs the doctor.

An agent on each host, started over ssh, reports two things:

1. The servers that this user's launches started there, with the output of `graphwire stat`. A server's record contains
   its key.
2. The remains of jobs: processes whose agents were killed, so that only cluster.py ends them.

A host that cannot be reached gets a line with the error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
from collections.abc import Sequence
from typing import Any, Callable

from . import clock
from .agent import Agent, Event
from .errors import DeployError
from .ip_config import Host
from .ip_config import read as read_ip_config
from .names import CLUSTER
from .options import Parser, add_ssh, positive, reach, seconds
from .process import how_it_ended
from .reach import Reach

Record = dict[str, Any]
_STOP_S = 10.0  # a server has this time to drain and end, then it is killed
_GRACE_S = 2.0  # the remains of a job have this time to end, then they are killed
_LOOK_S = 0.05
_SILENCE_S = 30.0
_READY = "--ready_timeout"
_DOCTOR_S = 5.0  # the doctor waits this long for a server that does not answer (doctor --timeout)
_PATHS = 3  # the most transports that the doctor measures to each server
_COLUMNS = ("host", "state", "name", "part", "pid")  # then the figures that `stat` shows, and the last error


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parses cluster.py's command line."""
    words = list(words)
    end = words.index("--") if "--" in words else len(words)
    words, more = words[:end], words[end + 1 :]
    parser = Parser(prog=CLUSTER, description="Show the servers on all hosts, read their logs, replace or end them.")
    commands = parser.add_subparsers(dest="what", required=True, metavar="status|stop|upgrade|restart|logs|doctor")
    for name, text in (
        ("status", "a table of all servers"),
        ("stop", "end servers by name, or the remains of a job"),
        ("upgrade", "replace servers one by one by those of the program on the hosts, under running trainers"),
        ("restart", "replace servers one by one, with further options of `graphwire serve` after --"),
        ("logs", "the last lines of every process's log"),
        ("doctor", "check every host's setup, and its paths to all servers"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        if name == "stop":
            command.add_argument("name", help="the name of the servers, or of a job that status shows as left over")
        if name in ("upgrade", "restart"):
            command.add_argument("name", help="the name of the servers, as status shows it")
            command.add_argument(
                _READY, type=seconds, default=600.0, metavar="S", help="the time for a successor to be ready (600)"
            )
            command.add_argument(
                "--cold",
                action="store_true",
                help="end each server before its successor loads the part: clients wait, and tensors end",
            )
        if name == "restart":
            command.add_argument("--rolling", action="store_true", required=True, help="one server after the other")
        command.add_argument("--ip_config", required=True, metavar="FILE", help="the file of hosts")
        command.add_argument("--workspace", default="~", metavar="DIR", help="the folder that contains logs/ (~)")
        if name == "logs":
            command.add_argument("--job", metavar="JOB", help="the job (the last one)")
            command.add_argument("--lines", type=positive, default=10, metavar="N", help="lines of each log (10)")
        if name == "doctor":
            command.add_argument(
                "--measure", type=positive, default=800, metavar="MS", help="time for each path to each server (800)"
            )
        if name == "status":
            command.add_argument("--watch", type=seconds, metavar="S", help="repeat the table every S seconds")
        command.add_argument("--json", action="store_true", help="print one JSON object a line, for each host")
        add_ssh(command)
    options = parser.parse(words)
    if more and options.what != "restart":
        parser.error(f"{options.what} takes no options of servers: {' '.join(more)}")
    options.serve = more
    return options


def is_left(record: Record) -> bool:
    """Whether a record is the remains of a job whose agents were killed, and not a server."""
    return "processes" in record


class Cluster:
    """The hosts of a command. Each host has an agent while the command runs."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.hosts = read_ip_config(options.ip_config, options.scheduler == "local")
        self._reach = reach(options, len(self.hosts))
        self._limit = asyncio.Semaphore(options.fanout)

    async def each(self, work: Any, hosts: Sequence[Host] | None = None) -> list[Any]:
        """Runs `work` for each host, or for these. Returns the results; a DeployError takes the place of a result that
        failed."""

        async def one(host: Host) -> Any:
            async with self._limit:
                asked = Asked(host, self.options, self._reach)
                try:
                    await asked.agent.open()
                    return await work(asked)
                except DeployError as error:
                    return error
                finally:
                    await asked.agent.close()

        return list(await asyncio.gather(*[one(host) for host in hosts or self.hosts]))

    async def replace(self, done: Callable[[Host, list[Record]], None]) -> list[Any]:
        """Replaces the servers of a name, host after host, and calls `done` after each. Looks at all hosts first, and
        ends at the first failure, which takes the last place of the result. No server: an empty list."""
        found = await self.each(lambda asked: asked.records())
        errors = [one for one in found if isinstance(one, DeployError)]
        if errors:
            return errors[:1]
        results: list[Any] = []
        for host, records in zip(self.hosts, found):
            if not any(record.get("name") == self.options.name for record in records):
                continue
            (result,) = await self.each(lambda asked: asked.replace(), [host])
            results.append(result)
            if isinstance(result, DeployError):
                break
            done(host, result)
        return results

    async def status(self) -> list[Any]:
        """Returns the servers and the remains of jobs on each host. If several lines of the file are one machine, only
        the first of them gets the machine's remains."""
        found = await self.each(lambda asked: asked.status())
        seen: set[tuple] = set()
        for i, records in enumerate(found):
            if isinstance(records, DeployError):
                continue
            keys = [(one["machine"], one["worker"], one["start"]) if is_left(one) else None for one in records]
            found[i] = [one for one, key in zip(records, keys) if key is None or key not in seen]
            seen.update(key for key in keys if key)
        return found


class Asked:
    """A host with its agent."""

    def __init__(self, host: Host, options: argparse.Namespace, by: Reach) -> None:
        self.host, self.options = host, options
        self.agent = Agent(host, by, self._on_event)
        self._lines: dict[str, list[str]] = {}
        self._ends: dict[str, Event] = {}
        self._changed = asyncio.Event()

    def _on_event(self, _: Agent, event: Event) -> None:
        name = str(event.get("name"))
        if event.get("event") == "output":
            self._lines.setdefault(name, []).append(str(event.get("text")))
        elif event.get("event") in ("ended", "closed", "failed"):
            self._ends[name] = event
            self._changed.set()

    async def run(self, name: str, words: Sequence[str], work_s: float = 0.0) -> list[str]:
        """Runs a command on the host and returns its lines. work_s: the command's own time, added to --timeout."""
        self.agent.send("start", name=name, argv=list(words), env={})
        limit = self.options.timeout + work_s
        end = clock.now() + limit
        while name not in self._ends:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), max(0.01, end - clock.now()))
            except asyncio.TimeoutError:
                raise DeployError(f"{self.host}: {name} takes longer than {limit:g} s") from None
            if "None" in self._ends:
                raise DeployError(f"{self.host}: {self._ends['None'].get('text')}")
        return self._lines.get(name, [])

    async def set_up(self, work_s: float = 0.0) -> None:
        """Sets up a folder for run(). The agent gets no message while a command runs, so its silence limit includes the
        command's time."""
        silence_ms = round(1000 * (_SILENCE_S + self.options.timeout + work_s))
        await self.agent.ask(
            "setup", "setup", job="cluster", workspace=self.options.workspace, silence_ms=silence_ms, quiet=True
        )

    async def records(self) -> list[Record]:
        """Returns the records of the servers on this host's port."""
        found = (await self.agent.ask("servers", "servers"))["servers"]
        return [dict(record) for record in found if record.get("port") == self.host.port]

    async def left(self) -> list[Record]:
        """Returns the remains of jobs on this host: an entry for each agent that was killed."""
        found = (await self.agent.ask("left", "left"))["left"]
        return [{**one, "machine": self.agent.hello.get("host")} for one in found]

    async def status(self) -> list[Record]:
        """Returns the servers on record with the output of stat, and the remains of jobs."""
        left = await self.left()
        return [*await self._served(), *left]

    async def _served(self) -> list[Record]:
        records = await self.records()
        if records:
            await self.set_up()
        for number, record in enumerate(records):
            words = ["@", "stat", str(record["address"]), "--json", "--timeout", "3000"]
            if record.get("key"):
                words += ["--key-file", str(record["key_file"])]
            record.pop("key", None)
            for line in await self.run(f"stat{number}", words):
                try:
                    record["stat"] = json.loads(line)
                except ValueError:
                    record.setdefault("said", line)
            last = await self.run(f"last{number}", ["tail", "-n", "1", str(record.get("log"))])
            record["last_line"] = last[-1] if last and not last[-1].startswith("serving part ") else None
        return records

    async def stop(self) -> list[Record]:
        """Ends the servers of a name, and the remains of a job of the same name. Returns their records."""
        ended = []
        for record in await self.records():
            if record.get("name") == self.options.name:
                await self._end(int(record["port"]), int(record["pid"]))
                record.pop("key", None)
                ended.append(record)
        left = [one for one in await self.left() if one["job"] == self.options.name]
        if left:
            await self._end_left()
        if ended or left:
            await self.agent.ask("sweep", "swept")
        return [*ended, *left]

    async def replace(self) -> list[Record]:
        """Replaces the servers of a name. Returns what each successor's agent reports: pids, versions, pause."""
        named = [record for record in await self.records() if record.get("name") == self.options.name]
        if named:
            await self.set_up(self.options.ready_timeout)
        found = []
        for record in named:
            name = f"replace{record['port']}"
            words = ["@", "agent", "--replace", str(record["port"]), *(["--cold"] if self.options.cold else [])]
            lines = await self.run(name, [*words, "--", *self.options.serve], self.options.ready_timeout)
            if self._ends[name].get("status") != 0:
                said = lines[-1].removeprefix("graphwire agent: ") if lines else how_it_ended(self._ends[name])
                raise DeployError(f"{self.host}: part {record.get('part')}: {said}")
            answer = json.loads(lines[-1])
            found.append(
                {
                    "part": record.get("part"),
                    "pid_before": answer["before"],
                    "pid": answer["pid"],
                    "version_before": answer.get("version_before"),
                    "version": answer["server"].get("version"),
                    "pause_ms": answer.get("pause_ms"),
                }
            )
        return found

    async def _end_left(self) -> None:
        """Ends the remains of a job: SIGTERM, then, after an agent's usual time, SIGKILL until no process remains."""
        began = clock.now()
        while clock.now() < began + _STOP_S:
            hard = clock.now() >= began + _GRACE_S
            await self.agent.ask("end_left", "ending_left", job=self.options.name, hard=hard)
            if not await self._runs_left():
                return
            await asyncio.sleep(_LOOK_S)
        raise DeployError(f"{self.host}: the processes left of job {self.options.name} do not end")

    async def _runs_left(self) -> bool:
        return any(one["job"] == self.options.name and one["processes"] for one in await self.left())

    async def _end(self, port: int, pid: int) -> None:
        for hard in (False, True):
            await self.agent.ask("stop", "stopping", port=port, name=self.options.name, hard=hard)
            end = clock.now() + _STOP_S
            while clock.now() < end:
                if pid not in [record.get("pid") for record in await self.records()]:
                    return
                await asyncio.sleep(_LOOK_S)
        raise DeployError(f"{self.host}: the server of pid {pid} does not end")

    async def logs(self) -> list[str]:
        """Returns the last lines of each log of a job."""
        await self.set_up()
        job = shlex.quote(self.options.job) if self.options.job else '"$(LC_ALL=C ls -1 logs 2>/dev/null | tail -n 1)"'
        script = f'j={job}; for f in "logs/$j"/*.log; do [ -e "$f" ] || continue; echo "==> $f"; '
        script += f'tail -n {self.options.lines} "$f"; echo; done'
        return await self.run("logs", ["sh", "-c", script])

    async def doctor(self, servers: Sequence[str]) -> list[str]:
        """Returns the doctor's report about this host and its paths to all servers."""
        records = await self.records()
        work_s = len(servers) * (_DOCTOR_S + _PATHS * self.options.measure / 1000)
        await self.set_up(work_s)
        words = ["@", "doctor", "--measure", str(self.options.measure)]
        words += [word for server in servers for word in ("--server", server)]
        if records and records[0].get("key"):
            words += ["--key-file", str(records[0]["key_file"])]
        if self.options.json:
            words.append("--json")
        lines = await self.run("doctor", words, work_s)
        end = self._ends["doctor"]
        if not lines and end.get("status") != 0:
            raise DeployError(f"{self.host}: the doctor ended with {how_it_ended(end)}: {end.get('tail')}")
        return lines


def _row(host: Host, record: Record, shown: Sequence[str]) -> list[str]:
    stat = record.get("stat") or {}
    state = "kept" if record.get("kept") else f"job {record.get('job')}"
    return [
        str(host.address),
        state if "uptime_s" in stat else "silent",
        str(record.get("name", "-")),
        f"{record.get('part')}/{record.get('parts')}",
        str(record.get("pid")),
        *[str((stat.get("shown") or {}).get(column, "-")) for column in shown],
        str(stat.get("error") or record.get("said") or record.get("last_line") or "-"),
    ]


def _left_row(host: Host, one: Record, shown: Sequence[str]) -> list[str]:
    running = one["processes"]
    what = [f"{len(running)} process{'' if len(running) == 1 else 'es'}: {running[0]['command']}"] if running else []
    text = " and ".join([*what, *(["its key"] if one.get("key") else [])])
    pid = str(running[0]["pid"]) if running else "-"
    return [
        str(host.address),
        "left over",
        str(one["job"]),
        "-",
        pid,
        *["-"] * len(shown),
        f"{text}; its agents were killed, and `{CLUSTER} stop {one['job']}` ends it",
    ]


def table(hosts: Sequence[Host], found: Sequence[Any]) -> list[str]:
    """Returns the table: a line for each server, and for each host without servers."""
    answers = [record.get("stat") or {} for records in found if isinstance(records, list) for record in records]
    shown = next((list(stat["shown"]) for stat in answers if "shown" in stat), [])
    rows = [[*_COLUMNS, *shown, "last error"]]
    absent = ["-"] * (len(rows[0]) - 3)
    for host, records in zip(hosts, found):
        if isinstance(records, DeployError):
            rows.append([host.address, "not reached", *absent, str(records)])
        elif not records:
            rows.append([host.address, "no server", *absent, "-"])
        else:
            rows += [(_left_row if is_left(record) else _row)(host, record, shown) for record in records]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return ["  ".join([*[cell.ljust(width) for cell, width in zip(row, widths)], row[-1]]).rstrip() for row in rows]


def in_json(hosts: Sequence[Host], found: Sequence[Any], what: str) -> list[str]:
    """Returns a line with a JSON object for each host."""
    lines = []
    for host, result in zip(hosts, found):
        value: dict[str, Any] = {"host": host.address, "port": host.port}
        if isinstance(result, DeployError):
            value["error"] = str(result)
        else:
            value[what] = [one for one in result if not (isinstance(one, dict) and is_left(one))]
            left = [one for one in result if isinstance(one, dict) and is_left(one)]
            if left:
                value["left"] = left
        lines.append(json.dumps(value, sort_keys=True))
    return lines
