"""Writes the C source of graphwire._c, the module over the public header, with cffi in API mode.

bindings.py CC INCLUDE_DIR OUT.c

The header is the only description there is: it goes through the preprocessor, with empty headers in the place of the
system's, whose types cffi knows, and what is left is what cffi takes. Constants that are macros are listed here.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cffi

# What Python adds. A signal's exception may come between a call and the assignment of its result, and between any two
# lines of its handler, but not within C: gw_wait that forgets a ticket which has ended in the same breath, and one call
# that ends all that have not.
TYPES = """
struct tickets {
	size_t count;
	struct gw_ticket *each[];
};
"""
CALLS = """
gw_status wait_for(struct gw_ticket **ticket, int64_t timeout_ms);
void cancel_tickets(struct tickets *tickets);
"""
HELPERS = """
static gw_status wait_for(struct gw_ticket **ticket, int64_t timeout_ms)
{
	gw_status status = gw_wait(*ticket, timeout_ms);
	if (status != GW_AGAIN)
		*ticket = NULL;
	return status;
}

static void cancel_tickets(struct tickets *tickets)
{
	for (size_t i = 0; i < tickets->count; i++) {
		gw_cancel(tickets->each[i]);
		tickets->each[i] = NULL;
	}
}
"""
SYSTEM = ("stdbool.h", "stddef.h", "stdint.h")
INTEGERS = ("GW_DIMS_MAX", "GW_ALL_NEIGHBOURS", "GW_NONE")


def declarations(compiler: str, include: str) -> str:
    """The public header as cffi reads it: without directives and attributes."""
    with tempfile.TemporaryDirectory() as empty:
        for name in SYSTEM:
            Path(empty, name).touch()
        text = subprocess.run(
            [compiler, "-E", "-P", "-nostdinc", "-I", empty, "-I", include, f"{include}/graphwire/graphwire.h"],
            check=True, capture_output=True, text=True).stdout
    text = re.sub(r'__attribute__\(\(visibility\("default"\)\)\)', "", text)
    return text + "".join(f"\n#define {name} ..." for name in INTEGERS if f"define {name}" in headers(include)) + "\n"


def headers(include: str) -> str:
    return "".join(path.read_text() for path in sorted(Path(include, "graphwire").glob("*.h")))


def main() -> None:
    compiler, include, out = sys.argv[1:]
    ffi = cffi.FFI()
    ffi.cdef(declarations(compiler, include) + TYPES + CALLS)
    ffi.set_source("graphwire._c", "#include <graphwire/graphwire.h>\n" + TYPES + HELPERS, py_limited_api=True)
    ffi.emit_c_code(out)


if __name__ == "__main__":
    main()
