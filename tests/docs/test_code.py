"""Every code block of the README and of the site runs, as a reader would run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.given import GIVEN
from tests.docs.pages import Reader, assert_shown, blocks
from tests.docs.parts import DOCS, ROOT

NEED_FRAMEWORKS = ("agent-framework", "google-adk", "langchain", "pydantic-ai")
ELSEWHERE = {
    "guides/adapters": "tests/adapters, with the frameworks",
    "guides/openai-conversations.md": "tests/server/conversations/test_guide.py, with a server",
    "contribute/write-a-format.md": "tests/formats/test_write_a_format.py",
    **{f"reference/formats/{name}.md": "tests/adapters/test_format_pages.py" for name in NEED_FRAMEWORKS},
}
"""Pages whose blocks other tests run."""

PAGES = [
    page
    for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    if any(blocks(page)) and not any(page.is_relative_to(DOCS / other) for other in ELSEWHERE)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_the_page_runs(page: Path, tmp_path: Path, pg_url: str) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    given = GIVEN.get(str(page.relative_to(DOCS)), dict) if page.is_relative_to(DOCS) else dict
    Reader(page, tmp_path, pg_url, names={"__name__": "__main__", **given()}).run()


def test_a_block_that_fails_or_prints_something_else_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for text, error in {
        "```python\nawait missing()\n```\n": NameError,
        '```python\nprint("a")\n```\n\n```text title="Output"\nb\n```\n': AssertionError,
        "```console\n$ chatledger threads --nonsense\n```\n": AssertionError,
        "```console\n$ false || exit 3\n```\n": AssertionError,
        "```console\n$ pip install 'chatledger[nonsense]'\n```\n": AssertionError,
        "```console\n$ make nonsense\n```\n": AssertionError,
        "```ruby\nputs 1\n```\n": AssertionError,
        "```json\n{1}\n```\n": ValueError,
    }.items():
        page.write_text(text, encoding="utf-8")
        with pytest.raises(error):
            Reader(page, tmp_path, "postgresql://localhost/none").run()
    assert_shown("took 17 ms\nb\n", "took … ms\nb\n", "here")
    with pytest.raises(AssertionError):
        assert_shown("took 17 ms\nb\nc\n", "took … ms\nb\n", "here")


def test_the_readme_stays_short() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.split()) <= 700
    assert readme.splitlines().index("```python") < 10
