"""What changes while a person looks: a draft that grows, results, retractions, another branch, and scores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from chatledger import ChatMessage, Newest, ToolCall, blocking
from tests.browser.conftest import opened
from tests.server.conftest import Serving


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def test_a_draft_grows_before_the_readers_eyes(page: Page, ledger: blocking.Ledger) -> None:
    page.goto("/threads/plan")
    ledger.messages.append("plan", [user("And when it rains?")])
    expect(page.locator("#m-9")).to_contain_text("And when it rains?")
    with ledger.messages.stream("plan") as draft:
        draft.feed("Take ")
        draft.flush()
        answer = page.locator("#m-10")
        expect(answer).to_contain_text("Take")
        expect(answer.locator(".state")).to_have_text("being written")
        expect(page.get_by_role("status")).to_have_text("assistant is writing")
        for piece in ("an **umbrella**", " and go", " to the arcades."):
            draft.feed(piece)
            draft.flush()
        expect(answer).to_contain_text("Take an umbrella and go to the arcades.")
    expect(answer.locator(".state")).to_have_count(0)
    expect(page.get_by_role("status")).to_contain_text("Take an umbrella and go to the arcades.")
    expect(answer).to_be_in_viewport()


def test_who_reads_the_end_stays_there_when_more_comes_before_the_scroll_event(page: Page) -> None:
    page.goto("/threads/plan")
    expect(page.locator("#end")).to_be_in_viewport()
    page.evaluate(
        """() => {
            const list = document.getElementById("messages");
            const grow = () => {
                const tall = document.createElement("div");
                tall.style.height = "1000px";
                const last = document.createElement("p");
                last.textContent = "Below.";
                list.append(tall, last);
            };
            // The page's own observer comes first and scrolls. Then the list grows again before the scroll event.
            let sizes = 0;
            const after = new ResizeObserver(() => {
                sizes += 1;
                if (sizes < 3) grow(); else after.disconnect();
            });
            after.observe(list);
        }"""
    )
    below = page.get_by_text("Below.", exact=True)
    expect(below).to_have_count(2)
    expect(below.last).to_be_in_viewport()


def test_who_reads_above_is_not_moved(page: Page, ledger: blocking.Ledger) -> None:
    page.goto("/threads/long")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight - 3000)")
    before = page.evaluate("scrollY")
    ledger.messages.append("long", [user("The newest one.")])
    newer = page.get_by_role("button", name="New messages")
    expect(newer).to_be_visible()
    assert abs(page.evaluate("scrollY") - before) < 5
    newer.click()
    expect(page.get_by_text("The newest one.", exact=True)).to_be_in_viewport()
    expect(newer).to_be_hidden()


def test_a_result_comes_beside_its_call(page: Page, ledger: blocking.Ledger) -> None:
    page.goto("/threads/plan")
    call = ToolCall(id="c9", name="find_hotel", arguments={"city": "Kyoto"})
    ledger.messages.append("plan", [user("A hotel?"), ChatMessage(role="assistant", tool_calls=[call])])
    shown = page.get_by_role("region", name="Call of find_hotel")
    expect(shown).to_contain_text("No result.")
    ledger.messages.append("plan", [ChatMessage(role="tool", tool_call_id="c9", content="Three are free.")])
    expect(shown).to_contain_text("Three are free.")
    expect(page.get_by_role("article")).to_have_count(8)


def test_messages_change_and_go(page: Page, ledger: blocking.Ledger) -> None:
    page.goto("/threads/plan")
    ledger.messages.revise("plan", "child", user("And with a child of five?"))
    expect(page.locator("#m-7")).to_contain_text("child of five")
    ledger.messages.rewind("plan", ledger.messages.history("plan", Newest(1, before=7), branch=0).messages[0])
    expect(page.get_by_role("article")).to_have_count(4)
    ledger.branches.activate("plan", 0)
    expect(page.locator("#m-8")).to_contain_text("railway museum")


def test_a_score_is_given(page: Page, ledger: blocking.Ledger) -> None:
    page.goto("/threads/plan")
    answer = page.locator("#m-6")
    answer.get_by_role("button", name="Good answer").click()
    expect(answer.get_by_role("list", name="Scores of message 6")).to_contain_text("thumb 1")
    answer.locator("summary", has_text="Score").click()
    form = answer.get_by_role("form", name="Another score of message 6")
    form.get_by_label("Key").fill("accuracy")
    form.get_by_label("Score").fill("0.5")
    form.get_by_label("Comment").fill("The cost is wrong")
    form.get_by_role("button", name="Give score").click()
    expect(answer.get_by_role("list", name="Scores of message 6")).to_contain_text("accuracy 0.5")
    expect(answer).to_contain_text("The cost is wrong")
    stored = {one.key: one.score for one in ledger.feedback.list(run_id="r1") if one.source == "page"}
    assert stored == {"thumb": 1, "accuracy": 0.5}


def test_it_works_without_its_script(page: Page, ledger: blocking.Ledger) -> None:
    page.route("**/page.js*", lambda route: route.fulfill(body="", content_type="text/javascript"))
    page.goto("/threads/long")
    page.get_by_role("link", name="Earlier messages").click()
    expect(page.get_by_text("Message number 320.")).to_be_attached()
    page.get_by_role("link", name="Later messages").click()
    expect(page.get_by_text("Message number 400.")).to_be_attached()
    page.goto("/threads/plan")
    page.locator("#m-6").get_by_role("button", name="Bad answer").click()
    expect(page.locator("#m-6").get_by_role("list", name="Scores of message 6")).to_contain_text("thumb 0")


@pytest.fixture
def failing(browser: Browser, server: Serving) -> Iterator[Page]:
    """A page some of whose requests fail."""
    with opened(browser, server, allowed=["502", "404", "net::ERR_FAILED"]) as page:
        yield page


def turn(page: Page, *, hidden: bool) -> None:
    """What the browser tells the page when its tab goes behind another one, or comes back."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_changes_go_on_after_a_proxy_refused_the_stream(failing: Page, ledger: blocking.Ledger) -> None:
    refused: list[str] = []

    def refuse_twice(route: Route) -> None:
        if len(refused) < 2:
            refused.append(route.request.url)
            route.fulfill(status=502)
        else:
            route.continue_()

    failing.route("**/events?*", refuse_twice)
    failing.goto("/threads/plan")
    ledger.messages.append("plan", [user("And when it rains?")])
    expect(failing.locator("#m-9")).to_contain_text("And when it rains?")
    assert len(refused) == 2


