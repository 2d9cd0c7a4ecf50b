"""The examples as a user starts them: one process and several, over servers and without, killed and gone on with."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

import pytest
import torch
from conftest import TOP, run

SAGE = TOP / "examples/graphsage.py"
CORA = TOP.parent / "shared/data/cora/cora.npz"
SMALL = ("--fan_out", "4,3", "--batch_size", "300", "--num_hidden", "16", "--log_every", "0")


def start(script, *arguments, world=1, rank=0):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if world > 1:
        environment.update(WORLD_SIZE=str(world), RANK=str(rank))
    return subprocess.Popen([sys.executable, script, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


def end(*processes):
    """What the first one printed; all must end well."""
    printed = [process.communicate() for process in processes]
    for process, (out, err) in zip(processes, printed):
        assert process.returncode == 0, out + err
    return printed[0][0]


def accuracy(out):
    return float(out.split("test accuracy ")[1].split()[0])


def test_one_process(whole, tmp_path):
    out = end(start(SAGE, "--part-config", whole, *SMALL, "--num-epochs", 2, "--eval_every=1", "--metrics",
                    tmp_path / "metrics", "--plot", tmp_path / "curve.png", "--baselines", "--graph-name", "rmat"))
    lines = [json.loads(line) for line in (tmp_path / "metrics").read_text().splitlines()]
    assert [line.get("epoch") for line in lines] == [0, 1, None]
    assert lines[1]["loss"] < lines[0]["loss"] and {"train", "val", "test", "seconds"} <= lines[1].keys()
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert 0 < accuracy(out) <= 1 and "the most frequent class" in out


def test_a_heterogeneous_graph(hetero, tmp_path):
    out = end(start(SAGE, "--part_config", hetero, *SMALL, "--num_epochs", 1))
    assert accuracy(out) >= 0


def test_two_ranks_over_servers(parts, servers, tmp_path):
    """Started from one file of servers, as a launcher writes it; ranks and figures are of both."""
    config = tmp_path / "ip_config.txt"
    config.write_text("# part 0, part 1\n" + "".join(
        "{} {}\n".format(*address.rsplit(":", 1)) for address in servers.addresses))
    out = end(*[start(SAGE, "--ip_config", config, *SMALL, "--num_epochs", 2, "--eval_every", 1, "--init_method",
                      f"file://{tmp_path}/meet", world=2, rank=rank) for rank in range(2)])
    assert "2 servers" in out and out.count("val ") == 3
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in out.splitlines() if line.startswith("epoch")]
    assert losses[1] < losses[0]


def test_a_killed_job_goes_on(whole, tmp_path):
    """The same weights, byte for byte, as of a job that nobody killed."""
    arguments = ("--part_config", whole, *SMALL[:-2], "--log_every", 1, "--num_epochs", 3, "--checkpoint_every", 2)
    end(start(SAGE, *arguments, "--checkpoint", tmp_path / "whole"))
    killed = start(SAGE, *arguments, "--checkpoint", tmp_path / "killed")
    for line in killed.stdout:
        if line.startswith("epoch 1 step 4"):
            break
    killed.kill()
    killed.communicate()
    out = end(start(SAGE, *arguments, "--checkpoint", tmp_path / "killed"))
    assert "going on from" in out
    expected, found = (torch.load(tmp_path / name) for name in ("whole", "killed"))
    assert found["loader"] == expected["loader"]
    for name, weights in expected["model"].items():
        assert torch.equal(found["model"][name], weights), name


@pytest.mark.skipif(not CORA.exists(), reason="no ../shared/data/cora")
def test_cora(tmp_path):
    """The public split: 0.79 to 0.82 is what two layers of GraphSAGE are known to reach (10 seeds: 0.80)."""
    run("import", "--from", CORA, "--out", tmp_path / "cora", "--quiet")
    arguments = ("--part_config", tmp_path / "cora", "--fan_out=-1,-1", "--num_epochs", 40, "--batch_size", 140, "--lr",
                 0.01, "--eval_every", 10, "--weight-decay", 5e-4, "--input_dropout", 0.5, "--normalize",
                 "--log_every", 0)
    jobs = [start(SAGE, *arguments, "--seed", seed) for seed in range(3)]
    found = [accuracy(end(job)) for job in jobs]
    assert 0.78 <= statistics.mean(found) <= 0.83, found


@pytest.mark.parametrize("arguments, text", [
    (("--graph_name", "other"), "the graph is rmat, not other"),
    (("--label", "absent"), 'no node type has "absent"'),
    (("--num_layers", "3"), "3 layers"),
])
def test_what_does_not_fit_is_said(whole, arguments, text):
    process = start(SAGE, "--part_config", whole, *SMALL, *arguments)
    _, err = process.communicate()
    assert process.returncode == 1 and text in err
