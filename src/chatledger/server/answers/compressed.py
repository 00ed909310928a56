"""Compresses answers for clients that accept it."""

from __future__ import annotations

import asyncio
import gzip

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatledger.models.weight import FairPool

_LEAST = 1_024
"""Bytes of the smallest answer that is compressed."""
_LARGE = 64 * 1024
"""Bytes of an answer beyond which a thread compresses it."""
_LEVEL = 5
_TEXTS = ("application/json", "application/problem+json", "text/html", "text/css", "text/javascript")


class Compressed:
    """The middleware that answers in gzip. A stream of events is passed on as it is: its client waits for each event.
    So is an answer to what another site's page asks: from the lengths of many answers it could guess what they say.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # Of its own, since zlib leaves the interpreter to others: bodies need not wait while an answer is compressed.
        self._threads = FairPool(1, "chatledger-gzip", most_of_caller=1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        wanted = _accepts(Headers(scope=scope))
        start: Message | None = None

        async def sending(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start is not None:
                begun, start = start, None
                message = await self._compress(begun, message, wanted)
                await send(begun)
            await send(message)

        await self._app(scope, receive, sending)

    async def _compress(self, start: Message, message: Message, wanted: bool) -> Message:
        """The whole body of a response, compressed if it is large enough; its headers say so."""
        body, headers = message.get("body", b""), MutableHeaders(scope=start)
        if start["status"] == 304:  # in the place of an answer that may be compressed
            headers.add_vary_header("Accept-Encoding")
        is_text = headers.get("content-type", "").partition(";")[0] in _TEXTS
        if message.get("more_body", False) or not is_text or len(body) < _LEAST:
            return message
        headers.add_vary_header("Accept-Encoding")
        if not wanted:
            return message

        def zipped() -> bytes:
            return gzip.compress(body, _LEVEL, mtime=0)

        shorter = zipped() if len(body) <= _LARGE else await asyncio.wrap_future(self._threads.submit(zipped))
        headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(shorter))
        tag = headers.get("etag", "")
        if tag.startswith('"'):  # the bytes differ from those of the same state without compression
            headers["ETag"] = f"W/{tag}"
        return {**message, "body": shorter}


def _accepts(headers: Headers) -> bool:
    if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
        return False
    accepted = headers.get("accept-encoding", "").lower().replace(" ", "")
    offers = [offer.partition(";q=") for offer in accepted.split(",")]
    weights = {name: weight for name, _, weight in offers}
    weight = weights.get("gzip", weights.get("*", "0"))
    return weight == "" or weight.strip("0.") != ""