def test_a_hidden_page_has_no_stream_and_catches_up_when_it_is_shown(page: Page, ledger: blocking.Ledger) -> None:
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if "/events?" in sent.url else None)
    page.goto("/threads/plan")
    ledger.messages.append("plan", [user("First.")])
    expect(page.locator("#m-9")).to_contain_text("First.")
    with page.expect_event("requestfailed", lambda sent: "/events?" in sent.url):
        turn(page, hidden=True)
    ledger.messages.append("plan", [user("Second.")])
    assert page.locator("#m-10").count() == 0
    turn(page, hidden=False)
    expect(page.locator("#m-10")).to_contain_text("Second.")
    assert len(set(asked)) == len(asked) == 2  # the second one from the last change


def test_a_page_whose_conversation_is_gone_asks_no_more(failing: Page, ledger: blocking.Ledger) -> None:
    failing.goto("/threads/plan")
    failing.route("**/messages?*", lambda route: route.fulfill(status=404))
    with failing.expect_event("requestfailed", lambda sent: "/events?" in sent.url):
        ledger.messages.append("plan", [user("And when it rains?")])
    expect(failing.get_by_role("status")).to_have_text("This page no longer changes by itself")


def test_a_score_whose_request_fails_is_sent_as_a_form_with_its_button(failing: Page, ledger: blocking.Ledger) -> None:
    failing.goto("/threads/plan")
    failing.route("**/score", lambda route: route.abort(), times=1)
    failing.locator("#m-6").get_by_role("button", name="Bad answer").click()
    expect(failing.locator("#m-6").get_by_role("list", name="Scores of message 6")).to_contain_text("thumb 0")
    assert [one.score for one in ledger.feedback.list(run_id="r1", key="thumb")] == [0]
