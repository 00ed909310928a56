"""Markdown of an answer as HTML: what is kept, and what is not."""

from __future__ import annotations

import pytest

from chatledger.server.page.markdown import to_html


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
