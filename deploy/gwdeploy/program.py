"""--with_program: the bundle (docs/INSTALL.md) to each host, so that it needs nothing but sshd.

    the bundle's digest is not the host's -> unpacked beside -> it runs there -> the digest -> two renames

Programs look for WORKSPACE/.graphwire/bin/graphwire first (reach.py). One that runs while it is replaced goes on.
"""

from __future__ import annotations

import dataclasses
import glob
import hashlib
import os
import re
import shlex

from .errors import UsageError

FOLDER = ".graphwire"
_NAME = re.compile(r"^graphwire-[0-9A-Za-z.~+-]+-linux-(?P<machine>[A-Za-z0-9_]+)\.tar\.gz$")
_BYTES_MAX = 256 << 20


@dataclasses.dataclass(frozen=True)
class Bundle:
    """A bundle's tarball, read."""

    name: str
    machine: str  # as `uname -m` calls it
    content: bytes
    digest: str

    def look(self, workspace: str) -> str:
        """A script of sh that prints what the host is (`uname -m`), and the digest of the bundle that it has."""
        return f"uname -m; cat {shlex.quote(workspace)}/{FOLDER}/.digest 2>/dev/null || echo none"

    def unpack(self, workspace: str) -> str:
        """A script of sh that takes the tarball on stdin. A bundle that does not run there leaves the one before."""
        return (
            f"cd {shlex.quote(workspace)}; rm -rf {FOLDER}.new {FOLDER}.old; trap 'rm -rf {FOLDER}.new' EXIT; "
            f"mkdir {FOLDER}.new; "
            f"tar -xzf - --strip-components=1 -C {FOLDER}.new; {FOLDER}.new/bin/graphwire --version >/dev/null; "
            f"echo {self.digest} >{FOLDER}.new/.digest; if [ -e {FOLDER} ]; then mv {FOLDER} {FOLDER}.old; fi; "
            f"mv {FOLDER}.new {FOLDER}; rm -rf {FOLDER}.old"
        )


def _find() -> str:
    """The bundle of this checkout, or of the folder that these scripts were unpacked in."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found = [
        path
        for path in glob.glob(os.path.join(top, "build/release/graphwire-*.tar.gz"))
        if _NAME.match(os.path.basename(path))
    ]
    if len(found) != 1:
        raise UsageError(
            f"--with_program: {len(found)} bundles in {top}/build/release: "
            "cmake --build build/release --target bundle, or --with_program=FILE"
        )
    return found[0]


def read(path: str) -> Bundle:
    """The bundle of a path; of this checkout, where it is empty."""
    path = os.path.expanduser(path) if path else _find()
    match = _NAME.match(os.path.basename(path))
    if not match:
        raise UsageError(f"--with_program {path}: no bundle's name; graphwire-VERSION-linux-MACHINE.tar.gz is one")
    try:
        with open(path, "rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"--with_program {path}: {error.strerror}") from None
    if len(content) > _BYTES_MAX or content[:2] != b"\x1f\x8b":
        raise UsageError(f"--with_program {path}: no .tar.gz of at most {_BYTES_MAX} bytes")
    return Bundle(os.path.basename(path), match.group("machine"), content, hashlib.sha256(content).hexdigest())
