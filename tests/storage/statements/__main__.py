"""Writes the files of the statements: `python -m tests.storage.statements`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from chatledger.admin import migrate
from tests.postgres import server
from tests.storage.statements.files import write, written
from tests.storage.statements.scene import KINDS


def main() -> None:
    with server() as running, running.database() as pg_url, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.db"
        for url in (file, pg_url):
            migrate(url)
        for kind in KINDS:
            write(kind, asyncio.run(written(kind, str(file) if kind == "sqlite" else pg_url)))


if __name__ == "__main__":
    main()
