"""The examples as a user starts them: one process and several, with servers and without, killed and resumed."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from types import SimpleNamespace

import graphwire
import numpy as np
import pytest
import torch
from conftest import TOP, run
from group_threads import counted, left
from scripts import Script
from shared import given

SAGE, RGCN, LINKS = (TOP / f"examples/{name}.py" for name in ("graphsage", "rgcn", "links"))
sys.path.insert(0, str(TOP / "examples"))
SMALL = ("--fan_out", "4,3", "--batch_size", "300", "--num_hidden", "16", "--log_every", "0")


def start(script, *arguments, world=1, rank=0, own_python=False):
    """own_python: in a new Python process, as a user starts it; else in a fork, which is faster."""
    environment = counted({**os.environ, "OMP_NUM_THREADS": "1"})
    if world > 1:
        environment.update(WORLD_SIZE=str(world), RANK=str(rank))
    words = list(map(str, arguments))
    if not own_python:
        return Script(script, words, environment)
    return subprocess.Popen([sys.executable, script, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment)


def end(*processes):
    """The output of the first process. All must succeed, and leave no thread of a process group."""
    printed = [process.communicate() for process in processes]
    for process, (out, err) in zip(processes, printed):
        assert process.returncode == 0, out + err
        assert not any(left(out)), out
    return printed[0][0]


def accuracy(out):
    return float(out.split("test accuracy ")[1].split()[0])


def figures(path):
    """The lines of a metrics file, without their times."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: line[name] for name in line if name != "seconds"} for line in lines]


def test_one_process(whole, tmp_path):
    out = end(start(SAGE, "--part-config", whole, *SMALL, "--num-epochs", 2, "--eval_every=1", "--metrics",
                    tmp_path / "metrics", "--plot", tmp_path / "curve.png", "--baselines", "--graph-name", "rmat",
                    own_python=True))
    lines = [json.loads(line) for line in (tmp_path / "metrics").read_text().splitlines()]
    assert [line.get("epoch") for line in lines] == [0, 1, None]
    assert lines[1]["loss"] < lines[0]["loss"] and {"train", "val", "test", "seconds"} <= lines[1].keys()
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert 0 < accuracy(out) <= 1 and "the most frequent class" in out


def test_a_heterogeneous_graph(hetero, tmp_path):
    out = end(start(SAGE, "--part_config", hetero, *SMALL, "--num_epochs", 1, "--num_gpus", 0))  # -1 means the CPU too
    assert accuracy(out) >= 0


def test_two_ranks_over_servers(parts, servers, tmp_path):
    """Started with a file of servers, as a launcher writes it. Ranks and figures cover both processes."""
    config = tmp_path / "ip_config.txt"
    config.write_text("# part 0, part 1\n" + "".join(
        "{} {}\n".format(*address.rsplit(":", 1)) for address in servers.addresses))
    out = end(*[start(SAGE, "--ip_config", config, *SMALL, "--num_epochs", 2, "--eval_every", 1, "--init_method",
                      f"file://{tmp_path}/meet", world=2, rank=rank, own_python=True) for rank in range(2)])
    assert "2 servers" in out and out.count("val ") == 3 and left(out) == [0]
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in out.splitlines() if line.startswith("epoch")]
    assert losses[1] < losses[0]


@pytest.mark.parametrize("script, world, options", [
    (SAGE, 1, ["--batch_size", 300]), (RGCN, 1, ["--batch_size", 12]), (RGCN, 2, ["--batch_size", 8, "--sync"]),
    (LINKS, 1, ["--batch_size", 150, "--etype", "cites", "--num_ranked", 20])])
