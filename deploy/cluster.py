#!/usr/bin/env python3
"""Shows, replaces, ends and examines the servers on the hosts of an ip_config.txt. --help lists the options."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from gwdeploy.cluster import Cluster, in_json, is_left, parse, table
from gwdeploy.errors import DeployError
from gwdeploy.ip_config import Host
from gwdeploy.main import run


def show(lines: Sequence[str]) -> None:
    """Prints lines in one write."""
    print("".join(f"{line}\n" for line in lines), end="", flush=True)


async def status(cluster: Cluster, options: argparse.Namespace) -> list[Any]:
    """Prints the table of servers, once or repeatedly (--watch)."""
    while True:
        found = await cluster.status()
        if options.json:
            show(in_json(cluster.hosts, found, "servers"))
        else:
            show(table(cluster.hosts, found))
        if not options.watch:
            return found
        await asyncio.sleep(options.watch)


def what_ended(one: dict) -> str:
    """Names what was ended: a server, or the remains of a job."""
    if is_left(one):
        return f"what was left of job {one['job']} ({len(one['processes'])} processes)"
    return f"server of part {one.get('part')} (pid {one.get('pid')})"


async def stop(cluster: Cluster, options: argparse.Namespace) -> list[Any]:
    """Ends the servers of a name, and the remains of a job of that name. Raises DeployError if neither exists."""
    found = await cluster.each(lambda asked: asked.stop())
    if options.json:
        show(in_json(cluster.hosts, found, "stopped"))
    for host, ended in zip(cluster.hosts, found):
        if not options.json and isinstance(ended, list):
            show([f"{host}: {what_ended(one)} has ended" for one in ended])
    if not any(isinstance(ended, DeployError) or ended for ended in found):
        raise DeployError(
            f'no host has a server named "{options.name}" on its port, or processes left of such a job; '
            "cluster.py status lists both"
        )
    return found


def what_replaced(host: Host, one: dict) -> str:
    """Describes a server that was replaced."""
    pause = "the part was loaded again" if one["pause_ms"] is None else f"pause {one['pause_ms']} ms"
    return (
        f"{host}: part {one['part']}: pid {one['pid_before']} (version {one['version_before']}) -> "
        f"pid {one['pid']} (version {one['version']}), {pause}"
    )


async def replace(cluster: Cluster, options: argparse.Namespace) -> list[Any]:
    """Replaces the servers of a name one by one, and prints each. Raises DeployError at the first failure; the text
    names the parts that were replaced before it."""
    done: list[str] = []

    def show_done(host: Host, records: list[dict]) -> None:
        done.extend(str(one["part"]) for one in records)
        show(in_json([host], [records], "replaced") if options.json else [what_replaced(host, one) for one in records])

    found = await cluster.replace(show_done)
    if not found:
        raise DeployError(f'no host has a server named "{options.name}" on its port; cluster.py status lists them')
    for one in found:
        if isinstance(one, DeployError):
            parts = f"part{'s' if len(done) > 1 else ''} {', '.join(done)}"
            raise DeployError(f"{one}; {f'replaced before: {parts}' if done else 'no server was replaced'}")
    return found


async def lines_of(cluster: Cluster, options: argparse.Namespace) -> list[Any]:
    """Prints the lines of each host: its logs, or the doctor's report."""
    servers = [host.listen for host in cluster.hosts]
    if options.what == "logs":
        found = await cluster.each(lambda asked: asked.logs())
    else:
        found = await cluster.each(lambda asked: asked.doctor(servers))
    if options.json:
        show(in_json(cluster.hosts, found, options.what))
        return found
    for host, lines in zip(cluster.hosts, found):
        if isinstance(lines, list):
            show([f"=== {host}", *lines])
    return found


async def main(words: Sequence[str]) -> int:
    """Runs the command. Returns 0, or 1 if a host failed."""
    options = parse(words)
    cluster = Cluster(options)
    work = {"status": status, "stop": stop, "upgrade": replace, "restart": replace}.get(options.what, lines_of)
    found = await work(cluster, options)
    errors = [one for one in found if isinstance(one, DeployError)]
    if not options.json and options.what != "status":
        for error in errors:
            print(f"cluster: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(run("cluster", main, sys.argv[1:]))
