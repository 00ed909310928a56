"""The thread of a ledger ends with it, with the process, and with nothing else; a forked process gets a clear error."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from chatledger import ChatMessage, StorageError, blocking
from tests.conftest import Database


@pytest.fixture
def running() -> Callable[[], set[str]]:
    """The names of the threads of chatledger that began in this test; another test may have left one behind."""
    before = set(threading.enumerate())
    return lambda: {
        thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("chatledger")
    }


def test_closing_ends_the_threads(database: Database, running: Callable[[], set[str]]) -> None:
    ledger = blocking.open(database.url)
    assert "chatledger-blocking" in running()
    ledger.close()
    assert running() == set()
    ledger.close()
    with pytest.raises(StorageError, match="closed"):
        ledger.threads.list()
    assert ledger.metrics().running == 0


def test_a_ledger_that_cannot_be_opened_leaves_no_thread(tmp_path: Path, running: Callable[[], set[str]]) -> None:
    (tmp_path / "text").write_text("no database" * 200)
    with pytest.raises(StorageError):
        blocking.open(tmp_path / "text")
    assert running() == set()


def test_an_iteration_that_nobody_ends_holds_nothing_up(sqlite_database: Database) -> None:
    with blocking.open(sqlite_database.url) as ledger:
        ledger.threads.create("t")
        ledger.messages.append("t", [ChatMessage(role="user", content="a"), ChatMessage(role="user", content="b")])
        next(ledger.messages.iterate("t"))
        gc.collect()
        left = ledger.messages.iterate("t")
        assert next(left).content == "a"
    left.close()


SCRIPT = """
import sys
from chatledger import ChatMessage, blocking
ledger = blocking.open(sys.argv[1])
ledger.threads.create("t")
ledger.messages.append("t", [ChatMessage(role="user", content="kept")])
"""


def test_the_end_of_the_process_closes_it(database: Database) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", SCRIPT, database.url],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert not Path(database.url + "-wal").exists()  # of a file that was closed
    with blocking.open(database.url) as ledger:
        assert len(ledger.messages.history("t").messages) == 1


FORK = """
import os, sys
from chatledger import StorageError, blocking
ledger = blocking.open(sys.argv[1])
ledger.threads.create("t")
child = os.fork()
if child == 0:
    try:
        ledger.threads.get("t")
    except StorageError as error:
        assert "forked" in str(error), error
        with blocking.open(sys.argv[1]) as own:
            own.threads.get("t")
        ledger.close()
        sys.exit(7)
    sys.exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print(ledger.threads.get("t").thread_id)
ledger.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_after_a_fork_it_refuses(database: Database) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, database.url],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "t\n", "")


INTERRUPTED = """
import os, signal, sys, threading
from chatledger import blocking
ledger = blocking.open(sys.argv[1])
ledger.threads.create("t")
changes = ledger.messages.follow("t")
threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    next(changes)
except KeyboardInterrupt:
    assert list(changes) == []
    with ledger.begin() as tx:
        tx.threads.update("t", title="after")
    print(ledger.threads.get("t").title, ledger.metrics().running)
ledger.close()
"""


def test_an_interrupt_from_the_keyboard_cancels_the_call(database: Database) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, database.url],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("after 0\n", "")
