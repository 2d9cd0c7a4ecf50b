#!/usr/bin/env python3
"""Breaks one line of C at a time, and looks whether a test notices. Prints the broken lines that no test notices.

    copy the checkout to build/mutants -> build the tests there twice -> run each program once, which gives the lines
    that it runs -> in an order that HEAD's hash gives: break a line, build, run the programs that run the line until
    one fails, restore the line

A program that fails, dies or exceeds ten times its usual time has noticed. A break that does not compile does not
count. A break that survives is a test to write, or a line of mutants.allowed with the reason why nothing changes, in
the form in which it is printed:

    sampler/pick.c: reason
    - the line
    + the broken line

Leaked memory (the step asan), texts of errors, hints to the processor and lines outside of functions are left out.

    mutants.py [--minutes N] [--only TEXT] [--programs REGEX] [FOLDER...]
                            N minutes (40) of breaks in these folders; --only: breaks whose "file:line" begins so;
                            --programs: these programs, whatever they run, which needs no counting
    mutants.py --list [FOLDER...]       the breaks, in their order
    mutants.py --check-allowed          whether each entry of mutants.allowed is a break of today's sources
    mutants.py --self-test              plants a project with breaks of each outcome
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ALLOWED = "test/slow/soak/mutants.allowed"
FOLDERS = ["sampler", "client", "tensors", "protocol", "core/graph"]
AT_ONCE = 2 * (os.cpu_count() or 1)  # most programs wait more than they compute
MEMORY_MAX = 12 << 30  # of a broken program's addresses
SECONDS_MIN = 20  # a program's limit, at least
USUAL_SECONDS = 6.0  # of a program that --programs names



def output(command: list[str | Path], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def head_of(root: Path) -> str:
    return output(["git", "rev-parse", "HEAD"], root).strip()


# --- Breaks. ---

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
         "+=": "-=", "-=": "+=", "|": "&", "&": "|", "<<": ">>", ">>": "<<"}
OPPOSITE = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
OPERATOR = re.compile(r"(?<= )(" + "|".join(sorted(map(re.escape, SWAPS), key=len, reverse=True)) + r")(?= |$)")
CONSTANT = re.compile(r"(?<![\w.])(?:\d+(?=[uUlL]*(?![\w.]))|true\b|false\b)")
ARRAY = re.compile(r"^\t+(?:static |const |struct )*\w+ \*?\w+\[[^]]*\][^=]*;$")
CONDITION = re.compile(r"^(\t+(?:\} else )?if \()(.*)(\)(?: \{)?)$")
STATEMENT = re.compile(r"^\t+(?:(?:\(void\))?\*?[A-Za-z_][\w.>\[\]-]*(?:\(.*\)| [-+|&^]?= .*|[+-]{2})|"
                       r"break|continue);$")
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
LEFT_OUT = re.compile(r"\b(gw_fail\w*|gw_context|gw_log\w*|__builtin_prefetch|assert|_Static_assert)\(")
FREES = re.compile(r"^\t+(?:\(void\))?\w*free\w*\(")


@dataclass(frozen=True)
class Break:
    path: str
    line: int  # from 1
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}\n    - {self.old.strip()}\n    + {self.new.strip()}"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.path, self.old.strip(), self.new.strip()


def blanked(text: str) -> str:
    """The text with spaces for comments, literals and the arguments of calls that are left out."""
    text = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for found in reversed(list(LEFT_OUT.finditer(text))):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[:found.end()] + re.sub(r"[^\n]", " ", text[found.end():end]) + text[end:]
    return text


def ways(code: str, before: str) -> Iterator[tuple[int, int, str]]:
    """The ways to break a line: its columns from, to, and what comes there. before: the line before it."""
    for found in OPERATOR.finditer(code):
        operator = found[0]
        picks = " ? " in code and " : " in code and operator in OPPOSITE  # a minimum or maximum: <= changes nothing
        yield *found.span(), (OPPOSITE if picks else SWAPS)[operator]
    for found in CONSTANT.finditer(code):
        step = -1 if ARRAY.match(code) and int(found[0]) else 1  # more room changes nothing
        yield *found.span(), {"true": "false", "false": "true"}.get(found[0]) or str(int(found[0]) + step)
    for found in re.finditer(r"!(?=[A-Za-z_(])", code):
        yield *found.span(), ""
    condition = CONDITION.match(code)
    if condition and condition[2].count("(") == condition[2].count(")"):
        yield *condition.span(2), f"!({condition[2]})"
    if STATEMENT.match(code) and code.count("(") == code.count(")") and not FREES.match(code) and (
            before.rstrip()[-1:] in set(";{}):") or before.rstrip().endswith(("else", "do"))):
        yield len(code) - len(code.lstrip()), len(code) - 1, ""


def breaks_of(path: str, text: str) -> list[Break]:
    found, inside, before = [], False, ""
    for number, (line, code) in enumerate(zip(text.split("\n"), blanked(text).split("\n")), 1):
        code = code.rstrip()
        if code in ("{", "}"):
            inside = code == "{"  # a function's body
        elif inside and code.startswith("\t"):
            for start, end, new in ways(code, before):
                middle = f"!({line[start:end]})" if new.startswith("!(") else new
                found.append(Break(path, number, line, line[:start] + middle + line[end:]))
        before = code or before
    return found


def all_breaks(root: Path, folders: list[str], salt: str) -> list[Break]:
    """The breaks of all files, in an order that the salt gives."""
    found = [one for folder in folders for path in sorted((root / folder).rglob("*.[ch]"))
             for one in breaks_of(str(path.relative_to(root)), path.read_text())]
    return sorted(found, key=lambda one: hashlib.sha256(f"{salt} {one}".encode()).digest())


def allowed_breaks(root: Path) -> dict[tuple[str, str, str], str]:
    """The entries of mutants.allowed, and their reasons."""
    path, found = root / ALLOWED, {}
    text = path.read_text() if path.exists() else ""
    for name, reason, old, new in re.findall(r"^(\S+): (.+)\n- (.*)\n\+ (.*)$", text, re.MULTILINE):
        found[name, old, new] = reason
    return found


# --- Programs. ---


def limits() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, resource.getrlimit(resource.RLIMIT_AS)[1]))


class Running:
    """A test program in a session of its own."""

    def __init__(self, program: Path, seconds: float, environment: dict[str, str] | None = None):
        self.name, self.began, self.seconds = program.name, time.monotonic(), seconds
        self.process = subprocess.Popen([program], cwd=program.parent, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                        preexec_fn=limits, env={**os.environ, **(environment or {})})

    def noticed(self) -> bool | None:
        """Whether it has failed or exceeded its time; None: it runs."""
        status = self.process.poll()
        if status is None and time.monotonic() - self.began < self.seconds:
            return None
        self.end()
        return status != 0

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def first_to_notice(programs: list[tuple[Path, float]]) -> str | None:
    """Runs programs with their limits, in order, several at a time, until one notices. Returns its name."""
    waiting, running = list(reversed(programs)), []
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                running.append(Running(*waiting.pop()))
            for one in list(running):
                noticed = one.noticed()
                if noticed:
                    return one.name
                if noticed is False:
                    running.remove(one)
            time.sleep(0.005)
        return None
    finally:
        for one in running:
            one.end()


# --- The copy. ---


class Copy:
    """The checkout's files in build/mutants/tree, with two builds: `plain`, and `lines`, which counts lines."""

    def __init__(self, root: Path):
        self.tree, self.kept = root / "build/mutants/tree", root / "build/mutants/lines.json"
        listed = output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], root)
        names = [name for name in listed.split("\0") if name and (root / name).is_file()]
        for name in names:
            new, old = (root / name).read_bytes(), self.tree / name
            if not old.exists() or old.read_bytes() != new:
                old.parent.mkdir(parents=True, exist_ok=True)
                old.write_bytes(new)
                shutil.copymode(root / name, old)
        for old in [at for at in self.tree.rglob("*.[ch]") if "build" not in at.relative_to(self.tree).parts]:
            if str(old.relative_to(self.tree)) not in set(names):
                old.unlink()
        self.digest = hashlib.sha256(b"".join(sorted((self.tree / name).read_bytes() for name in names
                                                     if name.endswith((".c", ".h", ".txt"))))).hexdigest()
        self.programs: dict[str, float] = {}  # and their seconds
        self.lines: dict[str, dict[int, list[str]]] = {}  # of a file: the programs that run them

    def build(self, which: str, targets: list[str]) -> bool:
        done = subprocess.run(["cmake", "--build", self.tree / "build" / which, "--target", *targets],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = done.stdout
        return done.returncode == 0

    def program(self, name: str, which: str = "plain") -> Path:
        return self.tree / "build" / which / "test" / name

    def _run_lines(self, name: str) -> tuple[str, float, bool, dict[str, dict[int, bool]]]:
        """A program's seconds, whether it passes, and the lines with code: whether it runs them."""
        found: dict[str, dict[int, bool]] = {}
        build = self.tree / "build/lines"
        with tempfile.TemporaryDirectory() as counts:
            one = Running(self.program(name, "lines"), 900, {"GCOV_PREFIX": counts,
                                                            "GCOV_PREFIX_STRIP": str(len(build.parts) - 1)})
            while one.noticed() is None:
                time.sleep(0.01)
            seconds, good = time.monotonic() - one.began, one.process.returncode == 0
            files = [path for path in Path(counts).rglob("*.gcda")
                     if any(f".dir/{folder}/" in str(path) for folder in FOLDERS)]
            for path in files:
                note = path.relative_to(counts).with_suffix(".gcno")
                (Path(counts) / note).symlink_to(build / note)
            said = output(["gcov", "--json-format", "--stdout", *files], build) if files else ""
        for line in said.splitlines():
            for file in json.loads(line)["files"]:
                path = os.path.relpath(os.path.join(build, file["file"]), self.tree)
                lines = found.setdefault(path, {})
                for row in file["lines"]:
                    lines[row["line_number"]] = lines.get(row["line_number"], False) or row["count"] > 0
        return name, seconds, good, found

    def configured(self, which: str) -> list[str]:
        """Configures a build. Returns the names of its test programs."""
        folder = self.tree / "build" / which
        if not (folder / "build.ninja").exists():
            flags = "--coverage -fprofile-update=atomic" if which == "lines" else ""
            output(["cmake", "--preset", "dev", "-B", folder, "-DGRAPHWIRE_WERROR=OFF", f"-DCMAKE_C_FLAGS={flags}",
                    "--no-warn-unused-cli"], self.tree)
        listed = output(["ctest", "--test-dir", folder, "-N"], self.tree)
        return re.findall(r"^ *Test *#\d+: (\S+)$", listed, re.MULTILINE)

    def take(self, programs: str) -> None:
        """Takes the programs whose names match, whatever they run."""
        self.programs = {name: USUAL_SECONDS for name in self.configured("plain") if re.search(programs, name)}
        self.build("plain", list(self.programs))

    def look(self) -> None:
        """Finds which programs run which lines. Keeps that for the next run with the same sources."""
        kept = json.loads(self.kept.read_text()) if self.kept.exists() else {}
        if kept.get("of") != self.digest:
            names = self.configured("lines")
            if not self.build("lines", names):
                sys.exit(f"the tests do not build:\n{self.said[-2000:]}")
            with ThreadPoolExecutor(AT_ONCE) as pool:
                rows = list(pool.map(self._run_lines, names))
            lines: dict[str, dict[int, list[str]]] = {}
            for name, _, _, found in rows:
                for path in found:
                    for line, runs in found[path].items():
                        lines.setdefault(path, {}).setdefault(line, []).extend([name] if runs else [])
            kept = {"of": self.digest, "programs": {row[0]: row[1] for row in rows},
                    "failed": [row[0] for row in rows if not row[2]], "lines": lines}
        self.programs = kept["programs"]
        self.lines = {path: {int(line): names for line, names in rows.items()} for path, rows in kept["lines"].items()}
        self.configured("plain")
        if not self.build("plain", list(self.programs)):
            sys.exit(f"the tests do not build:\n{self.said[-2000:]}")
        again, kept["failed"] = kept["failed"], []
        for name in again:  # perhaps the counting delayed it
            if first_to_notice([(self.program(name), self.limit(name))]):
                print(f"{name} fails without a break and is left out", flush=True)
                kept["failed"].append(name)
        self.kept.write_text(json.dumps(kept))
        for name in kept["failed"]:
            del self.programs[name]

    def limit(self, name: str) -> float:
        return max(10 * self.programs[name], SECONDS_MIN)

    def programs_of(self, one: Break, noticed: collections.Counter[tuple[str, str]]) -> list[str]:
        """The programs that run a line: the file's own test, then those that have noticed most in the file, then the
        shortest. A line without code of its own belongs to the line before it."""
        rows = self.lines.get(one.path, {})
        line = max((line for line in rows if line <= one.line), default=0)
        own = f"test_{Path(one.path).stem}"
        return sorted((name for name in rows.get(line, []) if name in self.programs),
                      key=lambda name: (name != own, -noticed[one.path, name], self.programs[name]))


# --- The run. ---


def judge(copy: Copy, one: Break, names: list[str]) -> str | None:
    """Breaks a line. Returns the program that notices; "": it does not compile; None: it survives."""
    path = copy.tree / one.path
    whole = path.read_text()
    lines = whole.split("\n")
    assert lines[one.line - 1] == one.old
    lines[one.line - 1] = one.new
    try:
        path.write_text("\n".join(lines))
        if not copy.build("plain", names):
            return ""
        programs = [(copy.program(name), copy.limit(name)) for name in names]
        return first_to_notice(programs[:1]) or first_to_notice(programs[1:])  # the first notices most
    finally:
        path.write_text(whole)


def run(root: Path, folders: list[str], minutes: float, only: str, programs: str) -> int:
    salt, copy = head_of(root), Copy(root)
    copy.take(programs) if programs else copy.look()
    found, known = all_breaks(copy.tree, folders, salt), allowed_breaks(copy.tree)
    counts: collections.Counter[str] = collections.Counter()
    noticed: collections.Counter[tuple[str, str]] = collections.Counter()
    end = time.monotonic() + 60 * minutes
    for one in found:
        if time.monotonic() > end:
            break
        if not f"{one.path}:{one.line}".startswith(only):
            continue
        if one.key in known:
            counts["allowed"] += 1
            continue
        names = list(copy.programs) if programs else copy.programs_of(one, noticed)
        by = judge(copy, one, names) if names else None
        outcome = "survives" if by is None else "noticed" if by else "does not compile"
        counts[outcome] += 1
        if by:
            noticed[one.path, by] += 1
        if outcome == "survives":
            print(f"survives: {one}\n    {len(names)} programs run it", flush=True)
    tried = counts["noticed"] + counts["survives"]
    print(f"note: mutants: {tried} of {len(found)} possible breaks of {' '.join(folders)} at {salt[:12]}: "
          f"{counts['noticed']} noticed, {counts['survives']} survive; {counts['does not compile']} do not compile, "
          f"{counts['allowed']} are allowed")
    return 0


def check_allowed(root: Path) -> int:
    real = {one.key for one in all_breaks(root, FOLDERS, "")}
    stale = [key for key in allowed_breaks(root) if key not in real]
    for path, old, new in stale:
        print(f"not ok - {ALLOWED}: no break of {path} any more:\n- {old}\n+ {new}")
    if not stale:
        print(f"ok - every entry of {ALLOWED} is a break")
    return 1 if stale else 0


# --- The self-test. ---

PLANTED = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.22)
project(planted LANGUAGES C)
enable_testing()
foreach(name clip other)
  add_executable(test_${name} test/test_${name}.c sampler/clip.c)
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY test)
  add_test(NAME test_${name} COMMAND test_${name})
