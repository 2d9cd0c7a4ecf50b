"""Mutable tensors, embeddings, and optimizers in the servers, compared with torch's own."""

from __future__ import annotations

import multiprocessing
import pickle

import graphwire
import numpy as np
import pytest
import torch
import torch.distributed as dist
from graphwire import optim


@pytest.fixture(params=["standalone", "servers"])
def graph(request, parts, servers):
    with graphwire.open(parts, servers.addresses if request.param == "servers" else None) as opened:
        yield opened
        for tensor in opened.tensors:
            opened.delete_tensor(tensor["name"], kept=tensor["kept"])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int64", "int16", "bool", "uint8"])
def test_rows_are_what_was_written(graph, dtype):
    tensor = graph.create_tensor("some", (100, 3), dtype)
    assert tensor.shape == (100, 3) and str(tensor.dtype) == f"torch.{dtype}"
    assert not tensor[:].any() and tensor.count_nonzero() == 0
    rows = torch.arange(15).reshape(5, 3).to(tensor.dtype)
    tensor[[9, 1, 5, 3, 99]] = rows
    assert torch.equal(tensor[[9, 1, 5, 3, 99]], rows)
    assert tensor.count_nonzero() == int((rows != 0).sum())
    tensor[7] = torch.ones(3)
    assert torch.equal(tensor[7], torch.ones(3, dtype=tensor.dtype))
    tensor[np.arange(100) > 50] = 0
    assert not tensor[51:].any()
    tensor[[4, 4]] = [[1, 1, 1], [0, 1, 0]]  # the last counts
    assert tensor[4].tolist() == [0, 1, 0]


def test_an_integer_index_is_torchs(graph):
    tensor = graph.create_tensor("some", (20, 3))
    expected = tensor[:] = torch.arange(60.).reshape(20, 3)
    for index in range(-22, 22):
        try:
            row = expected[index]
        except IndexError:
            with pytest.raises(IndexError):
                tensor[index]
            with pytest.raises(IndexError):
                tensor[index] = torch.zeros(3)
            continue
        assert torch.equal(tensor[index], row) and torch.equal(tensor[index, 1:], row[1:])
        tensor[index] = expected[index] = -row - 1
    assert torch.equal(tensor[:], expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_rows_into_memory_that_is_there(graph, dtype):
    tensor = graph.create_tensor("some", (100, 3), dtype)
    tensor[:] = torch.arange(300).reshape(100, 3) % 7
    out = torch.ones(4, 3, dtype=tensor.dtype)
    ids = torch.tensor([99, 0, 50, 0])
    assert tensor.gather(ids, out) is out and torch.equal(out, tensor[ids])
    whole = torch.ones(6, 3, dtype=tensor.dtype)
    tensor.gather([1, 2], whole[2:4])  # a view: only its rows change
    assert torch.equal(whole[2:4], tensor[[1, 2]]) and (whole[[0, 1, 4, 5]] == 1).all()
    assert tensor.gather([], torch.empty(0, 3, dtype=tensor.dtype)).shape == (0, 3)
    with pytest.raises(graphwire.OutOfRangeError):
        tensor.gather([100, 1, 2, 3], out)


@pytest.mark.parametrize("out, kind, text", [
    (torch.empty(2, 3, dtype=torch.float64), TypeError, "out is of torch.float64, and the rows are of torch.float32"),
    (np.empty((2, 3), np.float32), TypeError, "out is of float32, and the rows are of torch.float32"),
    (torch.empty(3, 3), ValueError, "shape (3, 3), not (2, 3)"),
    (torch.empty(3, 2).T, ValueError, "contiguous"),
    (torch.empty(2, 3, device="meta"), ValueError, "of the host"),
])
def test_memory_that_is_not_fit_for_rows(parts, out, kind, text):
    with graphwire.open(parts) as graph, pytest.raises(kind) as error:
        graph.create_tensor("some", (100, 3)).gather([0, 1], out)
    assert text in str(error.value)


def test_numpy_rows_into_memory_that_is_there(parts):
    with graphwire.open(parts, numpy=True) as graph:
        out = np.empty((2, 3), np.float32)
        assert np.array_equal(graph.create_tensor("a", (9, 3), initial=2.5).gather([8, 1], out), np.full((2, 3), 2.5))
        out.flags.writeable = False
        with pytest.raises(ValueError, match="can be written"):
            graph.open_tensor("a").gather([8, 1], out)
        out = np.empty((2, 3), np.float32)  # NumPy has no bfloat16
        graph.create_tensor("b", (9, 3), "bfloat16", initial=0.1).gather([8, 1], out)
        assert np.array_equal(out, np.full((2, 3), torch.tensor(0.1).bfloat16().float()))


def test_numpy_writes_bfloat16(parts):
    with graphwire.open(parts, numpy=True) as graph:
        tensor = graph.create_tensor("b", 5, "bfloat16")
        values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, np.nan, -np.inf], np.float32)
        tensor[:] = values
        assert np.array_equal(tensor[:], torch.from_numpy(values).bfloat16().float().numpy(), equal_nan=True)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"])
