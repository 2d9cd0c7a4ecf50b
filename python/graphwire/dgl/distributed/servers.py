"""DGL's names of servers and their clients, so that libraries can import them. Each raises NotImplementedError when a
program calls it, and names what to do.

Servers are the program `graphwire serve`. deploy/launch.py starts and ends them, and gives their addresses to trainers.
"""

from __future__ import annotations

from typing import Any

NAMES = ("DistGraphServer", "KVServer", "KVClient", "ServerState", "start_server", "connect_to_server",
         "shutdown_servers")
_ADVICE = ("Graphwire's servers are the program graphwire: start them by deploy/launch.py, or by `graphwire serve`, "
           "and leave this call out")


def _made(name: str) -> type:
    def refuse(self: Any, *arguments: Any, **named: Any) -> None:
        raise NotImplementedError(f"dgl.distributed.{name}: {_ADVICE}")

    return type(name, (), {"__init__": refuse, "__module__": __name__, "__doc__": f"dgl.distributed.{name}, which "
                           "raises NotImplementedError."})


CLASSES = {name: _made(name) for name in NAMES}
globals().update(CLASSES)
