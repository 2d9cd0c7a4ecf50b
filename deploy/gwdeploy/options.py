"""Parses command lines as DGL's users type them: `-` or `_` in names, options before or after the command."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable, Sequence

from . import clustershell, slurm
from .errors import UsageError
from .ip_config import Host
from .ip_config import read as read_ip_config
from .names import LAUNCH, SERVICE, is_service, is_variable, visible
from .reach import Local, Reach, own_program

_LISTS = ("--extra_envs",)  # options with several values, each NAME=VALUE


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong usage in one line (status 2), and reads --part-config as --part_config."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """argparse calls this for wrong usage."""
        raise UsageError(f"{message}; see {self.prog} --help")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parses a command line."""
        return self.parse_args(_normalize(words))


def _normalize(words: Sequence[str]) -> list[str]:
    """Writes `_` for `-` in names. Puts the option's name before each value of a list, so that argparse does not take
    the command after the list for a value."""
    result: list[str] = []
    current = None
    for i, word in enumerate(words):
        if word == "--":
            return result + list(words[i:])
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            name = "--" + name[2:].replace("-", "_")
            current = name if name in _LISTS and not equals else None
            if current:
                continue
            result.append(name + equals + value)
        elif current and "=" in word and not any(c.isspace() for c in word.split("=", 1)[0]):
            result.append(f"{current}={word}")
        else:
            current = None
            result.append(word)
    return result


def _whole(name: str, least: int, most: int | None = None, unit: str = "") -> Callable[[str], int]:
    """Returns a parser of whole numbers. name: argparse names it for a text that is no number."""

    def parse(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"{text}: must be at least {least}")
        if most is not None and number > most:
            raise argparse.ArgumentTypeError(f"{text}: must be at most {most}{unit}")
        return number

    parse.__name__ = name
    return parse


positive = _whole("positive", 1)
natural = _whole("natural", 0)
port = _whole("port", 1, 65535)
microseconds = _whole("microseconds", 0, 1_000_000, " microseconds")


def metrics(text: str) -> tuple[str, int]:
    """Parses [ADDR:]PORT; the address is "" or ends with a colon."""
    address, colon, number = text.rpartition(":")
    return address + colon, port(number)


def seconds(text: str) -> float:
    """Parses a time in seconds, above 0."""
    number = float(text)
    if not 0 < number < 1e7:
        raise argparse.ArgumentTypeError(f"{text}: must be a number of seconds above 0")
    return number


@dataclasses.dataclass
class LaunchOptions:
    """The options of launch.py."""

    command: str
    workspace: str
    part_config: str
    ip_config: str
    num_trainers: int = 1
    num_samplers: int = 0
    num_servers: int | None = None
    num_server_threads: int = 1
    num_omp_threads: int | None = None
    graph_format: str = "csc"
    extra_envs: list[str] = dataclasses.field(default_factory=list)
    keep_alive: bool = False
    server_name: str | None = None
    transport: str | None = None
    spin: int = 0
    metrics: tuple[str, int] | None = None
    mutable: list[str] = dataclasses.field(default_factory=list)
    lists: str = "own"
    on_disk: list[str] = dataclasses.field(default_factory=list)
    disk_cache: str | None = None
    key_file: str | None = None
    scheduler: str = "ssh"
    dry_run: bool = False
    verbose: bool = False
    timeout: float = 30.0
    load_timeout: float = 3600.0
    restarts: int = 0
    no_torchrun: bool = False
    dgl: str = "auto"
    silence: float = 30.0
    fanout: int = 64
    log_bytes: str = "64Mi"
    keep_logs: int = 100
    ssh_port: int | None = None
    ssh_username: str = ""
    ssh_key: str | None = None
    via: str = "auto"
    program: str | None = None

    def hosts(self) -> list[Host]:
        """Returns the hosts of --ip_config, a path in the workspace here or in the current folder; with Slurm, the
        nodes of the allocation."""
        listed = None
        if self.ip_config:
            listed = read_ip_config(self._ip_config_here(), self.scheduler == "local")
        if self.scheduler == "slurm":
            return slurm.hosts_of(slurm.allocated(), listed)
        if listed is None:
            raise UsageError(f"the following arguments are required: --ip_config; see {LAUNCH} --help")
        return listed

    def _ip_config_here(self) -> str:
        workspace = os.path.expanduser(self.workspace)
        inside = os.path.join(workspace, self.ip_config)
        if os.path.exists(inside) or os.path.exists(self.ip_config):
            return inside if os.path.exists(inside) else self.ip_config
        name, _, rest = self.workspace[1:].partition("/")
        if workspace.startswith("~"):
            why = f'there is no user "{name}" here; did you mean --workspace ~/{name}/{rest}?'
        else:
            why = "" if os.path.isdir(workspace) else f"the workspace {workspace} is not there"
        raise UsageError(f"--ip_config {self.ip_config}: no such file, here or in the workspace{why and f': {why}'}")

    def reach(self) -> Reach:
        """Returns how the hosts are reached."""
        return reach(self, len(self.hosts()))


