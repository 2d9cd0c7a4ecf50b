"""Makes archives in memory, for tests of fetch and unpack."""

from __future__ import annotations

import io
import tarfile
import zipfile


def zipped(files, inner=""):
    """Makes a zip of {name: bytes or text}. inner: a prefix for the names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(inner + name, body)
    return out.getvalue()


def tarred(files, mode="w:gz", link=None):
    """Makes a tar of {name: bytes or text}. link: the name of a further symbolic link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, body in files.items():
            info = tarfile.TarInfo(name)
            body = body.encode() if isinstance(body, str) else body
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
        if link:
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(info)
    return out.getvalue()
