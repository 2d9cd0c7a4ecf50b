"""gwke_eval, gwke_predict and gwke_emb_sim on a trained model, compared with the training's figures and with brute
force."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import sealed_again
from graphwire.kge import best
from graphwire.kge.commands import main, results_folder
from graphwire.kge.data import DataError, read_dictionary
from graphwire.kge.outputs import Saved, mapped

NAMES = {"TransE_l2": (), "RotatE": ("-de",), "TransR": ("--lr", "0.1"), "RESCAL": (), "SimplE": ()}


@pytest.fixture(scope="module")
def models(data_path, tmp_path_factory):
    """A folder of each model, and its test figures as training printed them."""
    top = tmp_path_factory.mktemp("models")
    for name, words in NAMES.items():
        status = main(["train", "--model_name", name, "--dataset", "wn18", "--data_path", str(data_path), "--save_path",
                       str(top), *"--hidden_dim 8 --gamma 5 --lr 0.3 --batch_size 40 --neg_sample_size 20 --test "
                       "--max_step 60 --log_interval 60".split(), *words])
        assert status == 0
    return {name: top / f"{name}_wn18_0" for name in NAMES}


def figures_of(text):
    return {line.split()[2].rstrip(":"): float(line.split()[3]) for line in text.splitlines() if "Test average" in line}


@pytest.mark.parametrize("name", NAMES)
def test_eval_finds_the_figures_of_the_training(data_path, models, capfd, name):
    command = ["eval", "--dataset", "wn18", "--data_path", str(data_path), "--model_path", str(models[name])]
    assert main(command) == 0
    found = figures_of(capfd.readouterr().out)
    trained = figures_of("\n".join(f"Test average {key}: {value}" for key, value in json.loads(
        (models[name] / "test.json").read_text()).items()))
    assert found == trained and set(found) == {"MRR", "MR", "HITS@1", "HITS@3", "HITS@10"}
    assert main([*command, "--hidden_dim", "10"]) == 1
    assert "elements" in capfd.readouterr().err


def test_eval_of_several_processes_is_the_same(data_path, models, capfd):
    command = ["eval", "--dataset", "wn18", "--data_path", str(data_path), "--model_path", str(models["RESCAL"])]
    texts = []
    for words in ([], ["--num_proc", "2"]):
        assert main([*command, *words]) == 0
        texts.append(figures_of(capfd.readouterr().out))
    assert texts[0] == texts[1]
    for words in (["--no_eval_filter", "--neg_deg_sample_eval", "--neg_sample_size_eval", "30"],
                  ["--eval_percent", "0.3"], ["--neg_sample_size_eval", "20"]):
        assert main([*command, *words]) == 0
        assert figures_of(capfd.readouterr().out) != texts[0]


@pytest.mark.parametrize("words", ["--eval_percent 0.3", "--neg_sample_size_eval 20",
                                   "--no_eval_filter --neg_deg_sample_eval"])
def test_what_is_drawn_does_not_depend_on_the_seed(data_path, tmp_path, capfd, words):
    """eval with the same flags prints the figures of the training."""
    command = ["--dataset", "wn18", "--data_path", str(data_path), *words.split()]
    assert main(["train", *command, *"--seed 5 --hidden_dim 8 --max_step 2 --batch_size 40 --neg_sample_size 20 "
                 "--test --save_path".split(), str(tmp_path)]) == 0
    trained = figures_of(capfd.readouterr().out)
    command = ["eval", *command, "--model_path", str(tmp_path / "TransE_wn18_0")]
    assert main(command) == 0
    assert figures_of(capfd.readouterr().out) == trained
    assert main(command[:-2 - len(words.split())] + command[-2:]) == 0
    assert figures_of(capfd.readouterr().out) != trained


def formula(saved, h, r, t, gamma):
    """A triple's score by its definition."""
    e, rel = saved.entity.astype(np.float64), saved.relation.astype(np.float64)
    if saved.name == "TransE_l2":
        return gamma - math.sqrt(((e[h] + rel[r] - e[t]) ** 2).sum())
    if saved.name == "RotatE":
        half = e.shape[1] // 2
        turned = (e[h, :half] + 1j * e[h, half:]) * np.exp(1j * rel[r] * math.pi / ((5.0 + 2) / half))
        return gamma - abs(turned - (e[t, :half] + 1j * e[t, half:])).sum()
    if saved.name == "RESCAL":
        return e[h] @ rel[r].reshape(8, 8) @ e[t]
    if saved.name == "SimplE":
        return (e[h, :4] * rel[r, :4] * e[t, 4:] + e[t, :4] * rel[r, 4:] * e[h, 4:]).sum() / 2
    matrix = saved.matrix[r].astype(np.float64).reshape(8, 8)
    return gamma - abs(e[h] @ matrix + rel[r] - e[t] @ matrix).sum()


