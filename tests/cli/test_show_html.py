"""`chatledger show --html FILE`: a conversation as one file."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from chatledger import ChatMessage, Ledger, ToolCall
from chatledger.models import ImagePart, TextPart
from tests.cli.commands import chatledger

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


async def store(path: Path) -> None:
    async with Ledger.open(path) as ledger:
        await ledger.threads.create("t", title="<b>Weather</b>")
        view = ImagePart(data=PIXEL, mime_type="image/png", name="view")
        call = ToolCall(id="c", name="weather", arguments={"city": "Tokyo"})
        await ledger.messages.append(
            "t",
            [
                ChatMessage(role="user", content=[TextPart(text="Tokyo?"), view]),
                ChatMessage(role="assistant", tool_calls=[call]),
                ChatMessage(role="tool", tool_call_id="c", content="21 °C"),
                ChatMessage(role="assistant", content="**Sunny**"),
            ],
            run_id="r",
        )


async def test_a_conversation_is_one_file_without_scripts(tmp_path: Path) -> None:
    path, file = tmp_path / "chat.db", tmp_path / "t.html"
    await store(path)
    done = chatledger("show", "t", "--html", file, url=str(path))
    assert (done.code, done.out) == (0, "")
    html = file.read_text(encoding="utf-8")
    assert "&lt;b&gt;Weather&lt;/b&gt;" in html
    assert "<strong>Sunny</strong>" in html
    assert f"data:image/png;base64,{PIXEL}" in html
    assert html.count("<article") == 3  # the result stands beside its call
    assert "default-src 'none'" in html
    assert re.findall(r"<script|<form|<link rel=\"style|(?:src|href)=\"[/h]", html) == []


async def test_a_part_is_written_and_its_neighbours_are_named(tmp_path: Path) -> None:
    path, file = tmp_path / "chat.db", tmp_path / "t.html"
    await store(path)
    done = chatledger("show", "t", "--newest", 1, "--html", file, url=str(path))
    assert "earlier messages: --newest 1 --before A" in done.err
    assert file.read_text(encoding="utf-8").count("<article") == 1


async def test_a_file_and_json_are_not_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    await store(path)
    done = chatledger("show", "t", "--html", tmp_path / "t.html", "--json", url=str(path))
    assert (done.code, "--html or --json" in done.err) == (2, True)
    assert not (tmp_path / "t.html").exists()
