"""A conversation as one HTML file, which needs no server: with the style inside, media as data URIs, and no script."""

from __future__ import annotations

from markupsafe import Markup

from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Thread
from chatledger.models.parts import MediaPart
from chatledger.repositories.history import History, with_draft
from chatledger.server.page.conversation import heading_of, read_beside
from chatledger.server.page.html import render
from chatledger.server.page.media import content_of
from chatledger.server.page.shown import Renderer
from chatledger.server.page.static import FILES


async def to_file(ledger: Ledger, thread: Thread, history: History) -> str:
    """The file. It shows whole texts, the runs of the messages and their scores."""
    beside = await read_beside(ledger, history, (), all_scores=True)
    shown = Renderer(_data_uri, limit=None).show(with_draft(history), beside)
    heading = heading_of(thread, history)
    style = Markup(FILES["page.css"].decode())  # noqa: S704 - our own
    return render("file.html", thread=thread, heading=heading, messages=shown, style=style, in_file=True)


def _data_uri(message: ChatMessage, index: int, part: MediaPart) -> str | None:
    content = content_of(part)
    return None if content is None or content.shown_as is None else content.as_uri()
