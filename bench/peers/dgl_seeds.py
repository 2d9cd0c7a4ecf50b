"""Compares the scores of typed graphs' training over Graphwire and over DGL, and the times of epochs, on generated
graphs.

  python bench/peers/dgl_seeds.py rgcn|graphstorm --dgl FOLDER [--seeds 5] [--first-seed 0] [--hosts 1|2]
      [--trainers N] [--times 4] [--script FILE] [--old-script FILE] [--check]
      [--tasks nc,infer,lp,lp-exclude,ec] [--folder DIR] [--systems NAME,…]

rgcn        test/adapters/rgcn.py; or --script, which is rgcn/experimental/entity_classify_dist.py of DGL 1.1.3, and
            --old-script, the one of DGL 0.6, which DGL 1.1.3 itself no longer runs. Over DGL, over Graphwire with
            DGL's layers, and over Graphwire without dgl.
graphstorm  GraphStorm's node classification, inference with the saved model, link prediction and edge classification,
            over DGL and over Graphwire. --times: the size of its graph, times 1200 users. lp-exclude: link prediction
            with GraphStorm's default, which excludes training targets from the blocks.

In each of --seeds rounds the systems run one after the other: standalone, or with --hosts 2 over two servers, with
--trainers (1) trainers on each host (network namespaces, see two_hosts.sh; root). --systems selects some of them.

The Python that runs this file has torch, graphwire, and what the scripts import, but not dgl: that and graphstorm are
in --dgl, folders joined by ":". Prints a JSON object for each run, and each system's scores. With --check the exit
status is 1 if a system's mean score is outside DGL's scores by more than half of their spread; an old script's must not
be below them by more. --folder keeps the graphs and the results for further rounds, which are added to them; --seeds 0
makes the graphs only.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
from pathlib import Path

from dgl_bed import HOSTS, TOP, job_on_hosts, run, two_hosts

PROGRAM = """import os, random, runpy, sys
import dgl, numpy, torch
seed = int(sys.argv[1]) + 1000 * int(os.environ.get("RANK", 0))
for sow in (random.seed, numpy.random.seed, torch.manual_seed, dgl.seed):
    sow(seed)
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
RGCN = f"{TOP}/test/adapters/rgcn.py --graph_name g --part_config data/g.json --ip_config ip_config.txt --epochs 10"
OF_DGL = ("--graph-name g --conf-path data/g.json --ip-config ip_config.txt --dataset none --n-epochs 10 --lr 0.01 "
          "--n-hidden 32 --n-bases 3 --fanout 6,6 --batch-size 60 --sparse-embedding --dgl-sparse --use-self-loop")
STORM = {"nc": "gsgnn_np/gsgnn_np.py --cf nc.yaml --save-model-path model --topk-model-to-save 1",
         "infer": "gsgnn_np/np_infer_gnn.py --inference --cf nc.yaml --restore-model-path {model} "
                  "--save-prediction-path predictions",
         # DGL 1.1.3 does not exclude training targets from a DistGraph's draws, and Graphwire does
         "lp": "gsgnn_lp/gsgnn_lp.py --cf lp.yaml --num-epochs 3 --exclude-training-targets false",
         "lp-exclude": "gsgnn_lp/gsgnn_lp.py --cf lp.yaml --num-epochs 3",
         "ec": "gsgnn_ep/gsgnn_ep.py --cf ec.yaml --num-epochs 3"}


class System:
    """A folder with parts of the graph, and how programs run over it. dgl: a path of folders with dgl, or nothing."""

    def __init__(self, place, name, hosts, dgl):
        self.name, self.hosts, self.folder = name, hosts, Path(place, name.replace(" ", "-"))
        self.kind = "DGL" if name == "DGL" else "Graphwire"
        self.new = not self.folder.exists()
        if self.new:
            self._make(dgl)

    def _make(self, dgl):
        (self.folder / "site").mkdir(parents=True)
        for folder in dgl.split(":") if dgl else []:
            for one in Path(folder).iterdir():
                if not (self.folder / "site" / one.name).exists():  # an earlier folder has precedence
                    (self.folder / "site" / one.name).symlink_to(one)
        (self.folder / "code").mkdir()
        (self.folder / "code/program.py").write_text(PROGRAM)
        (self.folder / "ip_config.txt").write_text("".join(f"{host} 30050\n" for host in HOSTS[:self.hosts]))

    def alone(self, words):
        """Runs a program, in one process. Returns its output; GraphStorm's scores are on stderr."""
        over = [] if self.kind == "DGL" else ["-m", "graphwire.dgl"]
        return run(["sh", "-c", 'exec "$@" 2>&1', "sh", sys.executable, "-W", "ignore", *over, *words.split()],
                   self.folder)

    def train(self, words, trainers):
        if self.hosts == 1:
            return self.alone(f"code/program.py {words}")
        return job_on_hosts(self.folder, self.kind, f"program.py {words}", trainers)


def found_in(text, score, epoch):
    """The last score that matches, and the median time of an epoch after the first."""
    times = [float(one) for one in re.findall(epoch, text)]
    scores = re.findall(score, text)
    if not scores:
        sys.exit(f"no score in: {text[-2000:]}")
    return {"score": round(float(scores[-1]), 4)} | ({"epoch_s": statistics.median(times[1:])} if times[1:] else {})


