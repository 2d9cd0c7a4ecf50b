"""python -m graphwire COMMAND …: the program graphwire of this package."""

import sys

from graphwire_commands import graphwire

if __name__ == "__main__":
    sys.exit(graphwire())
