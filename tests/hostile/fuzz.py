"""The decoders, and the import of files, under payloads that are guided by coverage, for as long as one likes:

    python -m tests.hostile.fuzz FORMAT SECONDS
    python -m tests.hostile.fuzz import-files SECONDS

It needs atheris, which is made for some versions of Python only: `tests/hostile/fuzz.txt`. The targets are those of the
suite; a payload that fails is printed by Hypothesis, and its bytes are saved by atheris.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def target(name: str) -> Callable[[bytes], Any]:
    from tests.hostile.payloads import anything, mutated
    from tests.hostile.targets import decode, recognise_any, write_everywhere

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(payload=mutated(name) | anything, rules=st.sampled_from(["lenient", "strict"]))
    def hold(payload: Any, rules: Any) -> None:
        recognise_any(payload)
        write_everywhere(decode(name, payload, rules))

    fuzz: Callable[[bytes], Any] = hold.hypothesis.fuzz_one_input  # type: ignore[attr-defined]
    return fuzz


def file_target() -> Callable[[bytes], Any]:
    from chatledger.formats import format_names
    from tests.hostile.payloads import damaged_file
    from tests.hostile.targets import plan_file

    names, rules = st.sampled_from(["auto", *format_names()]), st.sampled_from(["lenient", "strict"])

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(content=damaged_file() | st.binary(), name=names, rules=rules)
    def hold(content: bytes, name: str, rules: Any) -> None:
        plan_file(content, name, rules)

    fuzz: Callable[[bytes], Any] = hold.hypothesis.fuzz_one_input  # type: ignore[attr-defined]
    return fuzz


def main() -> None:
    name, seconds = sys.argv[1:]
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["chatledger.formats", "chatledger.models", "chatledger.transfer"]):
        one_input = file_target() if name == "import-files" else target(name)
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2000"], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
