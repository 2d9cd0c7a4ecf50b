"""python -m graphwire.dgl.convert CONFIG OUT [--num-parts N]: graphwire.dgl.convert_parts as a command.

CONFIG is the JSON of parts that DGL wrote, or of Graphwire's parts into which a program wrote node_feat.dgl and
edge_feat.dgl. Errors: a line on stderr, and status 1.
"""

from __future__ import annotations

import argparse
import sys

from graphwire.dgl.parts import convert_parts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m graphwire.dgl.convert", description=(
        "Convert parts that DGL wrote, or Graphwire's parts with rows that were written later, to a graph of "
        "Graphwire."))
    parser.add_argument("config", help="the JSON of the parts")
    parser.add_argument("out", help="the folder of the new parts")
    parser.add_argument("--num-parts", type=int, metavar="N", help="the number of new parts (as before)")
    parser.add_argument("--method", default="metis", help="metis or random (metis)")
    parser.add_argument("--weight", action="append", default=[], metavar="NAME",
                        help="an edge feature that gets a table of weights")
    parser.add_argument("--time", action="append", default=[], metavar="NAME",
                        help="a feature of edges, or of their sources, that lists are sorted by")
    args = parser.parse_args()
    try:
        print(convert_parts(args.config, args.out, num_parts=args.num_parts, method=args.method, weight=args.weight,
                            time=args.time))
    except (ValueError, OSError, RuntimeError) as error:
        print(f"graphwire.dgl.convert: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