def test_a_killed_job_goes_on(whole, hetero, hetero2, tmp_path, script, world, options):
    """The same weights, rows and figures, byte for byte, as without the kill."""
    def job(name, meet, *more):
        arguments = [*SMALL[:-2], *options, "--log_every", 1, "--num_epochs", 3, "--checkpoint_every", 2,
                     "--eval_every", 1, "--checkpoint", tmp_path / name, "--metrics", tmp_path / f"{name}.metrics"]
        if world > 1:
            arguments += ["--servers", ",".join(hetero2.addresses), "--init_method", f"file://{tmp_path}/{meet}"]
        else:
            arguments += ["--part_config", whole if script == SAGE else hetero]
        return [start(script, *arguments, *more, world=world, rank=rank) for rank in range(world)]

    end(*job("whole", "first"))
    plot = ("--plot", tmp_path / "curve.png")
    killed = job("killed", "second", *plot)
    for line in killed[0].stdout:
        if line.startswith("epoch 1 step 4"):
            break
    for process in killed:
        process.kill()
    for process in killed:
        process.communicate()
    out = end(*job("killed", "third", *plot))
    assert "going on from" in out and "epoch 0" not in out
    evaluated = [[{name: value for name, value in line.items() if name not in ("loss", "train")}
                  for line in figures(tmp_path / f"{name}.metrics")] for name in ("whole", "killed")]
    assert evaluated[0] == evaluated[1] and [line["epoch"] for line in evaluated[0]] == [0, 1, 2]
    expected, found = (torch.load(tmp_path / name) for name in ("whole", "killed"))
    assert found["loader"] == expected["loader"] and found["found"] == expected["found"]
    for name, weights in expected["model"].items():
        assert torch.equal(found["model"][name], weights), name
    again = end(*job("killed", "fourth", *plot))  # no work is left: it prints the result
    assert accuracy(again) == accuracy(out) > 0 and len(figures(tmp_path / "killed.metrics")) == 3
    if script != SAGE:
        rows = []
        for saved in (expected, found):
            with graphwire.open(hetero) as graph:
                graph.restore(tmp_path / saved["tables"])
                rows.append(graph.open_tensor("embedding/author")[:])
        assert torch.equal(*rows)
        assert len(list(tmp_path.glob("killed.tables-*"))) == 1  # older checkpoints are removed


def test_a_job_of_two_hosts_goes_on(parts, servers, tmp_path):
    """Ranks with separate disks. The first one has the checkpoint, and both continue from it with the same weights,
    though an epoch's seven batches are four and three steps. A job with a rank that has no steps ends too."""
    def job(name, epochs, *more):
        processes = []
        for rank in range(2):
            host = tmp_path / f"{name}{rank}"
            host.mkdir(exist_ok=True)
            processes.append(start(SAGE, "--servers", ",".join(servers.addresses), *SMALL, "--num_epochs", epochs,
                                   "--checkpoint", host / "job", "--init_method", f"file://{tmp_path}/{name}-{epochs}",
                                   *more, world=2, rank=rank))
        return end(*processes)

    job("whole", 2)
    job("ended", 1)
    assert not (tmp_path / "ended1/job").exists()
    assert "going on from" in job("ended", 2)
    expected, found = (torch.load(tmp_path / f"{name}0/job") for name in ("whole", "ended"))
    assert found["loader"] == expected["loader"] and len(found["lines"]) == 2
    for name, weights in expected["model"].items():
        assert torch.equal(found["model"][name], weights), name
    assert "epoch 0: loss" in job("idle", 1, "--batch_size", 4096)


def test_a_killed_job_without_sync_goes_on(hetero2, tmp_path):
    """If ranks push gradients as soon as they have them, no two runs are equal. A job that was killed in mid-epoch must
    be as near to an uninterrupted one as twice the distance between seeds. (Seeds differ by 0.08. Repeating the
    uninterrupted job gives 0.01; without its tables the result would be 0.3 away.)"""
    def job(name, seed, meet):
        arguments = ("--servers", ",".join(hetero2.addresses), *SMALL[:-2], "--log_every", 1, "--batch_size", 12,
                     "--num_epochs", 6, "--lr", 0.01, "--sparse_lr", 0.02, "--dropout", 0, "--seed", seed,
                     "--checkpoint", tmp_path / name, "--checkpoint_every", 2, "--metrics",
                     tmp_path / f"{name}.metrics", "--init_method", f"file://{tmp_path}/{meet}")
        return [start(RGCN, *arguments, world=2, rank=rank) for rank in range(2)]

    def losses(name):
        return [line["loss"] for line in figures(tmp_path / f"{name}.metrics")]

    whole = [job(f"whole{seed}", seed, f"meet{seed}") for seed in range(3)]
    killed = job("killed", 0, "meet-killed")
    for line in killed[0].stdout:
        if line.startswith("epoch 4 step 3"):
            break
    for process in killed:
        process.kill()
    for process in killed:
        process.communicate()
    for processes in whole:
        end(*processes)
    out = end(*job("killed", 0, "meet-again"))
    assert "going on from" in out and "epoch 3" not in out  # from step 2 of epoch 4, or later
    last = [losses(f"whole{seed}")[-1] for seed in range(3)]
    found = losses("killed")
    assert len(found) == 6 and found[-1] < 0.7 * found[0]
    assert abs(found[-1] - last[0]) < 2 * (max(last) - min(last)), (found, last)


