"""Compares DGL-KE 0.1.2 and gwke_train in the same minutes: triples a second of one client with one thread, the loss.

  python3 bench/peers/dglke.py DIR PYTHON38 DATA [ROUNDS]

DGL-KE needs DGL 0.4.3, which has wheels for Python 3.8 and older. PYTHON38 is a Python 3.8; an environment of it with
torch 1.7.1 is made in DIR/dglke. DATA is the folder fb15k-237 of ../shared/data. The Python that runs this file must
have graphwire. Each of ROUNDS (3) rounds trains by both systems, one after the other: TransE_l2, 400 elements, batches
of 1,000 with 200 negatives, 500 steps, with the flags of DGL-KE's guide. Prints a JSON object for each run (without the
first 100 steps), and the medians.
"""
from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

FLAGS = ("--model_name TransE_l2 --dataset fb15k237 --format raw_udd_hrt --data_files train.txt valid.txt test.txt "
         "--batch_size 1000 --neg_sample_size 200 --hidden_dim 400 --gamma 19.9 --lr 0.25 --max_step 500 "
         "--log_interval 100 -adv --regularization_coef 1e-9 --num_thread 1 --num_proc 1 --no_save_emb").split()
PACKAGES = ["numpy<1.24", "scipy", "networkx<3", "torch==1.7.1", "dgl==0.4.3.post2", "dglke==0.1.2"]
TOOK = re.compile(r"\[Train\] (\d+) steps take ([0-9.]+) seconds")
LOSS = re.compile(r"\[Train\]\(\d+/\d+\) average loss: ([0-9.]+)")


def environment(folder, python):
    """Returns the path of dglke_train. Installs DGL-KE if it is not installed yet."""
    place = folder / "dglke"
    if not (place / "ready").exists():
        subprocess.run([python, "-m", "venv", "--clear", place], check=True)
        subprocess.run([place / "bin/pip", "install", "-q", "-U", "pip"], check=True)
        subprocess.run([place / "bin/pip", "install", "-q", *PACKAGES], check=True)
        (place / "ready").touch()
    return place / "bin/dglke_train"


def write_data(folder, given):
    """Unpacks the triples, for both systems."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "valid", "test"):
        (folder / f"{name}.txt").write_bytes(gzip.decompress((given / f"{name}.tsv.gz").read_bytes()))


def train(command, folder):
    """Runs one training. Returns triples a second, without the steps of the first report, and the losses."""
    done = subprocess.run([*command, "--data_path", folder / "fb15k237", "--save_path", folder / "ckpts", *FLAGS],
                          capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "DGLBACKEND": "pytorch", "OMP_NUM_THREADS": "1"})
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    reports = [(int(steps), float(seconds)) for steps, seconds in TOOK.findall(done.stdout)][1:]
    return {"triples_per_s": round(1000 * sum(steps for steps, _ in reports) / sum(seconds for _, seconds in reports)),
            "losses": [round(float(loss), 4) for loss in LOSS.findall(done.stdout)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=Path)
    parser.add_argument("python38")
    parser.add_argument("data", type=Path)
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    args = parser.parse_args()
    if not shutil.which(args.python38):
        parser.error(f"{args.python38}: no such program; DGL-KE wants a Python 3.8")
    if not (args.data / "train.tsv.gz").exists():
        parser.error(f"{args.data}: no train.tsv.gz there")
    folder = args.dir.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    commands = {"DGL-KE": [environment(folder, args.python38)],
                "Graphwire": [sys.executable, "-m", "graphwire.kge", "train"]}
    write_data(folder / "fb15k237", args.data)
    found = {system: [] for system in commands}
    for number in range(args.rounds):
        for system in list(commands)[:: 1 if number % 2 else -1]:
            found[system].append(train(commands[system], folder))
            print(json.dumps({"system": system, "round": number, **found[system][-1]}), flush=True)
    medians = {system: statistics.median(one["triples_per_s"] for one in some) for system, some in found.items()}
    print(", ".join(f"{system} {median:,.0f} triples/s" for system, median in medians.items()),
          f"- {medians['Graphwire'] / medians['DGL-KE']:.1f} x")


if __name__ == "__main__":
    main()
