"""The numbers of entities: a model's rows keep the names of its training, whatever files are read later, in any
order. The oracle is plain Python: names are numbered in the order of first use over train, valid and test, as in the
training."""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor

import graphwire
import numpy as np
import pytest
from conftest import sealed_again
from graphwire.kge import commands, dictionaries, flags
from graphwire.kge.best import Best, Names, write_table
from graphwire.kge.commands import main
from graphwire.kge.data import DataError, load
from graphwire.kge.partition import parts_folder

FILES = ("train.tsv", "valid.tsv", "test.tsv")
TRAIN = ("--model_name DistMult --hidden_dim 8 --batch_size 16 --neg_sample_size 8 --lr 0.1 --max_step 6 "
         "--log_interval 6 --test").split()


def write(folder, splits, files=FILES):
    for name, triples in zip(files, splits):
        (folder / name).write_text("".join("\t".join(triple) + "\n" for triple in triples))


def draw(seed):
    """Three sets of random triples; some names occur only in the last two."""
    random = np.random.default_rng(seed)
    triples = sorted({(f"n{h}", f"r{r}", f"n{t}") for h, r, t in zip(
        random.integers(0, 30, 90), random.integers(0, 4, 90), random.integers(0, 30, 90))})
    order = random.permutation(len(triples))
    triples = [triples[i] for i in order]
    triples[-1] = ("only in test", triples[-1][1], triples[-1][2])
    triples[-11] = (triples[-11][0], "only in valid", triples[-11][2])
    return [triples[:-20], triples[-20:-10], triples[-10:]]


def numbered(splits):
    """The oracle: names of entities and relations by number."""
    entities, relations = {}, {}
    for h, r, t in (triple for split in splits for triple in split):
        entities.setdefault(h, len(entities))
        relations.setdefault(r, len(relations))
        entities.setdefault(t, len(entities))
    return list(entities), list(relations)


def raw(folder, files=FILES):
    return ["--dataset", "own", "--format", "raw_udd_hrt", "--data_path", str(folder), "--data_files", *files]


def figures_of(text):
    return [line for line in text.splitlines() if line.startswith("Test average")]


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def trained(tmp_path, capfd):
    """Trains on names in `data`; the sets, the model's folder, and its test figures."""
    def train(seed, *words):
        splits = draw(seed)
        (tmp_path / "data").mkdir()
        write(tmp_path / "data", splits)
        assert main(["train", *raw(tmp_path / "data"), *TRAIN, "--save_path", str(tmp_path / "ckpts"), *words]) == 0
        return splits, tmp_path / "ckpts/DistMult_own_0", figures_of(capfd.readouterr().out)

    return train


def predicted(model, tmp_path, *words):
    """The scores of all tails of a head and a relation, by name."""
    out = tmp_path / "out.tsv"
    (tmp_path / "h").write_text("n3\n")
    (tmp_path / "r").write_text("r1\n")
    assert main(["predict", "--model_path", str(model), "--format", "h_r_*", "--data_files", str(tmp_path / "h"),
                 str(tmp_path / "r"), "--raw_data", "--topK", "1000", "--output", str(out), *words]) == 0
    lines = [line.split("\t") for line in out.read_text().splitlines()[1:]]
    assert {(h, r) for h, r, _, _ in lines} == {("n3", "r1")}
    return {t: float(score) for _, _, t, score in lines}


@pytest.mark.parametrize("seed", range(3))
def test_names_keep_their_rows(trained, tmp_path, capfd, seed):
    """The sets and their lines in another order: the figures equal the training's in every bit, predictions have the
    right names, and no file is written to the data folder."""
    splits, model, figures = trained(seed)
    entities, relations = numbered(splits)
    assert set(tree(tmp_path / "data")) == set(FILES) and len(figures) == 5
    random = np.random.default_rng(seed)
    shuffled = [[split[i] for i in random.permutation(len(split))] for split in splits[:2]] + splits[2:]
    other = tmp_path / "other"
    other.mkdir()
    write(other, [shuffled[1], shuffled[0], splits[2]])
    before = tree(tmp_path)
    assert main(["eval", *raw(other), "--model_path", str(model)]) == 0
    assert figures_of(capfd.readouterr().out) == figures and tree(tmp_path) == before
    assert main(["train", *raw(other), *TRAIN, "--save_path", str(tmp_path / "ckpts")]) == 0
    capfd.readouterr()
    assert main(["eval", *raw(other), "--model_path", str(model)]) == 0
    assert figures_of(capfd.readouterr().out) == figures
    entity, relation = (np.load(model / f"own_DistMult_{what}.npy") for what in ("entity", "relation"))
    found = predicted(model, tmp_path, "--data_path", str(other))
    head = entity[entities.index("n3")] * relation[relations.index("r1")]
    assert set(found) == set(entities)
    for name, score in found.items():
        assert score == pytest.approx(float(head @ entity[entities.index(name)]), abs=1e-4)


