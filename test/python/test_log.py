"""The library's log in Python: which lines reach the logger and when; handlers that raise or call the library; forks
while threads log; the end of the interpreter."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time

import graphwire
import pytest
from graphwire._base import log, native

LINES_OF_OPEN = 4  # at INFO, a standalone client logs two lines for each of the two parts


class Kept(logging.Handler):
    def __init__(self, act=None):
        super().__init__()
        self.records, self.act = [], act

    def emit(self, record):
        self.records.append(record)
        if self.act is not None:
            self.act(record)

    @property
    def lines(self):
        return [record.getMessage() for record in self.records]


@pytest.fixture
def logger():
    """The logger, which is set back after the test."""
    logger = logging.getLogger("graphwire")
    before = logger.level, logger.propagate, list(logger.handlers)
    yield logger
    logger.level, logger.propagate, logger.handlers = before
    logger.setLevel(before[0])  # clears the logger's cache
    log.follow_level()


def kept(logger, level, act=None):
    handler = Kept(act)
    logger.addHandler(handler)
    logger.setLevel(level)
    return handler


def open_raw(parts):
    """Opens and closes a client without deliver(): its lines stay in the queue."""
    held = native.owned("struct held_client *", native.lib.client_end)
    path = native.ffi.new("char[]", os.fsencode(parts))
    options = native.ffi.new("struct gw_client_options *")
    options.part_config = path
    native.check(native.lib.client_open(options, native.ffi.NULL, held))


def child(code, *words, **options):
    return subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, timeout=60,
                          **options)


def test_a_warning_has_logger_level_and_time_and_comes_once(tmp_path, logger, capfd):
    handler = kept(logger, logging.WARNING)
    weight = graphwire.partition_graph(([0, 1, 2], [1, 2, 0]), "g", 1, tmp_path, method="random",
                                       edge_features={"w": [1.0, 2.0, 3.0]})
    before = time.time()
    with graphwire.open(weight) as graph:
        for _ in range(2):
            graphwire.sample(graph, [0], [1], weight="w")
    assert len(handler.records) == 1
    record = handler.records[0]
    assert (record.name, record.levelno) == ("graphwire", logging.WARNING)
    assert "--weight w" in record.getMessage()
    assert before <= record.created <= time.time() and record.msecs == pytest.approx(record.created % 1 * 1000)
    assert "--weight w" not in capfd.readouterr().err.replace(record.getMessage() + "\n", "", 1)  # pytest's own handler


def test_the_logger_decides_the_level(parts, logger):
    handler = kept(logger, logging.WARNING)
    graphwire.open(parts).close()
    assert not handler.records
    logger.setLevel(logging.INFO)
    graphwire.open(parts).close()
    assert len(handler.records) == LINES_OF_OPEN
    assert {record.levelname for record in handler.records} == {"INFO"}


@pytest.mark.parametrize("level, lines", [("error", 0), ("debug", LINES_OF_OPEN)])
def test_the_environment_decides_the_librarys_level(parts, level, lines):
    code = ("import logging, sys; logging.basicConfig(level='INFO', format='%(name)s %(message)s')\n"
            "import graphwire; graphwire.open(sys.argv[1]).close()")
    done = child(code, parts, env={**os.environ, "GRAPHWIRE_LOG": level})
    assert done.returncode == 0 and len(done.stderr.splitlines()) == lines, done.stderr
    assert all(line.startswith("graphwire ") for line in done.stderr.splitlines())


def test_a_lost_server_is_logged_while_a_call_waits_for_it(own_servers, logger):
    """The handler itself starts the server again, which the call waits for."""
    def act(record):
        if "waiting for it" in record.getMessage() and own_servers.processes[1].poll() is not None:
            own_servers.start(1)  # once, though each engine of the client may log the loss

    handler = kept(logger, logging.WARNING, act)
    with graphwire.open(servers=own_servers.addresses, transport="tcp") as graph:
        ids = [0, graph.num_nodes() - 1]
        rows = graph.gather("feat", ids)
        own_servers.end(1)
        assert (graph.gather("feat", ids) == rows).all()
    assert own_servers.addresses[1] in handler.lines[0] and "waiting for it" in handler.lines[0]


@pytest.mark.parametrize("raises", [True, False])
def test_a_handler_that_raises_loses_no_line_and_no_result(parts, logger, monkeypatch, capsys, raises):
    def act(record):
        raise LookupError("a handler's own fault")

    monkeypatch.setattr(logging, "raiseExceptions", raises)
    logger.propagate = False
    handler = kept(logger, logging.INFO, act)
    with graphwire.open(parts) as graph:
        assert graph.gather("feat", [1]).shape == (1, 16)
    assert len(handler.records) == LINES_OF_OPEN
    assert capsys.readouterr().err.count("LookupError: a handler's own fault") == (LINES_OF_OPEN if raises else 0)


def test_a_signal_in_a_handler_is_the_callers(parts, logger):
    """KeyboardInterrupt leaves the call, as from any other line; later lines come with the next call."""
    def act(record):
        if len(handler.records) == 1:
            raise KeyboardInterrupt

    logger.propagate = False
    handler = kept(logger, logging.INFO, act)
    with pytest.raises(KeyboardInterrupt):
        graphwire.open(parts)
    graphwire.open(parts).close()
    assert len(handler.records) == 2 * LINES_OF_OPEN


def test_a_handler_that_calls_the_library(parts, rmat, logger):
    rows = []
    handler = kept(logger, logging.INFO, lambda record: rows.append(rmat.gather("feat", [3])))
    graphwire.open(parts).close()
    assert len(handler.records) == len(rows) == LINES_OF_OPEN
    inside, depths = [], []

    def act(record):
        inside.append(record)
        depths.append(len(inside))
        if len(depths) < 20:
            graphwire.open(parts).close()  # logs while a line is delivered
        inside.pop()

    handler.act = act
    graphwire.open(parts).close()
    assert depths == [1] * 20 * LINES_OF_OPEN  # one after the other, however many lines come meanwhile


def test_bytes_that_are_not_utf8(logger):
    handler = kept(logger, logging.INFO)
    for line, text in ((b"a \xff\xe2\x82 b", r"a \xff\xe2\x82 b"), ("Zürich".encode(), "Zürich"),
                       (b"100 %s", "100 %s")):
        size = native.ffi.sizeof("struct log_entry") + len(line) + 1
        memory = native.ffi.new("char[]", size + 8)
        entry = native.ffi.cast("struct log_entry *", memory)
        entry.level, entry.time = native.lib.GW_LOG_INFO, time.time()
        native.ffi.memmove(entry.line, line, len(line))
        log._handle(entry)
        assert handler.lines[-1] == text


FORKS = 40


def test_forks_while_threads_log(parts, logger):
    """The child has no line of its parent, and its own lines reach its logger."""
    handler = kept(logger, logging.INFO)
    logger.propagate = False
    ended = threading.Event()

    def log_on():
        while not ended.is_set():
            open_raw(parts)
            log.deliver()

    log.follow_level()
    threads = [threading.Thread(target=log_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(FORKS):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    import signal
                    signal.alarm(30)
                    if not native.lib.log_waits():
                        handler.records.clear()
                        graphwire.open(parts).close()
                        status = 0 if len(handler.records) == LINES_OF_OPEN else 2
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_a_handler_that_forks(parts, logger):
    pids = []

    def act(record):
        pids.append(os.fork())
        if pids[-1] == 0:
            os._exit(0)

    handler = kept(logger, logging.INFO, act)
    graphwire.open(parts).close()
    assert len(pids) == len(handler.records) == LINES_OF_OPEN
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * LINES_OF_OPEN


END = """
import logging, sys, threading, time
logging.basicConfig(level="INFO", format="%(message)s")
import graphwire
from graphwire._base import log
from graphwire._base import native

