"""Jobs of several clients: files of partition, training over servers, dist_train with the launcher, and ends of
jobs."""

from __future__ import annotations

import collections
import os
import re
import select
import subprocess
import sys

import numpy as np
import pytest
from graphwire._base.program import ProgramError
from graphwire.kge import data as kge_data
from graphwire.kge import flags, local
from graphwire.kge import partition as kge_partition
from graphwire.kge.commands import main, num_relations_of
from graphwire.kge.data import load
from graphwire.kge.dist_train import command_of
from graphwire.kge.outputs import new_folder
from ports import free_ports

OPTIONS = ("--dataset wn18 --model_name TransE_l2 --hidden_dim 16 --gamma 6 --lr 0.5 --batch_size 40 "
           "--neg_sample_size 20 -adv -rc 1e-9 --max_step 300 --log_interval 100 --batch_size_eval 7 --test").split()


def figures_of(text):
    return {line.split()[2].rstrip(":"): float(line.split()[3]) for line in text.splitlines() if "Test average" in line}


def rows_of(path):
    return [tuple(map(int, line.split("\t"))) for line in path.read_text().splitlines()]


def numbers_of(path):
    return [int(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def cut(data_path, tmp_path_factory):
    """A separate data_path, partitioned into two."""
    top = tmp_path_factory.mktemp("cut")
    (top / "wn18").mkdir()
    for path in (data_path / "wn18").iterdir():
        (top / "wn18" / path.name).write_bytes(path.read_bytes())
    done = subprocess.run([sys.executable, "-m", "graphwire.kge", "partition", "--dataset", "wn18", "-k", "2",
                           "--data_path", str(top)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return top, done.stdout


def test_partition_leaves_every_triple_once(cut, dataset):
    top, out = cut[0] / "wn18", cut[1]
    book = numbers_of(top / "partition_0/partition_book.txt")
    assert book == numbers_of(top / "partition_1/partition_book.txt") and len(book) == dataset.num_entities
    found, cuts = collections.Counter(), 0
    for part in (0, 1):
        folder = top / f"partition_{part}"
        numbers = numbers_of(folder / "local_to_global.txt")
        assert len(set(numbers)) == len(numbers) and numbers_of(folder / "relation_count.txt") == [5]
        own = [number for number in numbers if book[number] == part]
        assert numbers[:len(own)] == own and len(own) == book.count(part)
        for head, relation, tail in rows_of(folder / "train.txt"):
            found[numbers[head], relation, numbers[tail]] += 1
            assert book[numbers[tail]] == part
            cuts += book[numbers[head]] != part
    assert found == collections.Counter(zip(dataset.train.head.tolist(), dataset.train.relation.tolist(),
                                            dataset.train.tail.tolist()))
    assert f"there are {len(dataset.train)} edges in the graph and {cuts} edge cuts for 2 partitions." in out
    assert 0 < cuts < len(dataset.train) / 2  # METIS finds the grid
    assert (top / "graphwire/graph.json").is_file()


def test_partition_by_blocks_leaves_the_same_bytes(cut, tmp_path, monkeypatch):
    """Whatever the number of triples in memory at once."""
    (tmp_path / "wn18").mkdir()
    for path in (cut[0] / "wn18").iterdir():
        if path.is_file():
            (tmp_path / "wn18" / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(kge_data, "BLOCK", 11)
    monkeypatch.setattr(kge_partition, "BLOCK", 7)
    assert main(["partition", "--dataset", "wn18", "-k", "2", "--data_path", str(tmp_path)]) == 0
    for part in (0, 1):
        for path in (cut[0] / f"wn18/partition_{part}").iterdir():
            assert (tmp_path / f"wn18/partition_{part}" / path.name).read_bytes() == path.read_bytes()
    assert main(["partition", "--dataset", "wn18", "-k", "1", "--data_path", str(tmp_path)]) == 0
    assert rows_of(tmp_path / "wn18/partition_0/local_to_global.txt") == [(i,) for i in range(81)]


def test_parts_of_a_former_run_are_removed(cut, tmp_path, capfd):
    """The files of this command, and no others."""
    top = tmp_path / "wn18"
    top.mkdir()
    for path in (cut[0] / "wn18").iterdir():
        if path.is_file():
            (top / path.name).write_bytes(path.read_bytes())
    assert main(["partition", "--dataset", "wn18", "-k", "5", "--data_path", str(tmp_path)]) == 0
    (top / "partition_3/notes.txt").write_text("mine")
    (top / "partition_4/train.txt").unlink()
    (top / "partition_2").rename(top / "partition_02")
    (top / "partition_2").symlink_to("partition_02")
    (top / "partition_9").mkdir()
    for path in (top / "partition_1").iterdir():
        (top / "partition_9" / path.name).write_bytes(path.read_bytes())
    capfd.readouterr()
    assert main(["partition", "--dataset", "wn18", "-k", "1", "--data_path", str(tmp_path)]) == 0
    assert {path.name for path in top.glob("partition_*")} == {
        "partition_0", "partition_02", "partition_2", "partition_3", "partition_4"}
    assert [len(list((top / f"partition_{part}").iterdir())) for part in ("0", "02", "3", "4")] == [4, 4, 5, 3]
    assert [line for line in capfd.readouterr().out.splitlines() if "former" in line] == [
        f"partition_{part}: removed, a former run with more parts wrote it" for part in (1, 9)]


def test_partition_without_metis(cut, tmp_path, capfd):
    """The error says how much memory METIS would need, and what to do; random works with any size."""
    (tmp_path / "wn18").mkdir()
    for path in (cut[0] / "wn18").iterdir():
        if path.is_file():
            (tmp_path / "wn18" / path.name).write_bytes(path.read_bytes())
    command = ["partition", "--dataset", "wn18", "-k", "2", "--data_path", str(tmp_path)]
    assert main([*command, "--memory", "1Ki"]) == 1
    assert "--memory allows 1" in (said := capfd.readouterr().err) and "--method random" in said
    assert main([*command, "--method", "random"]) == 0
    cuts = [int(re.search(r"and (\d+) edge cuts", out).group(1)) for out in (capfd.readouterr().out, cut[1])]
    assert cuts[0] > 2 * cuts[1]


@pytest.mark.parametrize("parts", [1, 2])
def test_clients_over_servers_learn_as_one_does(data_path, tmp_path, capfd, parts):
    words = [*OPTIONS, "--data_path", str(data_path), "--save_path", str(tmp_path), "--num_proc", "2"]
    args = flags.parse("train", words)
    folder = new_folder(tmp_path, "TransE_l2", "wn18")
    local.train_local(args, load(data_path, "wn18"), folder, words, parts)
    found = figures_of(capfd.readouterr().out)
    assert found["MRR"] > 0.2  # chance: 0.06; it is 0.35 to 0.39, depending on the clients' timing
    # A partition renumbers entities; the results are in the dictionary's order all the same.
    assert main(["eval", "--dataset", "wn18", "--data_path", str(data_path), "--model_path", str(folder)]) == 0
    assert figures_of(capfd.readouterr().out) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("evaluates", [[], ["--test"], ["--valid"]])
def test_clients_read_triples_where_they_evaluate(data_path, tmp_path, capfd, evaluates):
    """The files are removed when the clients begin: clients that only train get all they need from the server."""
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_bytes((data_path / f"wn18/{split}.txt").read_bytes())
    words = ["--dataset", "grid", "--format", "raw_udd_hrt", "--data_files", "train.txt", "valid.txt", "test.txt",
             "--data_path", str(tmp_path), "--num_proc", "2", "--max_step", "3", "--hidden_dim", "8",
             *evaluates]
    args, folder = flags.parse("train", words), tmp_path / "results"
    folder.mkdir()
    dataset = load(tmp_path, "grid", "raw_udd_hrt", files=args.data_files)
    for path in [*tmp_path.glob("*.txt"), *tmp_path.glob("*.tsv")]:
        path.unlink()
    if evaluates:
        with pytest.raises(ProgramError, match=r"client \d ended with status 1"):
            local.train_local(args, dataset, folder, words)
        assert "train.txt does not exist" in capfd.readouterr().err
    else:
        local.train_local(args, dataset, folder, words)
        assert np.load(folder / "grid_TransE_relation.npy").shape == (5, 8)
        assert not list(tmp_path.glob("*.tsv"))


def test_matrices_of_640_kb_are_trained_over_servers(data_path, tmp_path, capfd):
    """TransR's projections, which DGL-KE's distributed mode never pushes: initial values are within 1, and training
    moves them beyond."""
    words = [*OPTIONS, "--data_path", str(data_path), "--num_proc", "2", "--model_name", "TransR", "--hidden_dim",
             "400", "--gamma", "12", "--lr", "0.05", "--max_step", "30", "--log_interval", "10"]
    words.remove("--test")
    local.train_local(flags.parse("train", words), load(data_path, "wn18"), tmp_path, words, 2)
    out = capfd.readouterr().out
    for rank in (0, 1):
        losses = [float(loss) for loss in re.findall(rf"\[{rank}\]\[Train\]\(\d+/30\) average loss: (\S+)", out)]
        assert len(losses) == 3 and losses[2] < losses[0]
    matrices = np.load(tmp_path / "wn18_TransRprojection.npy")
    assert matrices.shape == (5, 400 * 400) and np.isfinite(matrices).all()
    assert (np.abs(matrices).max(1) > 1.01).all()  # of each relation


def test_a_job_meets_checkpoints_and_goes_on(data_path, tmp_path, capfd):
    words = [*OPTIONS, "--data_path", str(data_path), "--save_path", str(tmp_path), "--num_proc", "2", "--rel_part",
             "--checkpoint_interval", "100", "--valid", "--eval_interval", "150", "--force_sync_interval", "70",
             "--async_update"]
    assert main(["train", *words]) == 0
    assert "[0]Valid average MRR: " in capfd.readouterr().out
    assert main(["train", *words, "--max_step", "350", "--resume", str(tmp_path / "TransE_l2_wn18_0")]) == 0
    assert "goes on at step 300 of 350" in capfd.readouterr().out


def test_a_failure_ends_the_other_clients(tmp_path):
    """A client that would never end is ended when another fails."""
    with pytest.raises(ProgramError, match="client 1 ended with status 3"), local.Processes() as processes:
        slow = processes.start("client 0", ["sleep", "1000"])
        processes.start("client 1", ["sh", "-c", "exit 3"])
        processes.wait()
    assert slow.poll() is not None
    with pytest.raises(ProgramError, match="graphwire serve"), local.Processes() as processes:
        local.serve(processes, tmp_path / "gone", 0, tmp_path / "log")


def test_nothing_outlives_the_command():
    """Not even if the command is killed."""
    code = ("from graphwire.kge import local\nwith local.Processes() as processes:\n"
            "    print(processes.start('client 0', ['sleep', '1000']).pid, flush=True)\n    processes.wait()\n")
    command = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    slow = os.pidfd_open(int(command.stdout.readline()))
    command.kill()
    command.communicate()
    assert select.select([slow], [], [], 100)[0]
    os.close(slow)


def test_every_flag_reaches_the_clients(cut, tmp_path, monkeypatch):
    """DGL-KE prints 1e-09 as 0.000000 and forwards only some flags; here all arguments are forwarded as typed."""
    (tmp_path / "ip_config.txt").write_text("127.0.0.1 30050 2\n127.0.0.1 30051 2\n")
    words = ["--path", str(tmp_path), "--ip_config", str(tmp_path / "ip_config.txt"), "--dataset", "wn18",
             "--data_path", str(cut[0]), *"--model_name RotatE -de --regularization_coef 1.00E-09 -a 2 -adv "
             "--ssh_key k -g 19.9 --num_client_proc 3 --neg_deg_sample --has_edge_importance --num_thread 2".split()]
    command = command_of(flags.parse("dist_train", words), words)
    assert command[command.index("--num_trainers") + 1] == "3" and command[command.index("--ssh_key") + 1] == "k"
    assert command[command.index("--num_omp_threads") + 1] == "2"
    assert not {"--program", "--ssh_port", "--via"} & set(command)
    ways = ["--program", "/opt/graphwire", "--ssh_port", "23", "--via", "ssh"]
    assert set(command_of(flags.parse("dist_train", words + ways), words + ways)) >= set(ways)
    sent = command[-1].split(" client dist_train - ")[1].split()
    again = flags.parse("dist_train", sent)
    assert (again.regularization_coef, again.double_ent, again.adversarial_temperature, again.gamma,
            again.neg_deg_sample, again.has_edge_importance) == (1e-9, True, 2.0, 19.9, True, True)
    assert num_relations_of(again) == 5
    assert vars(again) == vars(flags.parse("dist_train", words))


def test_dist_train_on_two_hosts(cut, tmp_path):
    """The guide's last step, with the test's hosts; the outputs are those of gwke_train."""
    (tmp_path / "ip_config.txt").write_text("".join(f"127.0.0.1 {port} 1\n" for port in free_ports(2)))
    done = subprocess.run(
        [sys.executable, "-m", "graphwire.kge", "dist_train", "--path", str(tmp_path), "--ip_config",
         str(tmp_path / "ip_config.txt"), "--scheduler", "local", "--num_client_proc", "2", "--data_path", str(cut[0]),
         *OPTIONS], capture_output=True, text=True, cwd="/", env={**os.environ, "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    found = {name: float(value) for name, value in re.findall(r"Test average (\S+): (\S+)", done.stdout)}
    assert found["MRR"] > 0.2  # chance: 0.06; it is 0.35 to 0.39, depending on the clients' timing
    folder = tmp_path / "ckpts/TransE_l2_wn18_0"
    assert {path.name for path in folder.iterdir()} >= {
        "wn18_TransE_l2_entity.npy", "wn18_TransE_l2_relation.npy", "config.json", "curve.csv", "test.json"}
    assert np.load(folder / "wn18_TransE_l2_entity.npy").shape == (81, 16)
    for rank in range(4):
        assert f"[{rank}][Train](300/300) average loss" in done.stdout


def test_dist_train_needs_parts(data_path, tmp_path, capfd):
    (tmp_path / "ip_config.txt").write_text("127.0.0.1 30050 1\n")
    assert main(["dist_train", "--ip_config", str(tmp_path / "ip_config.txt"), "--data_path", str(data_path),
                 "--dataset", "wn18"]) == 1
    assert "gwke_partition --dataset wn18" in capfd.readouterr().err
