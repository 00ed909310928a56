"""The conversations that the browser looks at."""

from __future__ import annotations

import base64
import struct
import zlib
from decimal import Decimal

from chatledger import ChatMessage, Feedback, ToolCall, Usage, blocking
from chatledger.models import AudioPart, ImagePart, TextPart

PLAN = """## Two days

The **early** train is best:

1. *Saturday*: Fushimi Inari before 8, then Tofuku-ji
2. *Sunday*: Arashiyama by the river

| Day | Where | Cost |
|---|---|---|
| Saturday | Fushimi | ¥0 |
| Sunday | Arashiyama | ¥600 |

More at [the tourist office](https://kyoto.example/).
"""
LONG = 400
"""The number of messages of the long conversation."""


def picture(width: int = 320, height: int = 120) -> str:
    """A PNG in base64."""
    rows = (
        b"".join(bytes((40 + x * 150 // width, 120 + y * 80 // height, 140)) for x in range(width))
        for y in range(height)
    )
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return base64.b64encode(
        b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    ).decode()


def store(ledger: blocking.Ledger) -> None:
    ledger.threads.create("long", title="A long conversation")
    texts = [f"Message number {number}." for number in range(1, LONG + 1)]
    ledger.messages.append("long", [ChatMessage(role="user", content=text) for text in texts])
    for number in range(28):
        _store_order(ledger, number)
    _store_plan(ledger)


def _store_order(ledger: blocking.Ledger, number: int) -> None:
    thread, run = f"order {number}", f"run {number}"
    ledger.user(f"user-{number % 5}").threads.create(thread, title=f"Order {4711 + number}: where is my parcel?")
    question = ChatMessage(role="user", content="Where is my parcel?")
    answer = ChatMessage(role="assistant", content="It left the depot this morning, and reaches you by Friday.")
    ledger.messages.append(thread, [question, answer], run_id=run)
    usage = Usage(input_tokens=900 + number * 337 % 2100, output_tokens=120 + number * 91 % 400, cost=Decimal("0.012"))
    ledger.runs.finish(run, status="failed" if number % 9 == 3 else "completed", usage=usage)
    ledger.feedback.record(Feedback(run_id=run, key="helpfulness", score=3 + number * 7 % 5 / 2))


def _store_plan(ledger: blocking.Ledger) -> None:
    ledger.user("mei").threads.create("plan", title="A weekend in Kyoto", kind="travel")
    ledger.runs.start("plan", run_id="r1", agent="travel-desk", model="gpt-5")
    view = ImagePart(data=picture(), mime_type="image/png", name="the view")
    sound = AudioPart(data=base64.b64encode(b"RIFF").decode(), mime_type="audio/wav", name="the bell")
    question = [TextPart(text="We have two days.\nWhat should we see? We liked this:"), view, sound]
    trains = ToolCall(id="c1", name="find_trains", arguments={"from": "Tokyo", "to": "Kyoto"})
    weather = ToolCall(id="c2", name="weather", arguments={"city": "Kyoto"})
    ledger.messages.append(
        "plan",
        [
            ChatMessage(role="system", content="You are a travel desk. Answer briefly."),
            ChatMessage(role="user", content=question),
        ],
    )
    ledger.messages.append(
        "plan",
        [
            ChatMessage(role="assistant", reasoning="Two days, so no day trips.", tool_calls=[trains, weather]),
            ChatMessage(role="tool", tool_call_id="c1", content='[{"train": "Nozomi 1", "leaves": "06:00"}]'),
            ChatMessage(role="tool", tool_call_id="c2", content="timed out after 10 s", is_error=True),
            ChatMessage(role="assistant", content=PLAN, message_id="plan"),
        ],
        run_id="r1",
    )
    ledger.runs.finish(
        "r1", status="completed", usage=Usage(input_tokens=1812, output_tokens=264, cost=Decimal("0.0049"))
    )
    stars = Feedback(run_id="r1", key="stars", score=5, author="mei", message_id="plan", kwargs={"comment": "Perfect"})
    ledger.feedback.record(stars)
    ledger.messages.append("plan", [ChatMessage(role="user", content="And with a child of four?", message_id="child")])
    museum = ChatMessage(role="assistant", content="Take the **railway museum**: it has a steam train to ride.")
    aquarium = ChatMessage(role="assistant", content="The aquarium by the station is open until 20:00.")
    ledger.messages.append("plan", [museum], run_id="r1")
    ledger.messages.append("plan", [aquarium], run_id="r1", reply_to="child")