def test_a_checkpoint_is_of_this_job(hetero2, tmp_path, monkeypatch):
    """Other jobs' tensors on the same servers are neither saved nor restored; and the checkpoint resumes from any
    working directory."""
    arguments = ("--servers", ",".join(hetero2.addresses), *SMALL, "--batch_size", 20, "--checkpoint")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with graphwire.open(servers=hetero2.addresses) as graph:
        other = graph.create_tensor("others", 10, kept=True)
        try:
            other[:] = 1
            end(start(RGCN, *arguments, "job", "--num_epochs", 1))
            other[:] = 2
            monkeypatch.chdir(tmp_path)
            assert "going on from" in end(start(RGCN, *arguments, "here/job", "--num_epochs", 2))
            assert (other[:] == 2).all()
        finally:
            graph.delete_tensor("others", kept=True)


def test_files_of_a_kill_are_removed(whole, tmp_path, monkeypatch):
    """A half-written checkpoint always has the same name, which the next one overwrites."""
    from common import Checkpoint
    from test_inference import ARGS

    ranks = SimpleNamespace(rank=0, world=1, barrier=lambda: None, of_first=lambda thing: thing)
    args = SimpleNamespace(checkpoint=str(tmp_path / "job"), checkpoint_every=1, metrics=None, plot=None)
    model = torch.nn.Linear(2, 2)
    save = torch.save

    def killed(what, where):
        save(what, where)
        raise KeyboardInterrupt

    with graphwire.open(whole) as graph:
        loader = graphwire.NodeLoader(graph, None, [2], batch_size=ARGS.batch_size_eval)
        checkpoint = Checkpoint(args, ranks, model, torch.optim.Adam(model.parameters()), loader,
                                SimpleNamespace(lines=[]))
        monkeypatch.setattr(torch, "save", killed)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                checkpoint.save()
        assert len(list(tmp_path.iterdir())) == 1
        monkeypatch.setattr(torch, "save", save)
        checkpoint.save()
    assert [path.name for path in tmp_path.iterdir()] == ["job"]


def test_only_the_first_rank_has_a_bar(whole, monkeypatch):
    from common import progress

    asked = []
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=lambda loader, **options: asked.append(options)))
    with graphwire.open(whole) as graph:
        for rank in range(2):
            progress(graphwire.NodeLoader(graph, None, [2], world=2, rank=rank))
    assert [options["disable"] for options in asked] == [None, True]  # None: without a terminal


def test_an_optimizer_of_a_gpu_is_sent_from_the_processor(monkeypatch):
    """Its tensors are copied to the CPU; values that are not tensors stay."""
    from common import on_processor

    moved = []
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: moved.append(tensor) or tensor)
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    assert on_processor(state) == state and len(moved) == 6  # step and two moments for each of two parameters


def test_a_begun_epoch_is_reported():
    from common import epoch_of
    assert [epoch_of({"epoch": 3, "step": step}) for step in (0, 7)] == ["epoch 3", "epoch 3 from step 7"]


