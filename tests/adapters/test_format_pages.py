"""The code of the pages of formats that need a framework runs, with models that answer from a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import Reader
from tests.docs.parts import DOCS


def agent_framework() -> dict[str, Any]:
    from tests.adapters.agent_framework.scripted import Scripted

    return {"client": Scripted(["It is 4 °C."], ["It is 7 °C."])}


def langchain() -> dict[str, Any]:
    from langchain_core.language_models import FakeListChatModel

    return {"model": FakeListChatModel(responses=["It is 4 °C."])}


def pydantic_ai() -> dict[str, Any]:
    from pydantic_ai.models.test import TestModel

    return {"model": TestModel(custom_output_text="It is 4 °C.")}


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "agent-framework": agent_framework,
    "google-adk": dict,
    "langchain": langchain,
    "pydantic-ai": pydantic_ai,
}


@pytest.mark.parametrize("name", GIVEN)
def test_the_code_of_the_page_runs(name: str, tmp_path: Path) -> None:
    page = DOCS / "reference" / "formats" / f"{name}.md"
    Reader(page, tmp_path, "postgresql://localhost/none", names={"__name__": "__main__", **GIVEN[name]()}).run()