def test_a_training_goes_on_with_its_numbers(trained, tmp_path):
    splits, model, _ = trained(7, "--checkpoint_interval", "6")
    before = tree(model)
    write(tmp_path / "data", [splits[0][::-1], splits[1], splits[2]])
    words = ["train", *raw(tmp_path / "data"), *TRAIN, "--checkpoint_interval", "6", "--resume", str(model)]
    assert main(words) == 0
    after = tree(model)
    for name in ("own_DistMult_entity.npy", "entities.tsv", "relations.tsv", "test.json"):
        assert after[name] == before[name]


def test_two_trainings_in_one_data_folder(tmp_path, capfd):
    """Both at once, with the same names in other orders."""
    splits = draw(11)
    write(tmp_path, splits)
    write(tmp_path, [splits[1], splits[0], splits[2]], files=("a.tsv", "b.tsv", "test.tsv"))
    commands = [["train", *raw(tmp_path, files), *TRAIN, "--save_path", str(tmp_path / name)]
                for name, files in (("x", FILES), ("y", ("a.tsv", "b.tsv", "test.tsv")))]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(main, commands)) == [0, 0], capfd.readouterr().err
    capfd.readouterr()
    for name, order in zip("xy", (splits, [splits[1], splits[0], splits[2]])):
        model = tmp_path / name / "DistMult_own_0"
        assert [line.split("\t")[1] for line in (model / "entities.tsv").read_text().splitlines()] == numbered(order)[0]
        assert main(["eval", *raw(tmp_path), "--model_path", str(model)]) == 0
        assert figures_of(capfd.readouterr().out) == [
            f"Test average {key}: {value}" for key, value in json.loads((model / "test.json").read_text()).items()]
    assert not list(tmp_path.glob("*entities*"))


def test_unknown_names_are_refused(trained, tmp_path, capfd):
    """With one line, and no file is replaced."""
    splits, model, _ = trained(3)
    before = tree(tmp_path)
    other = tmp_path.parent / f"{tmp_path.name}-other"
    other.mkdir()
    write(other, [splits[0], splits[1], [*splits[2], ("nobody", "r1", "n1")]])
    for command in (["eval", *raw(other), "--model_path", str(model)],
                    ["eval", *raw(other, ("train.tsv", "valid.tsv", "gone.tsv")), "--model_path", str(model)]):
        assert main(command) == 1
        assert capfd.readouterr().err.count("\n") == 1
    assert main(["eval", *raw(other), "--model_path", str(model)]) == 1
    assert f"test.tsv: line 11: 'nobody' is no entity of the dictionary {model}/entities.tsv" in capfd.readouterr().err
    (model / "relations.tsv").unlink()
    assert main(["eval", *raw(tmp_path / "data"), "--model_path", str(model)]) == 1
    assert f"{model}/relations.tsv does not exist, but entities.tsv does" in capfd.readouterr().err
    del before["ckpts/DistMult_own_0/relations.tsv"]
    assert tree(tmp_path) == before


