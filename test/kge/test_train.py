"""gwke_train from its command line to its files: results, outputs, and how it resumes after a kill."""

from __future__ import annotations

import csv
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
from conftest import sealed_again
from graphwire.kge import flags
from graphwire.kge.commands import main
from graphwire.kge.data import DataError
from graphwire.kge.outputs import Curve, Saved, new_folder

OPTIONS = ("--dataset wn18 --hidden_dim 16 --gamma 6 --lr 0.5 --batch_size 40 --neg_sample_size 20 -adv -rc 1e-9 "
           "--max_step 600 --log_interval 200 --batch_size_eval 16").split()


def train(data_path, save_path, *words):
    return main(["train", *OPTIONS, "--data_path", str(data_path), "--save_path", str(save_path), *words])


@pytest.mark.parametrize(("model", "words", "least"), [
    ("TransE_l2", (), 0.3), ("RotatE", ("-de",), 0.7), ("SimplE", (), 0.4), ("RESCAL", (), 0.3),
    ("TransR", ("--lr", "0.1"), 0.1)])
def test_models_learn_the_grid(data_path, tmp_path, capfd, model, words, least):
    """Chance has an MRR of 0.06."""
    assert train(data_path, tmp_path, "--model_name", model, "--test", *words) == 0
    folder = tmp_path / f"{model}_wn18_0"
    out = capfd.readouterr().out
    losses = [float(value) for value in re.findall(r"average loss: (\S+)", out)]
    assert len(losses) == 3 and losses[-1] < losses[0]
    figures = json.loads((folder / "test.json").read_text())
    assert figures["MRR"] > least
    assert f"Test average MRR: {figures['MRR']}" in out and 1 <= figures["MR"] <= 81
    saved = Saved(folder)
    assert saved.name == model and saved.entity.shape[0] == 81 and saved.relation.shape[0] == 5
    assert (saved.matrix is not None) == (model in ("RESCAL", "TransR"))


