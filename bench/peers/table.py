"""Prints the results of `run` as tables: table.py RESULTS.jsonl

Each line is an object with "peer", "threads" (local runs) and figures. Several lines of one peer are rounds, whose
median is printed. Ratios are those of Graphwire's figures to the others'.
"""
import json
import statistics
import sys

LOCAL = "Local sampling, fanouts 15, 10, 5, batches of 1000, blocks built: million edges a second"
KINDS = ("uniform", "by weight, replace", "by weight")
HOSTS = "Two hosts, one trainer, fanouts 15, 10, 5, batches of 1000, 512-byte rows, labels"


def read(path):
    """The lines. Figures of Graphwire's benchmarks get the keys that the peers use."""
    with open(path, encoding="utf-8") as results:
        lines = [json.loads(line) for line in results if line.strip()]
    for line in lines:
        if line.get("unit") == "M edges/s":
            line["edges_per_s"] = line["value"] * 1e6
        elif line.get("unit") == "batches/s":
            line["batches_per_s"] = line["value"]
    return lines


def rounds(lines, peer, key, threads=None):
    found = [line[key] for line in lines
             if line["peer"].startswith(peer) and key in line and threads in (None, line.get("threads"))]
    return statistics.median(found) if found else None


def cell(value, scale=1.0, digits=1):
    return "-" if value is None else f"{value / scale:.{digits}f}"


def local_row(lines, kind, threads):
    lines = [line for line in lines if line.get("kind", "uniform") == kind]
    own, prototype, dgl, graphbolt = (
        rounds(lines, peer, "edges_per_s", threads) for peer in ("graphwire local", "prototype", "dgl", "graphbolt"))
    fastest = max((peer for peer in (dgl, graphbolt) if peer), default=None)
    ratios = [own / other if own and other else None for other in (prototype, fastest)]
    print(f"| {kind} | {threads} | " + " | ".join(cell(value, 1e6) for value in (own, prototype, dgl, graphbolt)) +
          f" | {cell(ratios[0], digits=2)} | {cell(ratios[1], digits=2)} |")


def local(lines):
    threads = sorted({line["threads"] for line in lines if "threads" in line})
    if not threads:
        return
    print(f"\n{LOCAL}\n")
    print("| draws | threads | Graphwire | prototype | DGL | GraphBolt | of the prototype | of the fastest peer |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in KINDS:
        for t in threads:
            local_row(lines, kind, t)


def hosts(lines):
    if not any("graphwire hosts" in line["peer"] or "distributed" in line["peer"] for line in lines):
        return
    print(f"\n{HOSTS}\n")
    print("| | Graphwire | DGL | ratio |\n|---|---|---|---|")
    for way, what in (("auto", "local part mapped"), ("tcp", "all over TCP")):
        for name, key, scale in (("batches/s", "batches_per_s", 1), ("million sampled edges/s", "edges_per_s", 1e6)):
            own, peer = (rounds([line for line in lines if where in line["peer"]], "", key)
                         for where in (f"graphwire hosts {way}", "distributed"))
            print(f"| {what}: {name} | {cell(own, scale)} | {cell(peer, scale)} | "
                  f"{cell(own / peer if own and peer else None)} |")
    for name, key, scale in (("one remote row, µs (median)", "remote_row_us_p50", 1),
                             ("remote rows, 10,000 at a time, million/s", "remote_rows_per_s", 1e6)):
        own, peer = (rounds(lines, where, key) for where in ("graphwire remote rows", "dgl"))
        print(f"| {name} | {cell(own, scale, 2)} | {cell(peer, scale, 2)} | "
              f"{cell(own / peer if own and peer else None, digits=2)} |")


def main():
    lines = read(sys.argv[1])
    local(lines)
    hosts(lines)


if __name__ == "__main__":
    main()
