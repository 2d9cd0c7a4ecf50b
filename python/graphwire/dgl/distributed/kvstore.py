"""dgl.distributed.kvstore: the functions that libraries call to end one graph before they open the next."""

from __future__ import annotations

from graphwire.dgl.distributed.context import Client, context


def get_kvstore() -> Client:
    """The object that g._client is."""
    return context.client


def close_kvstore() -> None:
    """Ends this process's use of the graph, as exit_client(). The process may then open another graph."""
    context.close()
