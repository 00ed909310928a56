"""What `make audit` makes of an answer of pip-audit, in the form that pip-audit gives it."""

from __future__ import annotations

import json
from typing import Any

from release.advisories import CLEAN, FOUND, PROBE, UNANSWERED, verdict_of

ADVISORY = {"id": "PYSEC-2018-1", "fix_versions": ["2.0.1"], "aliases": [], "description": "x"}
KNOWN = {"name": PROBE[0], "version": PROBE[1], "vulns": [ADVISORY]}
SOUND = {"name": "alembic", "version": "1.20.1", "vulns": []}


def answer(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


def test_an_index_that_knows_the_probe_and_nothing_else_is_clean() -> None:
    assert verdict_of(answer(SOUND, KNOWN)) == (CLEAN, ["1 packages, and no known advisory"])


def test_each_advisory_is_a_line() -> None:
    found = verdict_of(answer({**SOUND, "vulns": [ADVISORY, {**ADVISORY, "id": "B", "fix_versions": []}]}, KNOWN))
    assert found.code == FOUND
    assert found.lines == ["alembic 1.20.1: PYSEC-2018-1, mended in 2.0.1", "alembic 1.20.1: B, mended in no version"]


def test_an_index_without_advisories_did_not_answer() -> None:
    """What the index of a mirror gives: each package skipped, or none with an advisory."""
    skipped = {"name": PROBE[0], "skip_reason": "Dependency not found on PyPI"}
    for probe in (skipped, {**KNOWN, "vulns": []}):
        code, lines = verdict_of(answer(SOUND, probe))
        assert (code, lines) == (UNANSWERED, ["no index answered with advisories, so nothing is known"])


def test_no_connection_says_why() -> None:
    code, lines = verdict_of("", "Traceback\nConnectionError: no route\n")
    assert (code, lines[-1]) == (UNANSWERED, "ConnectionError: no route")


def test_a_package_that_the_index_does_not_know_is_named() -> None:
    code, lines = verdict_of(answer({"name": "alembic", "skip_reason": "not found"}, KNOWN))
    assert (code, lines[-1]) == (UNANSWERED, "alembic: not found, so nothing is known of it")


def test_an_advisory_counts_also_if_another_package_is_unknown() -> None:
    unknown = {"name": "greenlet", "skip_reason": "not found"}
    code, lines = verdict_of(answer({**SOUND, "vulns": [ADVISORY]}, unknown, KNOWN))
    assert code == FOUND
    assert lines == ["alembic 1.20.1: PYSEC-2018-1, mended in 2.0.1", "greenlet: not found, so nothing is known of it"]
