"""`feedback record`, `remove`, `list`, `summary` and `compare`: scores of runs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.conversations.threads import chosen_thread, print_page, say_damaged
from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import Cursor, Debug, Json, Limit, OnlyThread, Tenant, Url, time_option, with_ledger
from chatledger.cli.output import moment, print_json, print_list, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatledger.ledger import Ledger
    from chatledger.models import Feedback, FeedbackComparison

app = typer.Typer(help="Record, remove and summarize scores of runs.", no_args_is_help=True, rich_markup_mode=None)


@app.command("record", context_settings={"ignore_unknown_options": True})  # a score may be -1
def record(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    key: Annotated[str, typer.Argument(metavar="KEY", help="Name of the score, such as stars or correctness.")],
    score: Annotated[float, typer.Argument(metavar="SCORE", help="A number from -1e100 to 1e100.")],
    comment: Annotated[
        str | None, typer.Option("--comment", metavar="TEXT", help="Comment to store with the score.")
    ] = None,
    author: Annotated[
        str | None, typer.Option("--author", metavar="NAME", help="Name of the person or program that gives the score.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="USER", help="Id of the user who gives the score. Each user's latest counts."),
    ] = None,
    source: Annotated[str | None, typer.Option("--source", metavar="TEXT", help="Where the score comes from.")] = "cli",
    message: Annotated[
        str | None, typer.Option("--message", metavar="ID", help="Score only this message of the run's thread.")
    ] = None,
    call: Annotated[
        int | None,
        typer.Option("--call", metavar="INDEX", help="Score only this tool call of the message, counted from 0."),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option("--idempotency-key", metavar="KEY", help="A repeat with this key stores no second score."),
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Record a score of a run, message or tool call.

    It replaces the user's earlier score of the same target and key.

    Example: chatledger feedback record demo-run-1 stars 4 --user mei --url demo.db
    """

    from chatledger.errors import RunNotFound

    async def work(ledger: Ledger) -> int:
        about = {"run_id": run, "message_id": message, "call_index": call}
        new_score = _feedback(
            comment=comment, key=key, score=score, author=author, user_id=user, source=source, **about
        )
        try:
            stored = await ledger.feedback.record(new_score, idempotency_key=idempotency_key)
        except RunNotFound as error:
            error.add_note("a score is about a run; `chatledger runs list --thread …` lists those of a thread")
            raise
        if as_json:
            print_json(stored.model_dump())
        else:
            print(f"recorded {stored.feedback_id}")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


def _feedback(*, comment: str | None, **fields: object) -> Feedback:
    from pydantic import ValidationError

    from chatledger.models import Feedback

    try:
        return Feedback.model_validate({**fields, "kwargs": {} if comment is None else {"comment": comment}})
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{first['loc'][0]}: {first['msg'].removeprefix('Value error, ')}") from error


@app.command("remove")
def remove(
    feedback_id: Annotated[str, typer.Argument(metavar="FEEDBACK", help="The score's id, which `record` printed.")],
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Remove a score, so that it no longer counts.

    The user's earlier scores of the same target and key do not count again.
    """

    async def work(ledger: Ledger) -> int:
        removed = await ledger.feedback.remove(feedback_id)
        if as_json:
            print_json(removed.model_dump())
        else:
            print(f"removed {removed.feedback_id}")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


@app.command("list")
def list_scores(
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only scores of this run.")] = None,
    thread: OnlyThread = None,
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="Only scores from this user.")] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="Only scores with this key.")] = None,
    events: Annotated[bool, typer.Option("--events", help="Also list scores that were replaced or removed.")] = False,
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List scores, newest first.

    For each target, key and user, only the latest score is listed, unless it was removed.

    Example: chatledger feedback list --thread weather --json
    """

    async def work(ledger: Ledger) -> int:
        chosen = {"run_id": run, "thread_id": await chosen_thread(ledger, thread), "user_id": user, "key": key}
        page = await ledger.feedback.list(**chosen, events=events, limit=limit, cursor=cursor)
        if as_json:
            print_list([stored.model_dump() for stored in page], page.next_cursor)
        else:
            rows = [
                (
                    stored.feedback_id,
                    stored.run_id,
                    stored.key,
                    f"{stored.score:g}",
                    stored.user_id,
                    stored.author,
                    moment(stored.created_at),
                )
                for stored in page
            ]
            print_page(("feedback", "run", "key", "score", "user", "author", "given"), rows, page, "no scores found")
        return say_damaged(page.damaged)

    with_ledger(url, tenant, work, debug=debug)


@app.command("summary")
def summary(
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="Only scores with this key.")] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="AGENT", help="Only scores of this agent's runs.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Only scores of this model's runs.")
    ] = None,
    since: Annotated[datetime | None, time_option("--since", "Only scores from this time on.")] = None,
    until: Annotated[datetime | None, time_option("--until", "Only scores before this time.")] = None,
    thread: OnlyThread = None,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only scores of this run.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="Only scores from this user.")] = None,
    events: Annotated[bool, typer.Option("--events", help="Also count scores that were replaced or removed.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print count, mean, lowest and highest score by key.

    For each target, key and user, only the latest score counts.

    Example: chatledger feedback summary --key stars --agent travel-desk
    """

    async def work(ledger: Ledger) -> int:
        rows = await ledger.feedback.summary(
            key=key,
            agent=agent,
            model=model,
            since=since,
            until=until,
            thread_id=await chosen_thread(ledger, thread),
            run_id=run,
            user_id=user,
            events=events,
        )
        if as_json:
            print_list([row.model_dump() for row in rows])
        elif rows:
            shown = [(row.key, row.count, f"{row.mean:.4g}", f"{row.min:g}", f"{row.max:g}") for row in rows]
            print_table(("key", "count", "mean", "min", "max"), shown)
        else:
            say("no scores found")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


@app.command("compare")
def compare(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key of the scores: stars, thumbs, correctness, …")],
    by: Annotated[
        str, typer.Option("--by", metavar="WORD", help="model, agent, or metadata.KEY, a key of the runs' metadata.")
    ] = "model",
    agent: Annotated[str | None, typer.Option("--agent", help="Only runs of this agent.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only runs of this model.")] = None,
    since: Annotated[datetime | None, time_option("--since", "Only scores from this time on.")] = None,
    until: Annotated[datetime | None, time_option("--until", "Only scores before this time.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Only scores of this user.")] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare the current scores of models, agents or values of the metadata, with 95 % intervals and mean costs."""

    async def work(ledger: Ledger) -> int:
        rows = await ledger.feedback.compare(
            key,
            by,
            agent=agent,
            model=model,
            since=since,
            until=until,
            user_id=user,
        )
        if as_json:
            print_list([row.model_dump() for row in rows])
        elif rows:
            headings = (by, "count", "mean", "share", "low", "high", "runs", "mean cost", "mean tokens")
            print_table(headings, map(_compared, rows))
        else:
            say("no feedback")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


def _compared(row: FeedbackComparison) -> Sequence[object]:
    numbers = (row.mean, row.share, row.low, row.high)
    shown = [None if number is None else f"{number:.4g}" for number in numbers]
    cost = None if row.mean_cost is None else f"{float(row.mean_cost):.4g}"
    tokens = None if row.mean_tokens is None else f"{row.mean_tokens:,.0f}"
    return (row.value, row.count, *shown, row.runs, cost, tokens)
