"""A client's steps compared with a dense loop in torch in float64 with the same batches: the losses, step by step."""

from __future__ import annotations

import random

import graphwire
import numpy as np
import pytest
import torch
from graphwire.kge.batches import Batches, rounded
from graphwire.kge.data import Triples
from graphwire.kge.losses import Loss, Regularizer
from graphwire.kge.models import Relations, make
from graphwire.kge.store import EPS, Store, _merged
from graphwire.kge.training import Trainer

STEPS, LR = 25, 0.1


def trained(graph, name, staleness, **options):
    """Losses of a client, and its initial tables."""
    graph = graphwire.open(graph)
    model = make(name, 8, 6.0, name == "RotatE", False)
    store = Store(graph, model, 5, seed=3)
    store.create()
    tables = [None if tensor is None else np.asarray(tensor[:]).astype(np.float64).copy()
              for tensor in (store.entity, store.relation, store.matrix)]
    own = store.own_triples()
    batches = Batches(own.head, own.relation, own.tail, batch_size=20, chunk_size=10, negatives=6,
                      entities=store.negative_range(), seed=7)
    trainer = Trainer(store, model, Loss(adversarial=True), Regularizer(1e-3, 3), batches, lr=LR, staleness=staleness,
                      **options)
    losses = [trainer.step(step, STEPS - 1) for step in range(STEPS)]
    trainer.close()
    after = np.asarray(store.entity[:])
    graph.close()
    return model, batches, tables, losses, after


