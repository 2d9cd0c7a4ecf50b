"""Shared by dgl_scripts.py and dgl_embeddings.py. Makes a workspace and the parts of a graph for each of two systems,
Graphwire and DGL, and runs a DGL script over them. Needs root.

  job            one part, one server and one trainer in a separate network namespace. deploy/launch.py starts
                 them for Graphwire; for DGL 1.1.3 they are started as DGL's launcher would
  job_on_hosts   two parts; a server and one or more trainers on each of the two hosts of two_hosts.sh, each host with
                 its own /dev/shm. Both systems are started as a launcher would
"""
from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

TOP = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GRAPHWIRE", str(TOP / "build/release/graphwire"))
SYSTEMS = ("Graphwire", "DGL")
OWN_NETWORK = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
PARTITION = """
import sys
import numpy as np, torch
{install}
import dgl
with np.load(sys.argv[1]) as arrays:
    ends = torch.from_numpy(arrays["src"]), torch.from_numpy(arrays["dst"])
    graph = dgl.graph(ends, num_nodes=len(arrays["labels"]))
    for name in arrays.files:
        if name not in ("src", "dst"):
            graph.ndata[name] = torch.from_numpy(arrays[name])
parts = int(sys.argv[2])
dgl.distributed.partition_graph(graph, "g", parts, "data", part_method="metis" if parts > 1 else "random")
"""
# The server ends with its clients. If it does not, it is killed, because DGL's handler of SIGTERM may wait for ever.
DGL_JOB = """(DGL_ROLE=server DGL_SERVER_ID=0 {script}) >server.log 2>&1 & server=$!
DGL_ROLE=client RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 {script}; status=$?
for i in $(seq 100); do kill -0 $server 2>/dev/null || break; sleep 0.1; done
kill -9 $server 2>/dev/null; wait; exit $status"""


# Run on each of the two hosts: starts the host's server, then its trainers. (DGL's trainers wait for servers
# themselves.)
HOST_JOB = """mount -t tmpfs -o size=8G tmpfs /dev/shm || exit 1
{server} >server{host}.log 2>&1 & server=$!
{ready}
trainers=
for local in $(seq 0 {last}); do
    RANK=$(({first} + local)) LOCAL_RANK=$local {trainer} & trainers="$trainers $!"
done
status=0
for one in $trainers; do wait $one || status=$?; done
{end}
for i in $(seq 100); do kill -0 $server 2>/dev/null || break; sleep 0.1; done
kill -9 $server 2>/dev/null; wait; exit $status"""
HOSTS = ("10.77.0.1", "10.77.0.2")


def _dgl_environment(trainers, samplers):
    return {
        "DGL_DIST_MODE": "distributed", "DGL_CONF_PATH": "data/g.json", "DGL_IP_CONFIG": "ip_config.txt",
        "DGL_GRAPH_FORMAT": "csc", "DGL_NUM_SERVER": "1", "DGL_NUM_CLIENT": str(trainers * (1 + samplers)),
        "DGL_NUM_SAMPLER": str(samplers), "DGL_KEEP_ALIVE": "0"}