def test_dictionaries_that_contradict_the_model_are_refused(trained, tmp_path, capfd):
    """Dictionaries given on the command line; other names for the same rows are accepted."""
    splits, model, _ = trained(4)
    entities, _ = numbered(splits)
    right = predicted(model, tmp_path)
    wrong, labels, short = (tmp_path / name for name in ("wrong", "labels", "short"))
    wrong.write_text("".join(f"{i}\t{name}\n" for i, name in enumerate(sorted(entities))))
    labels.write_text("".join(f"{i}\t{name if name == 'n3' else 'the ' + name}\n" for i, name in enumerate(entities)))
    short.write_text("".join(f"{i}\t{name}\n" for i, name in enumerate(entities[:-1])))
    assert predicted(model, tmp_path, "--entity_mfile", str(labels)) == {
        name if name == "n3" else f"the {name}": score for name, score in right.items()}
    out = ["--output", str(tmp_path / "out.tsv")]
    predict = ["predict", "--model_path", str(model), "--format", "h_r_*", "--raw_data", *out, "--data_files",
               str(tmp_path / "h"), str(tmp_path / "r"), "--entity_mfile"]
    similar = ["emb_sim", "--emb_file", str(model / "own_DistMult_entity.npy"), "--format", "*", "--raw_data", *out]
    before = (tmp_path / "out.tsv").read_bytes()
    for command in (predict, [*similar, "--mfile"]):
        for path, says in ((wrong, f"{model}/entities.tsv, the dictionary of the model"),
                           (short, " rows: it is the dictionary of another")):
            assert main([*command, str(path)]) == 1
            said = capfd.readouterr().err
            assert says in said and said.count("\n") == 1
    assert (tmp_path / "out.tsv").read_bytes() == before
    assert main(similar) == 0  # with the model's own
    assert {word for line in (tmp_path / "out.tsv").read_text().splitlines()[1:] for word in line.split("\t")[:2]} <= (
        set(entities))
    relations = ["emb_sim", "--emb_file", str(model / "own_DistMult_relation.npy"), "--format", "*", "--raw_data", *out]
    assert main(relations) == 0
    assert "only in valid" in (tmp_path / "out.tsv").read_text()


@pytest.mark.parametrize("left", [True, False])
def test_a_model_of_an_older_version(trained, tmp_path, capfd, left):
    """It has no dictionaries. If the training left some in the data folder, these are used; else the order of the
    files."""
    splits, model, figures = trained(5)
    for name in dictionaries.NAMED:
        (model / name).rename(tmp_path / "data" / name) if left else (model / name).unlink()
    sealed_again(model, "arrays", *dictionaries.DIGESTS)
    if left:
        write(tmp_path / "data", [splits[1], splits[0], splits[2]])
    before = tree(tmp_path)
    assert main(["eval", *raw(tmp_path / "data"), "--model_path", str(model)]) == 0
    said = capfd.readouterr()
    assert figures_of(said.out) == figures and tree(tmp_path) == before
    assert said.err.count("\n") == 2 and f"{model} has no entities.tsv: names are numbered " in said.err
    assert f"gwke: {model} has no digests of its rows" in said.err
    assert (f"by {tmp_path}/data/entities.tsv" if left else "in the order of first use") in said.err
    if left:
        assert set(predicted(model, tmp_path, "--data_path", str(tmp_path / "data"))) == set(numbered(splits)[0])
    write(tmp_path / "data", [[*splits[0], ("n1", "r1", "one more")], splits[1], splits[2]])
    assert main(["eval", *raw(tmp_path / "data"), "--model_path", str(model)]) == 1
    assert ("'one more' is no entity" if left else " entities and ") in capfd.readouterr().err


def test_built_in_names_keep_their_rows(data_path, tmp_path, capfd):
    """The dictionary belongs to the user, who may replace it."""
    folder = tmp_path / "wn18"
    folder.mkdir()
    for path in (data_path / "wn18").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    common = ["--dataset", "wn18", "--data_path", str(tmp_path)]
    assert main(["train", *common, *TRAIN, "--save_path", str(tmp_path)]) == 0
    figures = figures_of(capfd.readouterr().out)
    names = [line.split("\t")[1] for line in (folder / "entities.dict").read_text().splitlines()]
    (folder / "entities.dict").write_text("".join(f"{i}\t{name}\n" for i, name in enumerate(reversed(names))))
    assert main(["eval", *common, "--model_path", str(tmp_path / "DistMult_wn18_0")]) == 0
    assert figures_of(capfd.readouterr().out) == figures
    (folder / "entities.dict").unlink()
    assert main(["eval", *common, "--model_path", str(tmp_path / "DistMult_wn18_0")]) == 0  # it needs none
    assert figures_of(capfd.readouterr().out) == figures
    (folder / "test.txt").write_text("nobody\tright\tp00\n")
    with pytest.raises(DataError, match="'nobody' is no entity"):
        load(tmp_path, "wn18", numbers=dictionaries.of(tmp_path / "DistMult_wn18_0"))


