"""The files of pins with hashes: what builds a release is named there completely, and nothing else is used."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "release"
PIN = re.compile(r"([A-Za-z0-9][\w.-]*)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins(text: str) -> dict[str, str]:
    """The version of each package. Raises for a line that is no pin with a hash."""
    found: dict[str, str] = {}
    for line in re.sub(r" \\\n\s*", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)).splitlines():
        pin = PIN.fullmatch(line)
        assert pin is not None, f"no pin with a hash: {line}"
        found[canonicalize_name(pin[1])] = pin[2]
    return found


def read(name: str) -> str:
    return (RELEASE / name).read_text(encoding="utf-8")


def asked(name: str) -> set[str]:
    return {canonicalize_name(line) for line in read(name).splitlines() if not line.startswith("#")}


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {
        canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines) if version
    }


def closure(names: set[str]) -> set[str]:
    """The packages and all that they need here."""
    found: set[str] = set()
    while missing := names - found:
        found |= missing
        needed = [Requirement(line) for name in missing for line in requires(name) or ()]
        names = names | {
            canonicalize_name(one.name) for one in needed if not one.marker or one.marker.evaluate({"extra": ""})
        }
    return found


def test_each_package_that_builds_is_pinned_with_a_hash_and_no_other() -> None:
    assert set(pins(read("build.txt"))) == closure(asked("build.in"))


def test_what_pyproject_needs_to_build_is_among_them_in_a_version_that_it_accepts() -> None:
    pinned = pins(read("build.txt"))
    for line in PYPROJECT["build-system"]["requires"]:
        needed = Requirement(line)
        assert canonicalize_name(needed.name) in asked("build.in")
        assert pinned[canonicalize_name(needed.name)] in needed.specifier


@pytest.mark.parametrize("name", ["build", "tools"])
def test_the_versions_are_those_of_the_other_environments(name: str) -> None:
    tested, pinned = constraints(), pins(read(f"{name}.txt"))
    assert asked(f"{name}.in") <= set(pinned), "make lock"
    assert {one: pinned[one] for one in pinned if one in tested} == {
        one: tested[one] for one in pinned if one in tested
    }


@pytest.mark.parametrize("name", ["build.in", "build.txt", "tools.in", "tools.txt"])
def test_no_file_names_an_index_or_a_folder_of_a_machine(name: str) -> None:
    for line in read(name).splitlines():
        assert not re.match(r"\s*-", line.replace("    --hash=", "hash")), line
        assert not re.search(r"://|(?<!\.\.)/\w+/", line), line


@pytest.mark.parametrize("line", ["build==1.6.1", "build>=1.6 --hash=sha256:" + "a" * 64, "--pre"])
def test_a_line_without_a_version_or_a_hash_is_noticed(line: str) -> None:
    with pytest.raises(AssertionError, match="no pin with a hash"):
        pins(f"# A comment\n{line}\n")


@pytest.mark.parametrize("target", ["dist", "sbom", "audit", "lock"])
def test_nothing_is_installed_for_a_release_but_wheels_by_their_hashes(target: str) -> None:
    """-W pretends that the file of pins is new, so that make shows the installation too."""
    shown = ["make", "-n", "-W", "release/build.txt", "-W", "release/tools.txt", target]
    said = subprocess.run(shown, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    installed = [line for line in said.splitlines() if "pip install" in line]
    assert installed
    for line in installed:
        assert "--require-hashes --only-binary :all: --requirement release/" in line
    for line in said.splitlines():
        assert "-m build" not in line or "--no-isolation" in line
