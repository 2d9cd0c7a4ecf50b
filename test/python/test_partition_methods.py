"""The methods lp, kaminpar (PyPI's wheel) and auto, with cuts and shares counted again in NumPy."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import graphwire
import numpy as np
import pytest
from control_groups import within

PROGRAM = os.environ["GRAPHWIRE"]
ANSWERS = 30


def communities(seed, count=8, size=150, inside=12, across=1):
    """Edges of `count` communities whose nodes have shuffled numbers, and 50 nodes without neighbours; the community of
    each node."""
    random = np.random.default_rng(seed)
    nodes = count * size
    src = np.repeat(np.arange(nodes), inside + across)
    own = src // size * size + random.integers(0, size, len(src))
    dst = np.where(np.arange(len(src)) % (inside + across) < inside, own, random.integers(0, nodes, len(src)))
    number = random.permutation(nodes + 50)
    of = np.full(nodes + 50, -1)
    of[number[:nodes]] = np.arange(nodes) // size
    return number[src], number[dst], of


def hubs(seed, scale=12):
    """R-MAT, with shuffled numbers."""
    random = np.random.default_rng(seed)
    ends = np.zeros((2, 16 << scale), np.int64)
    for _ in range(scale):
        draw = random.random(ends.shape[1])
        ends = ends * 2 + np.stack([draw > 0.76, ((draw > 0.57) & (draw <= 0.76)) | (draw > 0.95)])
    number = random.permutation(1 << scale)
    return number[ends[0]], number[ends[1]]


def part_of(config, nodes):
    """The part of each original node."""
    found = np.full(nodes, -1)
    with graphwire.open(config, numpy=True) as graph:
        original = graph.feature("orig_id")
        for part in range(json.loads(config.read_text())["num_parts"]):
            found[original[np.array(graph.part_range(part))]] = part
    assert (found >= 0).all()
    return found


def imported(tmp_path, src, dst):
    """Makes tmp_path/whole, the graph in one part."""
    np.save(tmp_path / "edges.npy", np.stack([src, dst], 1))
    subprocess.run([PROGRAM, "import", "--quiet", "--edges", tmp_path / "edges.npy", "--name", "g", "--out",
                    tmp_path / "whole"], check=True)


def partitioned(tmp_path, *words, out="parts"):
    """The report of `graphwire partition` of it."""
    done = subprocess.run([PROGRAM, "partition", tmp_path / "whole", "--json", "--replace", *words, "--out",
                           tmp_path / out], check=True, capture_output=True)
    return json.loads(done.stdout)


def cut_of(part, src, dst):
    return np.count_nonzero(part[src] != part[dst])


def made(tmp_path, name, edges, nodes, parts, **options):
    return part_of(graphwire.partition_graph(edges, "g", parts, tmp_path / name, num_nodes=nodes, **options), nodes)


@pytest.mark.parametrize("method", ["lp", "kaminpar"])
def test_communities_are_found(method, tmp_path):
    src, dst, of = communities(1)
    part = made(tmp_path, "parts", (src, dst), len(of), 8, method=method)
    planted = cut_of(of, src, dst)
    assert cut_of(part, src, dst) <= 1.1 * planted
    assert np.bincount(part).max() <= 1.03 * len(of) / 8 + 1


@pytest.mark.parametrize("parts", [2, 8])
def test_hubs_are_cut_less_than_by_metis(parts, tmp_path):
    src, dst = hubs(2)
    cuts = {method: cut_of(made(tmp_path, method, (src, dst), 4096, parts, method=method), src, dst)
            for method in ("lp", "metis", "random")}
    assert cuts["lp"] <= 1.1 * cuts["metis"] < cuts["random"]


def with_neighbours(src, dst, nodes):
    return np.bincount(np.concatenate([src[src != dst], dst[src != dst]]), minlength=nodes) > 0


def check_shares(part, src, dst, train, parts):
    """Of nodes and edges, of those to train on and of the others."""
    linked, degree = with_neighbours(src, dst, len(train)), np.bincount(dst, minlength=len(train))
    for mask in (train, ~train):
        of = mask & linked
        for weight in (of, np.where(of, degree, 0)):
            shares = np.bincount(part, weights=weight, minlength=parts)
            mean = weight.sum() / parts
            assert shares.max() <= max(1.03 * mean, np.ceil(mean) + 1, weight.max()), (shares, mean)


@pytest.mark.parametrize("method", ["lp", "kaminpar"])
@pytest.mark.parametrize("graph", [communities, hubs])
def test_every_share_is_bounded(method, graph, tmp_path):
    src, dst, *_ = graph(3)
    nodes = int(max(src.max(), dst.max())) + 1
    train = np.random.default_rng(4).random(nodes) < 0.1
    part = made(tmp_path, "parts", (src, dst), nodes, 5, method=method, balance_train=True, balance_edges=True,
                node_features={"train_mask": train})
    check_shares(part, src, dst, train, 5)


def test_any_answer_is_repaired(tmp_path):
    """A program in the place of Python answers for KaMinPar: at random, in ranges, or with one part larger."""
    parts, (src, dst, of) = 7, communities(3, size=100)
    train = np.random.default_rng(4).random(len(of)) < 0.1
    graphwire.partition_graph((src, dst), "g", 1, tmp_path / "whole", num_nodes=len(of),
                              node_features={"train_mask": train})
    linked, program = np.count_nonzero(with_neighbours(src, dst, len(of))), tmp_path / "python"
    program.write_text(f'#!/bin/sh\n[ $# -lt 4 ] || cat {tmp_path}/answer > /proc/self/fd/$4\n')
    program.chmod(0o755)
    for seed in range(ANSWERS):
        random = np.random.default_rng(seed)
        answer = random.integers(0, parts, linked)
        if seed % 3 == 1:
            answer = np.where(random.random(linked) < 0.8, np.arange(linked) * parts // linked, answer)
        elif seed % 3 == 2:
            answer = np.where(random.random(linked) < 0.3, seed % parts, answer)
        answer.astype(np.int32).tofile(tmp_path / "answer")
        partitioned(tmp_path, "--num-parts", str(parts), "--method", "kaminpar", "--python", program,
                    "--balance-train", "--balance-edges")
        check_shares(part_of(tmp_path / "parts/g.json", len(of)), src, dst, train, parts)


def test_lp_is_the_same_for_any_threads_and_budget(tmp_path):
    src, dst = hubs(5)
    imported(tmp_path, src, dst)
    ids = set()
    for words in (["--threads", "1"], ["--threads", "4"], ["--memory", "20Mi", "--threads", "2"]):
        report = partitioned(tmp_path, "--num-parts", "4", "--method", "lp", *words)
        ids.add(report["graph_id"])
        assert report["temporary_bytes"] > 4 * len(src)
    assert len(ids) == 1


def test_kaminpar_repeats_its_parts(tmp_path):
    src, dst, _ = communities(6)
    imported(tmp_path, src, dst)
    runs, kept = [], tmp_path / "parts" / "g.assignment.npy"
    for threads in ("1", "1", "2"):
        runs.append(partitioned(tmp_path, "--num-parts", "4", "--method", "kaminpar", "--python", sys.executable,
                                "--threads", threads))
        assert kept.exists() == (threads == "2")
    assert runs[0]["graph_id"] == runs[1]["graph_id"] and runs[0]["peak_process_bytes"] > 0
    again = partitioned(tmp_path, "--num-parts", "4", "--assignment", kept, out="again")
    for key in ("edges_cut", "nodes_per_part", "edges_per_part"):
        assert again[key] == runs[2][key]


def needs(nodes, edges, quantities, parts):
    """The bytes that METIS and lp need at most: of METIS, the symmetric graph while it is built, and its own."""
    symmetric = 4 * (nodes + 2 * edges) + 12 * nodes + 16 * edges + 4 * (2 * nodes + 1)
    metis = 76 * 2 * edges + (120 + 16 * quantities) * nodes + 1024 * parts
    return symmetric + metis, 24 * nodes


@pytest.mark.parametrize("seed", range(6))
def test_auto_takes_the_best_that_fits_and_says_which(seed, tmp_path):
    random = np.random.default_rng(seed)
    nodes, edges, parts = int(random.integers(2, 3000)), int(random.integers(1, 5000)), int(random.integers(2, 9))
    classes = int(random.choice([1, 2, 3, 20]))
    balanced = bool(random.integers(2))
    np.save(tmp_path / "classes.npy", np.append(random.integers(0, classes, nodes - 1), classes - 1).astype(np.uint8))
    np.save(tmp_path / "edges.npy", random.integers(0, nodes, (edges, 2)))
    subprocess.run([PROGRAM, "import", "--quiet", "--edges", tmp_path / "edges.npy", "--num-nodes", str(nodes),
                    "--name", "g", "--out", tmp_path / "whole"], check=True)
    quantities = classes * (1 + balanced)
    metis, lp = needs(nodes, edges, quantities, parts)
    words = ["--num-parts", str(parts), "--method", "auto", "--balance-nodes", tmp_path / "classes.npy"]
    words += ["--balance-edges"] * balanced
    for memory in (1, lp - 1, lp, metis - 1, metis, 1 << 30):
        few = quantities <= 32  # that METIS and lp balance
        best = "metis" if few and memory >= metis else "lp" if few and memory >= lp else "random"
        report = partitioned(tmp_path, *words, "--memory", str(memory))
        assert report["part_method"] == best and f"auto took {best}" in report["note"], memory
        assert sum(report["nodes_per_part"]) == nodes and sum(report["edges_per_part"]) == edges
    if not few:
        return
    refused = subprocess.run([PROGRAM, "partition", tmp_path / "whole", *words, "--objtype", "vol", "--memory",
                              "1", "--out", tmp_path / "vol"], capture_output=True, text=True)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1) and "needs about" in refused.stderr
    assert not (tmp_path / "vol").exists()


def test_files_are_announced_before_they_are_made(tmp_path):
    src, dst = hubs(17, scale=16)
    imported(tmp_path, src, dst)
    done = subprocess.run([PROGRAM, "partition", tmp_path / "whole", "--num-parts", "2", "--method", "lp", "--memory",
                           "4M", "--out", tmp_path / "parts"], capture_output=True, text=True, check=True)
    found = re.findall(r"^memory: (.*) takes temporary files of up to .* in .*, where .* are free$", done.stderr, re.M)
    assert found[:2] == ["the symmetric graph", "a part"] and set(found) <= {"the symmetric graph", "a part"}
    assert len(done.stderr.splitlines()) == len(found)


def test_lp_is_refused_below_its_memory(tmp_path):
    src, dst = hubs(12)
    imported(tmp_path, src, dst)
    nodes = int(max(src.max(), dst.max())) + 1
    words = [PROGRAM, "partition", tmp_path / "whole", "--num-parts", "2", "--method", "lp"]
    words += ["--out", tmp_path / "parts"]
    done = subprocess.run([*words, "--memory", str(24 * nodes - 1)], capture_output=True, text=True)
    assert done.returncode == 1 and "label propagation: needs about" in done.stderr
    assert "--method lp" not in done.stderr and not (tmp_path / "parts").exists()
    subprocess.run([*words, "--memory", str(24 * nodes)], check=True, capture_output=True)


@pytest.mark.parametrize("megabytes, nodes, edges, best", [(96, 4096, 65536, "metis"), (96, 1000, 1000000, "lp"),
                                                           (80, 4000000, 100, "random")])
def test_auto_knows_its_control_group(megabytes, nodes, edges, best, tmp_path):
    np.save(tmp_path / "edges.npy", np.random.default_rng(13).integers(0, nodes, (edges, 2)))
    subprocess.run([PROGRAM, "import", "--quiet", "--edges", tmp_path / "edges.npy", "--num-nodes", str(nodes),
                    "--name", "g", "--out", tmp_path / "whole"], check=True)
    with within(megabytes, "auto") as enter:
        if enter is None:
            pytest.skip("this user can make no control group of memory")
        done = subprocess.run([PROGRAM, "partition", tmp_path / "whole", "--num-parts", "4", "--method", "auto",
                               "--json", "--out", tmp_path / "parts"], capture_output=True, text=True,
                              preexec_fn=enter)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["part_method"] == best


def test_auto_goes_on_where_memory_ends(tmp_path):
    """The limit of addresses is not asked before: METIS's process, or lp, meets it."""
    src, dst = hubs(14, scale=16)
    imported(tmp_path, src, dst)
    found, kilobytes = [], 320000
    while not found or found[-1] == "metis":
        kilobytes = kilobytes * 3 // 4
        done = subprocess.run(["bash", "-c", f"ulimit -v {kilobytes}; exec \"$@\"", "bash", PROGRAM, "partition",
                               tmp_path / "whole", "--num-parts", "2", "--method", "auto", "--threads", "2", "--json",
                               "--replace", "--out", tmp_path / "parts"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        found.append(report["part_method"])
        assert f"auto took {found[-1]}" in report["note"]
        written = json.loads((tmp_path / "parts" / "g.json").read_text())
        assert written["part_method"] == found[-1]
    assert found[0] == "metis" and found[-1] == "lp"


def test_what_is_wrong_is_one_line(tmp_path):
    src, dst, _ = communities(8)
    for options, told in (({"method": "kaminpar", "objtype": "vol"}, "vol"), ({"method": "magic"}, "method")):
        with pytest.raises(RuntimeError, match=told) as caught:
            graphwire.partition_graph((src, dst), "g", 2, tmp_path / "parts", **options)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize("method", ["metis", "lp", "kaminpar"])
def test_a_folder_without_a_parent_is_refused_before_the_work(method, tmp_path):
    src, dst, _ = communities(11)
    imported(tmp_path, src, dst)
    python = ["--python", "/bin/false"] if method == "kaminpar" else []
    done = subprocess.run([PROGRAM, "partition", tmp_path / "whole", "--num-parts", "2", "--method", method, *python,
                           "--out", tmp_path / "no" / "parts"], capture_output=True, text=True)
    assert done.returncode == 1 and "its parent folder does not exist: make it first" in done.stderr


def lives(process):
    try:
        return " Z " not in open(f"/proc/{process}/stat").read()
    except OSError:
        return False


def test_nothing_is_left_by_a_signal(tmp_path):
    """The file of lists and the answer have no names, and Python's process dies with the program."""
    src, dst, _ = communities(9)
    imported(tmp_path, src, dst)
    python, told = tmp_path / "python", tmp_path / "pid"
    python.write_text(f"#!/bin/sh\n[ $# -gt 2 ] || exit 0\necho $$ >{told}.new; mv {told}.new {told}; exec sleep 600\n")
    python.chmod(0o700)
    for end in (signal.SIGINT, signal.SIGKILL):
        told.unlink(missing_ok=True)
        program = subprocess.Popen([PROGRAM, "partition", tmp_path / "whole", "--num-parts", "2", "--method",
                                    "kaminpar", "--python", python, "--out", tmp_path / "parts"],
                                   stderr=subprocess.DEVNULL)
        while not told.exists():
            assert program.poll() is None
            time.sleep(0.01)
        program.send_signal(end)
        assert program.wait() != 0
        child = int(told.read_text())
        while lives(child):  # it ends, or the test hangs
            time.sleep(0.01)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.npy", "pid", "python", "whole"]


def test_what_a_python_starts_is_not_waited_for(tmp_path):
    src, dst, _ = communities(10)
    imported(tmp_path, src, dst)
    python, told = tmp_path / "python", tmp_path / "pid"
    python.write_text(f"#!/bin/sh\nsleep 600 &\necho $! >{told}\nexit 1\n")
    python.chmod(0o700)
    done = subprocess.run([PROGRAM, "partition", tmp_path / "whole", "--num-parts", "2", "--method", "kaminpar",
                           "--python", python, "--out", tmp_path / "parts"], stderr=subprocess.PIPE, text=True)
    started = int(told.read_text())
    alive = lives(started)
    os.kill(started, signal.SIGKILL)
    assert alive and done.returncode == 1 and "KaMinPar ended its process with status 1" in done.stderr


@pytest.mark.parametrize("parts", [2, 5, 70])
def test_types_of_fewer_nodes_than_parts_leave_the_others_balanced(parts, tmp_path):
    """METIS meets no limit of such a type, and without room for it put all nodes into one part."""
    random = np.random.default_rng(8)
    counts = {"user": 1500, "film": 400, "root": 1}
    edges = {("user", "rates", "film"): (random.integers(0, 1500, 9000), random.integers(0, 400, 9000)),
             ("film", "in", "root"): (np.arange(400), np.zeros(400, int))}
    words = [f"--num-nodes={ntype}={count}" for ntype, count in counts.items()]
    for etype, ends in edges.items():
        np.save(tmp_path / f"{etype[1]}.npy", np.stack(ends, 1))
        words.append(f"--edges={':'.join(etype)}={tmp_path / etype[1]}.npy")
    subprocess.run([PROGRAM, "import", "--quiet", "--name", "g", *words, "--out", tmp_path / "whole"], check=True)
    report = partitioned(tmp_path, "--num-parts", str(parts), "--balance-ntypes", "--seed", "3")
    for ntype in ("user", "film"):
        mean = counts[ntype] / parts
        assert max(report["ntypes_per_part"][ntype]) <= max(1.1 * mean, mean + 3), report["ntypes_per_part"][ntype]


def test_a_star_leaves_training_nodes_balanced(tmp_path):
    """One node has all edges, so that no parts of METIS have equal edges."""
    imported(tmp_path, np.arange(1, 2000), np.zeros(1999, int))
    classes = np.random.default_rng(9).integers(0, 2, 2000).astype(np.uint8)
    np.save(tmp_path / "classes.npy", classes)
    report = partitioned(tmp_path, "--num-parts", "3", "--balance-edges", "--balance-nodes", tmp_path / "classes.npy")
    assert max(report["nodes_per_part"]) <= 1.1 * 2000 / 3, report["nodes_per_part"]
