"""Product text reads easily: no line has one of the constructions below, which make a reader stop.

    words.py              prints each match and its remedy; status 1 if one is not in words.allowed, or a line there
                          matches nothing any more
    words.py --self-test  plants one match for each pattern, and text that is right, and checks what is found
    words.py --count      the matches of each file

Product text is comments and strings of C and Python, comments of scripts, and all of README, docs and man pages. What
words.allowed lists, as "file: text of the line", has been looked at.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ALLOWED = Path(__file__).with_name("words.allowed")
MOST_ALLOWED = 100
# Pattern, what to write, a line that has it, and one that has not.
PATTERNS = [
    (r"\bthat there (is|are) not\b|\bthere (is|are) none\b|\b(is|are) none\b|\bthere (is|are) not\b",
     '"does not exist", "no … exists"', "a part that there is not", "a part that does not exist"),
    (r"\b(some|any|no)body\b|\bwhoever\b", "name the client, the server, the caller, the process", "nobody waits",
     "no thread waits"),
    (r"^\W*Of (a|an|the|what|those|each|these|all|its|this)\b|, of which\b|(?<=[.;:] )Of (a|an|the|what|those|each)\b",
     'begin with the subject; "whose", or a new sentence', "Of the rows, some are torn", "Some of the rows are torn"),
    (r"\bbut for\b", '"except"', "all but for one", "all except one"),
    (r"(?<=[.;:] )Who\b [a-z]+s\b|^\W*Who\b [a-z]+s\b", '"A caller that …"', "Who waits sleeps",
     "A caller that waits sleeps"),
    (r"\btell(s|ing)?\b|\btold\b", "report, log, notify, send, return", "the server is told", "the server is notified"),
    (r"\b(stubborn(ly)?|strangers?|aside|beside|on the way out|its own word|lets? go of)\b",
     "what happens, in the field's words", "stored beside the part", "stored in the part's folder"),
    (r"\bas long as that\b|\bfor want of\b", "repeat the noun; \"without\"", "as long as that is open",
     "while the file is open"),
    (r"\bwhat there is\b|\bthat is there\b|\bthat are there\b", "what exists, by its name", "a file that is there",
     "an existing file"),
]
COMPILED = [(re.compile(pattern), remedy) for pattern, remedy, _, _ in PATTERNS]
FOLDERS = ("core/", "transport/", "sampler/", "protocol/", "tensors/", "client/", "server/", "tools/", "bench/", "cmd/",
           "include/", "python/", "deploy/", "docs/", "examples/", "cmake/")
C_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)


def is_product(name: str) -> bool:
    return name.startswith(FOLDERS) or ("/" not in name and name.endswith(".md") and name != "CHANGELOG.md")


def c_lines(text: str) -> Iterator[tuple[int, str]]:
    for match in C_TEXT.finditer(text):
        if match.group().startswith("'"):
            continue
        first = text.count("\n", 0, match.start()) + 1
        for number, line in enumerate(match.group().split("\n")):
            yield first + number, line.strip("/* \t\"")


def python_lines(text: str) -> Iterator[tuple[int, str]]:
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            for number, line in enumerate(token.string.split("\n")):
                yield token.start[0] + number, line.strip("# \t\"'")


def script_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        found = re.search(r"(?:^|\s)#(.*)", line)
        if found:
            yield number, found.group(1).strip()


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        yield number, line.strip()


def lines_of(name: str, text: str) -> Iterator[tuple[int, str]]:
    if name.endswith((".c", ".h")):
        return c_lines(text)
    if name.endswith(".py"):
        return python_lines(text)
    if name.endswith((".sh", ".cmake", "CMakeLists.txt", ".toml", ".awk")):
        return script_lines(text)
    return prose_lines(text)


def matches(name: str, text: str) -> Iterator[tuple[int, str, str, str]]:
    """Line, its text, the words found, and what to write instead."""
    for number, line in lines_of(name, text):
        for pattern, remedy in COMPILED:
            found = pattern.search(line)
            if found:
                yield number, line, found.group().strip(), remedy


def self_test() -> int:
    failed = 0
    for _, _, wrong, right in PATTERNS:
        for text, wanted in ((wrong, True), (right, False)):
            for name, form in (("a.c", f"int a; /* {text} */"), ("a.py", f"a = 1  # {text}"), ("a.md", text)):
                ok = any(matches(name, form)) == wanted
                failed += not ok
                print(f"{'ok' if ok else 'not ok'} - {name}: {text!r} is {'found' if wanted else 'right'}")
    for name, text in (("a.c", "int told; char tell;"), ("a.py", "told = tell"), ("a.sh", "told=1")):
        ok = not any(matches(name, text))
        failed += not ok
        print(f"{'ok' if ok else 'not ok'} - {name}: code is not text")
    return failed > 0


def main(words: list[str]) -> int:
    if words == ["--self-test"]:
        return self_test()
    top = Path(__file__).parents[2]
    names = subprocess.run(["git", "ls-files"], cwd=top, capture_output=True, text=True, check=True).stdout.split("\n")
    allowed = Counter(ALLOWED.read_text().splitlines()) if ALLOWED.exists() else Counter()
    count, bad, per_file = 0, 0, Counter()
    for name in filter(is_product, names):
        try:
            text = (top / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        for number, line, found, remedy in matches(name, text):
            entry = f"{name}: {line}"
            if allowed[entry] > 0:
                allowed[entry] -= 1
                count += 1
                continue
            bad += 1
            per_file[name] += 1
            if "--count" not in words:
                print(f'{name}:{number}: "{found}": write {remedy}: {line}')
    if "--count" in words:
        for name, number in per_file.most_common():
            print(f"{number:5} {name}")
    stale = sum(allowed.values())
    for entry in +allowed:
        print(f"words.allowed: matches nothing any more: {entry}")
    if bad or stale or count >= MOST_ALLOWED:
        print(f"not ok - {bad} lines of product text make a reader stop; {count} are allowed, of {MOST_ALLOWED - 1}")
        return 1
    print(f"ok - product text has none of {len(PATTERNS)} constructions, except {count} lines that are allowed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
