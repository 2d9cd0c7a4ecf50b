"""Checks whether the servers that an earlier launch kept fit this job."""

from __future__ import annotations

import dataclasses
from typing import Any

from .errors import DeployError
from .ip_config import Host
from .names import CLUSTER
from .options import LaunchOptions

Record = dict[str, Any]


@dataclasses.dataclass
class Kept:
    """Kept servers that a job uses."""

    name: str
    key: bytes
    pids: list[int]  # pids[i]: the server of part i


def _at(host: Host, found: dict[str, Any]) -> Record | None:
    for record in found["servers"]:
        if record.get("port") == host.port:
            return dict(record)
    return None


def _refuse(options: LaunchOptions, host: Host, record: Record, graph: dict[str, Any], version: str) -> None:
    """Raises DeployError for a server that does not fit the job; the text names the difference."""
    who = f'{host}: the kept server "{record.get("name")}" on port {host.port}'
    if not record.get("kept"):
        raise DeployError(
            f"{host}: port {host.port} is taken by a server of job {record.get('job')} (pid {record.get('pid')}): "
            "wait for it, or give another port in the ip config"
        )
    if options.server_name is not None and record.get("name") != options.server_name:
        raise DeployError(f'{who} is not "{options.server_name}": leave out --server_name, or stop it')
    for key, wanted, what in (
        ("parts", graph["parts"], "parts"),
        ("graph_id", graph["id"], "the graph"),
        ("part", host.index, "part"),
        ("version", version, "version"),
    ):
        if record.get(key) != wanted:
            raise DeployError(f"{who} has {what} {record.get(key)}, this job needs {wanted}: stop it with {CLUSTER}")


def find_kept(
    options: LaunchOptions, hosts: list[Host], graph: dict[str, Any], version: str, found: list[dict[str, Any]]
) -> Kept | None:
    """Returns the kept servers to use, or None if no host has one. Raises DeployError if a server does not fit the job,
    or if only some hosts have one."""
    records = [_at(host, one) for host, one in zip(hosts, found)]
    existing = [record for record in records if record]
    if not existing:
        return None
    for host, record in zip(hosts, records):
        if record:
            _refuse(options, host, record, graph, version)
    for host, record in zip(hosts, records):
        if not record:
            raise DeployError(
                f"{host} has no kept server, and {len(existing)} of {len(hosts)} hosts have one: stop them with "
                f"{CLUSTER}"
            )
    keys = {str(record.get("key", "")) for record in existing}
    if len(keys) != 1 or not keys.copy().pop():
        raise DeployError(f"the kept servers have different keys: stop them with {CLUSTER}")
    return Kept(str(existing[0]["name"]), bytes.fromhex(keys.pop()), [int(record["pid"]) for record in existing])
