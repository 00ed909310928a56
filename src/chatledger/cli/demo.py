"""`demo`: import the sample conversations, append, read and score. A second run stores nothing twice."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.exit_codes import ExitCode
from chatledger.cli.files.import_files import describe, import_paths
from chatledger.cli.options import Debug, Json, Tenant, Url, open_ledger, require_keys, run_async
from chatledger.cli.output import console, plural, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from chatledger.ledger import Ledger

SAMPLES = ("travel.json", "support.jsonl")
THREAD_OF = "trip-to-kyoto"
RUN = "demo-run-1"


def add_to(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    migrate: Annotated[
        bool, typer.Option("--migrate", help="First migrate the database to this release's schema.")
    ] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Try chatledger with sample conversations.

    Imports the samples into the database, appends a turn, reads it back, scores it and prints the conversation. A
    second run stores nothing twice.
    """

    async def command() -> int:
        steps: list[str] = []

        def done(step: str) -> None:
            steps.append(step)
            if not as_json:
                console().print(f"{len(steps)}. {step}")

        if migrate:
            await asyncio.to_thread(_migrate, url)
        async with open_ledger(url, tenant, create=True) as ledger:
            await require_keys(ledger)
            thread_id = await _perform(ledger, done, place=_place(url))
            if as_json:
                print_json({"steps": steps, "thread_id": thread_id, "run_id": RUN})
            else:
                await _show(ledger, thread_id, url)
        return ExitCode.OK

    run_async(command, debug=debug)


def _migrate(url: str | None) -> None:
    from chatledger.admin import migrate

    migrate(url)


async def _perform(ledger: Ledger, done: Callable[[str], None], *, place: str) -> str:
    """Run the steps, and return the id of the thread that they continue."""
    from chatledger.ids import derived_id
    from chatledger.models import Feedback, Payload, Turns, Usage
    from chatledger.transfer.plan import ImportOptions

    done(f"opened {place}")
    options = ImportOptions(id_field="id", user_field="user", time_field="created_at")
    files = [str(samples_folder() / name) for name in SAMPLES]
    report = await import_paths(ledger, files, options, quiet=True)
    done(f"imported {' and '.join(SAMPLES)}: {'; '.join(describe(report))}")
    thread_id = derived_id("record id", THREAD_OF)
    await ledger.runs.start(thread_id, run_id=RUN, agent="travel-desk", model="demo-model")

    appended = await ledger.messages.append(
        thread_id, Payload(live_turn(), "openai-chat"), run_id=RUN, idempotency_key="demo-turn-1"
    )
    await ledger.runs.finish(RUN, status="completed", usage=Usage(input_tokens=412, output_tokens=58))
    already = " (stored before; a repeat stores nothing twice)" if appended.replayed else ""
    done(f"appended a turn, checked by strict rules: {plural(len(appended.messages), 'message')}{already}")
    history = await ledger.messages.history(thread_id, Turns(1))
    done(f"read the thread's last turn: messages {history.messages[0].seq} to {history.last_seq}")
    await ledger.feedback.record(Feedback(run_id=RUN, key="stars", score=5, author="mei"), idempotency_key="demo-stars")
    for row in await ledger.feedback.summary(key="stars"):
        done(f"scored the run and read the summary: {row.key}, {row.count} × {row.mean:g} on average")
    return thread_id


def live_turn() -> list[dict[str, object]]:
    """A turn as a service appends it: a question, a call, its result and the answer."""
    arguments = '{"from": "Kyoto", "to": "Hakata", "day": "2025-03-23"}'
    call = {"id": "call_0", "type": "function", "function": {"name": "find_trains", "arguments": arguments}}
    return [
        {"role": "user", "content": "And back on Sunday evening?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": '[{"train": "Nozomi 59", "leaves": "19:33"}]'},
        {"role": "assistant", "content": "Nozomi 59 leaves Kyoto at 19:33 and is in Hakata at 22:12."},
    ]


async def _show(ledger: Ledger, thread_id: str, url: str | None) -> None:
    from chatledger.cli.conversations.render import render
    from chatledger.repositories.history import with_draft

    out = console()
    thread = await ledger.threads.get(thread_id)
    out.print("\nthe conversation, as `chatledger show` prints it:\n")
    render(out, thread, with_draft(await ledger.messages.history(thread_id)), full=False)
    at = f" --url {shlex.quote(_place(url))}"
    name = _name()
    out.print(f"\nnext: {name} threads{at}    list the conversations")
    out.print(f"      {name} check{at}      list the rules that they break")
    out.print(f"      {name} serve{at}      look at them in a browser")


def _name() -> str:
    """What to type to call this program again. After `make demo` the shell does not find it without its path."""
    called = sys.argv[0]
    needs_path = Path(called).name == "chatledger" and shutil.which("chatledger") is None
    return shlex.quote(called) if needs_path else "chatledger"


def _place(url: str | None) -> str:
    """The path or URL of the database, without its password."""
    from chatledger.cli.options import file_path
    from chatledger.storage.drivers.urls import read_url, without_password

    return file_path(url) or without_password(read_url(url))


def samples_folder() -> Path:
    """The folder of the samples: in the installed package, or at the root of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "samples"
    return installed if installed.is_dir() else package.parents[1] / "samples"
