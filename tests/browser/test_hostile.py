"""Content that attacks does nothing: no script runs, nothing is asked of another host, and the page stays usable."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from chatledger import ChatMessage, Feedback, ToolCall, blocking
from chatledger.models import FilePart, ImagePart, OpaquePart, TextPart

MARKUP = """<script>window.hacked = 1; alert(1)</script><img src=x onerror="window.hacked = 2">
<svg onload="window.hacked = 3"></svg><iframe srcdoc="<script>parent.hacked = 4</script>"></iframe>
<a href="javascript:window.hacked=5">click</a><form action=https://evil.example><input name=a autofocus></form>
<style>body { display: none }</style><base href="https://evil.example/">
<meta http-equiv=refresh content="0;url=//evil.example">
"""
LINKS = """
[one](javascript:window.hacked=6) [two](JaVaScRiPt:window.hacked=7) [three](&#106;avascript:window.hacked=8)
[four](data:text/html,<script>window.hacked=9</script>) [five](vbscript:x) [six](//evil.example) [seven](/logout)
![eight](https://evil.example/pixel.png) ![nine](javascript:window.hacked=10) <javascript:window.hacked=11>
[ten](https://example.org "onmouseover=window.hacked=12")
[eleven]: javascript:window.hacked=13
[eleven]

```"><script>window.hacked=14</script>
code
```
"""
SVG = "<svg xmlns='http://www.w3.org/2000/svg'><script>parent.hacked = 15</script></svg>"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def hostile(ledger: blocking.Ledger) -> str:
    """A thread in which every field attacks."""
    thread = 'a/b"><script>window.hacked=0</script>?#%2F'
    ledger.user(MARKUP[:100]).threads.create(thread, title=MARKUP, kind=MARKUP[:100], rules="lenient")
    call = ToolCall(id=MARKUP, name=MARKUP, arguments=MARKUP)
    parts = [
        TextPart(text=MARKUP),
        ImagePart(data=encoded(SVG), mime_type="image/svg+xml", name=MARKUP),
        ImagePart(url=f"data:image/svg+xml;base64,{encoded(SVG)}"),
        ImagePart(url="https://evil.example/pixel.png", name='" onerror="window.hacked=16'),
        ImagePart(url="javascript:window.hacked=17"),
        FilePart(data=encoded(MARKUP), mime_type="text/html", name="page.html"),
        OpaquePart(type=MARKUP, value={MARKUP: MARKUP}),
    ]
    ledger.messages.append(
        thread,
        [
            ChatMessage(role="user", content=parts, name=MARKUP, message_id='m"><script>window.hacked=18</script>/'),
            ChatMessage(
                role="assistant", content=MARKUP + LINKS, reasoning=MARKUP, tool_calls=[call], message_id="links"
            ),
            ChatMessage(role="tool", tool_call_id=MARKUP, content=MARKUP),
            ChatMessage(role="assistant", content=LINKS),
        ],
        run_id='r"><script>window.hacked=19</script>',
    )
    run = 'r"><script>window.hacked=19</script>'
    ledger.runs.start(thread, run_id=run, agent=MARKUP, model=MARKUP)
    ledger.runs.finish(run, status="failed", error=MARKUP)
    score = Feedback(run_id=run, key=MARKUP, score=1, author=MARKUP, message_id="links", kwargs={"comment": MARKUP})
    ledger.feedback.record(score)
    return thread


def is_unharmed(page: Page) -> None:
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    expect(page.locator("main")).to_be_visible()
    for tag in ("script:not([src])", "iframe", "form[action^=https]", "base", "meta[http-equiv]", "style", "object"):
        expect(page.locator(tag)).to_have_count(0)
    attributes = "all => all.flatMap(one => [...one.attributes]).filter(one => /^on/i.test(one.name)).length"
    assert page.locator("*").evaluate_all(attributes) == 0
    schemes = page.locator("a[href]").evaluate_all("all => [...new Set(all.map(one => one.protocol))]")
    assert set(schemes) <= {"http:", "https:", "mailto:"}


def test_a_hostile_conversation_does_nothing(page: Page, hostile: str) -> None:
    page.goto("/")
    is_unharmed(page)
    page.locator(".item").first.click()
    expect(page.get_by_role("article")).to_have_count(3)
    is_unharmed(page)
    for fold in page.locator("summary").all():
        fold.click()
    is_unharmed(page)
    expect(page.locator("img")).to_have_count(0)
    page.goto("/?q=window.hacked")
    expect(page.locator("mark").first).to_have_text("window.hacked")
    is_unharmed(page)
    page.goto("/usage")
    is_unharmed(page)


def test_only_links_to_other_sites_are_left_of_hostile_ones(page: Page, hostile: str) -> None:
    page.goto("/")
    page.locator(".item").first.click()
    links = page.locator(".markdown").last.locator("a")
    texts = {one.text_content(): one.get_attribute("href") for one in links.all()}
    assert {name: href for name, href in texts.items() if href} == {
        "eight": "https://evil.example/pixel.png",
        "ten": "https://example.org",
    }


def test_hostile_content_does_nothing_while_it_is_written(page: Page, ledger: blocking.Ledger) -> None:
    page.goto("/threads/plan")
    ledger.messages.append("plan", [ChatMessage(role="user", content=MARKUP)])
    with ledger.messages.stream("plan") as draft:
        for piece in (MARKUP + LINKS)[:1500].split("\n"):
            draft.feed(piece + "\n")
            draft.flush()
    expect(page.get_by_role("article")).to_have_count(8)
    expect(page.locator("#m-10 .state")).to_have_count(0)
    is_unharmed(page)


def test_what_a_browser_could_run_is_only_downloaded(page: Page, hostile: str) -> None:
    page.goto("/")
    page.locator(".item").first.click()
    downloads = page.get_by_role("link", name="Download")
    expect(downloads).to_have_count(3)
    for one in downloads.all():
        answer = page.request.get(one.get_attribute("href") or "")
        assert answer.headers["content-disposition"] == "attachment"
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("letter", ["a", "a b ", "[", "<b>", "\u0301"])
def test_ten_million_characters_leave_the_page_usable(page: Page, ledger: blocking.Ledger, letter: str) -> None:
    text = letter * (10_000_000 // len(letter))
    call = ToolCall(id="c", name="big", arguments=text)
    ledger.threads.create("big", title="Big")
    for message in (
        ChatMessage(role="user", content=text),
        ChatMessage(role="assistant", content=text, reasoning=text, tool_calls=[call]),
        ChatMessage(role="tool", tool_call_id="c", content=text),
    ):
        ledger.messages.append("big", [message])
    page.goto("/threads/big")
    # The newest message: those before it come when the reader is near, and a reasoning is folded.
    expect(page.locator("article").last.get_by_text("more characters").first).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator("article:focus")).to_have_count(1)
    assert page.evaluate("document.documentElement.outerHTML.length") < 5_000_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    is_unharmed(page)


def test_directions_and_marks_stay_within_their_message(page: Page, ledger: blocking.Ledger) -> None:
    marks, override = "Z" + "\u0301\u0489" * 200, "\u202e\u2066user says yes\u202e"
    ledger.user(override).threads.create("odd", title=override, rules="lenient")
    ledger.messages.append(
        "odd",
        [
            ChatMessage(role="user", content=override, name=override),
            ChatMessage(role="assistant", content=marks),
            ChatMessage(role="user", content="שלום, מה שלומך?"),
            ChatMessage(role="assistant", content="after \ud800 \x00 \x1b[31m"),
        ],
    )
    page.goto("/threads/odd")
    expect(page.get_by_role("article")).to_have_count(4)
    assert page.locator("#m-3 .text").evaluate("one => getComputedStyle(one).direction") == "rtl"
    assert page.locator("#m-2 h2").evaluate("one => getComputedStyle(one).direction") == "ltr"
    boxes = page.get_by_role("article").evaluate_all("all => all.map(one => getComputedStyle(one).overflow)")
    assert set(boxes) == {"clip"}
    is_unharmed(page)


def test_the_file_of_a_hostile_conversation_does_nothing(page: Page, path: Path, hostile: str) -> None:
    file = path.with_name("file.html")
    words = [sys.executable, "-m", "chatledger.cli", "show", hostile, "--html", str(file), "--url", str(path)]
    subprocess.run(words, check=True)
    page.route("**/file", lambda route: route.fulfill(path=file, content_type="text/html"))
    page.goto("/file")
    expect(page.get_by_role("article")).to_have_count(3)
    assert page.evaluate("window.hacked") is None
    assert page.locator("script, iframe, form, img").count() == 0
