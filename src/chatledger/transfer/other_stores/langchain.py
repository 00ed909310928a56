"""The chat histories of LangChain: the tables of SQLChatMessageHistory in langchain-community, and of
PostgresChatMessageHistory in langchain-community and langchain-postgres.

Each row is one message in the form of `message_to_dict`, as text or JSONB. The session's id is text or a UUID.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.codec import Decoded
from chatledger.ids import deriving
from chatledger.models import RulesLevel
from chatledger.models.base import copy_with
from chatledger.transfer.other_stores.store import OneTable, SourceRow, SourceSession

TABLE = "message_store"


class LangChainStore(OneTable):
    format = "langchain"
    json = "message"

    async def prepare(self) -> None:
        await super().prepare()
        self.time = "created_at" if "created_at" in self._columns else None

    def decode(self, session: SourceSession, rows: Sequence[SourceRow], rules: RulesLevel) -> Decoded:
        id_of = deriving("imported message", session.thread_id)
        decoded = self._decoded(rows, [self._value(row) for row in rows], rules)
        identities = (
            {"message_id": id_of(str(row.id)), "created_at": row.created_at}
            for row in rows  # each is one message
        )
        return Decoded(
            [
                copy_with(*message_and_identity)
                for message_and_identity in zip(decoded.messages, identities, strict=True)
            ],
            decoded.losses,
        )