def test_numbers_that_integers_do_not_hold(graph, dtype):
    """Refused by name, without a write; representable values are written exactly, from every type."""
    tensor, ends = graph.create_tensor("some", (4, 2), dtype), np.iinfo(dtype)
    bad = [np.nan, np.inf, -np.inf, 1.5, -0.25, 2.0**64, -1.5 * 2.0**63, float(ends.max) * 2, 2.0**ends.bits]
    bad += [ends.max + 1, ends.min - 1] if ends.bits < 64 else []
    for value in bad:
        for rows in ([[1, value]], np.array([[1, value]]), torch.tensor([[1, value]])):
            with pytest.raises(ValueError, match=f"rows are of {dtype}, which does not hold"):
                tensor[[2]] = rows
    assert tensor.count_nonzero() == 0
    for value in (0, 1, 100, 100.0, np.float16(7), np.uint8(9), True):
        tensor[[2]] = np.array([[value, value]])
        assert tensor[2].tolist() == [int(value)] * 2
    tensor[[1]] = np.array([[ends.min, ends.max]], dtype)
    tensor[[3]] = tensor[[1]]  # values read can be written back
    assert torch.equal(tensor[1], tensor[3]) and tensor[1].tolist()[1] in (ends.max, -1)


def test_floating_point_rows_take_every_number(graph):
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1e39, 1e-46, 70000.0, 1e-40, 0.1])
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        tensor = graph.create_tensor(dtype, (9,), dtype)
        expected = torch.from_numpy(values).float().to(tensor.dtype) if "16" in dtype else torch.from_numpy(values).to(
            tensor.dtype)
        for rows in (values, torch.from_numpy(values), list(values)):
            tensor[:] = rows
            found = tensor[:]
            assert torch.equal(found.nan_to_num(nan=1), expected.nan_to_num(nan=1)), dtype
            assert torch.equal(found.isnan(), expected.isnan())
            assert torch.equal(found.signbit()[1:], expected.signbit()[1:])
        assert tensor.count_nonzero() == int(torch.count_nonzero(expected))


def test_what_is_there(graph):
    graph.create_tensor("a/1", 7, "int32")
    graph.create_tensor("b", (0, 2), ntype="_N", kept=True)
    found = {tensor["name"]: tensor for tensor in graph.tensors}
    assert found["a/1"]["shape"] == (7,) and found["a/1"]["dtype"] == "int32" and not found["a/1"]["kept"]
    assert found["b"]["shape"] == (4096, 2) and found["b"]["kept"] and found["b"]["bytes"] >= 4096 * 8
    assert graph.open_tensor("a/1").shape == (7,)
    graph.delete_tensor("a/1")
    with pytest.raises(graphwire.NotFoundError):
        graph.open_tensor("a/1")


@pytest.mark.parametrize("call, kind, text", [
    (lambda g: g.create_tensor("x", (5, 3)), graphwire.GraphwireError, "x"),
    (lambda g: g.create_tensor("no space", 5), graphwire.InvalidError, "no space"),
    (lambda g: g.create_tensor("y", 5, "text"), ValueError, "text"),
    (lambda g: g.create_tensor("y", 5, place="here"), ValueError, "even or striped"),
    (lambda g: g.create_tensor("y", 5, initial="ones"), ValueError, "zeros"),
    (lambda g: g.create_tensor("y", (5, 1, 1, 1, 1)), ValueError, "dimensions"),
    (lambda g: g.open_tensor("x").__setitem__([5], [[1, 1]]), graphwire.OutOfRangeError, "5"),
    (lambda g: g.open_tensor("x").__setitem__([1], [[1, 1, 1]]), ValueError, "shape"),
    (lambda g: g.open_tensor("x").push([1], [[1]], kind="sgd", lr=1), ValueError, "shape"),
    (lambda g: g.open_tensor("x").push([5], [[1, 1]], kind="sgd", lr=1), graphwire.OutOfRangeError, "5"),
    (lambda g: optim.Embedding(g, "z", 4), ValueError, "rows"),
])
def test_errors(graph, call, kind, text):
    graph.create_tensor("x", (5, 2))
    with pytest.raises(kind) as error:
        call(graph)
    assert text in str(error.value)


