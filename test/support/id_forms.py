"""What may be given for ids, in every type, shape and container; and what NumPy and torch mean by it."""

from __future__ import annotations

import itertools

import numpy as np
import torch

ROWS = 12  # that masks among the forms are of

DTYPES = ("bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
          "float64", "complex64", "str", "object", "datetime64[D]")
VALUES = ([], [1], [0, 1], [1, 0, 2, 2], [7, 11], [0, 1] * (ROWS // 2), [0] * ROWS, [1, 0, 0] * 5, list(range(ROWS)),
          [3, ROWS], [-1, 2])


def forms():
    """(value, its text) in every container."""
    for dtype, values in itertools.product(DTYPES, VALUES):
        if min(values, default=0) < 0 and dtype.startswith(("u", "b")):
            continue
        array = np.array(values, "int64").astype(dtype)
        text = f"{dtype}{values}"
        yield array, f"numpy {text}"
        yield array.reshape(-1, 1), f"numpy [n, 1] {text}"
        yield array.tolist(), f"list {text}"
        if len(array):
            yield array[0], f"numpy's {text}[0]"
            yield array.tolist()[0], f"Python's {text}[0]"
            yield list(array), f"list of numpy's {text}"
        if hasattr(torch, dtype):
            tensor = torch.from_numpy(array)
            yield tensor, f"torch {text}"
            yield tensor.reshape(1, -1), f"torch [1, n] {text}"
            if len(array):
                yield tensor[0], f"torch's {text}[0]"
                yield list(tensor), f"list of torch's {text}"
    for other in (slice(None), slice(2, 9, 3), slice(0, 0), range(3), range(0), (5, 4)):
        yield other, repr(other)
    for other in ({1, 2}, {1: 2}, iter([1, 2]), "12", b"12", [True, 3], [3, True], [3, None], [[1], [1, 2]], [2**63],
                  object(), 1.0, 1j, torch.tensor([1.5], dtype=torch.bfloat16), [torch.tensor(True), torch.tensor(3)]):
        yield other, repr(other)


def meaning(value, count, index=False):
    """The ids that NumPy or torch select by it, as a list; None where they do not. One byte an element is a mask, as
    torch has it for uint8; a number counts from the front, a lone one as an index from the end too."""
    if isinstance(value, tuple):
        value = list(value)
    whole = np.arange(count)
    try:
        if isinstance(value, list) and any(hasattr(one, "dtype") for one in value):
            value = np.array([np.asarray(one) for one in value])
        if isinstance(value, (bool, np.bool_)) or getattr(value, "ndim", 1) != 1:
            if not (getattr(value, "ndim", None) == 0 and str(value.dtype).replace("torch.", "") in DTYPES[3:9]):
                return None
        if isinstance(value, np.ndarray) and value.dtype.name in ("uint8", "int8"):
            value = value.astype(bool) if value.max(initial=0) < 2 else None
        if isinstance(value, torch.Tensor) and value.dtype in (torch.uint8, torch.int8):
            value = value.bool() if value.numel() and value.max() < 2 else None
        if value is None or isinstance(value, (float, complex, str, bytes)):
            return None
        if len(value if hasattr(value, "__len__") and getattr(value, "ndim", 1) else [0]) == 0 and "float" in str(
                getattr(value, "dtype", "")):
            return []  # as both make them of []
        if str(getattr(value, "dtype", "")) == "bool" and len(value) != count:
            return None  # NumPy lets an empty one pass
        if isinstance(value, torch.Tensor) and str(value.dtype)[6:] in ("int16", "uint16", "uint32", "uint64"):
            value = value.numpy()  # which torch takes for no index, and NumPy does
        found = torch.arange(count)[value] if isinstance(value, torch.Tensor) else whole[value]
    except (IndexError, TypeError, ValueError, OverflowError):
        return None
    front = isinstance(value, slice) or (index and np.ndim(value) == 0)
    if not front and np.any(np.asarray(value).astype(np.int64) < 0):
        return None
    return np.asarray(found).reshape(-1).tolist()


def must(value):
    """The documented forms: integers in lists, tuples, ranges and arrays, masks of bools, slices."""
    if isinstance(value, (slice, range, tuple)):
        return True
    if isinstance(value, list):
        return all(type(one) is int for one in value) or all(type(one) is bool for one in value)
    return str(getattr(value, "dtype", "")).replace("torch.", "") in ("bool", *DTYPES[3:9])
