"""Checks for `pytest.raises(…, check=…)`: errors of one class that differ in what they are about."""

from __future__ import annotations

from collections.abc import Callable

from chatledger.errors import EncryptionError, VersionConflict


def because(reason: str) -> Callable[[EncryptionError], bool]:
    return lambda error: error.reason == reason


def about(what: str) -> Callable[[VersionConflict], bool]:
    return lambda error: error.what == what