def test_initial_values(graph):
    assert torch.equal(graph.create_tensor("c", (10, 2), initial=1.5)[:], torch.full((10, 2), 1.5))
    uniform = graph.create_tensor("u", (4096, 8), initial=("uniform", -0.5, 0.25), seed=1)[:]
    assert -0.5 <= uniform.min() < -0.49 and 0.24 < uniform.max() < 0.25
    normal = graph.create_tensor("n", (4096, 8), initial=("normal", 3.0, 0.5), seed=1)[:]
    assert abs(normal.mean() - 3) < 0.02 and abs(normal.std() - 0.5) < 0.02
    for number, value in enumerate((65504.0, -65519.0, 1e-7, 1e-8)):
        found = graph.create_tensor(f"c{number}", 3, "float16", initial=value)[:]
        assert torch.equal(found, torch.full((3,), value, dtype=torch.float64).half())


@pytest.mark.parametrize("dtype, initial", [
    ("float16", 65520.0), ("float16", ("uniform", -7e4, 0.0)), ("float16", ("normal", 0.0, 1e4)), ("float32", 1e39),
    ("float32", float("nan")), ("float64", float("inf")), ("bfloat16", -3.4e38), ("float32", ("uniform", 0.0, 1e39)),
    ("int64", 2**53 + 1), ("uint8", 256), ("int32", 0.5)])
def test_initial_values_that_a_type_does_not_hold(graph, dtype, initial):
    with pytest.raises(ValueError, match="initial"):
        graph.create_tensor("t", (3, 2), dtype, initial=initial)
    assert graph.tensors == []


def edge_rows(graph, table):
    """Of edges, by original id."""
    rows = torch.empty(table.shape)
    rows[graph.feature("orig_id", etype="_E")[:]] = table[:]
    return rows


def test_rows_of_edges_are_the_same_in_other_parts(tmp_path):
    """Initial rows depend on the edge's original id, of 4 bytes or of 8 like a node's. Trained rows are restored by
    it."""
    random = np.random.default_rng(0)
    ends = random.integers(0, 40, (2, 300))
    began = trained = None
    for parts in (1, 2, 3):
        config = graphwire.partition_graph(ends, "g", parts, tmp_path / str(parts), method="random", num_nodes=400)
        with graphwire.open(config) as graph:
            initial = {"initial": ("normal", 0, 1), "seed": 4}
            table = graph.create_tensor("edges", (0, 3), etype="_E", **initial)
            rows = edge_rows(graph, table)
            began = rows if began is None else began
            assert torch.equal(rows, began)
            nodes = graph.create_tensor("nodes", (0, 3), ntype="_N", **initial)
            orig = graph.feature("orig_id")[:]
            assert torch.equal(nodes[torch.argsort(orig)[:300]], rows)
            if trained is None:
                table[:] = torch.randn(300, 3)
                trained = edge_rows(graph, table)
                graph.checkpoint(tmp_path / "saved", ["edges"])
            else:
                graph.restore(tmp_path / "saved")
                assert torch.equal(edge_rows(graph, table), trained)


