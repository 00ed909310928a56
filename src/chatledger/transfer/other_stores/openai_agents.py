"""The sessions of the OpenAI Agents SDK: the tables of its SQLiteSession and SQLAlchemySession.

Both store one item per row. SQLiteSession sorts rows by id, SQLAlchemySession by time and id. The orders differ after a
compaction, which gives new rows old times.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import groupby

from sqlalchemy import ColumnElement, column, distinct, func, select
from sqlalchemy import table as named_table
from sqlalchemy.types import TEXT

from chatledger.errors import DecodeError
from chatledger.formats.codec import Decoded
from chatledger.ids import deriving
from chatledger.models import RulesLevel
from chatledger.models.base import copy_with
from chatledger.transfer.other_stores.store import OneTable, SourceRow, SourceSession

TABLE = "agent_messages"
_BRANCHES = "message_structure"
"""The table in which the SDK's AdvancedSQLiteSession records the branch of each message."""


class AgentsStore(OneTable):
    format = "openai-responses"
    json = "message_data"
    time = "created_at"

    async def prepare(self) -> None:
        await super().prepare()
        await self._database.require(self._table, ["created_at"], hint=self.hint)
        # SQLAlchemySession declares VARCHAR where SQLiteSession declares TEXT.
        by_id = self._database.is_sqlite and isinstance(self._columns["session_id"], TEXT)
        self.order = ("id",) if by_id else ("created_at", "id")
        self._branched = await self._find_branched()

    async def sessions(self) -> AsyncIterator[SourceSession | DecodeError]:
        async for session in super().sessions():
            if isinstance(session, SourceSession) and session.name in self._branched:
                detail = "AdvancedSQLiteSession stores its branches in one list, and an import would mix them"
                yield DecodeError(f"session {session.name!r}", f"{detail}; delete all branches but one in the SDK")
            else:
                yield session

    async def _find_branched(self) -> set[str]:
        if await self._database.columns(_BRANCHES) is None:
            return set()
        session: ColumnElement[str] = column("session_id")
        several = func.count(distinct(column("branch_id"))) > 1
        statement = select(session).select_from(named_table(_BRANCHES)).group_by(session).having(several)
        return {row[0] for row in await self._database.all(statement)}

    def decode(self, session: SourceSession, rows: Sequence[SourceRow], rules: RulesLevel) -> Decoded:
        """Items of the same time are decoded together, since they were probably added together: text and a call beside
        it then become one message.
        """
        id_of = deriving("imported message", session.thread_id)
        decoded = Decoded([])
        for time, group in groupby(rows, lambda row: row.created_at):
            added = list(group)
            of_group = self._decoded(added, [self._value(row) for row in added], rules)
            decoded.losses.extend(of_group.losses)
            for number, message in enumerate(of_group.messages):
                identity = {"message_id": id_of(f"{added[0].id}/{number}"), "created_at": time}
                decoded.messages.append(copy_with(message, identity))
        return decoded
