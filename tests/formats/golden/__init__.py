"""Frozen decodes: what every reader of another party's JSON stores, above all the residual.

A residual is stored data. A database holds residuals that an earlier release wrote, so neither their keys nor their
shape may ever change. Each module here holds payloads that together make a format write every key of its residual; the
JSON file of the same name holds the messages that were read from them. After a deliberate addition, write the files
again and look at the difference:

    python -m tests.formats.golden
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

NAMES = (
    "agent_framework",
    "agent_service",
    "ai_sdk",
    "anthropic",
    "google_adk",
    "import_shapes",
    "kosong",
    "langchain",
    "message_file",
    "openai_chat",
    "openai_responses",
    "pydantic_ai",
    "qwen_agent",
    "streams",
)
Cases = Mapping[str, Sequence[BaseModel]]


def path_of(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.json")


def read_now(name: str) -> str:
    """The text of a golden file as today's code gives it: one line for each message, below the name of its case."""
    cases: Cases = importlib.import_module(f"{__name__}.{name}").cases()
    return "{\n" + ",\n".join(_case(case, read) for case, read in cases.items()) + "\n}\n"


def _case(name: str, read: Sequence[BaseModel]) -> str:
    # Pydantic's own JSON refuses lone surrogates, and sorting the keys would hide their order.
    lines = (f"  {json.dumps(_dumped(model))}" for model in read)
    return f"{json.dumps(name)}: [\n" + ",\n".join(lines) + "\n]"


def _dumped(model: BaseModel) -> dict[str, object]:
    return {key: value for key, value in model.model_dump().items() if value is not None}
