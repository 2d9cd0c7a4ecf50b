"""The environment of servers and trainers: GRAPHWIRE_*, which clients read to open the graph, and DGL's DGL_*."""

from __future__ import annotations

import os

from .ip_config import Host
from .options import LaunchOptions


def extra(options: LaunchOptions) -> dict[str, str]:
    """Returns the user's variables for servers and trainers: PYTHONPATH and --extra_envs."""
    result: dict[str, str] = {}
    if os.environ.get("PYTHONPATH"):
        result["PYTHONPATH"] = os.environ["PYTHONPATH"]
    for text in options.extra_envs:
        name, _, value = text.partition("=")
        result[name] = value
    return result


def _dgl(options: LaunchOptions, hosts: int) -> dict[str, str]:
    return {
        "DGL_DIST_MODE": "distributed",
        "DGL_NUM_SAMPLER": str(options.num_samplers),
        "DGL_NUM_SERVER": str(options.num_servers or 1),
        "DGL_NUM_CLIENT": str(options.num_trainers * (1 + options.num_samplers) * hosts),
        "DGL_GROUP_ID": "0",
        "DGL_CONF_PATH": options.part_config,
        "DGL_IP_CONFIG": options.ip_config,
        "DGL_GRAPH_FORMAT": options.graph_format,
    }


def metrics_of_server(options: LaunchOptions, host: Host) -> str:
    """Returns where a host's server answers scrapers; "" without --metrics. On one machine, each server has its own
    port."""
    if options.metrics is None:
        return ""
    address, port = options.metrics
    return f"{address}{port + (host.index if options.scheduler == 'local' else 0)}"


def metrics_of_trainers(options: LaunchOptions, hosts: int, host: Host) -> str:
    """Returns the trainers' GRAPHWIRE_METRICS. The client adds its local rank to the port."""
    if options.metrics is None:
        return ""
    address, port = options.metrics
    before = hosts + host.index * options.num_trainers if options.scheduler == "local" else 1
    return f"{address}{port + before}"


def of_server(options: LaunchOptions, hosts: int, part: int) -> dict[str, str]:
    """Returns a server's environment."""
    result = _dgl(options, hosts)
    result.update(DGL_ROLE="server", DGL_SERVER_ID=str(part), DGL_KEEP_ALIVE=str(int(options.keep_alive)))
    result["OMP_NUM_THREADS"] = str(options.num_server_threads)
    result.update(extra(options))
    return result


def threads_of_trainer(options: LaunchOptions, processors: int) -> int:
    """Returns OMP_NUM_THREADS. DGL's default: half of the host's processors, divided by the number of trainers."""
    return options.num_omp_threads or max(1, processors // 2 // options.num_trainers)


def of_trainers(options: LaunchOptions, hosts: int, paths: dict[str, str], processors: int) -> dict[str, str]:
    """Returns the variables that all trainers of a host share. paths: the paths by their variables' names without
    GRAPHWIRE_, such as KEY_FILE."""
    result = {f"GRAPHWIRE_{name}": value for name, value in paths.items() if value}
    result["GRAPHWIRE_SAMPLERS"] = str(options.num_samplers)
    if options.transport:
        result["GRAPHWIRE_TRANSPORT"] = options.transport
    if options.spin:
        result["GRAPHWIRE_SPIN_US"] = str(options.spin)
    result.update(_dgl(options, hosts))
    result["DGL_ROLE"] = "client"
    result["OMP_NUM_THREADS"] = str(threads_of_trainer(options, processors))
    result.update(extra(options))
    return result


def of_rank(rank: int, local: int, trainers: int, hosts: int, address: str, port: int) -> dict[str, str]:
    """Returns the variables that torchrun would set, for trainers that torchrun does not start."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(trainers * hosts),
        "LOCAL_WORLD_SIZE": str(trainers),
        "GROUP_RANK": str(rank // trainers),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
    }


def shell(environment: dict[str, str]) -> list[str]:
    """Returns sorted NAME=VALUE words."""
    return [f"{name}={value}" for name, value in sorted(environment.items())]