def reach(options: LaunchOptions | argparse.Namespace, hosts: int) -> Reach:
    """Returns how hosts are reached, by the options of any command. hosts: their number."""
    local = options.scheduler == "local"
    if options.scheduler == "slurm":
        nodes = slurm.allocated()
        return slurm.Slurm(options.workspace, program=options.program, timeout_s=options.timeout, nodes=nodes)
    return (Local if local else clustershell.choose(options.via, hosts > options.fanout))(
        workspace=options.workspace,
        ssh_port=options.ssh_port,
        user=options.ssh_username,
        key=options.ssh_key,
        program=options.program or (own_program() if local else None),
        timeout_s=options.timeout,
    )


def add_ssh(parser: argparse.ArgumentParser) -> None:
    """Adds the options for reaching hosts, which all commands share."""
    group = parser.add_argument_group("reaching the hosts")
    group.add_argument("--ssh_port", type=port, metavar="N", help="sshd's port (22, or from ~/.ssh/config)")
    group.add_argument("--ssh_username", default="", metavar="NAME", help="the user on the hosts (the user here)")
    group.add_argument("--ssh_key", metavar="FILE", help="the private key for ssh")
    group.add_argument(
        "--via",
        choices=("auto", "ssh", "clustershell"),
        default="auto",
        help="what runs ssh: the launcher (ssh) or ClusterShell; auto: ClusterShell if it is installed and there are "
        "more hosts than --fanout",
    )
    group.add_argument("--timeout", type=seconds, default=30.0, metavar="S", help="the time for a host to answer (30)")
    group.add_argument("--fanout", type=positive, default=64, metavar="N", help="hosts to reach at the same time (64)")
    group.add_argument("--program", metavar="PATH", help="graphwire on the hosts (WORKSPACE/.graphwire/bin, then PATH)")
    group.add_argument(
        "--scheduler",
        choices=("ssh", "local", "slurm"),
        default="ssh",
        help="ssh; local: all hosts are this machine; slurm: the nodes of the current allocation",
    )


