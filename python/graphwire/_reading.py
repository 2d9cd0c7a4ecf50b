"""Errors of readers: whatever a damaged file makes a reader raise becomes the reader's own error, which names the file.

    with reading(path, DatasetError):
        rows = np.load(path)

The parsers of zip, gzip, pickle, JSON and .npy raise some twenty types for damaged bytes: struct.error, zlib.error,
EOFError, tokenize.TokenError, MemoryError for a size that the file only claims, RecursionError, … No list of them stays
complete. So every Exception is one; interrupts are none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reading(path: str | os.PathLike, error: type[Exception], *others: type[Exception],
            what: str = "cannot be read") -> Iterator[None]:
    """Raises `error` with the text "PATH: WHAT: cause" for every other Exception. others: errors that pass too."""
    try:
        yield
    except (error, *others):
        raise
    except (OSError, ValueError) as cause:
        raise error(f"{os.fspath(path)}: {what}: {cause}") from cause
    except Exception as cause:
        raise error(f"{os.fspath(path)}: {what}: {type(cause).__name__}: {cause}") from cause
