#!/usr/bin/env python3
"""Imports of more edges than the memory: the rate of each pass, and the disk's own.

    sudo python bench/import_memory.py --scale 22 --memory 256Mi --forms npy,text,names,chunks

Makes a list of R-MAT edges in each form, and imports it with --memory in a control group of this memory, 8 bytes a node
and the program. Before and after each import a bare loop writes a file in the same folder and reads it, in blocks of
4 MiB, four at a time, past the page cache; the faster of the two counts. Prints, for each pass, the bytes that it
reads and writes, its rate, what limited it, and the time that the disk needs for as many bytes as a share of the pass's
time. At the end it compares a sum over the graph's edges with the input's.

--parts N also partitions the graph by label propagation within --partition-memory, in a control group as well, and
counts the cut edges by NumPy. Exits with 1 if a sum, a count or an import is wrong.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import edge_files
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test/support"))
from control_groups import drop_page_cache, within

BLOCK = 4 << 20
AT_ONCE = 4
PROGRAM_BYTES = 64 << 20
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}
AMOUNT = r"([0-9.]+) (B|KiB|MiB|GiB|TiB)"
PASS = re.compile(rf"pass: (.*): {AMOUNT} read and {AMOUNT} written in ([^,]*), {AMOUNT}/s(?:: (.*))?")
TITLES = ("pass", "read, MB", "written, MB", "s", "MB/s", "of the disk's", "")


def size(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([KMG]i)?", text).groups()
    return int(number) * {None: 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}[unit]


def duration(text: str) -> float:
    """The seconds of "1 min 20 s", or "81.2 us"."""
    return sum(float(number) * TIMES[unit] for number, unit in re.findall("([0-9.]+) ([a-z]+)", text))


def disk_rates(folder: Path, total: int) -> tuple[float, float]:
    """Bytes a second that a bare loop reads and writes."""
    fd, name = tempfile.mkstemp(dir=folder)
    os.close(fd)
    fd = os.open(name, os.O_RDWR | os.O_DIRECT)
    os.unlink(name)
    os.posix_fallocate(fd, 0, total)
    block = mmap.mmap(-1, BLOCK * AT_ONCE)
    block.write(np.random.default_rng(0).bytes(BLOCK * AT_ONCE))
    views = [memoryview(block)[i * BLOCK:(i + 1) * BLOCK] for i in range(AT_ONCE)]

    def every(move):
        def share(thread):
            for at in range(thread * BLOCK, total, AT_ONCE * BLOCK):
                move(fd, [views[thread]], at)
        begun = time.perf_counter()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(share, range(AT_ONCE)))
        if move is os.pwritev:
            os.fsync(fd)
        return total / (time.perf_counter() - begun)

    every(os.pwritev)  # the file's first blocks are allocated, not written, in the first round
    rates = every(os.preadv), every(os.pwritev)
    os.close(fd)
    return rates


def graph_arrays(graph: Path, part: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and sources of the lists of a part."""
    lists = next((graph / f"part{part}" / "edge").glob("*/indices.npy"))
    offsets = next((graph / f"part{part}" / "node").glob("*/indptr.npy"))
    return np.load(offsets, mmap_mode="r"), np.load(lists, mmap_mode="r")


def graph_sum(graph: Path, names: bool) -> int:
    """The sum of the edges by their original ids."""
    offsets, lists = graph_arrays(graph, 0)
    offsets = offsets.reshape(-1)
    node = next((graph / "part0" / "node").iterdir())
    if names:  # node-123
        text = (node / "orig_id.bytes.npy")
        original = np.array(np.load(text).tobytes().replace(b"node-", b" ").split(), np.uint64)
    else:
        original = np.load(node / "orig_id.npy").astype(np.uint64)
    total = 0
    for first in range(0, len(lists), edge_files.PIECE):
        last = min(first + edge_files.PIECE, len(lists))
        rows = np.searchsorted(offsets, np.arange(first, last), "right") - 1
        total += edge_files.edge_sum(original[lists[first:last]], original[rows])
    return total % (1 << 64)


def counted_cut(parts: Path, count: int) -> int:
    cut = 0
    config = json.loads(next(parts.glob("*.json")).read_text())
    (ranges,) = config["node_map"].values()
    for part in range(count):
        _, lists = graph_arrays(parts, part)
        begin, end = ranges[part]
        for first in range(0, len(lists), edge_files.PIECE):
            sources = lists[first:first + edge_files.PIECE]
            cut += int(np.count_nonzero((sources < begin) | (sources >= end)))
    return cut