def _add_dgl(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("as DGL's launch.py")
    group.add_argument("--workspace", required=True, metavar="DIR", help="the working folder, on every host")
    group.add_argument("--part_config", required=True, metavar="JSON", help="the graph's JSON, a path in the workspace")
    group.add_argument(
        "--ip_config", default="", metavar="FILE", help="a file of hosts: address [port [servers]]; optional with Slurm"
    )
    group.add_argument("--num_trainers", type=positive, default=1, metavar="N", help="trainers on a host (1)")
    group.add_argument("--num_samplers", type=natural, default=0, metavar="N", help="sampling threads of a trainer (0)")
    group.add_argument("--num_servers", type=positive, metavar="N", help="each host has one server, with N * M threads")
    group.add_argument("--num_server_threads", type=positive, default=1, metavar="M", help="see --num_servers (1)")
    group.add_argument(
        "--num_omp_threads", type=positive, metavar="N", help="a trainer's OMP_NUM_THREADS (processors/2/trainers)"
    )
    group.add_argument("--graph_format", default="csc", metavar="F", help="DGL_GRAPH_FORMAT of the trainers (csc)")
    group.add_argument(
        "--extra_envs", action="append", default=[], metavar="A=B", help="variables for servers and trainers"
    )
    group.add_argument("--keep_alive", action="store_true", help="the servers stay when the trainers have ended")
    group.add_argument("--server_name", metavar="NAME", help="the servers' name; default: kept servers of any name")


def _add_own(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Graphwire's own")
    group.add_argument("--verbose", action="store_true", help="print what happens")
    group.add_argument(
        "--transport", choices=("auto", "tcp", "shm", "verbs"), help="the transport of servers and trainers (auto)"
    )
    group.add_argument(
        "--mutable",
        action="append",
        default=[],
        metavar="NAME",
        help="the feature NAME, or TYPE/NAME, whose rows trainers can write; for servers that this launch starts",
    )
    group.add_argument(
        "--lists",
        choices=("own", "all"),
        default="own",
        help="the neighbour lists that each server holds: of its part, or of all parts, so that trainers on its host "
        "sample without other hosts; copy_files.py --lists copies them; for servers that this launch starts (own)",
    )
    group.add_argument(
        "--on_disk",
        action="append",
        default=[],
        metavar="NAME[,NAME...]",
        help="the features NAME, or TYPE/NAME, whose rows stay in the files (`graphwire serve --on-disk`); lists: the "
        "neighbours, ids and columns of all edges; for servers that this launch starts",
    )
    group.add_argument(
        "--disk_cache",
        metavar="BYTES",
        help="a server's memory for blocks of the files of --on_disk, at least 1Mi (256Mi)",
    )
    group.add_argument(
        "--spin",
        type=microseconds,
        default=0,
        metavar="US",
        help="how long threads of servers and trainers poll before they sleep; `graphwire doctor --spin US` says what "
        "that costs (0)",
    )
    group.add_argument(
        "--metrics",
        type=metrics,
        metavar="[ADDR:]PORT",
        help="servers answer scrapers at this port of their hosts, and trainers at the ports after it, which servers "
        "that are already running do not do (none; without ADDR on loopback addresses)",
    )
    group.add_argument("--key_file", metavar="FILE", help="the job's key (a new key for each job)")
    group.add_argument("--no_torchrun", action="store_true", help="start Python trainers with RANK etc., no torchrun")
    group.add_argument(
        "--dgl",
        choices=("auto", "as-is", "off"),
        default="auto",
        help="Python programs to run by graphwire.dgl: auto: those that import dgl, also through a package; as-is: "
        "all; off: none",
    )
    group.add_argument(
        "--restarts", type=natural, default=0, metavar="N", help="how often a server that dies is started again (0)"
    )
    group.add_argument(
        "--silence", type=seconds, default=30.0, metavar="S", help="a host that is silent for so long is lost (30)"
    )
    group.add_argument(
        "--load_timeout", type=seconds, default=3600.0, metavar="S", help="the time for servers to load (3600)"
    )
    group.add_argument(
        "--log_bytes", default="64Mi", metavar="BYTES", help="a log rotates at this size (64Mi)"
    )
    group.add_argument(
        "--keep_logs", type=natural, default=100, metavar="N", help="number of jobs whose logs stay; 0: all (100)"
    )
    group.add_argument("--dry_run", action="store_true", help="print what would run on which host, and run nothing")


def parse_launch(words: Sequence[str], program: str = LAUNCH) -> LaunchOptions:
    """Parses launch.py's command line."""
    parser = Parser(
        prog=program,
        description="Start a graph's servers and a program's trainers on all hosts, watch them, and end them all.",
        epilog=f"Example: {LAUNCH} --workspace ~/sage --num_trainers 2 --num_samplers 4 --num_servers 1 --part_config "
        'data/g.json --ip_config ip_config.txt "python3 code/train.py --lr 0.01". Exit status: 0 all trainers ended '
        "with 0, 1 something failed (one line names the cause), 2 wrong usage, 130 interrupted.",
    )
    parser.add_argument("command", help="the trainer's command, any shell command; torchrun starts a Python script")
    _add_dgl(parser)
    _add_own(parser)
    add_ssh(parser)
    options = LaunchOptions(**vars(parser.parse(words)))
    if not options.command.strip():
        raise UsageError("the trainers' command is empty")
    if options.server_name is not None and not is_service(options.server_name):
        raise UsageError(f'--server_name: "{visible(options.server_name)}": a name has {SERVICE}')
    if options.disk_cache is not None and not options.on_disk:
        raise UsageError("--disk_cache without --on_disk: name the features that stay on disk")
    for text in options.extra_envs:
        name, equals, _ = text.partition("=")
        if not equals or not is_variable(name):
            raise UsageError(f'--extra_envs: "{visible(text)}" is not NAME=VALUE with a name of A-Z a-z 0-9 _')
    return options
