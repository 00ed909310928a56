"""The examples of the page run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chatledger import blocking

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "blocking.md"
SCRIPT, DJANGO, CELERY, NOTEBOOK = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(example: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(example, names)
    return names


def test_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    run(SCRIPT)
    assert capsys.readouterr().out == "user Tokyo?\nassistant Sunny, 24 °C.\n"


def test_django() -> None:
    names = run(DJANGO)
    request = SimpleNamespace(user_id="ada", text="Tokyo?")
    try:
        assert [names["post_message"](request, "t")["version"] for _ in range(2)] == [1, 2]
        assert names["ledger"]().threads.get("t").user_id == "ada"
    finally:
        names["ledger"]().close()


def test_celery() -> None:
    with blocking.open("chat.db") as ledger:
        ledger.threads.create("t")
        names = run(CELERY)
        names["open_ledger"](sender=None)
        for _ in range(2):
            names["answer"]("t", "request-1", "Sunny.")
        names["close_ledger"](sender=None)
        assert [message.content for message in ledger.messages.history("t").messages] == ["Sunny."]


def test_a_notebook() -> None:
    run(NOTEBOOK)["ledger"].close()