def table(path):
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    return lines[0], lines[1:]


@pytest.mark.parametrize(("name", "score_func"), [
    ("TransE_l2", "none"), ("TransE_l2", "logsigmoid"), ("RotatE", "none"), ("TransR", "logsigmoid"),
    ("RESCAL", "none"), ("SimplE", "none")])
@pytest.mark.parametrize(("form", "mode"), [("h_r_t", "all"), ("h_r_*", "batch_head"), ("*_r_t", "batch_tail"),
                                            ("h_*_*", "batch_rel"), ("h_r_t", "triplet_wise")])
def test_predictions_are_those_of_brute_force(models, tmp_path, monkeypatch, name, score_func, form, mode):
    monkeypatch.setattr(best, "BLOCK", 7)
    lists = {"h": [3, 5, 70, 6, 11, 12, 13, 14, 40], "r": [0, 2, 4, 1, 3], "t": [9, 8, 7, 1, 2, 3, 50, 60, 80]}
    if mode == "triplet_wise":
        lists["r"] += [0, 1, 2, 3]
    files = []
    for letter in form.replace("_", "").replace("*", ""):
        (tmp_path / letter).write_text("".join(f"{number}\n" for number in lists[letter]))
        files.append(str(tmp_path / letter))
    out = tmp_path / "result.tsv"
    assert main(["predict", "--model_path", str(models[name]), "--format", form, "--data_files", *files, "--topK", "4",
                 "--exec_mode", mode, "--score_func", score_func, "--output", str(out)]) == 0
    header, lines = table(out)
    assert header == ["src", "rel", "dst", "score"]
    saved = Saved(models[name])
    every = [lists[letter] if letter in form else list(range(5 if letter == "r" else 81)) for letter in "hrt"]
    triples = list(zip(*every)) if mode == "triplet_wise" else list(itertools.product(*every))
    gamma = 5.0 if score_func == "logsigmoid" else 0.0

    def value(triple):
        score = formula(saved, *triple, gamma)
        return -math.log1p(math.exp(-score)) if score_func == "logsigmoid" else score

    column = {"batch_head": 0, "batch_rel": 1, "batch_tail": 2}.get(mode)
    groups = [triples] if column is None else [
        [triple for triple in triples if triple[column] == key] for key in every[column]]
    expected = [sorted(map(value, group), reverse=True)[:4] for group in groups]
    assert len(lines) == sum(map(len, expected))
    found = [float(line[3]) for line in lines]
    assert np.allclose(found, [score for group in expected for score in group], atol=2e-4)
    for line in lines:
        assert float(line[3]) == pytest.approx(value(tuple(map(int, line[:3]))), abs=2e-4)


