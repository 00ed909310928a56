"""The real package's models, and conversations that its agents produced with a scripted model."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).parent / "cases"


@pytest.fixture(scope="session")
def upstream() -> Any:
    """The schema module alone: importing the package would load every model backend, and numpy with them."""
    path = distribution("qwen-agent").locate_file("qwen_agent/llm/schema.py")
    spec = importlib.util.spec_from_file_location("qwen_agent_schema", str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def conversation() -> Callable[[str], list[dict[str, Any]]]:
    def read(name: str) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = json.loads((CASES / f"{name}.json").read_text("utf-8"))
        return messages

    return read
