"""The generated mutants: a run tells one that a test finds from one that no test finds, and which are lost."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from tests.faults.drawn import NUMBER, faults_of
from tests.faults.generated import Row, choose, outcome, read, report
from tests.faults.mutant import Fault, change, path_of

SOURCE = path_of("ids.py").read_text()
FAULTS = {(fault.stands.strip(), fault.replaced): fault for fault in faults_of("ids.py", SOURCE)}
LENGTH = FAULTS['return len(encoded).to_bytes(8, "big") + encoded', "8"]
NEW = FAULTS["return new_ids(1)[0]", "1"]


@pytest.mark.parametrize(("fault", "found"), [(LENGTH, "killed"), (NEW, "survived")], ids=["killed", "survived"])
def test_a_mutant_is_killed_by_a_test_that_fails(fault: Fault, found: str) -> None:
    tests = ["tests/test_ids.py::test_a_derived_id_is_a_uuid_of_the_hash_of_its_parts"]  # it makes no new id
    assert outcome(fault, tests) == found


def test_a_mutant_that_no_test_covers_is_not_killed() -> None:
    assert outcome(LENGTH, []) == "uncovered"


def test_faults_of_each_kind_change_the_functions_and_nothing_else() -> None:
    source = "a = 1\n\ndef f(é, b=2):\n    assert b == 3\n    é.x = f'{b + 1}'\n    return é and b if b < 4 else b\n"
    changed = [change(source, fault).splitlines() for fault in faults_of("f.py", source)]
    assert [[line for line in lines if line not in source.splitlines()] for lines in changed] == [
        ["    pass"],
        ["    return é and b if not (b < 4) else b"],
        ["    return é and b if (b <= 4) else b"],
        ["    return é and b if b < 5 else b"],
        ["    return (é or b) if b < 4 else b"],
    ]


def test_a_fault_follows_its_line_and_is_refused_when_that_has_changed() -> None:
    fault = LENGTH
    assert change(f"# Another line.\n{SOURCE}", fault) == f"# Another line.\n{change(SOURCE, fault)}"
    with pytest.raises(ValueError, match=rf"ids.py:{fault.line} does not read '8' any more"):
        change(SOURCE.replace("to_bytes(8,", "to_bytes(16,"), fault)
    assert outcome(replace(fault, stands="no line"), []) == "gone"


def test_a_case_of_each_function_comes_first_and_what_covers_least() -> None:
    tests = ["a::f[1]", "a::f[2]", "a::g[postgresql]", "a::g[sqlite]", "b::h"]
    chosen = choose(tests, Counter([*tests, "a::f[1]"]))
    assert chosen == ["a::f[2]", "a::g[sqlite]", "b::h", "a::g[postgresql]", "a::f[1]"]


def test_only_a_mutant_that_was_killed_and_has_no_reason_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    fault = LENGTH
    rows = [Row(fault, "killed", "equal"), Row(fault, "survived"), Row(fault), Row(fault, "timed out")]
    assert report(rows, {0: "survived", 1: "survived", 2: "survived", 3: "killed"}) == 0
    assert report(rows, {3: "survived"}) == 1
    assert f"ids.py:{fault.line} was killed, is survived: 8 → 9" in capsys.readouterr().out


def test_the_stored_mutants_are_different_faults() -> None:
    assert len({json.dumps(vars(row.fault)) for row in read()}) == NUMBER
