"""`demo`: what sets a ledger apart, on sample conversations. A second run stores nothing twice."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from chatledger.cli.escape import one_line
from chatledger.cli.exit_codes import ExitCode
from chatledger.cli.files.import_files import describe, import_paths
from chatledger.cli.options import Debug, Json, Tenant, open_ledger, place_of, require_keys, run_async, url_option
from chatledger.cli.output import console, plural, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatledger.ledger import Ledger
    from chatledger.models import ChatMessage

    class Done(Protocol):
        """Prints a step that is done, and a line for each detail."""

        def __call__(self, step: str, *details: str) -> None: ...


DEMO_FILE = "demo.db"
"""Not the default file of the other commands: samples there would mix with the user's own conversations."""
SAMPLES = ("travel.json", "support.jsonl")
THREAD_OF = "trip-to-kyoto"
RUN = "demo-run-1"
WORDS = "window seat"


def add_to(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    migrate: Annotated[
        bool, typer.Option("--migrate", help="First migrate the database to this release's schema.")
    ] = False,
    url: Annotated[str, url_option(DEMO_FILE)] = DEMO_FILE,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Try chatledger with sample conversations.

    Imports the samples, appends a turn with a call, streams an answer, edits a question, sends a result that is
    refused, searches, and scores. Then it prints the end of the conversation. A second run stores nothing twice.
    """

    async def command() -> int:
        steps: list[str] = []

        def done(step: str, *details: str) -> None:
            steps.append(step)
            if not as_json:
                _print_step(len(steps), step, details)

        if migrate:
            await asyncio.to_thread(_migrate, url)
        async with open_ledger(url, tenant, create=True) as ledger:
            await require_keys(ledger)
            thread_id = await _perform(ledger, done, place=place_of(url))
            if as_json:
                print_json({"steps": steps, "thread_id": thread_id, "run_id": RUN})
            else:
                await _show(ledger, thread_id, url)
        return ExitCode.OK

    run_async(command, debug=debug)


def _migrate(url: str) -> None:
    from chatledger.admin import migrate

    migrate(url)


def _print_step(number: int, step: str, details: Sequence[str]) -> None:
    from rich.text import Text

    console().print(Text.assemble((f"{number}. ", "bold cyan"), step))
    for detail in details:
        console().print(Text(f"     {detail}", style="dim"))


async def _perform(ledger: Ledger, done: Done, *, place: str) -> str:
    """Run the steps, and return the id of the thread that they continue."""
    from chatledger.ids import derived_id

    await _import_samples(ledger, done, place)
    thread_id = derived_id("record id", THREAD_OF)
    await _append_turn(ledger, done, thread_id)
    question = await _stream_answer(ledger, done, thread_id)
    await _edit_question(ledger, done, thread_id, question)
    await _send_orphan(ledger, done, thread_id)
    await _search(ledger, done)
    await _score(ledger, done)
    return thread_id


async def _import_samples(ledger: Ledger, done: Done, place: str) -> None:
    from chatledger.transfer.plan import ImportOptions

    options = ImportOptions(id_field="id", user_field="user", time_field="created_at")
    files = [str(samples_folder() / name) for name in SAMPLES]
    report = await import_paths(ledger, files, options, quiet=True)
    done(f"opened {place}, and imported {' and '.join(SAMPLES)}", *describe(report))


async def _append_turn(ledger: Ledger, done: Done, thread_id: str) -> None:
    from chatledger.models import Payload, Usage

    await ledger.runs.start(thread_id, run_id=RUN, agent="travel-desk", model="demo-model")
    turn = Payload(live_turn(), "openai-chat")
    appended = await ledger.messages.append(thread_id, turn, run_id=RUN, idempotency_key="demo-turn-1")
    await ledger.runs.finish(RUN, status="completed", usage=Usage(input_tokens=412, output_tokens=58))
    already = " (stored before: a repeat stores nothing)" if appended.replayed else ""
    done(f"appended a question, a call, its result and an answer in one transaction{already}")


async def _stream_answer(ledger: Ledger, done: Done, thread_id: str) -> ChatMessage:
    """Returns the question."""
    from chatledger.models import ChatMessage

    asked = ChatMessage(role="user", content="Which platform?")
    question = (await ledger.messages.append(thread_id, asked, idempotency_key="demo-question")).messages[0]
    pieces = ("Platform 13, ", "on the Shinkansen side. ", "Be there by 19:25.")
    async with ledger.messages.stream(thread_id, reply_to=question, idempotency_key="demo-answer") as draft:
        if not draft.replayed:  # else the model would be asked a second time
            for piece in pieces:
                await draft.feed(piece)
    again = " (stored before: no model is asked twice)" if draft.replayed else ""
    done(f"streamed an answer, which is stored while it grows and taken over after a crash{again}")
    return question


async def _edit_question(ledger: Ledger, done: Done, thread_id: str, question: ChatMessage) -> None:
    from chatledger.models import ChatMessage

    edited = ChatMessage(role="user", content="Which platform, and where is car 7?")
    answer = ChatMessage(role="assistant", content="Platform 13. Car 7 stops at the sign with the blue 7.")
    await ledger.messages.append(thread_id, [edited, answer], alternative_to=question, idempotency_key="demo-edit")
    both = await ledger.messages.alternatives(thread_id, question)
    details = [f"{number} of {len(both)}: {version.message.text}" for number, version in enumerate(both, 1)]
    done("edited the question: both stay, each with its answer", *details)


async def _send_orphan(ledger: Ledger, done: Done, thread_id: str) -> None:
    from chatledger.errors import RuleViolation
    from chatledger.models import ChatMessage

    orphan = ChatMessage(role="tool", tool_call_id="call_9", content="sunny")
    try:
        await ledger.messages.append(thread_id, orphan, rules="strict", idempotency_key="demo-orphan")
    except RuleViolation as error:
        done("sent a result without its call: it was refused, and nothing was stored", str(error))


async def _search(ledger: Ledger, done: Done) -> None:
    hits = (await ledger.messages.search(WORDS)).items
    lines = [f"#{hit.seq} {hit.role}: {one_line(f'{hit.before}{hit.match}{hit.after}')}" for hit in hits]
    done(f"searched for {WORDS!r} in all conversations: {plural(len(hits), 'hit')}", *lines)


async def _score(ledger: Ledger, done: Done) -> None:
    from chatledger.models import Feedback

    await ledger.feedback.record(Feedback(run_id=RUN, key="stars", score=5, author="mei"), idempotency_key="demo-stars")
    for row in await ledger.feedback.summary(key="stars"):
        done(f"scored the run: {row.key}, {row.count} × {row.mean:g} on average")


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


async def _show(ledger: Ledger, thread_id: str, url: str) -> None:
    from chatledger.cli.conversations.render import render
    from chatledger.models import Turns
    from chatledger.repositories.history import with_draft

    out = console()
    thread = await ledger.threads.get(thread_id)
    out.print("\nthe end of the conversation:\n")
    render(out, thread, with_draft(await ledger.messages.history(thread_id, Turns(2))), full=False)
    at = f" --url {shlex.quote(place_of(url))}"
    name = _name()
    out.print(f"\nnext: {name} threads{at}    list the conversations")
    out.print(f"      {name} check{at}      list the rules that they break")
    out.print(f"      {name} serve{at}      look at them in a browser")


def _name() -> str:
    """What to type to call this program again. After `make demo` the shell does not find it without its path."""
    called = sys.argv[0]
    needs_path = Path(called).name == "chatledger" and shutil.which("chatledger") is None
    return shlex.quote(called) if needs_path else "chatledger"


def samples_folder() -> Path:
    """The folder of the samples: in the installed package, or at the root of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "samples"
    return installed if installed.is_dir() else package.parents[1] / "samples"
