"""The messages between a server and its successor (server/handover_wire.h), for tests that stand between the two, or in
the place of one of them.

As a program it relays one hand-over and kills one side in the middle:

  handover.py SOCKET PID|new NUMBER

kills the server PID, or the successor, instead of passing on message NUMBER (from 1), prints the messages that it
passed on, and gives the socket its name back.
"""

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import struct
import sys

HEAD = struct.Struct("<IIQ")
MAGIC = 0x6F487747
FDS = array.array("i").itemsize * 4


def connect(path):
    peer = socket.socket(socket.AF_UNIX)
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    peer.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")  # an address is shorter than paths may be
    os.close(folder)
    return peer


def receive(peer):
    """A JSON object or bytes, and its descriptors; None at the end."""
    fds = []
    data = b""
    while len(data) < HEAD.size:
        piece, ancillary, _, _ = peer.recvmsg(HEAD.size - len(data), socket.CMSG_SPACE(FDS))
        for _, _, rights in ancillary:
            fds += array.array("i", rights[:len(rights) // 4 * 4])
        if not piece:
            return None, fds
        data += piece
    magic, kind, length = HEAD.unpack(data)
    assert magic == MAGIC
    body = b""
    while len(body) < length:
        piece = peer.recv(length - len(body))
        if not piece:
            return None, fds
        body += piece
    return (json.loads(body) if kind == 1 else body), fds


def send(peer, message, fds=()):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    data = HEAD.pack(MAGIC, 2 if isinstance(message, bytes) else 1, len(body)) + body
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sent = peer.sendmsg([data], rights)
    peer.sendall(data[sent:])


def process_of(peer):
    return struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def relay(path, victim, number):
    real = path + ".real"
    os.rename(path, real)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            print("ready", flush=True)
            new, _ = listener.accept()
    finally:
        os.rename(real, path)
    old = connect(path)
    others = {new: old, old: new}
    passed = 0
    while True:
        for peer in select.select(list(others), [], [])[0]:
            message, fds = receive(peer)
            if message is None:
                return
            passed += 1
            if passed == number:
                os.kill(process_of(new) if victim == "new" else int(victim), signal.SIGKILL)
                return
            print(message["is"] if isinstance(message, dict) else "bytes", flush=True)
            send(others[peer], message, fds)
            for fd in fds:
                os.close(fd)


if __name__ == "__main__":
    os.chdir(os.path.dirname(sys.argv[1]))
    relay(os.path.basename(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