def test_predictions_by_name(data_path, models, tmp_path, capfd):
    (tmp_path / "h").write_text("p44\n")
    (tmp_path / "r").write_text("right\n")
    out = tmp_path / "out.tsv"
    command = ["predict", "--data_path", str(data_path / "wn18"), "--model_path", str(models["RotatE"]), "--format",
               "h_r_*", "--data_files", str(tmp_path / "h"), str(tmp_path / "r"), "--topK", "3", "--output", str(out)]
    assert main([*command, "--raw_data"]) == 0
    header, lines = table(out)
    assert header == ["head", "rel", "tail", "score"] and len(lines) == 3
    assert all(line[0] == "p44" and line[1] == "right" and line[2].startswith("p") for line in lines)
    (tmp_path / "e").write_text((data_path / "wn18/entities.dict").read_text().replace("p44", "centre"))
    (tmp_path / "q").write_text((data_path / "wn18/relations.dict").read_text().replace("right", "east"))
    (tmp_path / "h").write_text("centre\n")
    (tmp_path / "r").write_text("east\n")
    renamed = ["--raw_data", "--entity_mfile", str(tmp_path / "e"), "--rel_mfile", str(tmp_path / "q")]
    assert main([*command, *renamed, "--data_path", str(tmp_path / "gone")]) == 0
    assert table(out)[1] == [["centre", "east", line[2].replace("p44", "centre"), *line[3:]] for line in lines]
    assert main(command) == 1
    assert "names need --raw_data" in capfd.readouterr().err
    (tmp_path / "h").write_text("nobody\n")
    assert main([*command, "--raw_data"]) == 1
    assert "line 1" in capfd.readouterr().err
    assert main([*command[:-2], "--data_files", str(tmp_path / "h")]) == 1
    assert "takes 2, not 1" in capfd.readouterr().err


# Only the keys that DGL-KE itself writes to config.json.
DGLKE_FIELDS = ("dataset model emb_size max_train_step batch_size neg_sample_size lr gamma double_ent double_rel "
                "neg_adversarial_sampling adversarial_temperature regularization_coef regularization_norm emap_file "
                "rmap_file").split()


