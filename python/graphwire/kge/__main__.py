"""python -m graphwire.kge COMMAND …"""

import sys

from graphwire.kge.commands import main

if __name__ == "__main__":
    sys.exit(main())
