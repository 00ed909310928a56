"""Real transcripts, in the folder that CHATLEDGER_TEST_DATA names. Without it nothing here is collected: a test that
cannot run is not a test that was skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "CHATLEDGER_TEST_DATA"
collect_ignore_glob = [] if os.environ.get(VARIABLE) else ["test_*.py"]


@pytest.fixture(scope="session")
def data() -> Path:
    folder = Path(os.environ[VARIABLE])
    assert folder.is_dir(), f"{VARIABLE} names no folder: {folder}"
    return folder