@pytest.mark.parametrize("name", ["own", "Freebase"])
def test_numbers_of_other_dictionaries_are_refused(tmp_path, capfd, name):
    """Files of numbers need their dictionaries, which must be the same."""
    splits = draw(6)
    entities, relations = numbered(splits)
    order, form = ((0, 1, 2), ["--format", "udd_hrt"]) if name == "own" else ((0, 2, 1), [])
    data = tmp_path if name == "own" else tmp_path / name
    data.mkdir(exist_ok=True)
    lines = [[tuple(str(some) for some in (entities.index(h), relations.index(r), entities.index(t)))
              for h, r, t in split] for split in splits]
    files = FILES if form else tuple(file.replace("tsv", "txt") for file in FILES)
    write(data, [[tuple(triple[at] for at in order) for triple in split] for split in lines], files)
    given = ("e.tsv", "r.tsv") if form else dictionaries.NUMBERED
    for file, names in zip(given, (entities, relations)):
        (data / file).write_text(("" if form else f"{len(names)}\n") + "".join(
            f"{i}\t{some}\n" if form else f"{some}\t{i}\n" for i, some in enumerate(names)))
    common = ["--dataset", name, "--data_path", str(tmp_path), *form]
    if form:
        common += ["--data_files", *given, *files]
    assert main(["train", *common, *TRAIN, "--save_path", str(tmp_path / "ckpts")]) == 0
    figures, model = figures_of(capfd.readouterr().out), tmp_path / f"ckpts/DistMult_{name}_0"
    assert main(["eval", *common, "--model_path", str(model)]) == 0
    assert figures_of(capfd.readouterr().out) == figures
    text = (data / given[0]).read_text().splitlines()
    text[4:6] = text[5:3:-1]
    (data / given[0]).write_text("\n".join(text) + "\n")
    assert main(["eval", *common, "--model_path", str(model)]) == 1
    said = capfd.readouterr().err
    assert f"{data / given[0]} is not {model}" in said and said.count("\n") == 1


def test_parts_have_the_numbers_of_their_names(tmp_path, monkeypatch, capfd):
    """Clients on several hosts read evaluation sets with the parts' dictionaries, whatever the order of their names."""
    splits = draw(8)
    (tmp_path / "data").mkdir()
    data = tmp_path / "data"
    write(data, splits)
    opened = graphwire.open
    monkeypatch.setattr(graphwire, "open", lambda *where: opened(*where or [parts_folder(data, "own")]))
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert main(["partition", "-k", "2", "--method", "random", *raw(data)]) == 0
    parts = parts_folder(data, "own")
    assert [line.split("\t")[1] for line in (parts / "entities.tsv").read_text().splitlines()] == numbered(splits)[0]
    assert {path.name for path in data.iterdir()} == {*FILES, "own"}
    write(data, [splits[1], splits[0], splits[2]])
    client = ["client", "dist_train", "-", "--ip_config", "none", *raw(data), *TRAIN]
    client += ["--save_path", str(tmp_path / "c")]
    assert main(client) == 0
    figures, model = figures_of(capfd.readouterr().out), tmp_path / "c/DistMult_own_0"
    assert main(["eval", *raw(data), "--model_path", str(model)]) == 0
    assert figures_of(capfd.readouterr().out) == figures
    assert main([*client[:-3], "--save_path", str(tmp_path / "c")]) == 0  # without --test it reads no triples
    assert tree(tmp_path / "c/DistMult_own_1")["entities.tsv"] == (parts / "entities.tsv").read_bytes()
    assert main(["partition", "-k", "2", "--method", "random", *raw(data)]) == 0  # renumbered
    capfd.readouterr()
    assert main([*client, "--resume", str(model)]) == 1
    assert f"{parts}/entities.tsv is not {model}/entities.tsv" in capfd.readouterr().err
    for name in (*dictionaries.NAMED, dictionaries.DIGESTS_OF_PARTS):  # a changed file of the parts is refused
        text = (parts / name).read_bytes()
        (parts / name).write_bytes(text.replace(b"1", b"2", 1))
        assert main(client) == 1
        said = capfd.readouterr().err
        assert f"{parts / name}" in said and said.count("\n") == 1
        (parts / name).write_bytes(text)
    (data / "own/partition_0/relation_count.txt").write_text("2\n")  # a file for DGL-KE; the parts record the number
    assert commands.num_relations_of(flags.parse("dist_train", client[3:])) == len(numbered(splits)[1])
    (parts / dictionaries.DIGESTS_OF_PARTS).unlink()
    for name in dictionaries.NAMED:
        (parts / name).rename(data / name)  # as an older version left them
    assert main(client) == 0
    assert f"{parts} has no entities.tsv: names are numbered by {data}/entities.tsv" in capfd.readouterr().err
    for name in dictionaries.NAMED:
        (data / name).unlink()
    assert main(client) == 1
    said = capfd.readouterr().err
    assert f"{parts} has no entities.tsv and relations.tsv" in said and said.count("\n") == 1


