"""Ours against what the real packages gave: one file of `cases` is one case. `real.py` makes and checks them."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from chatledger.models import ChatMessage
from tests.formats.kosong.play import dumps_of, make, play

CASES = Path(__file__).parent / "cases"
MODULES = {"kosong-0.23": "chatledger.formats.kosong.v0_23", "kosong-0.30": "chatledger.formats.kosong"}


def cases(*, dumped: bool = False) -> list[Any]:
    found = [
        (importlib.import_module(MODULES[path.parent.name]), json.loads(path.read_text(encoding="utf-8")), path)
        for path in sorted(CASES.glob("*/*.json"))
    ]
    return [
        pytest.param(module, case, id=f"{path.parent.name}-{path.stem}")
        for module, case, path in found
        if not dumped or "dump" in case["gives"]
    ]


@pytest.mark.parametrize(("module", "case"), cases())
def test_our_classes_equal_the_real_ones(module: Any, case: dict[str, Any]) -> None:
    assert play(case["make"], module) == case.get("ours", case["gives"])


@pytest.mark.parametrize(("module", "case"), cases(dumped=True))
def test_a_stored_message_equals_the_real_one(module: Any, case: dict[str, Any]) -> None:
    messages = module.CODEC.decode([make(case["make"], module)]).messages
    again = [ChatMessage.model_validate(message.model_dump()) for message in messages]
    [back] = module.CODEC.as_models(module.CODEC.encode(again).payload)
    assert dumps_of(back) == case["gives"]


@pytest.mark.parametrize(("module", "case"), cases(dumped=True))
@pytest.mark.parametrize("form", ["dump", "dump exclude_none", "dump exclude_unset", "json exclude_none"])
def test_a_dump_of_the_real_one_comes_back_as_a_dict(module: Any, case: dict[str, Any], form: str) -> None:
    row = json.loads(case["gives"][form])
    [back] = module.CODEC.encode(module.CODEC.decode([row]).messages).payload
    assert json.dumps(back) == json.dumps(row)


def test_only_unknown_parts_differ_from_upstream() -> None:
    differing = sorted(path.stem for path in CASES.glob("*/*.json") if '"ours"' in path.read_text(encoding="utf-8"))
    assert differing == ["read_unknown_part", "read_unknown_part", "read_video"]
