"""A closed SQLite file is whole by itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chatledger import Ledger, StorageError
from tests.conversations import turn


async def test_a_closed_file_can_be_copied_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        async with Ledger.open(tmp_path / "ledger.db") as ledger:
            await ledger.threads.create(name)
            await ledger.messages.append(name, turn())
            assert len(await ledger.messages.history(name)) == 5
    shutil.copyfile(tmp_path / "ledger.db", tmp_path / "copy.db")
    async with Ledger.open(tmp_path / "copy.db") as copy:
        assert len(await copy.threads.list()) == 2


async def test_an_empty_url_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match="empty"):
        await Ledger.open("")
    monkeypatch.setenv("CHATLEDGER_URL", "")
    with pytest.raises(StorageError, match="empty"):
        await Ledger.open()