endforeach()
""",
    "CMakePresets.json": """{"version": 3, "configurePresets": [
{"name": "dev", "generator": "Ninja", "binaryDir": "build"}]}
""",
    ".gitignore": "build\n",
    "sampler/clip.c": """int clip(int value, int most);
int count(int n);
int never(int n);

/* a < b in a comment */
int clip(int value, int most)
{
	const char *text = "0 < 1";
	if (value > most)
		value = most;
	return text[1] == ' ' ? value : 0;
}

int count(int n)
{
	int all = 0;
	while (n != 0)
		n -= 2, all++;
	return all;
}

int never(int n)
{
	return n + 1;
}
""",
    "test/test_clip.c": """int clip(int value, int most);
int main(void)
{
	return clip(3, 5) != 3 || clip(7, 5) != 5;
}
""",
    "test/test_other.c": """int count(int n);
int main(void)
{
	return count(8) != 4;
}
""",
    ALLOWED: """sampler/clip.c: another character of the text
- return text[1] == ' ' ? value : 0;
+ return text[2] == ' ' ? value : 0;
""",
}


def self_test() -> int:
    """A break of each outcome, with the files of the project as they were."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in PLANTED.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false"]
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "planted"]):
            output([*git, *command], root)
        said = output([sys.executable, __file__, "--root", ".", "--minutes", "3", "--seconds-min", "2", "sampler"],
                      root)
        kept = all((root / name).read_text() == text for name, text in PLANTED.items())
        clean = not output(["git", "status", "--porcelain"], root)
    found = {one.new.strip() for one in breaks_of("sampler/clip.c", PLANTED["sampler/clip.c"])}
    checks = {
        "breaks are those of the code, not of comments and texts": found == {
            "if (value >= most)", "if (!(value > most))", ";", "return text[2] == ' ' ? value : 0;", "int all = 1;",
            "return text[1] != ' ' ? value : 0;", "return text[1] == ' ' ? value : 1;", "while (n == 0)",
            "while (n != 1)", "n += 2, all++;", "n -= 3, all++;", "return n - 1;", "return n + 2;"},
        "a break that changes nothing survives": "+ if (value >= most)" in said,
        "so does one in a line that no program runs": "+ return n - 1;\n    0 programs run it" in said,
        "one that a test notices does not": "+ if (!(value > most))" not in said,
        "nor does one that runs for ever": "+ while (n != 1)" not in said,
        "nor does one that is allowed": "+ return text[2]" not in said and "1 are allowed" in said,
        "the checkout is as it was": kept and clean,
    }
    for what, good in checks.items():
        print(f"{'ok' if good else 'not ok'} - mutants: {what}")
    if not all(checks.values()):
        print(sorted(found), said, sep="\n")
    return 0 if all(checks.values()) else 1


def main() -> int:
    global SECONDS_MIN
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[3])
    parser.add_argument("--minutes", type=float, default=40)
    parser.add_argument("--seconds-min", type=float, default=SECONDS_MIN)
    parser.add_argument("--only", default="")
    parser.add_argument("--programs", default="")
    parser.add_argument("folders", nargs="*")
    for name in ("help", "list", "check-allowed", "self-test"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    given.root = given.root.resolve()
    SECONDS_MIN, folders = given.seconds_min, given.folders or FOLDERS
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the line is restored
    if given.help:
        print(__doc__)
        return 0
    if given.self_test:
        return self_test()
    if given.check_allowed:
        return check_allowed(given.root)
    if given.list:
        print(*all_breaks(given.root, folders, head_of(given.root)), sep="\n")
        return 0
    return run(given.root, folders, given.minutes, given.only, given.programs)


if __name__ == "__main__":
    sys.exit(main())