def rgcn(args, system, seed):
    """The runs of one round: (name, result)."""
    alone = " --standalone" if system.hosts == 1 else ""
    if not args.script and not args.old_script:
        text = system.train(f"{RGCN} --seed {seed}{alone}", args.trainers)
        yield "rgcn.py", found_in(text, r"test accuracy ([0-9.]+)", r"no times")
    for name, script in (("new", args.script), ("old", args.old_script)):
        if script and not (name == "old" and system.kind == "DGL"):
            text = system.train(f"{Path(script).resolve()} {OF_DGL}{alone}", args.trainers)
            yield f"{name} script", found_in(text, r"Test Acc ([0-9.]+)", r"\[0\]Epoch Time\(s\): ([0-9.]+)")


def storm(args, system, seed):
    """Likewise. GraphStorm's programs have no option for a seed, so program.py sets it."""
    scripts = os.path.dirname(next(Path(one, "graphstorm/run/launch.py") for one in args.dgl.split(":")
                                   if Path(one, "graphstorm").exists()))
    more = "" if system.hosts == 1 else " --ip-config ip_config.txt"
    shutil.rmtree(system.folder / "model", ignore_errors=True)
    for task in args.tasks.split(","):
        words = STORM[task]
        if task == "infer":
            words = words.format(model=next((system.folder / "model").glob("epoch-*")).relative_to(system.folder))
        text = system.train(f"{seed} {scripts}/{words} --part-config data/g.json{more}", args.trainers)
        score = r"\| Test accuracy: ([0-9.]+)" if task == "infer" else r"best_test_score: \{'\w+': ([0-9.]+)\}"
        yield task, found_in(text, score, r"Epoch \d+ take ([0-9.]+) seconds")


def made(args, place):
    """The systems, each with its parts."""
    names = ["DGL", "Graphwire"] + (["Graphwire without dgl"] if args.what == "rgcn" else [])
    systems = [System(place, name, args.hosts, "" if name.endswith("without dgl") else args.dgl) for name in names]
    for system in [one for one in systems if one.new]:
        if args.what == "rgcn":
            system.alone(f"{TOP}/test/adapters/papers.py data {args.hosts}")
        else:
            system.alone(f"{TOP}/test/slow/soak/graphstorm_bed.py graph . {args.hosts} {args.times}")
            (system.folder / "g").rename(system.folder / "data")
    return systems


def report(results, check):
    """Prints the scores and the ratios of times. Returns whether all means are as DGL's."""
    good = True
    for (task, name), runs in sorted(results.items()):
        scores, theirs = [one["score"] for one in runs], results.get((task, "DGL"))
        line = f"{task}, {name}: {statistics.mean(scores):.4f} ({min(scores):.4f} to {max(scores):.4f})"
        of_dgl = [one["score"] for (its, system), those in results.items() for one in those
                  if system == "DGL" and (theirs is None or its == task)]
        if of_dgl and theirs is not runs:
            low, high = min(of_dgl), max(of_dgl) if theirs else 1  # an old script may be better
            more = (max(of_dgl) - low) / 2
            good = good and low - more <= statistics.mean(scores) <= high + more
            if not low <= statistics.mean(scores) <= high:
                line += f", not within {low:.4f} to {high:.4f}"
        if theirs and theirs is not runs and "epoch_s" in runs[0]:
            ratios = [its["epoch_s"] / own["epoch_s"] for own, its in zip(runs, theirs)]
            line += (f"; DGL's time of an epoch over its own {statistics.median(ratios):.2f} "
                     f"({min(ratios):.2f} to {max(ratios):.2f})")
        print(line, flush=True)
    return good or not check


def check(parser, args):
    """Ends the program with one line, unless the arguments name packages and tasks that exist."""
    needed = ["dgl"] + (["graphstorm/run/launch.py"] if args.what == "graphstorm" else [])
    for name in needed:
        if not any(Path(folder, name).exists() for folder in args.dgl.split(":")):
            parser.error(f"--dgl {args.dgl}: no folder has {name}: pip install --no-deps --target FOLDER installs it")
    tasks = args.tasks.split(",")
    for task in tasks:
        if task not in STORM:
            parser.error(f"--tasks: {task!r} is not one of {', '.join(STORM)}")
    if "infer" in tasks and "nc" not in tasks[:tasks.index("infer")]:
        parser.error("--tasks: infer applies the model of nc, so nc must come before it")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("rgcn", "graphstorm"))
    parser.add_argument("--dgl", required=True)
    for name, default in (("seeds", 5), ("first-seed", 0), ("hosts", 1), ("trainers", 1), ("times", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("script", None), ("old-script", None), ("tasks", ",".join(STORM)), ("folder", None),
                          ("systems", None)):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    args.dgl = ":".join(str(Path(folder).resolve()) for folder in args.dgl.split(":"))  # programs run in other folders
    check(parser, args)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # trainers are ended
    network = two_hosts() if args.hosts > 1 else contextlib.nullcontext()
    with network, tempfile.TemporaryDirectory(prefix="gwdgl-") as place:
        place = Path(args.folder or place).resolve()
        systems = made(args, place)
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            for system in systems[:: -1 if seed % 2 else 1]:
                if args.systems and system.name not in args.systems.split(","):
                    continue
                for task, found in (rgcn if args.what == "rgcn" else storm)(args, system, seed):
                    row = json.dumps({"task": task, "system": system.name, "hosts": args.hosts, "seed": seed, **found})
                    print(row, flush=True)
                    with open(place / "results.jsonl", "a") as file:
                        file.write(f"{row}\n")
        results = {}
        for row in (place / "results.jsonl").read_text().splitlines() if args.seeds else []:
            row = json.loads(row)
            results.setdefault((row["task"], row["system"]), {})[row["seed"]] = row
        sys.exit(not report({key: [by[seed] for seed in sorted(by)] for key, by in results.items()}, args.check))


if __name__ == "__main__":
    main()
