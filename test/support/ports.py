"""Ports of loopback for servers of a test."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path


def free_ports(count: int) -> list[int]:
    """Ports that nobody has, and that the kernel gives to nobody who connects in between."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(first // 2, first)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in found:
                found.append(port)
    return found
