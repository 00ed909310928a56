"""`runs usage` and `stats`: tokens and costs, and what the ledger holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from chatledger.cli.conversations import runs
from chatledger.cli.conversations.threads import chosen_thread
from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import Debug, Json, OnlyThread, Tenant, Url, seen_by, time_option, with_ledger
from chatledger.cli.output import plural, print_list, print_table

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import UsageSummary

Since = Annotated[datetime | None, time_option("--since", "Only from this time on.")]
Until = Annotated[datetime | None, time_option("--until", "Only before this time.")]
User = Annotated[str | None, typer.Option("--user", help="Only the threads of this user.")]
Prices = Annotated[
    bool,
    typer.Option("--prices", help="Estimate, in dollars, the cost of runs that have none. Needs the extra prices."),
]


def add_to(app: typer.Typer) -> None:
    runs.app.command("usage")(usage)
    app.command("stats")(stats)


def usage(
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="WORDS",
            help="Words with commas between them: user, agent, model, day, thread, status, metadata.KEY.",
        ),
    ] = "model",
    user: User = None,
    thread: OnlyThread = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only runs of this agent.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only runs of this model.")] = None,
    since: Since = None,
    until: Until = None,
    prices: Prices = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the number of runs, their tokens and their cost."""
    words = [word.strip() for word in by.split(",")]

    async def work(ledger: Ledger) -> int:
        rows = await seen_by(ledger, user).runs.usage(
            words,
            thread_id=await chosen_thread(ledger, thread),
            agent=agent,
            model=model,
            since=since,
            until=until,
            prices=prices,
        )
        fields = [_FIELDS.get(word, "metadata") for word in words]
        if as_json:
            left_out = {*_FIELDS.values(), "metadata"} - {*fields}
            print_list([_plain(row, left_out) for row in rows])
        elif rows:
            headings = (*words, "runs", "failed", "input", "output", "total", "cost")
            print_table(headings, [(*_values(row, words), *_counts(row)) for row in rows])
            _say_costs(rows)
        else:
            say("no runs")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug, keyless=True)


_FIELDS = {
    "user": "user_id",
    "agent": "agent",
    "model": "model",
    "day": "day",
    "thread": "thread_id",
    "status": "status",
}


def _values(row: UsageSummary, words: Sequence[str]) -> Iterable[object]:
    for word in words:
        if word in _FIELDS:
            yield getattr(row, _FIELDS[word])
        else:
            yield (row.metadata or {}).get(word.partition(".")[2])


def _counts(row: UsageSummary) -> Iterable[object]:
    yield from (f"{row.runs:,}", f"{row.failed:,}")
    yield from tokens_and_cost(row)


def tokens_and_cost(row: Any) -> Iterable[object]:
    for count in (row.input_tokens, row.output_tokens, row.total_tokens):
        yield None if count is None else f"{count:,}"
    yield amount(row.cost)


def amount(cost: Decimal | None) -> str | None:
    """The cost with all its digits, never as a power of ten."""
    return None if cost is None else f"{cost:f}"


def _say_costs(rows: Sequence[Any]) -> None:
    """Say what the sums of costs leave out, and what they estimate."""
    without = sum(row.runs_without_cost for row in rows)
    estimated = [row.estimated_cost for row in rows if row.estimated_cost is not None]
    if estimated:
        say(f"{amount(sum(estimated, Decimal(0)))} of the cost is estimated")
    if without:
        say(f"{plural(without, 'run')} without a cost")


def stats(
    by: Annotated[
        str | None, typer.Option("--by", metavar="WORD", help="day or model; default: one sum of all.")
    ] = None,
    user: User = None,
    since: Since = None,
    until: Until = None,
    prices: Prices = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the number of messages, threads, users, runs, tokens and scores, and the cost."""

    async def work(ledger: Ledger) -> int:
        rows = await seen_by(ledger, user).stats(
            cast("Literal['day', 'model'] | None", by),  # the call refuses other words
            prices=prices,
            since=since,
            until=until,
        )
        if as_json:
            print_list([_plain(row, {"day", "model"} - {by or ""}) for row in rows])
        elif rows:
            headings = ("messages", "threads", "users", "runs", "input", "output", "total", "cost", "scores")
            shown = [
                (
                    *([] if by is None else [getattr(row, by)]),
                    *(f"{count:,}" for count in (row.messages, row.threads, row.users, row.runs)),
                    *tokens_and_cost(row),
                    f"{row.scores:,}",
                )
                for row in rows
            ]
            print_table(headings if by is None else (by, *headings), shown)
            _say_costs(rows)
        else:
            say("nothing")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug, keyless=True)


def _plain(row: Any, left_out: set[str]) -> dict[str, Any]:
    fields: dict[str, Any] = row.model_dump(exclude=left_out)
    if fields.get("day") is not None:
        fields["day"] = fields["day"].isoformat()
    if fields.get("cost") is not None:
        fields["cost"] = amount(fields["cost"])
    if fields.get("estimated_cost") is not None:
        fields["estimated_cost"] = amount(fields["estimated_cost"])
    return fields