def test_rgcn_of_two_ranks(hetero2, tmp_path):
    """Two equal runs: gradients of the table are combined in the order of the ranks."""
    printed = []
    for number in range(2):
        arguments = ("--part_config", hetero2.folder, "--servers", ",".join(hetero2.addresses), *SMALL, "--batch_size",
                     20, "--num_epochs", 2, "--sync", "--init_method", f"file://{tmp_path}/meet{number}", "--metrics",
                     tmp_path / f"metrics{number}")
        end(*[start(RGCN, *arguments, world=2, rank=rank, own_python=number == 0) for rank in range(2)])
        printed.append(figures(tmp_path / f"metrics{number}"))
    assert printed[0] == printed[1] and printed[0][1]["loss"] < printed[0][0]["loss"]


@pytest.mark.parametrize("script, options", [
    (SAGE, ["--eval_every", 2]), (RGCN, ["--ntype", "paper"]), (LINKS, ["--etype", "cites", "--batch_size", 600])])
def test_the_same_losses_over_every_transport(hetero2, tmp_path, script, options):
    """From a folder, over TCP and over mapped memory, with one thread: every figure of every epoch is equal in every
    bit."""
    arguments = ("--part_config", hetero2.folder, *SMALL, "--batch_size", 40, "--num_epochs", 2, *options)
    served = ("--servers", ",".join(hetero2.addresses))
    ways = {"memory": (), "tcp": (*served, "--transport", "tcp"), "shm": (*served, "--transport", "shm")}
    end(*[start(script, *arguments, *more, "--metrics", tmp_path / way) for way, more in ways.items()])
    found = {way: figures(tmp_path / way) for way in ways}
    assert len(found["memory"]) == 2 and found["tcp"] == found["memory"] and found["shm"] == found["memory"]


def test_links_of_two_ranks(hetero2, tmp_path):
    """Both ranks train and evaluate. Results over TCP and over mapped memory are equal, every held-out edge is ranked
    once, and every node has a row."""
    for way in ("tcp", "shm"):
        arguments = ("--servers", ",".join(hetero2.addresses), "--transport", way, "--etype", "cites", *SMALL,
                     "--batch_size", 200, "--num_epochs", 2, "--eval_every", 1, "--sync", "--init_method",
                     f"file://{tmp_path}/meet-{way}", "--metrics", tmp_path / way, "--embeddings",
                     tmp_path / f"{way}.npy", "--batch_size_eval", 60)
        out = end(*[start(LINKS, *arguments, world=2, rank=rank) for rank in range(2)])
        assert f"{way}_paper.npy: 300 rows of 16, by original ids" in out
        assert 0 < accuracy(out) < 1 and "of a linear model of the rows of paper" in out
    for ntype, nodes in (("paper", 300), ("author", 100)):
        rows = [np.load(tmp_path / f"{way}_{ntype}.npy") for way in ("tcp", "shm")]
        assert np.array_equal(*rows) and rows[0].shape == (nodes, 16) and rows[0].any(1).all()
    found = figures(tmp_path / "tcp")
    assert found == figures(tmp_path / "shm")
    assert found[1]["loss"] < found[0]["loss"] and 0 < found[1]["mrr"] < 1 and found[1]["ranked"] == 200


def test_links(tmp_path):
    """Training raises the ranks on a graph with structure: neighbours in a ring are linked."""
    src = np.arange(400).repeat(4)
    np.save(tmp_path / "edges.npy", np.stack([src, (src + np.tile([1, 2, 3, 4], 400)) % 400], 1))
    run("import", "--from", tmp_path / "edges.npy", "--undirected", "--out", tmp_path / "ring", "--quiet")
    out = end(start(LINKS, "--part_config", tmp_path / "ring", "--fan_out", "8,8", "--batch_size", 200, "--num_epochs",
                    6, "--eval_every", 6, "--lr", 0.01, "--sparse_lr", 0.02, "--dropout", 0, "--log_every", 0))
    from links import division, exclusion
    with graphwire.open(tmp_path / "ring") as graph:  # every edge exists in both directions
        learned, held = ({(int(u), int(v)) for u, v in zip(*graph.find_edges(ids))}
                         for ids in division(graph, graph.etypes[0], 0.1, 0))
        assert len(held) == 320 and len(learned) > 2500
        assert not learned & held and not learned & {(v, u) for u, v in held}
        assert exclusion(graph, graph.etypes[0], None) == {"exclude": ["ends", "reverse"]}
    before, after = (float(line.split("mrr ")[1].split(",")[0]) for line in out.splitlines() if "mrr" in line)
    assert after > 2 * before, out


