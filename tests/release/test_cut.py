"""What `make release` refuses before it builds anything, and what it does not repeat."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from release.cut import PROOFS, NotReady, notes, require_commit, require_tag, run_once
from release.extras import OF_DEVELOPERS, ROOT, extras

from release import cut

CHANGELOG = "# Changelog\n\n## 0.2.0\n\n- New.\n\n## 0.1.0rc1 (2030-01-01)\n\n- First.\n"


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Commits a package of a version to a repository that `release.cut` takes for its own."""
    for name, own in (("ROOT", tmp_path), ("STATE", tmp_path / "dist" / "release.json")):
        monkeypatch.setattr(cut, name, own)
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "a@example.org")
    (tmp_path / "dist").mkdir()
    (tmp_path / ".gitignore").write_text("dist\n")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    cut.git("init", "--quiet")

    def make(version: str) -> str:
        (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
        cut.git("add", "--all")
        cut.git("commit", "--quiet", "--allow-empty", "--message", version)
        return cut.git("rev-parse", "HEAD")

    return make


def test_a_commit_of_that_version_with_its_changelog_is_ready(commit: Callable[[str], str]) -> None:
    made = commit("0.1.0rc1")
    assert require_commit("0.1.0rc1") == made
    assert notes("0.1.0rc1") == "- First.\n"
    assert notes("0.1.0rc10") is None


@pytest.mark.parametrize(
    ("package", "version", "words"),
    [
        ("0.1.0rc1", "", "VERSION must be a release"),
        ("0.1.0rc1", "v0.1.0rc1", "VERSION must be a release"),
        ("0.1.0rc2.dev0", "0.1.0rc1", "set it to 0.1.0rc1"),
        ("0.3.0", "0.3.0", "no heading '## 0.3.0'"),
    ],
)
def test_another_version_is_refused(commit: Callable[[str], str], package: str, version: str, words: str) -> None:
    commit(package)
    with pytest.raises(NotReady, match=re.escape(words)):
        require_commit(version)


def test_a_changed_tree_is_refused(commit: Callable[[str], str], tmp_path: Path) -> None:
    commit("0.2.0")
    (tmp_path / "new.txt").write_text("")
    with pytest.raises(NotReady, match=r"new\.txt"):
        require_commit("0.2.0")


def test_a_tag_is_fine_on_this_commit_and_refused_on_another(commit: Callable[[str], str]) -> None:
    first = commit("0.2.0")
    assert not require_tag("v0.2.0", first)
    cut.git("tag", "v0.2.0")
    assert require_tag("v0.2.0", first)
    with pytest.raises(NotReady, match="take the next number"):
        require_tag("v0.2.0", commit("0.2.0"))


def test_a_step_that_passed_is_not_repeated_for_its_commit(commit: Callable[[str], str]) -> None:
    commit("0.2.0")
    ran: list[str] = []
    for at in ("a", "a", "b"):
        run_once(at, "a step", lambda: ran.append("a step"))
    assert len(ran) == 2


def test_a_step_that_failed_is_repeated(commit: Callable[[str], str]) -> None:
    commit("0.2.0")

    def fail() -> None:
        raise subprocess.CalledProcessError(1, "x", stderr="because")

    for _ in range(2):
        with pytest.raises(NotReady, match="because"):
            run_once("a", "a step", fail)


def test_each_extra_has_a_proof() -> None:
    assert set(PROOFS) == {"", *extras(without=OF_DEVELOPERS).split(",")}


def test_the_changelog_names_the_version_of_the_package() -> None:
    """A release has its own heading; what follows it is unreleased."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heading is not None
    assert heading[1] == ("Unreleased" if ".dev" in version else version)
