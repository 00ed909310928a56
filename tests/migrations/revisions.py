"""The revisions there are, read from their files: a new one is covered as soon as it is there."""

from __future__ import annotations

import re

from alembic.config import Config
from alembic.script import Script, ScriptDirectory

from chatledger.storage.upgrade import revisions as upgrade
from chatledger.storage.upgrade import versions

HEAD = versions.HEAD
NEXT, BEYOND = (f"{int(HEAD) + steps:04}" for steps in (1, 2))
"""The revisions of later releases: a step that this release still opens, and one that it refuses."""


def scripts() -> list[Script]:
    """From the first to the newest."""
    config = Config()
    config.set_main_option("script_location", str(upgrade.scripts_folder()))
    return list(ScriptDirectory.from_config(config).walk_revisions())[::-1]


def revisions() -> list[str]:
    return [script.revision for script in scripts()]


def below(revision: str) -> str:
    """The revision below, after one downgrade."""
    known = ["base", *revisions()]
    return known[known.index(revision) - 1]


FILE_NAME = re.compile(r"(\d{4})_[a-z0-9]+(_[a-z0-9]+)*\.py")
