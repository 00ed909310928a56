from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commands import chatledger
from tests.transfer.files import array, talk


def threads(url: str) -> list[str]:
    found = json.loads(chatledger("threads", "--url", url, "--json").out)["items"]
    return [thread["thread_id"] for thread in found]


def test_a_backup_is_made_and_restored(tmp_path: Path) -> None:
    url, copy, again = str(tmp_path / "ledger.db"), str(tmp_path / "copy.db"), str(tmp_path / "again.db")
    (tmp_path / "in.json").write_bytes(array({"messages": talk("Sun?", "Sun.")}))
    assert chatledger("import", tmp_path / "in.json", "--url", url).code == 0
    assert chatledger("backup", copy, "--url", url).code == 0
    assert chatledger("backup", copy, "--url", url).code == 3
    assert chatledger("restore", copy, "--url", again).code == 0
    assert threads(again) == threads(url) != []
    assert chatledger("check", "--url", again).code == 0
