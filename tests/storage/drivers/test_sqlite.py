"""The connection to a SQLite file."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from chatledger.storage.drivers.sqlite import SqliteConnection


def test_a_file_that_cannot_be_used_is_closed_again(tmp_path: Path) -> None:
    """At once, and not when the error is forgotten: from Python 3.13 on, that is a ResourceWarning."""
    path = tmp_path / "notes.db"
    path.write_bytes(b"Dear diary, " * 1_000)
    with pytest.raises(sqlite3.DatabaseError) as caught:
        SqliteConnection(str(path))
    opened = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    assert (str(path) in opened, caught.value.args) == (False, ("file is not a database",))
