"""A file in the database: what is written, when, and what others see of it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, ToolCall, VersionConflict
from chatledger.errors import IdConflict
from chatledger.formats.message_file import MessageOutputBuilder
from chatledger.message_file import MessageFile
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.repositories.outputs import list_agents, list_outputs
from tests.message_file.conftest import Reopen
from tests.message_file.shapes import contents, dicts, names, ran, said


async def roles(ledger: Ledger) -> list[str]:
    return [message.role for message in await ledger.messages.history("t")]


async def beside(ledger: Ledger) -> list[tuple[int, int | None, str]]:
    return [(output.seq, output.call_idx, output.text) for output in await list_outputs(scope_of(ledger), "t")]


async def test_nothing_is_written_before_save(file: MessageFile, ledger: Ledger) -> None:
    file.add_message("x")
    assert (await roles(ledger), await list_agents(scope_of(ledger), "t")) == ([], [])


async def test_a_turn_is_a_conversation_that_any_format_reads(file: MessageFile, ledger: Ledger) -> None:
    message = file.add_message("How warm?")
    file.add_function_call("message_1", "forecast", {"city": "Tokyo"}).add_output(ran("21\n"))
    message.add_output(said("21 degrees"))
    await file.save()
    history = (await ledger.messages.history("t")).encode("openai-chat")
    call = {"name": "forecast", "arguments": '{"city":"Tokyo"}'}
    assert history.payload == [
        {"role": "user", "name": "message_1", "content": "How warm?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "message_1_func_1", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "message_1_func_1", "content": "stdout> 21"},
        {"role": "assistant", "name": "weather", "content": "21 degrees"},
    ]
    assert all(message.violations == [] for message in await ledger.messages.history("t"))


async def test_outputs_of_the_last_turn_become_messages_when_they_come(file: MessageFile, ledger: Ledger) -> None:
    message = file.add_message("How warm?")
    await file.save()
    call = file.add_function_call("message_1", "forecast")
    await file.save()
    call.add_output(said("21"))
    await file.save()
    message.add_output(said("21 degrees"))
    await file.save()
    assert await roles(ledger) == ["user", "assistant", "tool", "assistant"]
    assert await beside(ledger) == []


async def test_outputs_added_later_change_no_committed_row(file: MessageFile, ledger: Ledger, reopen: Reopen) -> None:
    first = file.add_message("a")
    call = file.add_function_call("message_1", "f")
    file.add_message("b")
    await file.save()
    before = (await ledger.messages.history("t")).messages
    call.add_output(ran("late\n"))
    first.add_output(said("later"))
    await file.save()
    first.add_output(said("last"))
    await file.save()
    assert (await ledger.messages.history("t")).messages == before
    assert await beside(ledger) == [(1, None, "later"), (1, None, "last"), (2, 0, "stdout> late")]
    other = await reopen()
    assert contents(other) == [["later", "last"], ["stdout> late"], []]
    assert dicts(other) == dicts(file)


async def test_a_second_result_of_a_call_is_stored_beside_it(file: MessageFile, ledger: Ledger, reopen: Reopen) -> None:
    file.add_message("a")
    call = file.add_function_call("message_1", "f")
    for content in ("one", "two", "three"):
        call.add_output(said(content))
        await file.save()
    assert await roles(ledger) == ["user", "assistant", "tool"]
    assert contents(await reopen()) == [[], ["one", "two", "three"]]


async def test_a_call_for_an_older_message_is_found_there_again(file: MessageFile, reopen: Reopen) -> None:
    file.add_message("a")
    file.add_message("b")
    await file.save()
    file.add_function_call("message_1", "f").add_output(said("x"))
    await file.save()
    other = await reopen()
    assert names(other) == ["message_1", "message_2", "message_1_func_1"]
    assert [call["name"] for call in dicts(other)[0]["function_calls"]] == ["message_1_func_1"]
    assert dicts(other) == dicts(file)


async def test_a_call_added_to_the_message_itself_is_saved(file: MessageFile, reopen: Reopen) -> None:
    message = file.add_message("a")
    message.add_function_call("f").add_output(said("x"))
    await file.save()
    assert dicts(await reopen()) == dicts(file)


async def test_a_call_that_brings_a_taken_name_along_keeps_the_file_from_being_saved(
    file: MessageFile, ledger: Ledger
) -> None:
    file.add_message("a", name="x")
    file.add_message("b").add_function_call("f", name="x")
    with pytest.raises(IdConflict):
        await file.save()
    assert await roles(ledger) == []


async def test_the_second_of_two_saves_conflicts(file: MessageFile, reopen: Reopen) -> None:
    await file.save()
    other = await reopen()
    other.add_message("theirs")
    await other.save()
    file.add_message("ours")
    with pytest.raises(VersionConflict) as caught:
        await file.save()
    assert (caught.value.expected, caught.value.actual) == (0, 1)
    await file.load()
    assert [item["content"] for item in dicts(file)] == ["theirs"]
    file.add_message("ours")
    await file.save()
    assert names(await reopen()) == ["message_1", "message_2"]


async def add_output(file: MessageFile) -> None:
    item = file.get_item(0)
    assert item is not None
    item.add_output(said("x"))


async def add_agent(file: MessageFile) -> None:
    file.add_agent_with_definition("sky", {})


@pytest.mark.parametrize("theirs", [add_output, add_agent])
@pytest.mark.parametrize("ours", [add_output, add_agent])
async def test_outputs_saved_by_others_are_a_conflict_too(
    file: MessageFile, reopen: Reopen, theirs: Any, ours: Any
) -> None:
    file.add_message("a")
    file.add_message("b")
    await file.save()
    other = await reopen()
    await theirs(other)
    await other.save()
    await ours(file)
    with pytest.raises(VersionConflict):
        await file.save()
    await file.load()
    assert dicts(file) == dicts(other)
    assert file.get_agents() == other.get_agents()


async def test_messages_of_others_are_a_conflict_and_then_items(file: MessageFile, ledger: Ledger) -> None:
    await file.save()
    await ledger.messages.append("t", [ChatMessage(role="user", content="from elsewhere")])
    file.add_message("ours")
    with pytest.raises(VersionConflict):
        await file.save()
    await file.load()
    assert [item["content"] for item in dicts(file)] == ["from elsewhere"]


async def test_agents_changed_on_another_branch_are_a_conflict(file: MessageFile, ledger: Ledger) -> None:
    file.add_message("a")
    await file.save()
    await fork_at(scope_of(ledger), "t", 1)
    other = await MessageFile.open(ledger, "t")
    other.add_agent_with_definition("sky", {})
    await other.save()
    file.add_agent_with_definition("sea", {})
    with pytest.raises(VersionConflict):
        await file.save()
    assert [agent.name for agent in await list_agents(scope_of(ledger), "t")] == ["weather", "sky"]


async def test_a_save_that_fails_can_be_tried_again(file: MessageFile, ledger: Ledger, reopen: Reopen) -> None:
    message = file.add_message("a")
    await file.save()
    message.add_output(said("x"))
    file.add_agent_with_definition("n" * 600, {})
    with pytest.raises(Exception, match="agent name"):
        await file.save()
    assert await roles(ledger) == ["user"]
    await file.load()
    assert contents(file) == [[]]


async def test_saving_nothing_new_writes_nothing(file: MessageFile, ledger: Ledger) -> None:
    file.add_message("a")
    await file.save()
    before = (await ledger.branches.get("t")).mark
    await file.save()
    assert (await ledger.branches.get("t")).mark == before


async def test_names_are_not_used_again_after_a_reload(file: MessageFile) -> None:
    file.add_message("dropped")
    await file.load()
    file.add_agent_with_definition("weather", {})
    assert file.add_message("b", agent_name="weather").name == "message_2"


async def test_names_of_a_branch_that_was_left_are_not_used_again(file: MessageFile, ledger: Ledger) -> None:
    for content in ("a", "b", "c"):
        file.add_message(content)
    file.add_function_call("message_1", "f")
    await file.save()
    await fork_at(scope_of(ledger), "t", 1)
    forked = await MessageFile.open(ledger, "t")
    forked.add_message("other")
    forked.add_function_call("message_1", "f")
    assert names(forked) == ["message_1", "message_4", "message_1_func_2"]


async def test_a_conversation_of_another_format_is_a_file(ledger: Ledger, reopen: Reopen) -> None:
    calls = [ToolCall(id="a", name="f", arguments={}), ToolCall(id="b", name="f", arguments={})]
    await ledger.threads.create("t", exist_ok=True)
    await ledger.messages.append(
        "t",
        [
            ChatMessage(role="user", content="How warm?"),
            ChatMessage(role="assistant", tool_calls=calls),
            ChatMessage(role="tool", tool_call_id="b", content="21"),
        ],
    )
    file = await reopen()
    assert (names(file), contents(file)) == ([None, "a", "b"], [[], [], ["21"]])
    for name in ("a", "b"):
        item = file.get_item(name)
        assert item is not None
        item.add_output(said("late " + name))
    await file.save()
    assert await roles(ledger) == ["user", "assistant", "tool", "tool"]
    assert await beside(ledger) == [(2, 1, "late b")]
    assert contents(await reopen()) == [[], ["late a"], ["21", "late b"]]


@pytest.mark.parametrize("text", ["\0", "\ud800 \ue000", "'\"\\", "🌍" * 200])
async def test_any_text_comes_back(file: MessageFile, reopen: Reopen, text: str) -> None:
    file.add_agent_with_definition(text[:50], {"system_prompt": text})
    message = file.add_message(text, name=text, agent_name=text[:50])
    file.add_function_call(text, text, {text: text}).add_output(ran(text))
    file.add_message("next")
    await file.save()
    message.add_output(MessageOutputBuilder().with_content(text).with_nonce(text).build())
    await file.save()
    other = await reopen()
    assert dicts(other) == dicts(file)
    assert other.get_agents() == file.get_agents()


async def test_big_outputs_come_back(file: MessageFile, reopen: Reopen) -> None:
    big = "x" * 3_000_000
    message = file.add_message("a")
    message.add_output(MessageOutputBuilder().with_binary_content(big.encode(), "image/png").build())
    file.add_message("b")
    await file.save()
    message.add_output(ran(big))
    await file.save()
    assert dicts(await reopen()) == dicts(file)


async def test_more_items_than_an_append_takes_are_one_save(file: MessageFile, reopen: Reopen) -> None:
    for number in range(1_100):
        file.add_message(str(number))
    await file.save()
    assert len((await reopen()).get_items()) == 1_100


async def test_tenants_do_not_see_each_others_files(file: MessageFile, ledger: Ledger) -> None:
    theirs = ledger.tenant("other")
    await theirs.threads.create("t")
    file.add_message("ours").add_output(said("x"))
    file.add_message("b")
    await file.save()
    other = await MessageFile.open(theirs, "t")
    assert (other.get_items(), other.get_agents()) == ([], [])
    other.add_agent_with_definition("weather", {"models": ["theirs"]})
    other.add_message("theirs", agent_name="weather")
    await other.save()
    await file.load()
    assert [item["content"] for item in dicts(file)] == ["ours", "b"]


async def test_deleting_the_thread_deletes_its_agents_and_outputs(file: MessageFile, ledger: Ledger) -> None:
    message = file.add_message("a")
    file.add_message("b")
    await file.save()
    message.add_output(said("late"))
    await file.save()
    deleted = await ledger.threads.delete("t")
    assert (deleted.rows["agents"], deleted.rows["outputs"], deleted.rows["messages"]) == (1, 1, 2)


async def test_a_copy_without_the_removed_messages_has_the_same_items(file: MessageFile, ledger: Ledger) -> None:
    for number in range(4):
        message = file.add_message(f"ask {number}", f"m{number}")
        await file.save()
        call = file.add_function_call(f"m{number}", "f")
        await file.save()
        call.add_output(ran(f"{number}\n"))
        message.add_output(said(f"told {number}"))
        await file.save()
    stored = (await ledger.messages.history("t")).messages
    await ledger.threads.update("t", rules="lenient")
    for seq in (2, 4, 5, 10):  # a call, an answer, a message whose call and outputs stay, and a call
        await ledger.messages.remove("t", stored[seq - 1].message_id or "")
    await ledger.messages.revise("t", stored[8].message_id or "", ChatMessage(role="user", content="other words"))
    await ledger.threads.copy("t", "c")
    copied = (await ledger.messages.history("c")).messages
    assert [message.seq for message in copied] == list(range(1, 13))
    original, copy = [(await MessageFile.open(ledger, thread)) for thread in ("t", "c")]
    # An output whose own item is gone is named after its position, which is another one in the copy.
    told = [re.sub(r"output_\d+_", "output_", json.dumps(dicts(file))) for file in (original, copy)]
    assert told[0] == told[1]