def test_cora(tmp_path):
    """The public split: a GraphSAGE model of two layers is known to reach 0.79 to 0.82 (10 seeds: 0.794)."""
    run("import", "--from", given("data/cora/cora.npz"), "--out", tmp_path / "cora", "--quiet")
    arguments = ("--part_config", tmp_path / "cora", "--fan_out=-1,-1", "--num_epochs", 40, "--batch_size", 140, "--lr",
                 0.01, "--eval_every", 10, "--weight-decay", 5e-4, "--input_dropout", 0.5, "--normalize",
                 "--log_every", 0)
    jobs = [start(SAGE, *arguments, "--seed", seed) for seed in range(3)]
    found = [accuracy(end(job)) for job in jobs]
    assert 0.77 <= statistics.mean(found) <= 0.84, found


@pytest.mark.parametrize("arguments, text", [
    (("--graph_name", "other"), "the graph is rmat, not other"),
    (("--label", "absent"), 'no node type has "absent"'),
    (("--num_layers", "3"), "3 layers"),
    (("--n_classes", "3"), "--n_classes 3: the labels go up to 4"),
    (("--num_gpus", "2"), "--num_gpus 2: PyTorch"),
])
def test_mismatches_are_reported(whole, arguments, text):
    process = start(SAGE, "--part_config", whole, *SMALL, *arguments)
    _, err = process.communicate()
    assert process.returncode == 1 and text in err


def test_dgls_options_are_taken(whole, hetero):
    """All options of DGL's two GraphSAGE scripts, as its README gives them."""
    shared = ("--graph_name", "rmat", "--part_config", whole, "--num_servers", 1, "--num_clients", 1, "--id", 0,
              "--local_rank", 0, "--standalone", "--num_layers", 2, "--num_epochs", 1, "--log_every", 0, "--fan_out",
              "4,3", "--batch_size", 2000, "--batch_size_eval", 3000, "--eval_every", 1, "--num_workers", 1)
    assert accuracy(end(start(SAGE, *shared, "--n_classes", 5, "--close_profiler"))) > 0
    end(start(LINKS, *shared, "--n_classes", 5, "--num_negs", 1, "--neg_share", "--remove_edge", "--test_share", 0.01))


def test_standalone_under_a_launcher_is_reported(whole):
    environment = {**os.environ, "WORLD_SIZE": "2", "RANK": "0", "GRAPHWIRE_IP_CONFIG": "nowhere"}
    words = ["--standalone", *SMALL, "--num_epochs", "1"]
    printed = []
    for more in (["--part_config", str(whole)], []):
        process = Script(SAGE, [*words, *more], environment)
        printed.append((*process.communicate(), process.returncode))
    assert printed[0][2] == 0 and "ranks of the launcher are ignored" in printed[0][1]
    assert printed[1][2] == 1 and "--standalone reads the parts itself: --part_config" in printed[1][1]


def test_a_plot_without_matplotlib_is_refused_at_the_beginning(whole, tmp_path):
    script = ("import sys\nsys.modules['matplotlib'] = None\nsys.path.insert(0, sys.argv.pop(1))\n"
              "from graphsage import main\nmain()")
    done = subprocess.run([sys.executable, "-c", script, SAGE.parent, "--part_config", whole, *SMALL, "--num_epochs",
                           "1", "--plot", tmp_path / "curve.png"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("--plot needs matplotlib") and not done.stdout


def test_an_invalid_checkpoint_is_reported(whole, tmp_path):
    torch.save({"world": 1, "model": {}}, tmp_path / "other")
    process = start(SAGE, "--part_config", whole, *SMALL, "--checkpoint", tmp_path / "other")
    _, err = process.communicate()
    assert process.returncode == 1 and "other is no checkpoint of this example" in err and "Traceback" not in err
