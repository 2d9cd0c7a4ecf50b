#!/usr/bin/env python3
"""perftest_ratios.py LINES: prints the medians of perftest.sh's rounds, as ratios to perftest and to the bare loop.

A line is "ROUND SIZE PAIRS WHAT FIGURE [CEILING]"; other lines are skipped. Exit status 1: no figures to compare.
"""
import statistics
import sys

KINDS = {
    "row": ("ib_read_lat", "one row", "us", "at most 1.15"),
    "gather": ("ib_read_bw", "gather", "GB/s", "at least 0.90"),
    "runs": ("ib_read_bw", "gather, runs of 8", "GB/s", "above 1"),
}


def read(path):
    """{(round, size, pairs): {what: [figures]}}"""
    rounds = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            try:
                key = tuple(int(word) for word in words[:3])
                rounds.setdefault(key, {})[words[3]] = [float(word) for word in words[4:]]
            except (ValueError, IndexError):
                continue
    return rounds


def main():
    rounds = read(sys.argv[1])
    shown = 0
    for size, pairs in sorted({key[1:] for key in rounds}):
        for what, (peer, name, unit, wanted) in KINDS.items():
            to_peer, to_bare, ours, theirs = [], [], [], []
            for key, figures in rounds.items():
                if key[1:] != (size, pairs) or len(figures.get(what, [])) != 2 or not figures.get(peer):
                    continue
                value, bare = figures[what]
                ours.append(value)
                theirs.append(figures[peer][0])
                to_peer.append(value / theirs[-1])
                to_bare.append(value / bare)
            if not ours:
                continue
            shown += 1
            spread = f"{min(to_peer):.2f} to {max(to_peer):.2f}" if len(ours) > 1 else "one round"
            print(
                f"ratio  {size} B, {pairs} queue pair{'s' if pairs > 1 else ''}, {name}: "
                f"{statistics.median(to_peer):.3f} of {peer} ({spread}; {wanted}), "
                f"{statistics.median(to_bare):.3f} of the bare loop; "
                f"{statistics.median(ours):.4g} against {statistics.median(theirs):.4g} {unit}"
            )
    return 0 if shown else 1


if __name__ == "__main__":
    sys.exit(main())
