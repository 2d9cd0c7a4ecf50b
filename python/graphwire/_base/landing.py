"""Pinned memory, into which rows of mini-batches land, so that a batch is copied to a GPU once.

    tend(), before each batch -> torch.empty(pin_memory=True) -> a spare block (python/landing.h)
        -> the library's threads write rows into it -> rows(): a tensor over the block's own storage -> the caller
        -> the mini-batch is freed: the next tend() drops the block, and torch keeps its memory

A block serves one mini-batch. The caller may copy its rows to a GPU in any stream, and free them while that copy runs.
torch's allocator of pinned memory sees the copy, because the tensor has the storage that it made; it hands the memory
out again when the copy has ended. So the blocks are not written again by us, and the memory is still allocated once.

Blocks belong to a client and stay until it is closed, whatever Python frees first: the library may write to them until
then. So this module refers to the landings of all clients, and drops those of closed ones.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from graphwire._base.native import check, ffi, lib, owned

_ROOM = 256  # blocks that one tend() drops
_SIZES = 64
_landings: dict[int, Landing] = {}


def _torch() -> Any:
    """torch, if this process has imported it."""
    return sys.modules.get("torch")


def in_use() -> bool:
    """Whether this process uses a GPU. In a child process made by fork it cannot."""
    torch = _torch()
    cuda = getattr(torch, "cuda", None)
    return cuda is not None and cuda.is_initialized()


def allocate(count: int) -> Any:
    """A tensor of so many bytes in pinned memory."""
    return _torch().empty(count, dtype=_torch().uint8, pin_memory=True)


def _sweep() -> None:
    """Drops the landings whose clients are closed. A child process keeps those that it inherited: their memory belongs
    to the GPU's driver in the parent."""
    for number, one in list(_landings.items()):
        if one._pid == os.getpid() and lib.landing_is_over(one.held):
            _landings.pop(number, None)


class Landing:
    """The blocks of a client. held: for client_open."""

    def __init__(self) -> None:
        _sweep()
        self.held = owned("struct held_landing *", lib.landing_end)
        check(lib.GW_OK if lib.landing_begin(self.held) else lib.GW_NO_MEMORY)
        self._blocks: dict[int, Any] = {}  # {address: tensor} of the blocks that C knows
        self._pid, self._on, self._failed = os.getpid(), False, False
        _landings[id(self)] = self

    def ask(self) -> None:
        """Lets rows land in pinned memory from now on. Without a call they do once the process uses a GPU."""
        if not self._on and not self._failed and self._pid == os.getpid():
            self._on = True
            lib.landing_turn(self.held, True)

    def tend(self) -> None:
        """Drops the blocks that are gone, and adds those that are needed. Any threads may call it at once."""
        if not self._on:
            if self._failed or not in_use():
                return
            self.ask()
        if self._pid != os.getpid():
            return
        needed, removed = ffi.new("uint32_t[]", _SIZES), ffi.new("uintptr_t[]", _ROOM)
        for address in ffi.unpack(removed, lib.landing_tend(self.held, removed, _ROOM, needed)):
            self._blocks.pop(address, None)
        try:
            for size, count in enumerate(ffi.unpack(needed, _SIZES)):
                for _ in range(count):
                    self._add(1 << size)
        except RuntimeError as error:  # torch's, of memory that cannot be pinned
            self._on, self._failed = False, True
            lib.landing_turn(self.held, False)
            logging.getLogger("graphwire").warning(
                "rows of mini-batches land in ordinary memory from now on, because no more memory can be pinned: %s",
                error)

    def _add(self, count: int) -> None:
        block = allocate(count)
        address = block.data_ptr()
        self._blocks[address] = block
        if not lib.landing_put(self.held, ffi.cast("void *", address), count):
            del self._blocks[address]

    def rows(self, address: int, count: int, shape: tuple[int, ...], dtype: Any) -> Any:
        """The tensor of the rows in `count` bytes at an address, over the storage of the block; None if they are not in
        a block. The mini-batch of the rows is not freed yet."""
        block = self._blocks.get(address)
        return None if block is None else block[:count].view(dtype).view(shape)
