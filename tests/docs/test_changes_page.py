"""The changelog has the sections that readers look for, and upgrade notes for each revision of the schema."""

from __future__ import annotations

import re

from tests.docs.parts import DOCS, ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_sections_are_in_their_order() -> None:
    sections = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    releases = TEXT.partition("\n## Upgrade notes\n")[0].split("\n## ")[1:]
    assert [re.findall(r"^### (.*)$", release, re.MULTILINE) for release in releases] == [sections] * len(releases)


def test_each_revision_has_upgrade_notes() -> None:
    revisions = sorted(path.name[:4] for path in (ROOT / "migrations" / "versions").glob("[0-9]*.py"))
    notes = TEXT.partition("\n## Upgrade notes\n")[2]
    assert re.findall(r"^### Schema (\d{4})$", notes, re.MULTILINE) == revisions
    assert f"schema `{revisions[-1]}`." in notes


def test_the_site_shows_the_changelog() -> None:
    assert (DOCS / "reference" / "changes.md").read_text(encoding="utf-8") == '--8<-- "CHANGELOG.md"\n'
