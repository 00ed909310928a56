"""A plugin of pytest that notes which lines of the library each test runs, for `tests.faults.generated`."""

from __future__ import annotations

import os
from collections.abc import Generator

import coverage
import pytest

from tests.faults.mutant import path_of


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Contexts(os.environ["CHATLEDGER_COVERAGE"]))


class Contexts:
    def __init__(self, database: str) -> None:
        self._coverage = coverage.Coverage(
            database, config_file=False, include=[f"{path_of('')}/*"], concurrency=["thread", "greenlet"]
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.nodeid)
        return (yield)

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()
