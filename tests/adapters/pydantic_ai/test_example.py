"""The example and the start of the page run as they are written, with a scripted model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pydantic_ai
import pytest
from examples.pydantic_ai import talk
from pydantic_ai import messages as ai
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from chatledger import Ledger

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "adapters" / "pydantic-ai.md"


def scripted(*outputs: ai.ModelResponsePart) -> tuple[FunctionModel, list[list[Any]]]:
    """A model that answers from a script, and what it was asked."""
    asked: list[list[Any]] = []
    left = list(outputs)

    def answer(messages: list[Any], info: AgentInfo) -> ai.ModelResponse:
        asked.append(list(messages))
        return ai.ModelResponse(parts=[left.pop(0)])

    return FunctionModel(answer), asked


async def test_the_example_goes_on_where_it_stopped(ledger: Ledger) -> None:
    call = ai.ToolCallPart("weather", {"city": "Tokyo"})
    model, _ = scripted(call, ai.TextPart("18 degrees."), ai.TextPart("Mild."))
    answers = await talk(ledger, "ada", ["What is the weather in Tokyo?", "And is that warm?"], model)
    assert answers == ["18 degrees.", "Mild."]
    again, asked = scripted(ai.TextPart("Tokyo."))
    assert await talk(ledger, "ada", ["Which city was it?"], again) == ["Tokyo."]
    assert len(asked[0]) == 7
    other, asked = scripted(ai.TextPart("None."))
    await talk(ledger, "bob", ["Which city was it?"], other)
    assert len(asked[0]) == 1
    threads = await ledger.threads.list(newest_first=False, order="created", kind="pydantic-ai")
    assert [(thread.thread_id, thread.user_id) for thread in threads] == [
        ("weather/ada", "ada"),
        ("weather/bob", "bob"),
    ]


def test_the_start_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (start,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    made = pydantic_ai.Agent
    model = TestModel(custom_output_text="San Francisco.")
    monkeypatch.setattr(pydantic_ai, "Agent", lambda name, **given: made(model, **given))
    exec(compile(start, str(PAGE), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == "San Francisco.\nSan Francisco.\n"
