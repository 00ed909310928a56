"""How it looks and who can use it: light and dark, every width, without a mouse, and by a screen reader."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import opened
from tests.server.conftest import Serving

PAGES = ("/", "/?q=Kyoto", "/?archived=true", "/threads/plan", "/threads/long", "/usage")
DOCS = Path(__file__).parents[2] / "docs" / "guides"
SHOTS = {"phone": (390, 844, "light"), "tablet": (820, 1000, "dark"), "desktop": (1280, 900, "light")}


@pytest.fixture(params=[320, 390, 820, 1920])
def narrow(request: pytest.FixtureRequest, browser: Browser, server: Serving) -> Iterator[Page]:
    with opened(browser, server, viewport={"width": request.param, "height": 800}) as page:
        yield page


def test_no_page_scrolls_sideways(narrow: Page) -> None:
    for path in PAGES:
        narrow.goto(path)
        for fold in narrow.locator("summary:visible").all()[:20]:
            fold.click()
        assert narrow.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(browser: Browser, server: Serving, scheme: str) -> None:
    """Each text against the colour behind it: at least 4.5 to 1, as WCAG AA asks."""
    with opened(browser, server, color_scheme=scheme) as page:
        for path in PAGES:
            page.goto(path)
            faint = page.evaluate(LOW_CONTRAST)
            assert faint == [], path


@pytest.mark.parametrize("address", PAGES)
def test_a_page_has_landmarks_one_heading_and_names(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_role("banner")).to_have_count(1)
    expect(page.get_by_role("main")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("search")).to_have_count(1)
    expect(page.get_by_role("status")).to_have_count(1)
    assert page.locator("html").get_attribute("lang") == "en"
    levels = [
        int(one)
        for one in page.locator(":is(h1, h2, h3, h4, h5, h6):not(.markdown *)").evaluate_all(
            "all => all.map(one => one.tagName[1])"
        )
    ]
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    unnamed = page.locator("button, input:not([type=hidden]), select, a[href], img, svg[role=img], audio").evaluate_all(
        UNNAMED
    )
    assert unnamed == []
    doubled = page.locator("[id]").evaluate_all(
        "all => all.map(one => one.id).filter((id, at, ids) => ids.indexOf(id) < at)"
    )
    assert doubled == []


def test_keys_move_search_and_help(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".item").nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page).to_have_title("A weekend in Kyoto · chatledger")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("?j")
    expect(page.get_by_role("searchbox")).to_have_value("?j")
    page.locator("#m-3").focus()
    page.keyboard.press("j")
    expect(page.locator("#m-6")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_the_first_tab_skips_to_the_content(page: Page) -> None:
    page.goto("/threads/plan")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


@pytest.mark.parametrize("name", SHOTS)
def test_screenshots(browser: Browser, server: Serving, tmp_path: Path, name: str) -> None:
    """With CHATLEDGER_SCREENSHOTS, they replace those of the docs."""
    width, height, scheme = SHOTS[name]
    folder = DOCS if os.environ.get("CHATLEDGER_SCREENSHOTS") else tmp_path
    with opened(browser, server, viewport={"width": width, "height": height}, color_scheme=scheme) as page:
        page.goto("/threads/plan?at=1")
        page.locator("img").evaluate("one => one.decode()")
        page.screenshot(path=folder / f"page-{name}.png")
    assert (folder / f"page-{name}.png").stat().st_size > 10_000


UNNAMED = """all => all.filter(one => {
  const ids = (one.getAttribute("aria-labelledby") ?? "").split(" ");
  const labels = [...ids.map(id => document.getElementById(id)), ...(one.labels ?? [])];
  const name = one.ariaLabel || one.alt || one.textContent || labels.map(label => label?.textContent).join("");
  return !name.trim();
}).map(one => one.outerHTML.slice(0, 120))"""

LOW_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const linear = (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const color = rgba(getComputedStyle(one).backgroundColor);
      if (color[3] > 200) return color;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walk.nextNode();) {
    const one = node.parentElement;
    if (!node.data.trim() || !one.checkVisibility() || one.closest("svg, .unseen, dialog, option")) continue;
    const [a, b] = [light(rgba(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(`${one.className || one.tagName}: ${node.data.trim().slice(0, 30)}`);
  }
  return [...new Set(faint)];
}"""
