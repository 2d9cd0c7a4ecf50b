"""Writes the packages of a Debian or Ubuntu system as tables, from which `graphwire import` makes a graph.

    python3 examples/debian_packages.py tables/
    graphwire import --name packages --out packages/ --reverse --delimiter comma --ids text \\
        --node-table package=tables/package.csv --label-column package=section --mask-column package=split \\
        --node-feature package:feat=tables/package.feat.npy \\
        --node-table source=tables/source.csv --node-table maintainer=tables/maintainer.csv \\
        --edges package:depends:package=tables/depends.csv --edges package:recommends:package=tables/recommends.csv \\
        --edges package:suggests:package=tables/suggests.csv --edges package:conflicts:package=tables/conflicts.csv \\
        --edges package:built-from:source=tables/built-from.csv \\
        --edges package:maintained-by:maintainer=tables/maintained-by.csv

The tables:

    package.csv       name, archive section, split (train, val, test: 60, 20 and 20 % of the packages)
    package.feat.npy  float32 [128] for each package: the words of its description, hashed
    source.csv, maintainer.csv   names
    depends.csv       Depends and Pre-Depends
    conflicts.csv     Conflicts and Breaks
    recommends.csv, suggests.csv, built-from.csv, maintained-by.csv

All words are in quotes, so that a package may be called NA or 2048, and a maintainer's name may begin with a quote.
--delimiter is needed because a table of one column has no comma. Nodes are sorted by name. Only the label comes from
the section, so nothing else in the graph contains it.

Every alternative of "a | b" gets an edge. A name that no package has, but that packages provide, stands for all
packages that provide it; other names are counted and left out. Version constraints, architectures (":any") and
restrictions in brackets are ignored. No edge is stored twice, and none from a package to itself. If a package has
several stanzas, or a stanza a field several times, the first counts.

The script needs only Python's standard library and libxxhash, which apt needs too. Errors are one line; those of an
input name the line.
"""

import argparse
import array
import csv
import ctypes
import gzip
import math
import os
import re
import subprocess
import sys

FIELDS = {"package", "source", "maintainer", "section", "description", "depends", "pre-depends", "recommends",
          "suggests", "conflicts", "breaks", "provides"}
RELATIONS = {"depends": ("depends", "pre-depends"), "recommends": ("recommends",), "suggests": ("suggests",),
             "conflicts": ("conflicts", "breaks")}
BELONGS = {"source": "built-from", "maintainer": "maintained-by"}
NAME = re.compile(r"([a-zA-Z0-9+._-]+)[^,|]*")  # "libc6:any (>= 2.34) [amd64]"; "," and "|" separate names
WORD = re.compile(rb"[a-z0-9\x80-\xff]{2,}")
WORD_MAX = 64
FEATURES = 128
BLANK = " \t\r\n"


def dumped(path):
    """The text of apt-cache dumpavail, or of a file with it. One character is one byte: names are sorted by bytes."""
    if path is None:
        try:
            done = subprocess.run(["apt-cache", "dumpavail"], stdout=subprocess.PIPE)
        except FileNotFoundError:
            sys.exit("debian_packages: apt-cache: this is not a Debian system; pass the output of apt-cache dumpavail "
                     "from a Debian system with --from")
        if done.returncode:
            sys.exit("debian_packages: apt-cache dumpavail failed: run it by hand to see why")
        data = done.stdout
    else:
        try:
            with open(0 if path == "-" else path, "rb") as file:
                data = file.read()
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        except (OSError, EOFError, gzip.zlib.error) as error:
            sys.exit(f"debian_packages: {path}: {getattr(error, 'strerror', None) or error}")
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode("latin-1")


def stanzas(text, what):
    """The stanzas, each {field: value}: "Field: value" and lines that begin with a blank and continue the value."""
    found, stanza, field, begin = [], {}, None, None  # begin: the line on which the stanza begins
    for number, line in enumerate((text + "\n\n").split("\n"), 1):
        if not line.strip(BLANK):
            if begin and not stanza.get("package"):
                sys.exit(f'debian_packages: {what}, line {begin}: a stanza without "Package:"')
            if begin:
                found.append(stanza)
            stanza, field, begin = {}, None, None
        elif line[0] in " \t":
            if not begin:
                sys.exit(f"debian_packages: {what}, line {number}: a continuation line without a field before it")
            if field:
                stanza[field] += "\n" + line
        else:
            begin = begin or number
            name, colon, value = line.partition(":")
            if not colon or not name:
                sys.exit(f'debian_packages: {what}, line {number}: not "Field: value": is this the output of '
                         f"apt-cache dumpavail?")
            name = name.lower()
            if name.startswith("description-") and name != "description-md5":
                name = "description"  # a translation, if the plain field is missing
            field = name if name in FIELDS and not stanza.get(name) else None
            if field:
                stanza[field] = value.strip(BLANK)
    if not found:
        sys.exit(f"debian_packages: {what}: no packages: run apt-get update first")
    return found


def source(stanza):
    """"foo (1.2-3)" gives foo; without the field, the package's own name."""
    name = NAME.search(stanza.get("source", ""))
    return name[1] if name else stanza["package"]


