"""--dry_run: prints every command that a launch would run, host by host, for the user to read and copy."""

from __future__ import annotations

import shlex

from . import environment
from .ip_config import Host
from .options import LaunchOptions
from .process import rank_of, server_words, trainer_commands

_KEY = "job.key"  # printed for the key file, which a launch makes
_AT_START = "job"  # printed for the folder of at_start.py's sitecustomize, which a launch makes
_PORT = 29500  # printed for a free port of host 0
_PROCESSORS = 2  # printed for the number of processors of the host


def _line(workspace: str, env: dict[str, str], words: str) -> str:
    assignments = " ".join(shlex.quote(word) for word in environment.shell(env))
    return f"cd {shlex.quote(workspace)} && env {assignments} {words}"


def _of_host(options: LaunchOptions, hosts: list[Host], host: Host) -> list[str]:
    words = server_words(options, host, options.part_config, _KEY)
    server = " ".join(shlex.quote(word) for word in ["graphwire", *words[1:]])
    lines = [_line(options.workspace, environment.of_server(options, len(hosts), host.index), server)]
    paths = {"PART_CONFIG": options.part_config, "IP_CONFIG": options.ip_config, "KEY_FILE": _KEY, "JOB": "dry-run",
             "AT_START": _AT_START, "METRICS": environment.metrics_of_trainers(options, len(hosts), host)}
    shared = environment.of_trainers(options, len(hosts), paths, _PROCESSORS * options.num_trainers)
    for local, text in trainer_commands(options, hosts, host, _PORT):
        env = dict(shared)
        if local is not None:
            rank = host.index * options.num_trainers + local
            env.update(rank_of(options, hosts, rank, local, _PORT))
        lines.append(_line(options.workspace, env, f"sh -c {shlex.quote(text)}"))
    return lines


def print_plan(options: LaunchOptions) -> None:
    """Prints the plan. The key file, the rendezvous port and OMP_NUM_THREADS are examples: a launch finds them."""
    reach, hosts = options.reach(), options.hosts()
    for host in hosts:
        print(f"# {host}: reached by")
        print(shlex.join(reach.agent(host)))
        print(f"# where it runs (key {_KEY}, rendezvous port {_PORT} and OMP_NUM_THREADS are chosen by a launch)")
        for line in _of_host(options, hosts, host):
            print(line)
