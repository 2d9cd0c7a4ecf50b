"""Errors of readers: whatever a damaged file makes a reader raise becomes the reader's own error, which names the file.

    with reading(path, DatasetError):
        rows = np.load(path)

The parsers of zip, gzip, pickle, JSON and .npy raise some twenty types for damaged bytes: struct.error, zlib.error,
EOFError, tokenize.TokenError, MemoryError for a size that the file only claims, RecursionError, … No list of them stays
complete. So every Exception counts. Interrupts do not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reading(path: str | os.PathLike, error: type[Exception], *others: type[Exception],
            what: str = "cannot be read") -> Iterator[None]:
    """Raises `error` with the text "PATH: WHAT: cause" for every other Exception, and "PATH: cause" for an `error` that
    does not name the path. path: a file, or the folder of several. others: errors that pass unchanged."""
    place = os.fsdecode(path)
    try:
        yield
    except others:
        raise
    except Exception as cause:
        text = " ".join(str(cause).split())  # one line
        if isinstance(cause, error):
            if place in str(cause):
                raise
            raise error(f"{place}: {text}") from cause
        kind = "" if isinstance(cause, (OSError, ValueError)) else f"{type(cause).__name__}: "
        raise error(f"{place}: {what}: {kind}{text}") from cause
