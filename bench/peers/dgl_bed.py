"""What dgl_scripts.py and dgl_embeddings.py share: a workspace of each system, one part of a graph, and a script of
DGL's run over it by one server and one trainer on a loopback network of their own: over Graphwire by deploy/launch.py,
over DGL 1.1.3 as its launcher would start it. Needs root.
"""
from __future__ import annotations

import os
import statistics
import subprocess
import sys
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
dgl.distributed.partition_graph(graph, "g", 1, "data", part_method="random")
"""
# The server ends with its clients. One that does not is killed: DGL's handler of SIGTERM may wait for ever.
DGL_JOB = """(DGL_ROLE=server DGL_SERVER_ID=0 {script}) >server.log 2>&1 & server=$!
DGL_ROLE=client RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 {script}; status=$?
for i in $(seq 100); do kill -0 $server 2>/dev/null || break; sleep 0.1; done
kill -9 $server 2>/dev/null; wait; exit $status"""


def _dgl_environment(samplers):
    return {
        "DGL_DIST_MODE": "distributed", "DGL_CONF_PATH": "data/g.json", "DGL_IP_CONFIG": "ip_config.txt",
        "DGL_GRAPH_FORMAT": "csc", "DGL_NUM_SERVER": "1", "DGL_NUM_CLIENT": str(1 + samplers),
        "DGL_NUM_SAMPLER": str(samplers), "DGL_KEEP_ALIVE": "0"}


def run(words, folder, **environment):
    """What a command prints; its failure ends the comparison."""
    path = os.pathsep.join(filter(None, [str(folder / "site"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=1800,
                          env={**os.environ, "OMP_NUM_THREADS": "1", "DGLBACKEND": "pytorch", "GRAPHWIRE": PROGRAM,
                               "PYTHONPATH": path, **environment})
    if done.returncode:
        sys.exit(f"{folder.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def prepare(folder, system, script, text, arrays):
    """A workspace with one part, the list of hosts, and the script. site/ comes first where its Pythons import from."""
    for name in ("code", "site"):
        (folder / name).mkdir(parents=True)
    (folder / "code" / script).write_text(text)
    (folder / "ip_config.txt").write_text("127.0.0.1 30050\n")
    np.savez(folder / "arrays.npz", **arrays)
    install = "from graphwire.dgl import install; install()" if system == "Graphwire" else ""
    run([sys.executable, "-c", PARTITION.format(install=install), "arrays.npz"], folder)


def job(folder, system, script, samplers):
    """Runs code/SCRIPT with its arguments; what it prints."""
    command = f"{sys.executable} code/{script}"
    if system == "DGL":
        return run([*OWN_NETWORK, "sh", "-c", DGL_JOB.format(script=command)], folder, **_dgl_environment(samplers))
    seen = [f"GRAPHWIRE_BUILD={os.environ['GRAPHWIRE_BUILD']}"] if "GRAPHWIRE_BUILD" in os.environ else []
    return run([*OWN_NETWORK, sys.executable, str(TOP / "deploy/launch.py"), "--workspace", str(folder),
                "--num_trainers", "1", "--num_samplers", str(samplers), "--num_servers", "1", "--num_omp_threads", "1",
                "--part_config", "data/g.json", "--ip_config", "ip_config.txt", "--scheduler", "local",
                *[word for one in seen for word in ("--extra_envs", one)], "--program", PROGRAM, command],
               folder, HOME=str(folder))


def rounds(count):
    """(number, systems in turn): the order turns round from one round to the next."""
    return [(number, SYSTEMS[:: 1 if number % 2 else -1]) for number in range(count)]


def factors(graphwire, dgl):
    """"median (least to most)" of what each round says."""
    ratios = [its / own for own, its in zip(graphwire, dgl)]
    return f"{statistics.median(ratios):.2f} x ({min(ratios):.2f} to {max(ratios):.2f})"
