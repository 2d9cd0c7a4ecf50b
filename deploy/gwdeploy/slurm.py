"""Reaches the nodes of a Slurm allocation (salloc, sbatch) by srun, without ssh.

When a Slurm job is cancelled or its time is over, Slurm ends the servers, agents and trainers in the allocation.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess

from .errors import DeployError, UsageError
from .ip_config import PORT, Host
from .names import COPY, LAUNCH
from .reach import Reach

_ASK_S = 30.0  # slurmctld may be busy
_NODES_MAX = 4096


def _scontrol(*words: str) -> str:
    try:
        done = subprocess.run(
            ["scontrol", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_ASK_S, check=False
        )
    except OSError as error:
        raise DeployError(f"scontrol cannot be run: {error.strerror}; is Slurm installed here?") from None
    except subprocess.TimeoutExpired:
        raise DeployError(f"scontrol does not answer within {_ASK_S:g} s: is slurmctld up?") from None
    if done.returncode != 0:
        said = " | ".join(done.stderr.strip().splitlines()[-3:])
        raise DeployError(f"scontrol {words[0]} ended with status {done.returncode}: {said}")
    return done.stdout


def read_nodes(names: str, details: str) -> dict[str, str]:
    """Returns name -> address. names: the output of `scontrol show hostnames`, which gives the order; details: the
    output of `scontrol -o show node`, which gives the addresses."""
    order = names.split()
    if not 0 < len(order) <= _NODES_MAX:
        raise DeployError(f"the allocation has {len(order)} nodes; it must have 1 to {_NODES_MAX}")
    addresses: dict[str, str] = {}
    for line in details.splitlines():
        fields: dict[str, str] = dict(re.findall(r"\b(NodeName|NodeAddr)=(\S+)", line))
        if "NodeName" in fields:
            addresses[fields["NodeName"]] = fields.get("NodeAddr", fields["NodeName"])
    return {name: addresses.get(name, name) for name in order}


def allocated() -> dict[str, str]:
    """Returns the nodes of the current allocation: name -> address."""
    nodes = os.environ.get("SLURM_JOB_NODELIST")
    if not nodes or not os.environ.get("SLURM_JOB_ID"):
        raise UsageError(f"--scheduler slurm works inside an allocation: salloc --nodes=4 {LAUNCH} ..., or sbatch")
    return read_nodes(_scontrol("show", "hostnames", nodes), _scontrol("-o", "show", "node", nodes))


def hosts_of(nodes: dict[str, str], listed: list[Host] | None) -> list[Host]:
    """Returns the hosts of an ip_config.txt, which must be nodes of the allocation. Without the file, returns all nodes
    in their order."""
    if listed is None:
        return [Host(index, address, PORT) for index, address in enumerate(nodes.values())]
    for host in listed:
        if host.address not in nodes and host.address not in nodes.values():
            raise UsageError(f"{host} is not a node of this allocation, which has {', '.join(list(nodes)[:8])}")
    return listed


@dataclasses.dataclass(frozen=True)
class Slurm(Reach):
    """Runs each agent as a step of the allocation, which overlaps with other steps."""

    nodes: dict[str, str] = dataclasses.field(default_factory=dict)

    def _node(self, host: Host) -> str:
        for name, address in self.nodes.items():
            if host.address in (name, address):
                return name
        raise UsageError(f"{host} is not a node of this allocation")

    def shell(self, host: Host, script: str, multiplex: str | None = None) -> list[str]:
        """Returns the command that runs a script of sh on a node."""
        words = ["srun", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={self._node(host)}", "--mem=0"]
        words += ["--cpu-bind=none", "--mpi=none", "--job-name=graphwire", f"--chdir={os.environ.get('HOME', '/')}"]
        return [*words, "sh", "-c", script]

    def failure(self, host: Host, lines: list[str], status: int | None) -> DeployError:
        """Returns an error with srun's own text."""
        said = " | ".join(line for line in lines[-3:] if line)
        if re.search(r"graphwire: not found", said):
            said = f"graphwire is not there: {COPY} --with_program, or --program PATH ({said})"
        ended = f"srun ended with status {status}" if status else "its step has ended"
        return DeployError(f"{host}: {said or ended}")
