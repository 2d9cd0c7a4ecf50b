"""Code that computes on a GPU first moves all its tensors there: the commands run on a made-up GPU."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
import torch
from graphwire.kge.commands import main
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

DEVICE = torch.device("cuda:0")
OPTIONS = ("--dataset wn18 --hidden_dim 8 --gamma 5 --lr 0.3 --batch_size 40 --neg_sample_size 20 --max_step 6 "
           "--log_interval 3 --eval_interval 6 --batch_size_eval 30").split()


class There(torch.Tensor):
    """A tensor of the made-up GPU."""


class MadeUpGpu(TorchFunctionMode):
    """Marks tensors that are moved to cuda:0 as the GPU's. A call with tensors of both kinds is an error, as with a
    real GPU. Backward steps, which torch runs by itself, are not checked."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        there = [isinstance(tensor, There) for tensor in tensors]
        if name == "to" and torch.device(args[1]) == DEVICE:
            return args[0].as_subclass(There)
        if name == "cpu":
            return args[0].as_subclass(torch.Tensor)
        if func == torch.Tensor.device.__get__ and any(there):
            return DEVICE
        if func == torch.Tensor.grad.__get__ and any(there) and args[0].grad is not None:
            return args[0].grad.as_subclass(There)
        if name == "numpy" and any(there):
            raise TypeError("a tensor of a GPU is no array")
        numbers = [tensor.dim() == 0 for tensor in tensors]
        if any(there) and not all(at or number for at, number in zip(there, numbers)):
            raise RuntimeError(f"{name}: some of its tensors are on the GPU, and some are not")
        made = kwargs.get("device") is not None and torch.device(kwargs["device"]) == DEVICE
        if made:
            kwargs["device"] = "cpu"
        found = func(*args, **kwargs)
        return found.as_subclass(There) if made else found


@pytest.fixture
def gpu(monkeypatch, pinned_rows):
    """A context in which --gpu 0 exists, and the record of pinned tensors."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    return MadeUpGpu, pinned_rows


def test_the_made_up_gpu_distinguishes_devices():
    with MadeUpGpu():
        here = torch.ones(3)
        there = here.to("cuda:0")
        assert (there + 1).sum().device == DEVICE and here.device.type == "cpu"
        assert torch.arange(3, device=there.device).device == DEVICE
        with pytest.raises(RuntimeError, match="some of its tensors are on the GPU"):
            here + there
        with pytest.raises(TypeError):
            there.numpy()
        assert there.cpu().numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["TransE_l2", "TransR", "RESCAL"])
def test_rows_are_taken_to_the_gpu(data_path, tmp_path, gpu, capfd, name):
    """Training with validation and test, eval, predict and emb_sim: no result depends on the device."""
    made_up, pinned = gpu
    (tmp_path / "h").write_text("3\n70\n")
    found = []
    for words, place in ((["--gpu", "0"], made_up()), ([], contextlib.nullcontext())):
        top = tmp_path / f"on{len(words)}"
        model = top / f"{name}_wn18_0"
        with place:
            assert main(["train", *OPTIONS, "--model_name", name, "--data_path", str(data_path), "--save_path",
                         str(top), "--valid", "--test", "--neg_deg_sample", *words]) == 0, capfd.readouterr().err
            assert bool(pinned) == bool(words)
            capfd.readouterr()
            assert main(["eval", "--dataset", "wn18", "--data_path", str(data_path), "--model_path", str(model),
                         *words]) == 0
            said = capfd.readouterr().out
            assert main(["predict", "--model_path", str(model), "--format", "h_*_*", "--data_files",
                         str(tmp_path / "h"), "--output", str(top / "predicted"), *words]) == 0
            assert main(["emb_sim", "--emb_file", str(model / f"wn18_{name}_entity.npy"), "--format", "l_*",
                         "--data_files", str(tmp_path / "h"), "--output", str(top / "alike"), *words]) == 0
        pinned.clear()
        curve = [line.split(",")[10:] for line in (model / "curve.csv").read_text().splitlines()]
        found.append((np.load(model / f"wn18_{name}_entity.npy").tolist(), curve, said, *(
            json.loads((model / "test.json").read_text()).items()), *(
                (top / name).read_text() for name in ("predicted", "alike"))))
    assert found[0] == found[1]
