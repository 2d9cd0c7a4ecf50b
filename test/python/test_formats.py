"""Graphs and checkpoints of earlier versions give the same values as with those versions (test/formats)."""

import json
import shutil
import subprocess

import graphwire
import numpy as np
import pytest
from conftest import PROGRAM, TOP, Servers
from format_data import GRAPHS, checkpoint_account, graph_account

VERSIONS = sorted(path for path in (TOP / "test/formats").iterdir() if path.is_dir())


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def version(request):
    return request.param


def expected(version):
    return json.loads((version / "expect.json").read_text())


def differ(found, value):
    """Floats are compared with a tolerance: another version may round differently."""
    if isinstance(value, list) and value and isinstance(value[0], list) and isinstance(value[0][0], float):
        return not np.allclose(found, value, rtol=1e-5, atol=1e-5)
    return found != value


def differences(found, wanted):
    """The entries of `wanted` that `found` lacks; a later version may have more."""
    return {name: (found.get(name), value) for name, value in wanted.items() if differ(found.get(name), value)}


def test_there_are_versions():
    assert [version.name for version in VERSIONS][:1] == ["0.1"]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_of_an_earlier_version_is_read(version, name):
    assert differences(graph_account(version / name), expected(version)[name]) == {}


def test_a_checkpoint_of_an_earlier_version_is_restored(version):
    found = checkpoint_account(version / "two", version / "checkpoint")
    assert differences(found, expected(version)["checkpoint"]) == {}


def test_the_program_verifies_serves_and_partitions_them(version, tmp_path):
    for name in GRAPHS:
        done = subprocess.run([PROGRAM, "verify", version / name], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    servers = Servers(version / "two", 2, tmp_path)
    try:
        done = subprocess.run([PROGRAM, "epoch", "--part-config", version / "two", "--check", "--fanouts", "3,2",
                               "--servers", ",".join(servers.addresses)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    finally:
        servers.close()
    done = subprocess.run([PROGRAM, "partition", version / "one", "--num-parts", "2", "--method", "random", "--out",
                           tmp_path / "two"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again, before = graph_account(tmp_path / "two"), expected(version)["two"]
    assert again["nodes _N"] == before["nodes _N"]  # which nodes a part has may change with the version
    assert sum(again["edges _N:_E:_N"]) == sum(before["edges _N:_E:_N"])


def test_the_account_notices_a_changed_byte(version, tmp_path):
    shutil.copytree(version / "one", tmp_path / "one")
    path = tmp_path / "one/part0/node/_N/feat.npy"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(graphwire.GraphwireError, match="digest"):
        graph_account(tmp_path / "one")
    found = differences(graph_account(tmp_path / "one", verify=False), expected(version)["one"])
    assert list(found) == ["feature _N/feat"]
