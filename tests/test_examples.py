"""The suite tries the same examples in each run, whatever else a process has imported."""

from __future__ import annotations

from hypothesis.internal.conjecture import providers

import chatledger.formats


def test_no_constant_of_an_imported_module_becomes_an_example() -> None:
    assert chatledger.formats.__file__ is not None
    assert len(providers._get_local_constants()) == 0