@pytest.mark.parametrize("name", ["TransE_l2", "RotatE", "TransR"])
def test_a_folder_of_dglke_is_read(data_path, models, tmp_path, capfd, name):
    """eval, predict and emb_sim treat it like a model that was trained here."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for path in models[name].glob("*.npy"):
        np.save(theirs / path.name, np.load(path))
    config = json.loads((models[name] / "config.json").read_text())
    (theirs / "config.json").write_text(json.dumps({field: config[field] for field in DGLKE_FIELDS}))
    assert len(DGLKE_FIELDS) == 16
    assert {path.name for path in theirs.iterdir()} == {
        "config.json", f"wn18_{name}_entity.npy", f"wn18_{name}_relation.npy",
        *(["wn18_TransRprojection.npy"] if name == "TransR" else [])}
    (tmp_path / "h").write_text("p44\n")
    said = []
    for folder in (models[name], theirs):
        out = tmp_path / "out.tsv"
        assert main(["eval", "--dataset", "wn18", "--data_path", str(data_path), "--model_path", str(folder)]) == 0
        figures = figures_of(capfd.readouterr().out)
        assert main(["predict", "--data_path", str(data_path / "wn18"), "--model_path", str(folder), "--format",
                     "h_*_*", "--data_files", str(tmp_path / "h"), "--raw_data", "--output", str(out)]) == 0
        predicted = out.read_text()
        assert main(["emb_sim", "--emb_file", str(folder / f"wn18_{name}_entity.npy"), "--format", "*", "--output",
                     str(out)]) == 0
        said.append((figures, predicted, out.read_text()))
        capfd.readouterr()
    assert said[0] == said[1] and len(said[0][0]) == 5


SIMILAR = {
    "cosine": lambda x, y: x @ y / math.sqrt((x @ x) * (y @ y)), "dot": lambda x, y: x @ y,
    "l2": lambda x, y: math.sqrt(((x - y) ** 2).sum()), "l1": lambda x, y: abs(x - y).sum(),
    "ext_jaccard": lambda x, y: x @ y / (x @ x + y @ y - x @ y)}


@pytest.mark.parametrize("kind", SIMILAR)
@pytest.mark.parametrize(("form", "mode"), [("l_r", "pairwise"), ("l_r", "all"), ("l_*", "batch_left"), ("*_r", "all"),
                                            ("*", "all")])
def test_likenesses_are_those_of_brute_force(tmp_path, monkeypatch, kind, form, mode):
    monkeypatch.setattr(best, "BLOCK", 7)
    rows = np.random.default_rng(1).normal(size=(23, 5)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    lists = {"l": [3, 1, 20, 5, 8, 9, 10, 11], "r": [4, 3, 2, 1, 0, 19, 21, 22]}
    files = []
    for letter in form.replace("_", "").replace("*", ""):
        (tmp_path / letter).write_text("".join(f"{number}\n" for number in lists[letter]))
        files.append(str(tmp_path / letter))
    out = tmp_path / "out.tsv"
    assert main(["emb_sim", "--emb_file", str(tmp_path / "rows.npy"), "--format", form, "--sim_func", kind, "--topK",
                 "5", "--exec_mode", mode, "--output", str(out), *(["--data_files", *files] if files else [])]) == 0
    header, lines = table(out)
    assert header == ["left", "right", "score"]
    every = [lists[letter] if letter in form else list(range(23)) for letter in "lr"]
    pairs = list(zip(*every)) if mode == "pairwise" else list(itertools.product(*every))
    groups = [[pair for pair in pairs if pair[0] == left] for left in every[0]] if mode == "batch_left" else [pairs]
    wide = rows.astype(np.float64)
    expected = [sorted((SIMILAR[kind](wide[a], wide[b]) for a, b in group), reverse=kind not in ("l1", "l2"))[:5]
                for group in groups]
    assert np.allclose([float(line[2]) for line in lines], [score for group in expected for score in group], atol=2e-5)
    for a, b, score in lines:
        assert float(score) == pytest.approx(SIMILAR[kind](wide[int(a)], wide[int(b)]), abs=2e-5)


def test_likenesses_by_name(data_path, models, tmp_path, capfd):
    (tmp_path / "l").write_text("p44\np00\n")
    command = ["emb_sim", "--emb_file", str(models["RESCAL"] / "wn18_RESCAL_entity.npy"), "--format", "l_*",
               "--data_files", str(tmp_path / "l"), "--exec_mode", "batch_left", "--topK", "3", "--output",
               str(tmp_path / "out.tsv"), "--mfile", str(data_path / "wn18/entities.dict")]
    assert main([*command, "--raw_data"]) == 0 and not capfd.readouterr().err
    named = table(tmp_path / "out.tsv")[1]
    numbers = read_dictionary(data_path / "wn18/entities.dict")
    (tmp_path / "l").write_text("".join(f"{numbers[name]}\n" for name in ("p44", "p00")))
    assert main(command) == 0  # as in DGL-KE's own scripts: numbers, and a file of names that no option needs
    assert "--mfile" in (said := capfd.readouterr().err) and "is not read" in said and said.count("\n") == 1
    found = table(tmp_path / "out.tsv")[1]
    assert [line[0] for line in named] == ["p44"] * 3 + ["p00"] * 3 and len(found) == 6
    assert [[str(numbers[left]), str(numbers[right]), score] for left, right, score in named] == found


@pytest.mark.parametrize("odd", ["a\u2028b", "a\x85b", "a\x0cb", "a\x1eb", "a\rb"])
def test_a_name_ends_at_the_end_of_its_line(tmp_path, odd):
    """Also where Python's text files have other line ends."""
    np.save(tmp_path / "rows.npy", np.eye(2, dtype=np.float32) + 1)
    (tmp_path / "names").write_bytes(f"0\t{odd}\n1\tb\n".encode())
    (tmp_path / "l").write_bytes(f"b\r\n{odd}\n".encode())
    out = tmp_path / "out.tsv"
    assert main(["emb_sim", "--emb_file", str(tmp_path / "rows.npy"), "--format", "l_*", "--data_files",
                 str(tmp_path / "l"), "--raw_data", "--mfile", str(tmp_path / "names"), "--exec_mode", "batch_left",
                 "--topK", "1", "--output", str(out)]) == 0
    assert out.read_bytes().decode() == f"left\tright\tscore\nb\tb\t1.00000\n{odd}\t{odd}\t1.00000\n"


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["TransE_l2", "RESCAL"])
def test_rows_that_are_no_numbers_are_an_error(data_path, models, tmp_path, capfd, name, bad):
    """eval, predict and emb_sim sort by scores; NaN was above all others, or had the first rank."""
    folder = tmp_path / "broken"
    folder.mkdir()
    for path in models[name].iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    entities = folder / f"wn18_{name}_entity.npy"
    rows = np.load(entities)
    rows[7] = bad
    np.save(entities, rows)
    sealed_again(folder)
    (tmp_path / "h").write_text("3\n")
    (tmp_path / "r").write_text("1\n")
    (tmp_path / "t").write_text("7\n")
    some = [str(tmp_path / letter) for letter in "hrt"]
    out = ["--output", str(tmp_path / "out.tsv")]
    evaluate = ["eval", "--dataset", "wn18", "--data_path", str(data_path), "--model_path", str(folder)]
    predict = ["predict", "--model_path", str(folder), *out]
    similar = ["emb_sim", "--emb_file", str(entities), *out]
    triple = "the score of head 3, relation 1, tail 7 is no finite number: "
    some_triple = r"the score of head \d+, relation \d, tail \d+ is no finite number: "
    for words, says in (
            (evaluate, some_triple), ([*evaluate, "--num_proc", "2"], some_triple),
            ([*predict, "--format", "h_r_t", "--data_files", *some], triple),
            ([*predict, "--format", "h_r_t", "--data_files", *some, "--score_func", "logsigmoid"], triple),
            ([*predict, "--format", "h_r_t", "--data_files", *some, "--exec_mode", "triplet_wise"], triple),
            ([*predict, "--format", "h_r_*", "--data_files", *some[:2], "--exec_mode", "batch_tail"], triple),
            ([*similar, "--format", "l_*", "--data_files", some[0]], "the cosine of 3 and 7 is no finite number: "),
            ([*similar, "--format", "l_r", "--data_files", some[0], some[2], "--exec_mode", "pairwise", "--sim_func",
              "l1"], "the l1 of 3 and 7 is no finite number: ")):
        assert main(words) == 1, words
        assert re.fullmatch(f"gwke_{words[0]}: {says}.*\n", capfd.readouterr().err), words
    assert not (tmp_path / "out.tsv").exists()
    (tmp_path / "t").write_text("8\n")
    assert main([*predict, "--format", "h_r_t", "--data_files", *some]) == 0  # does not need that row