def limited(words: list[str], bytes_: int) -> tuple[subprocess.CompletedProcess[str], float, float]:
    """A command in a control group, its seconds, and those of the processors."""
    before, begun = os.times(), time.perf_counter()
    with within(bytes_ >> 20, "bench") as enter:
        if enter is None:
            raise SystemExit("this user can make no control group of memory")
        done = subprocess.run(words, capture_output=True, text=True, preexec_fn=enter)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return done, time.perf_counter() - begun, seconds


def one_import(args: argparse.Namespace, form: str, folder: Path) -> bool:
    source, graph = folder / "in", folder / "graph"
    source.mkdir()
    words, expected = edge_files.write(source, args.scale, args.edge_factor, form)
    drop_page_cache()
    rates = [disk_rates(folder, args.disk_bytes)]
    drop_page_cache()
    memory = size(args.memory)
    done, wall, processors = limited(
        [args.program, "import", *words, "--memory", str(memory), "--out", str(graph), *args.words],
        memory + (8 << args.scale) + PROGRAM_BYTES)
    rates.append(disk_rates(folder, args.disk_bytes))
    read, write = (max(pair) for pair in zip(*rates))
    edges = args.edge_factor << args.scale
    if done.returncode:
        print(f"{form}: {done.stderr.splitlines()[-1:]}")
        return False
    print(f"\n{form}: {edges / 1e6:.0f} M edges within {args.memory}: {wall:.1f} s, {processors:.1f} s of "
          f"the processors, {edges / processors / 1e6:.2f} M edges a processor second; the disk reads "
          f"{read / 1e6:.0f} MB/s and writes {write / 1e6:.0f}\n\n| {' | '.join(TITLES)} |\n{'|---' * len(TITLES)}|")
    runs = None
    for line in done.stderr.splitlines():
        found = PASS.fullmatch(line)
        runs = runs or re.match(r"memory: edges sorted in (\d+) runs", line)
        if found:
            moved = [float(found[i]) * UNITS[found[i + 1]] for i in (2, 4)]
            seconds = duration(found[6])
            print(f"| {found[1]} | {moved[0] / 1e6:.0f} | {moved[1] / 1e6:.0f} | {seconds:.2f} | "
                  f"{sum(moved) / seconds / 1e6:.0f} | {(moved[0] / read + moved[1] / write) / seconds:.2f} | "
                  f"{found[9] or ''} |")
    right = graph_sum(graph, form == "names") == expected
    print(f"\n{runs[1] if runs else 1} runs; {'the same edges' if right else 'OTHER EDGES than the input'}", flush=True)
    return right and (not args.parts or one_partition(args, graph, folder / "parts"))


def one_partition(args: argparse.Namespace, graph: Path, parts: Path) -> bool:
    done, wall, processors = limited(
        [args.program, "partition", str(graph), "--num-parts", str(args.parts), "--method", "lp", "--memory",
         args.partition_memory, "--json", "--out", str(parts)], size(args.partition_memory) + PROGRAM_BYTES)
    if done.returncode:
        print(f"partition: {done.stderr.splitlines()[-1:]}")
        return False
    cut, reported = counted_cut(parts, args.parts), json.loads(done.stdout)["edges_cut"]
    print(f"{args.parts} parts by lp within {args.partition_memory}: {wall:.1f} s, {processors:.1f} s of the "
          f"processors, {cut} edges cut{'' if cut == reported else f', but the program says {reported}'}", flush=True)
    return cut == reported


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("GRAPHWIRE", "build/release/graphwire"))
    parser.add_argument("--scale", type=int, default=22)
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--memory", default="256Mi")
    parser.add_argument("--forms", default=",".join(edge_files.FORMS))
    parser.add_argument("--folder", default=".", help="of the files")
    parser.add_argument("--disk-bytes", type=size, default=size("1Gi"), help="of the bare loop")
    parser.add_argument("--parts", type=int, default=0)
    parser.add_argument("--partition-memory", default="6Gi")
    parser.add_argument("words", nargs="*", help="more words for import")
    args = parser.parse_args()
    right = True
    for form in args.forms.split(","):
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            right &= one_import(args, form, Path(folder))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
