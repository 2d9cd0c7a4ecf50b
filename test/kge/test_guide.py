"""docs/KGE.md, "Several hosts": the commands of DGL-KE's guide, on four hosts in namespaces with an sshd each
(test/deploy/bed.py). Addresses are the bed's; clients and steps are fewer. The data is fb15k-237 of ../shared, under
the guide's name, with a short test set."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import TOP
from graphwire.kge import data

sys.path.insert(0, str(TOP / "test/deploy"))

from bed import HOME, Bed, wait_for
from shared import given

HOSTS = 4
BLOCKS = re.compile(r"^```(?:sh)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
FEWER = ((r"--num_client_proc 16", "--num_client_proc 1"), (r"--max_step 500", "--max_step 12"),
         (r"--log_interval 100", "--log_interval 6"), (r"\b10\.0\.0\.", "10.77.0."))
FIGURE = re.compile(r"Test average (\S+): (\S+)")


def write_data(folder):
    """FB15k/ with the layout of the data set of that name."""
    folder.mkdir(parents=True)
    real = given("data/fb15k-237")
    splits = {name: gzip.open(real / f"{name}.tsv.gz", "rt").read().splitlines() for name in ("train", "valid", "test")}
    splits["test"] = splits["test"][:60]
    triples = [line.split("\t") for lines in splits.values() for line in lines]
    names, relations = ({name: i for i, name in enumerate(sorted(found))} for found in (
        {line[i] for line in triples for i in (0, 2)}, {line[1] for line in triples}))
    for name, lines in splits.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    data.write_dictionary(folder / "entities.dict", names)
    data.write_dictionary(folder / "relations.dict", relations)
    return len(names)


def install(host):
    """The package and the program for all users of a host; its /usr/local/bin is private from now on. The virtual
    environment is this one, over an interpreter that may be in a folder that hosts do not see."""
    environment, prefix = host.home / "venv", Path(sys.prefix)
    packages = next(Path(path) for path in sys.path if path.endswith("-packages"))
    interpreter = Path(os.path.realpath(sys.executable)).relative_to(os.path.realpath(sys.base_prefix))
    inside = environment / packages.relative_to(prefix)
    inside.parent.mkdir(parents=True)
    inside.symlink_to("/mnt/top" / packages.relative_to(TOP))
    (environment / "bin").mkdir()
    (environment / "bin/python3").symlink_to(Path("/mnt/seen") / interpreter)
    (environment / "pyvenv.cfg").write_text("home = /mnt/seen/bin\ninclude-system-site-packages = false\n")
    for path in (prefix / "bin").glob("dglke_*"):
        lines = path.read_text().split("\n")
        copy = environment / "bin" / path.name
        copy.write_text("\n".join([f"#!{HOME}/venv/bin/python3", *lines[1:]]))
        copy.chmod(0o755)
    done = host.shell("mount -t tmpfs tmpfs /usr/local/bin && "
                      "ln -s ~/venv/bin/dglke_* /mnt/program/graphwire /usr/local/bin/")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def bed():
    made = Bed(HOSTS, seen=os.path.realpath(sys.base_prefix))
    try:
        for host in made.hosts:
            install(host)
        made.reachable()
        yield made
    finally:
        made.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="hosts in namespaces need root")
def test_the_guide_on_four_hosts(bed):
    section = (TOP / "docs/KGE.md").read_text().split("\n## Several hosts\n")[1].split("\n## ")[0]
    for pattern, fewer in FEWER:
        section, count = re.subn(pattern, fewer, section)
        assert count
    ip_config, commands = BLOCKS.findall(section)
    first, task = bed.hosts[0], bed.hosts[0].home / "my_task"
    num_entities = write_data(task / "FB15k")
    (task / "ip_config.txt").write_text(ip_config)
    commands = commands.replace("\\\n", " ").splitlines()
    assert [line.split()[0] for line in commands] == ["dglke_partition", *["scp"] * 3, "dglke_dist_train", "dglke_eval"]

    def typed(line):
        return first.shell(f"export OMP_NUM_THREADS=1; {line}", timeout=600)

    said = []
    for line in commands:
        if line.startswith("scp") and line == commands[3]:  # the message names a host without parts
            early = typed(commands[4])
            assert early.returncode == 1 and early.stderr.count("\n") == 1, early.stderr
            assert "10.77.0.4" in early.stderr
        done = typed(line)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        said.append(done.stdout)
    for part in range(HOSTS):
        assert (task / f"FB15k/partition_{part}/partition_book.txt").read_text().count("\n") == num_entities
    trained, evaluated = said[4], said[5]
    for rank in range(HOSTS):
        losses = [float(loss) for loss in re.findall(rf"\[{rank}\]\[Train\]\(\d+/12\) average loss: (\S+)", trained)]
        assert len(losses) == 2 and losses[1] < losses[0]
    figures = {name: float(value) for name, value in FIGURE.findall(trained)}
    assert set(figures) == {"MRR", "MR", "HITS@1", "HITS@3", "HITS@10"}
    assert {name: float(value) for name, value in FIGURE.findall(evaluated)} == pytest.approx(figures, abs=1e-9)
    results = task / "ckpts/TransE_l2_FB15k_0"
    assert np.load(results / "FB15k_TransE_l2_entity.npy").shape == (num_entities, 400)
    assert json.loads((results / "config.json").read_text())["regularization_coef"] == 1e-9
    for host in bed.hosts:
        assert (host.home / "my_task/ckpts").exists() == (host is first)
        assert len(list(host.home.glob(f"my_task/logs/*/trainer-{host.address}-{host.index}.log"))) >= 1
    assert wait_for(lambda: not bed.left(sessions=False)), bed.left(sessions=False)
