"""The example and the start of the page run as they are written, with a scripted model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import agents
import pytest
from examples.openai_agents import talk

from chatledger import Ledger
from tests.adapters.openai_agents.scripted import Scripted, calls, says

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "adapters" / "openai-agents.md"


async def test_the_example_goes_on_where_it_stopped(ledger: Ledger) -> None:
    model = Scripted([calls("weather", '{"city": "Tokyo"}')], [says("18 degrees.")], [says("Mild.", 2)])
    assert await talk(ledger, "ada", ["What is the weather in Tokyo?", "And is that warm?"], model) == [
        "18 degrees.",
        "Mild.",
    ]
    again = Scripted([says("Tokyo.", 3)])
    assert await talk(ledger, "ada", ["Which city was it?"], again) == ["Tokyo."]
    assert len(again.asked[0]) == 7
    other = Scripted([says("None.", 4)])
    await talk(ledger, "bob", ["Which city was it?"], other)
    assert len(other.asked[0]) == 1
    assert [thread.user_id for thread in (await ledger.threads.list(newest_first=False, order="created")).items] == [
        "ada",
        "bob",
    ]


def test_the_start_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (start,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    made = agents.Agent
    monkeypatch.setattr(
        agents,
        "Agent",
        lambda **given: made(**given, model=Scripted([says("San Francisco.")] * 1, [says("California.", 2)])),
    )
    exec(compile(start, str(PAGE), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.split() == ["San", "Francisco.", "California."]
