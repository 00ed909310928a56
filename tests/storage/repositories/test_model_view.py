from __future__ import annotations

from typing import Any, cast

import pytest

from chatledger import ChatMessage, Ledger, OpaquePart, Payload, ThinkPart, Turns
from chatledger.errors import NothingToSend, UnknownFormat
from chatledger.models.json import same_json
from chatledger.types import PromptFormat
from tests.conversations import assistant, call, turn, user


async def test_the_model_view_repairs_the_history_and_changes_no_row(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a")]), user("Well?")], rules="lenient")
    stored = await ledger.messages.history("t")
    viewed = await ledger.messages.prompt("t", "openai-chat")
    assert [wire["role"] for wire in viewed.payload] == ["user", "assistant", "tool", "user"]
    assert [(repair.code, repair.seq) for repair in viewed.repairs] == [("open-call", 2)]
    assert viewed.history == await ledger.messages.history("t") == stored


async def test_a_valid_history_is_viewed_as_it_is_stored(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn())
    stored = (await ledger.messages.history("t", Turns(1))).encode("openai-chat")
    prompt = await ledger.messages.prompt("t", "openai-chat", Turns(1))
    assert (prompt.payload, prompt.repairs) == (stored.payload, ())


async def test_a_format_without_a_provider_has_no_model_view(ledger: Ledger) -> None:
    with pytest.raises(UnknownFormat, match=r"'kosong/0\.30'; a model view exists for .* openai-chat") as caught:
        await ledger.messages.prompt("nowhere", "kosong")  # type: ignore[arg-type]
    assert caught.value.format == "kosong/0.30"


PROVIDERS: list[PromptFormat] = ["anthropic", "openai-chat", "openai-responses"]
INSTRUCTIONS = "instructions are not sent as a message"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_view_without_messages_is_refused_and_says_why(ledger: Ledger, provider: PromptFormat) -> None:
    shown = ChatMessage(role="custom", content="shown")
    await ledger.threads.create("t")
    await ledger.messages.append("t", [shown, shown, shown, shown, assistant("I am", state="partial")])
    with pytest.raises(NothingToSend) as caught:
        await ledger.messages.prompt("t", provider)
    custom = "custom messages are for display only: left out"
    assert caught.value.format == provider
    assert caught.value.reasons == tuple((seq, custom) for seq in range(1, 5))
    assert str(caught.value) == (
        f"nothing to send as {provider!r}, which needs a message of the user or the assistant: "
        f"messages 1, 2, 3 and 1 more: {custom}"
    )
    assert len(await ledger.messages.history("t")) == 4


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_view_of_nothing_is_refused(ledger: Ledger, provider: PromptFormat) -> None:
    await ledger.threads.create("t")
    with pytest.raises(NothingToSend, match="there is no message") as caught:
        await ledger.messages.prompt("t", provider)
    assert caught.value.reasons == ()


async def test_instructions_alone_are_messages_to_openai_and_not_to_anthropic(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [ChatMessage(role="system", content="Be brief.")])
    for provider in ("openai-chat", "openai-responses"):
        viewed = await ledger.messages.prompt("t", provider)
        assert viewed.payload == [{"role": "system", "content": "Be brief."}]
    with pytest.raises(NothingToSend) as caught:
        await ledger.messages.prompt("t", "anthropic")
    assert caught.value.reasons == ((1, INSTRUCTIONS),)
    assert (await ledger.messages.history("t")).encode("anthropic").payload == {"system": "Be brief.", "messages": []}


async def test_instructions_beside_the_input_alone_are_refused(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", Payload({"instructions": "Be brief."}, "openai-responses"))
    with pytest.raises(NothingToSend) as caught:
        await ledger.messages.prompt("t", "openai-responses")
    assert caught.value.reasons == ((1, INSTRUCTIONS),)


async def test_content_of_another_format_alone_is_nothing_to_send(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    weird = OpaquePart(type="weird", value={"type": "weird"})
    thought = ThinkPart(text="hm", signature="sig")
    await ledger.messages.append("t", [ChatMessage(role="user", content=[weird]), assistant(reasoning=[thought])])
    with pytest.raises(NothingToSend) as caught:
        await ledger.messages.prompt("t", "anthropic")
    assert [seq for seq, _ in caught.value.reasons] == [1, 2]
    assert all(reason.endswith("left out") for _, reason in caught.value.reasons)


ASKED = {"role": "user", "content": "What is new?"}
ANSWERED = {"type": "text", "text": "Much."}
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "sig"}
SEARCHED = {"name": "search", "input": {"query": "news"}}
CUSTOM = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
OUTPUT = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
SOUND = {"id": "audio_1", "data": "AAAA", "expires_at": 1, "transcript": "Much."}

BUILT_IN: dict[str, list[list[Any]]] = {
    "anthropic": [
        [{"type": "redacted_thinking", "data": "enc"}, ANSWERED],
        [SIGNED, {"type": "redacted_thinking", "data": "enc"}, SIGNED, ANSWERED],
        [
            {"type": "server_tool_use", "id": "s_1", "name": "web_search", "input": {"query": "news"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s_1",
                "content": [{"type": "web_search_result", "url": "https://example.org", "encrypted_content": "enc"}],
            },
            {**ANSWERED, "citations": [{"type": "web_search_result_location", "url": "https://example.org"}]},
        ],
        [
            {"type": "mcp_tool_use", "id": "m_1", "server_name": "s", **SEARCHED},
            {"type": "mcp_tool_result", "tool_use_id": "m_1", "is_error": False, "content": [ANSWERED]},
            ANSWERED,
        ],
        [
            {"type": "server_tool_use", "id": "s_2", "name": "code_execution", "input": {"code": "1"}},
            {
                "type": "code_execution_tool_result",
                "tool_use_id": "s_2",
                "content": {"type": "code_execution_result", "stdout": "1", "return_code": 0},
            },
            ANSWERED,
        ],
    ],
    "openai-responses": [
        [
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
            {
                **OUTPUT,
                "content": [{"type": "output_text", "text": "Much.", "annotations": [{"type": "url_citation"}]}],
            },
        ],
        [
            {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"},
            {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "f", "arguments": "{}", "output": "1"},
        ],
        [{"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["news"], "results": None}],
        [{"type": "code_interpreter_call", "id": "ci_1", "container_id": "c", "code": "1", "outputs": []}],
        [{"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"}],
        [{"type": "compaction", "id": "cmp_1", "encrypted_content": "enc"}],
        [
            {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "f", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        ],
    ],
    "openai-chat": [
        [{"role": "assistant", "content": None, "refusal": "No."}],
        [{"role": "assistant", "content": None, "audio": SOUND}],
        [{"role": "assistant", "content": "Much.", "annotations": [{"type": "url_citation", "url_citation": {}}]}],
        [
            {"role": "assistant", "content": None, "tool_calls": [CUSTOM]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ],
    ],
}


@pytest.mark.parametrize(("format_", "items"), [(name, items) for name, cases in BUILT_IN.items() for items in cases])
async def test_what_a_provider_made_itself_comes_back_in_both_views(
    ledger: Ledger, format_: str, items: list[Any]
) -> None:
    """But for keys that only a reply of a chat has."""
    if format_ == "anthropic":
        payload: Any = {"system": "Be brief.", "messages": [ASKED, {"role": "assistant", "content": items}, ASKED]}
    else:
        payload = [ASKED, *items, ASKED]
    await ledger.threads.create("t")
    await ledger.messages.append("t", Payload(payload, format_), rules="strict")
    found = (await ledger.messages.history("t")).encode(format_)
    assert same_json(found.payload, payload)
    assert list(found.losses) == []
    prompt = await ledger.messages.prompt("t", cast(PromptFormat, format_))
    sent = [*map(as_request, payload)] if format_ == "openai-chat" else payload
    assert same_json(prompt.payload, sent)
    assert [repair.code for repair in prompt.repairs] == ([] if sent == payload else ["keys"])


def as_request(message: dict[str, Any]) -> dict[str, Any]:
    wire = {key: value for key, value in message.items() if key != "annotations"}
    return {**wire, "audio": {"id": wire["audio"]["id"]}} if "audio" in wire else wire
