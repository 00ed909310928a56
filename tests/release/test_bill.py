"""The SBOM: what `make sbom` installs and writes down."""

from __future__ import annotations

import tomllib
from pathlib import Path

from release.bill import without_places
from release.extras import OF_DEVELOPERS, ROOT, extras, write_constraints

EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])


def test_each_extra_that_a_program_can_install_is_in_it() -> None:
    assert set(extras(without=OF_DEVELOPERS).split(",")) | OF_DEVELOPERS == EXTRAS
    assert set(extras().split(",")) == EXTRAS


def test_it_names_no_file_of_the_machine_that_made_it() -> None:
    vcs = {"type": "vcs", "url": "https://example.org/a"}
    there = {"type": "distribution", "url": "file:///somewhere/dist/chatledger-0.1.0-py3-none-any.whl"}
    bill = {"components": [{"name": "a", "externalReferences": [there, vcs]}]}
    assert without_places(bill) == {"components": [{"name": "a", "externalReferences": [vcs]}]}


def test_its_versions_are_those_of_the_suite(tmp_path: Path) -> None:
    tested = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    left_out = set(tested) - set(write_constraints(tmp_path).read_text(encoding="utf-8").splitlines())
    assert {line.partition("==")[0].partition("-")[0] for line in left_out} == {"opentelemetry"}
