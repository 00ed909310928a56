"""What the views show: a sentence about each view, and the type and the meaning of each column.

`chatledger schema --views` and the reference of the tables print them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple


class Type(NamedTuple):
    """The type of a column on each database."""

    sqlite: str
    postgresql: str


TEXT: Final = Type("TEXT", "TEXT")
INTEGER: Final = Type("INTEGER", "INTEGER")
SMALLINT: Final = Type("INTEGER", "SMALLINT")
BIGINT: Final = Type("INTEGER", "BIGINT")
REAL: Final = Type("REAL", "DOUBLE PRECISION")
NUMERIC: Final = Type("REAL", "NUMERIC")
BOOLEAN: Final = Type("INTEGER", "BOOLEAN")
TIME: Final = Type("TEXT", "TIMESTAMPTZ")
DAY: Final = Type("TEXT", "DATE")


class ViewColumn(NamedTuple):
    name: str
    type: Type
    meaning: str


class View(NamedTuple):
    meaning: str
    columns: Sequence[ViewColumn]


_TENANT = ViewColumn("tenant_id", TEXT, "The tenant.")
_THREAD = ViewColumn("thread_id", TEXT, "The thread.")

VIEW_COLUMNS: Mapping[str, View] = {
    "transcript": View(
        "The messages of the active branch of each thread, with those that it shares with other branches.",
        (
            _TENANT,
            _THREAD,
            ViewColumn(
                "seq", BIGINT, "The position on the branch. Order by it; it is also the cursor of a page of a history."
            ),
            ViewColumn("role", TEXT, "The role."),
            ViewColumn("name", TEXT, "The name of the author, or of the tool."),
            ViewColumn(
                "text",
                TEXT,
                "The text of the content: all text parts joined, without reasoning. NULL: no text. Ciphertext if the "
                "ledger encrypts.",
            ),
            ViewColumn(
                "tool_names",
                TEXT,
                "The names of the tools that the message calls, in order, joined by `, `. NULL: none.",
            ),
            ViewColumn("run_id", TEXT, "The run that wrote the message."),
            ViewColumn("created_at", TIME, "When the message was created."),
            ViewColumn("user_id", TEXT, "The owner of the thread."),
            ViewColumn("message_id", TEXT, "The id of the message."),
            ViewColumn("branch", INTEGER, "The branch that stores the message."),
            ViewColumn("state", TEXT, "`complete`, `partial`, `interrupted` or `synthetic`."),
        ),
    ),
    "calls": View(
        "The tool calls of the active branch of each thread, each with the result that answers it there.",
        (
            _TENANT,
            _THREAD,
            ViewColumn("branch", INTEGER, "The branch that stores the message with the call."),
            ViewColumn("seq", BIGINT, "The position of that message."),
            ViewColumn("idx", SMALLINT, "The number of the call in its message, from 0."),
            ViewColumn("message_id", TEXT, "The id of that message."),
            ViewColumn("call_id", TEXT, "The provider's id of the call."),
            ViewColumn("name", TEXT, "The name of the tool."),
            ViewColumn(
                "arguments",
                TEXT,
                "The arguments as they came, which may not be valid JSON. Ciphertext if the ledger encrypts.",
            ),
            ViewColumn("result_seq", BIGINT, "The position of the result. NULL: the call is open."),
            ViewColumn("result", TEXT, "The text of the result. Ciphertext if the ledger encrypts."),
            ViewColumn("is_error", BOOLEAN, "Whether the tool failed. NULL: the result does not say."),
            ViewColumn("called_at", TIME, "When the message with the call was created."),
            ViewColumn("answered_at", TIME, "When the result was created."),
        ),
    ),
    "run_usage": View(
        "One row for each run.",
        (
            _TENANT,
            ViewColumn("run_id", TEXT, "The run."),
            ViewColumn("thread_id", TEXT, "Its thread."),
            ViewColumn("user_id", TEXT, "The owner of the thread."),
            ViewColumn("agent", TEXT, "The agent."),
            ViewColumn("model", TEXT, "The model."),
            ViewColumn("status", TEXT, "`running`, `completed`, `failed` or `cancelled`."),
            ViewColumn("input_tokens", BIGINT, "Tokens that the model read. NULL: not reported."),
            ViewColumn("output_tokens", BIGINT, "Tokens that the model wrote."),
            ViewColumn("total_tokens", BIGINT, "Tokens in all."),
            ViewColumn("cost", NUMERIC, "The cost, in the currency that the application stored."),
            ViewColumn("started_at", TIME, "When the run started."),
            ViewColumn("ended_at", TIME, "When the run ended."),
            ViewColumn("seconds", REAL, "The time from start to end in seconds. NULL: it has not ended."),
        ),
    ),
    "usage_by_day": View(
        "The runs of a day, user, agent and model, summed.",
        (
            _TENANT,
            ViewColumn("day", DAY, "The day in UTC on which the runs started, such as `2026-03-01`."),
            ViewColumn("user_id", TEXT, "The owner of the threads."),
            ViewColumn("agent", TEXT, "The agent."),
            ViewColumn("model", TEXT, "The model."),
            ViewColumn("runs", BIGINT, "The number of runs."),
            ViewColumn("input_tokens", BIGINT, "The sum of the tokens that models read. NULL: no run reported them."),
            ViewColumn("output_tokens", BIGINT, "The sum of the tokens that models wrote."),
            ViewColumn("total_tokens", BIGINT, "The sum of all tokens."),
            ViewColumn("cost", NUMERIC, "The sum of the costs."),
        ),
    ),
    "scores": View(
        "The feedback that counts: the latest score of each target, key and user, unless it was retracted.",
        (
            _TENANT,
            ViewColumn("feedback_id", TEXT, "The id of the score."),
            ViewColumn("run_id", TEXT, "The run."),
            ViewColumn("thread_id", TEXT, "The thread of the run."),
            ViewColumn("agent", TEXT, "The agent of the run."),
            ViewColumn("model", TEXT, "The model of the run."),
            ViewColumn("key", TEXT, "What is scored, such as `stars`."),
            ViewColumn("score", REAL, "The score."),
            ViewColumn("author", TEXT, "The name of the person or program. Ciphertext if the ledger encrypts."),
            ViewColumn("source", TEXT, "Where the score comes from."),
            ViewColumn("created_at", TIME, "When the score was given."),
            ViewColumn("message_id", TEXT, "The message that is scored. NULL: the whole run."),
            ViewColumn("user_id", TEXT, "The user who gave the score."),
            ViewColumn("call_index", SMALLINT, "The number of the call in that message. NULL: not a call."),
        ),
    ),
}