def dense(model, batches, tables, staleness):
    """The same in plain torch: every step computes all rows."""
    tables = [None if table is None else torch.from_numpy(table.copy()) for table in tables]
    sums = [None if table is None else torch.zeros(len(table), dtype=torch.float64) for table in tables]
    history = [[None if table is None else table.clone() for table in tables]]
    losses = []
    for step in range(STEPS):
        batch = batches[step]
        entity, relation, matrix = history[max(0, step - staleness)]
        ids = batch.entities
        positive = entity.clone().requires_grad_()
        negative = entity[ids[batch.negative_rows]].clone().requires_grad_()
        relation_ids = batch.relations[batch.relation_rows]
        vectors = None if relation is None else relation[relation_ids].clone().requires_grad_()
        matrices = None if matrix is None else matrix.clone().requires_grad_()
        heads, tails = positive[ids[batch.head_rows]], positive[ids[batch.tail_rows]]
        scores = model.score(heads, Relations(vectors, matrices, relation_ids), tails)
        size, each = batch.count // batch.chunks, len(negative) // batch.chunks
        rows = []
        for i in range(batch.count):
            others = negative[i // size * each:(i // size + 1) * each]
            ends = (others, tails[i].expand(each, -1)) if batch.side == "head" else (heads[i].expand(each, -1), others)
            of_one = Relations(None if vectors is None else vectors[i].expand(each, -1), matrices,
                               relation_ids[i].expand(each))
            rows.append(model.score(ends[0], of_one, ends[1]))
        against = torch.stack(rows)
        weights = torch.softmax(against, -1).detach()
        logsigmoid = torch.nn.functional.logsigmoid
        loss = (-logsigmoid(scores).mean() - (weights * logsigmoid(-against)).sum(-1).mean()) / 2
        read = positive[ids[:batch.positive_count]]
        norm = sum(some.abs().pow(3).sum() for some in (
            read, negative, vectors if vectors is not None else matrices[batch.relations]))
        losses.append((float(loss), float(norm) * 1e-3))
        (loss + 1e-3 * norm).backward()
        with torch.no_grad():
            changes = [[(torch.arange(len(entity)), positive.grad), (ids[batch.negative_rows], negative.grad)],
                       [] if vectors is None else [(relation_ids, vectors.grad)],
                       [] if matrices is None else [(torch.arange(len(matrix)), matrices.grad)]]
            for table, squares, parts in zip(tables, sums, changes):
                for where, gradients in parts:
                    squares.index_add_(0, where, gradients.square().mean(1))
                for where, gradients in parts:
                    table.index_add_(0, where, -LR * gradients / (squares[where].sqrt().unsqueeze(1) + EPS))
        history.append([None if table is None else table.clone() for table in tables])
    return losses, tables[0]


@pytest.mark.parametrize(("name", "staleness"), [
    ("TransE_l2", 0), ("TransE_l2", 1), ("TransE_l2", 3), ("TransE_l1", 1), ("DistMult", 0), ("ComplEx", 1),
    ("RotatE", 1), ("TransR", 0), ("RESCAL", 1), ("SimplE", 0)])
def test_losses_are_those_of_a_dense_loop(graph_folder, name, staleness):
    model, batches, tables, losses, after = trained(graph_folder, name, staleness)
    for table, bound in zip(tables, (model.initial, model.initial, 1.0 if name == "TransR" else model.initial)):
        assert table is None or 0.9 * bound < np.abs(table).max() <= bound  # as DGL-KE: (gamma + 2) / hidden_dim
    assert model.initial == (6.0 + 2.0) / 8
    expected, table = dense(model, batches, tables, staleness)
    for step, (values, (loss, norm)) in enumerate(zip(losses, expected)):
        assert values["loss"] == pytest.approx(loss, rel=1e-5, abs=1e-5), step
        assert values["regularization"] == pytest.approx(norm, rel=1e-5), step
    assert np.allclose(after, table.numpy(), rtol=1e-4, atol=1e-4)
    assert np.mean([values["loss"] for values in losses[-5:]]) < np.mean([values["loss"] for values in losses[:5]])


def test_pushes_during_the_next_step_reach_the_rows(graph_folder):
    *_, losses, after = trained(graph_folder, "TransE_l2", 0, async_push=True)
    assert len(losses) == STEPS and np.isfinite(after).all()
    assert np.mean([values["loss"] for values in losses[-5:]]) < np.mean([values["loss"] for values in losses[:5]])


@pytest.mark.parametrize("name", ["TransE_l2", "RESCAL", "TransR"])
def test_rows_for_a_gpu_are_pinned(graph_folder, pinned_rows, name):
    """With a device that is not called "cpu" but is the CPU; the results do not depend on it."""
    _, _, _, losses, after = trained(graph_folder, name, 1, device="cpu:0")
    assert len(pinned_rows) == STEPS * (3 if name == "TransR" else 2)  # entities, vectors, matrices
    pinned_rows.clear()
    _, _, _, plain, rows = trained(graph_folder, name, 1)
    assert not pinned_rows and losses == plain and np.array_equal(after, rows)


@pytest.mark.parametrize(("staleness", "async_push"), [(0, False), (1, False), (3, False), (0, True), (3, True)])
def test_a_step_whose_server_is_lost_is_tried_again(graph_folder, monkeypatch, staleness, async_push):
    """Each pull fails twice at some steps. The steps that are called again train each batch once, in order."""
    draw, failing, pull, push, pushed, errors = random.Random(staleness), {}, Store.pull, Store.push, [], []

    def pulls(self, batch, pinned=False):
        key = tuple(batch.positions.tolist())
        if failing.setdefault(key, 2 if draw.random() < 0.3 else 0):
            failing[key] -= 1
            raise graphwire.PeerError("GW_PEER_LOST", "the server is lost")
        return pull(self, batch, pinned)

    def pushes(self, tensor, ids, gradients, lr):
        if tensor is self.entity:
            pushed.append(len(ids))
        push(self, tensor, ids, gradients, lr)

    def step(self, number, last=None, again=Trainer.step):
        while True:
            try:
                return again(self, number, last)
            except graphwire.PeerError:
                errors.append(number)

    *_, plain, rows = trained(graph_folder, "TransE_l2", staleness, async_push=async_push)
    monkeypatch.setattr(Store, "pull", pulls)
    monkeypatch.setattr(Store, "push", pushes)
    monkeypatch.setattr(Trainer, "step", step)
    *_, losses, after = trained(graph_folder, "TransE_l2", staleness, async_push=async_push)
    assert len(errors) >= 4 and errors == sorted(errors) and len(pushed) == STEPS
    assert len(losses) == STEPS and np.isfinite(after).all()
    if staleness == 0 and not async_push:
        assert losses == plain and np.array_equal(after, rows)


@pytest.mark.parametrize("staleness", [0, 1])
def test_an_error_of_a_push_is_raised_once(graph_folder, monkeypatch, staleness):
    """The servers may have applied a part of it, so it is not repeated; the training goes on."""
    push, pushed, errors = Store.push, [], []

    def pushes(self, tensor, ids, gradients, lr):
        if tensor is self.entity:
            pushed.append(len(ids))
            if len(pushed) == 3:
                raise graphwire.PeerError("GW_PEER_LOST", "the server is lost")
        push(self, tensor, ids, gradients, lr)

    def step(self, number, last=None, again=Trainer.step):
        try:
            return again(self, number, last)
        except graphwire.PeerError:
            errors.append(number)
            return again(self, number, last)

    monkeypatch.setattr(Store, "push", pushes)
    monkeypatch.setattr(Trainer, "step", step)
    *_, losses, after = trained(graph_folder, "TransE_l2", staleness)
    assert errors == [2 + staleness] and len(losses) == STEPS and np.isfinite(after).all()


def test_importance_weighs_triples(graph_folder):
    count = len(graphwire_triples(graph_folder))
    _, _, _, even, _ = trained(graph_folder, "TransE_l2", 0, importance=np.ones(count, np.float32))
    _, _, _, plain, _ = trained(graph_folder, "TransE_l2", 0)
    _, _, _, doubled, _ = trained(graph_folder, "TransE_l2", 0, importance=np.full(count, 2, np.float32))
    assert [values["loss"] for values in even] == [values["loss"] for values in plain]
    assert doubled[0]["loss"] == pytest.approx(2 * plain[0]["loss"], rel=1e-6)


def graphwire_triples(folder):
    with graphwire.open(folder) as graph:
        return Store(graph, make("TransE", 4, 1.0), 5).own_triples()


def test_negatives_by_degree_are_the_chunk_but_oneself(graph_folder, monkeypatch):
    seen = []
    call = Loss.__call__

    def spy(self, positive, negative, weights=None, mask=None):
        seen.append((positive, negative, mask))
        return call(self, positive, negative, weights, mask)

    monkeypatch.setattr(Loss, "__call__", spy)
    trained(graph_folder, "TransE_l2", 0, degree_negatives=True)
    for positive, negative, mask in seen:
        assert negative.shape[-1] == 10 + 6 and mask.shape == negative.shape
        assert (~mask).sum() == positive.numel()
        assert torch.allclose(negative[~mask], positive.reshape(-1), atol=1e-4)  # a triple among its own negatives


def test_many_gradients_of_a_row_are_added_up():
    ids = np.array([4, 1, 4, 4, 1, 4, 4])
    gradients = np.arange(14, dtype=np.float32).reshape(7, 2)
    for most in (7, 5):  # a row has five
        assert _merged(ids, gradients, (1 << 20) // most)[0] is ids
    assert len(_merged(ids, gradients, (1 << 20) // 4)[0]) == 2 + 4
    found, rows = _merged(ids, gradients, 1 << 19)  # at most two gradients of a row
    assert found.tolist() == [1, 1, 4, 4]
    assert rows[0].tolist() == gradients[1].tolist() and rows[1].tolist() == gradients[4].tolist()
    assert rows[2].tolist() == (gradients[0] + gradients[3] + gradients[6]).tolist()
    assert rows[3].tolist() == (gradients[2] + gradients[5]).tolist()


@pytest.mark.parametrize("world", [2, 3])
def test_rel_part_gives_most_relations_to_one_client_alone(graph_folder, dataset, world):
    """--rel_part: at each border between two clients they share at most one relation; without it they share all."""
    def shared(by_relation):
        with graphwire.open(graph_folder) as graph:
            own = [Store(graph, make("TransE", 4, 1.0), 5, rank=rank, world=world).own_triples(by_relation)
                   for rank in range(world)]
        sizes = [len(triples) for triples in own]
        assert sum(sizes) == len(dataset.train) and max(sizes) - min(sizes) <= 1
        walked = {(h, r, t) for triples in own
                  for h, r, t in zip(triples.head.tolist(), triples.relation.tolist(), triples.tail.tolist())}
        assert len(walked) == len(dataset.train)  # each once
        clients = [set(triples.relation.tolist()) for triples in own]
        return sum(sum(relation in some for some in clients) > 1 for relation in range(5))

    assert shared(True) <= world - 1
    assert shared(False) == 5


def test_negatives_are_the_parts_entities_and_the_other_ends_of_its_triples():
    """The entities that DGL-KE's local_to_global.txt names."""
    class Part(Store):
        def __init__(self):
            pass

        def negative_range(self):
            return 10, 20

    own = Triples(np.array([12, 3, 25, 3]), np.zeros(4, np.int64), np.array([11, 19, 15, 30]), None)
    others = Part().negative_others(own)
    assert others.tolist() == [3, 25, 30]
    batches = Batches(own.head, own.relation, own.tail, batch_size=4, chunk_size=4, negatives=400, entities=(10, 20),
                      others=others)
    drawn = batches[0].entities[batches[0].negative_rows]
    assert set(drawn.tolist()) == {*range(10, 20), 3, 25, 30}


def test_batches_are_rounded_as_dglke_rounds_them():
    assert [rounded(1000, 200), rounded(1024, 256), rounded(1000, 256), rounded(100, 256), rounded(257, 256)] == [
        1000, 1024, 1024, 100, 512]


def test_bad_triples_are_refused():
    ids = np.arange(5)
    for options in ({"batch_size": 0}, {"negatives": 0}, {"entities": (3, 3)}):
        with pytest.raises(graphwire.InvalidError):
            Batches(ids, ids, ids, **{"batch_size": 2, "chunk_size": 1, "negatives": 1, "entities": (0, 5), **options})
    with pytest.raises(graphwire.OutOfRangeError):
        Batches(ids - 1, ids, ids, batch_size=5, chunk_size=5, negatives=1, entities=(0, 5))[0]
