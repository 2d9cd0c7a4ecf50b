"""DGL's own scripts, unmodified, standalone; and scripts that are launched over two servers. test_guides.py and
test/deploy/dgl_guide.py launch DGL's scripts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import PROGRAM, TOP, arrays_of_communities, runner
from group_threads import counted, left

# A separate loopback address, so that ports do not collide.
OWN_NETWORK = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
COMMON = ("--graph_name", "communities", "--ip_config", "there_is_none.txt", "--batch_size", "100")


def losses(text):
    return [float(loss) for loss in re.findall(r"Loss ([0-9.]+)", text)]


def test_standalone_supervised(scripts, communities, tmp_path):
    """The scripts check --num_workers and --num_servers against the environment, which has neither. --num_gpus -1 is
    the CPU. ip_config is not opened."""
    text = runner(scripts / "train_dist.py", *COMMON, "--standalone", "--part_config", communities / "communities.json",
                  "--num_epochs", 4, "--close_profiler", "--log_every", 1, "--eval_every", 100, folder=tmp_path)
    assert "part 0, train: 300 (local: 300), val: 120 (local: 120), test: 180 (local: 180)" in text
    assert "#labels: 3" in text and "parent ends" in text
    found = losses(text)
    assert len(found) == 12 and sum(found[-3:]) < sum(found[:3])


@pytest.mark.slow
def test_standalone_unsupervised(scripts, communities, tmp_path):
    text = runner(scripts / "train_dist_unsupervised.py", *COMMON, "--standalone", "--part_config", communities,
                  "--num_epochs", 1, "--batch_size", 2000, "--log_every", 1, "--remove_edge", folder=tmp_path)
    assert "parent ends" in text and (tmp_path / "emb.pt").exists()
    assert float(re.search(r"test acc ([0-9.]+)", text).group(1)) > 0.5  # three classes


def launched(scripts, two_parts, folder, script, *arguments, name="communities"):
    """Runs the script under launch.py, on two hosts that are both this machine. name: the graph's."""
    workspace = folder / "workspace"
    shutil.copytree(two_parts, workspace / "data")
    (workspace / "code").mkdir()
    shutil.copy(scripts / script, workspace / "code")
    (workspace / "ip_config.txt").write_text("127.0.0.1 30050\n127.0.0.1 30051\n")
    command = " ".join([sys.executable, f"code/{script}", f"--graph_name {name} --ip_config ip_config.txt",
                        "--num_servers 1", *arguments])
    home = folder / "home"  # where a host records the port of each server
    home.mkdir()
    environment = counted({**os.environ, "OMP_NUM_THREADS": "1", "HOME": str(home)})
    done = subprocess.run(
        [*OWN_NETWORK, sys.executable, str(TOP / "deploy/launch.py"), "--workspace", str(workspace), "--num_trainers",
         "1", "--num_samplers", "1", "--num_servers", "1", "--num_omp_threads", "1", "--part_config",
         f"data/{name}.json", "--ip_config", "ip_config.txt", "--scheduler", "local", "--program", PROGRAM,
         command],
        capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert left(done.stdout).count(0) >= 2 and not any(left(done.stdout)), done.stdout
    return done.stdout


@pytest.mark.slow
def test_calls_of_several_ranks(two_parts, tmp_path):
    """init_func, synchronous optimizers, net_type: dgl_ranks.py with two trainers."""
    text = launched(TOP / "test/adapters", two_parts, tmp_path, "dgl_ranks.py")
    assert sorted(re.findall(r"rank (\d): ok", text)) == ["0", "1"], text


@pytest.mark.slow
def test_pyg_launched(two_parts, tmp_path):
    """A trainer with PyTorch Geometric, on two hosts over two servers: nodes, then links."""
    text = launched(TOP / "test/adapters", two_parts, tmp_path, "pyg_trainer.py")
    found = re.findall(r"rank (\d): 180 nodes, accuracy ([0-9.]+)", text)
    assert sorted(rank for rank, _ in found) == ["0", "1"] and float(found[0][1]) > 0.7, text
    links = re.findall(r"rank \d: (\d+) links, loss ([0-9.]+) to ([0-9.]+)", text)
    every = str(len(arrays_of_communities()["edges"]))
    assert [count for count, *_ in links] == [every, every] and all(float(b) < float(a) for _, a, b in links), text


def test_children_of_multiprocessing(tmp_path):
    """With dgl installed they would have DGL's own dgl.distributed, and without dgl none."""
    text = runner(TOP / "test/adapters/spawned.py", "spawn", "forkserver", folder=tmp_path)
    assert text.split("\n")[-3:-1] == ["spawn ok", "forkserver ok"], text
