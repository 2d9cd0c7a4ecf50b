#!/usr/bin/env python3
"""Files that comments and pages name exist.

    paths.py              prints each name of a file that does not exist; status 1 if one was found
    paths.py --self-test  plants names that are wrong and names that are right, and checks what is found

Comments of C, Python, shell and CMake, docstrings, and pages (*.md) are read. A name is

    folder/name.c         a path. If its first folder is one of the tree's, a file's path must be it, or end in it;
    folder/name           a path without an ending: from a folder at the top of the tree to a file or folder;
    NAME.c                a file of the tree, or a file that the code itself names: a system's header that it includes,
                          a script that a test writes or fetches.

NAME.c and test_NAME.c stand for any name; _private.h stands for all files that end so. The history in CHANGELOG.md and
UPGRADING.md is not read. Users' pages also name users' scripts, so NAME.py and NAME.sh without a folder are read in
DEVELOPERS' pages only.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

HISTORY = ("CHANGELOG.md", "UPGRADING.md")
DEVELOPERS = ("CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/DECISIONS.md")
ENDINGS = r"\.(?:c|h|py|sh|cmake|md)\b(?!\.\w|[*/-])"
BEFORE = r"(?<![\w./<${}*~-])"
NAME = re.compile(BEFORE + r"[\w./-]*\w" + ENDINGS)
C_PARTS = re.compile(r'(?P<comment>/\*.*?\*/|//[^\n]*)|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
SCRIPT_COMMENT = re.compile(r"(?:^|\s)#.*")
PLACEHOLDER = re.compile(r"(?:^|[/_-])[A-Z]{3,}(?:[./-]|$)")


def split_c(text: str) -> tuple[list[tuple[int, str]], str]:
    """Lines of comments with their numbers, and the code."""
    comments = [(text.count("\n", 0, m.start()) + 1, m.group()) for m in C_PARTS.finditer(text) if m.group("comment")]
    return comments, C_PARTS.sub(lambda m: "" if m.group("comment") else m.group(), text)


def split_python(text: str) -> tuple[list[tuple[int, str]], str]:
    comments, code, before = [], [], tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        statement = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and statement):
            comments.append((token.start[0], token.string))
        else:
            code.append(token.string)
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    return comments, " ".join(code)


def split_script(text: str) -> tuple[list[tuple[int, str]], str]:
    lines = text.split("\n")
    comments = [(number, m.group()) for number, line in enumerate(lines, 1) for m in SCRIPT_COMMENT.finditer(line)]
    return comments, "\n".join(SCRIPT_COMMENT.sub("", line) for line in lines)


def split(name: str, text: str) -> tuple[list[tuple[int, str]], str]:
    if name.endswith((".c", ".h")):
        return split_c(text)
    if name.endswith(".py"):
        return split_python(text)
    if name.endswith(".md"):
        return [(1, text)], ""
    if name.endswith((".sh", ".cmake", "CMakeLists.txt")) or text.startswith("#!"):
        return split_script(text)
    return [], ""


class Tree:
    def __init__(self, files: dict[str, str]) -> None:
        """files: the text of each file by its path; "" if it is no text."""
        self.parts = {name: split(name, text) for name, text in files.items() if name not in HISTORY}
        self.ends, self.folders, self.top = set(), set(), set()
        for path in map(PurePosixPath, files):
            self.ends |= {"/".join(path.parts[i:]) for i in range(len(path.parts))}
            self.folders |= {str(parent) for parent in path.parents}
            self.top |= set(path.parts[:-1][:1])
        self.steps = {step for folder in self.folders for step in folder.split("/")}
        code = "\n".join(code for _, code in self.parts.values())
        self.in_code = {name.split("/")[-1] for name in re.findall(r"[\w./-]*\w" + ENDINGS, code)}
        self.bare = re.compile(BEFORE + f"(?:{'|'.join(self.top)})" + r"(?:/[\w-]+)+(?![\w./*{$<-])")

    def lacks(self, page: str, name: str) -> bool:
        """Whether the page names a file that does not exist."""
        name = re.sub(r"^(?:\.\.?/)+", "", name)
        first, *rest = name.split("/")
        if PLACEHOLDER.search(name) and not name.endswith(".md"):
            return False
        if rest:
            return first in self.steps and name not in self.ends
        scripts = page.endswith(".md") and page not in DEVELOPERS and name.endswith((".py", ".sh"))
        ending = name.startswith("_") and any(end.endswith(name) for end in self.ends)
        return not (scripts or ending or name in self.ends or name in self.in_code)

    def absent(self) -> Iterator[tuple[str, int, str]]:
        """File, line and name of each file that is named and does not exist."""
        for page, (comments, _) in self.parts.items():
            for first, text in comments:
                for number, line in enumerate(text.split("\n"), first):
                    for name in NAME.findall(line):
                        if self.lacks(page, name):
                            yield page, number, name
                    for name in self.bare.findall(line):
                        both = all(step in self.top for step in name.split("/"))  # "client/server" is prose
                        exists = name in self.ends or name in self.folders
                        if not (both or exists or PLACEHOLDER.search(name)):
                            yield page, number, name


def self_test() -> int:
    files = {"core/files/load.c": "", "core/files/load_private.h": "", "client/open.c": "#include <zlib.h>",
             "server/serve.c": "", "test/rdma/run": "#!/bin/sh", "python/graphwire/_rows.py": "",
             "test/unit/test_load.py": 'write("train.py")', "docs/FORMAT.md": ""}
    planted = [
        ("a.c", "/* see core/files/load.c, files/load.c and load.c */", True),
        ("a.c", "/* see core/files/lost.c */", False),
        ("a.c", "/* see\n * files/lost.c */", False),
        ("a.c", "/* see lost.h */", False),
        ("a.c", "/* zlib.h, <lost.h>, infiniband/verbs.h */", True),
        ("a.c", 'int a; const char *b = "core/files/lost.c";', True),
        ("a.h", "// docs/FORMAT.md, docs/LOST.md", False),
        ("a.py", '"""train.py of a user, _rows.py of ours."""', True),
        ("a.py", "a = 1  # _lost.py", False),
        ("a.py", 'def f():\n    """Like lost.sh."""', False),
        ("a.py", 'a = "core/files/lost.c"', True),
        ("a.sh", "true # test/rdma/run, test/rdma", True),
        ("a.sh", "true # test/rdma/lost", False),
        ("CMakeLists.txt", "# core/files/lost.c", False),
        ("run", "#!/bin/bash\n# core/lost.c", False),
        ("docs/A.md", "Save this as raw.py; [FORMAT](../docs/FORMAT.md); client/server; a/lost.c; core/NAME.c", True),
        ("docs/A.md", "[a](../core/lost.c)", False),
        ("docs/A.md", "`lost.c`", False),
        ("docs/A.md", "names end in `_private.h`", True),
        ("CONTRIBUTING.md", "`_lost.py`", False),
        ("CHANGELOG.md", "core/files/lost.c", True),
    ]
    failed = 0
    for name, text, right in planted:
        found = [f"{line}: {absent}" for _, line, absent in Tree({**files, name: text}).absent()]
        failed += bool(found) == right
        print(f"{'not ok' if bool(found) == right else 'ok'} - {name} with {text!r}: {', '.join(found) or 'nothing'}")
    return failed > 0


def main(words: list[str]) -> int:
    if words == ["--self-test"]:
        return self_test()
    top = Path(__file__).resolve().parents[2]
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=top,
                            capture_output=True, text=True, check=True).stdout.splitlines()
    files = {}
    for name in listed:
        if (top / name).is_file():
            data = (top / name).read_bytes()
            files[name] = "" if b"\0" in data[:8192] else data.decode(errors="replace")
    found = sorted(set(Tree(files).absent()))
    for page, line, name in found:
        print(f"{page}:{line}: {name} does not exist")
    print(f"{'not ok' if found else 'ok'} - the files that comments and pages name exist")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