def test_a_partition_that_fails_keeps_the_old_files(tmp_path, capfd):
    write(tmp_path, draw(9))
    assert main(["partition", "-k", "2", "--method", "random", *raw(tmp_path)]) == 0
    before = tree(tmp_path)
    with open(tmp_path / "train.tsv", "a") as file:
        file.write("half a line\n")
    assert main(["partition", "-k", "2", "--method", "random", *raw(tmp_path)]) == 1
    after = tree(tmp_path)
    assert after.pop("train.tsv") != before.pop("train.tsv") and after == before
    parts = parts_folder(tmp_path, "own")
    (parts / "graph.json").rename(parts / "mine.json")
    write(tmp_path, draw(9))
    assert main(["partition", "-k", "2", "--method", "random", *raw(tmp_path)]) == 1
    assert f"{parts} exists but has no graph.json" in capfd.readouterr().err and (parts / "mine.json").exists()


def test_a_table_that_fails_leaves_the_one_that_was_there(tmp_path):
    path = tmp_path / "out.tsv"
    path.write_text("before\n")
    (tmp_path / "names").write_text("0\ta\n1\tb\n")
    names, best = Names(tmp_path / "names", 2), Best(1, 2, 1)
    best.ids[0], best.scores[0] = best.ids.new_tensor([[0], [9]]), best.scores.new_tensor([2, 1])
    with pytest.raises(KeyError):
        write_table(path, ["name", "score"], best, [names])
    assert tree(tmp_path) == {"out.tsv": b"before\n", "names": b"0\ta\n1\tb\n"}


def test_config_names_the_dictionaries(trained):
    _, model, _ = trained(10)
    config = json.loads((model / "config.json").read_text())
    assert (config["emap_file"], config["rmap_file"]) == dictionaries.NAMED
    assert [config[key] for key in dictionaries.DIGESTS] == [
        "sha256:" + hashlib.sha256((model / name).read_bytes()).hexdigest() for name in dictionaries.NAMED]


@pytest.mark.parametrize("name", dictionaries.NAMED)
def test_a_dictionary_that_was_edited_is_refused(trained, tmp_path, capfd, name):
    """By each command that reads names, with one line. A model without digests opens as before."""
    _, model, _ = trained(12)
    predicted(model, tmp_path)
    lines = (model / name).read_text().splitlines()
    first, second = (line.split("\t")[1] for line in lines[:2])
    lines[:2] = [f"0\t{second}", f"1\t{first}"]
    (model / name).write_text("\n".join(lines) + "\n")
    predict = ["predict", "--model_path", str(model), "--format", "h_r_*", "--raw_data", "--data_files",
               str(tmp_path / "h"), str(tmp_path / "r"), "--output", str(tmp_path / "new.tsv")]
    similar = ["emb_sim", "--emb_file", str(model / "own_DistMult_entity.npy"), "--format", "*", "--raw_data",
               "--output", str(tmp_path / "new.tsv")]
    evaluate = ["eval", *raw(tmp_path / "data"), "--model_path", str(model)]
    resume = ["train", *raw(tmp_path / "data"), *TRAIN, "--resume", str(model)]
    capfd.readouterr()
    before = tree(tmp_path)
    for command in (predict, similar, evaluate, resume):
        assert main(command) == 1
        said = capfd.readouterr().err
        assert f"{model / name} is not the dictionary of the training" in said and said.count("\n") == 1, command
    assert tree(tmp_path) == before
    sealed_again(model, *dictionaries.DIGESTS)
    for command in (predict, similar, evaluate):
        assert main(command) == 0


@pytest.mark.parametrize("name", dictionaries.NAMED)
def test_a_dictionary_that_is_a_pipe_is_named(trained, tmp_path, capfd, name):
    _, model, _ = trained(13)
    (model / name).unlink()
    os.mkfifo(model / name)
    assert main(["eval", *raw(tmp_path / "data"), "--model_path", str(model)]) == 1
    said = capfd.readouterr().err
    assert f"{model / name} is a pipe, not a file" in said and said.count("\n") == 1
