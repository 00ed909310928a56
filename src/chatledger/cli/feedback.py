"""`feedback record` and `feedback summary`: scores on runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import Debug, Json, Tenant, Url, with_ledger
from chatledger.cli.output import print_json, print_table

if TYPE_CHECKING:
    from datetime import datetime

    from chatledger.ledger import Ledger
    from chatledger.models import Feedback

app = typer.Typer(help="Score runs, and read the scores.", no_args_is_help=True, rich_markup_mode=None)


@app.command("record", context_settings={"ignore_unknown_options": True})  # a score may be -1
def record(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    key: Annotated[str, typer.Argument(metavar="KEY", help="What is scored: stars, thumbs, correctness, …")],
    score: Annotated[float, typer.Argument(metavar="SCORE", help="A finite number.")],
    comment: Annotated[str | None, typer.Option("--comment", help="A comment to store with the score.")] = None,
    author: Annotated[str | None, typer.Option("--author", help="The name of who gives the score.")] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="The id of the user whose score it is; the latest of each user counts.")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", help="Where the score comes from.")] = "cli",
    message: Annotated[str | None, typer.Option("--message", help="The id of one message of the run's thread.")] = None,
    call: Annotated[int | None, typer.Option("--call", help="One tool call of that message, counted from 0.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option("--idempotency-key", help="Recording again with the same key changes nothing.")
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Record a score of a run. It counts in the place of the user's earlier score of the same target and key."""

    async def work(ledger: Ledger) -> int:
        about = {"run_id": run, "message_id": message, "call_index": call}
        given = _feedback(comment=comment, key=key, score=score, author=author, user_id=user, source=source, **about)
        stored = await ledger.feedback.record(given, idempotency_key=idempotency_key)
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
        said = error.errors()[0]
        raise UsageError(f"{said['loc'][0]}: {said['msg']}") from error


@app.command("retract")
def retract(
    feedback_id: Annotated[str, typer.Argument(metavar="FEEDBACK", help="The id that `record` printed.")],
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Withdraw a score, with the user's earlier scores of the same target and key."""

    async def work(ledger: Ledger) -> int:
        retracted = await ledger.feedback.retract(feedback_id)
        if as_json:
            print_json(retracted.model_dump())
        else:
            print(f"retracted {retracted.feedback_id}")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


@app.command("summary")
def summary(
    key: Annotated[str | None, typer.Option("--key", help="Only scores of this key.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only runs of this agent.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only runs of this model.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only scores from then on; TIME includes its time zone."),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only scores before then.")] = None,
    thread: Annotated[str | None, typer.Option("--thread", help="Only runs of this thread.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="Only this run.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Only scores of this user.")] = None,
    events: Annotated[
        bool, typer.Option("--events", help="Count every score, also those that were replaced or retracted.")
    ] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the count, mean, lowest and highest score of each key. The latest score of each target and user counts."""

    async def work(ledger: Ledger) -> int:
        rows = await ledger.feedback.summary(
            key=key,
            agent=agent,
            model=model,
            since=_time(since, "--since"),
            until=_time(until, "--until"),
            thread_id=thread,
            run_id=run,
            user_id=user,
            events=events,
        )
        if as_json:
            print_json([row.model_dump() for row in rows])
        elif rows:
            shown = [(row.key, row.count, f"{row.mean:.4g}", f"{row.min:g}", f"{row.max:g}") for row in rows]
            print_table(("key", "count", "mean", "min", "max"), shown)
        else:
            say("no feedback")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


def _time(text: str | None, option: str) -> datetime | None:
    from chatledger.errors import DecodeError
    from chatledger.transfer.fields import read_time

    try:
        return None if text is None else read_time(text, option)
    except DecodeError as error:
        raise UsageError(str(error)) from error
