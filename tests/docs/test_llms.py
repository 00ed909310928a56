"""llms.txt has every page of the navigation, with its first sentence."""

from __future__ import annotations

import re

from tests.docs.llms import llms, navigation
from tests.docs.parts import DOCS


def test_every_page_of_the_navigation_is_listed_with_a_sentence() -> None:
    listed = re.findall(r"^- \[.+\]\((.*)\.html\): (.+)$", llms(), re.MULTILINE)
    paths = [path.removesuffix(".md") for _, _, path in navigation() if path != "index.md" and (DOCS / path).exists()]
    assert [path for path, _ in listed] == paths
    assert [path for path, sentence in listed if not sentence.endswith((".", "?"))] == []
