"""Loopback ports for a test's servers."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path


def free_ports(count: int) -> list[int]:
    """Returns free ports that the kernel does not give to outgoing connections."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(first // 2, first)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in found:
                found.append(port)
    return found
