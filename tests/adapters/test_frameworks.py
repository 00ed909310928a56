"""The frameworks are there, at the versions that the requirements name, with the contracts that adapters implement."""

from __future__ import annotations

import importlib
import inspect
from importlib.metadata import version
from pathlib import Path

import pytest

REQUIREMENTS = (Path(__file__).parent / "requirements.txt").read_text().splitlines()
PINS = dict(line.split("#")[0].strip().split("==") for line in REQUIREMENTS if line and not line.startswith("#"))

CONTRACTS = [
    ("agent-framework-core", "agent_framework", "HistoryProvider", {"get_messages", "save_messages"}),
    ("agent-framework-core", "agent_framework", "SessionStore", {"get", "set", "delete"}),
    ("google-adk", "google.adk.sessions", "BaseSessionService", {"append_event", "get_session", "list_sessions"}),
    ("langchain-core", "langchain_core.chat_history", "BaseChatMessageHistory", {"messages", "add_messages", "clear"}),
    ("langchain-community", "langchain_community.chat_message_histories", "SQLChatMessageHistory", {"aget_messages"}),
    ("langchain-postgres", "langchain_postgres", "PostgresChatMessageHistory", {"aget_messages"}),
    ("langgraph", "langgraph.graph", "StateGraph", {"add_node", "compile"}),
    ("openai-agents", "agents.memory", "SessionABC", {"get_items", "add_items", "pop_item", "clear_session"}),
    ("pydantic-ai-slim", "pydantic_ai.conversation_store", "ConversationStore", {"load", "save", "read_history"}),
]


def test_every_framework_has_a_contract_here() -> None:
    assert set(PINS) == {package for package, *_ in CONTRACTS}


@pytest.mark.filterwarnings("ignore:`langchain-community` is being sunset:DeprecationWarning")
@pytest.mark.parametrize(("package", "module", "name", "members"), CONTRACTS, ids=[name for _, _, name, _ in CONTRACTS])
def test_the_framework_has_the_contract(package: str, module: str, name: str, members: set[str]) -> None:
    assert version(package) == PINS[package]
    contract = getattr(importlib.import_module(module), name)
    assert inspect.isclass(contract)
    declared = {*dir(contract), *inspect.get_annotations(contract)}
    assert members <= declared, members - declared
