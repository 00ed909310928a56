"""Each module belongs to core or to one annex, and core stays within its budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core import ANNEXES, TABLE, holds_core, is_core, is_in, is_of_core, modules
from tests.without_annexes import delete, options

TESTS = Path(__file__).parent
MODULES = modules()


def test_each_module_is_of_core_or_of_one_annex() -> None:
    homes = {module: [is_core(module), *(is_in(module, annex) for annex in ANNEXES)] for module in MODULES}
    assert [module for module, found in homes.items() if sum(found) != 1] == []


def test_the_core_stays_within_its_budget() -> None:
    counts = {name: len(path.read_bytes().splitlines()) for name, path in MODULES.items() if is_core(name)}
    assert sum(counts.values()) <= TABLE["budget"]["lines"], sorted(counts.items(), key=lambda one: -one[1])[:20]


@pytest.mark.parametrize("entries", ["core", "of_annexes", "quick"])
def test_the_table_names_tests_that_exist(entries: str) -> None:
    for entry in TABLE["tests"][entries]:
        path, _, test = entry.partition("::")
        found = TESTS / path
        assert found.exists(), entry
        assert not test or f"def {test.partition('[')[0]}(" in found.read_text(encoding="utf-8"), entry


def test_a_case_is_of_an_annex_and_its_function_of_core() -> None:
    name = "tests/storage/repositories/test_arguments.py::test_an_argument_of_another_type_is_refused_by_its_name"
    assert is_of_core(f"{name}[runs.start]")
    assert not is_of_core(f"{name}[runs.usage]")
    assert not is_of_core("tests/telemetry/test_otel.py::test_it[sqlite]")
    assert not is_of_core("tests/cli/test_sql.py")
    work = "tests/storage/repositories/test_same_work.py::test_another_users_thread_costs_the_work_of_none"
    assert is_of_core(f"{work}[sqlite-rewind]")
    assert not is_of_core(f"{work}[sqlite-sum the runs of a thread]")


def test_for_core_other_folders_are_not_entered() -> None:
    for folder in ("tests", "tests/formats", "tests/storage", "tests/storage/append"):
        assert holds_core(folder)
    for folder in ("tests/message_file", "tests/formats/kosong", "tests/form"):
        assert not holds_core(folder)


def test_each_annex_is_deleted_unless_some_are_named() -> None:
    assert options([]).annexes == [*ANNEXES, "all"]
    assert options(["--part", "whole", "all"]).annexes == ["all"]
    with pytest.raises(SystemExit):
        options(["chatledger.storage"])


def test_a_copy_lacks_the_annex_and_its_tests(tmp_path: Path) -> None:
    for place in ("src/chatledger/telemetry/otel.py", "src/chatledger/telemetry/calls.py", "src/chatledger/cli/app.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    (tmp_path / "tests" / "cli").mkdir(parents=True)
    for annex in ("chatledger.cli", "chatledger.telemetry.otel"):
        delete(tmp_path, annex)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")] == [
        "src/chatledger/telemetry/calls.py"
    ]
    assert not (tmp_path / "tests" / "cli").exists()
