"""A release that is not made yet: the revisions that there are and one more, and code that expects it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chatledger.storage.upgrade import revisions, versions

_HEADER = '''"""Of a test."""
import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{below}"
branch_labels = None
depends_on = None
'''


def later_revision(body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The number of a revision with this upgrade and downgrade, which is HEAD for the rest of the test."""
    number = f"{int(versions.HEAD) + 1:04}"
    target = folder / "migrations"
    shutil.copytree(revisions.scripts_folder(), target, ignore=shutil.ignore_patterns("__pycache__"))
    header = _HEADER.format(revision=number, below=versions.HEAD)
    (target / "versions" / f"{number}_later.py").write_text(header + body)
    monkeypatch.setattr(revisions, "scripts_folder", lambda: target)
    monkeypatch.setattr(versions, "HEAD", number)
    return number