def maintainer(stanza):
    return " ".join(stanza.get("maintainer", "").split("\n")).strip(BLANK) or "unknown"


def section(stanza):
    """"contrib/games" gives games: the archive's component is not part of the section."""
    return stanza.get("section", "").rpartition("/")[2].strip(BLANK) or "unknown"


def related(packages):
    """{relation: pairs of names}, and the number of names that no package has or provides."""
    providers, unresolved = {}, 0
    for name, stanza in packages.items():
        for provided in NAME.findall(stanza.get("provides", "")):
            providers.setdefault(provided, []).append(name)
    pairs = {}
    for relation, fields in RELATIONS.items():
        pairs[relation] = []
        for package, stanza in packages.items():
            targets = set()
            for name in NAME.findall(",".join(stanza.get(field, "") for field in fields)):
                if name in packages:
                    targets.add(name)
                else:
                    unresolved += name not in providers
                    targets.update(providers.get(name, ()))
            pairs[relation] += ((package, target) for target in sorted(targets - {package}))
    return pairs, unresolved


def xxh3():
    """XXH3-64 of bytes."""
    try:
        function = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    except (OSError, AttributeError):
        sys.exit("debian_packages: libxxhash.so.0: not installed, or older than 0.8; sudo apt install libxxhash0")
    function.restype, function.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t)
    return lambda data: function(data, len(data))


def hashed(descriptions, digest):
    """Feature hashing (Weinberger et al., ICML 2009): a word adds 1 or -1 to one of 128 columns. Rows have length 1."""
    rows, places = array.array("f", bytes(4 * FEATURES * len(descriptions))), {}
    for row, description in enumerate(descriptions):
        sums = {}
        for word in WORD.findall(description.encode("latin-1").lower()):
            if word not in places:
                value = digest(word[:WORD_MAX])
                places[word] = value % FEATURES, 1 if value >> 63 else -1
            column, sign = places[word]
            sums[column] = sums.get(column, 0) + sign
        length = array.array("f", [math.sqrt(sum(value * value for value in sums.values())) or 1])[0]
        for column, value in sums.items():
            rows[row * FEATURES + column] = value / length
    return rows


def mixed(value):
    """splitmix64's finalizer."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def split(name, seed, digest):
    """A package's split by its name alone, so that it keeps it when others come and go: the first word of Philox4x32-10
    under a key of the seed and the name (core/numbers/rng.h)."""
    key = mixed((seed + 0x9E3779B97F4A7C15) % 2**64)
    key = mixed(key ^ (digest(name.encode("latin-1")) + 0xD1B54A32D192ED03) % 2**64)
    key = mixed(key ^ 6 << 56)
    c0 = c1 = c2 = c3 = 0
    k0, k1 = key % 2**32, key >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 % 2**32, p0 >> 32 ^ c3 ^ k1, p0 % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return "train" if c0 < 0.6 * 2**32 else "val" if c0 < 0.8 * 2**32 else "test"


def write_table(folder, name, header, rows):
    with open(os.path.join(folder, f"{name}.csv"), "w", encoding="latin-1", newline="") as file:
        table = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)


def write_npy(path, rows):
    """NumPy's format 1.0, without NumPy."""
    shape = len(rows) // FEATURES, FEATURES
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    if sys.byteorder == "big":
        rows.byteswap()
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        rows.tofile(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the folder of the tables; files in it are replaced")
    parser.add_argument("--from", dest="path", metavar="FILE",
                        help="the output of apt-cache dumpavail, gzip or not; - is standard input (default: run it)")
    parser.add_argument("--seed", type=int, default=1, help="of the split (default 1)")
    args = parser.parse_args()
    digest = xxh3()
    found = stanzas(dumped(args.path), args.path or "apt-cache dumpavail")
    packages = {stanza["package"]: stanza for stanza in reversed(found)}
    packages = dict(sorted(packages.items()))
    pairs, unresolved = related(packages)
    try:
        os.makedirs(args.folder, exist_ok=True)
        write_table(args.folder, "package", ("package", "section", "split"),
                    ((name, section(stanza), split(name, args.seed, digest)) for name, stanza in packages.items()))
        write_npy(os.path.join(args.folder, "package.feat.npy"),
                  hashed([stanza.get("description", "") for stanza in packages.values()], digest))
        for kind, of in ("source", source), ("maintainer", maintainer):
            pairs[BELONGS[kind]] = [(name, of(stanza)) for name, stanza in packages.items()]
            write_table(args.folder, kind, (kind,), sorted({(owner,) for _, owner in pairs[BELONGS[kind]]}))
        for relation, rows in pairs.items():
            write_table(args.folder, relation, ("src", "dst"), rows)
    except OSError as error:
        sys.exit(f"debian_packages: {error.filename}: {error.strerror}")
    try:
        print(f"{len(packages)} packages of {len(found)} stanzas; {unresolved} names in relations that no package has "
              f"or provides", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python tries again at its end, and says so
        sys.exit(f"debian_packages: standard output: {error.strerror}")


if __name__ == "__main__":
    main()
