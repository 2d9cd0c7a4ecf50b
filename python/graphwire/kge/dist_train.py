"""gwke_dist_train: trains on all hosts of an ip_config.txt. deploy/launch.py starts, watches and ends the servers and
clients.

Each host needs the parts (gwke_partition) under the same --data_path, and this package for the same Python. Every
client gets every flag as it was typed. The results are on the first host, under --path; each host has its logs there.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from graphwire._base.program import ProgramError, program
from graphwire.kge.data import DataError
from graphwire.kge.partition import parts_folder


def launcher() -> Path:
    """Finds deploy/launch.py: in $GRAPHWIRE_DEPLOY, else installed with this package, else in this checkout."""
    named, here = os.environ.get("GRAPHWIRE_DEPLOY"), Path(__file__).resolve()
    folders = [Path(named)] if named else [here.parents[1] / "deploy", here.parents[3] / "deploy"]
    for folder in folders:
        if (folder / "launch.py").is_file():
            return folder / "launch.py"
    raise ProgramError(f"{folders[0]}/launch.py does not exist: set GRAPHWIRE_DEPLOY to a checkout's deploy folder")


def command_of(args: argparse.Namespace, words: Sequence[str]) -> list[str]:
    """The command line of launch.py. words: the flags as they were typed."""
    path = os.path.abspath(os.path.expanduser(args.path or "."))
    graph = parts_folder(os.path.abspath(os.path.expanduser(args.data_path)), args.dataset) / "graph.json"
    if not graph.is_file():
        own = "" if args.format == "built_in" else f"--format {args.format} --data_files {' '.join(args.data_files)} "
        raise DataError(f"{graph} does not exist: gwke_partition --dataset {args.dataset} --data_path {args.data_path} "
                        f"{own}-k HOSTS makes it; then copy the folder to all hosts")
    ip_config = os.path.abspath(os.path.expanduser(args.ip_config))
    # Clients run in the workspace, so paths are made absolute here. If a flag occurs twice, the last one counts.
    client = [sys.executable, "-m", "graphwire.kge", "client", "dist_train", "-", *words, "--data_path",
              str(graph.parents[2]), "--ip_config", ip_config]
    result = [sys.executable, str(launcher()), "--workspace", path, "--part_config", str(graph), "--ip_config",
              ip_config, "--num_trainers", str(args.num_client_proc),
              "--num_omp_threads", str(args.num_thread), "--no_torchrun"]
    for name in ("ssh_key", "ssh_port", "via"):
        if getattr(args, name):
            result += [f"--{name}", str(getattr(args, name))]
    if args.scheduler != "ssh":
        result += ["--scheduler", args.scheduler]
    if args.program or args.scheduler == "local":
        result += ["--program", args.program or program()]
    return [*result, shlex.join(client)]


def dist_train(args: argparse.Namespace, words: Sequence[str]) -> int:
    """Runs the command; returns launch.py's exit status."""
    process = subprocess.Popen(command_of(args, words))
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # launch.py got the interrupt too, and ends the job
