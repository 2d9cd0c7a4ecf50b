#!/usr/bin/env python3
"""Compares the methods of `graphwire partition`: edges cut, balance, processor time and peak memory.

    python3 bench/partitioners.py --graph cnr=cnr/ --scale 20 --parts 2,4,8,64 --python venv/bin/python

Each run is a process of its own on a graph of one part, which --graph names or --scale generates (R-MAT, 16 edges a
node). Seconds are of the processors, of the program and of the method's process together, so a busy machine changes
them little; the memory is the peak of the larger of the two processes, mapped files included. A line of a Markdown
table for each graph and number of parts has "cut of all edges, %; seconds; MiB" of each method. "-": the method refuses
the graph, or its module is missing. --balance-edges balances edges too.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

METHODS = ("metis", "lp", "kaminpar", "random")


def run(program, words):
    """The report of a run, and its seconds of the processors; None if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (json.loads(done.stdout), seconds) if done.returncode == 0 else None


def cell(program, graph, parts, method, options, folder):
    found = run(program, ["partition", graph, "--num-parts", parts, "--method", method, "--json", "--replace", *options,
                          "--out", os.path.join(folder, "parts")])
    if found is None:
        return "-"
    report, seconds = found
    peak = max(report["peak_bytes"], report.get("peak_process_bytes", 0)) / 2**20
    edges = f" ({report['balance']['edges']:.2f})"
    return f"{100 * report['cut_share']:.2f}{edges}; {seconds:.1f}; {peak:.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("GRAPHWIRE", "build/release/graphwire"))
    parser.add_argument("--python", default=sys.executable, help="has the module kaminpar")
    parser.add_argument("--graph", action="append", default=[], help="NAME=FOLDER; may be repeated")
    parser.add_argument("--scale", type=int, action="append", default=[], help="of an R-MAT graph (default 20)")
    parser.add_argument("--parts", default="2,4,8,64")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--balance-edges", action="store_true")
    parser.add_argument("--memory", help="--memory of partition")
    args = parser.parse_args()
    methods = args.methods.split(",")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        graphs = dict(word.split("=", 1) for word in args.graph)
        for scale in args.scale or ([] if graphs else [20]):
            graphs[f"R-MAT {scale} x 16"] = os.path.join(folder, str(scale))
            subprocess.run([args.program, "generate", "rmat", "--quiet", "--scale", str(scale), "--out",
                            graphs[f"R-MAT {scale} x 16"]], check=True)
        print("| graph | parts |", " | ".join(methods), "|")
        print("|---" * (2 + len(methods)) + "|")
        for name, graph in graphs.items():
            for parts in args.parts.split(","):
                found = []
                for method in methods:
                    options = ["--balance-edges"] * args.balance_edges
                    options += ["--memory", args.memory] if args.memory else []
                    options += ["--python", args.python, "--threads", "1"] if method == "kaminpar" else []
                    found.append(cell(args.program, graph, parts, method, options, folder))
                print(f"| {name} | {parts} |", " | ".join(found), "|", flush=True)


if __name__ == "__main__":
    main()
