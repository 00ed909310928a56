"""Markdown as HTML that no browser runs: markdown-it-py makes it, without HTML of the text, and nh3 sanitizes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token
from markupsafe import Markup

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_SCHEMES = {"http", "https", "mailto"}


def _image(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """An image would be fetched from another server, so it is a link."""
    token = tokens[index]
    source, alt = escapeHtml(str(token.attrs["src"])), escapeHtml(token.content or "image")
    return f'<a href="{source}">{alt}</a>'


def _heading(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Below the headings of the page, of which a message's own is an h2."""
    token = tokens[index]
    token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    return f"<{token.tag}>" if token.nesting == 1 else f"</{token.tag}>\n"


_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
for _name, _rule in {"image": _image, "heading_open": _heading, "heading_close": _heading}.items():
    _PARSER.add_render_rule(_name, _rule)

_MARKS = re.compile(r"[*_~`\[\]!<>|#&\\+\n-]")
_BELOW_HEADS = re.compile(r"^[ >\t]*[|:-][|: \t-]*$", re.MULTILINE)
"""The line below the head of a table, which says how many columns each of its rows gets."""


def weight(text: str) -> int:
    """About how many elements the text may have as Markdown. They take the time, and not the letters between them."""
    columns = max((line.count("|") for line in _BELOW_HEADS.findall(text)), default=0)
    return len(_MARKS.findall(text)) + columns * text.count("\n")


def to_html(text: str) -> Markup:
    """Only the tags of `_TAGS`, and links to other sites by http, https and mailto. Needs text that UTF-8 can hold."""
    rendered = _PARSER.render(text)
    clean = nh3.clean(
        rendered,
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        attribute_filter=_only_schemes,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704 - sanitized above


def _only_schemes(tag: str, attribute: str, value: str) -> str | None:
    """Refuse relative addresses too: they would be addresses of this server."""
    return None if attribute == "href" and value.partition(":")[0].lower() not in _SCHEMES else value
