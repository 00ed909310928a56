"""The rows of `mutants.toml` name words and tests that are there, and a process that runs one keeps nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from chatledger.storage.databases import retries
from tests import VARIABLE
from tests.faults.mutant import ROOT, Mutant, path_of, read_mutants, reword
from tests.faults.mutants import sample

MUTANTS = read_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_can_be_made_and_has_a_test(mutant: Mutant) -> None:
    assert mutant.source
    for file, words in mutant.source.items():
        compile(reword(path_of(file).read_text(), words), file, "exec")
    file, _, name = mutant.test.partition(" -k ")[0].partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / "tests" / file).read_text()


def test_samples_with_numbers_in_turn_run_each_mutant_once() -> None:
    ran = [mutant.name for first in range(360, 380) for mutant in sample(MUTANTS, f"{first}/20")]
    assert sorted(ran) == sorted(mutant.name for mutant in MUTANTS)


def test_a_mutant_is_gone_with_its_process() -> None:
    assert _pauses({VARIABLE: "connect-pauses"}) == "(0.0,)"
    assert _pauses({}) == str(retries._PAUSES)


def _pauses(environment: dict[str, str]) -> str:
    program = "import tests; from chatledger.storage.databases import retries; print(retries._PAUSES)"
    command = [sys.executable, "-c", program]
    return subprocess.check_output(command, cwd=ROOT, env=os.environ | environment, text=True).strip()
