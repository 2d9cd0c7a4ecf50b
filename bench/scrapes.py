#!/usr/bin/env python3
"""scrapes.py PID PORT [SCRAPES]: prints what a scrape costs the thread of a process that answers it, and at 100 scrapes
a second. The process is `graphwire serve --metrics PORT`, or a trainer with GRAPHWIRE_METRICS=PORT, and should have work
to report."""

from __future__ import annotations

import socket
import sys
from pathlib import Path


def worked(process: int) -> dict[str, int]:
    """The nanoseconds that each thread of the process has run."""
    return {path.parent.name: int(path.read_text().split()[0])
            for path in Path(f"/proc/{process}/task").glob("*/schedstat")}


def scrape(port: int) -> int:
    """Reads /metrics once, and returns the bytes of the response."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        count = 0
        while piece := connection.recv(1 << 16):
            count += len(piece)
    return count


def main() -> None:
    process, port = int(sys.argv[1]), int(sys.argv[2])
    scrapes = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    before = worked(process)
    size = [scrape(port) for _ in range(scrapes)][-1]
    # the thread that answers is the one that worked most, if the process is idle otherwise
    each = max(now - before.get(thread, 0) for thread, now in worked(process).items()) / scrapes
    print(f"{each / 1e3:.0f} us of a processor for a scrape of {size} bytes; "
          f"at 100 a second {each * 100 / 1e7:.2f} % of one processor")


if __name__ == "__main__":
    main()
