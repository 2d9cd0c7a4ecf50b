"""Downloads of public files: the names of graphwire/_files/fetch.py for users."""

from graphwire._files.fetch import FetchError, fetch, unpack
from graphwire._files.fetch import __doc__ as __doc__

__all__ = ["FetchError", "fetch", "unpack"]
