#!/usr/bin/env python3
"""Figures of launching and copying on hosts in namespaces, each compared with a no-op, rsync or ssh.

figures.py [REPEATS] [launches|ends|copies|many ...]: prints medians, without a name all of them. ./check soak prints
them too. No figure has a limit. The comparison is measured in the same run.

    launches   four hosts x (1 server, 2 trainers): to the first batch; compared with a trainer that does nothing
    ends       from the launch's end, or Ctrl-C, until no host has a process of the job
    copies     all parts; compared with rsync of the same folders
    many       64 hosts, launched and stopped; compared with 64 times `ssh HOST true`, all at once
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from bed import ON_HOST, PROGRAM, Bed, Host
from test_hosts import HOSTS, LAUNCH, give_parts, make_graph

DESK_COPY = ["python3", "/mnt/top/deploy/copy_files.py", "--program", ON_HOST]
SCALE = 19  # of the copied graph: about 0.4 GB, so that the start-up hardly matters
MANY = 64


def timed(run: Callable[[], subprocess.CompletedProcess]) -> float:
    """Seconds of a command that must succeed."""
    began = time.monotonic()
    done = run()
    if done.returncode != 0:
        raise SystemExit(f"figures: {done.stderr}")
    return time.monotonic() - began


def launch(desk: Host, *more: str) -> subprocess.CompletedProcess:
    """A launch from the desk."""
    words = [*LAUNCH, "--program", ON_HOST, "--workspace", "~/w/", "--part_config", "g", "--ip_config", "ip.txt"]
    return desk.run(*words, "--num_trainers", "2", *more, timeout=300)


def launches(bed: Bed, repeats: int) -> None:
    """Seconds to the first batch, with new servers and with kept ones, compared with a trainer that does nothing."""
    first, nothing = f"{ON_HOST} epoch --steps 1", "true"
    for what, begin in (("own servers", None), ("kept servers", ["--keep_alive", "--server_name", "kept", "true"])):
        if begin:
            launch(bed.desk, *begin)
        rows = [
            (timed(lambda: launch(bed.desk, first)), timed(lambda: launch(bed.desk, nothing))) for _ in range(repeats)
        ]
        batch, bare = (statistics.median(column) for column in zip(*rows))
        print(f"note: {what}: to the first batch {batch:.2f} s, a no-op {bare:.2f} s, {batch - bare:.2f} s beyond it")
    stop = ["python3", "/mnt/top/deploy/cluster.py", "stop", "kept", "--program", ON_HOST, "--ip_config", "w/ip.txt"]
    print(f"note: ending {HOSTS} kept servers {timed(lambda: bed.desk.run(*stop)):.2f} s")


def all_gone(bed: Bed, began: float) -> float:
    """Seconds until no process of the job remains."""
    while bed.left():
        time.sleep(0.005)
    return time.monotonic() - began


def ends(bed: Bed, repeats: int) -> None:
    """Seconds from the launch's own end, and from Ctrl-C, until all processes have ended."""
    own, took = [], []
    for _ in range(repeats):
        launch(bed.desk, "true")
        own.append(all_gone(bed, time.monotonic()))
        words = [*LAUNCH, "--program", ON_HOST, "--workspace", "~/w/", "--part_config", "g", "--ip_config", "ip.txt"]
        process = bed.desk.start(*words, "--num_trainers", "2", "echo running; exec sleep 100")
        assert process.stdout
        for _ in range(2 * HOSTS):
            process.stdout.readline()
        began = time.monotonic()
        os.kill(bed.desk.find("launch.py")[0], 2)
        process.communicate(timeout=60)
        took.append(all_gone(bed, began))
    for what, column in (("the launch's end", own), ("Ctrl-C", took)):
        print(f"note: from {what} until nothing is left {statistics.median(column):.2f} s, at most {max(column):.2f} s")


def bare_copy(bed: Bed) -> subprocess.CompletedProcess:
    """rsync of each part's folder to its host, all at once."""
    lines = [f"rsync -a big/g/part{host.index} {host.address}:bare/ & p{host.index}=$!" for host in bed.hosts]
    lines.append(" && ".join(f"wait $p{host.index}" for host in bed.hosts))
    return bed.desk.shell("\n".join(lines), timeout=300)


def own_copy(bed: Bed, *more: str) -> subprocess.CompletedProcess:
    """copy_files.py of the same folders."""
    words = [*DESK_COPY, "--workspace", "~/new", "--rel_data_path", "x", "--part_config", "big/g"]
    return bed.desk.run(*words, "--ip_config", "w/ip.txt", *more, timeout=300)


def copies(bed: Bed, repeats: int) -> None:
    """All parts to all hosts, compared with rsync of the same folders, four at once."""
    big = bed.desk.home / "big"
    big.mkdir()
    for words in (
        ["generate", "rmat", "--scale", str(SCALE), "--features", "128", "--out", str(big / "whole")],
        ["partition", str(big / "whole"), "--num-parts", str(HOSTS), "--method", "random", "--out", str(big / "g")],
    ):
        subprocess.run([PROGRAM, *words], check=True, capture_output=True, timeout=300)
    rates = []
    for _ in range(repeats):
        took = []
        for copy in (bare_copy, lambda bed: own_copy(bed, "--no_verify"), own_copy):
            for host in bed.hosts:
                shutil.rmtree(host.home / "new", ignore_errors=True)
                shutil.rmtree(host.home / "bare", ignore_errors=True)
                (host.home / "bare").mkdir()
            took.append(timed(lambda copy=copy: copy(bed)))  # type: ignore[misc]
        rates.append((took[0] / took[1], took[0] / took[2]))
    plain, whole = (statistics.median(column) for column in zip(*rates))
    print(f"note: copy: {plain:.2f} of rsync's rate, with everything verified on the hosts {whole:.2f}")


def many(bed: Bed, repeats: int) -> None:
    """All hosts, launched and stopped."""
    bare = " & ".join(f"ssh -o BatchMode=yes {host.address} true" for host in bed.hosts)
    rows = [
        (timed(lambda: launch(bed.desk, "true")), timed(lambda: bed.desk.shell(f"{bare} & wait", timeout=300)))
        for _ in range(repeats)
    ]
    whole, ssh = (statistics.median(column) for column in zip(*rows))
    print(f"note: {MANY} hosts launch and stop in {whole:.2f} s, {MANY} times ssh alone {ssh:.2f} s")


WORK = {"launches": (HOSTS, launches), "ends": (HOSTS, ends), "copies": (HOSTS, copies), "many": (MANY, many)}


def main(repeats: int, names: list[str]) -> None:
    """Runs the named figures."""
    print(f"note: load {os.getloadavg()[0]:.1f}, medians of {repeats}")
    for count in sorted({WORK[name][0] for name in names}):
        bed = Bed(count)
        try:
            make_graph(bed.folder, count)
            give_parts(bed, bed.folder / "g")
            bed.reachable()
            for name in names:
                if WORK[name][0] == count:
                    WORK[name][1](bed, repeats)
        finally:
            bed.end()


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(numbers[0] if numbers else 5, [word for word in sys.argv[1:] if not word.isdigit()] or list(WORK))
