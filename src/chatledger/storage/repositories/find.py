"""Finds messages by their ids, and the names that messages of a format have."""

from __future__ import annotations

from chatledger.errors import MessageNotFound
from chatledger.models import ChatMessage
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.history.path import find_message, find_path, load_range
from chatledger.storage.history.window_request import Window
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.text import decode_text, encode_text

_NAMES = """
SELECT m.name FROM {schema}messages m
WHERE m.tenant_id = :tenant AND m.thread_id = :thread AND m.format = :format AND m.name IS NOT NULL
"""
_CALL_IDS = """
SELECT c.call_id FROM {schema}tool_calls c JOIN {schema}messages m
  ON m.tenant_id = c.tenant_id AND m.thread_id = c.thread_id AND m.branch = c.branch AND m.seq = c.seq
WHERE c.tenant_id = :tenant AND c.thread_id = :thread AND m.format = :format AND c.call_id IS NOT NULL
"""


async def list_names(scope: Scope, thread_id: str, format: str) -> set[str]:  # noqa: A002
    """The names and the call ids of all messages that came in a format, on all branches of the thread, for a source
    whose names must be unique. Raises ThreadNotFound.
    """
    window = Window.of(scope.tenant, thread_id)
    return await scope.read(lambda sql: _names(sql, window, format), snapshot=True)


def _names(sql: ReadSql, window: Window, name: str) -> set[str]:
    find_path(sql, window)
    values = {"tenant": window.tenant.key, "thread": window.thread, "format": encode_text(name)}
    return {decode_text(row[0]) for statement in (_NAMES, _CALL_IDS) for row in sql.fetch(statement, values)}


def get_message(sql: ReadSql, window: Window, message_id: str) -> ChatMessage:
    find_path(sql, window)
    message = find_message(sql, window, message_id)
    if message is None:
        raise MessageNotFound(window.thread_id, message_id)
    return message


_FIND = """
SELECT thread_id, branch, seq FROM {schema}messages
WHERE tenant_id = :tenant AND message_id = :message_id{of_user} ORDER BY thread_id LIMIT 100
"""
_OF_USER = """
 AND (SELECT user_id FROM {schema}threads t WHERE t.tenant_id = :tenant AND t.thread_id = messages.thread_id) = :user
"""


def find_messages(sql: ReadSql, tenant: Tenant, message_id: str) -> list[ChatMessage]:
    """The messages with that id. The index of message ids begins with the two columns of the condition."""
    statement = _FIND.replace("{of_user}", "" if tenant.user is None else _OF_USER)
    parameters = {"tenant": tenant.key, "user": tenant.user, "message_id": encode_text(message_id)}
    places = sql.fetch(statement, parameters)
    return [message for thread, branch, seq in places for message in load_range(sql, tenant, thread, branch, seq, seq)]
