"""Writes the C source of graphwire._c, the Python module over the public header. It uses cffi in API mode.

bindings.py CC INCLUDE_DIR OUT.c

    owned.h, which includes numbering.h and the public header -> the C preprocessor, with empty system headers -> cffi
      -> OUT.c

The header is the only description of the library. cffi knows the types of the system headers, so empty files replace
them. The preprocessor removes macros, so constants that are macros are listed here.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cffi

OWNED = Path(__file__).resolve().with_name("owned.h")
SYSTEM = ("stdbool.h", "stddef.h", "stdint.h")
INTEGERS = ("GW_DIMS_MAX", "GW_ALL_NEIGHBOURS", "GW_HOPS_MAX", "GW_NONE")


def declarations(compiler: str, include: str) -> str:
    """The declarations of the public header, of owned.h and of numbering.h, without directives and attributes, which
    cffi refuses."""
    with tempfile.TemporaryDirectory() as empty:
        for name in SYSTEM:
            Path(empty, name).touch()
        text = subprocess.run(
            [compiler, "-E", "-P", "-nostdinc", "-I", empty, "-I", include, "-I", str(OWNED.parents[1]), str(OWNED)],
            check=True, capture_output=True, text=True).stdout
    text = re.sub(r'__attribute__\(\(visibility\("default"\)\)\)', "", text)
    return text + "".join(f"\n#define {name} ..." for name in INTEGERS if f"define {name}" in headers(include)) + "\n"


def headers(include: str) -> str:
    return "".join(path.read_text() for path in sorted(Path(include, "graphwire").glob("*.h")))


def main() -> None:
    compiler, include, out = sys.argv[1:]
    ffi = cffi.FFI()
    ffi.cdef(declarations(compiler, include))
    ffi.set_source("graphwire._c", f'#include "python/{OWNED.name}"\n', py_limited_api=True)
    ffi.emit_c_code(out)


if __name__ == "__main__":
    main()
