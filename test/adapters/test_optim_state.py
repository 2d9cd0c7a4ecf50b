"""The state of SparseAdam and SparseAdagrad, and their steps, which are compared with DGL's own where dgl is
installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import NODES, runner
from graphwire.dgl.install import install

HAS_DGL = PathFinder.find_spec("dgl") is not None  # sys.modules may have the subset already
SCRIPT = Path(__file__).with_name("dgl_optim.py")

dgl = install()


@pytest.fixture(scope="module", params=["one", "two_parts"])
def g(request, communities, two_parts):
    dgl.distributed.initialize("none.txt")
    folder = communities if request.param == "one" else two_parts
    yield dgl.distributed.DistGraph("communities", part_config=str(folder / "communities.json"))
    dgl.distributed.exit_client()


def trained(kind, name="table", width=3):
    """(the embedding, its optimizer), after two steps."""
    table = dgl.distributed.DistEmbedding(NODES, width, name)
    optimizer = getattr(dgl.distributed.optim, kind)([table], lr=0.1)
    for ids in ([5, 7, 7], [7, NODES - 1]):
        optimizer.zero_grad()
        (table(torch.tensor(ids)) * 2).sum().backward()
        optimizer.step()
    return table, optimizer


def test_state_of_adagrad(g):
    table, optimizer = trained("SparseAdagrad")
    expected = torch.zeros(NODES, 3)
    expected[[5, NODES - 1]], expected[7] = 4, 8
    state = optimizer._state["table"]
    assert torch.equal(state[:], expected) and table.optm_state[0] is state
    assert (state.shape, state.dtype, state.tensor_name) == ((NODES, 3), torch.float32, "table_sum")
    assert state.name == "node~_N~table_sum" in g._client.data_name_list()
    assert state.name not in g._client.gdata_name_list()
    assert state.count_nonzero() == 9 and state.part_policy.policy_str == "node~_N"


def test_state_of_adam(g):
    _, optimizer = trained("SparseAdam")
    step, mem, power = optimizer._state["table"]
    assert [one.tensor_name for one in (step, mem, power)] == ["table_step", "table_mem", "table_power"]
    assert step.shape == (NODES,) and step[[5, 6, 7]].tolist() == [1, 0, 2] and step.dtype == torch.float32
    assert torch.allclose(mem[[5, 6, 7]], torch.tensor([[0.2] * 3, [0] * 3, [0.38] * 3]))
    assert torch.allclose(power[7], torch.tensor([0.007996] * 3), rtol=1e-4)


def test_a_state_is_found_by_its_name(g):
    """As long as an object refers to it; with its own shape and dtype."""
    table, optimizer = trained("SparseAdagrad")
    found = dgl.distributed.DistTensor((NODES, 3), torch.float32, "table_sum")
    assert found[7].tolist() == [[8.0] * 3] or found[[7]].tolist() == [[8.0] * 3]
    found[[7]] = torch.ones(1, 3)
    assert optimizer._state["table"][[7]].tolist() == [[1.0] * 3]
    with pytest.raises(AssertionError, match="table_sum is an optimizer's state"):
        dgl.distributed.DistTensor((NODES, 4), torch.float32, "table_sum")
    table._optm_state = None
    del found, optimizer
    other = dgl.distributed.DistTensor((NODES, 4), torch.int64, "table_sum")
    assert not other[:].any()


@pytest.mark.parametrize("kind", ["SparseAdagrad", "SparseAdam"])
def test_training_goes_on_from_saved_state(g, kind, tmp_path):
    """save -> another embedding's optimizer, other hyper-parameters -> load: the next step is that of the first."""
    first, before = trained(kind)
    before.save(tmp_path / "state")
    assert [path.name for path in tmp_path.iterdir()] == ["state_0"]
    rows = first.weight[:]
    del first, before
    table = dgl.distributed.DistEmbedding(NODES, 3, "table")
    table.weight[:] = rows
    other = getattr(dgl.distributed.optim, kind)([table], lr=9, eps=1)
    other.load(tmp_path / "state")
    assert (other._lr, other._eps) == (0.1, 1e-10 if kind == "SparseAdagrad" else 1e-8)
    straight, reference = trained(kind, "straight")
    for one, optimizer in ((table, other), (straight, reference)):
        optimizer.zero_grad()
        (one(torch.tensor([7, 8])) * 3).sum().backward()
        optimizer.step()
    assert torch.equal(table.weight[:], straight.weight[:])
    for one, two in zip(table.optm_state, straight.optm_state):
        assert torch.equal(one[:], two[:]) and one[:].any()


