"""python -m graphwire.dgl.from_dgl PARTS.json --out FOLDER: makes a graph of Graphwire from parts that DGL has written.

The options are arguments of graphwire.dgl.convert_parts, which does the work. DGL must be installed.

Errors: one line on stderr, and the exit status 1.
"""

from __future__ import annotations

import argparse
import sys

from graphwire.dgl.parts import convert_parts


def main() -> None:
    text = "Makes a graph of Graphwire from parts that DGL has written. DGL must be installed."
    parser = argparse.ArgumentParser(prog="python -m graphwire.dgl.from_dgl", description=text)
    parser.add_argument("part_config", metavar="PARTS.json", help="the JSON that DGL's partition_graph wrote")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="the folder of the new parts")
    parser.add_argument("--num_parts", type=int, metavar="N", help="the number of parts; the default is DGL's")
    parser.add_argument("--method", choices=("metis", "random"), default="metis", help="how to divide the graph")
    given = parser.parse_args()
    try:
        print(convert_parts(given.part_config, given.out, num_parts=given.num_parts, method=given.method))
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        sys.exit(f"graphwire.dgl.from_dgl: {error}")


if __name__ == "__main__":
    main()
