"""docs/TRANSPORTS.md names a test for each guarantee of Graphwire. Each exists, and its program runs it."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs" / "TRANSPORTS.md").read_text()
# `test_NAME.c` `name`, `name`
NAMED = re.compile(r"`(test_\w+\.c)`((?:,? `[a-z]\w+`(?!\.))+)")


def guarantees():
    """The rows of the table: what happens, and what Graphwire does."""
    table = PAGE.split("## Guarantees", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert rows[0] == ["when", "Graphwire", "UCX, libfabric"]
    return rows[2:]


def missing(program, name):
    """What the program lacks of a test; None: nothing."""
    (source,) = list(TOP.glob(f"test/*/{program}")) or [None]
    if source is None:
        return f"{program} does not exist"
    text = source.read_text()
    if not re.search(rf"^static void {name}\(void \*\*state\)$", text, re.MULTILINE):
        return f"{program} has no test {name}"
    if not re.search(rf"(?:[A-Z]+_TEST|cmocka_unit_test(?:_\w+)?)\(\s*{name}\b", text):
        return f"{program} does not run {name}"
    return None


@pytest.mark.parametrize("row", guarantees(), ids=lambda row: row[0][:40])
def test_each_guarantee_has_its_test(row):
    named = [(program, name) for program, names in NAMED.findall(row[1]) for name in re.findall(r"\w+", names)]
    assert named, f"no test of: {row[0]}"
    assert not [why for program, name in named if (why := missing(program, name))]


def test_a_missing_test_is_found():
    assert missing("test_transport_none.c", "x") == "test_transport_none.c does not exist"
    assert missing("test_transport_life.c", "no_such") == "test_transport_life.c has no test no_such"
    assert missing("test_transport_life.c", "hello") is None


def test_the_page_is_short():
    assert len(PAGE.splitlines()) <= 100