def test_state_dicts(g):
    table, optimizer = trained("SparseAdam")
    saved = optimizer.state_dict()
    assert saved["params"] == {"world_size": 1, "_lr": 0.1, "_eps": 1e-8, "_beta1": 0.9, "_beta2": 0.999}
    assert saved["emb_states"]["table"]["ids"].tolist() == list(range(NODES))
    states = saved["emb_states"]["table"]["states"]
    assert list(states) == ["node~_N~table_step", "node~_N~table_mem", "node~_N~table_power"]
    for one in optimizer._state["table"]:
        one[:] = torch.zeros(one.shape)
    optimizer._lr = 5
    optimizer.load_state_dict(saved)
    assert optimizer._lr == 0.1 and all(torch.equal(one[:], states[one.name]) for one in table.optm_state)
    of_adagrad = trained("SparseAdagrad", "other")[1].local_state_dict()
    with pytest.raises(KeyError):
        optimizer.load_local_state_dict(of_adagrad)
    of_adagrad["emb_states"]["table"] = of_adagrad["emb_states"].pop("other")
    with pytest.raises(ValueError, match="different number of states"):
        optimizer.load_local_state_dict(of_adagrad)
    del saved["emb_states"]["table"]["states"]["node~_N~table_mem"]
    saved["emb_states"]["table"]["states"]["node~_N~mean"] = torch.zeros(NODES, 3)
    with pytest.raises(ValueError, match="can't be found"):
        optimizer.load_local_state_dict(saved)


def test_a_missing_file_warns(g, tmp_path):
    _, optimizer = trained("SparseAdam")
    with pytest.warns(UserWarning, match="can't be found, load nothing"):
        optimizer.load(tmp_path / "no")


def test_a_table_twice(g):
    table = dgl.distributed.DistEmbedding(NODES, 3, "table")
    with pytest.raises(AssertionError, match="already registered"):
        dgl.distributed.optim.SparseAdam([table, table], lr=0.1)


def test_a_rate_may_change(g):
    """Schedulers set _lr."""
    table, optimizer = trained("SparseAdagrad")
    before = table.weight[[7]]
    optimizer._lr = 0
    optimizer.zero_grad()
    table(torch.tensor([7])).sum().backward()
    optimizer.step()
    assert torch.equal(table.weight[[7]], before)


def test_steps_of_adam_are_those_of_dgl(tmp_path):
    """The same reads and gradients into both: equal ids in a batch, several reads before a step, steps without
    zero_grad, and gradients that are zero, small and large. DGL computes 1 - 0.999 ** t in float32, so the rows of a
    first step differ by up to 3e-5 of a step."""
    if not HAS_DGL:
        pytest.skip("dgl is not installed")
    runner(SCRIPT, "SparseAdam", tmp_path / "ours", tmp_path / "ours.npz", folder=tmp_path)
    theirs = [str(SCRIPT), "SparseAdam", str(tmp_path / "theirs"), str(tmp_path / "theirs.npz")]
    subprocess.run([sys.executable, "-W", "ignore", *theirs], cwd=tmp_path, check=True, capture_output=True,
                   timeout=120)
    with np.load(tmp_path / "ours.npz") as ours, np.load(tmp_path / "theirs.npz") as theirs:
        assert sorted(ours.files) == sorted(theirs.files)
        assert ours["keys"].tolist() == theirs["keys"].tolist()
        for step in range(20):
            def alike(name, own, **tolerance):
                np.testing.assert_allclose(own, theirs[name], err_msg=name, **tolerance)

            alike(f"rows{step}", ours[f"rows{step}"], rtol=1e-5, atol=2e-5)
            for place, (rtol, atol) in enumerate([(0, 0), (1e-6, 1e-5), (1e-4, 0)]):  # here 1 - 0.999 is float32
                alike(f"state{step}_{place}", ours[f"state{step}_{place}"], rtol=rtol, atol=atol)
