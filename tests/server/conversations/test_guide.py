"""The guide runs against a real server, as a reader would run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatledger.admin import migrate
from chatledger.server import Caller, TokenFile
from tests.docs.pages import Reader
from tests.docs.parts import DOCS
from tests.server.conftest import serving

PAGE = DOCS / "guides" / "openai-conversations.md"
PLACE = "http://127.0.0.1:8484"


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = TokenFile.create(tmp_path / "tokens.json")
    monkeypatch.setenv("CHATLEDGER_TOKEN", tokens.add(Caller("ada")))
    text = PAGE.read_text(encoding="utf-8")
    assert PLACE in text
    migrate(tmp_path / "chat.db")
    with serving(str(tmp_path / "chat.db"), "--tokens", str(tmp_path / "tokens.json")) as server:
        page = tmp_path / "page.md"
        page.write_text(text.replace(PLACE, server.url).replace("```console", "```text"), encoding="utf-8")
        Reader(page, tmp_path, "postgresql://localhost/none").run()