OPTIMIZERS = [
    (lambda tables: optim.SparseSGD(tables, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
    (lambda tables: optim.SparseAdagrad(tables, lr=0.1), lambda p: torch.optim.Adagrad(p, lr=0.1)),
    (lambda tables: optim.SparseAdagrad(tables, lr=0.1, eps=0.5), lambda p: torch.optim.Adagrad(p, lr=0.1, eps=0.5)),
    (lambda tables: optim.SparseAdam(tables, lr=0.1), lambda p: torch.optim.Adam(p, lr=0.1)),
    (lambda tables: optim.SparseAdam(tables, lr=0.1, eps=0.5), lambda p: torch.optim.Adam(p, lr=0.1, eps=0.5))]


@pytest.mark.parametrize("ours, theirs", OPTIMIZERS)
def test_optimizers_are_torchs(graph, ours, theirs):
    """Every row in every step, some of them twice."""
    table = optim.Embedding(graph, "t", 4, rows=20, seed=3)
    plain = torch.nn.Parameter(table.weight.clone())
    optimizer, other = ours([table]), theirs([plain])
    random = torch.Generator().manual_seed(0)
    for _ in range(8):
        ids = torch.cat([torch.randperm(20, generator=random), torch.tensor([3, 3, 7])])
        target = torch.randn(23, 4, generator=random)
        ((table(ids) - target) ** 2).sum().backward()
        optimizer.step()
        other.zero_grad()
        ((plain[ids] - target) ** 2).sum().backward()
        other.step()
        assert torch.allclose(table.weight, plain, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("eps", [1e-8, 0.05])  # the second gives its place
def test_adam_with_given_steps_is_torchs_sparse_one(graph, eps):
    """Rows that are touched in some steps only, some of them twice."""
    tensor = graph.create_tensor("t", (20, 4), initial=("normal", 0, 1), seed=3)
    table = torch.nn.Embedding.from_pretrained(torch.as_tensor(tensor[:]).clone(), freeze=False, sparse=True)
    other = torch.optim.SparseAdam(table.parameters(), lr=0.05, eps=eps)
    random = torch.Generator().manual_seed(2)
    for step in range(1, 13):
        ids = torch.cat([torch.randperm(20, generator=random)[:7], torch.tensor([3, 3, 7])])
        factor = torch.randn(10, 4, generator=random)
        tensor.push(ids, factor, kind="adam", lr=0.05, eps=eps, step=step)
        other.zero_grad()
        (table(ids) * factor).sum().backward()
        other.step()
        assert torch.allclose(tensor[:], table.weight, atol=1e-6, rtol=1e-6)


def test_adagrad_of_whole_rows_is_dgl_kes(graph):
    """First adds the squares of all gradients of equal ids, then applies each gradient with the same sum."""
    tensor = graph.create_tensor("t", (20, 4), initial=("normal", 0, 1), seed=3)
    rows, sums = torch.as_tensor(tensor[:]).double(), torch.zeros(20, dtype=torch.float64)
    random = torch.Generator().manual_seed(3)
    for _ in range(8):
        ids = torch.cat([torch.randperm(20, generator=random)[:7], torch.tensor([3, 3, 7])])
        gradients = torch.randn(10, 4, generator=random)
        tensor.push(ids, gradients, kind="adagrad_rows", lr=0.1, eps=1e-10, combine="each")
        for i, g in zip(ids.tolist(), gradients.double()):
            sums[i] += (g * g).mean()
        for i, g in zip(ids.tolist(), gradients.double()):
            rows[i] -= 0.1 * g / (sums[i].sqrt() + 1e-10)
        assert torch.allclose(tensor[:].double(), rows, atol=1e-6)


def test_adam_counts_the_steps_of_each_row(graph):
    """Like DGL's SparseAdam: some rows are touched in some steps only; compared with its formula for each row."""
    table = optim.Embedding(graph, "t", 4, rows=20, seed=3)
    weight = table.weight.double()
    m, v, steps = torch.zeros_like(weight), torch.zeros_like(weight), torch.zeros(20)
    optimizer = optim.SparseAdam([table], lr=0.05)
    random = torch.Generator().manual_seed(1)
    for _ in range(12):
        ids = torch.randperm(20, generator=random)[:7]
        factor = torch.randn(7, 4, generator=random)
        (table(ids) * factor).sum().backward()
        optimizer.step()
        for i, g in zip(ids.tolist(), factor.double()):
            steps[i] += 1
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.999 * v[i] + 0.001 * g * g
            t = float(steps[i])
            weight[i] -= 0.05 * (m[i] / (1 - 0.9**t)) / ((v[i] / (1 - 0.999**t)).sqrt() + 1e-8)
    assert torch.allclose(table.weight.double(), weight, atol=1e-6)


def test_rows_without_training(graph):
    table = optim.Embedding(graph, "t", 4, rows=20)
    before = table.weight
    optimizer = optim.SparseSGD([table], lr=1.0)
    with torch.no_grad():
        assert not table([1]).requires_grad
    table([1, 2])  # no gradient
    optimizer.step()
    table([1]).sum().backward()
    optimizer.zero_grad()
    optimizer.step()
    assert torch.equal(table.weight, before)
    table([1, 1]).sum().backward()
    optimizer.step()
    changed = before.clone()
    changed[1] -= 2
    assert torch.equal(table.weight, changed)


def test_checkpoints(graph, tmp_path):
    """Rows and the optimizer's state: continuing after a restore equals continuing without a stop."""
    table = optim.Embedding(graph, "t", 3, ntype="_N", seed=1)
    other = graph.create_tensor("other", 10)

    def steps(some, count):
        optimizer = optim.SparseAdam([some], lr=0.1)
        for _ in range(count):
            (some(range(100)) ** 2).sum().backward()
            optimizer.step()

    steps(table, 3)
    graph.checkpoint(tmp_path / "all")
    graph.checkpoint(tmp_path / "one", ["t"])
    with pytest.raises(graphwire.GraphwireError, match="all"):
        graph.checkpoint(tmp_path / "all")
    steps(table, 2)
    expected = table.weight
    other[:] = 1
    graph.delete_tensor("t")
    graph.restore(tmp_path / "one")
    again = optim.Embedding(graph, "t", 3, ntype="_N", seed=1)
    steps(again, 2)
    assert torch.equal(again.weight, expected) and other[:].all()
    graph.restore(tmp_path / "all", ["other"])
    assert not other[:].any()
    with pytest.raises(graphwire.NotFoundError):
        graph.restore(tmp_path / "none")


def _write(tensor, pipe):
    tensor[[1, 2]] = [[1, 1], [2, 2]]
    pipe.send(tensor[:].tolist())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_a_jobs_tensors(parts, servers, method):
    with graphwire.open(parts, servers.addresses) as graph:
        tensor = graph.create_tensor("shared", (4, 2))
        context = multiprocessing.get_context(method)
        ours, theirs = context.Pipe()
        process = context.Process(target=_write, args=(tensor, theirs))
        process.start()
        assert ours.recv() == tensor[:].tolist() == [[0, 0], [1, 1], [2, 2], [0, 0]]
        process.join()
        with graphwire.open(parts, servers.addresses) as another_job, pytest.raises(graphwire.NotFoundError):
            another_job.open_tensor("shared")
        assert pickle.loads(pickle.dumps(tensor))[1].tolist() == [1, 1]


def test_ranks_without_a_common_job_are_refused(parts, servers, first_of_two, monkeypatch):
    """torchrun names no job, so each rank would choose its own name and have its own tensor."""
    monkeypatch.delenv("GRAPHWIRE_JOB", raising=False)
    with graphwire.open(parts, servers.addresses) as graph:
        for make in (lambda: graph.create_tensor("t", 4), lambda: optim.Embedding(graph, "t", 2, rows=4)):
            with pytest.raises(ValueError, match="job=") as error:
                make()
            assert "2 ranks" in str(error.value)
        assert graph.create_tensor("t", 4, kept=True)[:].sum() == 0  # visible to all ranks
        graph.delete_tensor("t", kept=True)
    with graphwire.open(parts, servers.addresses, job="common") as graph:
        assert len(optim.Embedding(graph, "t", 2, rows=4)) == 4
    monkeypatch.setenv("GRAPHWIRE_JOB", "launched")
    with graphwire.open(parts, servers.addresses) as graph:
        assert len(graph.create_tensor("t", 4)) == 4
    with graphwire.open(parts) as graph, pytest.raises(ValueError, match="standalone"):
        graph.create_tensor("t", 4, kept=True)


def test_a_group_that_comes_later(parts, request, monkeypatch):
    """The step decides whether ranks combine gradients, so the group may be created after the optimizer. A tensor from
    before the group that is not shared is then refused."""
    with graphwire.open(parts) as graph:
        table = optim.Embedding(graph, "t", 2, rows=4, initial=0.0)
        optimizer = optim.SparseSGD([table], lr=1.0, sync=True)
        table([1]).sum().backward()
        optimizer.step()
        assert table.weight[1].tolist() == [-1, -1]
        request.getfixturevalue("first_of_two")
        table([1]).sum().backward()
        with pytest.raises(ValueError, match="standalone"):
            optimizer.step()
        optimizer.zero_grad()
        monkeypatch.setattr(optim, "shared", lambda graph, kept: None)
        monkeypatch.setattr(optim, "_of_all_ranks", lambda ids, rows: (torch.cat([ids, ids]), torch.cat([rows, rows])))
        monkeypatch.setattr(optim, "_over_gloo", lambda: None)
        monkeypatch.setattr(dist, "barrier", lambda group: None)
        table([1]).sum().backward()
        optimizer.step()
        assert table.weight[1].tolist() == [-3, -3]


def _rank(graph, rank, meet, pipe):
    dist.Backend.register_backend("refusing", lambda store, rank, size, timeout: dist.ProcessGroup(rank, size),
                                  devices=["cpu"])
    dist.init_process_group("refusing", init_method=f"file://{meet}", rank=rank, world_size=2)
    with pytest.raises(RuntimeError):
        dist.all_reduce(torch.ones(1))
    table = optim.Embedding(graph, "t", 2, rows=8, initial=0.0)
    one, other = (optim.SparseSGD([table], lr=1.0, sync=True) for _ in range(2))
    for optimizer in (one, other, one):
        (table([rank, 5]) * (rank + 1)).sum().backward()
        optimizer.step()
    pipe.send(table.weight[:, 0].tolist())


def test_ranks_combine_over_gloo(parts, servers, tmp_path):
    """With a backend of torch.distributed that accepts no CPU tensors, like nccl."""
    context = multiprocessing.get_context("fork")
    with graphwire.open(parts, servers.addresses) as graph:
        ranks = []
        for rank in range(2):
            ours, theirs = context.Pipe()
            process = context.Process(target=_rank, args=(graph, rank, tmp_path / "meet", theirs))
            process.start()
            theirs.close()
            ranks.append((process, ours))
        for process, ours in ranks:
            assert ours.recv() == [-3, -6, 0, 0, 0, -9, 0, 0]
            process.join()


def test_a_killed_server_takes_its_rows_along(parts, own_servers, tmp_path):
    """A rank that uses lost tensors gets an error, and continues from a checkpoint: rows and the optimizer's state."""
    graph = graphwire.open(parts, own_servers.addresses, transport="tcp")

    def opened():
        return optim.Embedding(graph, "job/rows", 2, rows=10, seed=1)

    def step(table):
        (table(range(10)) ** 2).sum().backward()
        optim.SparseAdam([table], lr=0.1).step()

    table = opened()
    step(table)
    saved = table.weight
    graph.checkpoint(tmp_path / "saved")
    step(table)
    expected = table.weight
    own_servers.end(0)
    own_servers.start(0)
    gradients = torch.ones(1, 2)
    for touch in (lambda: table.weight, lambda: table.tensor.__setitem__(0, 1),
                  lambda: table.tensor.push([0], gradients, kind="adam", lr=1.0)):
        with pytest.raises(graphwire.NotFoundError, match=r'tensor "job/rows": .* is gone: .* was restarted'):
            touch()
    with pytest.raises(graphwire.NotFoundError, match=r'tensor "job/rows": part . has rows of another .*: delete it'):
        graph.restore(tmp_path / "saved")
    graph.delete_tensor("job/rows")
    graph.restore(tmp_path / "saved")
    again = opened()
    assert torch.equal(again.weight, saved)
    step(again)
    assert torch.equal(again.weight, expected)


def test_rows_that_do_not_fit_are_refused_by_the_name_of_the_tensor(graph):
    tensor = graph.create_tensor("fits", (9, 3), "float32")
    for ids, given in (([1, 2], (3, 3)), ([1, 2], (2, 2)), ([], (2, 3)), (4, (2, 3))):
        with pytest.raises(ValueError, match="tensor fits: rows of shape"):
            tensor[ids] = np.ones(given)
    assert not np.asarray(tensor[:]).any()
    graph.delete_tensor("fits")


@pytest.mark.parametrize("kind, array, like_rows", [
    ("adagrad", "sum", True), ("adagrad_rows", "sum", False), ("adam", "step", False), ("adam", "mean", True),
    ("adam", "power", True)])
def test_state_is_what_was_written(graph, kind, array, like_rows):
    tensor = graph.create_tensor("some", (100, 3))
    expected = torch.zeros((100, 3) if like_rows else 100, dtype=torch.int64 if array == "step" else torch.float32)
    assert torch.equal(tensor.read_state(slice(None), kind=kind, array=array), expected)  # before the first push
    ids = torch.tensor([99, 4, 0, 4])
    values = torch.arange(1, 5 if not like_rows else 13).reshape(4, *expected.shape[1:]).to(expected.dtype)
    tensor.write_state(ids, values, kind=kind, array=array)
    for row, value in zip(ids, values):
        expected[row] = value
    assert torch.equal(tensor.read_state(slice(None), kind=kind, array=array), expected)
    assert torch.equal(tensor.read_state([99, 4, 4], kind=kind, array=array), expected[[99, 4, 4]])
    assert torch.equal(tensor.read_state(4, kind=kind, array=array), expected[4])
    tensor.write_state(expected.reshape(100, -1).any(1), 7, kind=kind, array=array)
    assert torch.equal(tensor.read_state(slice(None), kind=kind, array=array), (expected != 0).to(expected.dtype) * 7)


def test_state_of_a_push(graph):
    tensor = graph.create_tensor("some", (100, 3))
    tensor.push([5, 7, 7], [[1, 2, 3]] * 3, kind="adagrad", lr=0.1)
    assert tensor.read_state([5, 7, 8], kind="adagrad", array="sum").tolist() == [[1, 4, 9], [4, 16, 36], [0, 0, 0]]
    with pytest.raises(graphwire.GraphwireError, match="the state of adagrad, not of adam"):
        tensor.read_state([5], kind="adam", array="step")
    with pytest.raises(graphwire.GraphwireError, match="trained by adagrad already"):
        tensor.write_state([5], 1, kind="adam", array="step")


@pytest.mark.parametrize("call, error, text", [
    (lambda t: t.read_state([1], kind="sgd", array="sum"), graphwire.InvalidError, "kind is one of adagrad"),
    (lambda t: t.read_state([1], kind="adam", array="sum"), graphwire.InvalidError, "is one of step, mean, power"),
    (lambda t: t.read_state([100], kind="adam", array="mean"), graphwire.OutOfRangeError, "100"),
    (lambda t: t.write_state([1], [1.0, 2.0], kind="adam", array="mean"), ValueError, "shape [2] does not fit [1, 3]"),
    (lambda t: t.write_state([1], -1, kind="adam", array="step"), ValueError, "steps run from 0"),
    (lambda t: t.write_state(([1], 2), 1, kind="adam", array="mean"), IndexError, "whole rows"),
])
def test_state_that_cannot_be(parts, call, error, text):
    with graphwire.open(parts) as graph:
        tensor = graph.create_tensor("some", (100, 3))
        with pytest.raises(error) as raised:
            call(tensor)
        assert text in str(raised.value)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int64", "int32", "uint8"])
def test_rows_that_are_no_numbers_are_refused(graph, dtype):
    """In one line, and nothing is written. Rows of any strides, types of numbers and containers are their values."""
    tensor = graph.create_tensor(f"kinds-{dtype}", (3, 2), dtype)
    for rows in (np.ones((1, 2), complex), torch.ones(1, 2, dtype=torch.complex64), [["1", "2"]], [[b"1", b"2"]],
                 np.array([["a", "b"]]), (one for one in [[1, 2]]), torch.ones(1, 2).to_sparse(), [[1], [2, 3]], None,
                 [[None, 1.0]], np.array([["2020-01-01", "2020-01-02"]], "datetime64[D]"), {1: 2}, object(),
                 *([[[2**70, 1]], np.array([[1.5, 2]], object)] if "int" in dtype else [])):
        with pytest.raises((TypeError, ValueError), match=r"^rows are [^\n]*$"):
            tensor[[1]] = rows
    assert not np.asarray(tensor[:].tolist()).any()
    base = torch.arange(12).reshape(4, 3)
    frozen = np.array([[5, 9]])
    frozen.setflags(write=False)
    for rows in (base[1::2, ::2], base.T[:2, 1:3], base.numpy()[::-1, ::-1][:2, :2], np.array([[5, 9], [1, 2]], object),
                 np.array([[5, 9], [1, 2]], ">i4"), [[np.int8(5), np.float32(9)], [True, 2]], frozen, 7,
                 np.asfortranarray([[5, 9], [1, 2]])):
        tensor[[2, 0]] = rows
        assert tensor[[2, 0]].tolist() == np.broadcast_to(np.asarray(rows).astype(float), (2, 2)).tolist()
    graph.delete_tensor(tensor.name)
