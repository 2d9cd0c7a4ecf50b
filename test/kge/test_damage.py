"""A damaged file of a model's folder never gives other scores: Saved raises DataError, or the damage does not matter. A
damaged dataset ends in DataError too."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
from conftest import sealed_again
from damage import damages
from graphwire.kge import data, dictionaries
from graphwire.kge.commands import main
from graphwire.kge.data import DataError
from graphwire.kge.models import NAMES
from graphwire.kge.outputs import Saved

OPTIONS = ("--dataset wn18 --hidden_dim 8 --gamma 6 --lr 0.1 --batch_size 40 --neg_sample_size 20 --max_step 4 "
           "--checkpoint_interval 2").split()
TRIALS = 30  # for each file


@pytest.fixture(scope="module")
def models(data_path, tmp_path_factory):
    top = tmp_path_factory.mktemp("models")
    for name in NAMES:
        words = ["-de"] if name == "RotatE" else []
        assert main(["train", "--model_name", name, *OPTIONS, *words, "--data_path", str(data_path), "--save_path",
                     str(top)]) == 0
    return {name: top / f"{name}_wn18_0" for name in NAMES}


def scores(folder):
    """The scores of some triples by number, and the names of all rows."""
    saved, heads = Saved(folder), np.arange(40)
    found = saved.model.score(saved.entity_rows(heads), saved.relations_of(heads % 5), saved.entity_rows(heads + 41))
    names = dictionaries.of(folder)
    return found.numpy().tobytes(), *map(data.read_dictionary, (names.entities, names.relations))


@pytest.mark.parametrize("name", NAMES)
def test_scores_and_names_stay_or_it_is_an_error(models, tmp_path, name):
    folder = tmp_path / "model"
    shutil.copytree(models[name], folder)
    good, refused = scores(folder), {}
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for seed, path in enumerate(files):
        text = path.read_bytes()
        for what, other in damages(text, TRIALS, seed):
            path.write_bytes(other)
            try:
                assert scores(folder) == good, (path.name, what)
            except DataError as error:
                assert path.name in str(error), (what, str(error))
                refused[path.name] = refused.get(path.name, 0) + 1
        path.write_bytes(text)
    assert scores(folder) == good
    must = {path.name for path in files if path.suffix in (".npy", ".tsv", ".json")}
    assert set(refused) == must and min(refused.values()) > TRIALS // 2
    assert all(refused[name] == TRIALS for name in must if name.endswith((".json", ".tsv")))


def test_files_of_two_trainings_do_not_mix(models, data_path, tmp_path):
    """As after a kill between two files, or a copy of one of them."""
    folder = tmp_path / "model"
    shutil.copytree(models["TransR"], folder)
    assert main(["train", "--model_name", "TransR", *OPTIONS, "--max_step", "8", "--data_path", str(data_path),
                 "--resume", str(folder)]) == 0
    scores(folder)
    for path in folder.glob("*.npy"):
        text = path.read_bytes()
        shutil.copy(models["TransR"] / path.name, path)
        with pytest.raises(DataError, match=re.escape(f"{path} is not the file that the training wrote")):
            Saved(folder)
        path.write_bytes(text)
    scores(folder)


def test_commands_name_the_damaged_file(models, data_path, tmp_path, capfd):
    folder = tmp_path / "model"
    shutil.copytree(models["RESCAL"], folder)
    (tmp_path / "h").write_text("3\n")
    similar = ["emb_sim", "--emb_file", str(folder / "wn18_RESCAL_entity.npy"), "--format", "*", "--output",
               str(tmp_path / "out")]
    predict = ["predict", "--model_path", str(folder), "--format", "h_*_*", "--data_files", str(tmp_path / "h"),
               "--output", str(tmp_path / "out")]
    evaluate = ["eval", "--dataset", "wn18", "--data_path", str(data_path), "--model_path", str(folder)]
    resume = ["train", "--model_name", "RESCAL", *OPTIONS, "--data_path", str(data_path), "--resume", str(folder)]
    for file, offset, commands in (("wn18_RESCAL_entity.npy", -20, (similar, predict, evaluate)),
                                   ("wn18_RESCAL_relation.npy", -20, (predict, evaluate)),
                                   ("config.json", 200, (similar, predict, evaluate, resume)),
                                   ("checkpoint/checkpoint.json", 200, (resume,))):
        text = (folder / file).read_bytes()
        other = bytearray(text)
        other[offset] ^= 1
        (folder / file).write_bytes(other)
        for command in commands:
            capfd.readouterr()
            assert main(command) == 1, (file, command[0])
            said = capfd.readouterr().err
            assert file in said and said.count("\n") == 1, said
        (folder / file).write_bytes(text)
    for name in dictionaries.NAMED:  # both are gone: the names must not be numbered anew
        (folder / name).unlink()
    assert main(evaluate) == 1 and "has no dictionaries" in capfd.readouterr().err
    own = folder / "mine.npy"  # a file of the user's own
    np.save(own, np.eye(3, dtype=np.float32))
    assert main(["emb_sim", "--emb_file", str(own), "--format", "*", "--output", str(tmp_path / "out")]) == 0


def test_a_folder_without_digests_opens_with_one_line(models, tmp_path, capfd):
    folder = tmp_path / "model"
    shutil.copytree(models["ComplEx"], folder)
    good = scores(folder)
    assert capfd.readouterr().err == ""
    sealed_again(folder, "arrays")
    assert scores(folder) == good
    said = capfd.readouterr().err
    assert said.startswith(f"gwke: {folder} has no digests of its rows") and said.count("\n") == 1
    path = folder / "wn18_ComplEx_entity.npy"
    text = path.read_bytes()
    for what, other in damages(text, 150, 1):  # of headers: every fault is a DataError
        path.write_bytes(other)
        try:
            Saved(folder)
        except DataError as error:
            assert str(path) in str(error) or "rows of entities" in str(error), (what, str(error))


def words(folder, kind):
    return {"raw_udd_hrt": ["train.tsv", "valid.tsv", "test.tsv"],
            "udd_hrt": ["entities.tsv", "relations.tsv", "train.tsv"], "built_in": None}[kind]


@pytest.mark.parametrize("kind", ["raw_udd_hrt", "udd_hrt", "built_in", "Freebase"])
def test_datasets_end_in_data_errors(tmp_path, kind):
    name, numbers = ("Freebase", True) if kind == "Freebase" else ("wn18", kind == "udd_hrt")
    folder = tmp_path / name if kind in ("built_in", "Freebase") else tmp_path
    folder.mkdir(exist_ok=True)
    lines = [f"{i * 7 % 9}\t{i % 2}\t{i * 5 % 9}" for i in range(30)]
    texts = {"raw_udd_hrt": {f"{split}.tsv": lines for split in data.SPLITS},
             "udd_hrt": {"entities.tsv": [f"{i}\te{i}" for i in range(9)], "relations.tsv": ["0\ta", "1\tb"],
                         "train.tsv": [f"{line}\t0.5" for line in lines]},
             "built_in": {"entities.dict": [f"{i}\t{i}" for i in range(9)], "relations.dict": ["0\t0", "1\t1"],
                          **{f"{split}.txt": lines for split in data.SPLITS}},
             "Freebase": {"entity2id.txt": ["9", *(f"e{i}\t{i}" for i in range(9))], "relation2id.txt": [
                 "2", "a\t0", "b\t1"], **{f"{split}.txt": [f"{i % 9}\t{i % 8}\t{i % 2}" for i in range(30)]
                                          for split in data.SPLITS}}}[kind]
    for file, rows in texts.items():
        (folder / file).write_text("".join(f"{row}\n" for row in rows))
    form = "built_in" if kind == "Freebase" else kind

    def load():
        return data.load(tmp_path, name, form, files=words(folder, kind) if form != "built_in" else None,
                         has_edge_importance=numbers and kind == "udd_hrt")

    load()
    errors = 0
    for seed, file in enumerate(texts):
        text = (folder / file).read_bytes()
        for what, other in (*damages(text, 60, seed, 4), ("digits", b"9" * 5000 + b"\n"),
                            ("digits and a name", b"9" * 5000 + b"\tname\n")):
            (folder / file).write_bytes(other)
            try:
                load()
            except DataError as error:
                assert str(folder) in str(error), (file, what, str(error))
                errors += 1
        (folder / file).write_bytes(text)
    assert errors > 20
