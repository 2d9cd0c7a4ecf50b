"""dgl.distributed.rpc: the names by which libraries define requests of their own to DGL's servers.

    class Flush(rpc.Request) -> rpc.register_service(…) -> for server in range(rpc.get_num_server()): …

Graphwire's servers run no code of programs, so get_num_server() is 0, and a loop over the servers sends nothing. A
library that sends such requests to wait for its writes loses nothing: a write to a DistTensor returns when the servers
have acknowledged it.

Errors: NotImplementedError of the functions that would send or receive a message.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

from graphwire._base.keywords import keywords
from graphwire.dgl.distributed.context import context
from graphwire.dgl.host import error_type


class _Message:
    """A message that a library derives its own from. Its methods are the library's."""

    def __getstate__(self) -> Any:
        raise NotImplementedError

    def __setstate__(self, state: Any) -> None:
        raise NotImplementedError

    @property
    def service_id(self) -> int:
        """The number under which the class is registered. Raises DGLError if it is not."""
        if type(self) not in _services:
            raise error_type()(f"class {type(self)} has not been registered as a service")
        return _services[type(self)]


@keywords
class Request(_Message):
    """dgl.distributed.rpc.Request, a base class. No server processes it."""

    def process_request(self, server_state: Any) -> Any:
        raise NotImplementedError


@keywords
class Response(_Message):
    """dgl.distributed.rpc.Response, a base class."""


_services: dict[type, int] = {}  # {class of requests or responses: number}


@keywords
def register_service(service_id: int, req_cls: type, res_cls: type | None = None) -> None:
    """Notes the number of a class of requests, and of the class of their responses."""
    _services.update(dict.fromkeys((one for one in (req_cls, res_cls) if one is not None), service_id))


def get_num_server() -> int:
    """The number of servers that accept requests of programs: 0."""
    return 0


def get_rank() -> int:
    """The rank of this trainer; -1 before initialize(), as in DGL."""
    return context.rank if context.initialized else -1


def get_num_client() -> int:
    """The number of trainers."""
    return context.world


def get_num_machines() -> int:
    """The number of hosts: of the graph's parts, after the DistGraph is made."""
    return 1 if context.graph is None else context.graph.num_parts


def get_machine_id() -> int:
    """The number of this trainer's host, which is the number of its part."""
    return context.part_of(context.rank, get_num_machines())


def get_group_id() -> int:
    """The number of this job among jobs of the same servers: the launcher's DGL_GROUP_ID, or 0."""
    return int(os.environ.get("DGL_GROUP_ID", 0))


def client_barrier() -> None:
    """Returns when every trainer has called it."""
    context.barrier()


def _unserved(name: str) -> NoReturn:
    raise NotImplementedError(f"rpc.{name}: Graphwire's servers accept no requests of programs: use DistTensor and "
                              "DistGraph for rows and edges, and torch.distributed between trainers")


@keywords
def send_request(target: int, request: Any) -> None:
    """Raises NotImplementedError, which names what to use."""
    _unserved("send_request")


@keywords
def send_request_to_machine(target: int, request: Any) -> None:
    """Raises NotImplementedError, as send_request."""
    _unserved("send_request_to_machine")


@keywords
def recv_response(timeout: int = 0) -> Any:
    """Raises NotImplementedError, as send_request."""
    _unserved("recv_response")


@keywords
def remote_call(target_and_requests: Any, timeout: int = 0) -> Any:
    """Raises NotImplementedError, as send_request."""
    _unserved("remote_call")


@keywords
def remote_call_to_machine(target_and_requests: Any, timeout: int = 0) -> Any:
    """Raises NotImplementedError, as send_request."""
    _unserved("remote_call_to_machine")
