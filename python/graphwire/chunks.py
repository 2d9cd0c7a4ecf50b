"""DGL's chunked graphs with Parquet chunks: the names of graphwire/_files/chunks.py for users."""

import sys

from graphwire._files.chunks import Chunked, chunked, main
from graphwire._files.chunks import __doc__ as __doc__

__all__ = ["Chunked", "chunked", "main"]

if __name__ == "__main__":
    sys.exit(main())
