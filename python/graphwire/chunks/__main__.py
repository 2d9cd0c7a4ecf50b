import sys

from graphwire.chunks import main

if __name__ == "__main__":
    sys.exit(main())
