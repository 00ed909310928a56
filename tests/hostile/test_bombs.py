"""Depth and size bombs: each is taken or refused by every decoder within a bound of memory and processor time that the
system holds, in a process of its own. A bomb is a few megabytes; what it could grow to is not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MEMORY = 1_000
"""Megabytes of address space, of which the imports take some 400."""
SECONDS = 60
"""Of processor time, for all formats together: for a machine that is much slower, and far below what a bomb takes."""

PRELUDE = """
import resource, sys
from tests.hostile.targets import decode, recognise_any, write_everywhere
from chatledger.formats import format_names, get_codec
for name in format_names():
    get_codec(name)
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]),) * 2)

def say(content):
    return [{"role": "user", "type": "human", "content": content, "extra": content, "custom_data": content}]

def deep(depth):
    value = "x"
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value
"""
BOMBS = {
    "as_deep_as_is_kept": "say(deep(480))",
    "deeper_than_is_kept": "say(deep(100_000))",
    "a_long_list_below_a_long_key": 'say({"k" * 1_000_000: list(range(30_000))})',
    "the_same_with_something_that_is_not_json": 'say({"k" * 1_000_000: [*range(30_000), object()]})',
    "long_keys_in_each_other": 'say({"k" * 300_000: {"l" * 300_000: {"m" * 300_000: [0] * 10_000}}})',
    "many_messages": 'say("x") * 2_000',
    "many_parts": 'say([{"type": "text", "text": "x"}] * 5_000)',
    "many_open_calls": """[{"role": "assistant", "type": "ai", "content": "", "tool_calls": [
        {"id": "c", "type": "function", "name": "f", "args": {}, "function": {"name": "f", "arguments": "{}"}}
    ] * 1_000}]""",
    "a_list_in_itself": "say((lambda one: (one.append(one), one.append(one), one)[2])([]))",
    "a_long_text": 'say("x" * 20_000_000)',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_stays_within_its_bounds(bomb: str) -> None:
    program = f"""{PRELUDE}
payload = {BOMBS[bomb]}
for name in format_names():
    for rules in ("strict", "lenient"):
        decode(name, payload, rules)
recognise_any(payload)
"""
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", program, str(MEMORY), str(SECONDS)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
    )
    assert process.returncode == 0, process.stderr[-2000:]