def test_pipes_are_not_waited_for(tmp_path):
    signal.alarm(60)  # ends the tests if an open blocks
    try:
        for name in ("wn18_DistMult_entity.npy", "config.json"):
            os.mkfifo(tmp_path / name)
        with pytest.raises(DataError, match="is a pipe, not a file"):
            mapped(tmp_path / "wn18_DistMult_entity.npy")
        with pytest.raises(DataError, match=r"config\.json is a pipe, not a file"):
            Saved(tmp_path)
        with pytest.raises(DataError, match="is a pipe, not a file"):
            results_folder(SimpleNamespace(resume=str(tmp_path)), 1)
    finally:
        signal.alarm(0)


def test_invalid_inputs_are_refused(models, tmp_path, capfd):
    (tmp_path / "bad.npy").write_bytes(b"x")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    np.save(tmp_path / "rows.npy", np.ones((3, 2)))
    for words, message in ((["--emb_file", str(tmp_path / "bad.npy"), "--format", "*"], "cannot be read"),
                           (["--emb_file", str(tmp_path / "flat.npy"), "--format", "*"], "expected rows of floats"),
                           (["--emb_file", "x", "--format", "r_l"], "there is no format"),
                           (["--emb_file", str(tmp_path / "rows.npy"), "--format", "*", "--raw_data"],
                            "needs --mfile")):
        assert main(["emb_sim", *words]) == 1
        assert message in capfd.readouterr().err
