"""MessageFile: a thread as a file of messages and function calls, with the agents that answer.

    file = await MessageFile.open(ledger, thread_id)
    message = file.add_message("What is the weather in Tokyo?")
    await file.save()

The file is an object in memory: adding to it does not touch the database. `save` writes the additions in one
transaction, and `load` reads everything anew. A stored message never changes: items become messages at the end of the
branch, so every other format reads them too. An output that is added after the conversation has gone on is stored
beside its item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from chatledger.errors import VersionConflict
from chatledger.formats.message_file import (
    Agent,
    AgentFactoryProtocol,
    AgentProtocol,
    FunctionCall,
    FunctionCallBuilder,
    Message,
    MessageBuilder,
    MessageItem,
    MessageOutput,
    UnknownItem,
)
from chatledger.formats.message_file.agents import Roster
from chatledger.formats.message_file.models import TEXT, TextItem
from chatledger.formats.message_file.write import NAME
from chatledger.ledger import Ledger, Transaction
from chatledger.message_file.contents import Changes, Contents, find_changes
from chatledger.models.outputs import ThreadAgent
from chatledger.repositories import scope_of
from chatledger.repositories.history import with_draft
from chatledger.storage.repositories.branches import advance
from chatledger.storage.repositories.find import list_names
from chatledger.storage.repositories.outputs import add_outputs, list_agents, list_outputs, replace_agents

_BATCH = 500
"""Messages in one append of a save; all appends of a save are one transaction."""
_ATTEMPTS = 5
_NUMBERED = re.compile(r"(.*_)([1-9][0-9]{0,17})", re.DOTALL)

__all__ = [
    "Agent",
    "AgentFactoryProtocol",
    "AgentProtocol",
    "FunctionCall",
    "Message",
    "MessageFile",
    "MessageItem",
    "MessageOutput",
]


class MessageFile:
    """A thread as a file of messages and function calls. `MessageFile.open` reads one. Only one task may use it at a
    time.
    """

    def __init__(self, ledger: Ledger, thread_id: str, path: str | None, agents: AgentFactoryProtocol | None) -> None:
        self._ledger = ledger
        self._thread_id = thread_id
        self._path = path
        self._registry = agents
        self._names = _Names()
        # `load` sets these: the items, the agents and their stored form, and the state that a save builds on.
        self._contents: Contents
        self._roster: Roster
        self._stored_agents: Sequence[ThreadAgent]
        self._branch: int
        self._version: int
        self._mark: str

    @classmethod
    async def open(
        cls,
        ledger: Ledger,
        thread_id: str,
        path: str | None = None,
        *,
        agents: AgentFactoryProtocol | None = None,
    ) -> Self:
        """Read the active branch of a thread as a file. A thread that was written in other formats is read as items
        too.

        `path` is any text that `get_path` returns. `add_agent` takes definitions from `agents`. Raises ThreadNotFound.
        """
        file = cls(ledger, thread_id, path, agents)
        await file.load()
        return file

    # --- The contents -------------------------------------------------------------------------------------------------

    def get_path(self) -> str | None:
        """The path that the file was opened with. Nothing is read from it or written to it."""
        return self._path

    def get_items(self) -> list[MessageItem]:
        """The messages and function calls, in the order of the file."""
        return [entry.item for entry in self._contents.entries]

    def get_item(self, index_or_name: int | str) -> MessageItem | None:
        """The item at a position, counted from 0, or with a name; None if there is none."""
        if isinstance(index_or_name, str):
            entry = self._contents.find(index_or_name)
            return None if entry is None else entry.item
        items = self.get_items()
        return items[index_or_name] if 0 <= index_or_name < len(items) else None

    def get_agents(self) -> list[Agent]:
        """The agents of the file with the file's settings, in the order in which they were added."""
        return self._roster.all()

    def default_agent(self) -> Agent | None:
        """The agent that answers messages that name none. None until `set_default_agent` is called."""
        return self._roster.default

    # --- Adding to it -------------------------------------------------------------------------------------------------

    def add_agent(self, agent_name: str, override_settings: Mapping[str, Any] | None = None) -> Agent:
        """Add an agent of the registry, or override more settings of an agent of the file. Returns the agent with its
        settings.

        Raises UnknownAgent, and ValidationError for `models`, `system_prompt` and anything else that is no setting.
        """
        return self._roster.add(agent_name, override_settings or {})

    def add_agent_with_definition(self, agent_name: str, definition: AgentProtocol | Mapping[str, Any]) -> Agent:
        """Add an agent by its definition, and return it. Raises IdConflict if the file has another agent of its
        name.

        A definition has the fields of AgentProtocol and no others, so no key of a provider is stored.
        """
        return self._roster.define(agent_name, definition)

    def set_default_agent(self, agent_name: str) -> None:
        """Let an agent of the file answer messages that name none. Raises UnknownAgent."""
        self._roster.set_default(agent_name)

    def add_message(
        self,
        content: str,
        name: str | None = None,
        mime_type: str = TEXT,
        agent_name: str | None = None,
        timeout: float | None = None,
    ) -> Message:
        """Add a message for an agent, by default the default agent, and return it. `name` is `message_{n}` by default,
        and `timeout` a time limit in seconds.

        Raises NoDefaultAgent, UnknownAgent, and IdConflict for a name that the file has, and then adds nothing.
        """
        agent = self._roster.choose(agent_name)
        self._contents.require_free(name)
        built = MessageBuilder().with_content(content).with_mime_type(mime_type).with_agent_name(agent)
        built.with_timeout(timeout).with_name(name).build()  # refuses before a number is given away
        message = built.with_name(name or self._names.next_message()).build()
        self._names.note([message.name])
        self._contents.add(message)
        return message

    def add_function_call(
        self,
        message_name: str,
        function_name: str,
        args: Mapping[str, Any] | None = None,
        name: str | None = None,
        timeout: float | None = None,
    ) -> FunctionCall:
        """Add a call to a message, and return it. `function_name` may be the name of an agent. `name` is
        `{message}_func_{k}` by default, and `timeout` a time limit in seconds.

        Raises NoDefaultAgent, UnknownItem for a message that the file does not have, and IdConflict for a name that
        it has, and then adds nothing.
        """
        self._roster.choose(None)
        entry = self._contents.find(message_name)
        if entry is None or not isinstance(entry.item, TextItem):
            raise UnknownItem(message_name)
        self._contents.require_free(name)
        built = FunctionCallBuilder().with_function_name(function_name).with_args(args or {}).with_timeout(timeout)
        built.with_name(name).with_heading_level(entry.item.level_of_calls).build()
        call = entry.item.add_call(built.with_name(name or self._names.next_call(message_name)).build())
        self._names.note([call.name])
        return call

    # --- The database -------------------------------------------------------------------------------------------------

    async def save(self) -> None:
        """Store all additions or none, in one transaction. Raises VersionConflict if the branch was written since it
        was read, and DraftLive if its last message is still being written.

        If it fails, the file in memory stays as it was. After a conflict, `load` reads what others saved, and drops the
        unsaved additions. A call without an output is stored open, and the messages behind it record the violation.
        """
        self._contents.require_names_once()
        changes = find_changes(self._contents.entries, self._branch, self._version)
        agents = self._roster.to_stored()
        if not changes.messages and not changes.beside and agents == self._stored_agents:
            return
        async with self._ledger.begin() as tx:
            await advance(scope_of(tx), self._thread_id, self._mark)
            version = await self._append(tx, changes)
            await add_outputs(scope_of(tx), self._thread_id, changes.beside)
            if not await replace_agents(scope_of(tx), self._thread_id, agents, stored=self._stored_agents):
                detail = "the agents were changed by another writer; load the file again"
                raise VersionConflict(
                    "branch", self._version, self._version, detail, thread_id=self._thread_id, branch=self._branch
                )
            mark = (await tx.branches.get(self._thread_id, self._branch)).mark
        changes.apply()
        self._version, self._mark, self._stored_agents = version, mark, agents

    async def _append(self, tx: Transaction, changes: Changes) -> int:
        """The version that the messages leave."""
        version = changes.version  # nobody else writes: `advance` holds the branch
        for start in range(0, len(changes.messages), _BATCH):
            batch = changes.messages[start : start + _BATCH]
            appended = await tx.messages.append(self._thread_id, batch, branch=changes.branch, rules="lenient")
            version = appended.last_seq
        return version

    async def load(self) -> None:
        """Read the file anew, as it is stored. Unsaved additions are lost; their names are not used again."""
        for _ in range(_ATTEMPTS):  # an equal mark before and after says that all reads saw one state
            await self._read()
            if (await self._ledger.branches.get(self._thread_id)).mark == self._mark:
                return

    async def _read(self) -> None:
        history = await self._ledger.messages.history(self._thread_id)
        beside = await list_outputs(scope_of(self._ledger), self._thread_id)
        agents = await list_agents(scope_of(self._ledger), self._thread_id)
        self._contents = Contents.read(with_draft(history), beside)
        self._roster = Roster(agents, self._registry)
        self._stored_agents = agents
        self._branch, self._version, self._mark = history.branch, history.last_seq, history.mark
        self._names.note(await list_names(scope_of(self._ledger), self._thread_id, NAME))
        self._names.note(item.name for item in self.get_items())


class _Names:
    """Numbered names for items. The highest number of each beginning only grows, so that no name is used twice."""

    def __init__(self) -> None:
        self._highest: dict[str, int] = {}

    def note(self, names: Iterable[str | None]) -> None:
        """Note names that are in use, or were."""
        for name in names:
            numbered = None if name is None else _NUMBERED.fullmatch(name)
            if numbered is not None:
                beginning, number = numbered[1], int(numbered[2])
                self._highest[beginning] = max(number, self._highest.get(beginning, 0))

    def next_message(self) -> str:
        return self._next("message_")

    def next_call(self, message_name: str) -> str:
        return self._next(f"{message_name}_func_")

    def _next(self, beginning: str) -> str:
        name = f"{beginning}{self._highest.get(beginning, 0) + 1}"
        self.note([name])
        return name
