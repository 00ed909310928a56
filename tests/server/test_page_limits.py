"""What a page shows of very many scores, of very large and small ones, and of very much Markdown."""

from __future__ import annotations

import math
import re
from datetime import date

import httpx
import pytest

from chatledger import ChatMessage, Feedback, Ledger
from chatledger.server.page.file import to_file
from chatledger.server.page.plots import Plot
from tests.server.test_page import text_of


@pytest.mark.parametrize(
    "scores",
    [[1e100], [1e100, 1e100], [5e-324], [-1e100, 1e100], [-5e-324], [0.3], [0]],
)
async def test_any_score_is_plotted(client: httpx.AsyncClient, ledger: Ledger, scores: list[float]) -> None:
    for number, score in enumerate(scores):
        await ledger.messages.append("t", [ChatMessage(role="user", content="?")], create=True, run_id=f"r{number}")
        await ledger.feedback.record(Feedback(run_id=f"r{number}", key="k", score=score))
    html = await text_of(client, "/usage")
    [_, svg] = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert "Score: k" in html
    assert svg.count("<circle") == 1
    assert re.search(r"\b(nan|inf)\b", svg) is None


def test_a_scale_ends_at_the_next_round_number_and_skips_what_is_not_finite() -> None:
    days = [date(2026, 1, 1), date(2026, 1, 2)]
    for value, end in ((0.1, "0.1"), (0.31, "0.4"), (950.0, "1000"), (1.7e308, "1.7e+308"), (5e-324, "4.941e-324")):
        assert Plot.line("x", days, {"a": [value, None]}).ticks[-1] == (10.0, end)
    for draw in (Plot.line, Plot.bars):
        plot = draw("x", days, {"a": [math.inf, 2.0]})
        assert [one.title for one in plot.marks] == ["2026-01-02: a 2"]
        assert plot.ticks[-1] == (10.0, "2")
    both = Plot.line("x", days, {"a": [-1.7e308, 1.7e308]})
    assert [mark.y for mark in both.marks] == [158.0, 10.0]


async def test_what_a_page_leaves_out_it_says(client: httpx.AsyncClient, ledger: Ledger) -> None:
    answer = ChatMessage(role="assistant", content="x", message_id="m")
    await ledger.messages.append("t", [answer], create=True, run_id="r")
    for number in range(1_000):
        await ledger.feedback.record(Feedback(run_id="r", key=f"k{number}", score=1, message_id="m"))
    thread, history = await ledger.threads.get("t"), await ledger.messages.history("t")
    for path in ("/threads/t", "/threads/t/messages"):
        assert "only the newest" not in await text_of(client, path)
    await ledger.feedback.record(Feedback(run_id="r", key="last", score=1, message_id="m"))
    for path in ("/threads/t", "/threads/t/messages"):
        html = await text_of(client, path)
        assert "Of the scores of these messages, only the newest 1,000 are shown." in html
        assert html.count("<li><bdi>") == 1_000
    assert (await to_file(ledger, thread, history)).count("<li><bdi>") == 1_001
    assert "Scores are plotted for 6 of 1,001 keys" in await text_of(client, "/usage")


async def test_the_markdown_of_a_page_is_limited_from_its_newest_message_on(
    client: httpx.AsyncClient, ledger: Ledger
) -> None:
    answers = [ChatMessage(role="assistant", content=f"**{'x' * 19_986}**") for _ in range(4)]
    await ledger.messages.append("t", answers, create=True)
    html = await text_of(client, "/threads/t")
    assert [kind == "markdown" for kind in re.findall('class="text (markdown|plain)"', html)] == [False] * 2 + [
        True
    ] * 2
