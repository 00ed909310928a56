"""The example and the start of the page run as they are written, with a scripted model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from examples.google_adk import talk
from google.adk import agents

from chatledger import Ledger
from tests.adapters.google_adk.scripted import Scripted, says, thinks_and_calls

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "adapters" / "google-adk.md"


async def test_the_example_goes_on_where_it_stopped(ledger: Ledger) -> None:
    model = Scripted.of(thinks_and_calls("weather", city="Tokyo"), says("18 degrees."), says("Mild."))
    answers = await talk(ledger, "ada", ["What is the weather in Tokyo?", "And is that warm?"], model)
    assert answers == ["18 degrees.", "Mild."]
    again = Scripted.of(says("Tokyo."))
    assert await talk(ledger, "ada", ["Which city was it?"], again) == ["Tokyo."]
    assert len(again.asked[0]) == 7
    other = Scripted.of(says("None."))
    await talk(ledger, "bob", ["Which city was it?"], other)
    assert len(other.asked[0]) == 1
    threads = await ledger.threads.list(newest_first=False, order="created", kind="weather")
    assert [thread.user_id for thread in threads] == ["ada", "bob"]


def test_the_start_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (start,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    made = agents.LlmAgent
    model = Scripted.of(says("San Francisco."))
    monkeypatch.setattr(agents, "LlmAgent", lambda **given: made(**{**given, "model": model}))
    exec(compile(start, str(PAGE), "exec"), {"__name__": "__main__"})
    assert "San Francisco." in capsys.readouterr().out