def _environment(folder, more):
    path = os.pathsep.join(filter(None, [str(folder / "site"), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "OMP_NUM_THREADS": "1", "DGLBACKEND": "pytorch", "GRAPHWIRE": PROGRAM, "PYTHONPATH": path,
            **more}


def run(words, folder, **environment):
    """Runs a command and returns its output. If it fails, the comparison ends."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=1800,
                          env=_environment(folder, environment))
    if done.returncode:
        sys.exit(f"{folder.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def prepare(folder, system, script, text, arrays, hosts=("127.0.0.1",)):
    """Makes a workspace with a part for each host, the list of hosts, and the script. Python looks for modules in its
    folder site/ first."""
    for name in ("code", "site"):
        (folder / name).mkdir(parents=True)
    (folder / "code" / script).write_text(text)
    (folder / "ip_config.txt").write_text("".join(f"{host} 30050\n" for host in hosts))
    np.savez(folder / "arrays.npz", **arrays)
    install = "from graphwire.dgl import install; install()" if system == "Graphwire" else ""
    run([sys.executable, "-c", PARTITION.format(install=install), "arrays.npz", str(len(hosts))], folder)


def job(folder, system, script, samplers):
    """Runs code/SCRIPT with its arguments and returns its output."""
    command = f"{sys.executable} code/{script}"
    if system == "DGL":
        return run([*OWN_NETWORK, "sh", "-c", DGL_JOB.format(script=command)], folder, **_dgl_environment(1, samplers))
    seen = [f"GRAPHWIRE_BUILD={os.environ['GRAPHWIRE_BUILD']}"] if "GRAPHWIRE_BUILD" in os.environ else []
    return run([*OWN_NETWORK, sys.executable, str(TOP / "deploy/launch.py"), "--workspace", str(folder),
                "--num_trainers", "1", "--num_samplers", str(samplers), "--num_servers", "1", "--num_omp_threads", "1",
                "--part_config", "data/g.json", "--ip_config", "ip_config.txt", "--scheduler", "local",
                *[word for one in seen for word in ("--extra_envs", one)], "--program", PROGRAM, command],
               folder, HOME=str(folder))


@contextlib.contextmanager
def two_hosts() -> Iterator[None]:
    """A context with the network namespaces of job_on_hosts."""
    program = str(Path(__file__).with_name("two_hosts.sh"))
    subprocess.run([program, "down"], check=True)
    subprocess.run([program, "up"], check=True)
    try:
        yield
    finally:
        subprocess.run([program, "down"], check=True)


def _host_job(folder, system, script, host, trainers):
    """Returns the shell script that a host runs, and its environment."""
    environment = {"WORLD_SIZE": str(trainers * len(HOSTS)), "MASTER_ADDR": HOSTS[0], "MASTER_PORT": "29500",
                   "GLOO_SOCKET_IFNAME": f"gwv{host}"}
    numbers = {"host": host, "first": trainers * host, "last": trainers - 1}
    if system == "DGL":
        command = f"{sys.executable} code/{script}"
        return HOST_JOB.format(server=f"(DGL_ROLE=server DGL_SERVER_ID={host} {command})", ready=":",
                               trainer=f"DGL_ROLE=client {command}", end=":", **numbers), {
                                   **environment, **_dgl_environment(trainers * len(HOSTS), 0)}
    runtime = folder / f"runtime{host}"
    shutil.rmtree(runtime, ignore_errors=True)
    runtime.mkdir(mode=0o700)
    server = (f"{shlex.quote(PROGRAM)} serve --part-config data/g.json --part {host} --insecure "
              f"--listen {HOSTS[host]}:30050")
    ready = f"until grep -q '^serving part' server{host}.log; do kill -0 $server || exit 1; sleep 0.1; done"
    return HOST_JOB.format(server=server, ready=ready, end="kill $server",
                           trainer=f"{sys.executable} -m graphwire.dgl code/{script}", **numbers), {
        **environment, "GRAPHWIRE_PART_CONFIG": str(folder / "data/g.json"), "GRAPHWIRE_JOB": "peers",
        "GRAPHWIRE_IP_CONFIG": str(folder / "ip_config.txt"), "XDG_RUNTIME_DIR": str(runtime)}


def job_on_hosts(folder, system, script, trainers=1):
    """Runs code/SCRIPT in trainers on each host, and returns what those of the first host printed. After a failure no
    process remains."""
    jobs = []
    try:
        for host in range(len(HOSTS)):
            text, environment = _host_job(folder, system, script, host, trainers)
            with open(folder / f"trainer{host}.log", "w") as log:
                jobs.append(subprocess.Popen(
                    ["ip", "netns", "exec", f"gwh{host}", "unshare", "-m", "bash", "-c", text], cwd=folder, stdout=log,
                    stderr=log, env=_environment(folder, environment), start_new_session=True))
        ends = [one.wait(timeout=1800) for one in jobs]
    finally:
        for one in jobs:
            if one.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)
                one.wait()
    logs = [(folder / f"trainer{host}.log").read_text() for host in range(len(HOSTS))]
    for host, end in enumerate(ends):
        if end:
            sys.exit(f"{folder.name}: a trainer of host {host} ended with {end}: {logs[host][-2000:]}")
    return logs[0]


def rounds(count):
    """A list of (number, systems) for each round. The order of the systems is reversed in every second round."""
    return [(number, SYSTEMS[:: 1 if number % 2 else -1]) for number in range(count)]


def factors(graphwire, dgl):
    """A text "median (least to most)" of the ratios of DGL's times to Graphwire's in each round."""
    ratios = [its / own for own, its in zip(graphwire, dgl)]
    return f"{statistics.median(ratios):.2f} x ({min(ratios):.2f} to {max(ratios):.2f})"
