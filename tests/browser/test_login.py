"""Logging in, on PostgreSQL: a person sees their own conversations, and nobody else's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from chatledger import ChatMessage, blocking
from chatledger.server import Caller, TokenFile
from tests.browser.conftest import opened
from tests.server.conftest import Serving, serving


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile.create(tmp_path / "tokens.json")


@pytest.fixture
def server(pg_url: str, tokens: TokenFile, tmp_path: Path) -> Iterator[Serving]:
    with serving(pg_url, "--migrate", "--tokens", str(tmp_path / "tokens.json")) as running:
        with blocking.open(pg_url) as ledger:
            for user in ("ada", "bob"):
                ledger.user(user).threads.create(f"{user}'s/one", title=f"A question of {user}")
                ledger.messages.append(f"{user}'s/one", [ChatMessage(role="user", content=f"I am {user}.")])
        yield running


@pytest.fixture
def page(browser: Browser, server: Serving) -> Iterator[Page]:
    with opened(browser, server, allowed=["401 (Unauthorized)", "404 (Not Found)"]) as page:
        yield page


def test_a_person_logs_in_and_out(page: Page, tokens: TokenFile, pg_url: str) -> None:
    token = tokens.add(Caller("ada"))
    page.goto("/threads/ada's%2Fone?branch=0")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    page.get_by_label("Token").fill("cl_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("The server does not know this token.")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(r"/threads/ada's%2Fone\?branch=0$"))
    expect(page.get_by_role("article")).to_contain_text("I am ada.")

    with blocking.open(pg_url) as ledger, ledger.messages.stream("ada's/one") as draft:
        draft.feed("Hello, ")
        draft.flush()
        expect(page.locator("#m-2")).to_contain_text("Hello,")
        draft.feed("Ada.")
    expect(page.locator("#m-2")).to_contain_text("Hello, Ada.")

    page.goto("/")
    expect(page.get_by_role("link", name="A question of")).to_have_text(["A question of ada"])
    page.goto("/threads/bob's%2Fone")
    expect(page.get_by_role("heading", level=1)).to_have_text("It does not exist, or belongs to another user")

    [cookie] = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    assert page.context.cookies() == []
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")


def test_the_administrator_sees_all(page: Page, tokens: TokenFile) -> None:
    page.goto("/login")
    page.get_by_label("Token").fill(tokens.add(Caller(admin=True)))
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="A question of")).to_have_count(2)
    page.get_by_role("link", name="A question of bob").click()
    expect(page.get_by_role("article")).to_contain_text("I am bob.")
