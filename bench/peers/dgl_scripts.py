"""Compares DGL's own training script over Graphwire and over DGL: accuracy, and the times that the script prints.

  python bench/peers/dgl_scripts.py SCRIPTS cora|facebook DATA [ROUNDS] [--samplers N] [--splits N] [--hosts 2]

The folder SCRIPTS has DGL's train_dist.py, the folder DATA has cora/cora.npz or facebook/facebook.npz. The Python that
runs this file must have torch, graphwire, DGL 1.1.3 and the script's other imports.

Each of ROUNDS (10) rounds trains over both systems, one after the other: with one server and one trainer in a separate
network namespace, and --samplers (0); or, with --hosts 2, with a part, a server and a trainer on each of two hosts
(network namespaces, see two_hosts.sh), without samplers. The script draws new weights and batches each time. Round r
trains on split r modulo --splits (1). Cora's first split is the public one; the others are drawn, with the same sizes.

Over Graphwire the script is unmodified. deploy/launch.py starts it; on two hosts it is started in the same way. Over
DGL one line of the script is changed, because initialize() of DGL 1.1.3 lacks some of the arguments.

Without samplers, dgl_times.py also measures the floor, the time of the code that both systems share: dgl.to_block and
the lines of the script's collate function. Prints a JSON object for each run, the mean accuracy, the ratio of DGL's
time for sampling and copying to Graphwire's (with the floor and without), and the number of rounds in which Graphwire's
epochs were faster. Needs root.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import statistics
import tempfile
from pathlib import Path

import numpy as np
from dgl_bed import HOSTS, SYSTEMS, factors, job, job_on_hosts, prepare, rounds, two_hosts

TRAINING = {"cora": "--num_epochs 100 --batch_size 1000 --lr 0.01 --eval_every 100",
            "facebook": "--num_epochs 30 --batch_size 1000 --lr 0.01 --eval_every 30"}
SCRIPT = "train_dist.py --graph_name g --ip_config ip_config.txt --num_servers 1 --close_profiler --log_every 1000"


def masks_of(task, given, count, seed):
    """Masks of training, validation and test. Cora's split 0 is the public one."""
    random = np.random.default_rng(seed + 1)
    masks = np.zeros((3, count), bool)
    if task == "cora":
        splits = [given[name] for name in ("train_idx", "val_idx", "test_idx")]
        if seed:
            splits = np.split(random.permutation(count), np.cumsum([len(ids) for ids in splits]))[:3]
    else:
        splits = np.split(random.permutation(count), [count * 6 // 10, count * 8 // 10])
    for mask, ids in zip(masks, splits):
        mask[ids] = True
    return masks


def arrays_of(task, data, seed):
    """Edges in both directions, and columns under the script's names. Facebook's rows are projected to 100 columns."""
    with np.load(Path(data, task, f"{task}.npz")) as given:
        labels = given["y"].astype(np.int64)
        if task == "cora":
            src, dst, rows = given["src"], given["dst"], given["x"].astype(np.float32)
            rows /= np.maximum(1, rows.sum(1, keepdims=True))
        else:
            src, dst = (np.concatenate(pair) for pair in ((given["src"], given["dst"]), (given["dst"], given["src"])))
            ends = given["x_indptr"]
            projected = np.random.default_rng(0).standard_normal((int(given["x_dim"]), 100))
            rows = np.add.reduceat(projected[given["x_indices"]], ends[:-1]) / np.sqrt(np.diff(ends))[:, None]
        masks = masks_of(task, given, len(labels), seed)
    return {"src": src.astype(np.int64), "dst": dst.astype(np.int64), "features": rows.astype(np.float32),
            "labels": labels, **dict(zip(("train_mask", "val_mask", "test_mask"), masks))}


def script_of(system, scripts):
    """The text of the script; for DGL, with the changed line."""
    text = Path(scripts, "train_dist.py").read_text()
    if system == "DGL":
        line = "initialize(args.ip_config, args.num_servers, num_workers=args.num_workers)"
        assert line in text
        text = text.replace(line, "initialize(args.ip_config)")
    return text


def train(folder, system, task, samplers, hosts):
    times = folder / "site/times.json"
    times.unlink(missing_ok=True)
    script = f"{SCRIPT} --num_workers {samplers} {TRAINING[task]}"
    text = job_on_hosts(folder, system, script) if hosts > 1 else job(folder, system, script, samplers)
    shutil.rmtree(folder / "logs", ignore_errors=True)
    epochs = [list(map(float, found)) for found in re.findall(
        r"Epoch Time\(s\): ([0-9.]+), sample\+data_copy: ([0-9.]+)", text)]
    found = {"system": system, "accuracy": float(re.findall(r"Test Acc ([0-9.]+)", text)[-1]),
             "epoch_s": statistics.median(one[0] for one in epochs),
             "sample_copy_s": statistics.median(one[1] for one in epochs)}
    if samplers == 0:
        parts = json.loads(times.read_text())["epochs"]
        assert len(parts) == len(epochs)
        found["floor_s"] = statistics.median(one["collate"] - one["neighbours"] - one["rows"] for one in parts)
        found |= {f"{word}_s": statistics.median(one[word] for one in parts) for word in parts[0]}
    return {name: value if isinstance(value, str) else round(value, 6) for name, value in found.items()}


def report(task, samplers, found):
    """Prints the mean accuracy, the median times, and the ratios of the rounds."""
    def every(system, word):
        return [one[word] for one in found[system]]

    for system in SYSTEMS:
        scores = every(system, "accuracy")
        print(f"{task}, {system}: accuracy {statistics.mean(scores):.4f} +- "
              f"{statistics.stdev(scores) if len(scores) > 1 else 0:.4f}; medians of an epoch "
              f"{statistics.median(every(system, 'epoch_s')):.3f} s, of it sampling and copying "
              f"{statistics.median(every(system, 'sample_copy_s')):.4f} s")
        if samplers == 0:
            print(f"  of that the shared floor {statistics.median(every(system, 'floor_s')):.4f} s (dgl.to_block "
                  f"{statistics.median(every(system, 'to_block_s')):.4f} s), neighbours "
                  f"{statistics.median(every(system, 'neighbours_s')):.4f} s, rows "
                  f"{statistics.median(every(system, 'rows_s')):.4f} s")
    print(f"DGL over Graphwire, medians of rounds (least to most), {samplers} samplers: sampling and copying "
          f"{factors(*(every(system, 'sample_copy_s') for system in SYSTEMS))}")
    if samplers == 0:
        bare = [[whole - floor for whole, floor in zip(every(system, "sample_copy_s"), every(system, "floor_s"))]
                for system in SYSTEMS]
        print(f"  without the floor {factors(*bare)}")
    ends = [every(system, "epoch_s") for system in SYSTEMS]
    print(f"  end to end, an epoch {factors(*ends)}: Graphwire faster in {sum(a < b for a, b in zip(*ends))} of "
          f"{len(ends[0])} rounds")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scripts")
    parser.add_argument("task", choices=TRAINING)
    parser.add_argument("data")
    parser.add_argument("rounds", nargs="?", type=int, default=10)
    parser.add_argument("--samplers", type=int, default=0)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--hosts", type=int, choices=(1, 2), default=1)
    parser.add_argument("--epochs", type=int, help="fewer, for a try")
    args = parser.parse_args()
    if args.epochs:
        TRAINING[args.task] += f" --num_epochs {args.epochs} --eval_every {args.epochs}"
    if args.hosts > 1 and args.samplers:
        parser.error("--hosts 2 is without samplers")
    found = {system: [] for system in SYSTEMS}
    network = two_hosts() if args.hosts > 1 else contextlib.nullcontext()
    with network, tempfile.TemporaryDirectory(prefix="gwdgl-") as place:
        for seed in range(min(args.splits, args.rounds)):
            arrays = arrays_of(args.task, args.data, seed)
            for system in SYSTEMS:
                folder = Path(place, f"{system}{seed}")
                prepare(folder, system, "train_dist.py", script_of(system, args.scripts), arrays,
                        *([HOSTS] if args.hosts > 1 else []))
                shutil.copy(Path(__file__).with_name("dgl_times.py"), folder / "site/sitecustomize.py")
        for number, systems in rounds(args.rounds):
            for system in systems:
                seed = number % args.splits
                folder = Path(place, f"{system}{seed}")
                found[system].append(train(folder, system, args.task, args.samplers, args.hosts))
                print(json.dumps({"task": args.task, "round": number, "split": seed, "samplers": args.samplers,
                                  "hosts": args.hosts, **found[system][-1]}), flush=True)
    report(args.task, args.samplers, found)


if __name__ == "__main__":
    main()