class Raises(logging.Handler):
    def emit(self, record):
        raise RuntimeError("at the end")

held = []
def open_raw():
    held.append(native.owned("struct held_client *", native.lib.client_end))
    options = native.ffi.new("struct gw_client_options *")
    path = native.ffi.new("char[]", sys.argv[1].encode())
    options.part_config = path
    native.check(native.lib.client_open(options, native.ffi.NULL, held[-1]))

log.follow_level()
begun = threading.Event()
def open_on():
    while True:
        open_raw()
        begun.set()
        if len(held) > 4:
            held.clear()
if sys.argv[2] == "threads":
    for _ in range(2):
        threading.Thread(target=open_on, daemon=True).start()
    begun.wait()
elif sys.argv[2] == "raises":
    logging.getLogger("graphwire").addHandler(Raises())
elif sys.argv[2] == "fills":
    for _ in range(int(sys.argv[3])):
        open_raw()
        held.clear()
    log.deliver()
open_raw()
"""


def test_lines_before_the_end_are_delivered(parts):
    done = child(END, parts, "plain")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, LINES_OF_OPEN), done.stderr


def test_lines_beyond_the_queue_are_counted(parts):
    most = 1000  # LOG_QUEUE_MAX
    done = child(END, parts, "fills", most // LINES_OF_OPEN + 5)
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (0, most + 1 + LINES_OF_OPEN), done.stderr
    assert lines[most] == f"{5 * LINES_OF_OPEN} lines of the library's log were dropped"


def test_a_handler_that_raises_at_the_end(parts):
    done = child(END, parts, "raises")
    assert done.returncode == 0 and done.stderr.count("RuntimeError: at the end") == LINES_OF_OPEN, done.stderr


def test_threads_that_log_while_the_interpreter_ends(parts):
    for _ in range(5):
        done = child(END, parts, "threads")
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


def test_workers_of_a_dataloader_have_their_own_lines(parts):
    code = """
import logging, sys, torch
logging.basicConfig(level="INFO", format="%(process)d %(message)s")
import graphwire
graph = graphwire.open(sys.argv[1])
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return graph.gather("feat", [i])[0]
if __name__ == "__main__":
    print(sum(len(rows) for rows in torch.utils.data.DataLoader(Rows(), num_workers=2, multiprocessing_context="fork")))
"""
    done = child(code, parts)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr
    by_process = [line.split()[0] for line in done.stderr.splitlines() if " load: " in line]
    assert len(by_process) == 6 and sorted(map(by_process.count, set(by_process))) == [2, 2, 2], done.stderr