def test_outputs(data_path, tmp_path, capfd):
    assert train(data_path, tmp_path, "--model_name", "TransE_l2", "--valid", "--eval_interval", "300") == 0
    assert train(data_path, tmp_path, "--model_name", "TransE_l2", "--no_save_embed", "--max_step", "5") == 0
    first, second = tmp_path / "TransE_l2_wn18_0", tmp_path / "TransE_l2_wn18_1"
    assert not list(second.glob("*.npy")) and not (first / "test.json").exists()
    config = json.loads((first / "config.json").read_text())
    wanted = {"neg_sample_size": 20, "max_train_step": 600, "double_ent": False, "rmap_file": "relations.dict",
              "lr": 0.5,
              "neg_adversarial_sampling": True, "gamma": 6.0, "adversarial_temperature": 1.0, "batch_size": 40,
              "regularization_coef": 1e-9, "model": "TransE_l2", "dataset": "wn18", "emb_size": 16,
              "regularization_norm": 3, "double_rel": False, "emap_file": "entities.dict"}
    assert {name: config[name] for name in wanted} == wanted
    rows = list(csv.DictReader(open(first / "curve.csv")))
    assert [row["step"] for row in rows if row["loss"]] == ["200", "400", "600"]
    assert [row["step"] for row in rows if row["MRR"]] == ["300", "600"]
    assert float(rows[-1]["MRR"]) > 0.3
    assert all(0 < float(row["triples_per_processor_second"]) for row in rows if row["loss"])
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds == sorted(seconds)
    assert (first / "curve.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    entity = np.load(first / "wn18_TransE_l2_entity.npy")
    assert entity.shape == (81, 16) and entity.dtype == np.float32 and np.isfinite(entity).all()
    out = capfd.readouterr().out
    assert "[0]Valid average MRR: " in out
    assert len(re.findall(r"^\[0\]\[Train\] 200 steps take \S+ seconds, \d+ triples/s, \d+ triples per processor "
                          r"second$", out, re.MULTILINE)) == 3
    shares = re.findall(r"^\[0\]rows: a step waits (\S+)% of its time for them; a step takes (\S+) processor ms: "
                        r"(\S+)% pull, (\S+)% push$", out, re.MULTILINE)
    assert len(shares) == 4  # the last of them: 5 steps of another training
    for waits, each, pull, push in shares:
        assert 0 < float(waits) < 100 and float(each) > 0 and 0 < float(pull) + float(push) < 100


def test_the_same_seed_is_the_same_training(data_path, tmp_path):
    for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
        assert train(data_path, tmp_path / name, "--model_name", "TransE_l2", "--seed", seed, "--max_step", "30") == 0
    rows = [np.load(tmp_path / name / "TransE_l2_wn18_0/wn18_TransE_l2_entity.npy") for name in "abc"]
    assert np.array_equal(rows[0], rows[1]) and not np.allclose(rows[0], rows[2])


def test_a_killed_training_goes_on(data_path, tmp_path):
    """Killed at a random moment after a checkpoint has appeared. Its final files equal those of an uninterrupted
    training in every bit."""
    every = ["--model_name", "TransE_l2", "--checkpoint_interval", "20", "--log_interval", "10"]
    child = subprocess.Popen([sys.executable, "-m", "graphwire.kge", "train", *OPTIONS, "--data_path", str(data_path),
                              "--save_path", str(tmp_path / "killed"), *every, "--max_step", "1000000"],
                             stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    folder = tmp_path / "killed/TransE_l2_wn18_0"
    try:
        while not (folder / "checkpoint").is_dir():
            assert child.poll() is None
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    step = checkpoint_step(folder)
    assert step >= 20 and step % 20 == 0
    last = str(step + 50)
    assert train(data_path, tmp_path / "killed", *every, "--max_step", last, "--resume", str(folder)) == 0
    assert train(data_path, tmp_path / "alone", *every, "--max_step", last) == 0
    killed, alone = (np.load(tmp_path / name / "TransE_l2_wn18_0/wn18_TransE_l2_entity.npy")
                     for name in ("killed", "alone"))
    assert np.array_equal(killed, alone)
    rows = list(csv.DictReader(open(folder / "curve.csv")))
    assert [int(row["step"]) for row in rows] == sorted({int(row["step"]) for row in rows})
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds == sorted(seconds)  # of the whole training, including the part before the kill


def test_a_checkpoint_has_the_validation_of_its_step(data_path, tmp_path, monkeypatch):
    """A training that ends right after a checkpoint resumes with the validation of that step."""
    words = ["--model_name", "TransE_l2", "--checkpoint_interval", "5", "--valid", "--eval_interval", "5",
             "--log_interval", "10", "--max_step", "20"]
    assert train(data_path, tmp_path / "alone", *words) == 0
    whole = graphwire.Graph.checkpoint

    def ended(*arguments, **options):
        whole(*arguments, **options)
        raise OSError("ended")

    folder = tmp_path / "ended/TransE_l2_wn18_0"
    with monkeypatch.context() as patched:
        patched.setattr(graphwire.Graph, "checkpoint", ended)
        assert train(data_path, tmp_path / "ended", *words) == 1
        for step in (5, 10, 15):
            assert checkpoint_step(folder) == step
            assert train(data_path, tmp_path / "ended", *words, "--resume", str(folder)) == 1
    assert train(data_path, tmp_path / "ended", *words, "--resume", str(folder)) == 0
    curves = [[(row["step"], row["loss"], row["MRR"]) for row in csv.DictReader(open(
        tmp_path / name / "TransE_l2_wn18_0/curve.csv")) if row["MRR"]] for name in ("alone", "ended")]
    assert len(curves[0]) == 4 and curves[0] == curves[1]
    assert np.array_equal(*(np.load(tmp_path / name / "TransE_l2_wn18_0/wn18_TransE_l2_entity.npy")
                            for name in ("alone", "ended")))


def checkpoint_step(folder):
    """The step that a checkpoint is of."""
    names = [tensor["name"] for tensor in json.loads((folder / "checkpoint/checkpoint.json").read_text())["tensors"]]
    return int(np.load(folder / f"checkpoint/tensor{names.index('kge.step')}/part0/rows.npy").reshape(-1)[0])


def test_other_options_do_not_go_on(data_path, tmp_path, capfd):
    assert train(data_path, tmp_path, "--model_name", "TransE_l2", "--max_step", "3") == 0
    folder = str(tmp_path / "TransE_l2_wn18_0")
    assert train(data_path, tmp_path, "--model_name", "TransE_l2", "--lr", "0.3", "--resume", folder) == 1
    assert "its --lr was 0.5, not 0.3" in capfd.readouterr().err
    assert train(data_path, tmp_path, "--model_name", "TransE_l2", "--resume", str(tmp_path / "gone")) == 1
    assert "no training can be resumed here" in capfd.readouterr().err


OTHERS = (  # every flag that changes the training
    "--dataset wn18rr,--format udd_hrt,--data_files x,--delimiter ;,--has_edge_importance,--model_name TransE_l1,"
    "--hidden_dim 8,-g 5,-de,-dr,--loss_genre Logistic,-m 2,-pw,-adv,-a 2,-rc 1e-8,-rn 2,--batch_size 60,"
    "--neg_sample_size 10,--neg_deg_sample,--lr 0.3,--async_update,--rel_part,--seed 4,--staleness 0").split(",")


def test_every_flag_makes_another_training_or_may_change():
    config = vars(flags.parse("train", []))
    found = set()
    for words in OTHERS:
        args = flags.Parser("train").parse_args(words.split())
        [other] = [name for name in config if config[name] != getattr(args, name)]
        [said] = flags.changed(config, args)
        assert said == f"its --{other} was {config[other]!r}, not {getattr(args, other)!r}"
        found.add(other)
        assert flags.changed({name: config[name] for name in config if name != other}, args) == [said]
    assert not found & flags.MAY_CHANGE and found | flags.MAY_CHANGE == set(config)
    free = ("--data_path d --max_step 9 --force_sync_interval 3 --log_interval 2 --valid --eval_interval 3 --test "
            "--batch_size_eval 3 --neg_sample_size_eval 4 --no_eval_filter --neg_deg_sample_eval --eval_percent 0.5 "
            "--num_thread 2 --save_path s --no_save_emb --checkpoint_interval 3 --resume r --mean_ties").split()
    assert not flags.changed(config, flags.parse("train", free))
    dist = flags.parse("dist_train", "--ip_config x --path y --ssh_key z --scheduler local".split())
    assert not flags.changed(config, dist) and not flags.changed(vars(dist), flags.parse("train", []))
    assert flags.changed(config | {"rel_part": True}, dist) == ["its --rel_part was True, not False"]


@pytest.mark.parametrize(("words", "says"), [
    ([], "its --neg_adversarial_sampling was True, not False"),
    (["-adv", "-a", "2", "-rn", "2"], "its --adversarial_temperature was 1.0, not 2.0; its --regularization_norm was "
     "3, not 2"),
    (["-adv", "--num_proc", "2"], "it had 1 client, not 2"), (["-adv", "--eval_percent", "0.5"], None)])
def test_another_training_does_not_go_on(data_path, tmp_path, capfd, words, says):
    """The message names each option that differs, with both values."""
    options = [word for word in OPTIONS if word != "-adv"]
    command = ["train", *options, "--data_path", str(data_path), "--save_path", str(tmp_path), "--max_step", "4",
               "--checkpoint_interval", "2"]
    assert main([*command, "-adv"]) == 0
    folder = tmp_path / "TransE_wn18_0"
    config = (folder / "config.json").read_text()
    capfd.readouterr()
    assert main([*command, *words, "--max_step", "6", "--resume", str(folder)]) == (1 if says else 0)
    said = capfd.readouterr()
    assert said.err == (f"gwke_train: --resume {folder}: {says}\n" if says else "")
    assert ("goes on at step 4 of 6" in said.out) == (says is None)
    assert ((folder / "config.json").read_text() == config) == bool(says)


def test_a_folder_without_a_checkpoint_is_begun_anew(data_path, tmp_path, capfd):
    """The message says so, with and without --checkpoint_interval."""
    assert train(data_path, tmp_path, "--max_step", "3") == 0
    folder = tmp_path / "TransE_wn18_0"
    assert "has no checkpoint" not in capfd.readouterr().out
    assert train(data_path, tmp_path, "--max_step", "4", "--resume", str(folder)) == 0
    said = [line for line in capfd.readouterr().out.splitlines() if "checkpoint" in line]
    assert said == [f"{folder} has no checkpoint (--checkpoint_interval): the training begins at step 0 of 4"]
    assert steps_of(folder) == [4]


def test_clients_of_several_hosts_are_counted(data_path, tmp_path, monkeypatch, capfd):
    """By the number of all clients, whatever their hosts, and not by --num_client_proc."""
    assert train(data_path, tmp_path, "--max_step", "3") == 0
    folder = tmp_path / "TransE_wn18_0"
    config = json.loads((folder / "config.json").read_text())
    assert config["num_clients"] == 1
    sealed_again(folder, num_clients=3)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert main(["client", "dist_train", "-", *OPTIONS, "--data_path", str(data_path), "--ip_config", "x", "--resume",
                 str(folder), "--num_client_proc", "3"]) == 1
    assert f"--resume {folder}: it had 3 clients, not 4\n" in capfd.readouterr().err


@pytest.mark.parametrize(("flag", "what"), [("--test", "no test set"), ("--valid", "no validation set")])
def test_a_missing_set_is_reported_before_training(data_path, tmp_path, monkeypatch, capfd, flag, what):
    """By gwke_train, and by each client of gwke_dist_train."""
    words = ["--dataset", "grid", "--data_path", str(tmp_path), "--format", "raw_udd_hrt", "--data_files", "train.txt",
             "--max_step", "1", "--save_path", str(tmp_path / "ckpts"), flag]
    (tmp_path / "train.txt").write_bytes((data_path / "wn18/train.txt").read_bytes())
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    for command in (["train"], ["client", "dist_train", "-", "--ip_config", "x"]):
        assert main([*command, *words]) == 1
        assert f"{flag}: grid has {what}\n" in capfd.readouterr().err
        assert not (tmp_path / "ckpts").exists()


def test_failures_are_one_line(data_path, tmp_path, capfd, monkeypatch):
    assert main([]) == 2 and main(["fly"]) == 2 and main(["--help"]) == 0
    assert main(["train", "--batch_size", "x"]) == 2
    capfd.readouterr()
    assert main(["train", "--dataset", "none", "--data_path", str(tmp_path)]) == 1
    assert capfd.readouterr().err.count("\n") == 1
    monkeypatch.setenv("GRAPHWIRE", "/bin/false")
    assert train(data_path, tmp_path) == 1
    assert "graphwire import" in capfd.readouterr().err


@pytest.mark.parametrize("words", [["--test"], ["--valid", "--eval_interval", "4"]])
def test_a_training_that_diverged_is_reported(data_path, tmp_path, capfd, words):
    """Steps so long that rows overflow must not give an MRR of 1."""
    assert train(data_path, tmp_path, "--model_name", "DistMult", "--lr", "1e30", "--max_step", "8", *words) == 1
    said = capfd.readouterr()
    assert re.fullmatch(r"gwke_train: the score of head \d+, relation \d, tail \d+ is no finite number: .*\n", said.err)
    assert "MRR" not in said.out and not (tmp_path / "DistMult_wn18_0/test.json").exists()


def test_broken_models_are_refused(data_path, tmp_path):
    assert train(data_path, tmp_path, "--model_name", "TransE_l2", "--max_step", "3") == 0
    folder = tmp_path / "TransE_l2_wn18_0"
    with pytest.raises(DataError, match="have 16 elements"):
        Saved(folder, hidden_dim=8)
    (folder / "wn18_TransE_l2_relation.npy").unlink()
    with pytest.raises(DataError, match=r"cannot be read: .*relation\.npy"):
        Saved(folder)
    (folder / "wn18_TransE_l2_entity.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot be read"):
        Saved(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(DataError, match="is not valid JSON"):
        Saved(folder)
    with pytest.raises(DataError, match=r"config\.json does not exist"):
        Saved(tmp_path)


def steps_of(folder):
    return [int(row["step"]) for row in csv.DictReader(open(folder / "curve.csv"))]


def test_a_curve_leaves_out_incomplete_lines(tmp_path):
    """A kill may cut the last line anywhere, also the header."""
    curve = Curve(tmp_path)
    for step in (5, 10, 15):
        curve.add(step=step, seconds=f"{step / 8:.3f}", triples_per_second="7", loss=0.25, **{"HITS@10": 0.125})
    whole = (tmp_path / "curve.csv").read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        (tmp_path / "curve.csv").write_bytes(whole[:cut])
        again = Curve(tmp_path, 20)
        lines = sum(cut >= end for end in ends)
        assert steps_of(tmp_path) == [5, 10, 15][:max(0, lines - 1)], cut
        assert again.seconds == [0, 0, 0.625, 1.25, 1.875][lines]
    (tmp_path / "curve.csv").write_bytes(whole[:ends[1] + 3] + whole[ends[1]:] + b"\0" * 9 + b"\r\n")
    curve.draw()
    assert (tmp_path / "curve.png").is_file()
    assert Curve(tmp_path, 20).seconds == 1.875 and steps_of(tmp_path) == [5, 15]  # lines that continued after a cut
    Curve(tmp_path, 5)
    assert steps_of(tmp_path) == [5] and [path.suffix for path in tmp_path.iterdir()].count(".part") == 0


def test_a_curve_is_there_before_it_is_written_anew(tmp_path, monkeypatch):
    """Whatever ends the process during the write."""
    Curve(tmp_path).add(step=5, seconds="1.000")
    whole = (tmp_path / "curve.csv").read_bytes()

    def ended(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(csv.DictWriter, "writerows", ended)
    with pytest.raises(KeyboardInterrupt):
        Curve(tmp_path, 5)
    assert (tmp_path / "curve.csv").read_bytes() == whole


def test_folders_are_numbered(tmp_path):
    assert [new_folder(tmp_path, "A", "b").name for _ in range(3)] == ["A_b_0", "A_b_1", "A_b_2"]
