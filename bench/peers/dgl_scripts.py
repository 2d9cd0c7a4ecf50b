"""DGL's own training script over Graphwire, and over DGL: accuracy, and the time that it prints for its batches.

  python bench/peers/dgl_scripts.py SCRIPTS cora|facebook DATA [RUNS]

SCRIPTS has DGL's train_dist.py, DATA cora/cora.npz or facebook/facebook.npz. This Python has torch, graphwire, and DGL
1.1.3 with what the script imports. Each of RUNS (10) rounds trains twice, in turn: one server and one trainer with no
samplers, on a loopback network of their own; the script draws other weights and batches each time. Over Graphwire it
is unmodified, started by deploy/launch.py; over DGL one line is another, since its initialize() has lost arguments.
Prints a JSON object for each run, and the means. Needs root.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TOP = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GRAPHWIRE", str(TOP / "build/release/graphwire"))
TRAINING = {"cora": "--num_epochs 100 --batch_size 1000 --lr 0.01 --eval_every 100",
            "facebook": "--num_epochs 30 --batch_size 1000 --lr 0.01 --eval_every 30"}
SCRIPT = "python code/train_dist.py --graph_name g --ip_config ip_config.txt --num_servers 1 --num_workers 0 " \
         "--close_profiler --log_every 1000 "
OWN_NETWORK = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
PARTITION = """
import sys
import numpy as np, torch
{install}
import dgl
with np.load(sys.argv[1]) as arrays:
    ends = torch.from_numpy(arrays["src"]), torch.from_numpy(arrays["dst"])
    graph = dgl.graph(ends, num_nodes=len(arrays["labels"]))
    for name in ("features", "labels", "train_mask", "val_mask", "test_mask"):
        graph.ndata[name] = torch.from_numpy(arrays[name])
dgl.distributed.partition_graph(graph, "g", 1, "data", part_method="random")
"""
DGL_JOB = """(DGL_ROLE=server DGL_SERVER_ID=0 {script}) >server.log 2>&1 & server=$!
DGL_ROLE=client RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 {script}; status=$?
kill $server 2>/dev/null; wait; exit $status"""
DGL_ENVIRONMENT = {
    "DGL_DIST_MODE": "distributed", "DGL_CONF_PATH": "data/g.json", "DGL_IP_CONFIG": "ip_config.txt",
    "DGL_GRAPH_FORMAT": "csc", "DGL_NUM_SERVER": "1", "DGL_NUM_CLIENT": "1", "DGL_NUM_SAMPLER": "0",
    "DGL_KEEP_ALIVE": "0"}


def arrays_of(task, data):
    """Edges in both directions, and columns as the script names them. Facebook's rows are projected into 100."""
    random = np.random.default_rng(1)
    with np.load(Path(data, task, f"{task}.npz")) as given:
        labels = given["y"].astype(np.int64)
        masks = np.zeros((3, len(labels)), bool)
        if task == "cora":
            src, dst, rows = given["src"], given["dst"], given["x"].astype(np.float32)
            rows /= np.maximum(1, rows.sum(1, keepdims=True))
            for mask, name in zip(masks, ("train_idx", "val_idx", "test_idx")):
                mask[given[name]] = True
        else:
            src, dst = (np.concatenate(pair) for pair in ((given["src"], given["dst"]), (given["dst"], given["src"])))
            ends = given["x_indptr"]
            projected = random.standard_normal((int(given["x_dim"]), 100))
            rows = np.add.reduceat(projected[given["x_indices"]], ends[:-1]) / np.sqrt(np.diff(ends))[:, None]
            cuts = [len(labels) * 6 // 10, len(labels) * 8 // 10]
            for mask, ids in zip(masks, np.split(random.permutation(len(labels)), cuts)):
                mask[ids] = True
    return {"src": src.astype(np.int64), "dst": dst.astype(np.int64), "features": rows.astype(np.float32),
            "labels": labels, **dict(zip(("train_mask", "val_mask", "test_mask"), masks))}


def run(words, folder, **environment):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=1800,
                          env={**os.environ, "OMP_NUM_THREADS": "1", "DGLBACKEND": "pytorch", "GRAPHWIRE": PROGRAM,
                               **environment})
    if done.returncode:
        sys.exit(f"{folder.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def prepare(folder, system, scripts, arrays):
    """A workspace with one part, the list of hosts, and the script."""
    (folder / "code").mkdir(parents=True)
    text = Path(scripts, "train_dist.py").read_text()
    if system == "DGL":
        text = text.replace("initialize(args.ip_config, args.num_servers, num_workers=args.num_workers)",
                            "initialize(args.ip_config)")
    (folder / "code/train_dist.py").write_text(text)
    (folder / "ip_config.txt").write_text("127.0.0.1 30050\n")
    np.savez(folder / "arrays.npz", **arrays)
    install = "from graphwire.dgl import install; install()" if system == "Graphwire" else ""
    run([sys.executable, "-c", PARTITION.format(install=install), "arrays.npz"], folder)


def train(folder, system, task):
    script = SCRIPT.replace("python", sys.executable, 1) + TRAINING[task]
    if system == "DGL":
        text = run([*OWN_NETWORK, "sh", "-c", DGL_JOB.format(script=script)], folder, **DGL_ENVIRONMENT)
    else:
        text = run([*OWN_NETWORK, sys.executable, str(TOP / "deploy/launch.py"), "--workspace", str(folder),
                    "--num_trainers", "1", "--num_samplers", "0", "--num_servers", "1", "--num_omp_threads", "1",
                    "--part_config", "data/g.json", "--ip_config", "ip_config.txt", "--scheduler", "local",
                    "--program", PROGRAM, script], folder, HOME=str(folder))
    epochs = [list(map(float, found)) for found in re.findall(
        r"Epoch Time\(s\): ([0-9.]+), sample\+data_copy: ([0-9.]+)", text)]
    return {"system": system, "accuracy": float(re.findall(r"Test Acc ([0-9.]+)", text)[-1]),
            "epoch_s": statistics.median(one[0] for one in epochs),
            "sample_copy_s": statistics.median(one[1] for one in epochs)}


def main():
    scripts, task, data = sys.argv[1:4]
    found = {"Graphwire": [], "DGL": []}
    with tempfile.TemporaryDirectory(prefix="gwdgl-") as place:
        arrays = arrays_of(task, data)
        for system in found:
            prepare(Path(place, system), system, scripts, arrays)
        for number in range(int(sys.argv[4]) if len(sys.argv) > 4 else 10):
            for system in list(found)[:: 1 if number % 2 else -1]:
                found[system].append(train(Path(place, system), system, task))
                print(json.dumps({"task": task, "run": number, **found[system][-1]}), flush=True)
                shutil.rmtree(Path(place, system, "logs"), ignore_errors=True)
    for system, runs in found.items():
        scores = [one["accuracy"] for one in runs]
        print(f"{task}, {system}: accuracy {statistics.mean(scores):.4f} +- "
              f"{statistics.stdev(scores) if len(scores) > 1 else 0:.4f}; medians of an epoch "
              f"{statistics.median(one['epoch_s'] for one in runs):.3f} s, of it sampling and copying "
              f"{statistics.median(one['sample_copy_s'] for one in runs):.3f} s")


if __name__ == "__main__":
    main()
