"""Markdown of an answer as HTML: what is kept, and what is not."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from chatledger.server.page import markdown, shown
from chatledger.server.page.markdown import to_html, weight
from chatledger.server.page.shown import ELEMENTS, ELEMENTS_OF_PAGE, MARKDOWN, Renderer, ShownText
from tests.conversations import assistant


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**a** *b* `c` ~~d~~", "<p><strong>a</strong> <em>b</em> <code>c</code> <s>d</s></p>\n"),
        ("# one", "<h3>one</h3>\n"),
        ("##### five", "<h6>five</h6>\n"),
        ("[a](https://b.example)", '<p><a href="https://b.example" rel="noopener noreferrer nofollow">a</a></p>\n'),
        ("![a](https://b.example)", '<p><a href="https://b.example" rel="noopener noreferrer nofollow">a</a></p>\n'),
        ("[a](/logout)", '<p><a rel="noopener noreferrer nofollow">a</a></p>\n'),
        ("[a](//b.example)", '<p><a rel="noopener noreferrer nofollow">a</a></p>\n'),
        ("[a](javascript:x)", "<p>[a](javascript:x)</p>\n"),
        ("<b onclick=x>a</b>", "<p>&lt;b onclick=x&gt;a&lt;/b&gt;</p>\n"),
        ("```py\n<i>\n```", "<pre><code>&lt;i&gt;\n</code></pre>\n"),
        ("3. a", '<ol start="3">\n<li>a</li>\n</ol>\n'),
    ],
)
def test_markdown_becomes_html(text: str, html: str) -> None:
    assert to_html(text) == html


HEAVY = {
    "emphasis": "*a_ ",
    "open emphasis": "**a ",
    "headings": "# a\n",
    "images": "![a",
    "brackets": "[",
    "links": "[a](b)",
    "lists": "- a\n",
    "lines": "a\n",
    "code": "`a` ",
    "struck": "~~a~~ ",
    "quotes": "> a\n\n",
    "addresses": "<http://a.b>",
    "entities": "&amp;",
    "table": "|a|b|\n|-|-|\n",
    "references": "[a]: b\n\n[a] ",
}
WIDE = "|a" * 60 + "|\n" + "|-" * 60 + "|\n"


def elements(text: str) -> int:
    return sum(1 + len(token.children or ()) for token in markdown._PARSER.parse(text))


@pytest.mark.parametrize("unit", HEAVY.values(), ids=HEAVY)
def test_a_text_has_about_as_many_elements_as_its_weight_says(unit: str) -> None:
    for text in (unit * 300, WIDE + unit * 300, WIDE + "|\n" * 300):
        assert elements(text) <= 4 * weight(text) + 10


@pytest.mark.parametrize("unit", [*HEAVY.values(), "wide"], ids=[*HEAVY, "wide"])
def test_a_page_reads_only_so_many_elements_as_markdown(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noted(text: str) -> Markup:
        read.append(text)
        return to_html(text)

    monkeypatch.setattr(shown, "to_html", noted)
    heavy = (WIDE + "|\n" * 9_000 if unit == "wide" else unit * 10_000)[: MARKDOWN - 100]
    light = heavy[: heavy.index(unit) + len(unit) * 100] if unit != "wide" else WIDE
    messages = [assistant(heavy), *(assistant(text) for text in (light, heavy[:1_500]) for _ in range(40))]
    messages = [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]
    blocks = [one for message in renderer().show(messages) for one in message.blocks if isinstance(one, ShownText)]
    assert [text.plain for text in blocks] == [message.content for message in messages]
    assert sum(map(weight, read)) <= ELEMENTS_OF_PAGE
    assert max(map(weight, read)) <= ELEMENTS
    assert sum(map(elements, read)) <= 4 * ELEMENTS_OF_PAGE
    assert read
    assert sum(text.html is None for text in blocks) > 20


def test_an_answer_of_words_is_read_as_markdown_up_to_the_longest() -> None:
    prose = "## Trains\n\nThere are *two* a day, see [the plan](https://a.example/plan_1):\n\n| at | to |\n|-|-|\n" * 3
    text = ((prose + "| 8:15 | Tokyo |\n" * 5 + "\n" + "Words of an answer, and more. " * 20 + "\n\n") * 30)[:MARKDOWN]
    assert len(text) == MARKDOWN
    (message,) = renderer().show([assistant(text)])
    assert isinstance(message.blocks[0], ShownText)
    assert message.blocks[0].html is not None


def renderer() -> Renderer:
    return Renderer(lambda message, index, part: None)
