"""What libraries over DGL import and call, in the subset of dgl: files of tensors, data sets, dgl.backend."""

from __future__ import annotations

from importlib.metadata import version

import pytest
import torch
from graphwire.dgl.host import MissingError
from graphwire.dgl.install import install

dgl = install()
of_subset = pytest.mark.skipif(not getattr(dgl, "is_graphwire_subset", False), reason="of the subset alone")
TENSORS = {"user/feat": torch.rand(3, 2), "user/größe": torch.arange(4), "mask": torch.tensor([True, False]),
           "half": torch.rand(2).half(), "none": torch.empty(0, 5), "byte": torch.arange(3, dtype=torch.uint8)}


def test_files_of_tensors(tmp_path):
    """What one of dgl and the subset writes, the other reads."""
    from dgl.data.utils import load_tensors, save_tensors
    from graphwire.dgl.subset import data

    for number, (write, read) in enumerate(((save_tensors, load_tensors), (data.save_tensors, load_tensors),
                                            (save_tensors, data.load_tensors))):
        path = str(tmp_path / f"{number}.dgl")
        assert write(path, dict(TENSORS))
        found = read(path)
        assert found.keys() == TENSORS.keys()
        for name, rows in TENSORS.items():
            rows = rows.to(torch.uint8) if rows.dtype == torch.bool else rows
            assert found[name].dtype == rows.dtype and torch.equal(found[name], rows), name


def test_tensors_that_are_no_numbers(tmp_path):
    from graphwire.dgl.subset import data

    with pytest.raises(TypeError, match="complex64 is no type of numbers"):
        data.save_tensors(str(tmp_path / "t.dgl"), {"x": torch.zeros(2, dtype=torch.complex64)})


def test_a_data_set_of_a_library(tmp_path):
    from dgl.data.dgl_dataset import DGLDataset

    class Own(DGLDataset):
        def __init__(self, folder):
            self.steps = []
            super().__init__("own", url="none", raw_dir=folder, force_reload=False, verbose=False)

        def process(self):
            self.steps.append("process")

        def save(self):
            self.steps.append("save")

        def has_cache(self):
            return False

        def __getitem__(self, item):
            return item

        def __len__(self):
            return 1

    made = Own(str(tmp_path))
    assert (made.name, made.raw_dir, made.steps) == ("own", str(tmp_path), ["process", "save"])


def test_names_of_negatives_and_of_the_backend():
    """A library derives negatives from the base class, and counts with dgl.backend."""
    from dgl import backend
    from dgl.dataloading.negative_sampler import Uniform, _BaseNegativeSampler

    assert issubclass(Uniform, _BaseNegativeSampler)
    ids = torch.arange(3)
    assert (tuple(backend.shape(ids)), backend.dtype(ids), backend.context(ids).type) == ((3,), torch.int64, "cpu")
    assert backend.repeat(ids, 2, 0).tolist() == [0, 0, 1, 1, 2, 2]
    drawn = backend.randint((50,), torch.int64, torch.device("cpu"), 2, 5)
    assert drawn.shape == (50,) and set(drawn.tolist()) <= {2, 3, 4}


@pytest.mark.parametrize("agg", ["sum", "mean", "max", "min", "stack"])
def test_rows_of_several_relations(agg):
    from dgl.nn.pytorch.hetero import get_aggregate_fn

    rows = [torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, 1.0]])]
    expected = {"sum": [4, 6], "mean": [2, 3], "max": [3, 5], "min": [1, 1], "stack": [[1, 5], [3, 1]]}[agg]
    assert torch.equal(get_aggregate_fn(agg)(rows, "a"), torch.tensor([expected], dtype=torch.float32))


@of_subset
def test_what_is_not_there():
    from dgl import backend

    assert version("dgl") == dgl.__version__ == "1.1.3+graphwire"
    assert (dgl.DEFAULT_NTYPE, dgl.DEFAULT_ETYPE) == ("_N", ("_N", "_E", "_N"))
    with pytest.raises(MissingError, match=r"dgl\.backend\.topk"):
        backend.topk  # noqa: B018
