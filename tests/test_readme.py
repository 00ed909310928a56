"""The examples of the README run as they stand there."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from chatledger import migrate

README = Path(__file__).parents[1] / "README.md"
PAGES = sorted((README.parent / "docs" / "formats").glob("*.md"))


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


SCRIPTS = [block for block in blocks(README) if "asyncio.run(" in block]
SERVICE = next(block for block in blocks(README) if "FastAPI" in block)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: re.sub(r"\W+", "-", script.split("\n")[-4][:40]))
def test_example_runs(script: str, tmp_path: Path) -> None:
    for _ in ("once", "and again in the same folder"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_the_first_example_prints_the_conversation_and_the_score(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPTS[0]], cwd=tmp_path, capture_output=True, text=True, check=True)
    conversation = ["1 user Tokyo?", "2 assistant ", "3 tool sunny", "4 assistant It is sunny in Tokyo."]
    assert done.stdout.splitlines()[:4] == conversation
    assert "mean=4.0" in done.stdout


async def test_the_service_answers_retries_and_maps_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await asyncio.to_thread(migrate, "service.db")
    names: dict[str, object] = {"__name__": "service"}
    exec(compile(SERVICE, "README.md", "exec"), names)
    app = names["app"]
    async with app.router.lifespan_context(app):  # type: ignore[attr-defined]
        transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            ask = {"text": "hello", "request_id": "q1"}
            first = await client.post("/threads/t/messages", params={"user": "ada"}, json=ask)
            assert first.json() == {"version": 2, "answer": "You said: hello", "replayed": False}
            again = await client.post("/threads/t/messages", params={"user": "ada"}, json=ask)
            assert again.json() == {"version": 2, "answer": "You said: hello", "replayed": True}
            other = {"text": "goodbye", "request_id": "q1"}
            assert (await client.post("/threads/t/messages", params={"user": "ada"}, json=other)).status_code == 409
            assert (await client.get("/threads/t/messages", params={"user": "eve"})).status_code == 404
            page = (await client.get("/threads/t/messages", params={"user": "ada"})).json()
            assert [message["content"] for message in page["messages"]] == ["hello", "You said: hello"]
