"""Reading: the list, the search, a conversation and its branches, earlier messages, and usage."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from chatledger import ChatMessage, blocking
from tests.browser.conversations import LONG


def test_the_list_leads_to_a_conversation(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Conversations")
    expect(page.locator("ul.threads > li")).to_have_count(30)
    page.get_by_role("link", name="A weekend in Kyoto").click()
    expect(page).to_have_title("A weekend in Kyoto · chatledger")
    expect(page.get_by_role("article")).to_have_count(6)


def test_a_search_leads_to_the_message(page: Page) -> None:
    page.goto("/")
    page.get_by_role("searchbox", name="Search conversations").fill("number 123.")
    page.keyboard.press("Enter")
    expect(page.locator("mark")).to_have_text("number 123.")
    page.get_by_role("link", name="A long conversation").click()
    expect(page.locator("#m-123")).to_be_in_viewport()


def test_a_call_stands_beside_its_result(page: Page) -> None:
    page.goto("/threads/plan")
    trains = page.get_by_role("region", name="Call of find_trains")
    expect(trains).to_contain_text('"from": "Tokyo"')
    expect(trains.locator(".result")).to_contain_text('"train": "Nozomi 1"')
    expect(page.get_by_role("region", name="Call of weather").locator(".failed")).to_contain_text("timed out")


def test_reasoning_is_folded_and_markdown_is_shown(page: Page) -> None:
    page.goto("/threads/plan")
    reasoning = page.get_by_text("Two days, so no day trips.")
    expect(reasoning).to_be_hidden()
    page.get_by_text("Reasoning", exact=True).click()
    expect(reasoning).to_be_visible()
    answer = page.locator("#m-6")
    expect(answer.locator("strong")).to_have_text("early")
    expect(answer.get_by_role("cell")).to_have_count(6)
    link = answer.get_by_role("link", name="the tourist office")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")


def test_an_image_is_shown(page: Page) -> None:
    page.goto("/threads/plan")
    image = page.get_by_role("img", name="the view")
    image.scroll_into_view_if_needed()
    expect(image).to_have_js_property("naturalWidth", 320)
    expect(page.get_by_label("the bell")).to_have_attribute("src", re.compile("/threads/plan/media/"))


def test_a_message_shows_its_json(page: Page) -> None:
    page.goto("/threads/plan")
    page.locator("#m-6 .raw summary").click()
    expect(page.locator("#m-6 .raw pre")).to_contain_text('"message_id": "plan"')


def test_a_run_shows_its_model_and_its_cost(page: Page) -> None:
    page.goto("/threads/plan")
    expect(page.locator("#m-6 .run")).to_contain_text("gpt-5")
    expect(page.locator("#m-6 .run")).to_contain_text("1,812 → 264 tokens")
    expect(page.locator("#m-6 .run")).to_contain_text("cost 0.0049")
    expect(page.get_by_role("list", name="Scores of message 6")).to_contain_text("stars 5")


def test_a_branch_is_chosen_at_its_message_and_in_the_list(page: Page) -> None:
    page.goto("/threads/plan")
    ways = page.get_by_role("navigation", name="Alternatives of message 8")
    expect(ways).to_contain_text("2 of 2")
    expect(page.locator("#m-8")).to_contain_text("aquarium")
    ways.get_by_role("link", name="Previous alternative").click()
    expect(page.locator("#m-8")).to_contain_text("railway museum")
    expect(page.get_by_role("button", name="Make it the active branch")).to_be_visible()
    page.get_by_label("Branch", exact=True).select_option("1")
    expect(page.locator("#m-8")).to_contain_text("aquarium")


def test_a_branch_is_made_the_active_one(page: Page) -> None:
    page.goto("/threads/plan?branch=0")
    page.get_by_role("button", name="Make it the active branch").click()
    expect(page).to_have_url(re.compile("/threads/plan$"))
    expect(page.locator("#m-8")).to_contain_text("railway museum")


def test_a_long_conversation_opens_at_its_end_and_scrolls_back_to_its_beginning(page: Page) -> None:
    page.goto("/threads/long")
    expect(page.locator(f"#m-{LONG}")).to_be_in_viewport()
    shown = page.get_by_role("article").count()
    assert shown < LONG
    for _ in range(40):
        page.keyboard.press("Home")
        if page.locator("#m-1").count():
            break
        page.wait_for_timeout(100)
    expect(page.get_by_role("article")).to_have_count(LONG)
    seqs = page.locator("article").evaluate_all("all => all.map(one => Number(one.dataset.seq))")
    assert seqs == list(range(1, LONG + 1))
    expect(page.get_by_role("link", name="Earlier messages")).to_have_count(0)


@pytest.mark.parametrize("below", [60, 200])
def test_a_page_that_nearly_fits_opens_at_its_beginning(page: Page, ledger: blocking.Ledger, below: int) -> None:
    ledger.messages.append("short", [ChatMessage.user("line\n" * 10) for _ in range(4)], create=True)
    page.goto("/threads/short")
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": 1200, "height": height - below})
    for address, first in {"/threads/short": "h1", "/threads/short?at=1#m-1": "#m-1"}.items():
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_timeout(300)  # the observer of sizes comes after the script
        box, bar = (page.locator(one).bounding_box() for one in (first, ".bar"))
        assert box is not None
        assert bar is not None
        assert box["y"] >= bar["y"] + bar["height"]


def test_what_is_read_stays_in_its_place_when_earlier_messages_come(page: Page) -> None:
    page.goto("/threads/long")
    first = page.get_by_role("article").first
    seq = first.get_attribute("data-seq")
    first.scroll_into_view_if_needed()
    expect(page.get_by_role("article").first).not_to_have_attribute("data-seq", seq or "")
    expect(page.locator(f"#m-{seq}")).to_be_in_viewport()


def test_usage_is_plotted_and_in_tables(page: Page) -> None:
    page.goto("/usage")
    for name in ("Tokens", "Runs", "Cost", "Score: helpfulness", "Score: stars"):
        expect(page.get_by_role("img", name=name)).to_be_visible()
    page.get_by_text("As a table").first.click()
    expect(page.get_by_role("region", name="Tokens by day").get_by_role("row")).to_have_count(2)
    expect(page.get_by_role("region", name="Usage by model")).to_contain_text("gpt-5")
    page.get_by_role("link", name="7 days").click()
    expect(page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "page")


def test_a_missing_conversation_is_a_page_that_says_so(page: Page) -> None:
    response = page.request.get("/threads/nobody's")
    assert response.status == 404
    assert "there is no thread" in response.text()
