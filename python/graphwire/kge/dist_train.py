"""gwke_dist_train: servers and clients on all hosts of an ip_config.txt, by deploy/launch.py, which watches and ends
them.

The hosts have the parts (gwke_partition) under the same --data_path, and this package for the same Python. Every flag
goes on to every client as it was given. Results are on the first host, under --path, as are the logs on each.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from graphwire.kge.data import DataError
from graphwire.kge.partition import parts_folder
from graphwire.kge.store import ProgramError, program


def launcher() -> Path:
    """deploy/launch.py: $GRAPHWIRE_DEPLOY's, the one that was installed with this package, or this checkout's."""
    named, here = os.environ.get("GRAPHWIRE_DEPLOY"), Path(__file__).resolve()
    folders = [Path(named)] if named else [here.parents[1] / "deploy", here.parents[3] / "deploy"]
    for folder in folders:
        if (folder / "launch.py").is_file():
            return folder / "launch.py"
    raise ProgramError(f"{folders[0]}/launch.py is not there: name the deploy folder of a checkout by GRAPHWIRE_DEPLOY")


def command_of(args: argparse.Namespace, words: Sequence[str]) -> list[str]:
    """What launch.py is called with. words: the flags as they were typed."""
    path = os.path.abspath(os.path.expanduser(args.path or "."))
    graph = parts_folder(os.path.abspath(os.path.expanduser(args.data_path)), args.dataset) / "graph.json"
    if not graph.is_file():
        own = "" if args.format == "built_in" else f"--format {args.format} --data_files {' '.join(args.data_files)} "
        raise DataError(f"{graph} is not there: gwke_partition --dataset {args.dataset} --data_path {args.data_path} "
                        f"{own}-k HOSTS makes it; then copy the folder to all hosts")
    ip_config = os.path.abspath(os.path.expanduser(args.ip_config))
    # Clients run in the workspace: paths are those of here. Of a flag that is there twice the last counts.
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
    """The command; launch.py's exit status."""
    process = subprocess.Popen(command_of(args, words))
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # launch.py has it too, and ends the job
