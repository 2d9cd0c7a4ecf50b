"""--with_program: copies the bundle (docs/INSTALL.md) to each host, so that a host needs nothing except sshd.

    the digests differ -> unpack into a new folder -> check that the program runs -> write the digest -> two renames

The launcher looks for WORKSPACE/.graphwire/bin/graphwire first (reach.py). A program that runs during the replacement
continues.
"""

from __future__ import annotations

import dataclasses
import glob
import gzip
import hashlib
import io
import os
import re
import shlex
import tarfile

from .errors import UsageError
from .names import IN_PACKAGE, TOP

FOLDER = ".graphwire"
_NAME = re.compile(r"^graphwire-[0-9A-Za-z.~+-]+-linux-(?P<machine>[A-Za-z0-9_]+)\.tar\.gz$")
_BYTES_MAX = 256 << 20


@dataclasses.dataclass(frozen=True)
class Bundle:
    """A bundle's tarball, read."""

    name: str
    machine: str  # the name that `uname -m` prints
    content: bytes
    digest: str

    def look(self, workspace: str) -> str:
        """Returns a script of sh that prints the host's machine (`uname -m`) and the digest of its bundle."""
        return f"uname -m; cat {shlex.quote(workspace)}/{FOLDER}/.digest 2>/dev/null || echo none"

    def unpack(self, workspace: str) -> str:
        """Returns a script of sh that reads the tarball from stdin. If the new bundle does not run on the host, the old
        one stays."""
        return (
            f"cd {shlex.quote(workspace)}; rm -rf {FOLDER}.new {FOLDER}.old; trap 'rm -rf {FOLDER}.new' EXIT; "
            f"mkdir {FOLDER}.new; "
            f"tar -xzf - --strip-components=1 -C {FOLDER}.new; {FOLDER}.new/bin/graphwire --version >/dev/null; "
            f"echo {self.digest} >{FOLDER}.new/.digest; if [ -e {FOLDER} ]; then mv {FOLDER} {FOLDER}.old; fi; "
            f"mv {FOLDER}.new {FOLDER}; rm -rf {FOLDER}.old"
        )


def _find() -> str:
    """Finds the bundle of this checkout, or of the folder where these scripts were unpacked."""
    found = [
        path
        for path in glob.glob(os.path.join(TOP, "build/release/graphwire-*.tar.gz"))
        if _NAME.match(os.path.basename(path))
    ]
    if len(found) != 1:
        raise UsageError(
            f"--with_program: {len(found)} bundles in {TOP}/build/release: run cmake --build build/release --target "
            "bundle, or give --with_program=FILE"
        )
    return found[0]


def _of_package() -> Bundle:
    """Makes a bundle of the installed package's program and libraries. The same files give the same bytes."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as out, tarfile.open(fileobj=out, mode="w") as tar:
        for place in ("bin", "lib"):
            for name in sorted(os.listdir(os.path.join(TOP, place))):
                with open(os.path.join(TOP, place, name), "rb") as file:
                    entry = tarfile.TarInfo(f"graphwire/{place}/{name}")
                    entry.mode, entry.size = 0o755, os.fstat(file.fileno()).st_size
                    tar.addfile(entry, file)
    content, machine = packed.getvalue(), os.uname().machine
    return Bundle(f"the package's program for {machine}", machine, content, hashlib.sha256(content).hexdigest())


def read(path: str) -> Bundle:
    """Reads the bundle of a path. An empty path stands for this checkout's bundle, or for an installed package's own
    program, which runs on other hosts if the package came as a wheel of a release."""
    if not path and IN_PACKAGE:
        return _of_package()
    path = os.path.expanduser(path) if path else _find()
    match = _NAME.match(os.path.basename(path))
    if not match:
        raise UsageError(f"--with_program {path}: a bundle is named graphwire-VERSION-linux-MACHINE.tar.gz")
    try:
        with open(path, "rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"--with_program {path}: {error.strerror}") from None
    if len(content) > _BYTES_MAX or content[:2] != b"\x1f\x8b":
        raise UsageError(f"--with_program {path}: it is not a .tar.gz of at most {_BYTES_MAX} bytes")
    return Bundle(os.path.basename(path), match.group("machine"), content, hashlib.sha256(content).hexdigest())
